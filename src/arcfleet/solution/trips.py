"""Plans of a fleet: routes of trips, between what solvers hold and Solutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from arcfleet.errors import SolutionError
from arcfleet.solution.solution import FacilityVisit, Route, Service, Solution, Step
from arcfleet.solution.travel import with_travel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.network import Network


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
    built = [_Builder(network, route, number) for number, route in enumerate(routes, 1)]
    solution = Solution(
        routes=tuple(each.route for each in built),
        cost=sum(each.route.cost for each in built),
        deadhead=sum(each.deadhead for each in built),
        service_cost=sum(each.service_cost for each in built),
        visit_cost=sum(each.visit_cost for each in built),
    )
    return with_travel(network.instance, solution)


class _Builder:
    """One route, leg by leg."""

    def __init__(self, network: Network, plan: TripPlan, position: int) -> None:
        instance = network.instance
        self.network, self.position = network, position
        self.core = network.cores[network.vehicle_class[plan.vehicle]]
        self.deadhead = self.visit_cost = self.service_cost = 0
        path: list[Step] = []
        visits: list[FacilityVisit] = []
        at = network.vehicle_start[plan.vehicle]
        last = instance.empty_at_end and bool(instance.facilities)
        stops = [
            (int(network.arc_start[arc]), arc, via)
            for arc, via in zip(plan.arcs, plan.vias, strict=True)
        ]
        stops.append((network.vehicle_end[plan.vehicle], -1, last))
        for served, (target, arc, via) in enumerate(stops):
            if via:
                facility = nearest_facility(network, plan.vehicle, at, target)
                terminal = network.facility_terminals[facility]
                self._drive(at, terminal, path)
                visits.append(
                    FacilityVisit(facility=facility, services=served, steps=len(path))
                )
                self.visit_cost += instance.facilities[facility].cost
                at = terminal
            self._drive(at, target, path)
            if arc >= 0:
                edge = int(network.arc_edge[arc])
                path.append(Step(edge // 2, edge % 2 == 1, serves=True))
                self.service_cost += int(network.arc_service_cost[arc])
                at = int(network.arc_end[arc])
        edges = [int(network.arc_edge[arc]) for arc in plan.arcs]
        self.route = Route(
            services=tuple(Service(edge // 2, edge % 2 == 1) for edge in edges),
            load=sum(int(network.arc_demand[arc]) for arc in plan.arcs),
            cost=self.deadhead
            + self.service_cost
            + self.visit_cost
            + instance.fleet[plan.vehicle].fixed_cost,
            path=tuple(path),
            vehicle=plan.vehicle,
            visits=tuple(visits),
            number=plan.number,
        )

    def _drive(self, start: int, end: int, path: list[Step]) -> None:
        cost = int(self.core.distances[start, end])
        try:
            edges = self.core.drive(start, end).tolist()
        except ValueError:
            cost = -1
        if cost < 0 or cost == self.core.closed_cost != 0:
            raise SolutionError(
                f"expected streets that lead through all services of route {self.position}"
                " and to its depot, found no way that its vehicle may take between two of "
                f"them in instance {self.network.instance.name!r}"
            )
        self.deadhead += cost
        path += [Step(edge // 2, edge % 2 == 1, serves=False) for edge in edges]


def nearest_facility(network: Network, vehicle: int, start: int, end: int) -> int:
    """Return the facility that costs least on the way between two terminals."""
    distances = network.cores[network.vehicle_class[vehicle]].distances
    costs = [
        int(distances[start, terminal]) + facility.cost + int(distances[terminal, end])
        for terminal, facility in zip(
            network.facility_terminals, network.instance.facilities, strict=True
        )
    ]
    return costs.index(min(costs))


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
