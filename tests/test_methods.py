import signal
import threading
import time
from dataclasses import replace

import pytest

from arcfleet import Instance, Link, Stop, check, solve
from arcfleet.errors import OptionError, UnsolvableError
from arcfleet.search import Progress


def test_same_seed_same_plan_whatever_the_threads(village: Instance) -> None:
    stop = Stop(iterations=300)
    first = solve(village, "ps-efficiency", stop=stop, seed=5)
    second = solve(village, "ps-efficiency", stop=stop, seed=5, threads=2)
    assert second.solution == first.solution
    others = {
        solve(village, "ps-efficiency", stop=stop, seed=s).solution for s in range(6, 10)
    }
    assert others != {first.solution}


def test_history_falls_to_the_final_cost(village: Instance) -> None:
    result = solve(village, stop=Stop(iterations=500))
    costs = [step.cost for step in result.history]
    assert costs == sorted(costs, reverse=True)
    assert len(set(costs)) == len(costs)
    assert costs[-1] == result.cost
    assert [s.iteration for s in result.history] == sorted(
        s.iteration for s in result.history
    )
    assert all(0 <= step.seconds <= result.seconds for step in result.history)


def test_iterations_are_counted_exactly(village: Instance) -> None:
    result = solve(village, stop=Stop(iterations=123, seconds=60.0), threads=2)
    assert (result.iterations, result.stopped_by) == (123, "iterations")
    assert check(village, result.solution).ok


def test_default_stop_of_the_five_rules(village: Instance) -> None:
    assert solve(village, "ps").iterations == 5


def test_target_cost_stops(village: Instance) -> None:
    good = solve(village, "ps-alt1", stop=Stop(iterations=50))
    result = solve(village, "ps-alt1", stop=Stop(iterations=10_000, target_cost=good.cost))
    assert result.stopped_by == "target_cost"
    assert result.cost == good.cost
    assert result.iterations <= 50


def test_no_improvement_stop(village: Instance) -> None:
    result = solve(village, "ps-alt2", stop=Stop(no_improvement=40))
    assert result.stopped_by == "no_improvement"
    assert result.iterations == result.history[-1].iteration + 1 + 40


def test_no_time_still_gives_a_plan(village: Instance) -> None:
    result = solve(village, stop=Stop(seconds=0.0))
    assert result.stopped_by == "seconds"
    assert check(village, result.solution).ok


def test_interrupt_returns_the_best_so_far(village: Instance) -> None:
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    started = time.perf_counter()
    result = solve(village, stop=Stop(seconds=60.0))
    assert result.stopped_by == "interrupt"
    assert time.perf_counter() - started < 30.0
    assert check(village, result.solution).ok


def test_progress_is_reported(village: Instance) -> None:
    seen: list[Progress] = []
    result = solve(village, stop=Stop(seconds=0.2), progress=seen.append)
    assert len(seen) >= 2
    assert seen[-1].cost == result.cost
    assert [p.iterations for p in seen] == sorted(p.iterations for p in seen)


def test_nothing_required_means_no_routes() -> None:
    instance = Instance(
        name="idle",
        nodes=(1, 2),
        links=(Link(tail=1, head=2, cost=3),),
        depot=1,
        capacity=1,
    )
    result = solve(instance)
    assert (result.cost, result.solution.num_routes) == (0, 0)
    assert check(instance, result.solution).ok
    assert "cost        0" in result.summary()


def test_unsolvable_instances_are_refused_with_the_reason(village: Instance) -> None:
    trapped = replace(
        village,
        nodes=(*village.nodes, 999),
        links=(
            *village.links,
            Link(
                tail=village.depot, head=999, cost=1, one_way=True, required=True, demand=1
            ),
        ),
        coordinates=(),
    )
    with pytest.raises(UnsolvableError, match=f"{village.depot}>999"):
        solve(trapped)
    with pytest.raises(UnsolvableError, match="capacity"):
        solve(replace(village, capacity=1))
    with pytest.raises(UnsolvableError, match="fleet"):
        solve(replace(village, fleet_limit=1))


def test_fleet_limit_is_kept_or_said_to_be_missed() -> None:
    # Demands 6 6 4 4 fit two vehicles of 10, but nearest-first takes the two small ones
    # (at the depot) together and then needs three.
    links = tuple(
        Link(tail=1, head=node, cost=cost, required=True, demand=demand)
        for node, cost, demand in ((2, 9, 6), (3, 9, 6), (4, 1, 4), (5, 1, 4))
    )
    free = Instance(name="tight", nodes=(1, 2, 3, 4, 5), links=links, depot=1, capacity=10)
    free_plan = solve(free, "ps-efficiency", stop=Stop(iterations=200)).solution
    assert free_plan.num_routes == 3
    limited = replace(free, fleet_limit=2)
    result = solve(limited, "ps-random-arc", stop=Stop(iterations=2000))
    assert check(limited, result.solution).ok


@pytest.mark.parametrize("method", ["ps-efficiency", "ruin-recreate", "maens"])
def test_no_plan_within_the_fleet_is_one_sentence(method: str) -> None:
    # Total demand needs 2 vehicles; the demands 4 4 4 4 4 pack two to a vehicle: 3.
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
    with pytest.raises(UnsolvableError, match=r"at most 2 routes .* in 50 iterations"):
        solve(instance, method, stop=Stop(iterations=50))


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
