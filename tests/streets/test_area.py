import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

from arcfleet.errors import FileError, MapError, OptionError
from arcfleet.streets.area import Box, Circle, Polygons
from tests.helpers import refused

SQUARE = [[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0], [0.0, 0.0]]
HOLE = [[1.0, 1.0], [1.0, 3.0], [3.0, 3.0], [3.0, 1.0], [1.0, 1.0]]
FAR_SQUARE = [[9.0, 9.0], [10.0, 9.0], [10.0, 10.0], [9.0, 10.0], [9.0, 9.0]]
POLYGON = {"type": "Polygon", "coordinates": [SQUARE, HOLE]}


def features(*geometries: object) -> dict[str, object]:
    found = [{"type": "Feature", "geometry": geometry} for geometry in geometries]
    return {"type": "FeatureCollection", "features": found}


def polygons(folder: Path, document: object) -> Polygons:
    path = folder / "area.geojson"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return Polygons(path)


def test_a_box_holds_its_border() -> None:
    box = Box(west=-2.0, south=1.0, east=3.0, north=5.0)
    points = [(-2.0, 1.0), (3.0, 5.0), (0.0, 3.0), (-2.1, 3.0), (0.0, 5.1), (3.1, 2.0)]
    assert box.holds(points).tolist() == [True, True, True, False, False, False]


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        ((3.0, 1.0, -2.0, 5.0), "west < east"),
        ((-2.0, 5.0, 3.0, 1.0), "south < north"),
        ((-2.0, 1.0, -2.0, 5.0), "west < east"),
        ((-200.0, 1.0, 3.0, 5.0), "south-west corner .* got -200,1"),
        ((1.0, 1.0, 3.0, 95.0), "north-east corner .* got 3,95"),
        ((float("nan"), 1.0, 3.0, 5.0), "in degrees"),
    ],
)
def test_a_box_that_is_none(sides: tuple[float, float, float, float], message: str) -> None:
    west, south, east, north = sides
    with pytest.raises(MapError, match=message):
        Box(west=west, south=south, east=east, north=north)


@given(
    longitude=st.floats(-179, 179),
    latitude=st.floats(-80, 80),
    azimuth=st.floats(0, 360),
    metres=st.floats(10, 30_000),
)
def test_a_circle_is_as_wide_as_the_geodesic(
    longitude: float, latitude: float, azimuth: float, metres: float
) -> None:
    # A tenth of a percent off the rim is what the distance may err.
    to = [
        Geod(ellps="WGS84").fwd(longitude, latitude, azimuth, share * metres)[:2]
        for share in (0.999, 1.001)
    ]
    circle = Circle(longitude=longitude, latitude=latitude, metres=metres)
    assert circle.holds(to).tolist() == [True, False]


@pytest.mark.parametrize("metres", [0.0, -5.0, float("inf"), float("nan")])
def test_a_circle_needs_a_radius(metres: float) -> None:
    with pytest.raises(MapError, match="expected a radius of more than 0 metres"):
        Circle(longitude=0.0, latitude=0.0, metres=metres)


@pytest.mark.parametrize(
    "document",
    [
        POLYGON,
        {"type": "Feature", "properties": {}, "geometry": POLYGON},
        features(POLYGON),
    ],
)
def test_a_polygon_holds_its_border_and_not_its_hole(
    tmp_path: Path, document: object
) -> None:
    held = polygons(tmp_path, document).holds(
        [(0.5, 0.5), (2.0, 2.0), (0.0, 2.0), (1.0, 2.0), (5.0, 5.0)]
    )
    assert held.tolist() == [True, False, True, True, False]


def test_all_polygons_of_a_file_count(tmp_path: Path) -> None:
    both = {"type": "MultiPolygon", "coordinates": [[SQUARE, HOLE], [FAR_SQUARE]]}
    points = [(0.5, 0.5), (9.5, 9.5), (7.0, 7.0), (2.0, 2.0)]
    assert polygons(tmp_path, both).holds(points).tolist() == [True, True, False, False]
    # A hole of one polygon may be filled by another.
    filled = features(POLYGON, {"type": "Polygon", "coordinates": [HOLE]})
    assert polygons(tmp_path, filled).holds(points[3:]).tolist() == [True]


def test_no_points_are_no_error(tmp_path: Path) -> None:
    for area in (
        Box(west=0.0, south=0.0, east=1.0, north=1.0),
        Circle(longitude=0.0, latitude=0.0, metres=5.0),
        polygons(tmp_path, POLYGON),
    ):
        assert area.holds([]).tolist() == []


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ('{"type": "Polygon",\n oh', "area.geojson:2: expected GeoJSON, found a mistake"),
        ("[" * 100_000, "expected GeoJSON, found"),
        ("[1, 2]", "expected a GeoJSON Polygon or MultiPolygon, found none"),
        (features(), "expected the features as an array"),
        ({"type": "Feature", "geometry": None}, "found 'Feature'"),
        (
            features(POLYGON, {"type": "LineString", "coordinates": SQUARE}),
            "found 'LineString'; draw the area as a polygon",
        ),
        ({"type": "Polygon"}, "expected the rings of a polygon as an array, found 'null'"),
        ({"type": "Polygon", "coordinates": "here"}, "expected the rings of a polygon"),
        ({"type": "Polygon", "coordinates": []}, "expected the rings of a polygon"),
        ({"type": "MultiPolygon", "coordinates": [3]}, "expected the rings of a polygon"),
        ({"type": "Polygon", "coordinates": [SQUARE, []]}, "expected a ring of points"),
        ({"type": "Polygon", "coordinates": [[None]]}, "expected points as"),
        ({"type": "Polygon", "coordinates": [[[1]]]}, "found '[1]'"),
        ({"type": "Polygon", "coordinates": [[["1", 2]]]}, "expected points as"),
        ({"type": "Polygon", "coordinates": [[[True, 2]]]}, "expected points as"),
        ({"type": "Polygon", "coordinates": [SQUARE[:4]]}, "end where they begin"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [0, 0]]]}, "found one of 3"),
        (
            {"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]},
            "do not cross themselves, found Self-intersection",
        ),
        (
            {"type": "Polygon", "coordinates": [[[5e5, 4e6]]]},
            "in degrees, found '[500000.0, 4000000.0]'; convert the file to WGS 84",
        ),
        (
            '{"type": "Polygon", "coordinates": [[[0, NaN], [2, 2], [2, 0], [0, NaN]]]}',
            "expected points as",
        ),
        ('{"type": "Polygon", "coordinates": %s}' % ("9" * 5000), "too many digits"),
    ],
)
def test_files_without_a_fit_polygon(
    tmp_path: Path, document: object, message: str
) -> None:
    with refused(FileError, message):
        polygons(tmp_path, document)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="found nothing of that name"):
        Polygons(tmp_path / "area.geojson")


def test_without_shapely_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "shapely", None)
    with pytest.raises(OptionError, match=r"install arcfleet\[maps\]"):
        polygons(tmp_path, POLYGON)


@given(
    longitude=st.floats(-150, 150),
    latitude=st.floats(-70, 70),
    azimuth=st.floats(0, 360),
    metres=st.floats(10, 5000),
)
def test_a_grown_area_holds_what_is_near(
    longitude: float, latitude: float, azimuth: float, metres: float
) -> None:
    corner = (longitude, latitude)
    box = Box(west=longitude - 0.01, south=latitude - 0.01, east=longitude, north=latitude)
    circle = Circle(longitude=longitude, latitude=latitude, metres=100)
    wgs84 = Geod(ellps="WGS84")
    near = wgs84.fwd(*corner, azimuth, 0.99 * metres)[:2]
    assert box.grown(metres).holds([corner, near]).all()
    assert circle.grown(metres).holds([corner, near]).all()
    far = wgs84.fwd(*corner, 45, 1.6 * metres)[:2]  # in the corner of a box: sqrt(2)
    assert not box.grown(metres).holds([far]).any()
    far = wgs84.fwd(*corner, azimuth, 1.01 * metres + 101)[:2]
    assert not circle.grown(metres).holds([far]).any()


def test_grown_polygons(tmp_path: Path) -> None:
    west, south = 8.0, 48.0
    square = [[west, south], [west + 0.01, south], [west + 0.01, south + 0.01]]
    square += [[west, south + 0.01], [west, south]]
    area = polygons(tmp_path, {"type": "Polygon", "coordinates": [square]})
    grown = area.grown(200)
    wgs84 = Geod(ellps="WGS84")
    for azimuth in (180, 225, 270):
        points = [wgs84.fwd(west, south, azimuth, metres)[:2] for metres in (190, 210)]
        assert grown.holds(points).tolist() == [True, False]
        assert not area.holds(points).any()
    assert grown.grown(100).holds([wgs84.fwd(west, south, 225, 290)[:2]]).all()
    assert "200 m around the polygon of" in grown.describe()


def test_a_box_grows_to_the_ends_of_the_earth_at_most() -> None:
    box = Box(west=-179.99, south=80.0, east=179.99, north=89.999).grown(50_000)
    assert (box.west, box.east, box.north) == (-180.0, 180.0, 90.0)


def test_polygons_may_be_drawn_in_memory() -> None:
    area = Polygons.of(
        features(POLYGON, {"type": "MultiPolygon", "coordinates": [[FAR_SQUARE]]})
    )
    points = [(0.5, 0.5), (2.0, 2.0), (9.5, 9.5), (5.0, 5.0)]
    assert area.holds(points).tolist() == [True, False, True, False]
    assert area.describe() == "the drawn polygon"
    assert area.grown(200_000.0).holds([(5.0, 5.0)]).all()
    with refused(FileError, "area: expected a GeoJSON Polygon or MultiPolygon, found none"):
        Polygons.of("polygon.geojson")
