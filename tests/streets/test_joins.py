import csv
import io
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from arcfleet import Box, FileError, MapError, OptionError, Table, make_scene
from arcfleet.instance.geodesy import line_length
from arcfleet.streets.joins import JoinedTable, join_table, shared, unmatched_csv
from arcfleet.streets.scene import Scene, SceneRules, cut_scene
from arcfleet.streets.street_map import Street, StreetMap
from arcfleet.streets.tables import Row
from arcfleet.streets.turns import FREE_TURNS
from tests.helpers import refused
from tests.street_strategies import street_maps
from tests.streets.own_files import write_csv

#: A grid of 3 times 3 junctions, about 100 m apart.
STEP = 0.001
CORNERS = {
    10 * x + y: (8.0 + 1.5 * x * STEP, 48.0 + y * STEP) for x in range(3) for y in range(3)
}
NAMES = {0: "Südstraße", 1: "Mittelweg", 2: "North Avenue"}


def street(tail: int, head: int, name: str, kind: str, *ways: int) -> Street:
    metres = line_length([CORNERS[tail], CORNERS[head]])
    parts = tuple((way, metres / len(ways)) for way in ways)
    return Street(tail=tail, head=head, metres=metres, name=name, kind=kind, ways=parts)


STREETS = (
    # Ways 1 to 3 run east, two pieces each.
    *(street(y, 10 + y, NAMES[y], "residential", 1 + y) for y in range(3)),
    *(street(10 + y, 20 + y, NAMES[y], "residential", 1 + y) for y in range(3)),
    # West Road is one piece of way 7 and one of ways 7 and 8; the motorway is way 9.
    street(0, 1, "West Road", "tertiary", 7),
    street(1, 2, "West Road", "tertiary", 7, 8),
    street(20, 21, "Motorway", "motorway", 9),
    street(21, 22, "Motorway", "motorway", 9),
)
TOWN = StreetMap(name="town", junctions=CORNERS, streets=STREETS)
FREE = [""] * len(STREETS)


def joined(rows: Any, **more: Any) -> JoinedTable:
    table = rows if isinstance(rows, Table) else Table.of(rows)
    return join_table(table, TOWN, **({"role": "demand", "barred": FREE} | more))


def scene(rows: Any, **rules: Any) -> Scene:
    source = rows if isinstance(rows, Table | Path) else Table.of(rows)
    return cut_scene(TOWN, SceneRules(capacity=100, demand_file=source, **rules))


# --- Shares -----------------------------------------------------------------------------


@given(
    amount=st.integers(0, 10**9),
    weights=st.lists(st.floats(0, 1e6), min_size=1, max_size=20),
)
def test_shares_are_whole_and_add_up(amount: int, weights: list[float]) -> None:
    shares = shared(amount, weights)
    assert sum(shares) == amount
    total = math.fsum(weights)
    if total > 0:
        for share, weight in zip(shares, weights, strict=True):
            quota = amount * (weight / total)
            assert quota - 1 - 1e-6 * amount <= share <= quota + 1 + 1e-6 * amount
    else:
        assert max(shares) - min(shares) <= 1


def test_shares_go_to_the_largest_remainders() -> None:
    assert shared(10, [1, 1, 1]) == [4, 3, 3]
    assert shared(7, [3.0, 1.0, 0.0]) == [5, 2, 0]
    assert shared(1, [1.0, 1.5]) == [0, 1]


# --- Joins ------------------------------------------------------------------------------


def test_a_demand_by_name_is_shared_over_the_pieces_and_kept() -> None:
    table = joined([{"Straße": "Suedstr.", "demand": 7}, {"Straße": "mittelweg 3"}])
    assert (table.join, table.columns) == ("name", ("Straße",))
    assert table.demand_column == "demand"
    assert table.demands == {0: 4, 3: 3}
    (lost,) = table.unmatched
    assert (lost.row, lost.reason) == (2, "no demand in column demand")


def test_rows_of_one_street_are_shared_together() -> None:
    table = joined([{"street": "Mittelweg"}] * 6)
    assert table.demand_column is None
    assert table.demands == {1: 3, 4: 3}


def test_a_demand_by_way_is_shared_by_the_metres_of_the_way() -> None:
    table = joined([{"way_id": "way/7", "demand": 90}, {"way_id": 99, "demand": 1}])
    assert table.join == "way"
    # Way 7 is the first piece and half of the second.
    assert table.demands == {6: 60, 7: 30}
    assert [one.reason for one in table.unmatched] == ["no such way on the map"]
    assert table.matched + len(table.unmatched) == table.rows


def test_points_go_to_the_nearest_street() -> None:
    south, far = (8.0007, 48.0001), (8.0007, 48.3)
    rows = [
        {"lon": south[0], "lat": south[1], "litres": 120},
        {"lon": str(south[0]), "lat": "48,0001", "litres": 240},
        {"lon": far[0], "lat": far[1], "litres": 1},
        {"lon": None, "lat": 48.0, "litres": 1},
        {"lon": "east", "lat": 48.0, "litres": 1},
    ]
    table = joined(rows, column="litres")
    assert (table.join, table.columns) == ("place", ("lon", "lat"))
    assert table.demands == {0: 360}
    reasons = [one.reason for one in table.unmatched]
    assert reasons == [
        "no street within 100 m",
        "no place in columns lon and lat",
        "no degrees in columns lon and lat",
    ]
    assert "m away" in table.unmatched[0].suggestion
    assert joined(rows[:3], column="litres", snap=1e6).unmatched == ()


def test_areas_count_by_their_centre_and_lines_are_no_places() -> None:
    house = shapely.box(8.0006, 48.00005, 8.0008, 48.00015)
    line = shapely.LineString([(8.0, 48.0), (8.001, 48.0)])
    rows = tuple(
        Row(number=number, values={}, shape=shape)
        for number, shape in enumerate([house, shapely.Point(8.0007, 48.0), line, None], 1)
    )
    table = joined(Table(name="houses", columns=(), rows=rows))
    assert (table.join, table.columns, table.demands) == ("place", (), {0: 2})
    assert [one.reason for one in table.unmatched] == ["a line is no place", "no place"]


@given(data=st.data())
def test_the_nearest_street_is_that_of_all_distances(data: st.DataObject) -> None:
    degrees = st.tuples(st.floats(7.9995, 8.0035), st.floats(47.9995, 48.0025))
    longitude, latitude = data.draw(degrees)
    seen = [data.draw(st.sampled_from([True, True, False])) for _ in STREETS]
    scale = math.cos(math.radians(48.001)), 1.0
    point = shapely.Point(longitude * scale[0], latitude)
    distances = {
        position: shapely.LineString(
            [(x * scale[0], y) for x, y in TOWN.points(STREETS[position])]
        ).distance(point)
        for position, is_seen in enumerate(seen)
        if is_seen
    }
    rows = [{"lon": longitude, "lat": latitude}]
    if not distances:
        with refused(FileError, "expected rows on streets of the map, found none"):
            joined(rows, seen=seen)
        return
    (found,) = joined(rows, seen=seen, snap=1e5).demands
    assert distances[found] <= min(distances.values()) + 1e-9


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["Südstraße", "mittelweg", "N. Ave", "West Rd", "Nowhere", ""]),
            st.none() | st.integers(0, 10**6),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_no_row_and_no_demand_is_lost(rows: list[tuple[str, int | None]]) -> None:
    table = Table.of([{"street": name, "demand": demand} for name, demand in rows])
    good = {"Südstraße", "mittelweg", "N. Ave", "West Rd"}
    matched = [demand for name, demand in rows if name in good and demand is not None]
    if not matched:
        with pytest.raises(FileError, match="found none among"):
            joined(table)
        return
    found = joined(table)
    assert sum(found.demands.values()) == sum(matched)
    assert found.matched == len(matched)
    assert found.matched + len(found.unmatched) == len(rows)
    left = {one.row for one in found.unmatched}
    assert left == {
        number
        for number, (name, demand) in enumerate(rows, start=1)
        if name not in good or demand is None
    }


@pytest.mark.parametrize(
    ("columns", "join"),
    [
        ({"way": 1, "lon": 8.0, "lat": 48.0, "name": "West Road"}, "way"),
        ({"osm_id": 1, "Longitude": 8.0, "LATITUDE": 48.0, "name": "x"}, "place"),
        ({"osm_id": 1, "name": "West Road"}, "way"),
        ({"@id": "way/1"}, "way"),
        ({"addr:street": "West Road", "id": 7}, "name"),
        ({"Street Name": "West Road"}, "name"),
        ({"x": 8.0, "y": 48.0}, "place"),
    ],
)
def test_the_join_is_recognised_by_the_columns(columns: dict[str, Any], join: str) -> None:
    assert joined([columns]).join == join


def test_another_join_may_be_asked_for() -> None:
    rows = [{"way": 7, "name": "Südstraße", "lon": 8.0, "lat": 48.0015}]
    assert joined(rows).demands == {6: 1, 7: 0}
    assert joined(rows, join="name").demands == {0: 1, 3: 0}
    assert joined(rows, join="place").demands == {7: 1}
    with refused(FileError, "expected points, or columns lon and lat, to join by place"):
        joined([{"name": "x"}], join="place")
    with refused(OptionError, "expected a join among way, name, place"):
        joined(rows, join="id")


@pytest.mark.parametrize(
    ("rows", "more", "message"),
    [
        ([{"colour": "red"}], {}, "found only 'colour'; rename a column"),
        ([{"street": "x", "demand": 1}], {}, "found none among 1: row 1, 'x': no street"),
        ([{"street": "Mittelweg", "demand": "0.5"}], {}, "use a smaller unit"),
        ([{"street": "Mittelweg", "demand": -3}], {}, "expected whole numbers from 0"),
        ([{"street": "Mittelweg", "demand": "many"}], {}, "found 'many'"),
        ([{"street": "Mittelweg", "tons": 3}], {"column": "Ton"}, "did you mean 'tons'?"),
        (
            [{"street": "Mittelweg", "demand": 2**31 - 1}] * 2,
            {},
            "expected a total demand of at most",
        ),
        (
            [{"lon": 48.001, "lat": 8.001}, {"lon": 48.002, "lat": 8.001}],
            {},
            "found 48.001,8.001, which looks like LAT,LON; swap the two columns",
        ),
    ],
)
def test_what_cannot_be_joined_is_one_sentence(
    rows: list[dict[str, Any]], more: dict[str, Any], message: str
) -> None:
    with refused(FileError, message):
        joined(rows, **more)


def test_columns_that_may_be_the_demand_are_named() -> None:
    rows = [{"street": "Mittelweg", "litres": 240, "lid": "red", "id": 3}]
    assert joined(rows).other_columns == ("litres",)
    assert joined(rows, column="Litres").other_columns == ()
    # A cell that is empty does not hide the column, a column of empty cells is none.
    rows = [*rows, {"street": "Mittelweg", "litres": None, "lid": None, "id": 4, "kg": ""}]
    assert joined(rows).other_columns == ("litres",)


def test_unmatched_rows_are_csv() -> None:
    table = joined([{"street": "Mittelweg"}, {"street": 'West "Rode", 7'}])
    (row,) = csv.DictReader(io.StringIO(unmatched_csv([table])))
    assert row == {
        "file": "rows",
        "row": "2",
        "value": 'West "Rode", 7',
        "demand": "1",
        "reason": "no street of this name",
        "suggestion": "West Road",
    }


# --- Scenes -----------------------------------------------------------------------------


def required(made: Scene) -> dict[str, int]:
    found: dict[str, int] = {}
    for link in made.instance.links:
        if link.required:
            found[link.name] = found.get(link.name, 0) + link.demand
    return found


def test_streets_in_the_file_are_served_and_others_driven_on() -> None:
    made = scene([{"street": "Südstr", "demand": 5}, {"street": "Motorway", "demand": 3}])
    # A name is as explicit as --serve-name: a motorway, too.
    assert required(made) == {"Südstraße": 5, "Motorway": 3}
    assert made.without_row.streets == 6
    assert len(made.street_map.streets) == len(STREETS)
    assert made.warnings == ()


def test_a_place_by_a_motorway_belongs_to_the_street_nearby() -> None:
    place = {"lon": 8.00301, "lat": 48.0004}
    made = scene([place])
    assert "Motorway" not in required(made)
    asked = scene([place], serve_kinds=("all",))
    assert required(asked) == {"Motorway": 1}


def test_a_demand_beside_the_file_serves_all_others() -> None:
    made = scene([{"street": "Südstr", "demand": 5}], demand=2)
    assert required(made) == {
        "Südstraße": 5,
        "Mittelweg": 4,
        "North Avenue": 4,
        "West Road": 4,
    }
    assert made.without_row.streets == 0


def test_both_sides_have_the_demand_together() -> None:
    made = scene([{"street": "Südstr", "demand": 7}], both_sides=True)
    assert required(made) == {"Südstraße": 7}
    demands = sorted(link.demand for link in made.instance.links if link.required)
    assert demands == [1, 2, 2, 2]


def test_oversized_streets_are_split_and_keep_their_demand() -> None:
    made = scene([{"street": "Südstr", "demand": 555}])
    assert required(made) == {"Südstraße": 555}
    assert max(link.demand for link in made.instance.links) <= 100
    assert "unit of the demand (that of rows)" in made.warnings[0]


def test_serve_and_exclude_files_and_names() -> None:
    serve = Table.of([{"street": "Südstr."}, {"street": "West Rd"}], "serve")
    leave = Table.of([{"way": 8}], "leave")
    rules = SceneRules(capacity=9999, serve_file=serve, exclude_file=leave)
    made = cut_scene(TOWN, rules)
    served = [link.ways for link in made.instance.links if link.required]
    assert served == [(1,), (1,), (7,)]
    assert made.excluded.streets == 1
    assert [table.role for table in made.joins] == ["exclude", "serve"]
    made = cut_scene(
        TOWN,
        SceneRules(
            capacity=9999,
            exclude_names=("sudstrasse",),
            exclude_kinds=("TERTIARY",),
            demand=1,
        ),
    )
    assert required(made) == {"Mittelweg": 2, "North Avenue": 2}
    assert made.excluded.streets == 4


def test_rows_on_streets_that_are_not_served_say_why() -> None:
    box_rules: Any = {"serve_kinds": ("residential",), "exclude_names": ("Mittelweg",)}
    rows = [
        {"street": "Südstr.", "demand": 4},
        {"street": "Mittelweg", "demand": 4},
        {"street": "West Road", "demand": 4},
    ]
    made = scene(rows, **box_rules)
    assert required(made) == {"Südstraße": 4}
    assert [one.reason for one in made.joins[0].unmatched] == [
        "excluded",
        "not among the streets to serve (tertiary)",
    ]
    assert made.warnings == (
        "2 of 3 rows of rows found no street to serve, as row 2, 'Mittelweg': excluded",
    )


def test_rows_outside_the_area_are_unmatched_and_pieces_inside_have_all() -> None:
    west = Box(west=7.999, south=47.999, east=8.0016, north=48.01)
    rows = [{"street": "Südstr.", "demand": 9}, {"street": "Motorway", "demand": 2}]
    made = scene(rows, area=west)
    assert required(made) == {"Südstraße": 9}
    assert [one.reason for one in made.joins[0].unmatched] == ["outside the area"]
    # A place beyond the border is not drawn into the area.
    made = scene([{"lon": 8.0007, "lat": 48.0}, {"lon": 8.0017, "lat": 48.0}], area=west)
    assert made.instance.total_demand == 1
    assert [one.reason for one in made.joins[0].unmatched] == ["outside the area"]


def test_nothing_left_to_serve_is_refused() -> None:
    with refused(MapError, "exclude fewer streets"):
        make_scene(TOWN, capacity=9, serve_names=["Mittelweg"], exclude_names=["Mittelweg"])
    with refused(MapError, "did you mean 'Mittelweg'?"):
        make_scene(TOWN, capacity=9, exclude_names=["Mitelweg"])


def test_rules_about_tables_are_checked() -> None:
    with refused(OptionError, "expected a demand file with demand_column, got none"):
        SceneRules(capacity=9, demand_column="kg")
    with refused(OptionError, "expected snap between 0 and"):
        SceneRules(capacity=9, snap=-1)
    wrong: Any = [{"street": "x"}]
    with refused(OptionError, "write Table.of(rows) for dicts"):
        SceneRules(capacity=9, demand_file=wrong)


def test_python_warns_of_unmatched_rows(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "bins.csv", [{"street": "Südstr"}, {"street": "Nowhere"}])
    with pytest.warns(UserWarning, match="1 of 2 rows of .*bins.csv found no street"):
        instance = make_scene(TOWN, capacity=5, demand_file=path)
    assert instance.total_demand == 1


def test_the_same_rows_in_another_order_give_the_same_demands() -> None:
    rows = [{"street": name, "demand": 5 + i} for i, name in enumerate(NAMES.values())] * 3
    mixed = random.Random(3).sample(rows, len(rows))
    assert required(scene(rows)) == required(scene(mixed))
    assert scene(rows).instance == scene(mixed).instance


def test_a_map_without_way_numbers_says_so() -> None:
    bare = tuple(replace(one, ways=()) for one in STREETS)
    with refused(FileError, "the map has no way numbers"):
        join_table(
            Table.of([{"way": 3}]),
            replace(TOWN, streets=bare),
            role="demand",
            barred=FREE,
        )


#: West Road is one-way into the town, and nothing leads to its first junction.
ONE_WAY_IN = StreetMap(
    name="town",
    junctions=CORNERS | {50: (7.9985, 48.0), 51: (7.998, 48.0)},
    streets=(
        *STREETS,
        Street(tail=50, head=0, metres=110, name="Südstraße", one_way=True),
        Street(tail=51, head=50, metres=40, name="Way In", one_way=True),
    ),
)


def test_rows_on_streets_that_cannot_be_served_are_unmatched() -> None:
    rows = [
        {
            "street": "Südstr.",
            "demand": 9,
        },  # two pieces that can be served, one that cannot
        {"street": "Way In", "demand": 5},
    ]
    rules = SceneRules(capacity=100, demand_file=Table.of(rows))
    made = cut_scene(ONE_WAY_IN, rules)
    assert required(made) == {"Südstraße": 9}
    (table,) = made.joins
    assert [str(one) for one in table.unmatched] == [
        "row 2, 'Way In': its street cannot be served: no way there"
    ]
    assert {one.street.name for one in made.unserved} == {"Südstraße", "Way In"}
    places = [{"lon": 7.9983, "lat": 48.0}, {"lon": 8.0005, "lat": 48.0}]
    made = cut_scene(ONE_WAY_IN, replace(rules, demand_file=Table.of(places)))
    assert made.instance.total_demand == 1
    assert len(made.joins[0].unmatched) == 1


def test_a_place_on_an_excluded_street_is_not_moved_to_another() -> None:
    on, beside = {"lon": 8.0007, "lat": 48.00101}, {"lon": 8.0007, "lat": 48.0}
    made = scene([on, beside], exclude_names=("Mittelweg",), snap=500)
    assert required(made) == {"Südstraße": 1}
    assert [one.reason for one in made.joins[0].unmatched] == ["excluded"]


def test_streets_of_one_name_in_two_towns_are_warned_of() -> None:
    far = {60: (8.1, 48.0), 61: (8.101, 48.0)}
    road = Street(tail=2, head=60, metres=7400, name="Long Road")
    other = Street(tail=60, head=61, metres=74, name="Südstraße")
    two = replace(
        TOWN, junctions=CORNERS | far, streets=(*STREETS, road, other), name="two towns"
    )
    rules = SceneRules(
        capacity=100,
        demand_file=Table.of([{"street": "Südstr"}, {"street": "Mittelweg"}]),
        turns=FREE_TURNS,
    )
    made = cut_scene(two, rules)
    assert made.warnings == (
        "1 name of rows, as 'Südstraße', is on streets more than 2 km apart, which share "
        "the demand: give an area",
    )
    inside = replace(rules, area=Box(west=7.9, south=47.9, east=8.05, north=48.1))
    assert cut_scene(two, inside).warnings == ()


@settings(max_examples=60)
@given(street_map=street_maps(), data=st.data())
def test_a_scene_has_the_demand_of_its_file_but_for_unmatched_rows(
    street_map: StreetMap, data: st.DataObject
) -> None:
    ways = st.sampled_from(range(1, 5))
    streets = tuple(
        replace(one, ways=((data.draw(ways), one.metres),)) for one in street_map.streets
    )
    demands = data.draw(st.lists(st.tuples(ways, st.integers(0, 500)), min_size=1))
    table = Table.of([{"way": way, "demand": demand} for way, demand in demands])
    rules = SceneRules(
        capacity=data.draw(st.integers(20, 400)),
        demand_file=table,
        both_sides=data.draw(st.booleans()),
    )
    try:
        made = cut_scene(replace(street_map, streets=streets), rules)
    except (MapError, FileError):
        return  # no row has a street, or nothing can be served
    (joined,) = made.joins
    lost = sum(one.demand or 0 for one in joined.unmatched)
    total = made.instance.total_demand + made.lost_demand
    assert total + lost == sum(demand for _, demand in demands)
    assert joined.matched + len(joined.unmatched) == len(demands)
    served = {way for link in made.instance.links if link.required for way in link.ways}
    assert served <= {way for way, _ in demands}
