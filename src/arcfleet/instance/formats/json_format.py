"""Our own JSON, which holds everything an Instance has.

Members that have their default value are left out; `reverse_cost`, `service_cost` and
`reverse_service_cost` of a link default as they do in `Link`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from arcfleet.errors import FileError, InstanceError
from arcfleet.instance.formats.format import Format
from arcfleet.instance.formats.json_operations import (
    has_operations,
    read_operations,
    row_members,
    single_members,
)
from arcfleet.instance.formats.strict_json import JsonObject, dump, open_document
from arcfleet.instance.instance import (
    COST_UNITS,
    MAX_NODE,
    MAX_NUMBER,
    MIN_NODE,
    U_TURNS,
    Instance,
    Link,
    Turn,
    stated_attribution,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FORMAT = "arcfleet-instance"
#: Version 2 brought turn rules, the unit of costs, and metres and seconds of links; version
#: 3 what operations ask (vehicles, facilities, ...) and node numbers below 0; version 4
#: kind, ways and speeds of links; version 5 ids and attributes of links. A file is written
#: in the oldest version that holds it, which older programs read.
VERSION = 5

_INSTANCE_KEYS = frozenset(Instance.__dataclass_fields__)
_LINK_KEYS = frozenset(Link.__dataclass_fields__)
#: Members of a link since version 2, since version 4, and since version 5.
_SINCE_2 = {"metres", "seconds", "reverse_seconds", "service_seconds"}
_SINCE_4 = {"kind", "ways", "speed_kmh", "reverse_speed_kmh"}
_SINCE_5 = {"ids", "attributes"}
_OTHER_NUMBERS = (
    *("reverse_cost", "service_cost", "reverse_service_cost"),
    *("metres", "seconds", "reverse_seconds", "service_seconds"),
)


def read_json(path: Path | str, text: str) -> Instance:
    """Read the JSON text of `path`."""
    document = open_document(path, text, FORMAT, VERSION, _INSTANCE_KEYS)
    links = tuple(_read_link(item) for item in document.objects("links", _LINK_KEYS))
    try:
        comment = document.text("comment", "")
        coordinates = document.points("coordinates")
        operations = read_operations(document)
        vehicles = operations["vehicles"]
        return Instance(
            name=document.text("name"),
            nodes=document.integers("nodes", MIN_NODE, MAX_NODE),
            links=links,
            # Vehicle types state both.
            depot=(
                vehicles[0].start
                if vehicles and "depot" not in document
                else document.integer("depot", MIN_NODE, MAX_NODE)
            ),
            capacity=(
                max(vehicle.capacity for vehicle in vehicles)
                if vehicles and "capacity" not in document
                else document.integer("capacity", 1, MAX_NUMBER)
            ),
            route_cost=document.optional_integer("route_cost", 0, MAX_NUMBER) or 0,
            fleet_limit=document.optional_integer("fleet_limit", 1, MAX_NUMBER),
            stated_vehicles=document.optional_integer("stated_vehicles", 0, MAX_NODE),
            upper_bound=document.optional_integer("upper_bound", 0, MAX_NODE),
            comment=comment,
            attribution=document.text(
                "attribution", stated_attribution(comment, bool(coordinates))
            ),
            coordinates=coordinates,
            turns=tuple(
                _read_turn(document, place, row)
                for place, row in document.integer_rows("turns", 0, MAX_NUMBER)
            ),
            u_turns=document.choice("u_turns", U_TURNS, "allowed"),
            u_turn_penalty=document.optional_integer("u_turn_penalty", 0, MAX_NUMBER) or 0,
            cost_unit=document.choice("cost_unit", COST_UNITS, ""),
            **operations,
        )
    except InstanceError as error:
        raise FileError(path, str(error)) from error


def format_json(path: Path | str, instance: Instance) -> str:
    """Return the JSON text, one link a line."""
    links = [_link_members(link) for link in instance.links]
    members: dict[str, object] = {"format": FORMAT, "version": _version(instance, links)}
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
    for key, usual in (("cost_unit", ""), ("u_turns", "allowed"), ("u_turn_penalty", 0)):
        if getattr(instance, key) != usual:
            members[key] = getattr(instance, key)
    members |= single_members(instance)
    members["nodes"] = instance.nodes
    if instance.coordinates:
        members["coordinates"] = instance.coordinates
    lines = [f"{dump(key)}: {dump(value)}" for key, value in members.items()]
    lines.append(_rows("links", links))
    if instance.turns:
        lines.append(_rows("turns", [_turn_members(turn) for turn in instance.turns]))
    lines += [_rows(key, items) for key, items in row_members(instance).items()]
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def _rows(key: str, items: Sequence[object]) -> str:
    """Return a member that is an array, one item a line."""
    rows = ",\n  ".join(dump(item) for item in items)
    return f"{dump(key)}: [\n  {rows}\n ]" if rows else f"{dump(key)}: []"


def _version(instance: Instance, links: Sequence[dict[str, object]]) -> int:
    """Return the oldest version that holds the instance."""
    for version, members in ((5, _SINCE_5), (4, _SINCE_4)):
        if any(not members.isdisjoint(link) for link in links):
            return version
    if has_operations(instance) or any(node < 0 for node in instance.nodes):
        return 3
    if (
        instance.has_turn_rules
        or instance.cost_unit != ""
        or any(not _SINCE_2.isdisjoint(link) for link in links)
    ):
        return 2
    return 1


def _turn_members(turn: Turn) -> list[int]:
    ways = [turn.link_in, int(turn.reverse_in), turn.link_out, int(turn.reverse_out)]
    return ways if turn.penalty is None else [*ways, turn.penalty]


def _read_turn(document: JsonObject, place: str, row: tuple[int, ...]) -> Turn:
    if len(row) not in (4, 5):
        expected = (
            "a turn as [link in, reverse in, link out, reverse out], "
            "with a penalty as fifth number unless it is forbidden,"
        )
        document.refuse(place, expected, list(row))
    for index in (1, 3):
        if row[index] not in (0, 1):
            document.refuse(f"{place}[{index}]", "1 for reverse or 0", row[index])
    return Turn(
        link_in=row[0],
        reverse_in=row[1] == 1,
        link_out=row[2],
        reverse_out=row[3] == 1,
        penalty=row[4] if len(row) == 5 else None,
    )


def _read_link(item: JsonObject) -> Link:
    try:
        return Link(
            tail=item.integer("tail", MIN_NODE, MAX_NODE),
            head=item.integer("head", MIN_NODE, MAX_NODE),
            cost=item.integer("cost", 0, MAX_NUMBER),
            one_way=item.flag("one_way", False),
            required=item.flag("required", False),
            demand=item.optional_integer("demand", 0, MAX_NUMBER) or 0,
            **{key: item.optional_integer(key, 0, MAX_NUMBER) for key in _OTHER_NUMBERS},
            name=item.text("name", ""),
            geometry=item.points("geometry"),
            kind=item.text("kind", ""),
            ways=item.integers("ways", MIN_NODE, MAX_NODE, optional=True),
            speed_kmh=item.optional_number("speed_kmh"),
            reverse_speed_kmh=item.optional_number("reverse_speed_kmh"),
            ids=item.ids("ids"),
            attributes=item.scalars("attributes"),
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
    for key in ("metres", "seconds", "service_seconds"):
        if getattr(link, key) is not None:
            members[key] = getattr(link, key)
    if link.reverse_seconds not in (None, link.seconds):
        members["reverse_seconds"] = link.reverse_seconds
    for key in ("kind", "ways"):
        if getattr(link, key):
            members[key] = getattr(link, key)
    if link.speed_kmh is not None:
        members["speed_kmh"] = link.speed_kmh
    if link.reverse_speed_kmh not in (None, link.speed_kmh):
        members["reverse_speed_kmh"] = link.reverse_speed_kmh
    for key in ("ids", "attributes"):
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
