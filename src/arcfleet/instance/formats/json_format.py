"""Our own JSON, which holds everything an Instance has.

Members that have their default value are left out; `reverse_cost`, `service_cost` and
`reverse_service_cost` of a link default as they do in `Link`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from arcfleet.errors import FileError, InstanceError
from arcfleet.instance.formats.format import Format
from arcfleet.instance.formats.strict_json import JsonObject, dump, open_document
from arcfleet.instance.instance import (
    MAX_NODE,
    MAX_NUMBER,
    Instance,
    Link,
    stated_attribution,
)

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = "arcfleet-instance"
VERSION = 1

_INSTANCE_KEYS = frozenset(Instance.__dataclass_fields__)
_LINK_KEYS = frozenset(Link.__dataclass_fields__)
_OTHER_COSTS = ("reverse_cost", "service_cost", "reverse_service_cost")


def read_json(path: Path | str, text: str) -> Instance:
    """Read the JSON text of `path`."""
    document = open_document(path, text, FORMAT, VERSION, _INSTANCE_KEYS)
    links = tuple(_read_link(item) for item in document.objects("links", _LINK_KEYS))
    try:
        comment = document.text("comment", "")
        coordinates = document.points("coordinates")
        return Instance(
            name=document.text("name"),
            nodes=document.integers("nodes", 0, MAX_NODE),
            links=links,
            depot=document.integer("depot", 0, MAX_NODE),
            capacity=document.integer("capacity", 1, MAX_NUMBER),
            route_cost=document.optional_integer("route_cost", 0, MAX_NUMBER) or 0,
            fleet_limit=document.optional_integer("fleet_limit", 1, MAX_NUMBER),
            stated_vehicles=document.optional_integer("stated_vehicles", 0, MAX_NODE),
            upper_bound=document.optional_integer("upper_bound", 0, MAX_NODE),
            comment=comment,
            attribution=document.text(
                "attribution", stated_attribution(comment, bool(coordinates))
            ),
            coordinates=coordinates,
        )
    except InstanceError as error:
        raise FileError(path, str(error)) from error


def format_json(path: Path | str, instance: Instance) -> str:
    """Return the JSON text, one link a line."""
    members: dict[str, object] = {"format": FORMAT, "version": VERSION}
    members["name"] = instance.name
    if instance.comment:
        members["comment"] = instance.comment
    # Older files state it in their comment, so that is its default.
    if instance.attribution != stated_attribution(
        instance.comment, bool(instance.coordinates)
    ):
        members["attribution"] = instance.attribution
    members |= {"depot": instance.depot, "capacity": instance.capacity}
    if instance.route_cost:
        members["route_cost"] = instance.route_cost
    for key in ("fleet_limit", "stated_vehicles", "upper_bound"):
        if getattr(instance, key) is not None:
            members[key] = getattr(instance, key)
    members["nodes"] = instance.nodes
    if instance.coordinates:
        members["coordinates"] = instance.coordinates
    lines = [f"{dump(key)}: {dump(value)}" for key, value in members.items()]
    links = ",\n  ".join(dump(_link_members(link)) for link in instance.links)
    lines.append(f'"links": [\n  {links}\n ]' if links else '"links": []')
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def _read_link(item: JsonObject) -> Link:
    try:
        return Link(
            tail=item.integer("tail", 0, MAX_NODE),
            head=item.integer("head", 0, MAX_NODE),
            cost=item.integer("cost", 0, MAX_NUMBER),
            one_way=item.flag("one_way", False),
            required=item.flag("required", False),
            demand=item.optional_integer("demand", 0, MAX_NUMBER) or 0,
            **{key: item.optional_integer(key, 0, MAX_NUMBER) for key in _OTHER_COSTS},
            name=item.text("name", ""),
            geometry=item.points("geometry"),
        )
    except InstanceError as error:
        raise FileError(item.path, f"{error}, {item.where}") from error


def _link_members(link: Link) -> dict[str, object]:
    members: dict[str, object] = {"tail": link.tail, "head": link.head, "cost": link.cost}
    if link.reverse_cost not in (None, link.cost):
        members["reverse_cost"] = link.reverse_cost
    for key in ("one_way", "required", "demand"):
        if getattr(link, key):
            members[key] = getattr(link, key)
    if link.required and (
        link.service_cost != link.cost or link.reverse_service_cost != link.reverse_cost
    ):
        members["service_cost"] = link.service_cost
        # Where service_cost is given, it is also the default of the other direction.
        if link.reverse_service_cost not in (None, link.service_cost):
            members["reverse_service_cost"] = link.reverse_service_cost
    for key in ("name", "geometry"):
        if getattr(link, key):
            members[key] = getattr(link, key)
    return members


JSON = Format(
    name="json",
    suffixes=(".json",),
    recognise=lambda text: text.lstrip().startswith(("{", "[")),
    read=read_json,
    write=format_json,
)
