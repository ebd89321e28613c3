import time
from dataclasses import replace

import pytest

from arcfleet import Instance, Link, Solution, Stop, check, solve
from arcfleet.errors import OptionError, SolutionError
from arcfleet.search.maens import MaensSettings


def star(*demands: int, capacity: int = 10, fleet_limit: int | None = None) -> Instance:
    """One dead-end street per demand, all from the depot."""
    nodes = range(2, 2 + len(demands))
    return Instance(
        name="star",
        nodes=(1, *nodes),
        links=tuple(
            Link(tail=1, head=node, cost=node, required=True, demand=demand)
            for node, demand in zip(nodes, demands, strict=True)
        ),
        depot=1,
        capacity=capacity,
        fleet_limit=fleet_limit,
    )


def test_same_seed_same_trajectory(village: Instance) -> None:
    # The clock cuts the two searches into slices at different places.
    first, second = (
        solve(village, "maens", stop=Stop(iterations=600), seed=7, threads=threads)
        for threads in (1, 2)
    )
    assert first.solution == second.solution
    steps = [(step.iteration, step.cost) for step in first.history]
    assert steps == [(step.iteration, step.cost) for step in second.history]
    other = solve(village, "maens", stop=Stop(iterations=600), seed=8)
    assert [(s.iteration, s.cost) for s in other.history] != steps


def test_it_beats_path_scanning(village: Instance) -> None:
    scanned = solve(village, "ps-efficiency", stop=Stop(iterations=1000))
    searched = solve(village, "maens", stop=Stop(iterations=1000))
    assert searched.cost < scanned.cost
    assert check(village, searched.solution).ok


def test_the_start_joins_the_population(village: Instance, rough_plan: Solution) -> None:
    good = solve(village, "maens", stop=Stop(iterations=1000)).solution
    again = solve(village, "maens", start=good, stop=Stop(iterations=1))
    assert again.cost <= good.cost
    better = solve(village, "maens", start=rough_plan, stop=Stop(iterations=200))
    assert better.cost < rough_plan.cost


def test_a_faulty_start_is_refused(village: Instance, rough_plan: Solution) -> None:
    short = replace(rough_plan, routes=rough_plan.routes[1:])
    with pytest.raises(SolutionError, match="without faults"):
        solve(village, "maens", start=short, stop=Stop(iterations=1))


@pytest.mark.parametrize("demands", [(4,), (4, 4), (1, 1, 1), (9, 9, 9)])
def test_tiny_instances_come_to_an_end(demands: tuple[int, ...]) -> None:
    # One cost is all there is: every offspring is a clone.
    instance = star(*demands)
    result = solve(instance, "maens", stop=Stop(iterations=5000))
    assert (result.iterations, result.stopped_by) == (5000, "iterations")
    assert check(instance, result.solution).ok


def test_nothing_required_means_no_routes() -> None:
    links = (Link(tail=1, head=2, cost=3),)
    instance = Instance(name="idle", nodes=(1, 2), links=links, depot=1, capacity=1)
    assert solve(instance, "maens").solution.num_routes == 0


def test_the_fixed_cost_of_a_route_counts() -> None:
    result = solve(
        replace(star(2, 2, 2, 2), route_cost=100), "maens", stop=Stop(iterations=200)
    )
    assert result.solution.num_routes == 1
    assert result.cost == 100 + 2 * (2 + 3 + 4 + 5)


def test_the_fleet_limit_is_kept() -> None:
    instance = star(4, 4, 6, 6, fleet_limit=2)
    result = solve(instance, "maens", stop=Stop(iterations=2000))
    assert check(instance, result.solution).ok


def test_target_and_time_are_kept(village: Instance) -> None:
    good = solve(village, "maens", stop=Stop(iterations=300))
    result = solve(
        village, "maens", stop=Stop(iterations=90_000, target_cost=good.cost), seed=0
    )
    assert (result.stopped_by, result.cost) == ("target_cost", good.cost)
    started = time.perf_counter()
    assert solve(village, "maens", stop=Stop(seconds=0.3)).stopped_by == "seconds"
    assert time.perf_counter() - started < 3.0


def test_no_improvement_stop(village: Instance) -> None:
    result = solve(village, "maens", stop=Stop(no_improvement=300))
    assert result.stopped_by == "no_improvement"
    assert result.iterations == result.history[-1].iteration + 1 + 300


def test_settings_are_used_and_checked(village: Instance) -> None:
    settings = MaensSettings(population=4, local_search_rate=1.0, merge_pairs=3)
    result = solve(village, "maens", stop=Stop(iterations=30), params=settings)
    assert check(village, result.solution).ok
    with pytest.raises(OptionError, match="population"):
        MaensSettings(population=0)
    with pytest.raises(OptionError, match="local_search_rate between 0 and 1, got 2"):
        MaensSettings(local_search_rate=2)
