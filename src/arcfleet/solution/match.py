"""Streets of an earlier instance found again in today's."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from arcfleet.errors import SolutionError
from arcfleet.instance.change import fold_name
from arcfleet.instance.geodesy import is_on_earth, metres_from

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from arcfleet.instance.instance import Coordinate, Instance, Link
    from arcfleet.instance.turns import Direction
    from arcfleet.solution.solution import Solution

#: What to do about a plan of other streets; `--old-instance` in the program.
_REMEDY = (
    "give the instance that it was made for as old_instance (--old-instance), or start "
    "without it"
)

#: A junction that a map puts farther than this from where it was is another one, in metres.
_MOST_MOVED = 100.0
#: Of degrees, by which places are the same: about 10 cm.
_DECIMALS = 6


class _Street(NamedTuple):
    """A link with its end nodes, in terms of the later instance."""

    tail: Hashable
    head: Hashable
    link: Link
    swapped: bool = False

    def turned(self) -> _Street:
        return _Street(self.head, self.tail, self.link, swapped=True)


def match_links(old: Instance, new: Instance) -> dict[int, Direction]:
    """Return for links of an instance the same streets of another.

    Links match by their end nodes, name and line, among equal ones by whether they are
    required; what is left by end nodes and name, then by end nodes alone. Two-way links
    match in either direction. A link matches once, equal ones that of the same position if
    there is one, else in their order.

    Nodes are the same if they have the same number, unless both instances have coordinates:
    then a node that is far from where it was is another one, and nodes of different numbers
    at one place are the same.

    Returns
    -------
    matches
        Position in `new` by position in `old`, and whether tail and head are swapped.
    """
    if old.links == new.links and old.coordinates == new.coordinates:
        return {position: (position, False) for position in range(len(old.links))}
    same = _same_nodes(old, new)
    before = [_Street(same(link.tail), same(link.head), link) for link in old.links]
    after = [_Street(link.tail, link.head, link) for link in new.links]
    matches: dict[int, Direction] = {}
    taken: set[int] = set()
    for identity in (_as_it_was, _by_line, _by_name, _by_ends):
        waiting: dict[Hashable, list[Direction]] = defaultdict(list)
        for position, street in enumerate(after):
            if position not in taken:
                waiting[identity(street)].append((position, False))
        _match(before, identity, waiting, matches, taken, swapped=False)
        waiting.clear()
        for position, street in enumerate(after):
            if position not in taken and not street.link.one_way:
                waiting[identity(street.turned())].append((position, True))
        _match(before, identity, waiting, matches, taken, swapped=True)
    return matches


def _same_nodes(old: Instance, new: Instance) -> Callable[[int], Hashable]:
    """Return a function of the new number of an old node; of none, what is no number."""
    known = (*old.coordinates, *new.coordinates)
    if not (old.coordinates and new.coordinates and all(is_on_earth(*x) for x in known)):
        return lambda node: node
    places = dict(zip(new.nodes, new.coordinates, strict=True))
    at = {_rounded(place): node for node, place in places.items()}
    found: dict[int, Hashable] = {}
    for node, place in zip(old.nodes, old.coordinates, strict=True):
        there = places.get(node)
        if there is not None and (
            there == place or metres_from(place, [there])[0] <= _MOST_MOVED
        ):
            found[node] = node
        else:
            found[node] = at.get(_rounded(place), ("gone", node))
    return found.__getitem__


def _rounded(place: Coordinate) -> Coordinate:
    return round(place[0], _DECIMALS), round(place[1], _DECIMALS)


def _match(
    old: Sequence[_Street],
    identity: Callable[[_Street], Hashable],
    waiting: dict[Hashable, list[Direction]],
    matches: dict[int, Direction],
    taken: set[int],
    *,
    swapped: bool,
) -> None:
    for position, street in enumerate(old):
        found = waiting.get(identity(street))
        if position not in matches and found and not (swapped and street.link.one_way):
            same = (position, swapped)
            matches[position] = found.pop(found.index(same) if same in found else 0)
            taken.add(matches[position][0])


def _as_it_was(street: _Street) -> Hashable:
    return _by_line(street), street.link.required


def _by_line(street: _Street) -> Hashable:
    line = street.link.geometry
    return _by_name(street), line[::-1] if street.swapped else line


def _by_name(street: _Street) -> Hashable:
    return _by_ends(street), fold_name(street.link.name), street.link.one_way


def _by_ends(street: _Street) -> Hashable:
    return street.tail, street.head


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
    types = {vehicle.name: number for number, vehicle in enumerate(instance.fleet)}
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
            vehicle = types.get(old_instance.fleet[vehicle].name, vehicle)
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
