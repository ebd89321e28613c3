"""Learned solvers against the clock: how many plans are asked for, and what is kept."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from arcfleet import Instance, Stop
from arcfleet.network import Network
from arcfleet.neural import solver
from arcfleet.neural.plans import Plans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from arcfleet.neural.decoding import OnStep
    from arcfleet.neural.model import Daam
    from arcfleet.neural.solver import Attempt


class Paced:
    """Makes plans of given costs at a given pace, and notes how many are asked for."""

    seconds_each = 0.0
    clock = 0.0
    drawn: ClassVar[list[int]] = []
    costs: ClassVar[list[list[int]]] = []

    def __init__(self, model: Daam, networks: Sequence[Network], *_: Any, **__: Any):
        self.count = len(networks)

    def greedy(self, on_step: OnStep) -> Plans:
        return self._plans(range(self.count), 1, on_step)

    def sample(self, rows: Sequence[int], samples: int, on_step: OnStep) -> Iterator[Plans]:
        yield self._plans(rows, samples, on_step)

    def _plans(self, rows: Sequence[int], samples: int, on_step: OnStep) -> Plans:
        self.drawn.append(samples)
        for _ in range(samples):
            Paced.clock += self.seconds_each
            on_step(0, 0)
        drawn = [[self.costs[row].pop(0) for _ in range(samples)] for row in rows]
        none = np.zeros((len(rows), samples, 0), dtype=np.int32)
        return Plans(none, none.astype(np.bool_), np.array(drawn, dtype=np.int64))


@pytest.fixture
def paced(monkeypatch: pytest.MonkeyPatch) -> type[Paced]:
    monkeypatch.setattr(solver, "Proposer", Paced)
    monkeypatch.setattr(Paced, "drawn", [])
    monkeypatch.setattr(Paced, "clock", 0.0)
    monkeypatch.setattr(time, "perf_counter", lambda: Paced.clock)
    return Paced


def attempted(
    instances: Sequence[Instance], model: Path, method: str, stop: Stop
) -> Sequence[Attempt]:
    return solver.attempt_together(
        [Network(instance) for instance in instances],
        loaded=solver.load_for_solving(model, "cpu"),
        method=method,
        stop=stop,
        seed=0,
        threads=1,
        started=0.0,
    )


def test_the_first_round_fits_the_time(
    small: Instance, model: Path, paced: type[Paced], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paced, "seconds_each", 0.3)
    monkeypatch.setattr(paced, "costs", [list(range(100, 0, -1))])
    (attempt,) = attempted([small], model, "daam-sample", Stop(seconds=1.0))
    # Four would take longer than the time left, and all of them would be lost.
    assert paced.drawn[:2] == [1, 2]
    assert (attempt.iterations, attempt.stopped_by) == (3, "seconds")


def test_one_instance_near_its_limit_does_not_slow_the_others(
    small: Instance, model: Path, paced: type[Paced], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first finds nothing better after its first plan, the second one until its 21st.
    costs = [[50] * 200, list(range(50, 30, -1)) + [30] * 200]
    monkeypatch.setattr(paced, "costs", costs)
    attempts = attempted([small] * 2, model, "daam-sample", Stop(no_improvement=5))
    assert [(x.iterations, x.cost) for x in attempts] == [(6, 50), (26, 30)]
    assert paced.drawn[:3] == [1, 4, 5]


@pytest.mark.parametrize(("steps", "has_learned"), [(3, True), (5, False)])
def test_the_hybrid_leaves_most_of_the_time_to_the_search(
    steps: int,
    has_learned: bool,
    small: Instance,
    model: Path,
    paced: type[Paced],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slow(self: Paced, on_step: OnStep) -> Plans:
        for _ in range(steps):
            paced.clock += 0.5
            on_step(0, 0)
        return self._plans(range(self.count), 1, on_step)

    monkeypatch.setattr(paced, "greedy", slow)
    for instances in (1, 2):
        paced.clock = 0.0
        monkeypatch.setattr(paced, "costs", [[50] for _ in range(instances)])
        # Each has its share of the time.
        stop = Stop(seconds=10.0 / instances)
        attempts = attempted([small] * instances, model, "hybrid", stop)
        assert all((x.plan is not None) == has_learned for x in attempts)
        assert attempts[0].seconds == min(0.5 * steps, 2.0)


def test_a_round_that_is_cut_keeps_what_was_ready(
    small: Instance, model: Path, paced: type[Paced], monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_two_parts(
        self: Paced, rows: Sequence[int], samples: int, on_step: OnStep
    ) -> Iterator[Plans]:
        yield self._plans(rows, 1, on_step)
        paced.clock += 100.0
        yield self._plans(rows, samples - 1, on_step)

    monkeypatch.setattr(paced, "sample", in_two_parts)
    monkeypatch.setattr(paced, "costs", [[50, 40, 30, 20, 10]])
    (attempt,) = attempted([small], model, "daam-sample", Stop(seconds=60.0))
    assert (attempt.cost, attempt.iterations) == (40, 2)
    assert attempt.stopped_by == "seconds"
    # Nothing more is drawn where what was ready is enough.
    monkeypatch.setattr(paced, "costs", [[50, 40, 30, 20, 10]])
    paced.clock = 0.0
    (attempt,) = attempted([small], model, "daam-sample", Stop(target_cost=40))
    assert (attempt.cost, attempt.stopped_by) == (40, "target_cost")
    assert paced.clock == 0.0
