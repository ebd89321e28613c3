"""The part of a map that a scene is cut from: a box, a circle or polygons of a file."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from arcfleet._checks import needs
from arcfleet._files import quote
from arcfleet.errors import FileError, MapError
from arcfleet.instance.geodesy import is_on_earth, metres_from
from arcfleet.streets.geojson import point_of, quoted, read_document
from arcfleet.streets.tables import has_layers, parts_of, read_shapes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from shapely import Geometry

    from arcfleet.instance.instance import Coordinate


#: Of latitude; the least of all latitudes, so that an area grows by enough everywhere.
_METRES_PER_DEGREE = 110_574.0
#: Meridians meet at the pole: beyond this latitude a degree is no narrower for us.
_FARTHEST_NORTH = 89.0


class Area(Protocol):
    """A part of the earth's surface."""

    def holds(self, points: Sequence[Coordinate]) -> NDArray[np.bool_]:
        """Return for each point whether it lies inside or on the border."""

    def grown(self, metres: float) -> Area:
        """Return an area that holds what lies within a distance of this one."""

    def describe(self) -> str:
        """Return the name of the area for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """What lies between two meridians and two parallels.

    Parameters
    ----------
    west, south, east, north
        Sides in degrees. A box across the 180th meridian is refused.
    """

    west: float
    south: float
    east: float
    north: float

    def __post_init__(self) -> None:
        """Check the order of the sides."""
        _check_place(self.west, self.south, "the south-west corner of the box")
        _check_place(self.east, self.north, "the north-east corner of the box")
        if not (self.west < self.east and self.south < self.north):
            raise MapError(
                "expected a box as west < east and south < north, got west "
                f"{self.west:g}, south {self.south:g}, east {self.east:g}, "
                f"north {self.north:g}"
            )

    def holds(self, points: Sequence[Coordinate]) -> NDArray[np.bool_]:
        """Return for each point whether it lies inside or on the border."""
        longitudes, latitudes = _columns(points)
        inside: NDArray[np.bool_] = (
            (self.west <= longitudes)
            & (longitudes <= self.east)
            & (self.south <= latitudes)
            & (latitudes <= self.north)
        )
        return inside

    def grown(self, metres: float) -> Box:
        """Return the box with all sides moved outwards."""
        north = metres / _METRES_PER_DEGREE
        farthest = min(max(abs(self.south), abs(self.north)) + north, _FARTHEST_NORTH)
        east = north / math.cos(math.radians(farthest))
        return Box(
            west=max(self.west - east, -180.0),
            south=max(self.south - north, -90.0),
            east=min(self.east + east, 180.0),
            north=min(self.north + north, 90.0),
        )

    def describe(self) -> str:
        """Return the name of the area for messages."""
        return f"the box {self.west:g},{self.south:g},{self.east:g},{self.north:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Circle:
    """What lies within a distance of a centre.

    Parameters
    ----------
    longitude, latitude
        The centre, in degrees.
    metres
        The radius.
    """

    longitude: float
    latitude: float
    metres: float

    def __post_init__(self) -> None:
        """Check centre and radius."""
        _check_place(self.longitude, self.latitude, "the centre of the circle")
        if not (math.isfinite(self.metres) and self.metres > 0):
            raise MapError(f"expected a radius of more than 0 metres, got {self.metres:g}")

    def holds(self, points: Sequence[Coordinate]) -> NDArray[np.bool_]:
        """Return for each point whether it lies inside or on the border."""
        distances = metres_from((self.longitude, self.latitude), points)
        inside: NDArray[np.bool_] = distances <= self.metres
        return inside

    def grown(self, metres: float) -> Circle:
        """Return the circle with a larger radius."""
        return replace(self, metres=self.metres + metres)

    def describe(self) -> str:
        """Return the name of the area for messages."""
        return f"{self.metres:g} m around {self.longitude:g},{self.latitude:g}"


class _Shape:
    """What a shape of shapely covers."""

    def __init__(self, shape: Geometry, description: str) -> None:
        import shapely

        self._shape = shape
        self._description = description
        shapely.prepare(shape)

    def holds(self, points: Sequence[Coordinate]) -> NDArray[np.bool_]:
        """Return for each point whether it lies inside or on the border."""
        import shapely

        inside: NDArray[np.bool_] = shapely.intersects_xy(self._shape, *_columns(points))
        return inside

    def grown(self, metres: float) -> Area:
        """Return the shape with its border moved outwards, corners rounded."""
        import shapely
        from shapely.affinity import scale

        _, south, _, north = self._shape.bounds
        # In degrees of latitude, on a plane that touches at the middle.
        narrow = math.cos(math.radians(min(abs(south + north) / 2, _FARTHEST_NORTH)))
        plane = scale(self._shape, narrow, 1.0, origin=(0, 0))
        wider = plane.buffer(metres / _METRES_PER_DEGREE)
        shape = shapely.union(self._shape, scale(wider, 1 / narrow, 1.0, origin=(0, 0)))
        return _Shape(shape, f"{metres:g} m around {self._description}")

    def describe(self) -> str:
        """Return the name of the area for messages."""
        return self._description


class Polygons(_Shape):
    """What lies in one of the polygons of a file, and not in one of its holes.

    Parameters
    ----------
    path
        GeoJSON, KML, GPX, GeoPackage or Shapefile that holds polygons. Of the latter four,
        closed lines (tracks, routes) are polygons, too, and points are passed over.

    Raises
    ------
    FileError
        If the file holds anything else, or a polygon that crosses itself.
    OptionError
        If shapely is not installed.
    """

    def __init__(self, path: Path | str) -> None:
        _require_shapely()
        if has_layers(path):
            shapes = list(_layered(path))
        else:
            shapes = list(_from_geojson(path, read_document(path)))
        super().__init__(_union(path, shapes), f"the polygon of {path}")

    @classmethod
    def of(cls, document: object) -> Polygons:
        """Return what lies in the polygons of GeoJSON in memory: dicts and lists."""
        _require_shapely()
        area = cls.__new__(cls)
        shapes = list(_from_geojson("area", document))
        _Shape.__init__(area, _union("area", shapes), "the drawn polygon")
        return area


def _require_shapely() -> None:
    with needs("shapely", "an area of polygons", "maps", ", or use a box or a circle"):
        import shapely  # noqa: F401


def _union(path: Path | str, shapes: Sequence[Geometry]) -> Geometry:
    import shapely

    for shape in shapes:
        if not shape.is_valid:
            raise FileError(
                path,
                "expected polygons that do not cross themselves, "
                f"found {shapely.is_valid_reason(shape)}; draw the border anew",
            )
    return shapely.union_all(shapes)


def _from_geojson(path: Path | str, document: object) -> Iterator[Geometry]:
    import shapely

    for polygon in _polygons_of(path, document):
        rings = _array(path, polygon, "the rings of a polygon")
        border, *holes = (_ring(path, ring) for ring in rings)
        yield shapely.Polygon(border, holes)


def _layered(path: Path | str) -> Iterator[Geometry]:
    """Yield the polygons and closed lines of all layers."""
    import shapely

    found = False
    for shape in (part for row in read_shapes(path) for part in parts_of(row.shape)):
        if shape.geom_type == "Point":
            continue
        found = True
        if shape.geom_type == "Polygon":
            yield shape
        elif shape.is_closed and len(shape.coords) > 3:
            yield shapely.Polygon(shape.coords)
        else:
            raise FileError(
                path,
                "expected polygons or lines that end where they begin, found a line from "
                f"{shape.coords[0]} to {shape.coords[-1]}; close it",
            )
    if not found:
        raise FileError(path, "expected a polygon, found none; draw the area as a polygon")


def _columns(points: Sequence[Coordinate]) -> tuple[NDArray[np.float64], ...]:
    pairs = np.array(points, dtype=np.float64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _check_place(longitude: float, latitude: float, what: str) -> None:
    if not is_on_earth(longitude, latitude):
        raise MapError(
            f"expected longitude and latitude in degrees as {what}, "
            f"got {longitude:g},{latitude:g}"
            + (swap_hint(longitude, latitude) if is_on_earth(latitude, longitude) else "")
        )


def swap_hint(longitude: float, latitude: float) -> str:
    """Return the end of a message on a place whose numbers are in the wrong order."""
    return f", which looks like LAT,LON: write LON,LAT as {latitude:.8g},{longitude:.8g}"


def _polygons_of(path: Path | str, document: object) -> Iterator[object]:
    """Yield a Polygon or those of a MultiPolygon, or of features that hold nothing else."""
    members = document if isinstance(document, dict) else {}
    found = members.get("type")
    if found == "Polygon":
        yield members.get("coordinates")
    elif found == "MultiPolygon":
        yield from _array(path, members.get("coordinates"), "the polygons")
    elif found == "Feature" and members.get("geometry") is not None:
        yield from _polygons_of(path, members["geometry"])
    elif found == "FeatureCollection":
        for feature in _array(path, members.get("features"), "the features"):
            yield from _polygons_of(path, feature)
    else:
        raise FileError(
            path,
            "expected a GeoJSON Polygon or MultiPolygon, "
            f"found {quote(found) if isinstance(found, str) else 'none'}; "
            "draw the area as a polygon and save nothing else",
        )


def _array(path: Path | str, value: object, what: str) -> list[object]:
    if not isinstance(value, list) or not value:
        raise FileError(path, f"expected {what} as an array, found {quoted(value)}")
    return value


def _ring(path: Path | str, value: object) -> list[Coordinate]:
    ring = [point_of(path, point) for point in _array(path, value, "a ring of points")]
    if len(ring) < 4 or ring[0] != ring[-1]:
        raise FileError(
            path,
            "expected rings of at least 4 points that end where they begin, "
            f"found one of {len(ring)} points from {ring[0]} to {ring[-1]}",
        )
    return ring
