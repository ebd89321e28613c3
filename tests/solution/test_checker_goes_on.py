"""One fault does not hide the next: the checker goes on, and names every one of them."""

from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arcfleet import Instance
from arcfleet.instance.operations import Facility, Lock, Vehicle
from arcfleet.solution.checker import check
from arcfleet.solution.solution import FacilityVisit, Route, Service, Solution, Step
from arcfleet.solution.travel import Travel
from tests.helpers import make_instance, steps, street
from tests.literal_turns import LiteralTurns
from tests.strategies import connected_instances, turn_rules

#   1 --0-- 2 --1-- 3 --2-- 4      Streets of cost 1; 0, 1 and 2 have a demand of 3.
LINE = make_instance(street(1, 2, 1, 3), street(2, 3, 1, 3), street(3, 4, 1, 3))
WHOLE = Route(
    services=(Service(0), Service(1), Service(2)),
    load=9,
    cost=6,
    path=steps("0! 1! 2! -2 -1 -0"),
)
PLAN = Solution(routes=(WHOLE,), cost=6, deadhead=3, service_cost=3)


def faults(instance: Instance, **changes: Any) -> tuple[str, ...]:
    """The faults of the plan whose only route is changed."""
    return check(instance, replace(PLAN, routes=(replace(WHOLE, **changes),))).faults


def test_the_plan_without_faults() -> None:
    assert faults(LINE) == ()


def test_vehicles_after_one_of_any_number() -> None:
    own: dict[str, Any] = {"start": 1, "end": 1, "capacity": 10}
    free, none = Vehicle(name="free", **own), Vehicle(name="few", count=1, **own)
    fleet = replace(LINE, vehicles=(free, none), capacity=10)
    routes = tuple(
        Route(services=(Service(link),), load=3, cost=2 * link + 2, vehicle=1)
        for link in range(3)
    )
    plan = Solution(routes=routes, cost=12, deadhead=9, service_cost=3)
    assert check(fleet, plan).faults == (
        "expected at most 1 routes of vehicle 'few' (its count), got 3",
    )


def test_locks_after_one_whose_route_is_missing() -> None:
    locked = replace(
        LINE,
        locks=(Lock(route=2, services=((0, False),)), Lock(route=1, services=((1, True),))),
    )
    missing, changed = faults(locked)
    assert missing == "route 2 is locked, but not in the plan"
    assert changed.startswith("route 1: is locked, but its services changed: service 1 is")


def test_services_after_one_that_does_not_exist() -> None:
    one_way = street(3, 4, 1, 3, one_way=True)
    instance = replace(LINE, links=(*LINE.links[:2], one_way, street(4, 3, one_way=True)))
    services = (Service(99), Service(0), Service(1), Service(2, reverse=True))
    found = faults(instance, services=services, path=())
    assert any("serves link 99, which does not exist" in fault for fault in found)
    assert any("serves one-way link 2 (3>4) in reverse" in fault for fault in found)


def test_steps_after_one_that_does_not_exist() -> None:
    broken = (Step(99, False, False), *steps("1! 0!"))
    found = faults(LINE, path=broken)
    assert any("step 1 of the path drives along link 99" in fault for fault in found)
    assert any("step 3 of the path takes link 0" in fault for fault in found)


TIP = replace(LINE, facilities=(Facility(node=1, cost=5), Facility(node=4, cost=7)))


def visit(facility: int, services: int, steps: int | None = None) -> FacilityVisit:
    return FacilityVisit(facility=facility, services=services, steps=steps)


def test_visits_after_one_that_is_beyond_the_route() -> None:
    found = faults(TIP, path=(), visits=(visit(1, 9), visit(99, 3)))
    assert any("visit 1 is after 9 services, but the route has 3" in x for x in found)
    assert any("visit 2 is at facility 99, which does not exist" in x for x in found)


def test_a_visit_out_of_order_leaves_deadheads_unknown() -> None:
    for wrong in ((visit(1, 3), visit(1, 2)), (visit(1, 9),), (visit(1, 0), visit(1, 3))):
        bare = replace(WHOLE, path=(), visits=wrong)
        report = check(TIP, replace(PLAN, routes=(bare,)))
        assert not report.ok
        assert report.deadhead is None
        assert report.cost is None


@pytest.mark.parametrize("needless", [0, 3])
def test_a_needless_visit_begins_no_trip(needless: int) -> None:
    small = replace(TIP, capacity=5, empty_at_end=False)
    found = faults(small, path=(), visits=(visit(1, needless),))
    assert "route 1: expected a load of at most the capacity (5), got 9" in found


@pytest.mark.parametrize(("services", "steps_before"), [(0, 0), (3, 6)])
def test_visits_where_the_path_begins_and_ends(services: int, steps_before: int) -> None:
    found = faults(
        replace(TIP, empty_at_end=False),
        visits=(visit(0, services, steps_before),),
        cost=11,
    )
    # The visit costs 5; the path passes the facility there, so nothing is said of steps.
    assert not any("steps of the path" in fault for fault in found)
    assert not any("the path costs" in fault for fault in found)
    beyond = faults(
        replace(TIP, empty_at_end=False), visits=(visit(0, services, 7),), cost=11
    )
    assert any("after 7 steps of the path, which has 6" in fault for fault in beyond)


def test_a_visit_at_the_end_of_a_path_has_its_cost() -> None:
    instance = replace(TIP, empty_at_end=True)
    route = replace(WHOLE, visits=(visit(0, 3, 6),), cost=11)
    plan = Solution(routes=(route,), cost=11, deadhead=3, service_cost=3, visit_cost=5)
    assert check(instance, plan).faults == ()
    assert check(instance, replace(plan, visit_cost=6)).faults == (
        "total visit cost is stated as 6, recomputed it is 5",
    )


def measured(**more: Any) -> Instance:
    """The line with 10 m and 2 s per street, 7 s where it is served."""
    links = tuple(
        replace(link, metres=10, seconds=2, reverse_seconds=3, service_seconds=7)
        for link in LINE.links
    )
    return replace(LINE, links=links, **more)


RIGHT = Travel(metres=60, deadhead_metres=30, seconds=30, deadhead_seconds=9)
NAMES = ("metres", "deadhead_metres", "seconds", "deadhead_seconds")


@pytest.mark.parametrize("name", NAMES)
def test_every_length_and_time_is_recomputed(name: str) -> None:
    instance = measured()
    routes = (replace(WHOLE, travel=RIGHT),)
    assert check(instance, replace(PLAN, routes=routes, travel=RIGHT)).faults == ()
    right = getattr(RIGHT, name)
    wrong = replace(RIGHT, **{name: right + 1})
    said = f"is stated as {right + 1}, recomputed it is {right}"
    assert faults(instance, travel=wrong) == (f"route 1: {name} {said}",)
    in_total = replace(PLAN, routes=routes, travel=wrong)
    assert check(instance, in_total).faults == (f"total {name} {said}",)


@pytest.mark.parametrize("name", NAMES)
def test_lengths_and_times_that_nothing_tells(name: str) -> None:
    stated = Travel(**{name: 5})
    unknown = "is stated as 5, but its links or its path do not say it"
    assert faults(LINE, travel=stated) == (f"route 1: {name} {unknown}",)
    assert faults(measured(), travel=stated, path=()) == (f"route 1: {name} {unknown}",)
    assert check(LINE, replace(PLAN, travel=stated)).faults == (f"total {name} {unknown}",)
    broken = (Step(99, False, False), *WHOLE.path)
    assert f"route 1: {name} {unknown}" in faults(measured(), travel=stated, path=broken)


def test_turns_and_visits_take_time_where_costs_are_seconds() -> None:
    instance = measured(
        cost_unit="seconds",
        u_turn_penalty=4,
        facilities=(Facility(node=1, cost=5), Facility(node=4, cost=7)),
        empty_at_end=False,
    )
    seconds = Travel(seconds=30 + 4, deadhead_seconds=9 + 4)
    turned = Solution(
        routes=(replace(WHOLE, cost=10, travel=seconds),),
        cost=10,
        deadhead=7,
        service_cost=3,
        travel=seconds,
    )
    assert check(instance, turned).faults == ()
    # At the facility at node 4 no turn is taken, and the visit lasts 7 s.
    paused = Travel(seconds=30 + 7, deadhead_seconds=9 + 7)
    route = replace(WHOLE, cost=13, travel=paused, visits=(visit(1, 3, 3),))
    emptied = Solution(
        routes=(route,), cost=13, deadhead=3, service_cost=3, visit_cost=7, travel=paused
    )
    assert check(instance, emptied).faults == ()
    # A facility that does not exist leaves the time unknown.
    nowhere = replace(route, visits=(visit(9, 3, 3),))
    found = check(instance, replace(emptied, routes=(nowhere,))).faults
    assert any(fault.startswith("route 1: seconds is stated as 37, but") for fault in found)


@settings(max_examples=200)
@given(st.data(), st.randoms(use_true_random=False))
def test_deadheads_against_an_exhaustive_search(data: st.DataObject, rng: Random) -> None:
    free = connected_instances(max_nodes=6, max_extra_links=5, capacity=10)
    instance = replace(data.draw(free), capacity=1000)
    if data.draw(st.booleans()):
        instance = data.draw(turn_rules(instance))
    closed = data.draw(st.sets(st.integers(0, len(instance.links) - 1), max_size=2))
    closed -= set(instance.required)
    if data.draw(st.booleans()):
        van = Vehicle(
            name="van",
            start=instance.depot,
            capacity=1000,
            fixed_cost=instance.route_cost,
            forbidden_links=tuple(sorted(closed)),
        )
        instance = replace(instance, vehicles=(van,), route_cost=0)
    else:
        closed = set()
    order = rng.sample(instance.required, len(instance.required))
    services = tuple(
        Service(i, not instance.links[i].one_way and rng.random() < 0.5) for i in order
    )
    literal = LiteralTurns(instance, closed)
    cuts = sorted({0, len(order), *data.draw(st.sets(st.integers(1, len(order))))})
    routes, missing, deadhead, serving = [], 0, 0, 0
    for first, last in pairwise(cuts):
        ways = [(service.link, service.reverse) for service in services[first:last]]
        legs = [
            literal.legs_from(before).get(after)
            for before, after in zip([None, *ways], [*ways, None], strict=True)
        ]
        missing += legs.count(None)
        driven = sum(leg for leg in legs if leg is not None)
        served = sum(
            instance.links[link].step_cost(reverse, serves=True) or 0
            for link, reverse in ways
        )
        load = sum(instance.links[link].demand for link in order[first:last])
        cost = driven + served + instance.fleet[0].fixed_cost
        routes.append(Route(services=services[first:last], load=load, cost=cost))
        deadhead += driven
        serving += served
    plan = Solution(
        routes=tuple(routes),
        cost=sum(route.cost for route in routes),
        deadhead=deadhead,
        service_cost=serving,
    )
    report = check(instance, plan)
    if missing:
        assert len(report.faults) == missing
        assert all("there is no way from node" in fault for fault in report.faults)
        assert report.deadhead is None
    else:
        assert report.faults == ()
        assert report.deadhead == deadhead
