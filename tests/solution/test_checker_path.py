"""The checker's costs against shortest paths of networkx."""

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from arcfleet.instance.instance import Instance
from arcfleet.solution.checker import check
from arcfleet.solution.solution import Route, Service, Solution
from tests.strategies import connected_instances, street_distances


def random_plan(instance: Instance, rng: random.Random) -> Solution:
    """Serve all links in random order and directions, with costs from networkx."""
    distances = street_distances(instance)
    waiting = rng.sample(instance.required, len(instance.required))
    routes = []
    deadhead = service_cost = 0
    while waiting:
        services = []
        at = instance.depot
        load = route_deadhead = route_service = 0
        while waiting and load + instance.links[waiting[-1]].demand <= instance.capacity:
            index = waiting.pop()
            link = instance.links[index]
            reverse = not link.one_way and rng.random() < 0.5
            start, end = (link.head, link.tail) if reverse else (link.tail, link.head)
            route_deadhead += int(distances[at][start])
            cost = link.reverse_service_cost if reverse else link.service_cost
            assert cost is not None
            route_service += cost
            load += link.demand
            at = end
            services.append(Service(index, reverse))
        route_deadhead += int(distances[at][instance.depot])
        cost = route_deadhead + route_service + instance.route_cost
        routes.append(Route(services=tuple(services), load=load, cost=cost))
        deadhead += route_deadhead
        service_cost += route_service
    return Solution(
        routes=tuple(routes),
        cost=sum(route.cost for route in routes),
        deadhead=deadhead,
        service_cost=service_cost,
    )


@given(connected_instances(max_nodes=12, max_extra_links=15), st.integers(0, 999))
def test_costs_equal_networkx(instance: Instance, seed: int) -> None:
    plan = random_plan(instance, random.Random(seed))
    report = check(instance, plan)
    assert report.faults == ()
    assert report.cost == plan.cost
    assert report.deadhead == plan.deadhead
    assert report.service_cost == plan.service_cost


@given(connected_instances(), st.integers(0, 999), st.integers(-5, 5).filter(bool))
def test_a_wrong_total_is_found(instance: Instance, seed: int, error: int) -> None:
    plan = random_plan(instance, random.Random(seed))
    report = check(instance, replace(plan, cost=plan.cost + error))
    assert report.faults == (
        f"total cost is stated as {plan.cost + error}, recomputed it is {plan.cost}",
    )
