"""Own data: the rows of CSV files, sheets and layers, with their shapes in WGS 84."""

from __future__ import annotations

import csv
import io
import json
import math
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from arcfleet._checks import needs
from arcfleet._files import (
    check_zip_size,
    decode_text,
    is_file,
    quote,
    read_unpacked,
    reading,
)
from arcfleet.errors import FileError, OptionError
from arcfleet.streets.geojson import check_degrees, features_of, read_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from shapely import Geometry

#: How QGIS names a layer of a file: `data.gpkg|layername=bins`.
_LAYER = "|layername="
_DELIMITERS = ",;\t"
_HEAD_LENGTH = 4096
#: The library looks so far for what a file is, at most.
_CHECKED = 1 << 20
_WGS_84 = ("EPSG:4326", "OGC:CRS84")
#: What pyogrio reads that may hold streets and areas.
_LAYERED = ("kml", "gpx", "layers", "zip")
#: Layers of a GPX file that repeat others point by point.
_POINTS_OF_LINES = ("route_points", "track_points")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a table.

    Parameters
    ----------
    number
        Line of a CSV file, row of a sheet, else the number of the feature, from 1.
    values
        Value of each column; None where the cell is empty.
    shape
        Geometry as a shape of shapely, in degrees (WGS 84); None if it has none.
    """

    number: int
    values: Mapping[str, Any]
    shape: Geometry | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows about streets, from a file or from Python.

    Parameters
    ----------
    name
        Name of the file, for messages.
    columns
        Names of the columns.
    rows
        The rows.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    @staticmethod
    def of(rows: Iterable[Mapping[str, Any]], name: str = "rows") -> Table:
        """Return the table of some dicts, whose keys are the columns.

        Parameters
        ----------
        rows
            Rows as dicts; a key that a row lacks is an empty cell.
        name
            Name of the table, for messages.

        Raises
        ------
        OptionError
            If a row is no dict with texts as keys.
        """
        given = list(rows) if isinstance(rows, Iterable) else [rows]
        for row in given:
            if not isinstance(row, Mapping) or not all(isinstance(key, str) for key in row):
                raise OptionError(
                    "expected rows as dicts, as in [{'street': 'Mill Lane', 'demand': 3}], "
                    f"got {row!r:.60}"
                )
        if not given:
            raise OptionError("expected at least one row, got none")
        columns = tuple(dict.fromkeys(key for row in given for key in row))
        return Table(
            name=name,
            columns=columns,
            rows=tuple(
                Row(number=number, values={one: row.get(one) for one in columns})
                for number, row in enumerate(given, start=1)
            ),
        )


def read_table(path: Path | str) -> Table:
    """Read the rows of a CSV file, a sheet, or a layer of a geographic file.

    Content decides on the format, not the name: CSV, Excel (.xlsx), OpenDocument (.ods),
    GeoPackage, GeoJSON, Shapefile, KML, GPX. A layer of several is named as in
    `data.gpkg|layername=bins`.

    Raises
    ------
    FileError
        If the file is none of these, is broken or holds no rows.
    OptionError
        If pyogrio is needed and not installed.
    """
    file, layer = _layer_of(path)
    form = file_form(file)
    if form == "packed":
        form = "json" if read_unpacked(file).lstrip().startswith((b"{", b"[")) else "text"
    if form == "text":
        columns, rows = _read_csv(file)
    elif form == "json":
        columns, rows = _read_geojson(file)
    else:
        columns, rows = _only_layer(file, _read_layers(file, form, layer), form)
    if not rows:
        raise FileError(path, "expected at least one row of data, found none")
    return Table(name=str(path), columns=columns, rows=tuple(rows))


def read_shapes(path: Path | str) -> list[Row]:
    """Read the shapes of all layers of a KML, GPX, GeoPackage or Shapefile."""
    file, layer = _layer_of(path)
    layers = _read_layers(file, file_form(file), layer)
    return [
        row for _, _, rows in layers for row in rows if row.shape and not row.shape.is_empty
    ]


def has_layers(path: Path | str) -> bool:
    """Return whether a file is KML, GPX, GeoPackage or Shapefile, which have layers."""
    file, _ = _layer_of(path)
    return is_file(file) and file_form(file) in _LAYERED


def file_form(path: Path) -> str:
    """Return what a file holds by its first bytes.

    "json", "text", "xml" for what is neither KML nor GPX, "packed", or what pyogrio reads:
    "kml", "gpx", "layers" (GeoPackage, Shapefile), "sheets" (Excel, OpenDocument), "zip".
    """
    with reading(path), path.open("rb") as stream:
        head = stream.read(_HEAD_LENGTH).removeprefix(b"\xef\xbb\xbf")
    text = head.lstrip()
    if head.startswith(b"SQLite format 3\0") or head.startswith(b"\0\0\x27\x0a"):
        return "layers"
    if head.startswith(b"PK\x03\x04"):
        is_sheet = path.suffix.lower() in (".xlsx", ".xlsm", ".ods")
        return "sheets" if is_sheet else "zip"
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        raise FileError(
            path, "expected a table, found an old Excel file (.xls); save it as .xlsx"
        )
    if head.startswith((b"\x1f\x8b", b"BZh")):
        return "packed"
    if text.startswith((b"{", b"[")):
        return "json"
    if text.startswith(b"<"):
        found = (form for form in ("kml", "gpx") if f"<{form}".encode() in head.lower())
        return next(found, "xml")
    return "text"


def _layer_of(path: Path | str) -> tuple[Path, str | None]:
    file, found, layer = str(path).partition(_LAYER)
    return Path(file), layer if found else None


# --- CSV --------------------------------------------------------------------------------


def _read_csv(path: Path) -> tuple[tuple[str, ...], list[Row]]:
    remedy = "in Excel, save it as .xlsx or as CSV UTF-8"
    text = decode_text(path, read_unpacked(path), remedy)
    head = text.split("\n", 1)[0].rstrip("\r")
    # A first line for Excel alone may name the delimiter.
    named = head.startswith("sep=") and len(head) == 5
    delimiter = head[-1] if named else max(_DELIMITERS, key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        if named:
            next(reader)
        columns = tuple(one.strip() for one in next(reader, []))
        _check_columns(path, columns)
        rows = []
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(columns):
                raise FileError(
                    path,
                    f"expected {len(columns)} columns as in the first line, found "
                    f"{len(cells)} in {quote(delimiter.join(cells))}",
                    reader.line_num,
                )
            values = {
                column: cell.strip() or None
                for column, cell in zip(columns, cells, strict=True)
            }
            rows.append(Row(number=reader.line_num, values=values))
    except csv.Error as error:
        raise FileError(
            path, f"expected CSV, found a row that is not ({error})", reader.line_num
        ) from error
    return columns, rows


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    named = [column for column in columns if column]
    if not named or all(_is_number(column) for column in named):
        raise FileError(
            path,
            "expected the names of the columns in the first line, found "
            f"{quote(','.join(columns))}",
            1,
        )
    repeated = next((one for one in named if named.count(one) > 1), None)
    if repeated is not None:
        raise FileError(path, f"expected every column once, found {quote(repeated)} twice")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# --- GeoJSON ----------------------------------------------------------------------------


def _read_geojson(path: Path) -> tuple[tuple[str, ...], list[Row]]:
    content = read_document(path)
    if not isinstance(content, dict) or not isinstance(content.get("type"), str):
        raise FileError(path, "expected GeoJSON, found JSON without a type")
    check_degrees(path, content)
    rows = []
    for index, (geometry, properties) in enumerate(features_of(path, content)):
        shape = None if geometry is None else _shape(path, geometry, index)
        values = {
            key: json.dumps(value) if isinstance(value, dict | list) else value
            for key, value in properties.items()
        }
        rows.append(Row(number=index + 1, values=values, shape=shape))
    columns = tuple(dict.fromkeys(key for row in rows for key in row.values))
    return columns, rows


def _shape(path: Path, geometry: object, index: int) -> Geometry:
    with needs("shapely", "reading places", "maps"):
        import shapely
    try:
        shape = shapely.force_2d(shapely.from_geojson(json.dumps(geometry)))
    except shapely.errors.ShapelyError as error:
        raise FileError(
            path, f"expected a geometry, found none in feature {index} ({error!s:.100})"
        ) from error
    _check_on_earth(path, [shape])
    return shape


# --- What pyogrio reads -----------------------------------------------------------------

#: Name, columns and rows of a layer.
_Layer = tuple[str, tuple[str, ...], list[Row]]


def _only_layer(
    path: Path, layers: Sequence[_Layer], form: str
) -> tuple[tuple[str, ...], list[Row]]:
    filled = [layer for layer in layers if layer[2]]
    if len(filled) > 1 and form in ("kml", "gpx"):
        # Folders of a KML file and the parts of a GPX file have the same columns.
        columns = tuple(dict.fromkeys(one for _, some, _ in filled for one in some))
        rows = [row for _, _, rows in filled for row in rows]
        return columns, [
            Row(number=number, values=row.values, shape=row.shape)
            for number, row in enumerate(rows, start=1)
        ]
    if len(filled) > 1:
        names = ", ".join(name for name, _, _ in filled)
        raise FileError(
            path,
            f"expected one layer or sheet with rows, found {len(filled)} ({names}); say "
            f"which one as in {path.name}{_LAYER}{filled[0][0]}",
        )
    return (filled[0][1], filled[0][2]) if filled else ((), [])


def _read_layers(path: Path, form: str, layer: str | None) -> list[_Layer]:
    if form not in (*_LAYERED, "sheets"):
        raise FileError(
            path,
            "expected CSV, Excel (.xlsx), GeoPackage, GeoJSON, Shapefile, KML or GPX, "
            f"found {'other XML' if form == 'xml' else 'something else'}",
        )
    with needs("pyogrio", f"reading {path.name}", "maps"):
        import pyogrio
    with needs("shapely", "reading places", "maps"):
        import shapely  # noqa: F401
    try:
        with warnings.catch_warnings():
            # What the library has to say of a file is no concern of a planner.
            warnings.simplefilter("ignore")
            inside = _inside(path, form)
            names = [str(name) for name, _ in pyogrio.list_layers(inside)]
            if layer is not None:
                if layer not in names:
                    raise FileError(
                        path,
                        f"expected the layer {quote(layer)}, found only "
                        f"{', '.join(names):.200}",
                    )
                names = [layer]
            return [
                _read_layer(path, inside, name, form)
                for name in names
                if form != "gpx" or name not in _POINTS_OF_LINES
            ]
    except (FileError, OptionError):
        raise
    # The library and those beneath it raise errors of any kind, even a NameError.
    except Exception as error:
        said = " ".join(str(error).split())
        raise FileError(
            path,
            "expected a file that pyogrio reads, found a cut or broken one "
            f"({quote(said)}); save it again",
        ) from error


def _inside(path: Path, form: str) -> Path | str:
    """Return what the library is to read: of a KMZ file, the KML file in it."""
    if form not in ("zip", "sheets"):
        with path.open("rb") as stream:
            _check_alone(path, stream.read(_CHECKED))
        return path
    with zipfile.ZipFile(path) as archive:
        check_zip_size(path, archive)
        for member in archive.infolist():
            with archive.open(member) as packed:
                _check_alone(path, packed.read(_CHECKED))
        found = (name for name in archive.namelist() if name.lower().endswith(".kml"))
        inner = next(found, None)
    return path if inner is None else f"/vsizip/{path.resolve()}/{inner}"


def _check_alone(path: Path, head: bytes) -> None:
    """Raise FileError for a file that names others, which the library would open."""
    if b"<OGR" in head:
        raise FileError(
            path, "expected a file with rows, found one that refers to others: give those"
        )


def _read_layer(path: Path, inside: Path | str, name: str, form: str) -> _Layer:
    import shapely
    from pyogrio import raw

    # A sheet of texts alone would else be taken for one without names of columns.
    options = {"HEADERS": "FORCE"} if form == "sheets" else {}
    facts, numbers, wkb, data = raw.read(
        inside, layer=name, force_2d=True, return_fids=True, **options
    )
    columns = tuple(str(column) for column in facts["fields"])
    count = len(numbers)
    shapes: Sequence[Geometry | None] = [None] * count
    if wkb is not None:
        shapes = _in_degrees(path, shapely.from_wkb(wkb), facts["crs"])
    rows = [
        Row(
            # A sheet counts its rows as people do.
            number=int(numbers[index]) if form == "sheets" else index + 1,
            values={
                column: _plain(values[index])
                for column, values in zip(columns, data, strict=True)
            },
            shape=shapes[index],
        )
        for index in range(count)
    ]
    filled = [row for row in rows if row.shape or _has_values(row)]
    if filled and form == "sheets":
        _check_columns(path, columns)
    return name, columns, filled


def _has_values(row: Row) -> bool:
    return any(value is not None for value in row.values.values())


def _plain(value: Any) -> object:
    """Return a value of an array as Python's own; None for an empty cell."""
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, str):
        return value.strip() or None
    return value


def _in_degrees(
    path: Path, shapes: NDArray[Any], system: str | None
) -> Sequence[Geometry | None]:
    """Return shapes in longitude and latitude, WGS 84."""
    import shapely

    if system is not None and system not in _WGS_84:
        with needs(
            "pyproj",
            f"converting {path.name} from {quote(system)}",
            "maps",
            ", or save the file in WGS 84 (EPSG:4326)",
        ):
            from pyproj import Transformer
            from pyproj.exceptions import ProjError
        try:
            convert = Transformer.from_crs(system, "EPSG:4326", always_xy=True).transform
            shapes = shapely.transform(
                shapes, lambda points: np.column_stack(convert(points[:, 0], points[:, 1]))
            )
        except ProjError as error:
            raise FileError(
                path,
                f"expected a known coordinate system, found {quote(system)}; save the file "
                "in WGS 84 (EPSG:4326)",
            ) from error
    known: Sequence[Geometry | None] = list(shapes)
    _check_on_earth(path, known)
    return known


def _check_on_earth(path: Path, shapes: Iterable[Geometry | None]) -> None:
    import shapely

    # Not by their bounds, which leave out what is no number.
    points = shapely.get_coordinates([shape for shape in shapes if shape is not None])
    for longitude, latitude in points[~(np.abs(points) <= (180, 90)).all(axis=1)]:
        raise FileError(
            path,
            "expected longitude and latitude in degrees, found "
            f"{longitude:g},{latitude:g}; save the file in WGS 84 (EPSG:4326)",
        )


def parts_of(shape: Geometry | None) -> Iterator[Geometry]:
    """Yield the points, lines and polygons that a shape consists of."""
    if shape is not None and hasattr(shape, "geoms"):
        for part in shape.geoms:
            yield from parts_of(part)
    elif shape is not None:
        yield shape
