"""Read a street map from any file that is one."""

from __future__ import annotations

import bz2
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet._checks import is_empty
from arcfleet._files import reading
from arcfleet.errors import FileError, OptionError
from arcfleet.streets.csv_map import csv_pair, read_csv_map
from arcfleet.streets.geojson import map_of_lines, read_geojson
from arcfleet.streets.osm import read_osm
from arcfleet.streets.osm_tags import DRIVABLE_KINDS
from arcfleet.streets.restrictions import DEFAULT_VEHICLE, check_vehicle
from arcfleet.streets.street_map import OSM_ATTRIBUTION
from arcfleet.streets.tables import has_layers, parts_of, read_shapes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from arcfleet.streets.osm_tags import StreetRule
    from arcfleet.streets.street_map import StreetMap

_HEAD_LENGTH = 4096
_SUFFIX = re.compile(
    r"(\.osm)?(\.pbf|\.osm|\.xml|\.geojson|\.json|\.km[lz]|\.gpx|\.gpkg|\.shp|\.zip)?"
    r"(\.gz|\.bz2)?(\|layername=.*)?$",
    re.IGNORECASE,
)
#: A tag in the column `other_tags`.
_OTHER_TAG = re.compile(r'"([^"]+)"=>"([^"]*)"')
_NAMED_OSM = re.compile(r"(\.pbf|\.osm(\.gz|\.bz2)?)$", re.IGNORECASE)
_KNOWN = (
    "an OpenStreetMap extract (.osm.pbf, .osm, .osm.gz, .osm.bz2), a pair "
    ".nodes.csv.gz and .edges.csv.gz, or lines as GeoJSON, KML, GPX, GeoPackage or "
    "Shapefile"
)


def read_map(
    path: Path | str | Any,
    *,
    name: str | None = None,
    streets: StreetRule | None = None,
    attribution: str | None = None,
    vehicle: str = DEFAULT_VEHICLE,
    id: str | None = None,
    merge_chains: bool = True,
) -> StreetMap:
    """Read a street map: an OpenStreetMap extract, a pair of CSV files, or lines.

    Lines may be GeoJSON, KML, GPX, GeoPackage, Shapefile or a GeoDataFrame, in any
    coordinate system that it states. A pair of CSV files is known by its name, anything
    else by its content. The map is whole: parts that cannot be driven to are in it until
    `largest_strong_part` cuts them off.

    Parameters
    ----------
    path
        The file; of a pair either one, or what their names share. Or a GeoDataFrame, whose
        columns are those of a file.
    name
        Name of the map; by default the file's name without its suffixes.
    streets
        Streets to read: values of `highway`, or a callable that returns for a line's tags
        whether it is a street. By default what may be driven, and the whole of CSV files.
    attribution
        Attribution of the data; by default OpenStreetMap for its extracts and for CSV
        files, and what the file itself says for GeoJSON; none for other lines.
    vehicle
        Vehicle for which the turn restrictions of OpenStreetMap are read, in its words:
        "hgv" (lorries), "motorcar", "bus", … Exceptions and rules of its own count.
    id
        Column or tag with ids of your own, which links and plans then have as `Link.ids`;
        a street that was merged from several lines has all of theirs. CSV files have none.
    merge_chains
        Whether pieces of street without a crossing between them become one street. CSV
        files are read as they are.
    """
    check_vehicle(vehicle)
    if hasattr(path, "geometry"):
        return map_of_lines(
            "GeoDataFrame",
            _rows(path),
            name=name or "",
            streets=DRIVABLE_KINDS if streets is None else streets,
            attribution=attribution or "",
            id=id,
            merge_chains=merge_chains,
        )
    path = Path(path)
    if csv_pair(path) is not None:
        if id is not None:
            raise OptionError(
                f"expected no id with a pair of CSV files, whose columns are fixed, got "
                f"{id!r}: give the map as lines, in a GeoJSON file or a GeoPackage"
            )
        return read_csv_map(
            path,
            name=name,
            streets=streets,
            attribution=OSM_ATTRIBUTION if attribution is None else attribution,
        )
    if streets is None:
        streets = DRIVABLE_KINDS
    if name is None:
        name = _SUFFIX.sub("", path.name)
    if has_layers(path):
        return map_of_lines(
            path,
            _lines(path),
            name=name,
            streets=streets,
            attribution=attribution or "",
            id=id,
            merge_chains=merge_chains,
        )
    head, packing = _head(path)
    file_format = _osm_format(path, head, packing)
    if file_format is not None:
        return read_osm(
            path,
            file_format,
            name=name,
            streets=streets,
            attribution=OSM_ATTRIBUTION if attribution is None else attribution,
            vehicle=vehicle,
            id=id,
            merge_chains=merge_chains,
        )
    if head.lstrip().startswith((b"{", b"[")):
        return read_geojson(
            path,
            name=name,
            streets=streets,
            attribution=attribution,
            id=id,
            merge_chains=merge_chains,
        )
    raise FileError(path, f"expected {_KNOWN}, found none of these")


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Yield place, tags and coordinates of every line of a file with layers."""
    for row in read_shapes(path):
        for points in _points(row.shape):
            yield f"in feature {row.number - 1}", _tags(row.values), points


def _rows(frame: Any) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Yield place, tags and coordinates of every line of a GeoDataFrame."""
    shapes = frame.geometry if frame.crs is None else frame.geometry.to_crs(4326)
    columns = frame.drop(columns=frame.geometry.name)
    names = [str(name) for name in columns.columns]
    rows = columns.itertuples(index=False, name=None)
    for number, (values, shape) in enumerate(zip(rows, shapes, strict=True)):
        tags = {key: x for key, x in zip(names, values, strict=True) if not is_empty(x)}
        for points in _points(shape):
            yield f"in row {number}", _tags(tags), points


def _points(shape: Any) -> Iterator[list[list[float]]]:
    """Yield the points of each line of a shape."""
    for part in parts_of(shape):
        if part.geom_type == "LineString":
            yield [list(point) for point in part.coords]


def _tags(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a street as OpenStreetMap's tags.

    As GDAL writes them, with other tags in one column; and as the Shapefiles of Geofabrik
    have them: `fclass`, and `oneway` as F, T or B.
    """
    tags = {key.lower(): value for key, value in values.items() if value is not None}
    others = _OTHER_TAG.findall(str(tags.pop("other_tags", "")))
    tags = dict(others) | tags
    if "fclass" in tags:
        tags.setdefault("highway", tags["fclass"])
        direction = str(tags.get("oneway", ""))
        tags["oneway"] = {"F": "yes", "T": "-1", "B": "no"}.get(direction, direction)
        if tags.get("maxspeed") in (0, "0"):  # unknown
            del tags["maxspeed"]
    return tags


def _osm_format(path: Path, head: bytes, packing: str) -> str | None:
    if b"OSMHeader" in head[:64] and not packing:
        return "pbf"
    if head.lstrip().startswith(b"<"):
        return f"osm{packing}"
    # Named so but something else: its reader says best what is wrong.
    if _NAMED_OSM.search(path.name):
        return "pbf" if path.suffix.lower() == ".pbf" else f"osm{packing}"
    return None


def _head(path: Path) -> tuple[bytes, str]:
    """Return the first bytes of a file, unpacked, and the suffix of how it was packed."""
    with reading(path, _KNOWN), path.open("rb") as stream:
        head = stream.read(_HEAD_LENGTH)
    head = head.removeprefix(b"\xef\xbb\xbf")
    try:
        if head.startswith(b"\x1f\x8b"):
            return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head), ".gz"
        if head.startswith(b"BZh"):
            # bzip2 packs up to 900 kB at a time: the first bytes alone give nothing.
            with bz2.open(path) as stream:
                return stream.read(_HEAD_LENGTH), ".bz2"
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(
            path, f"expected a packed file, found a broken one ({error}); fetch it again"
        ) from error
    return head, ""
