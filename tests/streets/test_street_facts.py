"""Way numbers, kind and speed stay with streets, from the map to the plan."""

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapely import LineString

from arcfleet import (
    InstanceError,
    Link,
    check,
    make_scene,
    read,
    read_map,
    solve,
    write,
    write_geojson,
)
from arcfleet.errors import FileError, OptionError
from arcfleet.streets.osm_tags import way_number
from arcfleet.streets.scene import SceneRules, cut_scene, on_part
from arcfleet.streets.simplify import merge_chains
from arcfleet.streets.street_map import Street, StreetMap
from tests.helpers import refused
from tests.street_strategies import street_maps
from tests.streets.own_files import write_layer
from tests.streets.test_osm import osm_text
from tests.towns import town as grid
from tests.towns import write_csv_map

#: A square: ways 1 and 2 are one street of 2 and 1 pieces, way 3 runs against its line.
SQUARE = osm_text(
    ("1 2 3", "highway=residential name=Main"),
    ("3 4", "highway=residential name=Main maxspeed=20"),
    ("7 4", "highway=tertiary maxspeed:forward=30 maxspeed:backward=50"),
    ("7 6", "highway=tertiary"),
    ("1 5 6", "highway=residential oneway=-1"),
    ("1 6", "highway=living_street"),
)


@pytest.fixture
def town(tmp_path: Path) -> StreetMap:
    path = tmp_path / "town.osm"
    path.write_text(SQUARE, encoding="utf-8")
    return read_map(path)


def test_streets_know_the_ways_they_are_merged_from(town: StreetMap) -> None:
    main = next(street for street in town.streets if street.name == "Main")
    assert [way for way, _ in main.ways] == [1, 2]
    assert math.isclose(main.ways[0][1], 2 * main.ways[1][1], rel_tol=1e-3)
    for street in town.streets:
        assert math.isclose(math.fsum(metres for _, metres in street.ways), street.metres)


def test_links_keep_kind_ways_and_speeds(town: StreetMap, tmp_path: Path) -> None:
    instance = make_scene(town, capacity=3000)
    by_way = {link.ways: link for link in instance.links}
    main, tertiary, against = by_way[1, 2], by_way[4, 3], by_way[(5,)]
    assert (main.kind, tertiary.kind) == ("residential", "tertiary")
    # 2 of 3 pieces at the speed of the kind, 1 at 20 km/h: the speed that takes as long.
    assert main.speed_kmh == main.reverse_speed_kmh == pytest.approx(23.1, abs=0.1)
    # The merged street runs 6, 7, 4, and way 3 from 7 to 4: there 30 km/h, back 50.
    assert tertiary.speed_kmh is not None
    assert tertiary.reverse_speed_kmh is not None
    assert tertiary.speed_kmh < 40 < tertiary.reverse_speed_kmh
    assert (against.one_way, against.reverse_speed_kmh) == (True, None)
    file = tmp_path / "scene.json"
    write(instance, file)
    assert '"version": 4' in file.read_text()
    assert read(file) == instance
    plan = solve(instance, "ps", seed=1).solution
    assert check(instance, plan).ok
    write_geojson(instance, plan, tmp_path / "plan.geojson")
    features = json.loads((tmp_path / "plan.geojson").read_text("utf-8"))["features"]
    legs = [one["properties"] for one in features if one["properties"]["kind"] == "leg"]
    assert {tuple(leg["ways"]) for leg in legs} == set(by_way)
    for leg in legs:
        link = instance.links[leg["link"]]
        assert leg["highway"] == link.kind
        speed = link.reverse_speed_kmh if leg["reverse"] else link.speed_kmh
        assert leg["speed_kmh"] == speed


def test_a_part_of_a_street_has_the_ways_that_it_lies_on(town: StreetMap) -> None:
    main = next(street for street in town.streets if street.name == "Main")
    scene = cut_scene(town, SceneRules(capacity=math.ceil(main.metres / 3) + 1))
    parts = [link.ways for link in scene.instance.links if link.name == "Main"]
    assert parts == [(1,), (1,), (2,)]
    sides = make_scene(town, capacity=3000, both_sides=True)
    mains = [link for link in sides.links if link.name == "Main"]
    assert [link.ways for link in mains] == [(1, 2), (2, 1)]


@given(
    lengths=st.lists(st.just(0.0) | st.floats(0.001, 1000), min_size=1, max_size=5),
    parts=st.integers(1, 7),
)
def test_parts_of_a_street_have_all_its_ways_in_order(
    lengths: list[float], parts: int
) -> None:
    ways = tuple(enumerate(lengths))
    street = Street(tail=1, head=2, metres=math.fsum(lengths), ways=ways)
    found = [on_part(street.ways, part, parts) for part in range(parts)]
    assert all(found)
    along = [way for way, _ in itertools.groupby(itertools.chain.from_iterable(found))]
    longest = max(lengths)
    if longest > 0:
        assert along == sorted(along)
        assert {way for way, metres in ways if metres > 1e-6 * longest} <= set(along)


@given(street_map=street_maps(), data=st.data())
def test_merging_keeps_the_metres_of_every_way(
    street_map: StreetMap, data: st.DataObject
) -> None:
    numbers = st.integers(1, 3)
    streets = tuple(
        replace(street, ways=((data.draw(numbers), street.metres),))
        for street in street_map.streets
    )

    def metres(streets: tuple[Street, ...], wanted: int) -> float:
        found = (m for street in streets for way, m in street.ways if way == wanted)
        return math.fsum(found)

    merged = merge_chains(replace(street_map, streets=streets)).streets
    for way in (1, 2, 3):
        assert math.isclose(metres(merged, way), metres(streets, way), abs_tol=1e-6)
    for street in merged:
        assert all(one[0] != two[0] for one, two in itertools.pairwise(street.ways))


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *((17, 17), ("17", 17), ("way/17", 17), (17.0, 17), (-4, -4), ("w17", 17)),
        *(("node/17", None), ("", None), (None, None), ("17 18", None), (1.5, None)),
    ],
)
def test_numbers_of_ways_are_read_as_files_write_them(
    value: object, number: int | None
) -> None:
    assert way_number(value) == number


def test_geojson_gives_way_numbers(tmp_path: Path) -> None:
    line = {"type": "LineString", "coordinates": [[8.0, 48.0], [8.001, 48.0]]}
    feature = {"type": "Feature", "properties": {"@id": "way/5"}, "geometry": line}
    (tmp_path / "lines.geojson").write_text(json.dumps(feature), encoding="utf-8")
    assert read_map(tmp_path / "lines.geojson").streets[0].ways[0][0] == 5


#: A chain of three pieces and a way back; one piece has no id, one is drawn against.
LINES = [
    ([(8.0, 48.0), (8.001, 48.0)], "north-1"),
    ([(8.002, 48.0), (8.001, 48.0)], 17),
    ([(8.002, 48.0), (8.003, 48.0)], None),
    ([(8.003, 48.0), (8.003, 48.01), (8.0, 48.0)], "back"),
]


def write_lines(path: Path, lines: Sequence[tuple[Any, object]] = LINES) -> Path:
    features = [
        {
            "type": "Feature",
            "properties": {"Segment": own, "name": "Back" if own == "back" else "North"},
            "geometry": {"type": "LineString", "coordinates": points},
        }
        for points, own in lines
    ]
    document = {"type": "FeatureCollection", "features": features}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_a_street_has_the_ids_of_all_lines_it_was_merged_from(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "own.geojson")
    instance = make_scene(read_map(file, id="Segment"), capacity=9000)
    assert sorted(map(str, (link.ids for link in instance.links))) == [
        "('back',)",
        "('north-1', 17)",
    ]
    assert all(link.ids == () for link in make_scene(read_map(file), capacity=9000).links)
    # Each part of a street that is cut has the ids that it lies on.
    with pytest.warns(UserWarning, match="more demand than the capacity"):
        parts = make_scene(read_map(file, id="Segment"), capacity=80)
    north = [link.ids for link in parts.links if link.name == "North"]
    assert (north[0], north[-1]) == (("north-1",), (17,))
    both = make_scene(read_map(file, id="Segment"), capacity=9000, both_sides=True)
    north = [link.ids for link in both.links if link.name == "North"]
    assert north == [("north-1", 17), (17, "north-1")]


def test_chains_stay_apart_where_they_are_not_merged(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "own.geojson")
    pieces = read_map(file, id="Segment", merge_chains=False)
    found = [street.ids for street in pieces.streets]
    assert [[own for own, _ in ids] for ids in found] == [["north-1"], [17], [], ["back"]]
    for street, ids in zip(pieces.streets, found, strict=True):
        assert all(metres == street.metres for _, metres in ids)
    merged = read_map(file)
    assert merge_chains(pieces).streets == read_map(file, id="Segment").streets
    assert len(merged.streets) == 2
    town = tmp_path / "town.osm"
    town.write_text(SQUARE, encoding="utf-8")
    apart = read_map(town, merge_chains=False)
    assert all(len(street.ways) == 1 for street in apart.streets)
    assert merge_chains(apart) == read_map(town)


def test_ids_of_other_formats(tmp_path: Path) -> None:
    shapes = [LineString(points) for points, _ in LINES]
    rows = [{"Segment": number} for number in range(4)]
    layer = write_layer(tmp_path / "own.gpkg", "GPKG", rows, shapes)
    streets = read_map(layer, id="Segment", merge_chains=False).streets
    assert [own for street in streets for own, _ in street.ids] == [0, 1, 2, 3]
    town = tmp_path / "town.osm"
    text = osm_text(
        ("1 2", "highway=residential ref=A"), ("2 1", "highway=residential ref=B")
    )
    town.write_text(text, encoding="utf-8")
    ids = {own for street in read_map(town, id="ref").streets for own, _ in street.ids}
    assert ids == {"A", "B"}
    with refused(FileError, "expected ids of streets in a tag 'reff', found none"):
        read_map(town, id="reff")


@pytest.mark.parametrize(
    ("own", "id", "message"),
    [
        ("x", "segmnt", "a column 'segmnt', found none: did you mean 'Segment'?"),
        ([1], "Segment", "an id to be a whole number of 64 bits or a text that is not"),
        (True, "Segment", "got True in feature 0"),
        (1.5, "Segment", "got 1.5 in feature 0"),
        (2**63, "Segment", "in feature 0"),
    ],
)
def test_ids_that_are_none_are_refused(
    tmp_path: Path, own: object, id: str, message: str
) -> None:
    file = write_lines(tmp_path / "own.geojson", [(LINES[0][0], own)])
    with refused(FileError, message):
        read_map(file, id=id)


def test_a_csv_pair_has_no_ids(tmp_path: Path) -> None:
    file = write_csv_map(grid(blocks=2), tmp_path / "town")
    with refused(OptionError, "expected no id with a pair of CSV files"):
        read_map(file, id="name")


@pytest.mark.parametrize("speed", [0, -1.0, math.inf, math.nan, "fast", True])
def test_a_speed_is_a_number_above_0(speed: float) -> None:
    with pytest.raises(InstanceError, match="expected speed_kmh to be above 0"):
        Link(tail=1, head=2, cost=1, speed_kmh=speed)
