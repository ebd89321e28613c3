"""Streets, depots, facilities, vehicles, trips and the shape of a plan, in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING

from arcfleet.errors import InstanceError
from arcfleet.solution.shape import shape

if TYPE_CHECKING:
    from arcfleet.instance.instance import Instance, Link
    from arcfleet.network import Network
    from arcfleet.solution.shape import Shape
    from arcfleet.solution.solution import Route, Solution

_LARGEST_SHOWN_NODE = 99_999
#: Kinds of streets that a driver tells apart, by the last word of OpenStreetMap's.
_KINDS_TO_SEE = {"link": "ramp", "service": "service road", "track": "track"}


def street_name(link: Link) -> str:
    """Return the name of a street, or words in its place."""
    if link.name:
        return link.name
    # Small numbers are those of a file; the ids of street data tell people nothing.
    if max(link.tail, link.head) <= _LARGEST_SHOWN_NODE:
        return f"street {link.tail}-{link.head}"
    kind = link.kind.rpartition("_")[2]
    return f"unnamed {_KINDS_TO_SEE.get(kind, 'street')}"


def depot_nodes(instance: Instance) -> list[int]:
    """Return the nodes where routes start or end, each once, in the order of the fleet."""
    ends = [(vehicle.start, vehicle.end) for vehicle in instance.fleet]
    return list(dict.fromkeys(node for pair in ends for node in pair if node is not None))


def depot_names(instance: Instance) -> list[str]:
    """Return a name for each of `depot_nodes`: `Depot`, or numbered from 1."""
    count = len(depot_nodes(instance))
    return ["Depot"] if count == 1 else [f"Depot {i}" for i in range(1, count + 1)]


def depot_name(instance: Instance, node: int) -> str:
    """Return the name of the depot at a node."""
    return depot_names(instance)[depot_nodes(instance).index(node)]


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
    return _listed(vehicle, load, f"cost {route.cost}", visits, *more)


def brief_figures(instance: Instance, route: Route, *more: str) -> str:
    """Return the same in fewer words, with the number of trips only."""
    vehicle, _, _ = route_words(instance, route)
    trips = len(trip_loads(instance, route))
    load = f"load {route.load}" + (f" in {trips} trips" if trips > 1 else "")
    return _listed(vehicle, load, f"cost {route.cost}", *more)


def _listed(*parts: str) -> str:
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


def known_shape(
    instance: Instance, solution: Solution, network: Network | None = None
) -> Shape | None:
    """Return the shape of a plan; None with fewer than two routes.

    A plan that does not serve every street once has none either, nor one of an instance
    that is too large for a network. Without a network one is built.
    """
    served = sorted(s.link for route in solution.routes for s in route.services)
    if solution.num_routes < 2 or served != list(instance.required):
        return None
    try:
        return shape(instance, solution, network)
    except InstanceError:
        return None  # costs or sizes that no network holds


def shape_facts(found: Shape | None) -> dict[str, object]:
    """Return the member `shape` of an object in JSON; none where there is no shape."""
    if found is None:
        return {}
    known = {name: value for name, value in asdict(found).items() if value is not None}
    return {
        "shape": {
            name: round(value, 4) if isinstance(value, float) else value
            for name, value in known.items()
        }
    }


def shape_texts(found: Shape | None) -> dict[str, str]:
    """Return balance, interleaving and changes for people."""
    if found is None:
        return {}
    ratio = "" if found.ratio is None else f", {found.ratio:.2f} : 1"
    texts = {
        "balance": f"longest route {found.longest}, shortest {found.shortest}{ratio}",
        "interleave": f"{found.interleaving:.1%} of the streets are nearest to one of "
        "another route",
    }
    if found.changed is not None:
        streets = "street is" if found.changed == 1 else "streets are"
        texts["changed"] = f"{found.changed} {streets} on another route than before"
    return texts
