"""Learned solvers as methods: the stop rule, the history, what they refuse."""

from __future__ import annotations

import signal
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from arcfleet import Instance, Link, Stop, check, read, solve, solve_many
from arcfleet.errors import (
    UnsolvableError,
    WithoutLearnedPlanWarning,
)
from arcfleet.methods import DAAM_METHODS
from arcfleet.neural import plans as plans_module
from arcfleet.neural import solver
from arcfleet.neural import strategies as draws
from arcfleet.neural import strategies as proposals
from arcfleet.neural.decoding import sample
from arcfleet.neural.strategies import destroy_and_repair
from arcfleet.neural.windows import windowed_rollout
from arcfleet.search import Result

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.decoding import Rollout
    from arcfleet.neural.plans import Plans
    from arcfleet.search import Progress

# Whether a short limit leaves time for a learned plan is the machine's business; the tests
# of the warning ask for it.
pytestmark = pytest.mark.filterwarnings(
    "default::arcfleet.errors.WithoutLearnedPlanWarning"
)

SHORT_TIME = "the time limit was too short"
VILLAGE = Path(__file__).parents[2] / "examples" / "village.json"
SHORT = {
    "daam": Stop(iterations=3),
    "daam-greedy": Stop(iterations=3),
    "daam-sample": Stop(iterations=9),
    "hybrid": Stop(iterations=200),
}


@pytest.fixture(scope="module")
def village() -> Instance:
    return read(VILLAGE)


def require_sound(instance: Instance, result: Result) -> None:
    assert check(instance, result.solution).faults == ()
    costs = [step.cost for step in result.history]
    assert costs == sorted(set(costs), reverse=True)
    assert costs[-1] == result.cost
    iterations = [step.iteration for step in result.history]
    assert iterations == sorted(set(iterations))
    assert iterations[-1] < result.iterations
    seconds = [step.seconds for step in result.history]
    assert seconds == sorted(seconds)
    assert 0 <= seconds[0] <= seconds[-1] <= result.seconds


@pytest.mark.parametrize("method", DAAM_METHODS)
def test_the_same_seed_gives_the_same_plan(
    method: str, village: Instance, model: Path
) -> None:
    stop = SHORT[method]
    first = solve(village, method, stop=stop, seed=5, model=model, device="cpu")
    second = solve(village, method, stop=stop, seed=5, model=str(model))
    require_sound(village, first)
    assert second.solution == first.solution
    assert (first.method, first.seed, first.stopped_by) == (method, 5, "iterations")
    # The first two make one plan, whatever the limit.
    planned = stop.iterations if method in ("daam-sample", "hybrid") else 1
    assert first.iterations == planned


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

    monkeypatch.setattr(proposals, "windowed_rollout", narrow)
    monkeypatch.setattr(proposals, "MOST_TASKS_AT_ONCE", 10)
    return replace(village, links=some), seen


@pytest.mark.parametrize("method", DAAM_METHODS)
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
    with without_learned_plan(method, SHORT_TIME):
        hurried = solve(instance, method, stop=Stop(seconds=0.0), model=model)
    require_sound(instance, hurried)
    assert hurried.iterations == (2 if method == "hybrid" else 1)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """How plans are drawn, and how many, as they are."""
    made: list[tuple[str, int]] = []

    def note(kind: str, name: str, function: Any) -> None:
        def call(policy: Any, batch: Any, *arguments: Any, **options: Any) -> Any:
            made.append((kind, arguments[-2]))  # the samples, before the seeds
            return function(policy, batch, *arguments, **options)

        monkeypatch.setattr(proposals, name, call)

    note("whole", "sample_plans", draws.sample_plans)
    note("anew", "destroy_and_repair", destroy_and_repair)
    return made


def test_short_routes_of_large_instances_are_drawn_anew(
    large: tuple[Instance, list[int]], drawn: list[tuple[str, int]], model: Path
) -> None:
    instance, seen = replace(large[0], capacity=500), large[1]
    stop = Stop(iterations=30)
    first = solve(instance, "daam-sample", stop=stop, seed=3, model=model)
    require_sound(instance, first)
    assert seen == [1, 4]
    assert drawn == [("anew", samples) for samples in (*[4] * 4, 4, 4, 1)]
    again = solve(instance, "daam-sample", stop=stop, seed=3, model=model)
    assert again.solution == first.solution


def test_samples_are_drawn_whole_first_and_then_anew(
    village: Instance, drawn: list[tuple[str, int]], model: Path
) -> None:
    stop = Stop(iterations=40)
    result = solve(village, "daam-sample", stop=stop, seed=1, model=model)
    require_sound(village, result)
    assert result.iterations == 40
    # One greedy plan, rounds of 4 and 16, and of what is left.
    anew = [("anew", samples) for samples in (4, *[4] * 4, 3)]
    assert drawn == [("whole", 4), ("whole", 12), *anew]


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

    for module in (proposals, draws):
        monkeypatch.setattr(module, "split_plans", split_plans)
    # Of one view under the capacity with any starts, as through windows.
    alike = partial(draws.sample_plans, views=1, giant_tour_share=0)
    monkeypatch.setattr(proposals, "sample_plans", alike)

    def any_starts(*arguments: Any, distinct_starts: bool, **options: Any) -> Rollout:
        assert distinct_starts
        return sample(*arguments, **options)

    monkeypatch.setattr(draws, "sample", any_starts)
    for most_tasks in (300, 10):
        monkeypatch.setattr(proposals, "MOST_TASKS_AT_ONCE", most_tasks)
        for temperature, different in ((1e-6, False), (1.0, True)):
            costs.clear()
            for module in (proposals, draws):
                monkeypatch.setattr(
                    module, "default_temperature", partial(all_at, temperature)
                )
            solve(village, "daam-sample", stop=Stop(iterations=4), model=model)
            # Near 0 every draw is the likeliest arc, and so the greedy plan.
            assert len(costs) == 4
            assert (len(set(costs)) > 1) == different


def test_samples_are_counted_exactly(small: Instance, model: Path) -> None:
    for iterations in (1, 2, 5, 6, 22, 40):
        stop = Stop(iterations=iterations, seconds=600.0)
        result = solve(small, "daam-sample", stop=stop, model=model)
        assert (result.iterations, result.stopped_by) == (iterations, "iterations")
    assert solve(small, "daam-sample", model=model).iterations == 32


@pytest.mark.parametrize("method", ["daam-sample", "hybrid"])
def test_no_improvement_stop(method: str, village: Instance, model: Path) -> None:
    stale = 11 if method == "daam-sample" else 300
    result = solve(village, method, stop=Stop(no_improvement=stale), model=model)
    assert result.stopped_by == "no_improvement"
    require_sound(village, result)
    assert result.iterations == result.history[-1].iteration + 1 + stale


@pytest.mark.parametrize("method", DAAM_METHODS)
def test_target_cost_stops(method: str, village: Instance, model: Path) -> None:
    stop = SHORT[method]
    good = solve(village, method, stop=stop, model=model)
    again = solve(village, method, stop=replace(stop, target_cost=good.cost), model=model)
    assert again.stopped_by == "target_cost"
    assert again.cost == good.cost
    assert again.iterations == good.history[-1].iteration + 1


def without_learned_plan(method: str, why: str) -> AbstractContextManager[object]:
    """Expect a method to say that it has no learned plan."""
    if method != "hybrid" and why != SHORT_TIME:
        return nullcontext()  # they have no search that goes on by itself
    if method == "hybrid" and why == SHORT_TIME:
        why = "a fifth of the time limit"
    return pytest.warns(WithoutLearnedPlanWarning, match=f"learned plan for .*: {why}")


@pytest.mark.parametrize("method", DAAM_METHODS)
def test_no_time_still_gives_a_plan(method: str, village: Instance, model: Path) -> None:
    with without_learned_plan(method, SHORT_TIME):
        result = solve(village, method, stop=Stop(seconds=0.0), model=model)
    require_sound(village, result)
    # The hybrid gives up its learned plan, and its search makes one; for the others path
    # scanning does.
    assert result.iterations == (2 if method == "hybrid" else 1)
    assert result.stopped_by == "seconds"
    if method != "hybrid":
        assert result.cost == solve(village, "ps").cost


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


@pytest.mark.parametrize("method", ["daam", "daam-greedy", "daam-sample"])
def test_a_time_limit_is_kept_to_within_a_step(
    method: str, village: Instance, model: Path, slow: list[float]
) -> None:
    uncut = solve(village, method, stop=SHORT[method], model=model)
    slow[:] = [1.0, 0.0]
    stop = replace(SHORT[method], seconds=10.0)
    with without_learned_plan(method, SHORT_TIME):
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
    with pytest.warns(WithoutLearnedPlanWarning, match=SHORT_TIME):
        outcomes = solve_many(
            [village] * 2, "daam-greedy", stop=Stop(seconds=1.0), model=model
        )
    scanned = solve(village, "ps").cost
    assert [x.cost for x in outcomes if isinstance(x, Result)] == [scanned] * 2


@pytest.mark.parametrize("method", ["daam-sample", "hybrid"])
def test_the_time_is_used_and_progress_told(
    method: str, small: Instance, model: Path
) -> None:
    seen: list[Progress] = []
    stop = Stop(seconds=1.0)
    result = solve(small, method, stop=stop, model=model, progress=seen.append)
    assert result.stopped_by == "seconds"
    assert result.seconds >= 0.9
    assert result.iterations > 5
    require_sound(small, result)
    assert seen
    assert [p.iterations for p in seen] == sorted(p.iterations for p in seen)
    assert seen[-1].iterations <= result.iterations
    assert all(p.cost is None or p.cost >= result.cost for p in seen)


@pytest.mark.parametrize("method", ["daam-sample", "hybrid"])
def test_interrupt_returns_the_best_so_far(
    method: str, small: Instance, model: Path
) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.cost is not None:
            signal.raise_signal(signal.SIGINT)

    stop = Stop(seconds=600.0)
    result = solve(small, method, stop=stop, model=model, progress=interrupt)
    assert result.stopped_by == "interrupt"
    require_sound(small, result)


def test_interrupt_before_there_is_a_plan(
    small: Instance, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(solver, "Proposer", interrupt)
    for method in DAAM_METHODS:
        with pytest.raises(KeyboardInterrupt):
            solve(small, method, model=model)


def test_the_hybrid_goes_on_from_the_greedy_plan(village: Instance, model: Path) -> None:
    greedy = solve(village, "daam-greedy", model=model)
    hybrid = solve(village, "hybrid", stop=Stop(iterations=500), model=model)
    require_sound(village, hybrid)
    assert (hybrid.history[0].iteration, hybrid.history[0].cost) == (0, greedy.cost)
    assert hybrid.history[1].iteration >= 1
    assert hybrid.cost < greedy.cost
    assert hybrid.iterations == 500


@pytest.mark.parametrize("method", DAAM_METHODS)
def test_nothing_required_means_no_routes(method: str, model: Path) -> None:
    instance = Instance(
        name="idle",
        nodes=(1, 2),
        links=(Link(tail=1, head=2, cost=3),),
        depot=1,
        capacity=1,
    )
    result = solve(instance, method, model=model)
    assert (result.cost, result.solution.num_routes, result.iterations) == (0, 0, 1)


@pytest.mark.parametrize("method", DAAM_METHODS)
def test_no_plan_within_the_fleet_is_one_sentence(method: str, model: Path) -> None:
    # Demands 4 4 4 4 4 pack two to a vehicle of 10: 3 are needed, though 2 hold the sum.
    links = tuple(
        Link(tail=1, head=node, cost=1, required=True, demand=4) for node in range(2, 7)
    )
    instance = Instance(
        name="unpackable",
        nodes=tuple(range(1, 7)),
        links=links,
        depot=1,
        capacity=10,
        fleet_limit=2,
    )
    # More time is of use to those that make more plans.
    remedy = "it makes no more, so try another method, such as ruin-recreate, or raise"
    if method in ("daam-sample", "hybrid"):
        remedy = "give it more time"
    with (
        without_learned_plan(method, "the fleet limit"),
        pytest.raises(
            UnsolvableError, match=rf"at most 2 routes .* iterations of {method}: {remedy}"
        ),
    ):
        solve(instance, method, stop=Stop(iterations=20), model=model)
    if method != "hybrid":
        # Path scanning has none, either.
        with pytest.raises(UnsolvableError, match=f"0 iterations of {method}: give"):
            solve(instance, method, stop=Stop(seconds=0.0), model=model)
    enough = replace(instance, fleet_limit=3)
    require_sound(enough, solve(enough, method, stop=Stop(iterations=20), model=model))
