"""Routes and plans from services alone: facility visits, paths and totals, in plain Python.

Searches have their own, faster way; this one serves plans that are changed by hand or by
the calendar.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from arcfleet.errors import SolutionError
from arcfleet.solution.assemble import assemble_plan, assemble_route, service_cost
from arcfleet.solution.solution import Service
from arcfleet.solution.ways import NO_WAY, Place, Ways

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from arcfleet.instance.instance import Instance
    from arcfleet.instance.turns import Direction
    from arcfleet.solution.assemble import Stop
    from arcfleet.solution.solution import Route, Solution


@dataclass(frozen=True, slots=True)
class Tour:
    """What a vehicle type serves, with the cheapest facility visits."""

    vehicle: int
    services: tuple[Service, ...]
    visits: tuple[tuple[int, int], ...]  # facility, and number of services before it
    cost: float  # without the fixed cost; infinite if there is no way


class Builder:
    """Builds routes of an instance; keeps the shortest ways that it has found.

    Parameters
    ----------
    instance
        Instance to plan for.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.fleet = instance.fleet
        self._ways: dict[frozenset[int], Ways] = {}

    def ways(self, vehicle: int) -> Ways:
        """Return the shortest ways of a vehicle type."""
        closed = frozenset(self.fleet[vehicle].forbidden_links)
        if closed not in self._ways:
            self._ways[closed] = Ways(self.instance, closed)
        return self._ways[closed]

    def service_cost(self, service: Service) -> int:
        """Return the cost of a service, driving included."""
        return service_cost(self.instance, service)

    def load(self, services: Iterable[Service]) -> int:
        """Return the total demand of services."""
        return sum(self.instance.links[service.link].demand for service in services)

    def directions(self, link: int) -> tuple[Service, ...]:
        """Return the directions in which a link may be served."""
        both = Service(link), Service(link, reverse=True)
        return both[:1] if self.instance.links[link].one_way else both

    def fits(self, tour: Tour) -> bool:
        """Return whether a tour exists and keeps to the limits of its type."""
        return tour.cost < NO_WAY and not self.is_too_long(tour.vehicle, tour.cost)

    def is_full(self, tour: Tour, link: int) -> bool:
        """Return whether no place on a tour keeps to the limits with one more link."""
        load = self.load(tour.services) + self.instance.links[link].demand
        return not self.instance.facilities and load > self.fleet[tour.vehicle].capacity

    def is_too_long(self, vehicle: int, cost: float) -> bool:
        """Return whether a route of a vehicle type, without its fixed cost, is too long."""
        longest = self.fleet[vehicle].max_route_cost
        return longest is not None and cost > longest

    def tour(self, vehicle: int, services: Sequence[Service]) -> Tour:
        """Return the tour of a vehicle type through services in this order.

        Its cost is infinite where a way or a legal direction is missing, or no sequence of
        trips keeps to the capacity.
        """
        services = tuple(services)
        places = [(service.link, service.reverse) for service in services]
        ways, driven = self.ways(vehicle), self.fleet[vehicle]
        start, end = driven.depots
        if not services:
            return Tour(vehicle, (), (), ways.cost(start, end))
        closed = set(driven.forbidden_links)
        if any(s.link in closed or s not in self.directions(s.link) for s in services):
            return Tour(vehicle, services, (), NO_WAY)
        serving = sum(map(self.service_cost, services))
        stops: list[Place] = [start, *places, end]
        direct = [ways.path(one, other)[0] for one, other in pairwise(stops)]
        if not self.instance.facilities:
            too_much = self.load(services) > driven.capacity
            cost = NO_WAY if too_much else serving + sum(direct)
            return Tour(vehicle, services, (), cost)
        cost, visits = self._trips(vehicle, services, stops, direct)
        return Tour(vehicle, services, visits, serving + cost)

    def _trips(
        self,
        vehicle: int,
        services: Sequence[Service],
        stops: Sequence[Place],
        direct: Sequence[float],
    ) -> tuple[float, tuple[tuple[int, int], ...]]:
        """Return the least driving and visiting cost of trips in this order, and visits."""
        capacity, count = self.fleet[vehicle].capacity, len(services)
        loads = [0, *accumulate(self.load((service,)) for service in services)]
        # Cheapest with a visit after the first j services, and where the trip before began.
        best: list[float] = [NO_WAY] * (count + 1)
        trip_start = [0] * (count + 1)
        facility = [0] * (count + 1)
        # Cost from the last stop before a trip, through a facility, to its first service.
        via: list[float] = [direct[0]] + [NO_WAY] * count
        best[0] = 0.0
        for j in range(1, count + 1):
            along = 0.0  # from stop i + 1 to stop j
            for i in range(j - 1, -1, -1):
                if loads[j] - loads[i] > capacity:
                    break
                cost = best[i] + via[i] + along
                if cost < best[j]:
                    best[j], trip_start[j] = cost, i
                along += direct[i]
            through, facility[j] = self._visit(vehicle, stops[j], stops[j + 1])
            via[j] = through
        total, last = best[count] + via[count], count
        visits = [(facility[count], count)]
        if not self.instance.empty_at_end:
            along = direct[count]  # from stop i + 1 to the end
            for i in range(count - 1, -1, -1):
                if loads[count] - loads[i] > capacity:
                    break
                cost = best[i] + via[i] + along
                along += direct[i]
                if cost <= total:  # a visit that saves nothing is none
                    total, last = cost, i
                    visits = [(facility[i], i)] if i else []
        while (last := trip_start[last]) > 0:
            visits.append((facility[last], last))
        return total, tuple(reversed(visits))

    def _visit(self, vehicle: int, start: Place, end: Place) -> tuple[float, int]:
        """Return the least cost of driving by a facility, and the facility."""
        ways = self.ways(vehicle)
        costs = [
            ways.costs_to(one.node)(start) + one.cost + ways.costs_from(one.node)(end)
            for one in self.instance.facilities
        ]
        least = min(costs)
        return least, costs.index(least)

    def route(self, tour: Tour, number: int | None) -> Route:
        """Return the route of a tour, with its street path; SolutionError if impossible."""
        vehicle = self.fleet[tour.vehicle]
        if tour.cost == NO_WAY:
            name = f"route {number}" if number is not None else "a route"
            raise SolutionError(
                f"expected services of {name} that vehicle {vehicle.name!r} can reach and "
                f"carry, found none in instance {self.instance.name!r}"
            )
        ways = self.ways(tour.vehicle)
        start, end = vehicle.depots

        def place(stop: Stop) -> Place:
            if isinstance(stop, Service):
                return stop.link, stop.reverse
            if isinstance(stop, int):
                return self.instance.facilities[stop].node
            return start if stop == "start" else end

        def drive(one: Stop, other: Stop) -> tuple[int, Iterable[Direction]]:
            cost, links = ways.path(place(one), place(other))
            return round(cost), links

        return assemble_route(
            self.instance, tour.vehicle, tour.services, tour.visits, drive, number
        )

    def solution(self, routes: Sequence[Route]) -> Solution:
        """Return the plan of routes, with totals, lengths and times."""
        return assemble_plan(self.instance, routes)
