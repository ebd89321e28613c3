"""Routes and plans from services and drives: street paths, visits and totals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from arcfleet.solution.solution import FacilityVisit, Route, Service, Solution, Step
from arcfleet.solution.travel import with_travel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from arcfleet.instance.instance import Instance
    from arcfleet.instance.turns import Direction

#: What a drive leads from or to: a service, a facility by its position, or an end of the
#: route.
Stop = Service | int | Literal["start", "end"]


def assemble_route(
    instance: Instance,
    vehicle: int,
    services: Sequence[Service],
    visits: Sequence[tuple[int, int]],
    drive: Callable[[Stop, Stop], tuple[int, Iterable[Direction]]],
    number: int | None = None,
) -> Route:
    """Return a route, with its street path and cost.

    Parameters
    ----------
    instance
        Instance of the route.
    vehicle
        Position of the vehicle type.
    services
        Services in order.
    visits
        Facility visits in order: facility, and number of services before it.
    drive
        Function that returns the cost of the drive between two stops and its links.
    number
        Number of the route.
    """
    path: list[Step] = []
    made: list[FacilityVisit] = []
    at: Stop = "start"
    cost = instance.fleet[vehicle].fixed_cost

    def drive_to(stop: Stop) -> None:
        nonlocal at, cost
        more, links = drive(at, stop)
        path.extend(Step(link, reverse, serves=False) for link, reverse in links)
        at = stop
        cost += more

    waiting = list(visits)
    for done in range(len(services) + 1):
        while waiting and waiting[0][1] == done:
            facility = waiting.pop(0)[0]
            drive_to(facility)
            made.append(FacilityVisit(facility=facility, services=done, steps=len(path)))
            cost += instance.facilities[facility].cost
        if done < len(services):
            service = services[done]
            drive_to(service)
            path.append(Step(service.link, service.reverse, serves=True))
            cost += service_cost(instance, service)
    drive_to("end")
    return Route(
        services=tuple(services),
        load=sum(instance.links[service.link].demand for service in services),
        cost=cost,
        path=tuple(path),
        vehicle=vehicle,
        visits=tuple(made),
        number=number,
    )


def assemble_plan(instance: Instance, routes: Sequence[Route]) -> Solution:
    """Return the plan of routes, with totals, lengths and times."""
    serving = sum(service_cost(instance, x) for route in routes for x in route.services)
    visits = sum(instance.facilities[x.facility].cost for y in routes for x in y.visits)
    fixed = sum(instance.fleet[route.vehicle].fixed_cost for route in routes)
    cost = sum(route.cost for route in routes)
    plan = Solution(
        routes=tuple(routes),
        cost=cost,
        deadhead=cost - serving - visits - fixed,
        service_cost=serving,
        visit_cost=visits,
    )
    return with_travel(instance, plan)


def service_cost(instance: Instance, service: Service) -> int:
    """Return the cost of a service, driving included."""
    return instance.links[service.link].step_cost(service.reverse, serves=True) or 0
