"""An Instance into keyed text, or the reason why that text cannot hold it."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

from arcfleet.errors import FormatWarning, InstanceError
from arcfleet.instance.formats.dialect import EXPLICIT_COSTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from arcfleet.instance.formats.dialect import Dialect, Section
    from arcfleet.instance.instance import Instance, Link

# What would end the line, make the file binary, or has no place in UTF-8.
_UNWRITABLE = re.compile("[\r\n\0\ud800-\udfff]+")


def first_obstacle(instance: Instance, dialect: Dialect) -> str | None:
    """Say why the dialect cannot hold the instance; None if it can."""
    if instance.fleet_limit is not None:
        return f"the fleet limit {instance.fleet_limit}"
    if instance.route_cost and dialect.route_cost is None:
        return f"the route cost {instance.route_cost}"
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
    lists = {
        section.list_key: _links(instance, section, dialect) for section in dialect.sections
    }
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
        lines.extend(_link_line(link, section) for link in lists[section.list_key])
    lines.append(f"{dialect.depot} : {instance.depot}")
    return "\n".join(lines) + "\n"


def require_no_obstacle(
    instance: Instance, dialect: Dialect, others: tuple[Dialect, ...]
) -> None:
    """Raise InstanceError with the obstacle and the format to write instead."""
    obstacle = first_obstacle(instance, dialect)
    if obstacle is not None:
        able = [other.title for other in others if first_obstacle(instance, other) is None]
        raise InstanceError(
            f"expected an instance that {dialect.title} can hold, got {obstacle} "
            f"in instance {instance.name!r}; write {(*able, 'JSON')[0]} instead"
        )


def _node_obstacle(instance: Instance, dialect: Dialect) -> str | None:
    count = len(instance.nodes)
    for first in (0, 1):
        if instance.nodes == tuple(range(first, first + count)):
            break
    else:
        return f"nodes that are not 0 to {count - 1} or 1 to {count} in that order"
    # A reader sees the base only if the outermost node occurs.
    outermost = 0 if first == 0 else count
    mentioned = {instance.depot}.union(*((link.tail, link.head) for link in instance.links))
    if first != dialect.first_node and outermost not in mentioned:
        return f"nodes from {first} on of which no link shows node {outermost}"
    return None


def _section(link: Link, dialect: Dialect) -> Section | None:
    for section in dialect.sections:
        if (section.required, section.one_way) == (link.required, link.one_way):
            return section
    return None


def _links(instance: Instance, section: Section, dialect: Dialect) -> list[Link]:
    return [link for link in instance.links if _section(link, dialect) is section]


def _one_line(text: str) -> str:
    return _UNWRITABLE.sub(" ", text).strip()


def _lost(instance: Instance, dialect: Dialect) -> list[str]:
    losses = {
        "coordinates": bool(instance.coordinates),
        "street names": any(link.name for link in instance.links),
        "geometry": any(link.geometry for link in instance.links),
        "the comment": bool(instance.comment) and dialect.comment is None,
        "the upper bound": instance.upper_bound is not None and dialect.upper_bound is None,
        "space around or line ends in the name": instance.name != _one_line(instance.name),
        "space around or line ends in the comment": dialect.comment is not None
        and instance.comment != _one_line(instance.comment),
    }
    return [what for what, lost in losses.items() if lost]


def _header(
    instance: Instance, dialect: Dialect, lists: dict[str, list[Link]]
) -> Iterator[tuple[str, str | int]]:
    yield dialect.name, _one_line(instance.name)
    if dialect.comment is not None and _one_line(instance.comment):
        yield dialect.comment, _one_line(instance.comment)
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


def _link_line(link: Link, section: Section) -> str:
    numbers = " ".join(f"{word} {getattr(link, name)}" for word, name in section.fields)
    return f"( {link.tail}, {link.head}) {numbers}"
