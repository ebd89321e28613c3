"""Street maps from OpenStreetMap extracts: PBF or XML, plain or packed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from arcfleet._checks import needs
from arcfleet.errors import FileError, OptionError
from arcfleet.streets.osm_tags import DRIVABLE_KINDS, StreetRule, check_rule, is_wanted
from arcfleet.streets.simplify import merge_chains
from arcfleet.streets.speeds import LimitReader
from arcfleet.streets.street_map import OSM_ATTRIBUTION
from arcfleet.streets.ways import Way, map_of_ways

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from arcfleet.instance.instance import Coordinate
    from arcfleet.streets.street_map import StreetMap

#: How to read the file, in the words of the osmium library.
_FORMATS = ("pbf", "osm", "osm.gz", "osm.bz2")


def read_osm(
    path: Path | str,
    file_format: str,
    *,
    name: str,
    streets: StreetRule = DRIVABLE_KINDS,
    attribution: str = OSM_ATTRIBUTION,
) -> StreetMap:
    """Read the streets of an OpenStreetMap extract."""
    if file_format not in _FORMATS:
        raise OptionError(f"expected one of {', '.join(_FORMATS)}, got {file_format!r}")
    check_rule(streets)
    ways = _read_ways(path, file_format, streets)
    wanted = {point for way in ways for point in way.points}
    # A pass of its own, so that the order of nodes and ways in the file does not matter.
    places = {
        node.id: (node.location.lon, node.location.lat)
        for node in _objects(path, file_format, "nodes", None)
        if node.id in wanted and node.location.valid()
    }
    if not ways:
        raise FileError(
            path,
            "expected at least one street, found no way with a highway tag that is wanted",
        )
    raw = map_of_ways(*_without_negative(ways, places), name=name, attribution=attribution)
    if not raw.streets:
        raise FileError(
            path,
            "expected at least one street, found no way with two points in the file; "
            "extract it with complete ways",
        )
    return merge_chains(raw)


def _read_ways(path: Path | str, file_format: str, rule: StreetRule) -> list[Way]:
    ways = []
    limits = LimitReader()
    # Only a callable may want ways without the tag.
    for way in _objects(path, file_format, "ways", None if callable(rule) else "highway"):
        tags = {tag.k: tag.v for tag in way.tags}
        if is_wanted(tags, rule):
            ways.append(Way.of_tags((node.ref for node in way.nodes), tags, limits))
    limits.warn(path)
    return ways


def _objects(
    path: Path | str, file_format: str, what: str, key: str | None
) -> Iterator[Any]:
    """Yield the nodes or ways of a file, only those with the tag `key` if it is given."""
    with needs("osmium", "reading OpenStreetMap files", "maps"):
        import osmium
    try:
        processor = osmium.FileProcessor(
            osmium.io.File(str(path), file_format),
            osmium.osm.WAY if what == "ways" else osmium.osm.NODE,
        )
        if key is not None:
            processor.with_filter(osmium.filter.KeyFilter(key))
        yield from processor
    except (RuntimeError, OSError) as error:
        said = " ".join(str(error).split())
        form = "PBF" if file_format == "pbf" else "XML"
        raise FileError(
            path,
            f"expected an OpenStreetMap extract ({form}), "
            f"found a cut or broken one ({said}); fetch it again",
        ) from error


def _without_negative(
    ways: list[Way], places: dict[int, Coordinate]
) -> tuple[list[Way], dict[int, Coordinate]]:
    """Renumber points below 0, which editors give to what they have not uploaded yet."""
    if min(places, default=0) >= 0:
        return ways, places
    # Beyond those that ways name too: a point that the extract lacks stays without a place.
    # Just beyond, so that whoever adds junctions later finds numbers left.
    first = max(0, *(point for way in ways for point in way.points)) + 1
    negative = sorted(point for point in places if point < 0)
    numbers = {point: first + index for index, point in enumerate(negative)}
    return [
        replace(way, points=tuple(numbers.get(point, point) for point in way.points))
        for way in ways
    ], {numbers.get(point, point): place for point, place in places.items()}
