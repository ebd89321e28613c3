"""What comes out: routes of directed services, with what they cost and carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from arcfleet._display import as_document, as_geodataframe, notebook_html

if TYPE_CHECKING:
    from arcfleet.instance.instance import Instance
    from arcfleet.solution.travel import Travel


@dataclass(frozen=True, slots=True)
class Service:
    """One required link, served in one direction.

    Parameters
    ----------
    link
        Position of the link in the instance's `links`, counted from 0.
    reverse
        Whether it is served from head to tail.
    """

    link: int
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One link driven along in a route's street path.

    Parameters
    ----------
    link
        Position of the link in the instance's `links`, counted from 0.
    reverse
        Whether it is driven from head to tail.
    serves
        Whether it is served on this passage; False means deadheading.
    """

    link: int
    reverse: bool
    serves: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FacilityVisit:
    """A vehicle empties or refills on its route.

    Parameters
    ----------
    facility
        Position of the facility in the instance's `facilities`, counted from 0.
    services
        Number of services of the route before the visit.
    steps
        Number of steps of the route's path before the visit; None where the path was not
        worked out.
    """

    facility: int
    services: int
    steps: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What one vehicle does between leaving the depot and returning to it.

    Parameters
    ----------
    services
        The links it serves, in order.
    load
        Total demand served, over all trips.
    cost
        Service, deadhead, facility visits and the fixed cost of a route together.
    path
        Every link driven along, street by street; empty where it was not worked out.
        Between two services the vehicle then takes any shortest path.
    travel
        Length and time; None if unknown.
    vehicle
        Position of its vehicle type in the instance's `fleet`.
    visits
        Visits of facilities, in order.
    number
        Number of the route, which stays its own when a plan is changed; None means its
        position in the plan, counted from 1.
    """

    services: tuple[Service, ...]
    load: int
    cost: int
    path: tuple[Step, ...] = ()
    travel: Travel | None = None
    vehicle: int = 0
    visits: tuple[FacilityVisit, ...] = ()
    number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A plan: all routes, with the costs stated for them.

    The costs are statements, written by whoever made the plan; `checker.check` verifies
    them.

    Parameters
    ----------
    routes
        One route per vehicle trip.
    cost
        Total: service cost, deadhead, facility visits and the fixed costs of the routes.
    deadhead
        Cost of driving without serving.
    service_cost
        Cost of serving.
    travel
        Length and time of all routes; None if unknown.
    visit_cost
        Cost of all facility visits, driving apart.
    """

    routes: tuple[Route, ...]
    cost: int
    deadhead: int
    service_cost: int
    travel: Travel | None = None
    visit_cost: int = 0

    def __str__(self) -> str:
        """Return the costs and the routes, a line each."""
        visits = f", {self.visit_cost} at facilities" if self.visit_cost else ""
        lines = [
            f"cost {self.cost}: {self.service_cost} serving, {self.deadhead} deadheading"
            + visits
            + _after_comma(self.travel)
        ]
        several = any(route.vehicle for route in self.routes)
        for number, route in zip(self.numbers, self.routes, strict=True):
            vehicle = f"vehicle type {route.vehicle + 1}, " if several else ""
            visits = f", {len(route.visits)} facility visits" if route.visits else ""
            lines.append(
                f"route {number}: {vehicle}{len(route.services)} services, "
                f"load {route.load}, cost {route.cost}{visits}{_after_comma(route.travel)}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str | None:
        return notebook_html(self)

    def to_dict(self, instance: Instance | None = None) -> dict[str, Any]:
        """Return the plan as plain dicts and lists, as its JSON file holds it.

        With its instance, services have names, ids and ends of their streets.
        """
        return as_document(self, instance)

    def to_geodataframe(self, instance: Instance) -> Any:
        """Return the plan as a table of geopandas: a row per link driven along.

        Its columns are the properties of the legs in `write_geojson`: `route`, `step`,
        `mode` ("serve" or "deadhead"), `link`, `ids`, `street` and so on, the attributes
        of the links, and the line as `geometry` in degrees (EPSG:4326).

        Raises
        ------
        OptionError
            If geopandas is not installed or the instance has no coordinates.
        SolutionError
            If the plan cannot be driven along the streets of the instance.
        """
        return as_geodataframe(self, instance)

    @property
    def num_routes(self) -> int:
        """Number of routes."""
        return len(self.routes)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Number of each route: its own, else its position, counted from 1."""
        return tuple(
            position if route.number is None else route.number
            for position, route in enumerate(self.routes, start=1)
        )

    @property
    def loads(self) -> tuple[int, ...]:
        """Load of each route."""
        return tuple(route.load for route in self.routes)


def _after_comma(travel: Travel | None) -> str:
    return "" if travel is None else f", {travel}"
