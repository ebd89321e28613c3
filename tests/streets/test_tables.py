import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from pyproj import Transformer

from arcfleet import FileError, OptionError, Table, read_table
from arcfleet.streets.tables import read_shapes
from tests.helpers import refused
from tests.streets.own_files import (
    SHAPED,
    write_csv,
    write_geojson,
    write_layer,
    zipped,
)

ROWS: list[dict[str, Any]] = [
    {"street": "Hauptstraße", "bins": 3},
    {"street": "Rue de l'Église", "bins": 12},
]
PLACES = [(8.001, 48.5), (8.002, 48.501)]
POINTS = [shapely.Point(place) for place in PLACES]


def values(table: Table) -> list[tuple[str, int]]:
    return [(row.values["street"], int(row.values["bins"])) for row in table.rows]


WANTED = [("Hauptstraße", 3), ("Rue de l'Église", 12)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_with_any_usual_delimiter(tmp_path: Path, delimiter: str) -> None:
    path = write_csv(tmp_path / "rows.csv", ROWS, delimiter)
    table = read_table(path)
    assert table.columns == ("street", "bins")
    assert values(table) == WANTED
    assert [row.number for row in table.rows] == [2, 3]  # lines of the file
    packed = tmp_path / "rows.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert values(read_table(packed)) == WANTED


def test_csv_passes_over_empty_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(
        '\ufeffstreet,note\r\n\r\nMain,\r\n,\r\n,x\r\n"a, b","two\nlines"\r\n', "utf-8"
    )
    table = read_table(path)
    assert [dict(row.values) for row in table.rows] == [
        {"street": "Main", "note": None},
        {"street": None, "note": "x"},
        {"street": "a, b", "note": "two\nlines"},
    ]


def test_csv_may_name_its_delimiter_for_excel(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("sep=;\r\nstreet;bins\r\nHauptstraße;3\r\n", encoding="utf-8")
    table = read_table(path)
    assert values(table) == WANTED[:1]
    assert table.rows[0].number == 3


@pytest.mark.parametrize(("driver", "name"), [("XLSX", "rows.xlsx"), ("ODS", "rows.ods")])
def test_sheets_keep_their_first_row_as_names(
    tmp_path: Path, driver: str, name: str
) -> None:
    table = read_table(write_layer(tmp_path / name, driver, ROWS))
    assert values(table) == WANTED
    assert [row.number for row in table.rows] == [2, 3]  # as the sheet counts
    texts = [{"street": "Main", "note": "left"}, {"street": "Side", "note": "right"}]
    table = read_table(write_layer(tmp_path / f"texts-{name}", driver, texts))
    assert table.columns == ("street", "note")
    assert [row.values["street"] for row in table.rows] == ["Main", "Side"]


@pytest.mark.parametrize(("driver", "name"), SHAPED.items())
def test_geographic_files_have_shapes(tmp_path: Path, driver: str, name: str) -> None:
    path = write_layer(tmp_path / name, driver, ROWS, POINTS)
    table = read_table(path)
    assert values(table) == WANTED
    assert [row.number for row in table.rows] == [1, 2]
    for row, (longitude, latitude) in zip(table.rows, PLACES, strict=True):
        assert row.shape is not None
        assert (row.shape.x, row.shape.y) == pytest.approx((longitude, latitude))
    if name.endswith(".shp"):
        assert values(read_table(zipped(path))) == WANTED
    if name.endswith(".kml"):
        packed = zipped(path).rename(tmp_path / "rows.kmz")
        assert values(read_table(packed)) == WANTED


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_leads_to_another_is_refused(tmp_path: Path, packed: bool) -> None:
    # The library opens it, whatever it calls itself, and reads what it names.
    other = write_layer(tmp_path / "other.geojson", "GeoJSON", ROWS, POINTS)
    path = tmp_path / "rows.kml"
    path.write_text(
        f"<OGRVRTDataSource><!-- <kml --><OGRVRTLayer name='other'><SrcDataSource>{other}"
        "</SrcDataSource></OGRVRTLayer></OGRVRTDataSource>"
    )
    if packed:
        path = zipped(path).rename(tmp_path / "rows.kmz")
    with refused(FileError, "found one that refers to others"):
        read_table(path)


def test_other_systems_are_converted_to_degrees(tmp_path: Path) -> None:
    convert = Transformer.from_crs("EPSG:4326", "EPSG:25832", always_xy=True).transform
    metres = [shapely.Point(*convert(*place)) for place in PLACES]
    path = write_layer(tmp_path / "rows.gpkg", "GPKG", ROWS, metres, crs="EPSG:25832")
    found = [(row.shape.x, row.shape.y) for row in read_table(path).rows if row.shape]
    np.testing.assert_allclose(found, PLACES, atol=1e-8)
    # A file that does not say its system must be in degrees.
    lost = write_layer(tmp_path / "lost.shp", "ESRI Shapefile", ROWS, metres)
    lost.with_suffix(".prj").unlink()
    with refused(FileError, "expected longitude and latitude in degrees, found "):
        read_table(lost)


def test_gpx_waypoints_are_rows_and_tracks_are_shapes(tmp_path: Path) -> None:
    path = tmp_path / "rows.gpx"
    points = "".join(f'<trkpt lat="{y}" lon="{x}"/>' for x, y in PLACES)
    path.write_text(
        '<?xml version="1.0"?><gpx version="1.1" creator="t" '
        'xmlns="http://www.topografix.com/GPX/1/1">'
        '<wpt lat="48.5" lon="8.001"><name>bin</name></wpt>'
        f"<trk><name>way</name><trkseg>{points}</trkseg></trk></gpx>",
        encoding="utf-8",
    )
    assert [row.values["name"] for row in read_table(path).rows] == ["bin", "way"]
    forms = [row.shape.geom_type for row in read_shapes(path) if row.shape]
    assert forms == ["Point", "MultiLineString"]


def test_a_layer_of_several_is_named_as_in_qgis(tmp_path: Path) -> None:
    path = write_layer(tmp_path / "rows.gpkg", "GPKG", ROWS, POINTS, layer="bins")
    write_layer(path, "GPKG", ROWS[:1], layer="list")
    with refused(
        FileError, "found 2 (bins, list); say which one as in rows.gpkg|layername=bins"
    ):
        read_table(path)
    assert values(read_table(f"{path}|layername=list")) == WANTED[:1]
    with refused(FileError, "expected the layer 'boxes', found only bins, list"):
        read_table(f"{path}|layername=boxes")


def test_geojson_needs_no_other_library(tmp_path: Path) -> None:
    path = write_geojson(tmp_path / "rows.geojson", ROWS, POINTS)
    table = read_table(path)
    assert values(table) == WANTED
    packed = tmp_path / "rows.geojson.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert values(read_table(packed)) == WANTED


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "expected the names of the columns"),
        ("a.csv", b"street,bins\n", "expected at least one row of data, found none"),
        ("a.csv", b"8.5,48.1,3\n8.6,48.2,4\n", "expected the names of the columns"),
        ("a.csv", b"a,b,a\n1,2,3\n", "expected every column once, found 'a' twice"),
        ("a.csv", b"a,b\n1,2\n3\n", "expected 2 columns as in the first line, found 1"),
        ("a.csv", b'a,b\n1,"2\n', "expected CSV, found a row that is not"),
        ("a.csv", "straße\nä\n".encode("cp1252"), "save it as .xlsx or as CSV UTF-8"),
        ("a.xls", b"\xd0\xcf\x11\xe0" + bytes(99), "save it as .xlsx"),
        ("a.xlsx", b"PK\x03\x04" + bytes(99), "found a cut or broken one"),
        ("a.gpkg", b"SQLite format 3\0" + bytes(99), "found a cut or broken one"),
        ("a.kml", b"<?xml version='1.0'?><kml><Placemark>", "found a cut or broken one"),
        ("a.xml", b"<html><body/></html>", "found other XML"),
        ("a.json", b'{"features": []}', "expected GeoJSON, found JSON without a type"),
        ("a.json", b'{"type": "FeatureCollection"}', "expected a list of features"),
        (
            "a.json",
            b'{"type": "Feature", "geometry": {"type": "Point", "coordinates": ["x"]}}',
            "expected a geometry, found none in feature 0",
        ),
    ],
)
def test_a_broken_file_is_one_sentence(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with refused(FileError, message):
        read_table(path)


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with refused(FileError, "found nothing of that name"):
        read_table(tmp_path / "rows.gpkg|layername=x")


def test_rows_of_python_are_dicts() -> None:
    table = Table.of([{"street": "Main", "demand": 3}, {"street": "Side", "note": "x"}])
    assert table.columns == ("street", "demand", "note")
    assert [row.values["demand"] for row in table.rows] == [3, None]
    wrong: Any
    for wrong in (["Main"], [{1: 2}], 7):
        with refused(OptionError, "expected rows as dicts"):
            Table.of(wrong)
    with refused(OptionError, "expected at least one row, got none"):
        Table.of([])


def test_a_missing_library_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_layer(tmp_path / "rows.gpkg", "GPKG", ROWS, POINTS, crs="EPSG:4258")
    monkeypatch.setitem(sys.modules, "pyproj", None)
    with refused(OptionError, "save the file in WGS 84 (EPSG:4326)"):
        read_table(path)
    monkeypatch.setitem(sys.modules, "pyogrio", None)
    with refused(
        OptionError, "needs pyogrio, which is not installed: install arcfleet[maps]"
    ):
        read_table(path)
    # Plain tables need neither.
    assert values(read_table(write_csv(tmp_path / "rows.csv", ROWS))) == WANTED
