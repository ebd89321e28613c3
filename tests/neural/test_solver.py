"""Learned methods: the stop rule, the history, the clock, what they refuse."""

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from arcfleet import Instance, Stop, check, read, solve, solve_many
from arcfleet.errors import UnsolvableError, WithoutLearnedPlanWarning
from arcfleet.network import Network
from arcfleet.neural import decoding_run, solver, windows
from arcfleet.neural import plans as plans_module
from arcfleet.neural.decoding import OnStep, Rollout, sample
from arcfleet.neural.decoding_run import DecodingRun
from arcfleet.neural.plans import Plans
from arcfleet.neural.solver import Attempt
from arcfleet.neural.strategies import Strategy, method_strategies
from arcfleet.neural.windows import windowed_rollout
from arcfleet.search import Progress, Result
from arcfleet.search.run import RunContext
from arcfleet.solution.plan import IntArray
from tests.helpers import SMALL, make_instance, street, unpackable

# Whether a short limit leaves time for a learned plan is the machine's business; the tests
# of the warning ask for it.
pytestmark = pytest.mark.filterwarnings(
    "default::arcfleet.errors.WithoutLearnedPlanWarning"
)

SHORT_TIME = "the time limit was too short"
SHORT = {
    "daam": Stop(iterations=3),
    "daam-greedy": Stop(iterations=3),
    "daam-sample": Stop(iterations=9),
}


def require_sound(instance: Instance, result: Result) -> None:
    report = check(instance, result.solution)
    assert report.faults == ()
    assert report.cost == result.cost
    costs = [step.cost for step in result.history]
    assert costs == sorted(set(costs), reverse=True)
    assert costs[-1] == result.cost
    iterations = [step.iteration for step in result.history]
    assert iterations == sorted(set(iterations))
    assert iterations[-1] < result.iterations
    seconds = [step.seconds for step in result.history]
    assert seconds == sorted(seconds)
    assert 0 <= seconds[0] <= seconds[-1] <= result.seconds


@pytest.mark.parametrize("method", method_strategies())
def test_the_same_seed_gives_the_same_plan(
    method: str, village: Instance, model: Path
) -> None:
    stop = SHORT[method]
    first = solve(village, method, stop=stop, seed=5, model=model, device="cpu")
    second = solve(village, method, stop=stop, seed=5, model=str(model))
    require_sound(village, first)
    assert second.solution == first.solution
    assert (first.method, first.seed, first.stopped_by) == (method, 5, "iterations")
    # The others make one plan, whatever the limit.
    planned = stop.iterations if method == "daam-sample" else 1
    assert first.iterations == planned


@pytest.mark.parametrize("method", method_strategies())
def test_turn_rules_are_obeyed(method: str, village: Instance, model: Path) -> None:
    obeying = replace(village, u_turns="dead-ends", u_turn_penalty=7)
    result = solve(obeying, method, stop=SHORT[method], seed=5, model=model, device="cpu")
    require_sound(obeying, result)
    (again,) = solve_many([obeying], method, stop=SHORT[method], seed=5, model=model)
    assert isinstance(again, Result)
    assert check(obeying, again.solution).faults == ()


def test_another_seed_draws_other_plans(small: Instance, model: Path) -> None:
    results = [solve(small, "daam-sample", seed=s, model=model) for s in range(8)]
    greedy = solve(small, "daam-greedy", model=model)
    assert {x.history[0].cost for x in results} == {greedy.cost}
    found = {tuple((step.iteration, step.cost) for step in x.history) for x in results}
    assert len(found) > 1
    # Four streets: some of 32 plans drawn are the best there is.
    assert min(x.cost for x in results) == solve(small, stop=Stop(iterations=999)).cost


@pytest.fixture
def large(village: Instance, monkeypatch: pytest.MonkeyPatch) -> tuple[Instance, list[int]]:
    """An instance that goes through windows, and the plans that did, as they are made."""
    # Few streets of the village are left, so that windows of 8 tasks take little time.
    nothing_to_serve: dict[str, Any] = {
        "demand": 0,
        "service_cost": None,
        "reverse_service_cost": None,
    }
    some = tuple(
        link if i % 3 == 0 else replace(link, required=False, **nothing_to_serve)
        for i, link in enumerate(village.links)
    )
    seen: list[int] = []

    def narrow(*arguments: Any, **options: Any) -> torch.Tensor:
        seen.append(options["samples"])
        return windowed_rollout(*arguments, tasks=8, **options)

    monkeypatch.setattr(decoding_run, "windowed_rollout", narrow)
    monkeypatch.setattr(windows, "MOST_TASKS_AT_ONCE", 10)
    return replace(village, links=some), seen


@pytest.mark.parametrize("method", method_strategies())
def test_large_instances_go_through_windows(
    method: str, large: tuple[Instance, list[int]], model: Path
) -> None:
    instance, seen = large
    stop = Stop(iterations=4)
    first = solve(instance, method, stop=stop, seed=3, model=model)
    require_sound(instance, first)
    # Two routes together are too long to be drawn at once.
    rounds = {"daam": [1, 1], "daam-sample": [1, 3]}
    assert seen == rounds.get(method, [1])
    again = solve(instance, method, stop=stop, seed=3, model=model)
    assert again.solution == first.solution
    with without_learned_plan():
        hurried = solve(instance, method, stop=Stop(seconds=0.0), model=model)
    require_sound(instance, hurried)
    assert hurried.iterations == 1


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """How plans are drawn, and how many, as they are."""
    made: list[tuple[str, int]] = []

    def note(kind: str, name: str) -> None:
        method = getattr(DecodingRun, name)

        def call(run: DecodingRun, rows: Sequence[int], samples: int) -> Iterator[Plans]:
            made.append((kind, samples))
            yield from method(run, rows, samples)

        monkeypatch.setattr(DecodingRun, name, call)

    note("whole", "sample")
    note("repaired", "destroy_and_repair")
    return made


def test_short_routes_of_large_instances_are_repaired(
    large: tuple[Instance, list[int]], drawn: list[tuple[str, int]], model: Path
) -> None:
    instance, seen = replace(large[0], capacity=500), large[1]
    stop = Stop(iterations=30)
    first = solve(instance, "daam-sample", stop=stop, seed=3, model=model)
    require_sound(instance, first)
    assert seen == [1, 4]
    repaired = [("repaired", samples) for samples in (*[4] * 4, 4, 4, 1)]
    assert drawn == [("whole", 4), *repaired]
    again = solve(instance, "daam-sample", stop=stop, seed=3, model=model)
    assert again.solution == first.solution


def test_samples_are_whole_first_and_then_repaired(
    village: Instance, drawn: list[tuple[str, int]], model: Path
) -> None:
    stop = Stop(iterations=40)
    result = solve(village, "daam-sample", stop=stop, seed=1, model=model)
    require_sound(village, result)
    assert result.iterations == 40
    # One greedy plan, rounds of 4 and 16, and of what is left.
    repaired = [("repaired", samples) for samples in (4, *[4] * 4, 3)]
    assert drawn == [("whole", 4), ("whole", 12), *repaired]


def all_at(temperature: float, tasks: Tensor) -> Tensor:
    return torch.full(tasks.shape, temperature)


def test_the_temperature_holds_with_and_without_windows(
    village: Instance, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs: list[int] = []

    def split_plans(*arguments: Any, **options: Any) -> Plans:
        plans = plans_module.split_plans(*arguments, **options)
        costs.extend(plans.costs.flatten().tolist())
        return plans

    monkeypatch.setattr(decoding_run, "split_plans", split_plans)
    # Of one augmentation with the capacity mask and any starts, as through windows.
    alike = partial(decoding_run.sample_plans, num_augmentations=1, giant_tour_share=0)
    monkeypatch.setattr(decoding_run, "sample_plans", alike)

    def any_starts(*arguments: Any, distinct_starts: bool, **options: Any) -> Rollout:
        assert distinct_starts
        return sample(*arguments, **options)

    monkeypatch.setattr(decoding_run, "sample", any_starts)
    for most_tasks in (300, 10):
        monkeypatch.setattr(windows, "MOST_TASKS_AT_ONCE", most_tasks)
        for temperature, different in ((1e-6, False), (1.0, True)):
            costs.clear()
            default = partial(all_at, temperature)
            monkeypatch.setattr(decoding_run, "default_temperature", default)
            solve(village, "daam-sample", stop=Stop(iterations=4), model=model)
            # Near 0 every sample takes the most probable arc, and so the greedy plan.
            assert len(costs) == 4
            assert (len(set(costs)) > 1) == different


def test_samples_are_counted_exactly(small: Instance, model: Path) -> None:
    for iterations in (1, 2, 5, 6, 22, 40):
        stop = Stop(iterations=iterations, seconds=600.0)
        result = solve(small, "daam-sample", stop=stop, model=model)
        assert (result.iterations, result.stopped_by) == (iterations, "iterations")
    assert solve(small, "daam-sample", model=model).iterations == 32


def test_no_improvement_stops(village: Instance, model: Path) -> None:
    result = solve(village, "daam-sample", stop=Stop(no_improvement=11), model=model)
    assert result.stopped_by == "no_improvement"
    require_sound(village, result)
    assert result.iterations == result.history[-1].iteration + 1 + 11


@pytest.mark.parametrize("method", method_strategies())
def test_target_cost_stops(method: str, village: Instance, model: Path) -> None:
    stop = SHORT[method]
    good = solve(village, method, stop=stop, model=model)
    again = solve(village, method, stop=replace(stop, target_cost=good.cost), model=model)
    assert again.stopped_by == "target_cost"
    assert again.cost == good.cost
    assert again.iterations == good.history[-1].iteration + 1


def without_learned_plan() -> AbstractContextManager[object]:
    """Expect a method to warn that it has no learned plan."""
    return pytest.warns(WithoutLearnedPlanWarning, match=f"learned plan .*: {SHORT_TIME}")


@pytest.mark.parametrize("method", method_strategies())
def test_no_time_still_gives_a_plan(method: str, village: Instance, model: Path) -> None:
    with without_learned_plan():
        result = solve(village, method, stop=Stop(seconds=0.0), model=model)
    require_sound(village, result)
    # Path scanning makes one.
    assert (result.iterations, result.stopped_by) == (1, "seconds")
    assert result.cost == solve(village, "ps").cost
    assert result.fallback == "ps"
    assert result.to_dict()["fallback"] == "ps"
    assert "the plan is of ps, for want of time" in result.summary()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let every step of decoding take as many seconds as the list says at first."""
    seconds = [0.0, 0.0]  # of a step, and on the clock
    look = solver._Watch.look  # noqa: SLF001

    def later(watch: Any, done: int = 0, total: int = 0) -> None:
        seconds[1] += seconds[0] if total else 0.0
        look(watch, done, total)

    monkeypatch.setattr(solver._Watch, "look", later)  # noqa: SLF001
    monkeypatch.setattr(time, "perf_counter", lambda: seconds[1])
    return seconds


@pytest.mark.parametrize("method", method_strategies())
def test_a_time_limit_is_kept_to_within_a_step(
    method: str, village: Instance, model: Path, slow: list[float]
) -> None:
    uncut = solve(village, method, stop=SHORT[method], model=model)
    slow[:] = [1.0, 0.0]
    stop = replace(SHORT[method], seconds=10.0)
    with without_learned_plan():
        result = solve(village, method, stop=stop, model=model)
    require_sound(village, result)
    assert (result.seconds, result.stopped_by) == (10.0, "seconds")
    assert result.cost == solve(village, "ps").cost
    # A limit that is not met changes nothing.
    slow[:] = [0.001, 0.0]
    again = solve(village, method, stop=stop, model=model)
    assert replace(again, seconds=0.0, history=()) == replace(
        uncut, seconds=0.0, history=()
    )
    costs = [[(x.iteration, x.cost) for x in y.history] for y in (again, uncut)]
    assert costs[0] == costs[1]


def test_a_recipe_that_takes_too_long_leaves_the_greedy_plan(
    village: Instance, model: Path, slow: list[float]
) -> None:
    greedy = solve(village, "daam-greedy", model=model)
    slow[:] = [1.0, 0.0]
    limit = 2.0 * len(village.required)  # a greedy plan takes fewer steps than that
    result = solve(village, "daam", stop=Stop(seconds=limit), model=model)
    assert (result.seconds, result.stopped_by) == (limit, "seconds")
    assert (result.solution, result.iterations) == (greedy.solution, 1)


def test_a_batch_has_the_time_of_its_instances(
    village: Instance, model: Path, slow: list[float]
) -> None:
    greedy = solve(village, "daam-greedy", model=model)
    slow[:] = [1.0, 0.0]
    stop = Stop(seconds=float(len(village.required)))
    outcomes = solve_many([village] * 2, "daam-greedy", stop=stop, model=model)
    assert [x.cost for x in outcomes if isinstance(x, Result)] == [greedy.cost] * 2
    slow[:] = [1.0, 0.0]
    with without_learned_plan():
        outcomes = solve_many(
            [village] * 2, "daam-greedy", stop=Stop(seconds=1.0), model=model
        )
    scanned = solve(village, "ps").cost
    assert [x.cost for x in outcomes if isinstance(x, Result)] == [scanned] * 2


def test_the_time_is_used_and_progress_reported(
    small: Instance, model: Path, slow: list[float]
) -> None:
    slow[:] = [0.0078125, 0.0]  # 128 steps in a second, without an error of rounding
    seen: list[Progress] = []
    stop = Stop(seconds=1.0)
    result = solve(small, "daam-sample", stop=stop, model=model, progress=seen.append)
    assert (result.stopped_by, result.seconds) == ("seconds", 1.0)
    assert result.iterations > 5
    require_sound(small, result)
    # Every 13 steps, as these are the first to last a tenth of a second.
    assert [p.seconds for p in seen] == [13 * i * slow[0] for i in range(1, 10)]
    assert [p.iterations for p in seen] == sorted(p.iterations for p in seen)
    assert seen[-1].iterations <= result.iterations
    assert all(p.cost is None or p.cost >= result.cost for p in seen)


def test_seconds_are_those_of_the_clock(small: Instance, model: Path) -> None:
    seen: list[Progress] = []
    stop = Stop(seconds=1.0)
    began = time.perf_counter()
    result = solve(small, "daam-sample", stop=stop, model=model, progress=seen.append)
    # Where not even the first plan was ready in time, path scanning had the last fifth.
    least = 1.0 if result.iterations > 1 else 0.8
    assert time.perf_counter() - began >= result.seconds >= least
    assert result.stopped_by == "seconds"
    require_sound(small, result)
    assert all(p.seconds <= result.seconds for p in seen)


def test_interrupt_returns_the_best_so_far(small: Instance, model: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.cost is not None:
            signal.raise_signal(signal.SIGINT)

    stop = Stop(seconds=600.0)
    result = solve(small, "daam-sample", stop=stop, model=model, progress=interrupt)
    assert result.stopped_by == "interrupt"
    require_sound(small, result)


def test_interrupt_before_there_is_a_plan(
    small: Instance, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(solver, "start_run", interrupt)
    for method in method_strategies():
        with pytest.raises(KeyboardInterrupt):
            solve(small, method, model=model)


@pytest.mark.parametrize("method", method_strategies())
def test_nothing_required_means_no_routes(method: str, model: Path) -> None:
    result = solve(make_instance(street(1, 2, 3)), method, model=model)
    assert (result.cost, result.solution.num_routes, result.iterations) == (0, 0, 1)


@pytest.mark.parametrize("method", method_strategies())
def test_no_plan_within_the_fleet_is_one_sentence(method: str, model: Path) -> None:
    instance = unpackable()
    # More time is of use to those that make more plans.
    remedy = "it makes no more, so try another method, such as ruin-recreate, or raise"
    if method == "daam-sample":
        remedy = "give it more time"
    with pytest.raises(
        UnsolvableError, match=rf"at most 2 routes .* iterations of {method}: {remedy}"
    ):
        solve(instance, method, stop=Stop(iterations=20), model=model)
    # Path scanning has none, either.
    with pytest.raises(UnsolvableError, match=f"0 iterations of {method}: give"):
        solve(instance, method, stop=Stop(seconds=0.0), model=model)
    enough = replace(instance, fleet_limit=3)
    require_sound(enough, solve(enough, method, stop=Stop(iterations=20), model=model))


NETWORK = Network(read(SMALL))
limits = st.none() | st.integers(1, 12)


@given(
    costs=st.lists(st.integers(-1, 30), max_size=30),
    rounds=st.lists(st.integers(1, 7), min_size=30, max_size=30),
    iterations=limits,
    no_improvement=limits,
    target=limits,
)
def test_offers_are_counted_until_a_limit_is_met(
    costs: list[int],
    rounds: list[int],
    iterations: int | None,
    no_improvement: int | None,
    target: int | None,
) -> None:
    stop = Stop(iterations=iterations, no_improvement=no_improvement, target_cost=target)
    attempt = Attempt(NETWORK, RunContext(method="daam-sample", stop=stop))
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
        elif no_improvement is not None and since >= no_improvement:
            stopped_by = "no_improvement"
        if stopped_by is not None:
            break
    assert attempt.stopped_by == stopped_by
    assert attempt.iterations == done
    assert attempt.cost == best
    assert [(step.iteration, step.cost) for step in attempt.history] == history
    assert taken == [cost for _, cost in history]


class Paced:
    """Makes plans of given costs at a given pace, and notes how many are asked for."""

    seconds_each = 0.0
    clock = 0.0
    drawn: ClassVar[list[int]] = []
    costs: ClassVar[list[list[int]]] = []

    def __init__(
        self, networks: Sequence[Network], context: RunContext, on_step: OnStep
    ) -> None:
        self.count = len(networks)
        self.on_step = on_step

    def greedy(self) -> Plans:
        return self._plans(range(self.count), 1)

    def split(self, plans: Plans) -> Plans:
        return plans

    def offer(self, rows: Sequence[int], plans: Plans) -> None:
        pass

    def improve(
        self, strategy: Strategy, rows: Sequence[int], samples: int
    ) -> Iterator[Plans]:
        yield self._plans(rows, samples)

    def _plans(self, rows: Sequence[int], samples: int) -> Plans:
        self.drawn.append(samples)
        for _ in range(samples):
            Paced.clock += self.seconds_each
            self.on_step(0, 0)
        drawn = [[self.costs[row].pop(0) for _ in range(samples)] for row in rows]
        none = np.zeros((len(rows), samples, 0), dtype=np.int32)
        return Plans(none, none.astype(np.bool_), np.array(drawn, dtype=np.int64))


@pytest.fixture
def paced(monkeypatch: pytest.MonkeyPatch) -> type[Paced]:
    monkeypatch.setattr(solver, "start_run", Paced)
    monkeypatch.setattr(Paced, "drawn", [])
    monkeypatch.setattr(Paced, "clock", 0.0)
    monkeypatch.setattr(time, "perf_counter", lambda: Paced.clock)
    return Paced


def attempted(
    instances: Sequence[Instance], model: Path, method: str, stop: Stop
) -> Sequence[Attempt]:
    loaded = solver.load_for_solving(model, "cpu")
    context = RunContext(method=method, stop=stop, started=0.0, model=loaded)
    return solver.attempt_together([Network(x) for x in instances], context)


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


def test_a_round_that_is_cut_keeps_what_was_ready(
    small: Instance, model: Path, paced: type[Paced], monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_two_parts(
        self: Paced, strategy: Strategy, rows: Sequence[int], samples: int
    ) -> Iterator[Plans]:
        yield self._plans(rows, 1)
        paced.clock += 100.0
        yield self._plans(rows, samples - 1)

    monkeypatch.setattr(paced, "improve", in_two_parts)
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
