"""Reads the polygons of a GeoJSON file; anything else in it is refused, not passed over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arcfleet.errors import FileError
from arcfleet.instance.plain_text import quote
from arcfleet.streets.geojson_file import point_of, quoted, read_document

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from arcfleet.instance.instance import Coordinate

#: The outer border, then the holes.
Rings = list[list["Coordinate"]]


def read_polygons(path: Path | str) -> list[Rings]:
    """Read a Polygon or MultiPolygon, or features that hold nothing else.

    Raises
    ------
    FileError
        If there is anything else in the file.
    """
    return [
        [_ring(path, ring) for ring in _array(path, polygon, "the rings of a polygon")]
        for polygon in _polygons_of(path, read_document(path))
    ]


def _polygons_of(path: Path | str, document: object) -> Iterator[object]:
    members = document if isinstance(document, dict) else {}
    kind = members.get("type")
    if kind == "Polygon":
        yield members.get("coordinates")
    elif kind == "MultiPolygon":
        yield from _array(path, members.get("coordinates"), "the polygons")
    elif kind == "Feature" and members.get("geometry") is not None:
        yield from _polygons_of(path, members["geometry"])
    elif kind == "FeatureCollection":
        for feature in _array(path, members.get("features"), "the features"):
            yield from _polygons_of(path, feature)
    else:
        raise FileError(
            path,
            "expected a GeoJSON Polygon or MultiPolygon, "
            f"found {quote(kind) if isinstance(kind, str) else 'none'}; "
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
