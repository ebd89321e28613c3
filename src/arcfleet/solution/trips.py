"""Plans of a fleet: routes of trips, between what solvers hold and Solutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from arcfleet.errors import SolutionError
from arcfleet.solution.assemble import assemble_plan, assemble_route
from arcfleet.solution.solution import Service

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from arcfleet.instance.turns import Direction
    from arcfleet.network import Network
    from arcfleet.solution.assemble import Stop
    from arcfleet.solution.solution import Route, Solution


@dataclass(frozen=True, slots=True)
class TripPlan:
    """One route as solvers hold it.

    Parameters
    ----------
    arcs
        Arcs of the network, in order.
    vias
        For each arc, whether the vehicle comes by way of a facility.
    vehicle
        Position of the vehicle type.
    number
        Number of the route; None if it has none of its own.
    """

    arcs: tuple[int, ...]
    vias: tuple[bool, ...]
    vehicle: int = 0
    number: int | None = None


def from_trips(network: Network, routes: Sequence[TripPlan]) -> Solution:
    """Return the Solution of routes of trips, with costs, street paths and lengths.

    Raises SolutionError where no streets connect two services that follow each other.
    """
    made = [_route(network, route, position) for position, route in enumerate(routes, 1)]
    return assemble_plan(network.instance, made)


def _route(network: Network, plan: TripPlan, position: int) -> Route:
    """Return one route, with the drives of the network."""
    instance = network.instance
    core = network.cores[network.vehicle_class[plan.vehicle]]
    distances = core.distances
    edges = [int(network.arc_edge[arc]) for arc in plan.arcs]
    services = [Service(edge // 2, edge % 2 == 1) for edge in edges]
    arcs = dict(zip(services, plan.arcs, strict=True))

    def terminal(stop: Stop, arc_ends: NDArray[np.int32]) -> int:
        if isinstance(stop, Service):
            return int(arc_ends[arcs[stop]])
        if isinstance(stop, int):
            return int(network.facility_terminals[stop])
        ends = network.vehicle_start if stop == "start" else network.vehicle_end
        return int(ends[plan.vehicle])

    def drive(one: Stop, other: Stop) -> tuple[int, Iterable[Direction]]:
        start, end = terminal(one, network.arc_end), terminal(other, network.arc_start)
        cost = int(distances[start, end])
        try:
            driven = core.drive(start, end).tolist()
        except ValueError:
            cost = -1
        if cost < 0 or cost == core.closed_cost != 0:
            raise SolutionError(
                f"expected streets that lead through all services of route {position}"
                " and to its depot, found no way that its vehicle may take between two of "
                f"them in instance {instance.name!r}"
            )
        return cost, [(edge // 2, edge % 2 == 1) for edge in driven]

    stops: list[Stop] = ["start", *services, "end"]
    visits = []
    for served, via in enumerate((*plan.vias, bool(instance.facilities))):
        if via:
            start = terminal(stops[served], network.arc_end)
            end = terminal(stops[served + 1], network.arc_start)
            facility, cost = nearest_facility(network, plan.vehicle, start, end)
            # Where the vehicle need not be empty at the end, a visit may still shorten
            # the way home: no turn is taken there.
            may_drive_on = served == len(services) and not instance.empty_at_end
            if not may_drive_on or cost < int(distances[start, end]):
                visits.append((facility, served))
    return assemble_route(instance, plan.vehicle, services, visits, drive, plan.number)


def nearest_facility(
    network: Network, vehicle: int, start: int, end: int
) -> tuple[int, int]:
    """Return the facility that costs least on the way between terminals, and its cost."""
    distances = network.cores[network.vehicle_class[vehicle]].distances
    costs = [
        int(distances[start, terminal]) + facility.cost + int(distances[terminal, end])
        for terminal, facility in zip(
            network.facility_terminals, network.instance.facilities, strict=True
        )
    ]
    return costs.index(min(costs)), min(costs)


def to_trips(network: Network, solution: Solution) -> list[TripPlan]:
    """Return the routes of a Solution as solvers take them.

    Raises SolutionError where a service is none that the network knows; whether the plan
    is otherwise right, the checker verifies.
    """
    arc_of_edge = {edge: arc for arc, edge in enumerate(network.arc_edge.tolist()) if arc}
    routes = []
    for number, route in zip(solution.numbers, solution.routes, strict=True):
        arcs = []
        for service in route.services:
            arc = arc_of_edge.get(2 * service.link + service.reverse)
            if arc is None:
                raise SolutionError(
                    "expected services of required links in legal directions, got link "
                    f"{service.link}{' reversed' if service.reverse else ''} "
                    f"in route {number}"
                )
            arcs.append(arc)
        before = {visit.services for visit in route.visits}
        vias = tuple(i > 0 and i in before for i in range(len(arcs)))
        vehicle = route.vehicle if route.vehicle < len(network.instance.fleet) else 0
        routes.append(TripPlan(tuple(arcs), vias, vehicle, number))
    return routes
