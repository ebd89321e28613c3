from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, permutations, product
from pathlib import Path

import numpy as np
import pytest

from arcfleet import Instance, Link, Stop, check, read, solve
from arcfleet.errors import InstanceError, OptionError, UnsolvableError
from arcfleet.network import Network
from arcfleet.solution.plan import from_plan
from benchmarks import pyvrp_solver
from benchmarks.pyvrp_solver import NodeRouting, solve_by_pyvrp, to_node_routing

ROOT = Path(__file__).parents[2]
MIXED = read(ROOT / "tests" / "data" / "small_mixed.txt")
SMALL = read(ROOT / "tests" / "data" / "small.dat")
#: A direction that costs more to serve, a loop, parallel streets and a one-way street.
ODD = Instance(
    name="odd",
    nodes=(1, 2, 3),
    links=(
        Link(tail=1, head=2, cost=4, required=True, demand=3, service_cost=6),
        Link(
            tail=2,
            head=1,
            cost=3,
            reverse_cost=5,
            required=True,
            demand=2,
            service_cost=4,
            reverse_service_cost=9,
        ),
        Link(tail=2, head=3, cost=2, one_way=True, required=True, demand=4),
        Link(tail=3, head=3, cost=7, required=True, demand=1),
        Link(tail=3, head=1, cost=6, reverse_cost=1),
    ),
    depot=1,
    capacity=6,
    route_cost=2,
)


def plans(problem: NodeRouting) -> Iterator[list[tuple[int, ...]]]:
    """Every plan of the node-routing problem, whatever it carries."""
    tasks = range(len(problem.groups))
    for order in permutations(tasks):
        for clients in product(*(problem.groups[task] for task in order)):
            for cuts in product((False, True), repeat=len(order) - 1):
                places = [i + 1 for i, cut in enumerate(cuts) if cut]
                bounds = pairwise([0, *places, len(order)])
                yield [clients[first:last] for first, last in bounds]


def cost(problem: NodeRouting, routes: list[tuple[int, ...]]) -> int:
    total = problem.constant + problem.vehicle_cost * len(routes)
    for route in routes:
        places = [0, *(client + 1 for client in route), 0]
        total += sum(int(problem.distances[a, b]) for a, b in pairwise(places))
    return total


@pytest.mark.parametrize("instance", [MIXED, ODD], ids=lambda x: x.name)
def test_every_plan_costs_and_carries_what_the_checker_computes(instance: Instance) -> None:
    network = Network(instance)
    problem = to_node_routing(network)
    best = best_within_vehicles = 10**9
    for routes in plans(problem):
        arcs = np.array([c + 1 for route in routes for c in route], dtype=np.int32)
        starts = np.cumsum([0, *map(len, routes)], dtype=np.int32)
        report = check(instance, from_plan(network, arcs, starts))
        fits = all(
            sum(problem.demands[client] for client in route) <= problem.capacity
            for route in routes
        )
        assert fits == report.ok, report.faults
        assert report.cost == cost(problem, routes)
        if fits:
            best = min(best, report.cost)
            if len(routes) <= problem.vehicles:
                best_within_vehicles = min(best_within_vehicles, report.cost)
    assert best == best_within_vehicles == solve(instance, stop=Stop(iterations=500)).cost


def test_each_direction_is_a_client_and_each_street_a_group() -> None:
    problem = to_node_routing(Network(ODD))
    assert sorted(client for group in problem.groups for client in group) == list(range(7))
    assert [len(group) for group in problem.groups] == [2, 2, 1, 2]
    assert problem.constant == 6 + 4 + 2 + 7
    assert (np.diagonal(problem.distances) == 0).all()
    assert problem.vehicles == 2 * 10 // 6 + 1


def test_the_fleet_limit_bounds_the_vehicles() -> None:
    assert to_node_routing(Network(replace(ODD, fleet_limit=2))).vehicles == 2


def test_services_without_a_way_between_them_are_refused() -> None:
    dead_end = Link(tail=1, head=4, cost=1, one_way=True, required=True, demand=1)
    instance = replace(ODD, nodes=(1, 2, 3, 4), links=(*ODD.links, dead_end))
    with pytest.raises(InstanceError, match="expected a way from every service"):
        to_node_routing(Network(instance))


def test_without_pyvrp_the_error_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyvrp_solver, "find_spec", lambda name: None)
    with pytest.raises(OptionError, match="not installed: pip install pyvrp"):
        solve_by_pyvrp(MIXED, stop=Stop(seconds=1), seed=0)


@pytest.mark.parametrize("instance", [SMALL, MIXED, ODD], ids=lambda x: x.name)
def test_pyvrp_finds_the_best_plan_of_tiny_instances(instance: Instance) -> None:
    pytest.importorskip("pyvrp")
    best = solve(instance, stop=Stop(iterations=500)).cost
    result = solve_by_pyvrp(instance, stop=Stop(seconds=20, target_cost=best), seed=1)
    assert check(instance, result.solution).faults == ()
    assert result.cost == result.history[-1].cost == best
    assert result.stopped_by == "target_cost"


def test_pyvrp_plans_a_village_and_the_checker_accepts_it() -> None:
    pytest.importorskip("pyvrp")
    village = read(ROOT / "examples" / "village.json")
    result = solve_by_pyvrp(village, stop=Stop(seconds=0.3), seed=1)
    assert check(village, result.solution).faults == ()
    assert result.cost == result.history[-1].cost
    assert result.stopped_by == "seconds"


def test_pyvrp_says_when_it_finds_no_plan() -> None:
    pytest.importorskip("pyvrp")
    # Three, four and five do not fit into two vehicles of six.
    links = tuple(
        Link(tail=1, head=node, cost=1, required=True, demand=demand)
        for node, demand in ((2, 3), (3, 4), (4, 5))
    )
    instance = Instance(
        name="tight", nodes=(1, 2, 3, 4), links=links, depot=1, capacity=6, fleet_limit=2
    )
    with pytest.raises(UnsolvableError, match="tight"):
        solve_by_pyvrp(instance, stop=Stop(seconds=0), seed=0)


@pytest.mark.parametrize("stop", [Stop(iterations=9), Stop(target_cost=1)])
def test_it_must_be_stopped_by_seconds(stop: Stop) -> None:
    with pytest.raises(OptionError, match="expected PyVRP to be stopped by seconds"):
        solve_by_pyvrp(MIXED, seed=0, stop=stop)
