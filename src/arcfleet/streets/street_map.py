"""Real streets: junctions, and the streets between them with their geometry."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arcfleet.errors import MapError
from arcfleet.instance.geodesy import is_on_earth
from arcfleet.instance.instance import MAX_NODE, Coordinate

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    """

    name: str
    junctions: Mapping[int, Coordinate]
    streets: tuple[Street, ...]
    attribution: str = ""

    def __post_init__(self) -> None:
        """Check that the parts fit together."""
        object.__setattr__(self, "junctions", dict(self.junctions))
        object.__setattr__(self, "streets", tuple(self.streets))
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

    def points(self, street: Street) -> tuple[Coordinate, ...]:
        """Return the points of a street from tail to head, at least its two ends."""
        if street.geometry:
            return street.geometry
        return self.junctions[street.tail], self.junctions[street.head]
