"""The bookkeeping of plans against the stop rule, beside a plain second version of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from arcfleet import Stop, read
from arcfleet.network import Network
from arcfleet.neural.solver import Attempt

if TYPE_CHECKING:
    from arcfleet.solution.plan import IntArray

NETWORK = Network(read(Path(__file__).parents[1] / "data" / "small.dat"))
limits = st.none() | st.integers(1, 12)


@given(
    costs=st.lists(st.integers(-1, 30), max_size=30),
    rounds=st.lists(st.integers(1, 7), min_size=30, max_size=30),
    iterations=limits,
    stale=limits,
    target=limits,
)
def test_offers_are_counted_until_a_limit_is_met(
    costs: list[int],
    rounds: list[int],
    iterations: int | None,
    stale: int | None,
    target: int | None,
) -> None:
    stop = Stop(iterations=iterations, no_improvement=stale, target_cost=target)
    attempt = Attempt(network=NETWORK, stop=stop, started=time.perf_counter())
    taken: list[int] = []
    left = list(costs)
    for size in rounds:
        if not left or attempt.stopped_by is not None:
            break
        assert attempt.iterations_left >= 1
        # Perhaps more than the rule allows, as in a batch whose other members need them.
        offered, left = left[:size], left[size:]

        def plan(position: int, offered: list[int] = offered) -> tuple[IntArray, IntArray]:
            taken.append(offered[position])
            return np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int32)

        attempt.offer(offered, plan)
    best: int | None = None
    history: list[tuple[int, int]] = []
    stopped_by = None
    done = 0
    for cost in costs:
        if cost >= 0 and (best is None or cost < best):
            best = cost
            history.append((done, cost))
        done += 1
        since = done - 1 - (history[-1][0] if history else -1)
        if target is not None and best is not None and best <= target:
            stopped_by = "target_cost"
        elif iterations is not None and done >= iterations:
            stopped_by = "iterations"
        elif stale is not None and since >= stale:
            stopped_by = "no_improvement"
        if stopped_by is not None:
            break
    assert attempt.stopped_by == stopped_by
    assert attempt.iterations == done
    assert attempt.cost == best
    assert [(step.iteration, step.cost) for step in attempt.history] == history
    assert taken == [cost for _, cost in history]
