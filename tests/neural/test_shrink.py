"""Leaving out served arcs: the same decisions, and every decision on one bucket."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from arcfleet.neural.batch import as_instances, bucket_sizes, buckets, present_arcs, shrink
from arcfleet.neural.env import State, action_mask
from tests.neural.batches import random_batch, random_rollout
from tests.neural.test_daam import SMALL, exact, make_model

HIDDEN = SMALL


@given(
    tasks=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    mixed=st.booleans(),
    seed=st.integers(0, 99),
)
def test_gives_the_same_logits(tasks: list[int], mixed: bool, seed: int) -> None:
    model = make_model(HIDDEN).double()
    batch = exact(random_batch(tasks, mixed=mixed, seed=seed))
    generator = torch.Generator().manual_seed(seed)
    states, chosen = random_rollout(
        batch, capacity_mask=True, generator=generator, samples=2
    )
    for moment, state in enumerate(states[:-1]):
        length = batch.num_arcs + 1
        choice = chosen[..., moment]
        alone, rows = as_instances(state)
        shrunk = shrink(batch, alone, length, rows)
        small, small_state = shrunk.batch, shrunk.state
        small_choice = shrunk.slot.gather(1, choice.reshape(-1, 1))
        with torch.no_grad():
            usual = model(model.prepare(batch), state, action_mask(batch, state))
            found = model(
                model.prepare(small), small_state, action_mask(small, small_state)
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
def test_every_state_has_one_bucket_that_holds_it(mixed: bool) -> None:
    batch = random_batch([90, 30], mixed=mixed, seed=3)
    found = buckets(batch)
    assert [bucket.length for bucket in found] == [48, 88, 128, 168, 208]
    assert list(range(1, 91)) == sorted(
        left for bucket in found for left in range(bucket.above + 1, bucket.most + 1)
    )
    assert bucket_sizes(batch, found).tolist() == [46, 27, 20, 20, 7]
    states, _ = random_rollout(
        batch, capacity_mask=True, generator=torch.Generator().manual_seed(1), samples=3
    )
    once = (batch.inverse >= torch.arange(batch.num_arcs))[:, None]
    lengths: set[int] = set()
    for state in states:
        alone, rows = as_instances(state)
        left = (state.unserved & once).sum(-1).flatten()  # tasks of each plan
        arcs = present_arcs(alone).sum(1)
        for bucket in found:
            here = (left > bucket.above) & (left <= bucket.most)
            if not here.any():
                continue
            assert int(arcs[here].max()) <= bucket.length
            lengths.add(bucket.length)
            small = shrink(
                batch, State(*(part[here] for part in alone)), bucket.length, rows[here]
            )
            assert small.batch.num_arcs == bucket.length
            assert torch.equal(small.batch.real.sum(1), arcs[here])  # nothing was cut off
    assert len(lengths) == 5
