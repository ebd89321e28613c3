"""The driven lines of a plan on the map, for the formats that take coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from arcfleet.errors import OptionError, SolutionError
from arcfleet.instance.geodesy import is_on_earth
from arcfleet.network import Network
from arcfleet.solution.plan import with_street_paths
from arcfleet.solution.travel import with_travel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.instance.instance import Coordinate, Instance
    from arcfleet.solution.solution import Route, Solution, Step


@dataclass(frozen=True, slots=True)
class Leg:
    """One link driven along, with its points in the driven direction."""

    step: Step  # link, direction, and whether it is served
    # Points from where the leg starts to where it ends, at least two.
    points: tuple[Coordinate, ...]


def check_located(instance: Instance) -> None:
    """Raise OptionError unless every node of the instance has a place on the globe."""
    if not instance.coordinates:
        raise OptionError(
            "expected coordinates to write directions, GeoJSON, GPX or KML, got none in "
            f"instance {instance.name!r}: add them or write HTML, which needs none"
        )
    if not on_globe(instance):
        raise OptionError(
            "expected longitudes within 180 and latitudes within 90 degrees to write "
            f"directions, GeoJSON, GPX or KML, got others in instance {instance.name!r}: "
            "project them to WGS 84"
        )


def on_globe(instance: Instance) -> bool:
    """Whether there are coordinates and all of them can be degrees."""
    lines = [instance.coordinates, *(link.geometry for link in instance.links)]
    return bool(instance.coordinates) and all(
        is_on_earth(*point) for line in lines for point in line
    )


def with_all_paths(instance: Instance, solution: Solution) -> Solution:
    """Return the plan with street paths, computing those that it lacks, and lengths."""
    if not all(_has_path(route) for route in solution.routes):
        solution = with_street_paths(Network(instance), solution)
    check_links(instance, solution)
    return with_travel(instance, solution)


def route_legs(instance: Instance, solution: Solution) -> list[list[Leg]]:
    """Follow every route along its street path; places and paths must be known."""
    check_paths(instance, solution)
    places = dict(zip(instance.nodes, instance.coordinates, strict=True))
    return [
        [_leg(instance, places, step) for step in route.path] for route in solution.routes
    ]


def _has_path(route: Route) -> bool:
    visited = all(visit.steps is not None for visit in route.visits)
    return not route.services or (bool(route.path) and visited)


def start_points(instance: Instance, solution: Solution) -> list[Coordinate]:
    """Return the place of the depot where each route starts."""
    places = dict(zip(instance.nodes, instance.coordinates, strict=True))
    return [places[instance.fleet[route.vehicle].start] for route in solution.routes]


def joined(legs: Sequence[Leg], depot: Coordinate) -> list[Coordinate]:
    """Return the points of a route from depot to depot, each place once in a row."""
    points = [depot]
    for leg in legs:
        for point in leg.points:
            if point != points[-1]:
                points.append(point)
    # A line has two points, even that of a route that never leaves.
    return points if len(points) > 1 else [depot, depot]


def stretches(
    route: Route, legs: Sequence[Leg], depot: Coordinate
) -> list[tuple[bool, list[Coordinate]]]:
    """Return the lines of a route between changes of work and driving, in order.

    Each with whether it is served. A visit of a facility also ends a line.
    """
    stops = {visit.steps for visit in route.visits}
    found: list[tuple[bool, list[Leg]]] = []
    for position, leg in enumerate(legs):
        if found and found[-1][0] == leg.step.serves and position not in stops:
            found[-1][1].append(leg)
        else:
            found.append((leg.step.serves, [leg]))
    lines = [(serves, joined(part, part[0].points[0])) for serves, part in found]
    return lines or [(False, joined([], depot))]


def check_paths(instance: Instance, solution: Solution) -> None:
    """Raise SolutionError where a path jumps, misses a depot or leaves the instance."""
    check_links(instance, solution)
    for number, route in zip(solution.numbers, solution.routes, strict=True):
        _check_path(instance, route, number)


def check_links(instance: Instance, solution: Solution) -> None:
    """Raise SolutionError where a plan has what the instance does not have.

    That is links, vehicle types or facilities; and where two routes have one number.
    """
    if len(set(solution.numbers)) < solution.num_routes:
        raise SolutionError(
            "expected a number of its own for every route, got "
            f"{', '.join(map(str, solution.numbers))}"
        )
    for number, route in zip(solution.numbers, solution.routes, strict=True):
        links = [service.link for service in route.services]
        for what, count, found in (
            ("link", len(instance.links), [*links, *(step.link for step in route.path)]),
            ("vehicle type", len(instance.fleet), [route.vehicle]),
            ("facility", len(instance.facilities), [v.facility for v in route.visits]),
        ):
            for index in found:
                if not 0 <= index < count:
                    raise SolutionError(_unknown(what, count, index, number))


def _unknown(what: str, count: int, index: int, number: int) -> str:
    several = {"facility": "facilities"}.get(what, f"{what}s")
    known = f"{several} from 0 to {count - 1}" if count else f"no {several}"
    return f"expected {known}, got {what} {index} on route {number}"


def _check_path(instance: Instance, route: Route, number: int) -> None:
    vehicle = instance.fleet[route.vehicle]
    here = vehicle.start
    passed = [here]
    for step in route.path:
        start, end = instance.links[step.link].ends(step.reverse)
        if start != here or (step.reverse and instance.links[step.link].one_way):
            raise SolutionError(
                f"expected a path that goes on from node {here}, got "
                f"{instance.describe_link(step.link)}"
                f"{' in reverse' if step.reverse else ''} on route {number}"
            )
        here = end
        passed.append(here)
    if here != vehicle.end and route.path:
        raise SolutionError(
            f"expected a path that ends at the depot {vehicle.end}, "
            f"got one that ends at node {here} on route {number}"
        )
    for visit in route.visits:
        node = instance.facilities[visit.facility].node
        if visit.steps is None or not 0 <= visit.steps < len(passed):
            raise SolutionError(
                f"expected visits after 0 to {len(route.path)} steps of the path, "
                f"got {visit.steps} on route {number}"
            )
        if passed[visit.steps] != node:
            raise SolutionError(
                f"expected a path that leads to the facility at node {node}, got one that "
                f"is at node {passed[visit.steps]} after {visit.steps} steps on route "
                f"{number}"
            )


def _leg(instance: Instance, places: dict[int, Coordinate], step: Step) -> Leg:
    return Leg(step, driven_points(instance, places, step.link, step.reverse))


def driven_points(
    instance: Instance, places: dict[int, Coordinate], index: int, reverse: bool
) -> tuple[Coordinate, ...]:
    """Return the points of a link in the driven direction, from junction to junction."""
    link = instance.links[index]
    line = link.geometry
    line = line[::-1] if reverse else line
    start, end = (places[node] for node in link.ends(reverse))
    # Drawn lines may end beside the junction; the vehicle passes through it.
    before = () if line and line[0] == start else (start,)
    after = () if line and line[-1] == end else (end,)
    return before + line + after
