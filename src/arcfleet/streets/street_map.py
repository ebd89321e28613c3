"""Real streets: junctions, and the streets between them with their geometry."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arcfleet.errors import MapError
from arcfleet.instance.geodesy import is_on_earth
from arcfleet.instance.instance import MAX_NODE, Coordinate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from arcfleet.instance.own_data import StreetId
    from arcfleet.streets.restrictions import RestrictionReport
    from arcfleet.streets.speeds import SpeedLimit

#: Goes with everything made from OpenStreetMap data.
OSM_ATTRIBUTION = "© OpenStreetMap contributors, ODbL 1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Street:
    """A piece of street between two junctions or dead ends.

    Parameters
    ----------
    tail, head
        Junctions; equal for a loop.
    metres
        Length along the geometry.
    one_way
        Whether it may be driven from tail to head only.
    kind
        Class of the street, OpenStreetMap's value of `highway`; "" if unknown.
    name
        Street name; empty if it has none.
    geometry
        The points from tail to head, both ends included; empty means a straight line.
    limit, reverse_limit
        Speed limit from tail to head, and from head to tail; None if unknown.
    ways
        Numbers of the OpenStreetMap ways that it is part of, from tail to head, with the
        metres of each; empty if unknown.
    ids
        Ids of the lines of the map's file that it is part of, as `ways`; empty unless
        `read_map` was told their column.
    """

    tail: int
    head: int
    metres: float
    one_way: bool = False
    kind: str = ""
    name: str = ""
    geometry: tuple[Coordinate, ...] = ()
    limit: SpeedLimit | None = None
    reverse_limit: SpeedLimit | None = None
    ways: tuple[tuple[int, float], ...] = ()
    ids: tuple[tuple[StreetId, float], ...] = ()

    def ends(self, reverse: bool) -> tuple[int, int]:
        """Return the junctions where driving along the street starts and ends."""
        return (self.head, self.tail) if reverse else (self.tail, self.head)

    @property
    def directions(self) -> tuple[bool, ...]:
        """The directions it may be driven in: False from tail to head, True in reverse."""
        return (False,) if self.one_way else (False, True)


@dataclass(frozen=True, slots=True, order=True)
class StreetTurn:
    """A turn from one street of a map onto another that a sign forbids.

    Parameters
    ----------
    street_in, reverse_in
        Position of the street that the vehicle comes along, and whether it drives it from
        head to tail.
    street_out, reverse_out
        The same of the street that it may not turn onto.
    """

    street_in: int
    reverse_in: bool
    street_out: int
    reverse_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StreetMap:
    """A street network.

    Parameters
    ----------
    name
        Name of the map.
    junctions
        (longitude, latitude) in degrees, WGS 84, by junction number.
    streets
        Parallel streets and loops are allowed.
    attribution
        Attribution of the data; it travels with everything made from it.
    turns
        Turns that signs forbid.
    restrictions
        Report on the turn restrictions of the file the map was read from; None where its
        format has none.
    """

    name: str
    junctions: Mapping[int, Coordinate]
    streets: tuple[Street, ...]
    attribution: str = ""
    turns: tuple[StreetTurn, ...] = ()
    restrictions: RestrictionReport | None = None

    def __post_init__(self) -> None:
        """Check that the parts fit together."""
        object.__setattr__(self, "junctions", dict(self.junctions))
        object.__setattr__(self, "streets", tuple(self.streets))
        object.__setattr__(self, "turns", tuple(self.turns))
        for junction, (longitude, latitude) in self.junctions.items():
            if not 0 <= junction <= MAX_NODE:
                raise MapError(
                    f"expected junction numbers from 0 to {MAX_NODE}, got {junction} "
                    f"in map {self.name!r}"
                )
            if not is_on_earth(longitude, latitude):
                raise MapError(
                    "expected longitude and latitude in degrees, "
                    f"got {longitude}, {latitude} at junction {junction} "
                    f"in map {self.name!r}"
                )
        for street in self.streets:
            for end in (street.tail, street.head):
                if end not in self.junctions:
                    raise MapError(
                        f"expected a known junction, got {end} "
                        f"on street {street.tail}-{street.head} in map {self.name!r}"
                    )
            if not (math.isfinite(street.metres) and street.metres >= 0):
                raise MapError(
                    f"expected a length of at least 0 m, got {street.metres} "
                    f"on street {street.tail}-{street.head} in map {self.name!r}"
                )
        for number, turn in enumerate(self.turns):
            self._check_turn(turn, f"in turn {number} of map {self.name!r}")

    def _check_turn(self, turn: StreetTurn, where: str) -> None:
        """Check that a turn is one between streets that meet, as they may be driven."""
        ends = []
        for index, reverse in (
            (turn.street_in, turn.reverse_in),
            (turn.street_out, turn.reverse_out),
        ):
            if not 0 <= index < len(self.streets):
                raise MapError(
                    f"expected a street from 0 to {len(self.streets) - 1}, "
                    f"got {index} {where}"
                )
            street = self.streets[index]
            if reverse not in street.directions:
                raise MapError(
                    "expected a direction that may be driven, got one-way street "
                    f"{street.tail}>{street.head} in reverse {where}"
                )
            ends.append(street.ends(reverse))
        if ends[0][1] != ends[1][0]:
            raise MapError(
                "expected a turn between streets that meet, got one that comes to junction "
                f"{ends[0][1]} and leaves junction {ends[1][0]} {where}"
            )

    def points(self, street: Street) -> tuple[Coordinate, ...]:
        """Return the points of a street from tail to head, at least its two ends."""
        if street.geometry:
            return street.geometry
        return self.junctions[street.tail], self.junctions[street.head]


def turns_of_kept(
    turns: Iterable[StreetTurn], kept: Iterable[int]
) -> tuple[StreetTurn, ...]:
    """Return the turns between streets that are kept, by their new positions.

    Parameters
    ----------
    turns
        Turns by the old positions.
    kept
        Old positions of the streets that are kept, in their new order.
    """
    position = {old: new for new, old in enumerate(kept)}
    return tuple(
        StreetTurn(
            position[turn.street_in],
            turn.reverse_in,
            position[turn.street_out],
            turn.reverse_out,
        )
        for turn in turns
        if turn.street_in in position and turn.street_out in position
    )
