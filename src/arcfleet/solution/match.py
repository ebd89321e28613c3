"""Streets of an earlier instance found again in today's."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from arcfleet.errors import SolutionError
from arcfleet.instance.change import fold_name

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from arcfleet.instance.instance import Instance, Link
    from arcfleet.instance.turns import Direction
    from arcfleet.solution.solution import Solution

#: What to do about a plan of other streets; `--old-instance` in the program.
_REMEDY = (
    "give the instance that it was made for as old_instance (--old-instance), or start "
    "without it"
)


def match_links(old: Instance, new: Instance) -> dict[int, Direction]:
    """Return for links of an instance the same streets of another.

    Links match by their end nodes, name and line, among equal ones by whether they are
    required; what is left by end nodes and name, then by end nodes alone. Two-way links
    match in either direction. A link matches once, equal ones that of the same position if
    there is one, else in their order.

    Returns
    -------
    matches
        Position in `new` by position in `old`, and whether tail and head are swapped.
    """
    if old.links == new.links:
        return {position: (position, False) for position in range(len(old.links))}
    matches: dict[int, Direction] = {}
    taken: set[int] = set()
    for identity in (_as_it_was, _by_line, _by_name, _by_ends):
        waiting: dict[Hashable, list[Direction]] = defaultdict(list)
        for position, link in enumerate(new.links):
            if position not in taken:
                waiting[identity(link)].append((position, False))
        _match(old, identity, waiting, matches, taken, swapped=False)
        waiting.clear()
        for position, link in enumerate(new.links):
            if position not in taken and not link.one_way:
                waiting[identity(_turned(link))].append((position, True))
        _match(old, identity, waiting, matches, taken, swapped=True)
    return matches


def _match(
    old: Instance,
    identity: Callable[[Link], Hashable],
    waiting: dict[Hashable, list[Direction]],
    matches: dict[int, Direction],
    taken: set[int],
    *,
    swapped: bool,
) -> None:
    for position, link in enumerate(old.links):
        found = waiting.get(identity(link))
        if position not in matches and found and not (swapped and link.one_way):
            same = (position, swapped)
            matches[position] = found.pop(found.index(same) if same in found else 0)
            taken.add(matches[position][0])


def _as_it_was(link: Link) -> Hashable:
    return _by_line(link), link.required


def _by_line(link: Link) -> Hashable:
    return _by_name(link), link.geometry


def _by_name(link: Link) -> Hashable:
    return link.tail, link.head, fold_name(link.name), link.one_way


def _by_ends(link: Link) -> Hashable:
    return link.tail, link.head


def _turned(link: Link) -> Link:
    return replace(link, tail=link.head, head=link.tail, geometry=link.geometry[::-1])


def carry_over(
    instance: Instance, solution: Solution, old_instance: Instance | None = None
) -> Solution:
    """Return a plan of an earlier instance in terms of today's links.

    Services of streets that today's instance does not have are left out; streets that it
    does not require are kept. Paths, facility visits and totals are those of the earlier
    plan no more: paths and visits are left out, totals are not recomputed. Every route
    has its number.

    Parameters
    ----------
    instance
        Today's instance.
    solution
        Earlier plan.
    old_instance
        Instance of the earlier plan; None if links have kept their positions.

    Raises
    ------
    SolutionError
        If the plan is none of this instance, or of the old one.
    """
    source = instance if old_instance is None else old_instance
    require_fit(source, solution)
    matches = match_links(source, instance)
    served = [service for route in solution.routes for service in route.services]
    if served and not any(
        service.link in matches and instance.links[matches[service.link][0]].required
        for service in served
    ):
        raise SolutionError(
            f"expected a plan for streets of instance {instance.name!r}, got one whose "
            f"{len(served)} services are all of streets that it does not require: {_REMEDY}"
        )
    kinds = {vehicle.name: number for number, vehicle in enumerate(instance.fleet)}
    routes = []
    for number, route in zip(solution.numbers, solution.routes, strict=True):
        services = []
        for service in route.services:
            if service.link in matches:
                link, swapped = matches[service.link]
                reverse = service.reverse != swapped
                services.append(replace(service, link=link, reverse=reverse))
        vehicle = route.vehicle
        if old_instance is not None and vehicle < len(old_instance.fleet):
            vehicle = kinds.get(old_instance.fleet[vehicle].name, vehicle)
        routes.append(
            replace(
                route,
                services=tuple(services),
                path=(),
                travel=None,
                visits=(),
                number=number,
                vehicle=vehicle if vehicle < len(instance.fleet) else 0,
            )
        )
    return replace(solution, routes=tuple(routes), travel=None)


def require_fit(instance: Instance, solution: Solution) -> None:
    """Raise SolutionError if the links of a plan cannot be those of the instance."""
    last = len(instance.links) - 1
    for number, route in zip(solution.numbers, solution.routes, strict=True):
        links = [one.link for one in route.services]
        links += [step.link for step in route.path]
        if any(not 0 <= link <= last for link in links):
            wrong = next(link for link in links if not 0 <= link <= last)
            raise SolutionError(
                f"expected a plan of instance {instance.name!r}, with links from 0 to "
                f"{last}, got link {wrong} on route {number}: {_REMEDY}"
            )
        for before, after in pairwise(route.path):
            here = instance.links[before.link].ends(before.reverse)[1]
            if instance.links[after.link].ends(after.reverse)[0] != here:
                raise SolutionError(
                    f"expected a plan of instance {instance.name!r}, got a path on route "
                    f"{number} that jumps from {instance.describe_link(before.link)} to "
                    f"{instance.describe_link(after.link)}: {_REMEDY}"
                )
