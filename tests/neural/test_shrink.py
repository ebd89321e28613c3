"""Leaving out served arcs: the same decisions, and every decision on one rung."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from arcfleet.neural.shrink import as_instances, rungs, shrink
from arcfleet.neural.state import allowed_arcs
from tests.neural.batches import random_batch, random_rollout
from tests.neural.test_daam import SMALL, exact, make_model

HIDDEN = replace(SMALL, inputs="mds+gat+skip", features="more+spare", served="hidden")


@given(
    tasks=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    mixed=st.booleans(),
    seed=st.integers(0, 99),
)
def test_gives_the_same_logits(tasks: list[int], mixed: bool, seed: int) -> None:
    model = make_model(HIDDEN).double()
    batch = exact(random_batch(tasks, mixed=mixed, seed=seed))
    generator = torch.Generator().manual_seed(seed)
    states, chosen = random_rollout(batch, bound=True, generator=generator, copies=2)
    for moment, state in enumerate(states[:-1]):
        length = batch.num_arcs + 1
        choice = chosen[..., moment]
        alone, rows = as_instances(state)
        shrunk = shrink(batch, alone, length, rows)
        small, small_state = shrunk.batch, shrunk.state
        small_choice = shrunk.slot.gather(1, choice.reshape(-1, 1))
        with torch.no_grad():
            usual = model(model.prepare(batch), state, allowed_arcs(batch, state))
            found = model(
                model.prepare(small), small_state, allowed_arcs(small, small_state)
            )
        assert small.real.sum() <= batch.real.sum() * 2
        usual, found = usual.flatten(0, 1), found[:, 0]
        for row in range(len(usual)):
            # Arcs keep their order, so those that are allowed come one after the other.
            torch.testing.assert_close(
                found[row][found[row].isfinite()],
                usual[row][usual[row].isfinite()],
                rtol=0,
                atol=1e-10,
            )
        torch.testing.assert_close(
            found.gather(1, small_choice)[:, 0],
            usual.gather(1, choice.reshape(-1, 1))[:, 0],
            rtol=0,
            atol=1e-10,
        )


@pytest.mark.parametrize("mixed", [False, True])
def test_every_state_has_one_rung_that_holds_it(mixed: bool) -> None:
    batch = random_batch([90, 70], mixed=mixed, seed=3)
    found = rungs(batch)
    assert len(found) > 2
    assert sorted(range(91)) == sorted(
        served for rung in found for served in range(rung.least, rung.below)
    )
    states, _ = random_rollout(
        batch, bound=True, generator=torch.Generator().manual_seed(1), copies=3
    )
    arc = torch.arange(batch.num_arcs)
    once = (batch.twin >= arc)[:, None]
    total = batch.num_tasks[:, None]
    for state in states:
        served = total - (state.unserved & once).sum(-1)  # (batch, copies)
        left = state.unserved | (arc == state.previous[..., None]) | (arc == 0)
        for tasks, arcs in zip(served.flatten(), left.sum(-1).flatten(), strict=True):
            # Those with fewer tasks than the largest may be on a longer rung than need be.
            rung = next(rung for rung in found if rung.least <= tasks < rung.below)
            assert arcs <= rung.length
