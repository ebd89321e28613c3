import math
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from arcfleet import (
    METHODS,
    Failure,
    Instance,
    Progress,
    Solution,
    Stop,
    check,
    read,
    solve,
    solve_many,
)
from arcfleet.errors import OptionError, UnsolvableError
from arcfleet.methods import chosen_stop, find_method, usual_stop
from arcfleet.network import Network
from arcfleet.search.stop import StopSince
from tests.helpers import VILLAGE, make_instance, refused, solved, star, street, unpackable

TIGHT = {2: 9, 3: 9, 4: 1, 5: 1}


def test_same_seed_same_plan_whatever_the_threads(village: Instance) -> None:
    stop = Stop(iterations=300)
    first = solved(village, "ps-efficiency", stop=stop, seed=5)
    second = solved(village, "ps-efficiency", stop=stop, seed=5, threads=2)
    assert second.solution == first.solution
    others = {
        solved(village, "ps-efficiency", stop=stop, seed=s).solution for s in range(6, 10)
    }
    assert others != {first.solution}


def test_history_falls_to_the_final_cost(village: Instance) -> None:
    result = solved(village, stop=Stop(iterations=500))
    costs = [step.cost for step in result.history]
    assert costs == sorted(set(costs), reverse=True)
    assert costs[-1] == result.cost
    iterations = [step.iteration for step in result.history]
    assert iterations == sorted(iterations)
    assert all(0 <= step.seconds <= result.seconds for step in result.history)


def test_iterations_are_counted_exactly(village: Instance) -> None:
    result = solved(village, stop=Stop(iterations=123, seconds=600.0), threads=2)
    assert (result.iterations, result.stopped_by) == (123, "iterations")
    assert solved(village, "ps").iterations == 5  # the default of the five rules


@pytest.mark.parametrize(("method", "iterations"), [("ps-alt1", 50), ("maens", 300)])
def test_target_cost_stops(village: Instance, method: str, iterations: int) -> None:
    good = solved(village, method, stop=Stop(iterations=iterations))
    stop = Stop(iterations=90_000, target_cost=good.cost)
    result = solved(village, method, stop=stop)
    assert (result.stopped_by, result.cost) == ("target_cost", good.cost)
    assert result.iterations <= iterations


@pytest.mark.parametrize(
    ("method", "quiet"), [("ps-alt2", 40), ("maens", 300), ("ruin-recreate", 3000)]
)
def test_no_improvement_stop(village: Instance, method: str, quiet: int) -> None:
    result = solved(village, method, stop=Stop(no_improvement=quiet))
    assert result.stopped_by == "no_improvement"
    assert result.iterations == result.history[-1].iteration + 1 + quiet


@pytest.mark.parametrize(("method", "seconds"), [("ruin-recreate", 0.0), ("maens", 0.1)])
def test_a_time_limit_stops_with_a_plan(
    village: Instance, method: str, seconds: float
) -> None:
    result = solved(village, method, stop=Stop(seconds=seconds))
    assert result.stopped_by == "seconds"
    assert result.seconds >= seconds


def test_interrupt_returns_the_best_so_far(village: Instance) -> None:
    timer = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])

    def interrupt_soon(progress: Progress) -> None:
        if timer.ident is None:
            timer.start()

    result = solved(village, stop=Stop(seconds=600.0), progress=interrupt_soon)
    assert result.stopped_by == "interrupt"


def test_progress_is_reported(village: Instance) -> None:
    seen: list[Progress] = []
    result = solved(village, stop=lambda p: len(seen) >= 3, progress=seen.append)
    assert seen[-1].cost == result.cost
    assert [p.iterations for p in seen] == sorted(p.iterations for p in seen)


@pytest.mark.parametrize("method", ["ruin-recreate", "maens", "ps-random-arc"])
def test_progress_carries_the_plan(village: Instance, method: str) -> None:
    seen: list[tuple[int | None, Solution | None]] = []

    def look(progress: Progress) -> None:
        seen.append((progress.cost, progress.solution))

    solved(village, method, stop=lambda p: len(seen) >= 2, progress=look)
    for cost, plan in seen:
        assert plan is not None
        assert plan.cost == cost
        assert check(village, plan).ok
    assert Progress(0.0, 0, None).solution is None


@pytest.mark.parametrize("method", ["ruin-recreate", "maens"])
def test_an_error_of_the_callback_keeps_the_best_plan(
    village: Instance, method: str
) -> None:
    def fail(progress: Progress) -> None:
        raise RuntimeError("the window was closed")

    def rule(progress: Progress) -> bool:
        raise ZeroDivisionError

    with pytest.warns(RuntimeWarning, match="the window was closed"):
        result = solved(village, method, stop=Stop(seconds=600.0), progress=fail)
    assert result.stopped_by == "error"
    with pytest.warns(RuntimeWarning, match="ZeroDivisionError"):
        result = solved(village, method, stop=rule)
    assert result.stopped_by == "error"


@pytest.mark.parametrize("method", ["ruin-recreate", "maens", "ps"])
def test_nothing_required_means_no_routes(method: str) -> None:
    result = solved(make_instance(street(1, 2, 3)), method)
    assert (result.cost, result.solution.num_routes) == (0, 0)
    assert "cost        0" in result.summary()


def test_unsolvable_instances_are_refused_with_the_reason(village: Instance) -> None:
    trap = street(village.depot, 999, 1, 1, one_way=True)
    trapped = replace(
        village, nodes=(*village.nodes, 999), links=(*village.links, trap), coordinates=()
    )
    for instance, reason in (
        (trapped, f"{village.depot}>999"),
        (replace(village, capacity=1), "capacity"),
        (replace(village, fleet_limit=1), "fleet"),
    ):
        with pytest.raises(UnsolvableError, match=reason):
            solve(instance)


def test_the_fleet_limit_is_met_by_search() -> None:
    # Demands 6 6 4 4 fit two vehicles of 10 in one way only, but nearest-first takes the
    # two small ones (at the depot) together and then needs three.
    free = star(6, 6, 4, 4, cost=TIGHT.__getitem__)
    greedy = solved(free, "ps-efficiency", stop=Stop(iterations=200))
    assert greedy.solution.num_routes == 3
    for method in ("ps-random-arc", "ruin-recreate", "maens"):
        solved(replace(free, fleet_limit=2), method, stop=Stop(iterations=2000))


@pytest.mark.parametrize("method", ["ps-efficiency", "ruin-recreate", "maens"])
def test_no_plan_within_the_fleet_is_one_sentence(method: str) -> None:
    with pytest.raises(UnsolvableError, match=r"at most 2 routes .* in 50 iterations"):
        solve(unpackable(), method, stop=Stop(iterations=50))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "ps-elipse"}, "did you mean 'ps-ellipse'"),
        ({"method": "zzz"}, "known are ruin-recreate, maens, ps,"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"stop": 5}, "to be a Stop"),
        ({"threads": -1}, "threads"),
        ({"stop": Stop(target_cost=1)}, "certain to be met"),
    ],
)
def test_wrong_arguments(
    village: Instance, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        solve(village, **arguments)  # type: ignore[arg-type]


def test_methods_that_cannot_plan_with_operations_say_which_can(village: Instance) -> None:
    asked = replace(village, max_route_cost=10**6, fewest_routes=True)
    able = [repr(name) for name, method in METHODS.items() if method.operations]
    message = (
        "expected a method that plans with a longest route and fewest routes first, which "
        "instance 'village' asks for, got 'maens': use "
        + " or ".join(part for part in (", ".join(able[:-1]), able[-1]) if part)
    )
    with refused(OptionError, message):
        solve(asked, "maens")
    (failure,) = solve_many([asked], "maens")
    assert isinstance(failure, Failure)
    assert failure.message == message
    for name, method in METHODS.items():
        assert method.operations or name != "ruin-recreate"
        if not method.operations and not method.is_learned:
            with refused(OptionError, f"got {name!r}: use 'ruin-recreate'"):
                solve(asked, name)


def test_with_a_start_only_a_method_that_takes_it_is_named(village: Instance) -> None:
    plan = solve(village, "ps", stop=Stop(iterations=1)).solution
    with pytest.raises(OptionError, match=r"got 'maens': use 'ruin-recreate'$"):
        solve(village, "maens", start=plan, keep=3)


def test_keep_and_lock_need_a_plan(village: Instance) -> None:
    with refused(OptionError, "expected a plan to start from with keep, got none"):
        solve(village, keep=3)
    with refused(OptionError, "expected a plan to start from with lock, got none"):
        solve(village, lock=[3])


# --- Time limits --------------------------------------------------------------------------


def test_a_time_limit_counts_from_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(path: Path) -> Instance:
        time.sleep(0.1)
        return read(path)

    monkeypatch.setattr("arcfleet.methods.read", slow)
    result = solved(VILLAGE, seconds=0.05)
    assert result.iterations == 1
    assert result.seconds >= 0.1


def test_time_that_is_up_leaves_one_iteration(village: Instance) -> None:
    result = solve(village, stop=StopSince(seconds=10, started=time.perf_counter() - 100))
    assert (result.iterations, result.stopped_by) == (1, "seconds")
    assert result.seconds >= 100
    stop = StopSince(seconds=10, started=time.perf_counter(), reserve=10)
    result = solve(village, stop=stop)
    assert (result.iterations, result.stopped_by) == (1, "seconds")
    assert check(village, result.solution).ok


def long_grid(side: int) -> Instance:
    """Many streets, too long for the fast way to measure them all."""
    links = []
    for x in range(side):
        for y in range(side):
            node = x * side + y
            links += [street(node, node + 1, 200_000, 1)] if y + 1 < side else []
            links += [street(node, node + side, 200_000, 1)] if x + 1 < side else []
    return make_instance(*links, depot=0, capacity=100_000, name="grid")


def test_what_cannot_start_in_time_says_so() -> None:
    with pytest.raises(TimeoutError) as raised:
        Network(long_grid(60), seconds=0.01)
    assert raised.value.args[0] > 0.01
    expected = "expected a time limit of at least about .* s for the 7080 tasks of .*grid"
    with pytest.raises(OptionError, match=expected):
        solve(long_grid(60), seconds=0.01)


@pytest.mark.parametrize("tasks", [2000, 2001])
def test_up_to_2000_tasks_there_is_always_a_plan(
    tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = star(*[1] * tasks, capacity=tasks, cost=lambda _: 1)
    allowed = []

    def network(instance: Instance, threads: int, seconds: float = math.inf) -> Network:
        allowed.append(seconds)
        return Network(instance, threads)

    monkeypatch.setattr("arcfleet.methods.Network", network)
    result = solve(instance, seconds=0.0)
    assert check(instance, result.solution).ok
    assert allowed == [math.inf if tasks == 2000 else 0.0]


def test_a_learned_method_that_cannot_be_loaded_in_time_says_so(
    village: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(OptionError, match="at least 2 s for method 'daam', whose model"):
        solve(village, "daam", seconds=1)


def test_the_usual_time_limit_grows_with_the_instance() -> None:
    search = find_method("ruin-recreate")
    assert usual_stop(search, 20).seconds == 5
    assert usual_stop(search, 500).seconds == 5
    assert usual_stop(search, 8000).seconds == pytest.approx(80)
    # Methods that count iterations know no time limit.
    assert usual_stop(find_method("ps"), 8000) == find_method("ps").default_stop
    assert chosen_stop(search, Stop(seconds=1), tasks=8000) == Stop(seconds=1)
    assert chosen_stop(search, None, 2, tasks=8000) == Stop(seconds=2)
    assert chosen_stop(search, None, tasks=8000) == usual_stop(search, 8000)
