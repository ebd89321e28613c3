"""Street maps from GeoJSON lines (RFC 7946)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from arcfleet._checks import name_hint
from arcfleet._files import decode_text, parse_json, quote, read_unpacked
from arcfleet.errors import FileError, InstanceError
from arcfleet.instance.geodesy import is_on_earth
from arcfleet.instance.own_data import own_id
from arcfleet.streets import simplify
from arcfleet.streets.osm_tags import (
    DRIVABLE_KINDS,
    OSM_COLUMNS,
    WAY_COLUMNS,
    StreetRule,
    check_rule,
    is_wanted,
    joined_names,
    main_kind,
    way_number,
)
from arcfleet.streets.speeds import LimitReader, value_of_maxspeed
from arcfleet.streets.ways import Way, map_of_ways

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from arcfleet.instance.instance import Coordinate
    from arcfleet.instance.own_data import StreetId
    from arcfleet.streets.street_map import StreetMap

#: Points that agree to this many decimals of a degree, about a centimetre, are one.
_DECIMALS = 7
#: Members of the file that hold its attribution; exports of Overpass have the last.
_ATTRIBUTIONS = ("credit", "attribution", "copyright")
_DEGREES = ("CRS84", "EPSG::4326", "EPSG:4326")


def read_geojson(
    path: Path | str,
    *,
    name: str,
    streets: StreetRule = DRIVABLE_KINDS,
    attribution: str | None = None,
    id: str | None = None,
    merge_chains: bool = True,
) -> StreetMap:
    """Read the LineString and MultiLineString features of a GeoJSON file as streets.

    Lines meet where they have a point in common. Their properties `name`, `highway`,
    `oneway` and `maxspeed` are read as on OpenStreetMap, and the number of the way from
    `way`, `osm_id`, `@id` and the like; points and polygons are passed over. Of several
    values of `highway` the most important counts, of `maxspeed` the least; several names
    are joined. A line without `highway` is a street unless a callable objects.
    """
    content = read_document(path)
    if not isinstance(content, dict) or not isinstance(content.get("type"), str):
        raise FileError(path, "expected GeoJSON, found JSON without a type")
    check_degrees(path, content)
    if attribution is None:
        stated = [content.get(member) for member in _ATTRIBUTIONS]
        attribution = next((text for text in stated if text and isinstance(text, str)), "")
    return map_of_lines(
        path,
        _lines(path, content),
        name=name,
        streets=streets,
        attribution=attribution,
        id=id,
        merge_chains=merge_chains,
    )


def map_of_lines(
    path: Path | str,
    lines: Iterable[tuple[str, dict[str, Any], Any]],
    *,
    name: str,
    streets: StreetRule,
    attribution: str,
    id: str | None = None,
    merge_chains: bool = True,
) -> StreetMap:
    """Make a map of lines, each as its place in the file, properties and coordinates."""
    check_rule(streets)
    columns_seen: dict[str, None] = {}
    numbers: dict[Coordinate, int] = {}
    ways: list[Way] = []
    has_lines = False
    limits = LimitReader()
    for where, properties, line in lines:
        has_lines = True
        tags = _tags(properties)
        if "highway" in tags or callable(streets):
            wanted = is_wanted(tags, streets)
        else:
            wanted = tags.get("area") != "yes"
        if wanted:
            points = _points(path, where, line)
            numbered = (numbers.setdefault(p, len(numbers)) for p in points)
            columns = (*WAY_COLUMNS, *OSM_COLUMNS)
            found = next((tags[one] for one in columns if one in tags), None)
            own = None if id is None else _own_id(path, where, properties, id)
            columns_seen |= dict.fromkeys(properties)
            ways.append(Way.of_tags(numbered, tags, limits, way_number(found), own))
    limits.warn(path)
    if not ways:
        found = "lines, but none of a kind that is wanted" if has_lines else "no line"
        raise FileError(path, f"expected at least one street as a line, found {found}")
    if id is not None and all(way.own_id is None for way in ways):
        raise FileError(
            path,
            f"expected ids of streets in a column {id!r}, found none: "
            f"{name_hint(id, columns_seen) if columns_seen else 'there are no columns'}",
        )
    places = {number: point for point, number in numbers.items()}
    raw = map_of_ways(ways, places, name=name, attribution=attribution)
    if not raw.streets:
        raise FileError(
            path, "expected at least one street, found only lines without extent"
        )
    return simplify.merge_chains(raw) if merge_chains else raw


def _own_id(
    path: Path | str, where: str, properties: dict[str, Any], id: str
) -> StreetId | None:
    """Return the id of a line; None where it has none."""
    value = properties.get(id, properties.get(id.lower()))  # layers have lower-case names
    if value is None or value == "" or value != value:
        return None
    try:
        return own_id(value, where)
    except InstanceError as error:
        raise FileError(path, str(error)) from error


def check_degrees(path: Path | str, content: dict[str, Any]) -> None:
    """Raise FileError for an older file in another system; RFC 7946 has only degrees."""
    system = content.get("crs")
    if system is not None and not any(known in str(system) for known in _DEGREES):
        raise FileError(
            path,
            f"expected longitude and latitude in degrees, found the system "
            f"{quote(str(system))}; convert the file to EPSG:4326",
        )


def features_of(
    path: Path | str, content: dict[str, Any]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield (geometry, properties) of every feature."""
    if content["type"] == "FeatureCollection":
        features = content.get("features")
        if not isinstance(features, list):
            raise FileError(path, "expected a list of features, found none")
    else:
        features = [content]
    for index, feature in enumerate(features):
        where = f"in feature {index}"
        if not isinstance(feature, dict):
            raise FileError(path, f"expected a feature, found {quoted(feature)} {where}")
        is_feature = feature.get("type") == "Feature"
        geometry = feature.get("geometry") if is_feature else feature
        properties = feature.get("properties") if is_feature else None
        yield geometry, properties if isinstance(properties, dict) else {}


def _lines(
    path: Path | str, content: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Yield (where, properties, coordinates) of every line."""
    for index, (geometry, properties) in enumerate(features_of(path, content)):
        where = f"in feature {index}"
        for line in _line_coordinates(path, where, geometry):
            yield where, properties, line


def _line_coordinates(path: Path | str, where: str, geometry: Any) -> Iterator[Any]:
    if geometry is None:
        return
    if not isinstance(geometry, dict):
        raise FileError(path, f"expected a geometry, found {quoted(geometry)} {where}")
    form = geometry.get("type")
    if form == "LineString":
        yield geometry.get("coordinates")
    elif form == "MultiLineString":
        yield from _list(path, where, geometry.get("coordinates"))
    elif form == "GeometryCollection":
        for member in _list(path, where, geometry.get("geometries")):
            yield from _line_coordinates(path, where, member)


def _points(path: Path | str, where: str, line: Any) -> list[Coordinate]:
    points: list[Coordinate] = []
    for position in _list(path, where, line):
        longitude, latitude = point_of(path, position, where)
        points.append((round(longitude, _DECIMALS), round(latitude, _DECIMALS)))
    if len(points) < 2:
        raise FileError(
            path, f"expected at least 2 points in a line, found {len(points)} {where}"
        )
    return points


def _list(path: Path | str, where: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise FileError(path, f"expected a list, found {quoted(value)} {where}")
    return value


def _tags(properties: dict[str, Any]) -> dict[str, str]:
    """Return properties as OpenStreetMap's tags: true is "yes", 1 and 1.0 are "1"."""
    tags = {}
    for key, value in properties.items():
        if isinstance(value, bool):
            tags[key] = "yes" if value else "no"
        elif isinstance(value, float) and value.is_integer():
            tags[key] = str(int(value))
        elif isinstance(value, str | int | float):
            tags[key] = str(value)
    # What OSMnx merged from several ways has a list of their values.
    for key, of_all in (
        ("highway", main_kind),
        ("name", joined_names),
        ("maxspeed", value_of_maxspeed),
    ):
        several = properties.get(key)
        if isinstance(several, list) and (value := of_all(several)):
            tags[key] = value
    return tags


def read_document(path: Path | str) -> object:
    """Return what a file of JSON holds, plain or packed by gzip or bzip2."""
    return parse_json(path, decode_text(path, read_unpacked(path)), "GeoJSON")


def point_of(path: Path | str, value: object, where: str = "") -> Coordinate:
    """Return the longitude and latitude of a position, or raise FileError."""
    if isinstance(value, list) and len(value) >= 2:
        longitude, latitude = value[:2]
        # Not isinstance, for true is an int as well.
        are_numbers = all(type(number) in (int, float) for number in value[:2])
        if are_numbers and is_on_earth(longitude, latitude):
            return float(longitude), float(latitude)
    place = f" {where}" if where else ""
    raise FileError(
        path,
        "expected points as [longitude, latitude] in degrees, "
        f"found {quoted(value)}{place}; convert the file to WGS 84 (EPSG:4326)",
    )


def quoted(value: object) -> str:
    """Quote a part of a document in a message."""
    return quote(json.dumps(value, ensure_ascii=False))
