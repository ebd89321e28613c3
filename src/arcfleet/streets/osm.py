"""Street maps from OpenStreetMap extracts: PBF or XML, plain or packed."""

from __future__ import annotations

import mmap
import warnings
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet._checks import needs
from arcfleet._files import check_unpacked_size, quote
from arcfleet.errors import FileError, FormatWarning, OptionError
from arcfleet.streets import simplify
from arcfleet.streets.osm_tags import DRIVABLE_KINDS, StreetRule, check_rule, is_wanted
from arcfleet.streets.restrictions import (
    DEFAULT_VEHICLE,
    Relation,
    check_vehicle,
    forbidden_turns,
)
from arcfleet.streets.speeds import LimitReader
from arcfleet.streets.street_map import OSM_ATTRIBUTION
from arcfleet.streets.ways import Way, cut_ways

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
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
    vehicle: str = DEFAULT_VEHICLE,
    id: str | None = None,
    merge_chains: bool = True,
) -> StreetMap:
    """Read the streets of an OpenStreetMap extract and its turn restrictions.

    Restrictions that contradict each other are a FormatWarning.
    """
    if file_format not in _FORMATS:
        raise OptionError(f"expected one of {', '.join(_FORMATS)}, got {file_format!r}")
    check_rule(streets)
    check_vehicle(vehicle)
    if file_format.endswith((".gz", ".bz2")):
        check_unpacked_size(path)
    ways = _read_ways(path, file_format, streets, id)
    wanted = {point for way in ways for point in way.points}
    # A pass of its own, so that the order of nodes and ways in the file does not matter.
    places = {
        node.id: (node.location.lon, node.location.lat)
        for node in _objects(path, file_format, "nodes", None, iter)
        if node.id in wanted and node.location.valid()
    }
    if not ways:
        raise FileError(
            path,
            "expected at least one street, found no way with a highway tag that is wanted",
        )
    if id is not None and all(way.own_id is None for way in ways):
        raise FileError(path, f"expected ids of streets in a tag {id!r}, found none")
    new_numbers = _numbers_for_negative(ways, places)
    if new_numbers:
        ways, places = _renumbered(ways, places, new_numbers)
    raw, streets_of = cut_ways(ways, places, name=name, attribution=attribution)
    if not raw.streets:
        raise FileError(
            path,
            "expected at least one street, found no way with two points in the file; "
            "extract it with complete ways",
        )
    turns, report, contradictions = forbidden_turns(
        _read_restrictions(path, file_format, new_numbers),
        raw,
        {
            way.number: (way, streets_of.get(index, ()))
            for index, way in enumerate(ways)
            if way.number is not None
        },
        vehicle,
    )
    if contradictions:
        more = f", and {len(contradictions) - 1} more" if len(contradictions) > 1 else ""
        warnings.warn(
            f"{path}: expected turn restrictions that agree, found {contradictions[0]}"
            f"{more}; none of them is obeyed, correct them on OpenStreetMap",
            FormatWarning,
            stacklevel=2,
        )
    raw = replace(raw, turns=turns, restrictions=report)
    return simplify.merge_chains(raw) if merge_chains else raw


def _read_restrictions(
    path: Path | str, file_format: str, new_numbers: dict[int, int]
) -> Iterator[Relation]:
    def relations(found: Iterable[Any]) -> Iterator[Relation]:
        for relation in found:
            yield Relation(
                relation.id,
                {tag.k: tag.v for tag in relation.tags},
                tuple(
                    (
                        m.type,
                        new_numbers.get(m.ref, m.ref) if m.type == "n" else m.ref,
                        m.role,
                    )
                    for m in relation.members
                ),
            )

    tag = ("type", "restriction")
    yield from _objects(path, file_format, "relations", tag, relations)


def _read_ways(
    path: Path | str, file_format: str, rule: StreetRule, id: str | None = None
) -> list[Way]:
    """Return the ways that are wanted."""
    ways = []
    limits = LimitReader()
    # Only a callable may want ways without the tag.
    tag = None if callable(rule) else "highway"
    for tags, way in _objects(path, file_format, "ways", tag, _with_tags):
        if is_wanted(tags, rule):
            points = (node.ref for node in way.nodes)
            own = (tags.get(id) or None) if id is not None else None
            ways.append(Way.of_tags(points, tags, limits, way.id, own))
    limits.warn(path)
    return ways


def _with_tags(found: Iterable[Any]) -> Iterator[tuple[dict[str, str], Any]]:
    for thing in found:
        yield {tag.k: tag.v for tag in thing.tags}, thing


def _objects(
    path: Path | str,
    file_format: str,
    what: str,
    tag: str | tuple[str, str] | None,
    texts_of: Callable[[Iterable[Any]], Iterator[Any]],
) -> Iterator[Any]:
    """Yield the nodes, ways or relations of a file, only those with a tag if it is given.

    The tag is a key, or a key and its value. `texts_of` takes the texts out of what is
    found: they are decoded only then, and a broken one is the file's fault.
    """
    with needs("osmium", "reading OpenStreetMap files", "maps"):
        import osmium
    kinds = osmium.osm
    kind = {"nodes": kinds.NODE, "ways": kinds.WAY, "relations": kinds.RELATION}[what]
    try:
        with _opened(path, file_format) as file:
            processor = osmium.FileProcessor(file, kind)
            if isinstance(tag, str):
                processor.with_filter(osmium.filter.KeyFilter(tag))
            elif tag is not None:
                processor.with_filter(osmium.filter.TagFilter(tag))
            yield from texts_of(processor)
    # ValueError: a broken text, coordinate or number.
    except (RuntimeError, OSError, ValueError, osmium.InvalidLocationError) as error:
        said = quote(" ".join(str(error).split()))
        form = "PBF" if file_format == "pbf" else "XML"
        raise FileError(
            path,
            f"expected an OpenStreetMap extract ({form}), "
            f"found a cut or broken one ({said}); fetch it again",
        ) from error


@contextmanager
def _opened(path: Path | str, file_format: str) -> Iterator[Any]:
    """Open a file for the osmium library.

    A broken PBF file that the library opens itself stays open for good: it gets the bytes.
    """
    import osmium

    if file_format != "pbf" or not Path(path).stat().st_size:
        yield osmium.io.File(str(path), file_format)
        return
    with Path(path).open("rb") as stream:
        # Not closed by hand: the library does not say how long it looks at the bytes.
        data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        yield osmium.io.FileBuffer(data, file_format)
        del data


def _numbers_for_negative(ways: list[Way], places: dict[int, Coordinate]) -> dict[int, int]:
    """Return new numbers for points below 0, which editors give to what is not uploaded."""
    if min(places, default=0) >= 0:
        return {}
    # Beyond those that ways name too: a point that the extract lacks stays without a place.
    # Just beyond, so that whoever adds junctions later finds numbers left.
    first = max(0, *(point for way in ways for point in way.points)) + 1
    negative = sorted(point for point in places if point < 0)
    return {point: first + index for index, point in enumerate(negative)}


def _renumbered(
    ways: list[Way], places: dict[int, Coordinate], numbers: dict[int, int]
) -> tuple[list[Way], dict[int, Coordinate]]:
    return [
        replace(way, points=tuple(numbers.get(point, point) for point in way.points))
        for way in ways
    ], {numbers.get(point, point): place for point, place in places.items()}
