"""A plan from the order of its services: the cheapest drives between them, and totals."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from arcfleet.errors import OptionError
from arcfleet.solution.build import Builder, Tour
from arcfleet.solution.solution import Service
from arcfleet.solution.ways import NO_WAY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from arcfleet.instance.instance import Instance
    from arcfleet.solution.solution import Solution
    from arcfleet.solution.ways import Place

#: A service, as its link and whether it is served from head to tail, or a link whose
#: cheaper direction is chosen.
ServiceLike = Service | tuple[int, bool] | int


def evaluate(
    instance: Instance,
    routes: Iterable[Iterable[ServiceLike]],
    *,
    vehicles: Sequence[int] | None = None,
) -> Solution:
    """Return the plan that serves links in a given order.

    Vehicles take the cheapest ways between services, by the turn rules; where there are
    facilities, the cheapest visits that the capacity asks for. Directions that are left
    open are chosen such that the route costs least. The plan need not keep all rules:
    `check` says what it breaks.

    Parameters
    ----------
    instance
        Instance to plan for.
    routes
        Services of each route, in order: each a `Service`, a pair of link and direction,
        or a link by its position, whose direction is chosen.
    vehicles
        Position of the vehicle type of each route; by default the first.

    Raises
    ------
    OptionError
        If something is no service of a required link of the instance, or there are not as
        many vehicles as routes.
    SolutionError
        If there is no way between two services, or a trip would exceed the capacity of a
        vehicle that visits facilities.

    Examples
    --------
    >>> instance = arcfleet.read("example:denver")        # doctest: +SKIP
    >>> plan = arcfleet.evaluate(instance, [[3, 7], [5]])  # doctest: +SKIP
    >>> plan.cost, arcfleet.check(instance, plan).faults   # doctest: +SKIP
    """
    builder = Builder(instance)
    wanted = [[_choices(instance, builder, x) for x in route] for route in routes]
    types = [0] * len(wanted) if vehicles is None else list(vehicles)
    if len(types) != len(wanted):
        raise OptionError(
            f"expected a vehicle type for each of {len(wanted)} routes, got {len(types)}"
        )
    for vehicle in types:
        if not (isinstance(vehicle, int) and 0 <= vehicle < len(instance.fleet)):
            raise OptionError(
                f"expected vehicle types from 0 to {len(instance.fleet) - 1}, got "
                f"{vehicle!r}"
            )
    made = []
    for number, (choices, vehicle) in enumerate(zip(wanted, types, strict=True), start=1):
        services = _cheapest(builder, vehicle, choices)
        tour = builder.tour(vehicle, services)
        if tour.cost == NO_WAY and not instance.facilities:
            # More than the vehicle holds is a fault for the checker, not for us.
            tour = _overloaded(builder, tour)
        made.append(builder.route(tour, number))
    return builder.solution(made)


def _choices(instance: Instance, builder: Builder, wanted: object) -> tuple[Service, ...]:
    """Return the services that something stands for: one, or both directions of a link."""
    if isinstance(wanted, Service):
        service: Service | None = wanted
    elif isinstance(wanted, tuple) and len(wanted) == 2:
        service = Service(int(wanted[0]), bool(wanted[1]))
    else:
        service = None
    index = getattr(wanted, "__index__", None) if service is None else None
    link = service.link if service is not None else (None if index is None else index())
    if link is None or link not in range(len(instance.links)):
        raise OptionError(
            f"expected services of links from 0 to {len(instance.links) - 1}, got "
            f"{wanted!r:.60}"
        )
    if not instance.links[link].required:
        raise OptionError(
            f"expected required links, got {instance.describe_link(link)}, which is not"
        )
    known = builder.directions(link)
    if service is None:
        return known
    if service not in known:
        raise OptionError(
            f"expected services along one-way streets, got "
            f"{instance.describe_link(link)} in reverse"
        )
    return (service,)


def _cheapest(
    builder: Builder, vehicle: int, choices: Sequence[tuple[Service, ...]]
) -> list[Service]:
    """Return the directions for which services and drives cost least in this order."""
    ways = builder.ways(vehicle)
    start, end = builder.fleet[vehicle].depots
    # Cheapest way to the end of each service of the last stop, with the services before.
    best: list[tuple[float, Place, list[Service]]] = [(0.0, start, [])]
    for services in choices:
        reached: list[tuple[float, Place, list[Service]]] = []
        for service in services:
            place = (service.link, service.reverse)
            cost, before = min(
                ((known + ways.path(at, place)[0], done) for known, at, done in best),
                key=lambda pair: pair[0],
            )
            cost += builder.service_cost(service)
            reached.append((cost, place, [*before, service]))
        best = reached
    return min(
        ((known + ways.path(at, end)[0], done) for known, at, done in best),
        key=lambda pair: pair[0],
    )[1]


def _overloaded(builder: Builder, tour: Tour) -> Tour:
    """Return a tour that exists but for the capacity; otherwise as it is."""
    ways = builder.ways(tour.vehicle)
    start, end = builder.fleet[tour.vehicle].depots
    stops: list[Place] = [start, *((s.link, s.reverse) for s in tour.services), end]
    closed = set(builder.fleet[tour.vehicle].forbidden_links)
    driving = sum(ways.path(a, b)[0] for a, b in itertools.pairwise(stops))
    if driving == NO_WAY or any(s.link in closed for s in tour.services):
        return tour
    serving = sum(map(builder.service_cost, tour.services))
    return Tour(tour.vehicle, tour.services, (), driving + serving)
