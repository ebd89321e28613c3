"""Decoding that leaves served arcs out gives the same plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from arcfleet.neural import decoding as rollout
from arcfleet.neural.decoding import beam, greedy, sample
from tests.neural.batches import random_batch
from tests.neural.test_daam import SMALL, exact, make_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.decoding import Policy, Rollout, View
    from arcfleet.neural.env import State

    Decode = Callable[[Policy, ArcBatch], Rollout]

HIDDEN = SMALL


class LooksAtAll:
    """The same policy, which does not say that it hides served arcs."""

    def __init__(self, policy: Policy) -> None:
        self.prepare = policy.prepare
        self.policy = policy

    def __call__(self, prepared: Any, state: State, allowed: Tensor) -> Tensor:
        return self.policy(prepared, state, allowed)


def _sampled(policy: Policy, batch: ArcBatch) -> Rollout:
    generator = torch.Generator().manual_seed(5)
    heat = torch.linspace(0.5, 2.0, len(batch))
    return sample(policy, batch, 3, generator=generator, temperature=heat)


def _sampled_from_distinct_starts(policy: Policy, batch: ArcBatch) -> Rollout:
    generator = torch.Generator().manual_seed(5)
    return sample(policy, batch, 3, generator=generator, distinct_starts=True)


DECODINGS: dict[str, Decode] = {
    "greedy": lambda policy, batch: greedy(policy, batch),
    "unbound": lambda policy, batch: greedy(policy, batch, capacity_mask=False),
    "sample": _sampled,
    "distinct starts": _sampled_from_distinct_starts,
    "beam": lambda policy, batch: beam(policy, batch, 3),
    "beam, unbound": lambda policy, batch: beam(policy, batch, 2, capacity_mask=False),
}


@pytest.mark.parametrize("how", DECODINGS)
@pytest.mark.parametrize("mixed", [False, True])
def test_plans_are_the_same(how: str, mixed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model(HIDDEN).double()
    batch = exact(random_batch([30, 22, 5], mixed=mixed, seed=4))
    lengths: list[int] = []
    view_of = rollout.View

    def noted(*arguments: Any) -> View:
        view = view_of(*arguments)
        lengths.append(view.batch.num_arcs)
        return view

    monkeypatch.setattr("arcfleet.neural.decoding.View", noted)
    narrowed = DECODINGS[how](model, batch)
    assert len(lengths) >= 3
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] < batch.num_arcs
    whole = DECODINGS[how](LooksAtAll(model), batch)
    assert torch.equal(narrowed.arcs, whole.arcs)
    torch.testing.assert_close(
        narrowed.log_probability, whole.log_probability, rtol=0, atol=1e-8
    )
    assert len(lengths) < 20  # the second asked for no view
