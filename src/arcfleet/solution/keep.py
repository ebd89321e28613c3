"""What today's plan keeps of an earlier one: a price for change, and locked routes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from arcfleet._checks import check_whole_number
from arcfleet.errors import OptionError
from arcfleet.instance.instance import MAX_NUMBER
from arcfleet.instance.operations import Assignment, Lock

if TYPE_CHECKING:
    from collections.abc import Collection

    from arcfleet.instance.instance import Instance
    from arcfleet.solution.solution import Solution


def keep(instance: Instance, solution: Solution, price: int) -> Instance:
    """Return the instance with a price for every street that leaves its route of a plan.

    Parameters
    ----------
    instance
        Instance to change.
    solution
        Earlier plan, in terms of the instance's links. Streets that are not required are
        ignored.
    price
        Price of each such street, in the unit of all costs.
    """
    check_whole_number("the price for change", price, 0, MAX_NUMBER)
    routes = {
        service.link: number
        for number, route in zip(solution.numbers, solution.routes, strict=True)
        for service in route.services
        if _is_required(instance, service.link)
    }
    previous = tuple(Assignment(link, routes[link]) for link in sorted(routes))
    return replace(instance, previous=previous, change_price=price)


def lock(instance: Instance, solution: Solution, routes: Iterable[int]) -> Instance:
    """Return the instance in which some routes of a plan stay as they are.

    They replace locked routes of the instance that have their number or a street of theirs.

    Parameters
    ----------
    instance
        Instance to change.
    solution
        Plan, in terms of the instance's links. Streets that are not required are left out
        of the locked routes, and a direction that is closed is turned round.
    routes
        Numbers of the routes.

    Raises
    ------
    OptionError
        If the plan has no such route, or nothing of it is required.
    InstanceError
        If locked routes contradict pins or each other.
    """
    plan = dict(zip(solution.numbers, solution.routes, strict=True))
    locks: dict[int, Lock] = {}
    for number in as_routes("lock", routes):
        if number not in plan:
            raise OptionError(
                f"expected the number of a route to lock, got {number}: "
                f"{route_hint(solution)}"
            )
        services = tuple(
            (one.link, one.reverse and not instance.links[one.link].one_way)
            for one in plan[number].services
            if _is_required(instance, one.link)
        )
        if not services:
            raise OptionError(
                f"expected a route to lock with streets that are to be served, got route "
                f"{number}, which has none: leave it out"
            )
        vehicle = plan[number].vehicle
        locks[number] = Lock(route=number, services=services, vehicle=vehicle)
    kept = unlock(instance, locks, _links_of(locks.values())).locks
    both = sorted((*kept, *locks.values()), key=lambda one: one.route)
    return replace(instance, locks=tuple(both))


def as_routes(name: str, routes: Iterable[int]) -> tuple[int, ...]:
    """Return numbers of routes as a tuple; OptionError if they are none."""
    given: object = routes
    numbers = tuple(given) if isinstance(given, Iterable) else (None,)
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in numbers):
        raise OptionError(
            f"expected numbers of routes to {name} as in [3], got {routes!r:.60}"
        )
    return numbers


def unlock(
    instance: Instance, routes: Collection[int], links: Collection[int] = ()
) -> Instance:
    """Return the instance without the locked routes of some numbers or with some links."""
    left = (
        one
        for one in instance.locks
        if one.route not in routes and _links_of([one]).isdisjoint(links)
    )
    return replace(instance, locks=tuple(left))


def _links_of(locks: Iterable[Lock]) -> set[int]:
    return {link for one in locks for link, _ in one.services}


def require_known_routes(instance: Instance, solution: Solution) -> None:
    """Raise OptionError for pins to routes that a plan does not have; the next is allowed.

    Parameters
    ----------
    instance
        Instance with pins.
    solution
        Plan that the search starts from.
    """
    numbers = {*solution.numbers, *(one.route for one in instance.locks)}
    following = max(numbers, default=0) + 1
    for one in instance.pins:
        if one.route not in numbers and one.route != following:
            raise OptionError(
                "expected the number of a route to pin a street to, got "
                f"{one.route} for {instance.describe_link(one.link)}: "
                f"{route_hint(solution)}, and {following} is a new one"
            )


def route_hint(solution: Solution) -> str:
    """Return the numbers of the routes of a plan, for messages."""
    numbers = sorted(solution.numbers)
    if numbers == list(range(1, len(numbers) + 1)):
        return f"the plan has routes 1 to {len(numbers)}"
    return f"the plan has routes {', '.join(map(str, numbers))}"


def _is_required(instance: Instance, link: int) -> bool:
    return link < len(instance.links) and instance.links[link].required
