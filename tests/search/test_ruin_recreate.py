from dataclasses import replace

import pytest

from arcfleet import Instance, Link, Solution, Stop, check, solve
from arcfleet.errors import InstanceError, OptionError, SolutionError


@pytest.mark.parametrize("threads", [1, 2])
def test_same_seed_same_trajectory(village: Instance, threads: int) -> None:
    first, second = (
        solve(village, stop=Stop(iterations=4000), seed=7, threads=threads)
        for _ in range(2)
    )
    assert first.solution == second.solution
    assert check(village, first.solution).ok
    if threads == 1:
        steps = [(step.iteration, step.cost) for step in first.history]
        assert steps == [(step.iteration, step.cost) for step in second.history]


def test_it_beats_path_scanning(village: Instance) -> None:
    scanned = solve(village, "ps-efficiency", stop=Stop(iterations=1000))
    searched = solve(village, stop=Stop(iterations=5000))
    assert searched.cost < scanned.cost


def test_it_never_gives_back_less_than_the_start(
    village: Instance, rough_plan: Solution
) -> None:
    good = solve(village, stop=Stop(iterations=5000)).solution
    again = solve(village, start=good, stop=Stop(iterations=10))
    assert again.cost <= good.cost
    better = solve(village, start=rough_plan, stop=Stop(iterations=500))
    assert better.cost < rough_plan.cost
    assert check(village, better.solution).ok


def test_a_faulty_start_is_refused(village: Instance, rough_plan: Solution) -> None:
    short = replace(rough_plan, routes=rough_plan.routes[1:])
    with pytest.raises(SolutionError, match="without faults"):
        solve(village, start=short, stop=Stop(iterations=1))
    with pytest.raises(OptionError, match="goes on from a plan"):
        solve(village, "ps", start=rough_plan)


def test_the_fleet_limit_is_met_by_search() -> None:
    # Demands 6 6 4 4 fit two vehicles of 10 in one way only, which path scanning from
    # the nearest misses: the small ones lie nearest and go together.
    links = tuple(
        Link(tail=1, head=node, cost=cost, required=True, demand=demand)
        for node, cost, demand in ((2, 9, 6), (3, 9, 6), (4, 1, 4), (5, 1, 4))
    )
    instance = Instance(
        name="tight",
        nodes=(1, 2, 3, 4, 5),
        links=links,
        depot=1,
        capacity=10,
        fleet_limit=2,
    )
    result = solve(instance, stop=Stop(iterations=2000))
    assert check(instance, result.solution).ok


def test_no_improvement_and_no_horizon(village: Instance) -> None:
    result = solve(village, stop=Stop(no_improvement=3000))
    assert result.stopped_by == "no_improvement"
    assert result.iterations == result.history[-1].iteration + 1 + 3000


def test_costs_beyond_the_range_are_refused() -> None:
    links = tuple(
        Link(tail=1, head=node, cost=2**27, required=True, demand=1) for node in range(2, 8)
    )
    instance = Instance(
        name="far", nodes=tuple(range(1, 8)), links=links, depot=1, capacity=10
    )
    with pytest.raises(InstanceError, match="coarser unit"):
        solve(instance)


@pytest.mark.parametrize("capacity", [40, 2_000_000_000, 2**31 - 1])
def test_any_capacity_with_tasks_of_no_demand(capacity: int) -> None:
    """A capacity as large as numbers go, the usual way to say that there is none."""
    ring = range(12)
    links = tuple(
        Link(
            tail=1 + i,
            head=1 + (i + 1) % len(ring),
            cost=3 + i % 5,
            required=True,
            demand=0 if i % 2 else 5,
        )
        for i in ring
    )
    nodes = tuple(1 + i for i in ring)
    town = Instance(name="ring", nodes=nodes, links=links, depot=1, capacity=capacity)
    result = solve(town, stop=Stop(iterations=20_000), seed=1)
    assert check(town, result.solution).ok
    # All the way round, once.
    assert result.cost == sum(link.cost for link in links)
