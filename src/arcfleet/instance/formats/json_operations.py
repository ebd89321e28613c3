"""Vehicles, facilities, pins, locks and the shape of plans in our own JSON."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from arcfleet.errors import FileError, InstanceError
from arcfleet.instance.instance import MAX_NODE, MAX_NUMBER, MIN_NODE, Instance
from arcfleet.instance.operations import (
    ROUTE_LIMITS,
    Assignment,
    Facility,
    Lock,
    Vehicle,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from arcfleet.instance.formats.strict_json import JsonObject

    Item = TypeVar("Item")

#: Members of an instance of one line each, and members that are arrays of one item a line.
SINGLE_FIELDS = (
    *ROUTE_LIMITS,
    *("empty_at_end", "exact_fleet", "fewest_routes", "balance"),
    *("compactness", "change_price"),
)
ROW_FIELDS = ("vehicles", "facilities", "pins", "locks", "previous")

_DEFAULTS = {x.name: x.default for x in fields(Instance)}
_VEHICLE_KEYS = frozenset(Vehicle.__dataclass_fields__)
_FACILITY_KEYS = frozenset(Facility.__dataclass_fields__)
_LOCK_KEYS = frozenset(Lock.__dataclass_fields__)
_SERVICE_KEYS = frozenset(("link", "reverse"))


def read_operations(document: JsonObject) -> dict[str, Any]:
    """Read arguments of `Instance` beyond the classical problem; defaults if left out."""
    return dict(
        **_limits(document),
        vehicles=tuple(_read(document, "vehicles", _VEHICLE_KEYS, _vehicle)),
        facilities=tuple(_read(document, "facilities", _FACILITY_KEYS, _facility)),
        empty_at_end=document.flag("empty_at_end", True),
        exact_fleet=document.flag("exact_fleet", False),
        fewest_routes=document.flag("fewest_routes", False),
        balance=document.number("balance") if "balance" in document else 0.0,
        compactness=document.optional_integer("compactness", 0, MAX_NUMBER) or 0,
        pins=tuple(_assignments(document, "pins")),
        locks=tuple(_read(document, "locks", _LOCK_KEYS, _lock)),
        previous=tuple(_assignments(document, "previous")),
        change_price=document.optional_integer("change_price", 0, MAX_NUMBER) or 0,
    )


def has_operations(instance: Instance) -> bool:
    """Return whether any of the members here has to be written."""
    return any(
        getattr(instance, name) != _DEFAULTS[name] for name in (*SINGLE_FIELDS, *ROW_FIELDS)
    )


def single_members(instance: Instance) -> dict[str, object]:
    """Return the members that are no arrays, without those at their defaults."""
    named = ((name, getattr(instance, name)) for name in SINGLE_FIELDS)
    return {name: value for name, value in named if value != _DEFAULTS[name]}


def row_members(instance: Instance) -> dict[str, list[object]]:
    """Return the members that are arrays, without empty ones."""
    rows: dict[str, list[object]] = {
        "vehicles": [_vehicle_members(vehicle) for vehicle in instance.vehicles],
        "facilities": [_facility_members(facility) for facility in instance.facilities],
        "pins": [[pin.link, pin.route] for pin in instance.pins],
        "locks": [_lock_members(lock) for lock in instance.locks],
        "previous": [[item.link, item.route] for item in instance.previous],
    }
    return {name: items for name, items in rows.items() if items}


def _read(
    document: JsonObject,
    key: str,
    keys: frozenset[str],
    read: Callable[[JsonObject], Item],
) -> Iterator[Item]:
    for item in document.objects(key, keys, optional=True):
        try:
            yield read(item)
        except InstanceError as error:
            raise FileError(item.path, f"{error}, {item.where}") from error


def _limits(item: JsonObject) -> dict[str, int | None]:
    return {key: item.optional_integer(key, 1, MAX_NUMBER) for key in ROUTE_LIMITS}


def _vehicle(item: JsonObject) -> Vehicle:
    return Vehicle(
        name=item.text("name"),
        start=item.integer("start", MIN_NODE, MAX_NODE),
        end=item.optional_integer("end", MIN_NODE, MAX_NODE),
        capacity=item.integer("capacity", 1, MAX_NUMBER),
        count=item.optional_integer("count", 1, MAX_NUMBER),
        fixed_cost=item.optional_integer("fixed_cost", 0, MAX_NUMBER) or 0,
        forbidden_links=item.integers("forbidden_links", 0, MAX_NUMBER, optional=True),
        **_limits(item),
    )


def _vehicle_members(vehicle: Vehicle) -> dict[str, object]:
    members: dict[str, object] = {"name": vehicle.name, "start": vehicle.start}
    if vehicle.end != vehicle.start:
        members["end"] = vehicle.end
    members["capacity"] = vehicle.capacity
    for key in ("count", "fixed_cost", *ROUTE_LIMITS, "forbidden_links"):
        if getattr(vehicle, key):
            members[key] = getattr(vehicle, key)
    return members


def _facility(item: JsonObject) -> Facility:
    return Facility(
        node=item.integer("node", MIN_NODE, MAX_NODE),
        cost=item.optional_integer("cost", 0, MAX_NUMBER) or 0,
        name=item.text("name", ""),
    )


def _facility_members(facility: Facility) -> dict[str, object]:
    members: dict[str, object] = {"node": facility.node}
    for key in ("cost", "name"):
        if getattr(facility, key):
            members[key] = getattr(facility, key)
    return members


def _lock(item: JsonObject) -> Lock:
    return Lock(
        route=item.integer("route", 1, MAX_NUMBER),
        services=tuple(
            (service.integer("link", 0, MAX_NUMBER), service.flag("reverse"))
            for service in item.objects("services", _SERVICE_KEYS)
        ),
        vehicle=item.optional_integer("vehicle", 0, MAX_NUMBER) or 0,
    )


def _lock_members(lock: Lock) -> dict[str, object]:
    members: dict[str, object] = {"route": lock.route}
    if lock.vehicle:
        members["vehicle"] = lock.vehicle
    members["services"] = [
        {"link": link, "reverse": reverse} for link, reverse in lock.services
    ]
    return members


def _assignments(document: JsonObject, key: str) -> Iterator[Assignment]:
    for place, row in document.integer_rows(key, 0, MAX_NUMBER):
        if len(row) != 2 or row[1] == 0:
            document.refuse(place, "[link, route] with routes counted from 1", list(row))
        yield Assignment(*row)
