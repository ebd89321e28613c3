"""What is asked of a proposer, and what it remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from arcfleet.network import Network
from arcfleet.neural import strategies as proposals
from arcfleet.neural.plans import NO_PLAN, Plans
from arcfleet.neural.strategies import (
    WHOLE,
    Proposer,
    destroy_and_repair,
    has_short_routes,
    sample_plans,
)
from tests.neural.judge import judge
from tests.neural.toy_batches import ring, toy_model

if TYPE_CHECKING:
    from collections.abc import Iterator


def nothing(_done: int, _total: int) -> None:
    pass


def proposer_of(networks: list[Network]) -> Proposer:
    return Proposer(
        toy_model(1),
        networks,
        torch.device("cpu"),
        threads=1,
        generator=torch.Generator().manual_seed(0),
    )


@pytest.mark.parametrize("rows", [[0], [1], [0, 1]])
def test_samples_of_some_go_on_from_their_own_best(
    rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first has more tasks than the second, whose plans alone are thus shorter.
    networks = [Network(ring([2] * 50)), Network(ring([2] * 42))]
    proposer = proposer_of(networks)
    gone_on_with: list[Plans] = []

    def noting(
        policy: Any, batch: Any, plans: Plans, *rest: Any, **more: Any
    ) -> Iterator[Plans]:
        gone_on_with.append(plans)
        return destroy_and_repair(policy, batch, plans, *rest, **more)

    monkeypatch.setattr(proposals, "destroy_and_repair", noting)
    found = [proposer.greedy(nothing).at(rows)]
    for samples in (5, WHOLE):
        parts = list(proposer.sample(rows, samples, nothing))
        assert sum(part.costs.shape[1] for part in parts) == samples
        for part in parts:
            judge([networks[row] for row in rows], part)
        found.extend(parts)
    # Of 21 the last five are drawn anew: four, in two parts, and one.
    assert [part.costs.shape[1] for part in found[-3:]] == [2, 2, 1]
    assert len(gone_on_with) == 2
    for before, place in zip(gone_on_with, (-3, -1), strict=True):
        earlier = [part.costs.min(1) for part in found[:place]]
        assert before.costs[:, 0].tolist() == np.min(earlier, axis=0).tolist()
        judge([networks[row] for row in rows], before)
        assert (found[place].costs <= before.costs).all()


def test_plans_that_break_the_fleet_limit_are_remembered_as_orders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # None is a plan until routes are drawn anew, which needs an order of all tasks.
    networks = [Network(ring([2] * 42))]
    proposer = proposer_of(networks)

    def break_all(*given: Any, **options: Any) -> Iterator[Plans]:
        for plans in sample_plans(*given, **options):
            yield plans._replace(costs=np.full_like(plans.costs, NO_PLAN))

    monkeypatch.setattr(proposals, "sample_plans", break_all)
    *_, last = proposer.sample([0], WHOLE + 20, nothing)
    judge(networks, last)
    assert last.costs[0, -1] != NO_PLAN


def test_small_instances_are_drawn_whole_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("drawn anew")

    monkeypatch.setattr(proposals, "destroy_and_repair", never)
    proposer = proposer_of([Network(ring([2] * 40))])
    parts = list(proposer.sample([0], 2 * WHOLE, nothing))
    assert sum(part.costs.shape[1] for part in parts) == 2 * WHOLE


def test_short_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposals, "MOST_TASKS_AT_ONCE", 5)
    arcs = np.arange(1, 8, dtype=np.int32)[None, None]
    starts = np.zeros((1, 1, 7), dtype=np.bool_)
    costs = np.ones((1, 1), dtype=np.int64)
    for places, are_short in (([0, 2, 4], True), ([0, 1, 4], False), ([0, 3], False)):
        some = starts.copy()
        some[0, 0, places] = True
        assert has_short_routes(Plans(arcs, some, costs)) == are_short
        assert not has_short_routes(Plans(arcs, some, np.full_like(costs, NO_PLAN)))
