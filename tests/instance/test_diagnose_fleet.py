"""Diagnosis of vehicle types, facilities, longest routes, pins and locked routes."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings

from arcfleet import Stop, repair
from arcfleet.instance.diagnose import diagnose
from arcfleet.instance.diagnose_fleet import stuck_vehicles
from arcfleet.instance.instance import Instance, Turn
from arcfleet.instance.operations import Assignment, Facility, Lock, Vehicle
from arcfleet.solution.checker import check
from arcfleet.solution.solution import FacilityVisit, Route, Service, Solution
from tests.helpers import NO_ROUTES, make_instance, solved, street
from tests.strategies import connected_instances, instances, operations, turn_rules

#   1 --0-- 2 --1-- 3 --2-- 4, and the facility at 4; serving 0 and 1.
ROW = make_instance(
    street(1, 2, 4, 3), street(2, 3, 5, 4), street(3, 4, 6), nodes=(1, 2, 3, 4, 9)
)
LANDFILL = (Facility(node=4, cost=7),)
#: Serving its street takes as long as the longest route.
FULL = make_instance(street(1, 2, 0, 1, service_cost=9), max_route_cost=9)


def vehicle(name: str = "van", start: int = 1, capacity: int = 10, **more: Any) -> Vehicle:
    return Vehicle(name=name, start=start, capacity=capacity, **more)


@pytest.mark.parametrize(
    "instance",
    [
        replace(ROW, max_route_cost=18),
        replace(ROW, max_route_cost=37, facilities=LANDFILL),
        replace(ROW, max_route_cost=18, facilities=LANDFILL, empty_at_end=False),
        # Emptying on the way, one vehicle holds any demand.
        replace(ROW, facilities=LANDFILL, capacity=4, fleet_limit=1),
        replace(ROW, depot=4, vehicles=(vehicle(start=4, end=2), vehicle("b", count=1))),
        replace(ROW, vehicles=(vehicle(forbidden_links=(1,)), vehicle("b", start=3))),
        replace(ROW, fleet_limit=2, exact_fleet=True),
        replace(ROW, pins=(Assignment(0, 5), Assignment(1, 9)), fleet_limit=2),
        replace(
            ROW,
            vehicles=(vehicle(count=1, capacity=7), vehicle("b", capacity=3, count=1)),
            capacity=7,
            pins=(Assignment(0, 3), Assignment(1, 1)),
        ),
        replace(ROW, fleet_limit=2, exact_fleet=True, pins=(Assignment(0, 7),)),
        replace(ROW, locks=(Lock(route=4, services=((1, True), (0, False))),)),
        # Serving what is pinned or locked may fill the longest route.
        replace(FULL, pins=(Assignment(0, 5),)),
        replace(FULL, locks=(Lock(route=5, services=((0, False),)),)),
    ],
)
def test_solvable(instance: Instance) -> None:
    assert diagnose(instance) == ()


@pytest.mark.parametrize(
    ("instance", "kind", "links", "words"),
    [
        (
            replace(ROW, max_route_cost=17),
            "too-long",
            (1,),
            "served within the longest route (17), got 18 for the way to link 1 (2-3) and "
            "back (raise",
        ),
        (
            replace(ROW, max_route_cost=36, facilities=LANDFILL),
            "too-long",
            (0, 1),
            "longest route (36), got up to 37 for the way to link 0 (1-2) and link 1 (2-3) "
            "and back by way of a facility",
        ),
        (
            replace(
                ROW,
                vehicles=(
                    vehicle(max_route_cost=7),
                    vehicle("b", start=3, max_route_cost=9),
                ),
            ),
            "too-long",
            (0, 1),
            "longest route (9), got up to 10 for the way to link 0",
        ),
        (
            replace(ROW, depot=2, vehicles=(vehicle(start=2, forbidden_links=(0,)),)),
            "forbidden-links",
            (0,),
            "a vehicle type that may serve every required link, found none for link 0",
        ),
        (
            replace(
                ROW,
                capacity=4,
                vehicles=(vehicle(capacity=2), vehicle("b", capacity=4)),
                links=(street(1, 2, 4, 5), *ROW.links[1:]),
            ),
            "oversized",
            (0,),
            "got up to 5 on link 0 (1-2) (the largest capacity is 4: raise it",
        ),
        (
            replace(
                ROW,
                capacity=10,
                vehicles=(
                    vehicle(capacity=10, forbidden_links=(1,)),
                    vehicle("b", capacity=3),
                ),
            ),
            "oversized",
            (1,),
            "the capacity of a vehicle type that may serve them, got up to 4 on link 1",
        ),
        (
            make_instance(
                street(1, 2, 4, 3),
                street(3, 4, 5, 4),
                vehicles=(vehicle(), vehicle("b", start=2)),
            ),
            "unreachable",
            (1,),
            "expected a way from the start of a vehicle type to every required link and on "
            "to its end, found none for link 1 (3-4)",
        ),
        (
            make_instance(
                street(1, 2, 4, 3),
                street(2, 3, 5, one_way=True),
                facilities=(Facility(node=3),),
            ),
            "no-facility",
            (0,),
            "expected a way from a facility to the depot where a route ends, found none "
            "from the facility at node 3 (add",
        ),
        (
            make_instance(
                street(1, 2, 4, 3),
                street(2, 3, 5, one_way=True),
                street(2, 4, 5, one_way=True),
                facilities=(Facility(node=3), Facility(node=4)),
            ),
            "no-facility",
            (0,),
            "found none from the facilities at nodes 3, 4 (add",
        ),
        (
            # From 3 no way leads home; from 5 one does, but none leads there.
            make_instance(
                street(1, 2, 4, 3),
                street(2, 3, 5, one_way=True),
                street(5, 1, 5, one_way=True),
                facilities=(Facility(node=3), Facility(node=5)),
            ),
            "no-facility",
            (0,),
            "expected a way from every required link to a facility and on to the depot, "
            "found none after link 0 (1-2) (add",
        ),
        (
            make_instance(
                street(1, 2, 4, 3),
                street(2, 3, 5, 1, one_way=True),
                street(3, 1, 5, one_way=True),
                street(4, 1, 2, 1),
                street(5, 4, 2, one_way=True),
                facilities=(Facility(node=5),),
            ),
            "no-facility",
            (0, 1, 3),
            "expected a way from every required link to a facility and on to the depot, "
            "found none after link 0 (1-2), link 1 (2>3) and link 3 (4-1)",
        ),
        (
            replace(
                ROW,
                depot=4,
                vehicles=(vehicle(start=4, forbidden_links=(2,)), vehicle("b", start=9)),
            ),
            "unreachable",
            (0, 1),
            "none for link 0 (1-2) and link 1 (2-3); vehicle 'van' cannot leave depot 4, "
            "because all links that lead out of it are forbidden to it; vehicle 'b' "
            "cannot leave depot 9, because no link leads out of it (add",
        ),
        (
            replace(
                ROW,
                exact_fleet=True,
                vehicles=(
                    vehicle(count=1),
                    vehicle("b", start=1, end=4, count=1, forbidden_links=(2,)),
                ),
            ),
            "isolated-depot",
            (0, 1),
            "every vehicle of an exact fleet, but vehicle 'b' cannot come back to depot 4, "
            "because all links that lead to it are forbidden to it (allow",
        ),
        (
            replace(ROW, capacity=6, pins=(Assignment(1, 2), Assignment(0, 2))),
            "pins",
            (0, 1),
            "the streets pinned to route 2 to fit one vehicle, got demands of 7 together "
            "at capacity 6 (pin fewer",
        ),
        (
            replace(
                ROW,
                vehicles=(
                    vehicle(forbidden_links=(1,)),
                    vehicle("b", start=3, forbidden_links=(0,)),
                ),
                pins=(Assignment(0, 2), Assignment(1, 2)),
            ),
            "pins",
            (0, 1),
            "got link 1 (2-3) forbidden to vehicle 'van'",
        ),
        (
            replace(ROW, fleet_limit=1, pins=(Assignment(0, 2), Assignment(1, 3))),
            "pins",
            (0, 1),
            "expected at most 1 routes in pins and locks (the size of the fleet), got 2",
        ),
        (
            replace(
                ROW,
                capacity=6,
                locks=(Lock(route=3, services=((0, False), (1, False))),),
            ),
            "locks",
            (0, 1),
            "expected locked route 3 to fit its vehicle, got demands of 7 together at "
            "capacity 6",
        ),
        (
            make_instance(
                street(1, 2, 4, 3, one_way=True),
                street(2, 1, 4),
                locks=(Lock(route=3, services=((0, True),)),),
            ),
            "locks",
            (0,),
            "locked route 3 to serve one-way links forward, got link 0 (1>2) in reverse",
        ),
        (
            replace(
                ROW,
                vehicles=(vehicle(count=1), vehicle("b")),
                locks=(
                    Lock(route=1, services=((0, False),)),
                    Lock(route=2, services=((1, False),)),
                ),
            ),
            "locks",
            (0, 1),
            "expected at most 1 locked routes of vehicle 'van' (its count), got 2",
        ),
        (
            replace(ROW, fleet_limit=3, exact_fleet=True),
            "exact-fleet",
            (0, 1),
            "a street for each of the 3 vehicles of an exact fleet, got 2 streets",
        ),
        (
            replace(
                ROW,
                fleet_limit=2,
                exact_fleet=True,
                locks=(Lock(route=1, services=((0, False), (1, False))),),
            ),
            "exact-fleet",
            (0, 1),
            "each of the 1 vehicles of an exact fleet beside the locked routes, got 0",
        ),
        (
            # Each fits the large vehicle alone, but there is one of it.
            replace(
                ROW,
                vehicles=(vehicle(count=1), vehicle("b", capacity=2)),
                pins=(Assignment(0, 3), Assignment(1, 1)),
            ),
            "pins",
            (0, 1),
            "a vehicle for every pinned route, got routes 1 and 3 for 1 of vehicle 'van' "
            "(pin fewer streets to these routes or add vehicles)",
        ),
        (
            # The first of three routes may take another vehicle; the other two may not.
            make_instance(
                street(1, 2, 1, 1),
                street(2, 3, 1, 4),
                street(3, 4, 1, 3),
                vehicles=(vehicle(count=1, capacity=4), vehicle("b", count=2, capacity=2)),
                capacity=4,
                pins=(Assignment(0, 1), Assignment(1, 2), Assignment(2, 3)),
            ),
            "pins",
            (1, 2),
            "a vehicle for every pinned route, got routes 2 and 3 for 1 of vehicle 'van'",
        ),
        (
            replace(
                ROW,
                vehicles=(vehicle(count=1), vehicle("b", capacity=2)),
                pins=(Assignment(0, 3),),
                locks=(Lock(route=2, services=((1, False),)),),
            ),
            "pins",
            (0,),
            "a vehicle for every pinned route, got route 3 for 0 of vehicle 'van' beside "
            "the locked routes (pin",
        ),
        (
            replace(
                ROW,
                fleet_limit=2,
                exact_fleet=True,
                pins=(Assignment(0, 1), Assignment(1, 1)),
            ),
            "exact-fleet",
            (0, 1),
            "a street for each of the 1 vehicles of an exact fleet beside the pinned "
            "routes, got 0 streets (take fewer vehicles or pin fewer streets)",
        ),
        (
            replace(
                ROW,
                capacity=4,
                vehicles=(vehicle(capacity=4, count=1), vehicle("b", capacity=2, count=1)),
            ),
            "fleet-too-small",
            (0, 1),
            "a total demand of at most what all vehicles hold (6), got 7 (add vehicles",
        ),
        (
            # A street without demand fills no vehicle; one of demand 1 does.
            make_instance(
                street(1, 2, 4, 6),
                street(2, 3, 4, 0),
                street(3, 4, 4, 1),
                vehicles=(vehicle(capacity=6, count=1),),
                capacity=6,
            ),
            "fleet-too-small",
            (0, 2),
            "a total demand of at most what all vehicles hold (6), got 7 (add vehicles",
        ),
        (
            make_instance(
                street(1, 2, 1, 1, service_cost=9),
                street(1, 3, 1, 1, service_cost=9),
                fleet_limit=1,
                max_route_cost=17,
            ),
            "fleet-too-small",
            (0, 1),
            "routes of all vehicles together (longest route), got 18 without driving",
        ),
        (
            # Two visits, since the vehicle holds one street.
            make_instance(
                street(1, 2, 0, 1, service_cost=5),
                street(1, 3, 0, 1, service_cost=5),
                capacity=1,
                fleet_limit=1,
                max_route_cost=15,
                facilities=(Facility(node=1, cost=3),),
            ),
            "fleet-too-small",
            (0, 1),
            "routes of all vehicles together (longest route), got 16 without driving",
        ),
        (
            # The least that two visits can cost is twice the cheaper facility.
            make_instance(
                street(1, 2, 0, 1, service_cost=5),
                street(1, 3, 0, 1, service_cost=5),
                capacity=1,
                fleet_limit=1,
                max_route_cost=15,
                facilities=(Facility(node=1, cost=3), Facility(node=2, cost=9)),
            ),
            "fleet-too-small",
            (0, 1),
            "routes of all vehicles together (longest route), got 16 without driving",
        ),
    ],
)
def test_the_problem_names_its_links_and_a_remedy(
    instance: Instance, kind: str, links: tuple[int, ...], words: str
) -> None:
    (problem,) = diagnose(instance)
    assert (problem.kind, problem.links) == (kind, links)
    assert words in problem.message
    assert problem.message.endswith(")")
    assert "\n" not in problem.message


def test_a_vehicle_type_that_is_stuck_leaves_the_work_to_others() -> None:
    fleet = (vehicle(), vehicle("b", start=4, forbidden_links=(2,)))
    town = replace(ROW, vehicles=fleet)
    assert diagnose(town) == ()
    assert list(stuck_vehicles(town)) == [1]
    assert "vehicle 'b' cannot leave depot 4" in stuck_vehicles(town)[1]
    assert solved(town, seconds=0.1).notes == tuple(stuck_vehicles(town).values())
    assert stuck_vehicles(replace(ROW, vehicles=fleet[:1])) == {}


def test_a_one_way_street_leads_out_of_its_tail_and_into_its_head() -> None:
    town = make_instance(
        street(1, 2, 4, 3),
        street(2, 3, 5, one_way=True),
        street(4, 2, 5, one_way=True),
        vehicles=(vehicle(), vehicle("b", start=3), vehicle("c", start=4)),
    )
    assert stuck_vehicles(town) == {
        1: "vehicle 'b' cannot leave depot 3, because no link leads out of it",
        2: "vehicle 'c' cannot come back to depot 4, because no link leads to it",
    }
    # Out by one and in by the other is enough.
    through = replace(town, depot=4, vehicles=(vehicle("d", start=4, end=3),))
    assert stuck_vehicles(through) == {}


def test_turn_rules_count_and_none_is_taken_at_a_facility() -> None:
    # Without U-turns the way back from 4 is the turn at the facility itself.
    rules = replace(ROW, u_turns="forbidden", facilities=LANDFILL, links=ROW.links[:3])
    assert diagnose(replace(rules, max_route_cost=37)) == ()
    # The turn at 3 is forbidden, so that no vehicle comes to the facility.
    closed = replace(rules, turns=(Turn(1, False, 2, False),))
    (problem,) = diagnose(replace(closed, vehicles=(vehicle(),)))
    assert (problem.kind, problem.links) == ("unreachable", (0, 1))
    assert "expected a way by the turn rules from the start of a" in problem.message


@pytest.mark.parametrize("empty_at_end", [True, False])
def test_a_visit_opens_ways_only_after_a_service(empty_at_end: bool) -> None:
    # Link 2 is reached by turning at the facility at 3; from 1 by way of 2 it is closed.
    closed = Turn(0, False, 2, False)
    town = make_instance(
        street(1, 2, 4),
        street(2, 3, 5),
        street(2, 4, 5, 3, one_way=True),
        street(4, 1, 5, one_way=True),
        facilities=(Facility(node=3),),
        u_turns="forbidden",
        turns=(closed,),
        empty_at_end=empty_at_end,
        vehicles=(vehicle(),),
    )
    (problem,) = diagnose(town)
    assert (problem.kind, problem.links) == ("unreachable", (2,))
    # After a service of link 0 the vehicle may turn there.
    links = (street(1, 2, 4, 1), *town.links[1:])
    assert diagnose(replace(town, links=links)) == ()
    plan = solved(replace(town, links=links, empty_at_end=False), seconds=0.1).solution
    assert [visit.services for visit in plan.routes[0].visits] == [1]


def test_a_street_left_by_way_of_a_facility_only_is_left_by_a_visit_at_the_end() -> None:
    town = make_instance(
        street(1, 2, 4, 3),
        street(2, 3, 5),
        facilities=(Facility(node=3, cost=7),),
        u_turns="forbidden",
    )
    assert solved(town, seconds=0.1).cost == 25
    loaded = replace(town, empty_at_end=False)
    assert diagnose(loaded) == ()
    repaired = repair(loaded, NO_ROUTES)
    assert check(loaded, repaired.solution).faults == ()
    found = solved(loaded, stop=Stop(iterations=20))
    assert found.cost == 25
    assert [visit.services for visit in found.solution.routes[0].visits] == [1]


def single_route_plans(instance: Instance, link: int) -> bool:
    """Whether the checker accepts some plan of one route that serves one link."""
    alone = replace(
        instance,
        links=tuple(
            x
            if index == link
            else replace(
                x,
                required=False,
                demand=0,
                service_cost=None,
                reverse_service_cost=None,
                service_seconds=None,
            )
            for index, x in enumerate(instance.links)
        ),
        pins=(),
        locks=(),
        previous=(),
    )
    visits = [(), *((i,) for i in range(len(alone.facilities)))]
    for kind, reverse, visit in product(range(len(alone.fleet)), (False, True), visits):
        route = Route(
            services=(Service(link, reverse),),
            load=instance.links[link].demand,
            cost=0,
            vehicle=kind,
            visits=tuple(FacilityVisit(facility=i, services=1) for i in visit),
        )
        draft = Solution(routes=(route,), cost=0, deadhead=0, service_cost=0)
        found = check(alone, draft)
        if None in (found.cost, found.deadhead, found.service_cost, found.visit_cost):
            continue
        plan = Solution(
            routes=(replace(route, cost=found.cost or 0),),
            cost=found.cost or 0,
            deadhead=found.deadhead or 0,
            service_cost=found.service_cost or 0,
            visit_cost=found.visit_cost or 0,
        )
        if check(alone, plan).ok:
            return True
    return False


@settings(max_examples=150)
@given(
    (
        instances(decorated=False, max_nodes=5, max_links=7)
        | connected_instances(max_nodes=5, max_extra_links=3)
    )
    .flatmap(turn_rules)
    .flatmap(lambda instance: operations(instance, largest=60, max_types=2))
    | connected_instances(max_nodes=5).flatmap(
        lambda instance: operations(instance, largest=60, max_types=2)
    )
)
def test_streets_that_no_route_can_serve_are_those_that_the_checker_refuses(
    instance: Instance,
) -> None:
    # The fleet, pins and locks are matters of several routes.
    free = replace(
        instance,
        fleet_limit=None,
        vehicles=tuple(replace(x, count=None) for x in instance.vehicles),
        exact_fleet=False,
        pins=(),
        locks=(),
    )
    problems = diagnose(free)
    named = {link for problem in problems for link in problem.links}
    served = {link for link in free.required if single_route_plans(free, link)}
    assert named.isdisjoint(served)
    if free.facilities and free.has_turn_rules:
        return  # a visit after another street may open a way
    assert bool(problems) == (len(served) < len(free.required))
    if free.vehicles:
        assert named == set(free.required) - served


def test_least_routes() -> None:
    assert ROW.least_routes == 1
    assert replace(ROW, capacity=4).least_routes == 2
    assert replace(ROW, capacity=4, facilities=LANDFILL).least_routes == 1
    assert replace(ROW, max_route_cost=5).least_routes == 2
    assert replace(ROW, facilities=LANDFILL, max_route_cost=16).least_routes == 1
    assert replace(ROW, facilities=LANDFILL, max_route_cost=15).least_routes == 2
    assert replace(ROW, fleet_limit=2, exact_fleet=True).least_routes == 2
    assert replace(ROW, pins=(Assignment(0, 2), Assignment(1, 3))).least_routes == 2
    types = (vehicle(capacity=3), vehicle("b", capacity=4, count=1))
    assert replace(ROW, capacity=4, vehicles=types).least_routes == 2
    types = (vehicle(capacity=1), vehicle("b", capacity=4, count=1))
    assert replace(ROW, capacity=4, vehicles=types).least_routes == 4
    types = (vehicle(capacity=1, count=1), vehicle("b", capacity=2, count=1))
    assert replace(ROW, capacity=2, vehicles=types).least_routes == 4  # more than there are
    assert make_instance(street(1, 2)).least_routes == 0


def test_types_without_a_count_or_limit_take_the_rest() -> None:
    both: dict[str, Any] = {"service_cost": 40, "reverse_service_cost": 40}
    links = tuple(replace(link, **both) for link in ROW.links[:2])
    town = replace(ROW, links=(*links, ROW.links[2]))

    def kinds(*fleet: Vehicle) -> list[str]:
        return [problem.kind for problem in diagnose(replace(town, vehicles=fleet))]

    few = vehicle("few", count=1, max_route_cost=79)
    assert "fleet-too-small" in kinds(few)
    assert kinds(replace(few, max_route_cost=80)) == []
    for other in (vehicle("free", max_route_cost=79), vehicle("long", count=1)):
        assert kinds(few, other) == []
