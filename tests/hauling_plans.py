"""A town with two depots and two landfills, and plans for it made by hand."""

from collections.abc import Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count

from arcfleet.instance import Facility, Instance, Vehicle
from arcfleet.solution import FacilityVisit, Route, Service, Solution
from arcfleet.solution.solution import Step
from arcfleet.solution.travel import with_travel


def hauling_town(village: Instance) -> Instance:
    """Return a town with vehicles of two depots, and two landfills."""
    nodes = village.nodes
    count = len(nodes)
    return replace(
        village,
        depot=nodes[0],
        capacity=600,
        route_cost=0,
        fleet_limit=None,
        vehicles=(
            Vehicle(name="north & truck", start=nodes[0], capacity=600, fixed_cost=50),
            Vehicle(name="south van", start=nodes[count // 2], end=nodes[1], capacity=400),
        ),
        facilities=(
            Facility(node=nodes[-1], cost=90, name="Landfill <East>"),
            Facility(node=nodes[count // 3], cost=120),
        ),
    )


def hauling_plan(
    instance: Instance, numbers: Sequence[int], *, per_route: int = 2
) -> Solution:
    """Serve the streets in the nearest order; empty when full and at the end.

    Routes have the given numbers and vehicle types by turns, and about `per_route` trips.
    """
    routes: list[Route] = []
    left = list(instance.required)
    deadhead = serving = visiting = 0
    for number in numbers:
        kind = len(routes) % len(instance.fleet)
        vehicle = instance.fleet[kind]
        at, load, total = vehicle.start, 0, 0
        services: list[Service] = []
        path: list[Step] = []
        visits: list[FacilityVisit] = []
        cost = 0
        while True:
            ways = _ways(instance, at)
            fitting = [
                link
                for link in left
                if load + instance.links[link].demand <= vehicle.capacity
            ]
            if fitting and (number == numbers[-1] or len(visits) < per_route):
                link = min(fitting, key=lambda x: ways[instance.links[x].tail][0])
                driven, steps = ways[instance.links[link].tail]
                street = instance.links[link]
                path += [*steps, Step(link, False, True)]
                services.append(Service(link, False))
                left.remove(link)
                load += street.demand
                at = street.head
                serving += street.service_cost or 0
                cost += driven + (street.service_cost or 0)
                deadhead += driven
                continue
            if not load:
                break
            costs = [x.cost + ways[x.node][0] for x in instance.facilities]
            chosen = costs.index(min(costs))
            facility = instance.facilities[chosen]
            driven, steps = ways[facility.node]
            path += steps
            visits.append(
                FacilityVisit(facility=chosen, services=len(services), steps=len(path))
            )
            total, load, at = total + load, 0, facility.node
            cost += driven + facility.cost
            deadhead += driven
            visiting += facility.cost
        driven, steps = ways[vehicle.end or 0]
        deadhead += driven
        routes.append(
            Route(
                services=tuple(services),
                load=total,
                cost=cost + driven + vehicle.fixed_cost,
                path=(*path, *steps),
                vehicle=kind,
                visits=tuple(visits),
                number=number,
            )
        )
    assert not left
    plan = Solution(
        routes=tuple(routes),
        cost=sum(route.cost for route in routes),
        deadhead=deadhead,
        service_cost=serving,
        visit_cost=visiting,
    )
    return with_travel(instance, plan)


def _ways(instance: Instance, start: int) -> dict[int, tuple[int, list[Step]]]:
    """Return the shortest ways to all nodes."""
    order = count()
    found: dict[int, tuple[int, list[Step]]] = {}
    queue: list[tuple[int, int, int, list[Step]]] = [(0, next(order), start, [])]
    leaving: dict[int, list[tuple[Step, int, int]]] = {}
    for index, link in enumerate(instance.links):
        for reverse in (False,) if link.one_way else (False, True):
            tail, head = link.ends(reverse)
            cost = link.step_cost(reverse, serves=False) or 0
            step = Step(index, reverse, False)
            leaving.setdefault(tail, []).append((step, head, cost))
    while queue:
        cost, _, node, steps = heappop(queue)
        if node in found:
            continue
        found[node] = cost, steps
        for step, head, more in leaving.get(node, []):
            heappush(queue, (cost + more, next(order), head, [*steps, step]))
    return found
