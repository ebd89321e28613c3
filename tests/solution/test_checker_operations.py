"""The checker on vehicle types, facilities, longest routes, pins and locks."""

import re
from dataclasses import replace
from typing import Any

import pytest

from arcfleet.instance.instance import Instance, Turn
from arcfleet.instance.operations import Assignment, Facility, Lock, Vehicle
from arcfleet.solution.checker import check
from arcfleet.solution.solution import FacilityVisit, Route, Service, Solution
from arcfleet.solution.travel import Travel
from tests.helpers import make_instance, steps, street

#   1 --0-- 2 --1-- 3      0: cost 4, serving 10, demand 3     3: 4-1, cost 6
#   |       |       |      1: cost 5, serving  7, demand 2     4: 2-5, cost 3
#   3       4       2      2: cost 2, serving  9, demand 4
#   |       |       |      Yards at 1 and 4; landfills at 3 (cost 7) and 5 (cost 2).
#   4       5       4
TRUCK = Vehicle(
    name="truck", start=1, capacity=5, count=2, fixed_cost=100, max_route_cost=32
)
VAN = Vehicle(name="van", start=4, end=1, capacity=4, forbidden_links=(4,))
TOWN = make_instance(
    street(1, 2, 4, 3, service_cost=10),
    street(2, 3, 5, 2, service_cost=7),
    street(3, 4, 2, 4, service_cost=9),
    street(4, 1, 6),
    street(2, 5, 3),
    capacity=5,
    vehicles=(TRUCK, VAN),
    facilities=(Facility(node=3, cost=7), Facility(node=5, cost=2, name="south")),
)
# Serves 0 and 1 (17), empties at 3 (7), drives home through 4 (8).
FIRST = Route(
    services=(Service(0), Service(1)),
    load=5,
    cost=132,
    path=steps("0! 1! 2 3"),
    visits=(FacilityVisit(facility=0, services=2, steps=2),),
)
# From yard 4 serves 2 in reverse (9), empties at 3 (7), turns round and ends at 1 (8).
SECOND = Route(
    services=(Service(2, reverse=True),),
    load=4,
    cost=24,
    path=steps("-2! 2 3"),
    vehicle=1,
    visits=(FacilityVisit(facility=0, services=1, steps=1),),
)
GOOD = Solution(
    routes=(FIRST, SECOND), cost=156, deadhead=16, service_cost=26, visit_cost=14
)
# One route of two trips: 0 and 1, landfill 3; 2 out of it (9), landfill 3 again and home.
TWO_TRIPS = Route(
    services=(Service(0), Service(1), Service(2)),
    load=9,
    cost=150,
    path=steps("0! 1! 2! -2 2 3"),
    visits=(
        FacilityVisit(facility=0, services=2, steps=2),
        FacilityVisit(facility=0, services=3, steps=4),
    ),
)
TRIPS = Solution(routes=(TWO_TRIPS,), cost=150, deadhead=10, service_cost=26, visit_cost=14)
LONG = replace(TOWN, vehicles=(replace(TRUCK, max_route_cost=60), VAN))


def expect(solution: Solution, *patterns: str, instance: Instance = TOWN) -> None:
    """Exactly these faults, in any order."""
    faults = list(check(instance, solution).faults)
    for pattern in patterns:
        found = [fault for fault in faults if re.search(pattern, fault)]
        assert len(found) == 1, f"{pattern!r} in {faults}"
        faults.remove(found[0])
    assert faults == []


def with_first(**changes: Any) -> Solution:
    return replace(GOOD, routes=(replace(FIRST, **changes), SECOND))


def with_second(**changes: Any) -> Solution:
    return replace(GOOD, routes=(FIRST, replace(SECOND, **changes)))


def without_paths(solution: Solution) -> Solution:
    return replace(
        solution,
        routes=tuple(
            replace(
                route,
                path=(),
                visits=tuple(replace(visit, steps=None) for visit in route.visits),
            )
            for route in solution.routes
        ),
    )


@pytest.mark.parametrize(
    ("plan", "instance"), [(GOOD, TOWN), (TRIPS, LONG), (without_paths(GOOD), TOWN)]
)
def test_good_plans(plan: Solution, instance: Instance) -> None:
    expect(plan, instance=instance)
    expect(without_paths(plan), instance=instance)
    report = check(instance, plan)
    assert (report.cost, report.deadhead) == (plan.cost, plan.deadhead)
    assert (report.service_cost, report.visit_cost) == (plan.service_cost, plan.visit_cost)


def test_no_turn_is_taken_at_a_depot_or_facility() -> None:
    # SECOND turns round at landfill 3; TWO_TRIPS there, and at 4, which is no facility.
    for plan in (GOOD, without_paths(GOOD)):
        expect(plan, instance=replace(TOWN, u_turns="forbidden"))
    turned = replace(LONG, u_turn_penalty=5)
    dearer = replace(TRIPS, cost=155, deadhead=15, routes=(replace(TWO_TRIPS, cost=155),))
    for plan in (dearer, without_paths(dearer)):
        expect(plan, instance=turned)
    # A forbidden turn from 1 onto 2, both beside the facility, is no matter there.
    expect(GOOD, instance=replace(TOWN, turns=(Turn(1, False, 2, False),)))


def test_turns_at_a_facility_that_is_only_passed() -> None:
    # Empties at 5, so that turning round at 3 is a turn like any other.
    first = replace(
        FIRST,
        cost=134,
        path=steps("0! 1! -1 4 -4 -0"),
        visits=(FacilityVisit(facility=1, services=2, steps=4),),
    )
    plan = Solution(
        routes=(first, SECOND), cost=158, deadhead=23, service_cost=26, visit_cost=9
    )
    expect(plan, instance=LONG)
    faults = check(replace(LONG, u_turns="forbidden"), plan).faults
    assert (
        "route 1: step 3 of the path turns at node 3 from link 1 (2-3) onto link 1 "
        in (faults[1])
    )


@pytest.mark.parametrize("garbage", [2, -1, True, None, "1", 1.0])
def test_vehicle_type_that_does_not_exist(garbage: Any) -> None:
    plan = with_second(vehicle=garbage)
    expect(
        plan,
        rf"^route 2: is driven by vehicle type {garbage!r}, which does not exist \(there "
        r"are 2, counted from 0\)$",
    )
    report = check(TOWN, plan)
    assert (report.cost, report.deadhead, report.service_cost) == (None, None, 26)


def test_depots_of_the_vehicle_type() -> None:
    # The van's route by a truck: it starts at 1, 6 away, and pays the fixed cost.
    expect(
        with_second(vehicle=0),
        r"^route 2: step 1 of the path takes link 2 .* at node 1 \(the depot is 1\)$",
        "^route 2: cost is stated as 24, recomputed it is 130$",
        "^route 2: the path costs 124, but the stated cost is 24$",
        "^total cost is stated as 156, recomputed it is 262$",
        "^total deadhead is stated as 16, recomputed it is 22$",
    )
    at_four = replace(TOWN, vehicles=(TRUCK, replace(VAN, end=4)))
    expect(
        GOOD,
        "^route 2: the path ends at node 1, not at depot 4$",
        "^route 2: cost is stated as 24, recomputed it is 18$",
        "^total cost",
        "^total deadhead",
        instance=at_four,
    )


def test_load_of_each_trip() -> None:
    small = replace(LONG, capacity=4, vehicles=(replace(TRUCK, capacity=4), VAN))
    small = replace(small, vehicles=(replace(small.vehicles[0], max_route_cost=None), VAN))
    expect(
        TRIPS,
        r"^route 1: expected a load of at most the capacity of vehicle 'truck' \(4\) "
        "on trip 1, got 5$",
        instance=small,
    )
    classical = replace(
        TOWN, vehicles=(), depot=1, capacity=4, route_cost=100, max_route_cost=None
    )
    expect(
        TRIPS,
        r"^route 1: expected a load of at most the capacity \(4\) on trip 1, got 5$",
        instance=classical,
    )


def test_longest_route_leaves_out_the_fixed_cost() -> None:
    expect(
        TRIPS,
        r"^route 1: expected a cost without the fixed cost of at most 32 \(longest "
        r"route\), got 50$",
    )
    expect(
        GOOD,
        r"^route 2: expected a cost of at most 23 \(longest route\), got 24$",
        instance=replace(TOWN, vehicles=(TRUCK, replace(VAN, max_route_cost=23))),
    )


def test_longest_route_of_the_only_vehicle_type() -> None:
    town = make_instance(street(1, 2, 4, 3), max_route_cost=8, route_cost=3)
    route = Route(services=(Service(0),), load=3, cost=11)
    plan = Solution(routes=(route,), cost=11, deadhead=4, service_cost=4)
    expect(plan, instance=town)
    expect(plan, r"\(longest route\), got 8$", instance=replace(town, max_route_cost=7))


def test_number_of_routes_of_each_type() -> None:
    none_left = replace(TOWN, vehicles=(replace(TRUCK, count=1), replace(VAN, count=1)))
    expect(GOOD, instance=none_left)
    expect(GOOD, instance=replace(none_left, exact_fleet=True))
    two = replace(TOWN, vehicles=(TRUCK, replace(VAN, count=1)), exact_fleet=True)
    expect(
        GOOD,
        r"^expected exactly 2 routes of vehicle 'truck' \(exact fleet\), got 1$",
        instance=two,
    )
    split = Solution(
        routes=(
            replace(FIRST, services=(Service(0),), load=3, cost=131, path=(), visits=()),
            replace(FIRST, services=(Service(1),), load=2, cost=128, path=(), visits=()),
            replace(SECOND, path=(), visits=()),
        ),
        cost=0,
        deadhead=0,
        service_cost=26,
    )
    faults = check(none_left, split).faults
    assert "expected at most 1 routes of vehicle 'truck' (its count), got 2" in faults


def test_exact_fleet_without_types() -> None:
    town = make_instance(street(1, 2, 4, 3), fleet_limit=2, exact_fleet=True)
    route = Route(services=(Service(0),), load=3, cost=8)
    plan = Solution(routes=(route,), cost=8, deadhead=4, service_cost=4)
    expect(plan, r"^expected exactly 2 routes \(exact fleet\), got 1$", instance=town)


def test_links_forbidden_to_a_type() -> None:
    # Home from 3 by 2 and 1 instead of by 4, since the van may no longer use 3.
    closed = replace(TOWN, vehicles=(TRUCK, replace(VAN, forbidden_links=(3,))))
    expect(
        GOOD,
        r"^route 2: step 3 of the path drives along link 3 \(4-1\), which is forbidden to "
        "vehicle 'van'$",
        "^route 2: cost is stated as 24, recomputed it is 25$",
        "^total cost .* 157$",
        "^total deadhead .* 17$",
        instance=closed,
    )
    closed = replace(TOWN, vehicles=(TRUCK, replace(VAN, forbidden_links=(2, 3))))
    expect(
        GOOD,
        r"^route 2: serves link 2 \(3-4\), which is forbidden to vehicle 'van'$",
        "^route 2: step 2 of the path drives along link 2",
        "^route 2: step 3 of the path drives along link 3",
        "^route 2: cost is stated as 24, recomputed it is 25$",
        "^total cost",
        "^total deadhead",
        instance=closed,
    )
    closed = replace(TOWN, vehicles=(TRUCK, replace(VAN, forbidden_links=(0, 3))))
    for instance in (closed, replace(closed, u_turn_penalty=1)):
        faults = check(instance, without_paths(GOOD)).faults
        rules = " by the turn rules" if instance.has_turn_rules else ""
        assert (
            f"route 2: there is no way from node 3 to 1{rules} for vehicle 'van'" in faults
        )


def test_visits_that_are_wrong() -> None:
    expect(
        without_paths(with_first(visits=(FacilityVisit(facility=2, services=2),))),
        r"^route 1: facility visit 1 is at facility 2, which does not exist \(there are 2, "
        r"counted from 0\)$",
    )
    expect(
        without_paths(with_first(visits=(FacilityVisit(facility=0, services=3),))),
        "^route 1: facility visit 1 is after 3 services, but the route has 2$",
        "^route 1: expected a facility visit after the last service, got none after "
        "service 2$",
    )
    expect(
        without_paths(with_first(visits=())),
        "^route 1: expected a facility visit after the last service",
        "^route 1: cost is stated as 132, recomputed it is 125$",
        "^total cost",
        "^total visit cost is stated as 14, recomputed it is 7$",
    )
    twice = (FacilityVisit(facility=0, services=2), FacilityVisit(facility=0, services=2))
    expect(
        without_paths(replace(with_first(visits=twice), visit_cost=21, cost=163)),
        "^route 1: facility visit 2 is needless: nothing is served since the visit before",
        "^route 1: cost is stated as 132, recomputed it is 139$",
        r"longest route\), got 39$",
    )
    early = (FacilityVisit(facility=0, services=0), *FIRST.visits)
    faults = check(TOWN, without_paths(with_first(visits=early))).faults
    assert (
        "route 1: facility visit 1 is needless: nothing is served since the start" in faults
    )
    swapped = (FacilityVisit(facility=0, services=2), FacilityVisit(facility=0, services=1))
    faults = check(TOWN, without_paths(with_first(visits=swapped))).faults
    assert (
        "route 1: facility visit 2 is after 1 services, but the visit before it is after 2"
        in faults
    )


@pytest.mark.parametrize("garbage", [True, None, "1", 1.0, [1]])
def test_visits_of_garbage(garbage: Any) -> None:
    for field in ("facility", "services", "steps"):
        visit = replace(FIRST.visits[0], **{field: garbage})
        faults = check(TOWN, with_first(visits=(visit,))).faults
        assert faults
        assert all(repr(garbage) in fault for fault in faults[:1])


def test_last_visit_is_free_where_vehicles_need_not_end_empty() -> None:
    open_end = replace(TOWN, empty_at_end=False)
    expect(GOOD, instance=open_end)
    bare = replace(
        GOOD,
        routes=(
            replace(FIRST, visits=(), cost=125),
            replace(SECOND, visits=(), cost=17),
        ),
        cost=142,
        visit_cost=0,
    )
    bare = without_paths(bare)
    # Without the detour to the landfill the van drives from 3 through 4 to 1 all the same.
    expect(bare, instance=open_end)


def test_visits_without_facilities() -> None:
    expect(
        without_paths(GOOD),
        "^route 1: facility visit 1 is at facility 0, which does not exist",
        "^route 2: facility visit 1 is at facility 0, which does not exist",
        instance=replace(TOWN, facilities=()),
    )


def test_visits_on_the_path() -> None:
    visit = FIRST.visits[0]
    expect(
        with_first(visits=(replace(visit, steps=None),)),
        "^route 1: facility visit 1 is after None steps of the path, which has 4$",
        "^route 1: the path costs 125",
    )
    expect(
        with_first(visits=(replace(visit, steps=5),)),
        "^route 1: facility visit 1 is after 5 steps of the path, which has 4$",
        "^route 1: the path costs 125",
    )
    expect(
        with_first(visits=(replace(visit, steps=3),)),
        "^route 1: facility visit 1 is at facility 0 at node 3, but the vehicle is at node "
        "4 after step 3 of the path$",
    )
    expect(
        with_first(visits=(replace(visit, steps=1),)),
        "^route 1: facility visit 1 is after 1 services on the path, 2 as stated$",
        "^route 1: facility visit 1 is at facility 0 at node 3, but the vehicle is at node "
        "2 after step 1 of the path$",
    )
    at_end = replace(
        SECOND,
        vehicle=0,
        cost=0,
        services=(Service(2),),
        path=steps("0 1 2! -2"),
        visits=(FacilityVisit(facility=0, services=1, steps=4),),
    )
    faults = check(TOWN, replace(GOOD, routes=(FIRST, at_end))).faults
    assert "route 2: the path ends at node 3, not at depot 1" in faults


def test_stated_visit_cost() -> None:
    expect(
        replace(GOOD, visit_cost=0),
        "^total visit cost is stated as 0, recomputed it is 14$",
    )


def test_route_numbers() -> None:
    expect(with_first(number=7))
    expect(
        with_first(number=2),
        "^expected every route number once, got 2 as that of routes 1 and 2 of the plan$",
    )
    for garbage in (0, -3, True, "1", 1.5):
        faults = check(TOWN, with_first(number=garbage)).faults
        assert len(faults) == 1
        assert f"got {garbage!r} as that of route 1 of the plan" in faults[0]
    named = check(TOWN, with_first(number=7, cost=1, path=()))
    assert "route 7: cost is stated as 1, recomputed it is 132" in named.faults


def test_pins() -> None:
    pinned = replace(TOWN, pins=(Assignment(0, 7), Assignment(2, 2)))
    expect(with_first(number=7), instance=pinned)
    expect(
        GOOD,
        r"^link 0 \(1-2\) is pinned to route 7, but served on route 1$",
        instance=pinned,
    )
    only = Solution(routes=(SECOND,), cost=24, deadhead=8, service_cost=9, visit_cost=7)
    expect(
        only,
        "^link 0 .* never",
        "^link 1 .* never",
        "^link 2 .* pinned to route 2, but served on route 1$",
        instance=pinned,
    )


def test_locked_routes() -> None:
    lock = Lock(route=2, services=((2, True),), vehicle=1)
    expect(GOOD, instance=replace(TOWN, locks=(lock,)))
    # Its facility visits are free.
    expect(
        GOOD,
        "^route 2: is locked, but its services changed: service 1 is link 2 in reverse in "
        "the plan, link 2 forward as locked$",
        instance=replace(TOWN, locks=(replace(lock, services=((2, False),)),)),
    )
    expect(
        GOOD,
        "^route 1: is locked, but its services changed: 2 services in the plan, 1 locked$",
        "^route 1: is locked with vehicle type 1, but driven by type 0$",
        instance=replace(TOWN, locks=(Lock(route=1, services=((0, False),), vehicle=1),)),
    )
    expect(
        GOOD,
        "^route 5 is locked, but not in the plan$",
        instance=replace(TOWN, locks=(Lock(route=5, services=((0, False),)),)),
    )


def test_prices_are_no_faults() -> None:
    priced = replace(
        TOWN,
        balance=2.0,
        compactness=5,
        change_price=100,
        previous=(Assignment(0, 9), Assignment(1, 9)),
        fewest_routes=True,
    )
    expect(GOOD, instance=priced)


def test_time_of_turns_and_visits() -> None:
    links = tuple(
        replace(
            link,
            metres=100,
            seconds=link.cost,
            service_seconds=link.service_cost,
        )
        for link in TOWN.links
    )
    timed = replace(TOWN, links=links, cost_unit="seconds", u_turns="forbidden")
    first = Travel(metres=400, deadhead_metres=200, seconds=32, deadhead_seconds=15)
    second = Travel(metres=300, deadhead_metres=200, seconds=24, deadhead_seconds=15)
    total = Travel(metres=700, deadhead_metres=400, seconds=56, deadhead_seconds=30)
    plan = replace(
        GOOD,
        routes=(replace(FIRST, travel=first), replace(SECOND, travel=second)),
        travel=total,
    )
    expect(plan, instance=timed)
