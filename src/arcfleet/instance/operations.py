"""What operations ask of a plan beyond capacity: vehicles, facilities, pins, locks.

The classical problem is the special case of one vehicle type, no facility and no pin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from arcfleet._checks import make_whole, one_line, whole
from arcfleet.errors import InstanceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from arcfleet.instance.instance import Instance

#: Costs, demands, capacities and counts are at most this (the core computes in 32 bits).
_MAX_NUMBER = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteLimit:
    """A limit of every route beside its capacity; a field that is None where there is none.

    Parameters
    ----------
    name
        What the limit is called.
    work
        The least that serving some links uses up of it, on one route or on several.
    unit
        What follows the amount of work in a sentence.
    rule
        What a limit of N asks for, for `--help`.
    """

    name: str
    work: Callable[[Instance, Iterable[int]], int]
    unit: str
    rule: str


def _least_cost(instance: Instance, links: Iterable[int]) -> int:
    """Return the least cost of serving links and of emptying afterwards, driving apart."""
    served = [instance.links[link] for link in links]
    cost = sum(link.least_service_cost for link in served)
    if instance.facilities and instance.empty_at_end:
        visits = -(-sum(link.demand for link in served) // instance.capacity)
        cost += visits * min(facility.cost for facility in instance.facilities)
    return cost


#: By the name of the field: of `Vehicle`, and of `Instance` for a single vehicle type.
ROUTE_LIMITS = {
    "max_route_cost": RouteLimit(
        name="longest route",
        work=_least_cost,
        unit="without driving",
        rule="cost of service, deadhead and facility visits at most N",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Vehicle:
    """A type of vehicle.

    Parameters
    ----------
    name
        A name for people; each type has its own.
    start
        Depot: node where its routes start.
    end
        Node where its routes end; by default `start`.
    capacity
        Largest total demand of one trip.
    count
        Largest number of routes; None means any number.
    fixed_cost
        Cost of every route that is driven.
    max_route_cost
        Longest route: largest sum of service, deadhead and facility visits, in the unit of
        all costs; None means no limit.
    forbidden_links
        Positions of links that it may neither serve nor drive along.
    """

    name: str
    start: int
    end: int | None = None
    capacity: int
    count: int | None = None
    fixed_cost: int = 0
    max_route_cost: int | None = None
    forbidden_links: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Fill in the end and check every field; nodes and links, the instance checks."""
        make_whole(self, ("start", "end", "capacity", "count", "fixed_cost", *ROUTE_LIMITS))
        where = f"on vehicle {self.name!r}"
        if (
            not isinstance(self.name, str)
            or not self.name
            or one_line(self.name) != self.name
        ):
            raise InstanceError(
                f"expected the name of a vehicle to be one line of text, got {self.name!r}"
            )
        if self.end is None:
            object.__setattr__(self, "end", self.start)
        object.__setattr__(self, "forbidden_links", tuple(map(whole, self.forbidden_links)))
        _check_integer("capacity", self.capacity, 1, where)
        _check_integer("fixed_cost", self.fixed_cost, 0, where)
        if self.count is not None:
            _check_integer("count", self.count, 1, where)
        for field in ROUTE_LIMITS:
            if getattr(self, field) is not None:
                _check_integer(field, getattr(self, field), 1, where)
        for link in self.forbidden_links:
            _check_integer("forbidden link", link, 0, where)
        if len(set(self.forbidden_links)) < len(self.forbidden_links):
            raise InstanceError(
                f"expected every forbidden link once, got one twice {where}"
            )

    def describe(self) -> str:
        """Return its properties in a few words, as in `van, capacity 9, at most 3`."""
        parts = [self.name, f"capacity {self.capacity}"]
        parts += [] if self.count is None else [f"at most {self.count}"]
        parts += [f"fixed cost {self.fixed_cost}"] if self.fixed_cost else []
        for field, limit in ROUTE_LIMITS.items():
            if getattr(self, field) is not None:
                parts.append(f"{limit.name} {getattr(self, field)}")
        if self.forbidden_links:
            parts.append(f"{len(self.forbidden_links)} links forbidden")
        return ", ".join(parts)

    @property
    def depots(self) -> tuple[int, int]:
        """Nodes where its routes start and end."""
        return self.start, self.start if self.end is None else self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Facility:
    """A node where vehicles empty or refill: a landfill, a transfer station, a salt silo.

    Parameters
    ----------
    node
        Where it is.
    cost
        Cost of a visit, in the unit of all costs.
    name
        A name for people.
    """

    node: int
    cost: int = 0
    name: str = ""

    def __post_init__(self) -> None:
        """Check every field; the node, the instance checks."""
        make_whole(self, ("node", "cost"))
        where = f"on the facility at node {self.node}"
        _check_integer("cost", self.cost, 0, where)
        if not isinstance(self.name, str):
            raise InstanceError(f"expected name to be a text, got {self.name!r} {where}")


@dataclass(frozen=True, slots=True)
class Assignment:
    """A required link and the route that serves it.

    Parameters
    ----------
    link
        Position of the link in the instance's `links`, counted from 0.
    route
        Number of the route, counted from 1.
    """

    link: int
    route: int

    def __post_init__(self) -> None:
        """Check both fields; whether the link is required, the instance checks."""
        make_whole(self, ("link", "route"))
        _check_integer("link", self.link, 0, "of an assignment")
        _check_integer("route", self.route, 1, "of an assignment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """A route that stays as it is.

    Parameters
    ----------
    route
        Its number, counted from 1.
    services
        What it serves, in order: position of each link, and whether from head to tail.
    vehicle
        Position of its vehicle type in the instance's `fleet`.
    """

    route: int
    services: tuple[tuple[int, bool], ...]
    vehicle: int = 0

    def __post_init__(self) -> None:
        """Check every field; links and vehicle, the instance checks."""
        make_whole(self, ("route", "vehicle"))
        where = "of a locked route"
        _check_integer("route", self.route, 1, where)
        _check_integer("vehicle", self.vehicle, 0, where)
        services = tuple((whole(link), whole(reverse)) for link, reverse in self.services)
        object.__setattr__(self, "services", services)
        if not services:
            raise InstanceError(f"expected services of locked route {self.route}, got none")
        for link, reverse in services:
            _check_integer("link", link, 0, where)
            if not isinstance(reverse, bool):
                raise InstanceError(
                    f"expected reverse to be True or False, got {reverse!r} {where}"
                )


def check_operations(instance: Instance, where: str) -> None:
    """Raise InstanceError unless vehicles, facilities, pins and locks fit the instance."""
    known = set(instance.nodes)
    names = [vehicle.name for vehicle in instance.vehicles]
    for name in names:
        if names.count(name) > 1:
            raise InstanceError(
                f"expected a name of its own for every vehicle type, got {name!r} twice "
                f"{where}"
            )
    for vehicle in instance.vehicles:
        for node in (vehicle.start, vehicle.end):
            if node not in known:
                raise InstanceError(
                    f"expected a known node as depot of vehicle {vehicle.name!r}, "
                    f"got {node!r} {where}"
                )
        for link in vehicle.forbidden_links:
            _check_link(instance, link, f"forbidden to vehicle {vehicle.name!r} {where}")
    for facility in instance.facilities:
        if facility.node not in known:
            raise InstanceError(
                f"expected a known node as facility, got {facility.node!r} {where}"
            )
    at = [facility.node for facility in instance.facilities]
    if len(set(at)) < len(at):
        raise InstanceError(f"expected one facility per node, got two at one node {where}")
    if instance.exact_fleet and any(vehicle.count is None for vehicle in instance.fleet):
        raise InstanceError(
            f"expected a count of every vehicle type where the fleet is exact {where}: "
            "give fleet_limit (--fleet-limit), or count of every vehicle (--vehicles)"
        )
    locked: dict[int, int] = {}  # links, with their routes
    for lock in instance.locks:
        if lock.vehicle >= len(instance.fleet):
            raise InstanceError(
                f"expected a vehicle type from 0 to {len(instance.fleet) - 1}, "
                f"got {lock.vehicle} of locked route {lock.route} {where}"
            )
        for link, _ in lock.services:
            _check_required(instance, link, f"in locked route {lock.route} {where}")
            if link in locked:
                raise InstanceError(
                    f"expected every link in one locked route, got "
                    f"{instance.describe_link(link)} in route {locked[link]} and in route "
                    f"{lock.route} {where}"
                )
            locked[link] = lock.route
    numbers = [lock.route for lock in instance.locks]
    if len(set(numbers)) < len(numbers):
        raise InstanceError(f"expected every locked route once, got one twice {where}")
    for field in ("pins", "previous"):
        routes: dict[int, int] = {}
        for item in getattr(instance, field):
            _check_required(instance, item.link, f"in {field} {where}")
            if item.link in routes:
                raise InstanceError(
                    f"expected every link once in {field}, got "
                    f"{instance.describe_link(item.link)} for route {routes[item.link]} "
                    f"and for route {item.route} {where}"
                )
            routes[item.link] = item.route
        if field == "pins":
            for link, route in routes.items():
                if locked.get(link, route) != route:
                    raise InstanceError(
                        f"expected pins that agree with the locked routes, got "
                        f"{instance.describe_link(link)} pinned to route {route} and "
                        f"locked in route {locked[link]} {where}: pin it there, or "
                        f"unlock the route (edit --free {locked[link]})"
                    )
                if route in numbers and link not in locked:
                    raise InstanceError(
                        f"expected pins that agree with the locked routes, got "
                        f"{instance.describe_link(link)} pinned to route {route}, which is "
                        f"locked without it {where}: pin it elsewhere, or unlock the "
                        f"route (edit --free {route})"
                    )


def _check_required(instance: Instance, link: int, where: str) -> None:
    _check_link(instance, link, where)
    if not instance.links[link].required:
        raise InstanceError(
            f"expected a required link, got {instance.describe_link(link)} {where}"
        )


def _check_link(instance: Instance, link: int, where: str) -> None:
    if link >= len(instance.links):
        raise InstanceError(
            f"expected a link from 0 to {len(instance.links) - 1}, got {link} {where}"
        )


def _check_integer(field: str, value: object, least: int, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InstanceError(f"expected {field} to be an integer, got {value!r} {where}")
    if not least <= value <= _MAX_NUMBER:
        raise InstanceError(
            f"expected {field} between {least} and {_MAX_NUMBER}, got {value} {where}"
        )
