from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from arcfleet import Assignment, Facility, Instance, Lock, Vehicle, check
from arcfleet.errors import InstanceError, SolutionError, UnsolvableError
from arcfleet.network import Network
from arcfleet.search.split import split
from tests.fleet_strategies import fleet_instances
from tests.helpers import make_instance, refused, star, street

FAR = 10**12


def way(network: Network, kind: int, start: int, end: int) -> int:
    core = network.cores[network.vehicle_class[kind]]
    cost = int(core.distances[start, end])
    return FAR if cost < 0 or cost == core.closed_cost != 0 else cost


def way_by_facility(network: Network, kind: int, start: int, end: int) -> int:
    places = zip(network.facility_terminals, network.instance.facilities, strict=True)
    costs = (
        way(network, kind, start, at) + stop.cost + way(network, kind, at, end)
        for at, stop in places
    )
    return min(costs, default=FAR)


def best_route(network: Network, kind: int, arcs: list[int], *, turn: bool) -> int:
    """Least cost of a route over all trips and directions, the fixed cost included."""
    instance = network.instance
    vehicle = instance.fleet[kind]
    links = {int(network.arc_edge[arc]) // 2 for arc in arcs}
    if links & set(vehicle.forbidden_links):
        return FAR
    choices = [
        [arc, int(network.arc_inverse[arc])]
        if turn and network.arc_inverse[arc] >= 0
        else [arc]
        for arc in arcs
    ]
    best = FAR
    ends_there = instance.empty_at_end and bool(instance.facilities)
    gaps = [False, True] if instance.facilities else [False]
    for vias in product(gaps, repeat=len(arcs) - 1):
        loads = [int(network.arc_demand[arcs[0]])]
        for arc, via in zip(arcs[1:], vias, strict=True):
            load = int(network.arc_demand[arc])
            loads = [*loads, load] if via else [*loads[:-1], loads[-1] + load]
        if max(loads) > vehicle.capacity:
            continue
        for chosen in product(*choices):
            at, cost = network.vehicle_start[kind], 0
            for arc, via in zip(chosen, (False, *vias), strict=True):
                drive = way_by_facility if via else way
                cost += drive(network, kind, at, int(network.arc_start[arc]))
                cost += int(network.arc_service_cost[arc])
                at = int(network.arc_end[arc])
            drive = way_by_facility if ends_there else way
            cost += drive(network, kind, at, network.vehicle_end[kind])
            best = min(best, cost)
    if vehicle.max_route_cost is not None and best > vehicle.max_route_cost:
        return FAR
    return best + vehicle.fixed_cost


def brute_force(network: Network, order: list[int], *, turn: bool) -> int | None:
    """The cheapest plan over all cuts, types, trips and directions; None if none fits."""
    instance = network.instance
    kinds, n = range(len(instance.fleet)), len(order)
    costs = {
        (kind, a, b): best_route(network, kind, order[a:b], turn=turn)
        for kind in kinds
        for a in range(n)
        for b in range(a + 1, n + 1)
    }
    plans: list[tuple[int, int]] = []

    def extend(at: int, used: tuple[int, ...], cost: int) -> None:
        if cost >= FAR:
            return
        if at == n:
            counts = [vehicle.count for vehicle in instance.fleet]
            pairs = list(zip(used, counts, strict=True))
            fits = all(count is None or number <= count for number, count in pairs)
            exact = all(number == count for number, count in pairs)
            if fits and (exact or not instance.exact_fleet):
                plans.append((sum(used) if instance.fewest_routes else 0, cost))
            return
        for kind, end in product(kinds, range(at + 1, n + 1)):
            more = tuple(number + (k == kind) for k, number in enumerate(used))
            extend(end, more, cost + costs[kind, at, end])

    extend(0, tuple(0 for _ in kinds), 0)
    return min(plans)[1] if plans else None


def shuffled(network: Network, seed: int) -> list[int]:
    arcs = np.random.default_rng(seed).permutation(np.arange(1, network.num_arcs))
    return list({int(network.arc_task[arc]): int(arc) for arc in arcs}.values())


@given(fleet_instances(), st.integers(0, 999), st.booleans())
def test_equal_to_brute_force(instance: Instance, seed: int, turn: bool) -> None:
    try:
        network = Network(instance)
    except InstanceError:
        assume(False)
    order = shuffled(network, seed)
    assume(len(order) <= 6)
    expected = brute_force(network, order, turn=turn)
    if expected is None:
        with refused(UnsolvableError, "no routes and trips keep all rules"):
            split(network, np.array(order), choose_directions=turn)
        return
    plan = split(network, np.array(order), choose_directions=turn)
    assert plan.cost == expected
    assert check(instance, plan).faults == ()
    served = [2 * each.link for route in plan.routes for each in route.services]
    assert served == [int(network.arc_edge[arc]) // 2 * 2 for arc in order]


def test_a_scarce_vehicle_goes_where_it_saves_most() -> None:
    # Four streets that take a route each; the cheap vehicle is there once.
    types = (
        Vehicle(name="dear", start=1, capacity=4, fixed_cost=9),
        Vehicle(name="cheap", start=1, capacity=4, count=1),
    )
    instance = star(4, 4, 4, 4, capacity=4, vehicles=types)
    network = Network(instance)
    plan = split(network, np.array([1, 3, 5, 7]))
    assert sorted(route.vehicle for route in plan.routes) == [0, 0, 0, 1]
    assert check(instance, plan).faults == ()


def test_more_counted_types_than_fit_into_memory() -> None:
    types = tuple(
        Vehicle(name=str(i), start=1, capacity=4, count=4, fixed_cost=i) for i in range(12)
    )
    network = Network(star(*[4] * 20, capacity=4, vehicles=types))
    with refused(UnsolvableError, "too many counted vehicle types"):
        split(network, np.arange(1, 41, 2, dtype=np.int32))


def test_trips_end_at_the_facility_on_the_way() -> None:
    links = [street(i, i + 1, 1, 5) for i in range(1, 5)]
    instance = make_instance(*links, facilities=(Facility(node=3, cost=2),))
    network = Network(instance)
    plan = split(network, np.array([1, 3, 5, 7]))
    (route,) = plan.routes
    assert [visit.services for visit in route.visits] == [2, 4]
    assert plan.visit_cost == 4
    assert plan.cost == 4 + 4 + 4
    assert check(instance, plan).faults == ()


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"balance": 1.0}, "balance"),
        ({"compactness": 1}, "compactness"),
        ({"pins": (Assignment(0, 1),)}, "pins"),
        ({"locks": (Lock(route=1, services=((0, False),)),)}, "locked routes"),
        (
            {"previous": (Assignment(0, 1),), "change_price": 1, "max_route_cost": 99},
            "a price for change",
        ),
    ],
)
def test_what_an_order_does_not_tell_is_refused(more: dict[str, Any], name: str) -> None:
    network = Network(replace(star(1, 1), **more))
    with refused(UnsolvableError, f"without {name}, got 'star': use ruin-recreate"):
        split(network, np.array([1, 3]))


def test_unknown_arcs_are_refused() -> None:
    network = Network(star(1, 1, max_route_cost=99))
    with refused(SolutionError, "unknown arc"):
        split(network, np.array([1, 9]))
