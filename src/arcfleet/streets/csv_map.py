"""Street maps as a pair of CSV files: one of junctions, one of streets.

`<map>.nodes.csv` has the columns id,lon,lat and `<map>.edges.csv` the columns
u,v,length_m,oneway,highway,name,geometry, with the geometry as `lon lat;lon lat;...` from
u to v, or empty for a straight line. Both may be packed by gzip (`.gz`).
"""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet._files import decode_text, is_file, quote, read_unpacked, whole_number
from arcfleet.errors import FileError
from arcfleet.instance.geodesy import is_on_earth
from arcfleet.instance.instance import MAX_NODE
from arcfleet.streets.osm_tags import check_rule, is_wanted
from arcfleet.streets.street_map import (
    OSM_ATTRIBUTION,
    Street,
    StreetMap,
    turns_of_kept,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from arcfleet.instance.instance import Coordinate
    from arcfleet.streets.osm_tags import StreetRule

_NODE_COLUMNS = ["id", "lon", "lat"]
_EDGE_COLUMNS = ["u", "v", "length_m", "oneway", "highway", "name", "geometry"]
_PART = re.compile(r"\.(nodes|edges)\.csv(\.gz)?$", re.IGNORECASE)
_PACKINGS = (".gz", "")
#: Geometry is rounded more coarsely than junctions; farther off, it is another street's.
_END_TOLERANCE = 1e-4  # degrees; about 10 m


def csv_pair(path: Path | str) -> tuple[Path, Path] | None:
    """Return the files of junctions and streets that `path` stands for; None if none do.

    `path` is either file of the pair, or what their names share: `beijing_5ring` for
    `beijing_5ring.nodes.csv.gz` and `beijing_5ring.edges.csv.gz`.
    """
    path = Path(path)
    named = _PART.search(path.name)
    prefix = path.with_name(path.name[: named.start()]) if named else path
    if not prefix.name:
        return None
    if named and not is_file(path):
        raise FileError(path, "expected a file, found nothing of that name")
    nodes, edges = _existing(prefix, "nodes"), _existing(prefix, "edges")
    # The file that was named is read even where it lies there packed otherwise as well.
    if named and named[1].lower() == "nodes":
        nodes = path
    elif named:
        edges = path
    if nodes is not None and edges is not None:
        return nodes, edges
    found = nodes or edges
    if found is None:
        return None
    missing = "edges" if edges is None else "nodes"
    raise FileError(
        found,
        f"expected its partner {prefix.name}.{missing}.csv.gz beside it, found none; "
        "a map is a pair of files",
    )


def read_csv_map(
    path: Path | str,
    *,
    name: str | None = None,
    streets: StreetRule | None = None,
    attribution: str = OSM_ATTRIBUTION,
) -> StreetMap:
    """Read a street map from a pair of CSV files; `streets` of None reads all."""
    if streets is not None:
        check_rule(streets)
    pair = csv_pair(path)
    if pair is None:
        raise FileError(
            path,
            f"expected {Path(path).name}.nodes.csv.gz and {Path(path).name}.edges.csv.gz, "
            "found neither",
        )
    nodes, edges = pair
    junctions = _read_junctions(nodes)
    found = _read_streets(edges, junctions)
    if not found:
        raise FileError(edges, "expected at least one street, found none")
    if name is None:
        name = _PART.sub("", nodes.name)
    street_map = StreetMap(
        name=name, junctions=junctions, streets=found, attribution=attribution
    )
    return street_map if streets is None else _only(street_map, streets, edges)


def _only(street_map: StreetMap, rule: StreetRule, path: Path) -> StreetMap:
    found = enumerate(street_map.streets)
    kept = [index for index, street in found if is_wanted(_tags(street), rule)]
    streets = tuple(street_map.streets[index] for index in kept)
    if not streets:
        raise FileError(
            path,
            "expected at least one street of a kind that is wanted, "
            f"found none among {len(street_map.streets)}",
        )
    ends = {end for street in streets for end in (street.tail, street.head)}
    junctions = {end: place for end, place in street_map.junctions.items() if end in ends}
    turns = turns_of_kept(street_map.turns, kept)
    return replace(street_map, junctions=junctions, streets=streets, turns=turns)


def _tags(street: Street) -> dict[str, str]:
    """Return a street's tags as OpenStreetMap has them: those that are known."""
    tags = {"highway": street.kind, "name": street.name}
    known = {key: value for key, value in tags.items() if value}
    return known | {"oneway": "yes" if street.one_way else "no"}


def _existing(prefix: Path, part: str) -> Path | None:
    candidates = (
        prefix.with_name(f"{prefix.name}.{part}.csv{packing}") for packing in _PACKINGS
    )
    return next((found for found in candidates if is_file(found)), None)


def _rows(path: Path, columns: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, row) after the row of column names."""
    text = decode_text(path, read_unpacked(path))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    width = len(columns)
    try:
        header = next(reader, [])
        if header != columns:
            raise _wrong(path, 1, f"the columns {','.join(columns)}", ",".join(header))
        for row in reader:
            if len(row) != width:
                if not row:
                    continue
                raise FileError(
                    path,
                    f"expected {width} columns, found {len(row)} in {quote(','.join(row))}",
                    reader.line_num,
                )
            yield reader.line_num, row
    except csv.Error as error:
        raise FileError(
            path, f"expected CSV, found a row that is not ({error})", reader.line_num
        ) from error


def _wrong(path: Path, line: int, expected: str, found: str) -> FileError:
    return FileError(path, f"expected {expected}, found {quote(found)}", line)


def _read_junctions(path: Path) -> dict[int, Coordinate]:
    junctions: dict[int, Coordinate] = {}
    for line, (identity, longitude, latitude) in _rows(path, _NODE_COLUMNS):
        junction = whole_number(identity, 0, MAX_NODE)
        if junction is None:
            what = f"a junction number from 0 to {MAX_NODE}"
            raise _wrong(path, line, what, identity)
        if junction in junctions:
            raise FileError(
                path, f"expected every junction once, found {junction} again", line
            )
        junctions[junction] = _coordinate(path, line, longitude, latitude)
    return junctions


def _read_streets(path: Path, junctions: Mapping[int, Coordinate]) -> tuple[Street, ...]:
    streets = []
    for line, (u, v, length, oneway, kind, name, geometry) in _rows(path, _EDGE_COLUMNS):
        tail = _junction(path, line, u, junctions)
        head = _junction(path, line, v, junctions)
        if oneway not in ("0", "1"):
            raise _wrong(path, line, "oneway 0 or 1", oneway)
        streets.append(
            Street(
                tail=tail,
                head=head,
                metres=_metres(path, line, length),
                one_way=oneway == "1",
                kind=kind,
                name=name,
                geometry=_line_of(path, line, geometry, junctions[tail], junctions[head]),
            )
        )
    return tuple(streets)


def _junction(path: Path, line: int, text: str, junctions: Mapping[int, Coordinate]) -> int:
    junction = whole_number(text, 0, MAX_NODE)
    if junction is None or junction not in junctions:
        raise _wrong(path, line, "a junction of the nodes file", text)
    return junction


def _metres(path: Path, line: int, text: str) -> float:
    try:
        metres = float(text)
    except ValueError:
        metres = math.nan
    if not (math.isfinite(metres) and metres >= 0):
        raise _wrong(path, line, "a length of at least 0 m", text)
    return metres


def _line_of(
    path: Path, line: int, text: str, tail: Coordinate, head: Coordinate
) -> tuple[Coordinate, ...]:
    if not text:
        return ()
    points = []
    for part in text.split(";"):
        numbers = part.split()
        if len(numbers) != 2:
            raise _wrong(path, line, "points as `lon lat`", part)
        points.append(_coordinate(path, line, *numbers))
    if len(points) < 2:
        raise FileError(path, "expected at least 2 points, found 1", line)
    for given, end, side in ((points[0], tail, "first"), (points[-1], head, "last")):
        if max(abs(given[0] - end[0]), abs(given[1] - end[1])) > _END_TOLERANCE:
            raise FileError(
                path,
                f"expected the {side} point at its junction {end}, found {given}; "
                "points run from u to v",
                line,
            )
    # Streets that meet at a junction meet at one place, whatever the rounding.
    points[0], points[-1] = tail, head
    return tuple(points)


def _coordinate(path: Path, line: int, longitude: str, latitude: str) -> Coordinate:
    try:
        point = (float(longitude), float(latitude))
    except ValueError:
        point = (math.nan, math.nan)
    if not is_on_earth(*point):
        raise FileError(
            path,
            "expected longitude and latitude in degrees, "
            f"found {quote(longitude)} and {quote(latitude)}",
            line,
        )
    return point
