"""Plans of several vehicle types with facilities: the checker's costs against networkx."""

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from arcfleet.instance.instance import Instance
from arcfleet.instance.operations import Facility, Vehicle
from arcfleet.solution.checker import check
from arcfleet.solution.solution import FacilityVisit, Route, Service, Solution
from tests.strategies import connected_instances, street_distances


@st.composite
def fleets(draw: st.DrawFn) -> Instance:
    """Connected instances with vehicle types and facilities; no type is barred anywhere."""
    instance = draw(connected_instances(max_nodes=9, max_extra_links=9))
    nodes = st.sampled_from(instance.nodes)
    vehicles = tuple(
        Vehicle(
            name=f"type {number}",
            start=draw(nodes),
            end=draw(nodes),
            capacity=10,
            fixed_cost=draw(st.integers(0, 9)),
        )
        for number in range(draw(st.integers(1, 3)))
    )
    sites = draw(st.lists(nodes, unique=True, min_size=1, max_size=3))
    return replace(
        instance,
        depot=vehicles[0].start,
        route_cost=0,
        vehicles=vehicles,
        facilities=tuple(Facility(node=x, cost=draw(st.integers(0, 9))) for x in sites),
        empty_at_end=draw(st.booleans()),
    )


def random_plan(instance: Instance, rng: random.Random) -> Solution:
    """Serve all links in random order, vehicles and trips, with costs from networkx."""
    ways = street_distances(instance)
    waiting = rng.sample(instance.required, len(instance.required))
    routes: list[Route] = []
    deadheads = services_cost = visits_cost = 0
    while waiting:
        kind = rng.randrange(len(instance.fleet))
        vehicle = instance.fleet[kind]
        at, load, carried, serving, driving, paid = vehicle.start, 0, 0, 0, 0, 0
        services: list[Service] = []
        visits: list[FacilityVisit] = []
        for position in range(rng.randint(1, len(waiting))):
            link = instance.links[waiting[-1]]
            full = carried + link.demand > vehicle.capacity
            if position and (full or rng.random() < 0.3):
                site = rng.randrange(len(instance.facilities))
                facility = instance.facilities[site]
                driving += int(ways[at][facility.node])
                paid += facility.cost
                at, carried = facility.node, 0
                visits.append(FacilityVisit(facility=site, services=len(services)))
            index = waiting.pop()
            reverse = not link.one_way and rng.random() < 0.5
            start, end = link.ends(reverse)
            driving += int(ways[at][start])
            serving += link.step_cost(reverse, serves=True) or 0
            services.append(Service(index, reverse))
            at, load, carried = end, load + link.demand, carried + link.demand
        if instance.empty_at_end or rng.random() < 0.3:
            facility = instance.facilities[0]
            driving += int(ways[at][facility.node])
            paid += facility.cost
            at = facility.node
            visits.append(FacilityVisit(facility=0, services=len(services)))
        assert vehicle.end is not None
        driving += int(ways[at][vehicle.end])
        routes.append(
            Route(
                services=tuple(services),
                load=load,
                cost=driving + serving + paid + vehicle.fixed_cost,
                vehicle=kind,
                visits=tuple(visits),
                number=10 * len(routes) + 3,
            )
        )
        deadheads += driving
        services_cost += serving
        visits_cost += paid
    return Solution(
        routes=tuple(routes),
        cost=sum(route.cost for route in routes),
        deadhead=deadheads,
        service_cost=services_cost,
        visit_cost=visits_cost,
    )


@given(fleets(), st.integers(0, 999))
def test_costs_equal_networkx(instance: Instance, seed: int) -> None:
    plan = random_plan(instance, random.Random(seed))
    assert check(instance, plan).faults == ()
    report = check(instance, plan)
    assert (report.cost, report.deadhead) == (plan.cost, plan.deadhead)
    assert (report.service_cost, report.visit_cost) == (plan.service_cost, plan.visit_cost)


@given(fleets(), st.integers(0, 999))
def test_a_limit_below_any_route_is_a_fault(instance: Instance, seed: int) -> None:
    plan = random_plan(instance, random.Random(seed))
    longest = max(
        route.cost - instance.fleet[route.vehicle].fixed_cost for route in plan.routes
    )
    limits = {longest: 0, longest - 1: 1}
    for limit, least in limits.items():
        if limit < 1:
            continue
        vehicles = tuple(replace(x, max_route_cost=limit) for x in instance.vehicles)
        faults = check(replace(instance, vehicles=vehicles), plan).faults
        assert all("(longest route)" in fault for fault in faults)
        assert (len(faults) > 0) == (least > 0)
