"""Writing keyed text: what a dialect cannot hold, what it loses, and the lines."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

from arcfleet.errors import FormatWarning
from arcfleet.instance.formats.dialect import EXPLICIT_COSTS, counted
from arcfleet.instance.instance import Instance, Link, stated_attribution

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from arcfleet.instance.formats.dialect import Dialect, Section

# What would end the line, make the file binary, or has no place in UTF-8.
_UNWRITABLE = re.compile("[\r\n\0\ud800-\udfff]+")
#: What operations ask, as in `Instance.operations`, that dialects with facilities hold.
_HAULING = ("a longest route", "facilities", "fewest routes first")


def first_obstacle(instance: Instance, dialect: Dialect) -> str | None:
    """Return why the dialect cannot hold the instance; None if it can."""
    if instance.fleet_limit is not None:
        return f"the fleet limit {instance.fleet_limit}"
    if instance.route_cost and dialect.route_cost is None:
        return f"the route cost {instance.route_cost}"
    if instance.has_turn_rules:
        return f"the turn rules ({instance.describe_turn_rules()})"
    obstacle = _operations_obstacle(instance, dialect)
    if obstacle is not None:
        return obstacle
    separate_service = any(
        name == "service_cost" for section in dialect.sections for _, name in section.fields
    )
    for index, link in enumerate(instance.links):
        where = instance.describe_link(index)
        if _section(link, dialect) is None:
            return f"the one-way street of {where}"
        if not link.one_way and link.cost != link.reverse_cost:
            return f"the costs {link.cost} and {link.reverse_cost} by direction of {where}"
        if not link.one_way and link.service_cost != link.reverse_service_cost:
            return (
                f"the service costs {link.service_cost} and {link.reverse_service_cost} "
                f"by direction of {where}"
            )
        if link.required and link.service_cost != link.cost and not separate_service:
            return (
                f"the service cost {link.service_cost} unlike cost {link.cost} of {where}"
            )
    return _node_obstacle(instance, dialect)


def format_keyed_text(path: Path | str, instance: Instance, dialect: Dialect) -> str:
    """Return the text; warn of what is lost in it without changing the problem.

    The dialect must be able to hold the instance, see `first_obstacle`.
    """
    lists: dict[str, list[Link]] = {section.list_key: [] for section in dialect.sections}
    for link in instance.links:
        if section := _section(link, dialect):
            lists[section.list_key].append(link)
    written = [link for links in lists.values() for link in links]
    changes = _lost(instance, dialect)
    if written != list(instance.links):
        changes.append("the order of the links")
    if changes:
        warnings.warn(
            f"{path}: {dialect.title} cannot keep {', '.join(changes)}; "
            "write JSON to keep everything",
            FormatWarning,
            stacklevel=2,
        )
    lines = [
        f"{key} : {value}".rstrip() for key, value in _header(instance, dialect, lists)
    ]
    for section in dialect.sections:
        lines.append(f"{section.list_key} :")
        for link in lists[section.list_key]:
            numbers = (f"{word} {getattr(link, name)}" for word, name in section.fields)
            lines.append(f"( {link.tail}, {link.head}) {' '.join(numbers)}")
    lines.append(f"{dialect.depot} : {instance.depot}")
    if dialect.facilities is not None and instance.facilities:
        nodes = ",".join(str(facility.node) for facility in instance.facilities)
        lines.append(f"{dialect.facilities} : {nodes}")
    return "\n".join(lines) + "\n"


def _operations_obstacle(instance: Instance, dialect: Dialect) -> str | None:
    """Return what operations ask that the dialect cannot hold; None if it holds all."""
    telling = dialect.telling_keys
    held = _HAULING if telling else ()
    for asked in instance.operations:
        if asked not in held:
            return asked
    if not telling:
        return None
    if instance.max_route_cost is None and not instance.facilities:
        return "neither a longest route nor facilities"
    if not instance.fewest_routes:
        return "least cost, not fewest routes, as objective"
    if instance.facilities and not instance.empty_at_end:
        return "vehicles that need not be empty at the end"
    costs = sorted({facility.cost for facility in instance.facilities})
    if len(costs) > 1:
        return f"facility visits of different costs, {costs[0]} and {costs[-1]}"
    return None


def _node_obstacle(instance: Instance, dialect: Dialect) -> str | None:
    count = len(instance.nodes)
    if dialect.any_nodes:
        labels = {instance.depot}.union(
            *((link.tail, link.head) for link in instance.links),
            (facility.node for facility in instance.facilities),
        )
        if not counted(labels, count):
            if instance.nodes == tuple(sorted(labels)):
                return None
            return "nodes that no link touches or that are not in order"
    for first in (0, 1):
        if instance.nodes == tuple(range(first, first + count)):
            break
    else:
        return f"nodes that are not 0 to {count - 1} or 1 to {count} in that order"
    # A reader sees the base only if the outermost node occurs.
    outermost = 0 if first == 0 else count
    mentioned = {instance.depot}.union(*((link.tail, link.head) for link in instance.links))
    if dialect.any_nodes:
        mentioned = labels
    if first != dialect.first_node and outermost not in mentioned:
        return f"nodes from {first} on of which no link shows node {outermost}"
    return None


def _section(link: Link, dialect: Dialect) -> Section | None:
    for section in dialect.sections:
        if (section.required, section.one_way) == (link.required, link.one_way):
            return section
    return None


def _one_line(text: str) -> str:
    return _UNWRITABLE.sub(" ", text).strip()


def _lost(instance: Instance, dialect: Dialect) -> list[str]:
    stated = stated_attribution(_one_line(instance.notice), has_coordinates=False)
    losses = {
        "coordinates": bool(instance.coordinates),
        "street names": any(link.name for link in instance.links),
        "geometry": any(link.geometry for link in instance.links),
        "metres and seconds of links": any(
            number is not None
            for x in instance.links
            for number in (x.metres, x.seconds, x.reverse_seconds, x.service_seconds)
        ),
        "kind, ways and speed of links": any(
            x.kind or x.ways or x.speed_kmh is not None or x.reverse_speed_kmh is not None
            for x in instance.links
        ),
        "ids and attributes of links": any(x.ids or x.attributes for x in instance.links),
        "the unit of costs": instance.cost_unit != "",
        "names of facilities": any(facility.name for facility in instance.facilities),
        # Neither changes the problem.
        "that vehicles need not be empty at the end": not instance.empty_at_end,
        "the routes of an earlier plan": bool(instance.previous),
        "the price for change": instance.change_price > 0,
        "the comment": bool(instance.comment) and dialect.comment is None,
        "the attribution": bool(instance.attribution) and dialect.comment is None,
        "the attribution apart from the comment": dialect.comment is not None
        and (instance.comment, instance.attribution) != (instance.notice, stated),
        "the upper bound": instance.upper_bound is not None and dialect.upper_bound is None,
        "space around or line ends in the name": instance.name != _one_line(instance.name),
        "space around or line ends in the comment": dialect.comment is not None
        and instance.notice != _one_line(instance.notice),
    }
    return [what for what, lost in losses.items() if lost]


def _header(
    instance: Instance, dialect: Dialect, lists: dict[str, list[Link]]
) -> Iterator[tuple[str, str | int]]:
    yield dialect.name, _one_line(instance.name)
    if dialect.comment is not None and _one_line(instance.notice):
        yield dialect.comment, _one_line(instance.notice)
    if dialect.upper_bound is not None and instance.upper_bound is not None:
        yield dialect.upper_bound, instance.upper_bound
    yield dialect.nodes, len(instance.nodes)
    for section in dialect.sections:
        yield section.count_key, len(lists[section.list_key])
    if instance.stated_vehicles is not None:
        yield dialect.vehicles, instance.stated_vehicles
    yield dialect.capacity, instance.capacity
    if dialect.cost_kind is not None:
        yield dialect.cost_kind, EXPLICIT_COSTS
    if dialect.total_cost is not None:
        yield dialect.total_cost, sum(link.cost for link in instance.links if link.required)
    if dialect.route_cost is not None:
        yield dialect.route_cost, instance.route_cost
    if dialect.facility_cost is not None:
        costs = [facility.cost for facility in instance.facilities]
        yield dialect.facility_cost, max(costs, default=0)
    if dialect.max_route_cost is not None and instance.max_route_cost is not None:
        yield dialect.max_route_cost, instance.max_route_cost
