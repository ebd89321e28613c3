"""Maps and areas as KML, GPX, GeoPackage and Shapefile."""

from pathlib import Path
from typing import Any

import geopandas
import pandas
import pytest
import shapely
from pyproj import Transformer

from arcfleet import FileError, Polygons, read_map
from tests.helpers import refused
from tests.streets.own_files import write_layer, zipped

A, B, C, D = (8.0, 48.0), (8.001, 48.0), (8.002, 48.0), (8.001, 48.001)
LINES = [shapely.LineString(line) for line in ([A, B], [B, C], [B, D])]
TAGS: list[dict[str, Any]] = [
    {"name": "East Street", "highway": "residential", "oneway": "yes", "osm_id": "7"},
    {"name": "East Street", "highway": "tertiary", "oneway": "no", "osm_id": "8"},
    {"name": "Ölweg", "highway": "footway", "oneway": "no", "osm_id": "9"},
]
SQUARE = shapely.box(7.9995, 47.9995, 8.0015, 48.0005)
#: Inside and outside the square.
INSIDE, OUTSIDE = (8.001, 48.0), (8.002, 48.0)


@pytest.mark.parametrize(
    ("driver", "name"),
    [("GPKG", "town.gpkg"), ("ESRI Shapefile", "town.shp"), ("LIBKML", "town.kml")],
)
def test_lines_of_layers_are_streets(tmp_path: Path, driver: str, name: str) -> None:
    path = write_layer(tmp_path / name, driver, TAGS, LINES)
    paths = [path, zipped(path)] if name.endswith(".shp") else [path]
    for one in paths:
        street_map = read_map(one)
        assert street_map.name == "town"
        first, second = street_map.streets
        assert (first.kind, first.one_way, first.name) == (
            *("residential", True, "East Street"),
        )
        assert (second.kind, second.one_way) == ("tertiary", False)
        assert [street.ways[0][0] for street in street_map.streets] == [7, 8]
        assert set(street_map.junctions.values()) == {A, B, C}


def test_maps_in_metres_are_converted(tmp_path: Path) -> None:
    convert = Transformer.from_crs("EPSG:4326", "EPSG:25832", always_xy=True).transform
    lines = [
        shapely.LineString([convert(*point) for point in line.coords]) for line in LINES
    ]
    path = write_layer(tmp_path / "town.gpkg", "GPKG", TAGS, lines, crs="EPSG:25832")
    places = sorted(read_map(path).junctions.values())
    for place, (longitude, latitude) in zip(places, [A, B, C], strict=True):
        assert place == pytest.approx((longitude, latitude), abs=1e-7)


def test_a_geodataframe_is_read_as_its_file(tmp_path: Path) -> None:
    frame = geopandas.GeoDataFrame(TAGS, geometry=LINES, crs=4326, index=[5, 6, 7])
    frame.to_file(tmp_path / "town.gpkg")
    from_file = read_map(tmp_path / "town.gpkg", id="osm_id", merge_chains=False)
    read = read_map(frame, name="town", id="osm_id", merge_chains=False)
    assert read == from_file
    assert [street.ids[0][0] for street in read.streets] == ["7", "8"]
    assert read_map(frame).name == ""
    metres = frame.rename_geometry("shape").to_crs(25832)
    places = sorted(read_map(metres).junctions.values())
    for place, expected in zip(places, [A, B, C], strict=True):
        assert place == pytest.approx(expected, abs=1e-7)
    split = frame.assign(
        geometry=shapely.union_all([frame.geometry, frame.geometry], axis=0)
    )
    split["name"] = [float("nan"), pandas.NA, "Weg"]
    assert [street.name for street in read_map(split).streets] == ["", ""]


def test_a_geodataframe_without_streets_is_refused() -> None:
    points = geopandas.GeoDataFrame({"a": [1]}, geometry=[shapely.Point(A)], crs=4326)
    with pytest.raises(FileError, match=r"^GeoDataFrame: expected at least one street"):
        read_map(points)
    far = geopandas.GeoDataFrame(geometry=[shapely.LineString([(500, 0), (501, 0)])])
    with pytest.raises(FileError, match=r"^GeoDataFrame: .*in row 0"):
        read_map(far)
    frame = geopandas.GeoDataFrame(TAGS, geometry=LINES, crs=4326)
    with pytest.raises(FileError, match="ids of streets in a column 'ident'"):
        read_map(frame, id="ident")


def test_shapefiles_of_geofabrik_and_layers_of_gdal(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"osm_id": "1", "fclass": "residential", "oneway": "F", "maxspeed": 0},
        {"osm_id": "2", "fclass": "residential", "oneway": "T", "maxspeed": 30},
        {"osm_id": "3", "fclass": "path", "oneway": "B", "maxspeed": 0},
    ]
    path = write_layer(tmp_path / "roads.shp", "ESRI Shapefile", rows, LINES)
    first, second = read_map(path).streets
    assert (first.one_way, first.limit) == (True, None)
    assert read_map(path).junctions[second.tail] == C  # against its line
    assert second.limit is not None
    assert second.limit.speed == 30
    gdal = [
        {"highway": "residential", "other_tags": '"oneway"=>"yes","maxspeed"=>"20"'},
        {"highway": "residential", "other_tags": '"oneway"=>"-1"'},
        {"highway": "footway", "other_tags": ""},
    ]
    path = write_layer(tmp_path / "lines.gpkg", "GPKG", gdal, LINES)
    first, second = read_map(path).streets
    assert (first.one_way, second.one_way) == (True, True)
    assert first.limit is not None
    assert first.limit.speed == 20


def gpx(path: Path, points: list[tuple[float, float]]) -> Path:
    marks = "".join(f'<trkpt lat="{y}" lon="{x}"/>' for x, y in points)
    path.write_text(
        '<?xml version="1.0"?><gpx version="1.1" creator="t" '
        'xmlns="http://www.topografix.com/GPX/1/1"><wpt lat="48" lon="8"/>'
        f"<trk><trkseg>{marks}</trkseg></trk></gpx>",
        encoding="utf-8",
    )
    return path


def test_a_track_is_a_street_and_a_closed_one_an_area(tmp_path: Path) -> None:
    path = gpx(tmp_path / "track.gpx", list(SQUARE.exterior.coords))
    (street,) = read_map(path).streets
    assert street.tail == street.head
    area = Polygons(path)
    assert area.holds([INSIDE, OUTSIDE]).tolist() == [True, False]
    with refused(FileError, "expected polygons or lines that end where they begin"):
        Polygons(gpx(tmp_path / "open.gpx", [A, B, C]))


@pytest.mark.parametrize(
    ("driver", "name"),
    [("GPKG", "area.gpkg"), ("ESRI Shapefile", "area.shp"), ("LIBKML", "area.kml")],
)
def test_polygons_of_layers_are_areas(tmp_path: Path, driver: str, name: str) -> None:
    path = write_layer(tmp_path / name, driver, [{"id": 1}], [SQUARE])
    assert Polygons(path).holds([INSIDE, OUTSIDE]).tolist() == [True, False]
    points = write_layer(
        tmp_path / f"points{path.suffix}", driver, [{"id": 1}], [shapely.Point(A)]
    )
    with refused(FileError, "expected a polygon, found none"):
        Polygons(points)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.gpkg", b"SQLite format 3\0" + bytes(99)),
        ("a.kml", b"<?xml version='1.0'?><kml><Placemark>"),
        ("a.shp", b"\0\0\x27\x0a" + bytes(20)),
        ("a.zip", b"PK\x03\x04" + bytes(20)),
    ],
)
def test_a_broken_file_is_one_sentence(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    for read in (read_map, Polygons):
        with refused(FileError, "found a cut or broken one"):
            read(path)
