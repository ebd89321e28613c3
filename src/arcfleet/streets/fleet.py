"""Vehicles, depots and facilities of a scene, by places on the map and names of streets."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from arcfleet._checks import check_whole_number, name_hint, nearest_name
from arcfleet._files import quote, read_toml
from arcfleet.errors import FileError, MapError, OptionError
from arcfleet.instance.change import fold_name
from arcfleet.instance.instance import MAX_NUMBER, Coordinate, Instance
from arcfleet.instance.operations import Facility, Vehicle
from arcfleet.streets.speeds import UNKNOWN_KIND

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from arcfleet.streets.street_map import Street

#: Lengths and times that a shift may be written in, with the measure of costs they need.
_UNITS = {
    "": ("", 1.0),
    "m": ("length", 1.0),
    "km": ("length", 1000.0),
    "s": ("time", 1.0),
    "min": ("time", 60.0),
    "h": ("time", 3600.0),
}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenePlace:
    """A facility of a scene.

    Parameters
    ----------
    place
        Longitude and latitude; the nearest junction is taken, as for depots.
    cost
        Cost of a visit, in the unit of all costs.
    name
        A name for people.
    """

    place: Coordinate
    cost: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneVehicle:
    """A vehicle type of a scene.

    Parameters
    ----------
    name
        A name for people; each type has its own.
    depot
        Longitude and latitude of the start of its routes; None means the scene's depot.
    end
        Longitude and latitude of the end of its routes; None means where they start.
    capacity
        Largest total demand of one trip; None means that of the scene.
    count
        Largest number of routes; None means any number.
    fixed_cost
        Cost of every route that is driven.
    shift
        Longest route: a number in the unit of all costs, or a text as `8 h` or `40 km`;
        None means that of the scene.
    forbidden_kinds, forbidden_names
        Kinds and names of streets that it may not use.
    """

    name: str
    depot: Coordinate | None = None
    end: Coordinate | None = None
    capacity: int | None = None
    count: int | None = None
    fixed_cost: int = 0
    shift: int | str | None = None
    forbidden_kinds: tuple[str, ...] = ()
    forbidden_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneOperations:
    """What operations ask of the plans of a scene, beyond capacity.

    Parameters
    ----------
    depots
        Places of further depots. Without vehicle types each depot gets one of its own.
    facilities
        Where vehicles empty or refill.
    empty_at_end
        Whether every vehicle visits a facility before it ends its route. Otherwise it does
        only where that shortens the way home.
    vehicles
        Vehicle types.
    shift
        Longest route: a number in the unit of all costs, or a text as `8 h` or `40 km`.
    fleet_limit
        Largest number of routes, without vehicle types and further depots.
    exact_fleet
        Whether every vehicle drives a route.
    fewest_routes
        Whether a plan with fewer routes is better whatever it costs.
    balance
        Price of uneven routes.
    compactness
        Price of every street whose nearest other street is on another route.
    """

    depots: tuple[Coordinate, ...] = ()
    facilities: tuple[ScenePlace, ...] = ()
    empty_at_end: bool = True
    vehicles: tuple[SceneVehicle, ...] = ()
    shift: int | str | None = None
    fleet_limit: int | None = None
    exact_fleet: bool = False
    fewest_routes: bool = False
    balance: float = 0.0
    compactness: int = 0

    def __post_init__(self) -> None:
        """Check the types of places and vehicles, and what only holds without these."""
        for field, wanted, example in (
            ("depots", tuple, "(longitude, latitude)"),
            ("facilities", ScenePlace, "ScenePlace(place=(longitude, latitude))"),
            ("vehicles", SceneVehicle, "SceneVehicle(name='van')"),
        ):
            given = getattr(self, field)
            items = given if isinstance(given, tuple | list) else (given,)
            if items is not given or not all(isinstance(one, wanted) for one in items):
                raise OptionError(
                    f"expected {field} as a tuple of {example}, got {given!r:.60}"
                )
        if self.depots and self.vehicles:
            raise OptionError(
                "expected further depots or vehicle types, got both: give the depot of "
                "each vehicle type"
            )
        if self.fleet_limit is not None and (self.depots or self.vehicles):
            raise OptionError(
                "expected no fleet_limit (--fleet-limit) beside vehicle types or several "
                f"depots, got {self.fleet_limit}: give the count of each vehicle type "
                "(--vehicles)"
            )

    @property
    def places(self) -> tuple[Coordinate, ...]:
        """Every place that a vehicle starts, ends or stops over at, beside the depot."""
        ends = [end for x in self.vehicles for end in (x.depot, x.end) if end is not None]
        stops = [facility.place for facility in self.facilities]
        return tuple(dict.fromkeys([*self.depots, *ends, *stops]))

    def capacity(self, usual: int) -> int:
        """Return the largest capacity of a vehicle; `usual` is that of the scene."""
        return max((x.capacity or usual for x in self.vehicles), default=usual)


def with_operations(
    instance: Instance,
    operations: SceneOperations,
    *,
    usual_capacity: int,
    junctions: Mapping[Coordinate, int],
    streets: Sequence[Street],
) -> Instance:
    """Return the instance of a scene with vehicles, facilities and prices.

    Parameters
    ----------
    instance
        Instance without them.
    operations
        What to add.
    usual_capacity
        Capacity of vehicle types that state none.
    junctions
        Junction of each place.
    streets
        Street of each link.
    """
    cost = "time" if instance.cost_unit == "seconds" else "length"
    shift = parse_shift(operations.shift, cost)
    vehicles = [
        Vehicle(
            name=one.name,
            start=instance.depot if one.depot is None else junctions[one.depot],
            end=None if one.end is None else junctions[one.end],
            capacity=usual_capacity if one.capacity is None else one.capacity,
            count=one.count,
            fixed_cost=one.fixed_cost,
            max_route_cost=shift if one.shift is None else parse_shift(one.shift, cost),
            forbidden_links=_forbidden(one, streets),
        )
        for one in operations.vehicles
    ]
    if operations.depots:
        depots = [instance.depot, *(junctions[place] for place in operations.depots)]
        vehicles = [
            Vehicle(
                name=f"depot {number}",
                start=depot,
                capacity=instance.capacity,
                max_route_cost=shift,
            )
            for number, depot in enumerate(depots, start=1)
        ]
    at: dict[int, Facility] = {}
    for one in operations.facilities:
        node = junctions[one.place]
        if node in at:
            raise MapError(
                "expected facilities at different junctions, got two at junction "
                f"{node}: leave one out"
            )
        at[node] = Facility(node=node, cost=one.cost, name=one.name)
    return replace(
        instance,
        depot=vehicles[0].start if vehicles else instance.depot,
        capacity=max((x.capacity for x in vehicles), default=instance.capacity),
        vehicles=tuple(vehicles),
        max_route_cost=None if vehicles else shift,
        fleet_limit=operations.fleet_limit,
        facilities=tuple(at.values()),
        empty_at_end=operations.empty_at_end,
        exact_fleet=operations.exact_fleet,
        fewest_routes=operations.fewest_routes,
        balance=operations.balance,
        compactness=operations.compactness,
    )


def unknown_streets(
    operations: SceneOperations, streets: Sequence[Street]
) -> Iterator[str]:
    """Yield a sentence for each kind and name that a vehicle may not use and no street has.

    Parameters
    ----------
    operations
        Vehicle types.
    streets
        Streets that are driven on.
    """
    kinds = {(street.kind or UNKNOWN_KIND).casefold() for street in streets}
    names = {fold_name(street.name): street.name for street in streets if street.name}
    for vehicle in operations.vehicles:
        for what, given, known in (
            ("of kind", vehicle.forbidden_kinds, {kind: kind for kind in sorted(kinds)}),
            ("named", vehicle.forbidden_names, names),
        ):
            for text in given:
                folded = text.casefold() if what == "of kind" else fold_name(text)
                if folded in known:
                    continue
                near = nearest_name(folded, known)
                hint = "check the spelling"
                if near is not None:
                    hint = f"did you mean {known[near]!r}?"
                elif what == "of kind":
                    hint = f"there are {', '.join(known)}"
                yield (
                    f"vehicle {vehicle.name!r} may not use streets {what} {text!r}, of "
                    f"which the scene has none: {hint}"
                )


def _forbidden(vehicle: SceneVehicle, streets: Sequence[Street]) -> tuple[int, ...]:
    """Return the links that a vehicle may not use."""
    closed_kinds = {kind.casefold() for kind in vehicle.forbidden_kinds}
    closed_names = {fold_name(name) for name in vehicle.forbidden_names}
    return tuple(
        position
        for position, street in enumerate(streets)
        if (street.kind or UNKNOWN_KIND).casefold() in closed_kinds
        or fold_name(street.name) in closed_names
    )


def parse_shift(shift: int | str | None, cost: str) -> int | None:
    """Return the longest route in the unit of all costs.

    Parameters
    ----------
    shift
        A number in that unit, or a text as `8 h`, `450 min` or `40 km`.
    cost
        Measure of costs: "length" or "time".

    Raises
    ------
    OptionError
        If it is neither, or a length where costs are times.
    """
    if shift is None:
        return None
    found = _AMOUNT.fullmatch(str(shift).strip().lower())
    number, unit = found.groups() if found else ("", "?")
    if unit not in _UNITS:
        raise OptionError(
            "expected the longest route as a number in the unit of costs, or as in '8 h', "
            f"'450 min' or '40 km', got {shift!r}"
        )
    measure, factor = _UNITS[unit]
    if measure not in ("", cost):
        raise OptionError(
            f"expected the longest route in the unit of costs, got {shift!r} where costs "
            f"are {'seconds' if cost == 'time' else 'metres'}: make the scene with "
            f"cost={measure!r} (--cost {measure})"
        )
    value = round(float(number) * factor)
    check_whole_number("the longest route", value, 1, MAX_NUMBER)
    return value


def read_vehicles(path: Path) -> tuple[SceneVehicle, ...]:
    """Read vehicle types from a TOML file with a table `[[vehicle]]` for each.

    Their keys are the fields of `SceneVehicle`; places are `[longitude, latitude]`.

    Raises
    ------
    FileError
        If the file is none, or a key or a value is not as described.
    """
    document = read_toml(path)
    tables = document.pop("vehicle", None)
    if document or not (
        isinstance(tables, list) and tables and all(isinstance(x, dict) for x in tables)
    ):
        raise FileError(path, "expected tables [[vehicle]] and nothing else")
    return tuple(_read_vehicle(path, table) for table in tables)


def _read_vehicle(path: Path, table: dict[str, Any]) -> SceneVehicle:
    known = {field.name for field in fields(SceneVehicle)}
    for key in table:
        if key not in known:
            hint = name_hint(key, sorted(known))
            raise FileError(path, f"expected a key of a vehicle, got {quote(key)}: {hint}")
    where = f"of vehicle {quote(str(table.get('name', '')))}"
    if not isinstance(table.get("name"), str):
        raise FileError(
            path, f"expected a name for each vehicle, got {table.get('name')!r:.60}"
        )
    for key in ("depot", "end"):
        if key in table:
            table[key] = _place(path, table[key], f"{key} {where}")
    for key, least in (("capacity", 1), ("count", 1), ("fixed_cost", 0)):
        if key in table:
            value = table[key]
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise FileError(
                    path,
                    f"expected {key} {where} to be a whole number of at least {least}, got "
                    f"{value!r:.60}",
                )
    if "shift" in table and (
        isinstance(table["shift"], bool) or not isinstance(table["shift"], int | str)
    ):
        raise FileError(
            path, f"expected shift {where} as a number or '8 h', got {table['shift']!r:.60}"
        )
    for key in ("forbidden_kinds", "forbidden_names"):
        if key in table:
            texts = table[key]
            if not isinstance(texts, list) or not all(isinstance(x, str) for x in texts):
                raise FileError(path, f"expected {key} {where} as a list of texts")
            table[key] = tuple(texts)
    return SceneVehicle(**table)


def _place(path: Path, value: object, what: str) -> Coordinate:
    if (
        not isinstance(value, list)
        or len(value) != 2
        or not all(isinstance(x, int | float) and not isinstance(x, bool) for x in value)
    ):
        raise FileError(
            path, f"expected {what} as [longitude, latitude], got {value!r:.60}"
        )
    return float(value[0]), float(value[1])
