"""Depots, facilities and vehicles of a plan in words and places, and its trips."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.instance.instance import Instance
    from arcfleet.solution.solution import Route, Solution


def depot_nodes(instance: Instance) -> list[int]:
    """Return the nodes where routes start or end, each once, in the order of the fleet."""
    ends = [(vehicle.start, vehicle.end) for vehicle in instance.fleet]
    return list(dict.fromkeys(node for pair in ends for node in pair if node is not None))


def depot_names(instance: Instance) -> list[str]:
    """Return a name for each of `depot_nodes`: `Depot`, or numbered from 1."""
    count = len(depot_nodes(instance))
    return ["Depot"] if count == 1 else [f"Depot {i}" for i in range(1, count + 1)]


def depot_vehicles(instance: Instance, node: int) -> list[str]:
    """Return the names of the vehicle types that start or end at a node."""
    types = instance.vehicles
    return [vehicle.name for vehicle in types if node in (vehicle.start, vehicle.end)]


def facility_name(instance: Instance, facility: int) -> str:
    """Return the name of a facility, else its number, counted from 1."""
    return instance.facilities[facility].name or f"Facility {facility + 1}"


def trip_loads(instance: Instance, route: Route) -> list[int]:
    """Return the load of each trip: what is served from one emptying to the next."""
    demands = [instance.links[service.link].demand for service in route.services]
    cuts = [0, *(visit.services for visit in route.visits), len(demands)]
    trips = [demands[first:last] for first, last in pairwise(cuts)]
    if route.visits and not trips[-1]:
        trips.pop()  # nothing is served on the way from the last visit to the depot
    return [sum(trip) for trip in trips]


def has_own_numbers(solution: Solution) -> bool:
    """Return whether any route has another number than its position."""
    return solution.numbers != tuple(range(1, solution.num_routes + 1))


def visit_text(instance: Instance, route: Route) -> str:
    """Return the visits of a route in words, as in `2 visits of Landfill, 1 of Silo`."""
    counts = Counter(facility_name(instance, visit.facility) for visit in route.visits)
    if not counts:
        return "no visits"
    texts = [f"{count} of {name}" for name, count in counts.items()]
    (first, count), *_ = counts.items()
    texts[0] = f"{count} {'visit' if count == 1 else 'visits'} of {first}"
    return ", ".join(texts)


def fleet_text(instance: Instance, solution: Solution) -> str:
    """Return how many routes each vehicle type has, as in `2 small, 1 large`."""
    counts = Counter(route.vehicle for route in solution.routes)
    return ", ".join(
        f"{counts[index]} {vehicle.name}" for index, vehicle in enumerate(instance.fleet)
    )


def route_words(instance: Instance, route: Route) -> tuple[str, str, str]:
    """Return vehicle, load and visits of a route in words; empty where all are alike.

    The load is followed by those of the trips where there are several.
    """
    vehicle = instance.fleet[route.vehicle].name if instance.vehicles else ""
    trips = trip_loads(instance, route)
    load = f"load {route.load}"
    if len(trips) > 1:
        load += f" ({' + '.join(map(str, trips))})"
    visits = visit_text(instance, route) if instance.facilities else ""
    return vehicle, load, visits


def route_figures(instance: Instance, route: Route, *more: str) -> str:
    """Return vehicle, load, cost and visits of a route, and `more`, after commas."""
    vehicle, load, visits = route_words(instance, route)
    parts: Sequence[str] = (vehicle, load, f"cost {route.cost}", visits, *more)
    return ", ".join(part for part in parts if part)


def route_facts(instance: Instance, solution: Solution, index: int) -> dict[str, object]:
    """Return number, vehicle, visits and trips of a route for JSON, where they are used."""
    route = solution.routes[index]
    facts: dict[str, object] = {}
    if has_own_numbers(solution):
        facts["number"] = solution.numbers[index]
    if instance.vehicles:
        facts["vehicle"] = instance.fleet[route.vehicle].name
    if instance.facilities:
        facts["trips"] = trip_loads(instance, route)
        facts["visits"] = [[visit.facility, visit.services] for visit in route.visits]
    return facts
