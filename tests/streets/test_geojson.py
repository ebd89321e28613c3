import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from arcfleet.errors import FileError
from arcfleet.streets.files import read_map
from arcfleet.streets.osm_tags import Tags
from tests.helpers import refused

A, B, C, D = [8.0, 48.0], [8.001, 48.0], [8.002, 48.0], [8.001, 48.001]


def feature(kind: str, coordinates: Any, **properties: Any) -> dict[str, Any]:
    geometry = {"type": kind, "coordinates": coordinates}
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def collection(*features: Any, **members: Any) -> dict[str, Any]:
    return {"type": "FeatureCollection", "features": list(features), **members}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "town.geojson"


def write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_lines_meet_at_equal_points(path: Path) -> None:
    content = collection(
        feature("LineString", [A, B], name="East", highway="residential", oneway="yes"),
        feature("LineString", [[*C, 412.0], B], oneway=True),
        feature("MultiLineString", [[B, [8.0011, 48.0005], D]], oneway=False),
        feature("Point", A),
        feature("Polygon", [[A, B, C, A]]),
        {"type": "Feature", "properties": None, "geometry": None},
    )
    street_map = read_map(write(path, content))
    at = {place: number for number, place in street_map.junctions.items()}
    a, b, c, d = (at[(x, y)] for x, y in (A, B, C, D))
    east, west, north = street_map.streets
    assert (east.tail, east.head, east.one_way) == (a, b, True)
    assert (east.name, east.kind) == ("East", "residential")
    assert (west.tail, west.head, west.one_way) == (c, b, True)
    assert (north.tail, north.head, north.one_way) == (b, d, False)
    assert len(north.geometry) == 3
    assert 74 < east.metres < 75
    assert (street_map.name, street_map.attribution) == ("town", "")


@pytest.mark.parametrize(
    ("oneway", "one_way"),
    [(1.0, True), (1, True), (-1.0, True), (0.0, False), (0.5, False), (None, False)],
)
def test_numbers_say_one_way_too(path: Path, oneway: object, one_way: bool) -> None:
    content = collection(feature("LineString", [A, B], oneway=oneway))
    street_map = read_map(write(path, content))
    (only,) = street_map.streets
    assert only.one_way == one_way
    backward = oneway == -1.0
    assert street_map.junctions[only.tail] == tuple(B if backward else A)


def test_of_several_kinds_the_most_important_counts(path: Path) -> None:
    content = collection(
        feature("LineString", [A, B], highway=["footway"]),
        feature("LineString", [A, C], highway=["residential", "primary", "path"]),
        feature("LineString", [A, D], highway="road", name=["West", "East", "West"]),
        feature("LineString", [C, D], highway=[]),
    )
    first, second, third = read_map(write(path, content)).streets
    assert third.kind == ""
    assert first.kind == "primary"
    assert (second.kind, second.name) == ("road", "East; West")


def test_lines_are_cut_where_others_touch_them_and_joined_elsewhere(path: Path) -> None:
    content = collection(feature("LineString", [A, B, C]), feature("LineString", [D, B]))
    assert len(read_map(write(path, content)).streets) == 3
    content = collection(feature("LineString", [A, B]), feature("LineString", [C, B]))
    (only,) = read_map(write(path, content)).streets
    assert only.geometry == (tuple(A), tuple(B), tuple(C))


@pytest.mark.parametrize("wrap", ["feature", "geometry", "geometries"])
def test_all_shapes_of_a_file_are_read(path: Path, wrap: str) -> None:
    content = feature("LineString", [A, B])
    if wrap == "geometry":
        content = content["geometry"]
    if wrap == "geometries":
        content = {"type": "GeometryCollection", "geometries": [content["geometry"]]}
    path = path.with_name("line.json.gz")
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    street_map = read_map(path)
    assert len(street_map.streets) == 1
    assert street_map.name == "line"


def test_the_rule_holds_for_lines_with_a_kind(path: Path) -> None:
    write(
        path,
        collection(
            feature("LineString", [A, B], highway="footway"),
            feature("LineString", [B, C], highway="primary"),
            feature("LineString", [B, D], lanes=2),
        ),
    )
    assert [s.kind for s in read_map(path).streets] == ["primary", ""]
    assert [s.kind for s in read_map(path, streets={"footway"}).streets] == ["footway", ""]

    def has_lanes(tags: Tags) -> bool:
        return tags.get("lanes") == "2"

    assert len(read_map(path, streets=has_lanes).streets) == 1


@pytest.mark.parametrize(
    "members",
    [
        {"credit": "the town"},
        {"attribution": "the town"},
        {"copyright": "the town"},
        # What is no text is passed over.
        {"credit": "", "attribution": 7, "copyright": "the town"},
    ],
)
def test_the_attribution_of_the_file_is_kept(path: Path, members: dict[str, Any]) -> None:
    write(path, collection(feature("LineString", [A, B]), **members))
    assert read_map(path).attribution == "the town"
    assert read_map(path, attribution="us").attribution == "us"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (collection(), "expected at least one street as a line, found no line"),
        (collection(feature("Point", A)), "found no line"),
        (
            collection(feature("LineString", [A, B], highway="steps")),
            "found lines, but none of a kind that is wanted",
        ),
        (
            collection(feature("LineString", [[500000, 5300000], A])),
            "in degrees, found '[500000, 5300000]' in feature 0; convert",
        ),
        (
            collection(feature("LineString", [A, B]), crs={"name": "EPSG::25832"}),
            "convert the file to EPSG:4326",
        ),
        (collection(feature("LineString", [A])), "at least 2 points in a line, found 1"),
        (collection(feature("LineString", [A, A])), "found only lines without extent"),
        (collection(feature("LineString", [A, [8.0]])), "expected points as [longitude,"),
        (collection(feature("LineString", [A, ["8", "48"]])), "expected points as "),
        (collection(feature("LineString", None)), "expected a list, found 'null'"),
        (collection(7), "expected a feature, found '7' in feature 0"),
        ({"type": "Feature", "geometry": []}, "expected a geometry, found '[]'"),
        ({"type": "FeatureCollection"}, "expected a list of features, found none"),
        ({"features": []}, "expected GeoJSON, found JSON without a type"),
        ([1, 2], "expected GeoJSON, found JSON without a type"),
    ],
)
def test_errors_say_what_is_wrong(path: Path, content: Any, expected: str) -> None:
    write(path, content)
    with refused(FileError, expected) as caught:
        read_map(path)
    assert str(caught.value).startswith(f"{path}: expected ")


def test_broken_json_is_named_by_its_line(path: Path) -> None:
    path.write_text('{"type":\n "FeatureCollection",\n')
    with pytest.raises(FileError, match=r"geojson:3: expected GeoJSON, found a mistake"):
        read_map(path)
    for text, found in (
        ("[" * 100_000, "too deep"),
        (f"[{'1' * 5000}]", "too many digits"),
    ):
        path.write_text(text)
        with pytest.raises(FileError, match=f"expected GeoJSON, found .* {found}"):
            read_map(path)
