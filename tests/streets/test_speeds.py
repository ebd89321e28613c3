import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcfleet.errors import FormatWarning, MapError, OptionError
from arcfleet.instance import Instance
from arcfleet.streets import Street, StreetMap
from arcfleet.streets.files import read_map
from arcfleet.streets.osm_tags import DRIVABLE_KINDS
from arcfleet.streets.osmnx_graph import from_osmnx
from arcfleet.streets.scene import SceneRules, cut_scene, make_scene
from arcfleet.streets.simplify import merge_chains
from arcfleet.streets.speeds import (
    CLASS_SPEEDS,
    LimitReader,
    SpeedLimit,
    measures_of,
    merged_limit,
    parse_speed,
)
from tests.helpers import refused

MPH = 1.609344
RULES = SceneRules(capacity=10**9, cost="time")


@pytest.mark.parametrize(
    ("text", "speed"),
    [
        ("50", 50.0),
        (" 50 ", 50.0),
        ("12.5", 12.5),
        ("50 km/h", 50.0),
        ("30 mph", 30 * MPH),
        ("30mph", 30 * MPH),
        ("5 knots", 5 * 1.852),
        ("walk", 7.0),
        ("DE:urban", 50.0),
        ("DE:rural", 100.0),
        ("FR:rural", 80.0),
        ("BE-VLG:rural", 90.0),
        ("DE:zone30", 30.0),
        ("DE:zone:30", 30.0),
        ("DE:30", 30.0),
        ("GB:zone20", 20 * MPH),
        ("GB:nsl_single", 60 * MPH),
        ("DE:living_street", 7.0),
        ("DE:bicycle_road", 30.0),
        ("50;30", 30.0),
        ("35 mph;40 mph", 35 * MPH),
        ("signals;60", 60.0),
        *((word, None) for word in ("none", "signals", "variable", "DE:motorway")),
    ],
)
def test_values_of_maxspeed(text: str, speed: float | None) -> None:
    assert parse_speed(text) == (None if speed is None else pytest.approx(speed))


@pytest.mark.parametrize(
    "text", ["", "0", "0 mph", "-30", "fast", "urban", "DE:warp", "900", "nan", "50 yards"]
)
def test_what_is_no_speed(text: str) -> None:
    with pytest.raises(ValueError, match="expected a speed"):
        parse_speed(text)


@given(st.text(max_size=12))
def test_any_text_is_a_speed_or_none(text: str) -> None:
    try:
        speed = parse_speed(text)
    except ValueError:
        return
    assert speed is None or 1 <= speed <= 200


def test_limits_by_direction() -> None:
    reader = LimitReader()
    tags = {"maxspeed": "50", "maxspeed:backward": "30"}
    assert reader.limits(tags) == (SpeedLimit(50.0), SpeedLimit(30.0))
    assert reader.limits({"maxspeed:forward": "30"}) == (SpeedLimit(30.0), None)
    # What the direction says holds, even if it has no number.
    tags = {"maxspeed": "50", "maxspeed:forward": "signals"}
    assert reader.limits(tags) == (None, SpeedLimit(50.0))
    assert reader.limits({}) == (None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reader.warn("map")


def test_nonsense_is_counted_in_one_warning() -> None:
    reader = LimitReader()
    tags = {"maxspeed": "0", "name": "High Street"}
    assert reader.limits(tags) == (None, None)
    tags = {"maxspeed": "50", "maxspeed:forward": "fast"}
    assert reader.limits(tags) == (SpeedLimit(50.0), SpeedLimit(50.0))
    with pytest.warns(FormatWarning) as caught:
        reader.warn("town.osm")
    (warning,) = caught
    assert str(warning.message) == (
        "town.osm: expected speeds as maxspeed, found none that make sense on 2 lines, as "
        "'0' on 'High Street'; the speed of the street's class is used there"
    )


# --- Maps ---------------------------------------------------------------------------------

_OSM = """<osm version="0.6">
<node id="1" lat="0.0" lon="0.0"/><node id="2" lat="0.0" lon="0.001"/>
<node id="3" lat="0.0" lon="0.003"/><node id="4" lat="0.001" lon="0.003"/>
<way id="1"><nd ref="1"/><nd ref="2"/><tag k="highway" v="residential"/>
 <tag k="maxspeed" v="30"/></way>
<way id="2"><nd ref="2"/><nd ref="3"/><tag k="highway" v="residential"/></way>
<way id="3"><nd ref="3"/><nd ref="4"/><tag k="highway" v="primary"/><tag k="oneway" v="-1"/>
 <tag k="maxspeed:forward" v="70"/><tag k="maxspeed:backward" v="50"/></way>
</osm>"""


def test_openstreetmap(tmp_path: Path) -> None:
    (tmp_path / "town.osm").write_text(_OSM)
    merged, against = read_map(tmp_path / "town.osm").streets
    # One third of the chain has a limit.
    assert merged.limit is not None
    assert merged.limit == merged.reverse_limit
    assert merged.limit.speed == 30.0
    assert merged.limit.share == pytest.approx(1 / 3, abs=1e-3)
    assert (against.tail, against.head, against.one_way) == (4, 3, True)
    assert (against.limit, against.reverse_limit) == (SpeedLimit(50.0), SpeedLimit(70.0))
    (tmp_path / "town.osm").write_text(_OSM.replace('"30"', '"0"'))
    with pytest.warns(FormatWarning, match="on 1 line, as '0'"):
        street_map = read_map(tmp_path / "town.osm")
    assert street_map.streets[0].limit is None


def test_geojson(tmp_path: Path) -> None:
    def line(x: float, **properties: object) -> dict[str, object]:
        points = [[0.0, 0.0], [x, 0.01]]
        geometry = {"type": "LineString", "coordinates": points}
        return {"type": "Feature", "geometry": geometry, "properties": properties}

    features = [
        line(0.01, maxspeed=30),
        line(0.02, maxspeed=["50", 30]),
        line(0.03, maxspeed="20 mph"),
        line(0.04, maxspeed=None),
    ]
    path = tmp_path / "lines.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    speeds = [s.limit and round(s.limit.speed, 2) for s in read_map(path).streets]
    assert speeds == [30, 30, 32.19, None]


def test_osmnx() -> None:
    graph = networkx.MultiDiGraph()
    for node in range(4):
        graph.add_node(node, x=0.001 * node, y=0.0)
    graph.add_edge(0, 1, length=100, oneway=False, maxspeed="50")
    graph.add_edge(1, 0, length=100, oneway=False, maxspeed=["30", "50"])
    graph.add_edge(1, 2, length=100, oneway=True, maxspeed=float("nan"))
    graph.add_edge(2, 3, length=100, oneway=True, maxspeed="quick")
    with pytest.warns(FormatWarning, match="OSMnx graph: .* on 1 line, as 'quick'"):
        first, second, third = from_osmnx(graph).streets
    assert (first.limit, first.reverse_limit) == (SpeedLimit(50.0), SpeedLimit(30.0))
    assert second.limit is third.limit is None


def chain(*pieces: tuple[float, SpeedLimit | None, SpeedLimit | None, bool]) -> StreetMap:
    """Streets one after the other, drawn forward or backward."""
    streets = []
    for number, (metres, there, back, forward) in enumerate(pieces):
        ends = (number, number + 1) if forward else (number + 1, number)
        limits = (there, back) if forward else (back, there)
        streets.append(
            Street(
                tail=ends[0],
                head=ends[1],
                metres=metres,
                kind="residential",
                limit=limits[0],
                reverse_limit=limits[1],
            )
        )
    junctions = {n: (0.001 * n, 0.0) for n in range(len(pieces) + 1)}
    return StreetMap(name="chain", junctions=junctions, streets=tuple(streets))


def seconds_there_and_back(street_map: StreetMap, first: int) -> tuple[float, float]:
    """Sum by hand, from the end of the chain that has the number `first`."""
    there = back = 0.0
    for street in street_map.streets:
        forward = (street.tail < street.head) == (first == 0)
        for limit, ahead in ((street.limit, forward), (street.reverse_limit, not forward)):
            share = 0.0 if limit is None else limit.share
            speed = 1.0 if limit is None else limit.speed
            pace = share / speed + (1 - share) / CLASS_SPEEDS["residential"]
            if ahead:
                there += 3.6 * street.metres * pace
            else:
                back += 3.6 * street.metres * pace
    return there, back


_limits = st.none() | st.builds(
    SpeedLimit, st.sampled_from([7.0, 30.0, 50.0, 48.28]), st.sampled_from([0.25, 1.0])
)
_pieces = st.tuples(st.floats(0, 900), _limits, _limits, st.booleans())


@given(st.lists(_pieces, min_size=2, max_size=6))
def test_merging_keeps_the_travel_time(pieces: list[Any]) -> None:
    street_map = chain(*pieces)
    merged = merge_chains(street_map)
    (street,) = merged.streets
    expected = seconds_there_and_back(street_map, street.tail)
    first = min(street.tail, street.head)
    assert first == 0
    assert seconds_there_and_back(merged, street.tail) == pytest.approx(expected, abs=1e-6)
    measures = measures_of(street, RULES)
    assert measures.there == max(1, round(expected[0])) or abs(expected[0] % 1 - 0.5) < 1e-6


def test_pieces_of_no_length_have_no_limit() -> None:
    assert merged_limit([(0.0, SpeedLimit(50.0)), (0.0, None)]) is None
    assert merged_limit([(5e-324, SpeedLimit(50.0)), (0.0, None)]) is None
    assert merged_limit([(0.0, SpeedLimit(50.0)), (0.0, SpeedLimit(50.0))]) == (50.0, 1.0)


# --- Scenes -------------------------------------------------------------------------------


def square(**more: Any) -> StreetMap:
    """Four streets of 500 m, one of them with limits by direction."""
    places = {1: (0.0, 0.0), 2: (0.0045, 0.0), 3: (0.0045, 0.0045), 4: (0.0, 0.0045)}
    ends = [(1, 2), (2, 3), (3, 4), (4, 1)]
    kinds = ["residential", "primary", "track", ""]
    streets = [
        Street(tail=tail, head=head, metres=500.0, kind=kind)
        for (tail, head), kind in zip(ends, kinds, strict=True)
    ]
    streets[1] = replace(
        streets[1], limit=SpeedLimit(50.0), reverse_limit=SpeedLimit(30.0), **more
    )
    return StreetMap(name="square", junctions=places, streets=tuple(streets))


def numbers(instance: Instance) -> list[tuple[int | None, ...]]:
    return [
        (x.cost, x.reverse_cost, x.service_cost, x.reverse_service_cost)
        for x in instance.links
    ]


def times(instance: Instance) -> list[tuple[int | None, ...]]:
    return [(x.seconds, x.reverse_seconds, x.service_seconds) for x in instance.links]


def test_costs_are_seconds_or_metres_and_links_have_both() -> None:
    by_time = make_scene(square(), capacity=2000, cost="time", service_speed=20)
    assert by_time.cost_unit == "seconds"
    assert [link.metres for link in by_time.links] == [500] * 4
    # 500 m take 72 s at 25 km/h, 36 s at 50, 60 s at 30 and 90 s at 20.
    assert times(by_time) == [(72, 72, 90), (36, 60, 90), (72, 72, 90), (72, 72, 90)]
    assert numbers(by_time) == [(72, 72, 90, 90), (36, 60, 90, 90), *[(72, 72, 90, 90)] * 2]
    by_length = make_scene(square(), capacity=2000, service_speed=20)
    assert by_length.cost_unit == "metres"
    assert numbers(by_length) == [(500,) * 4] * 4
    assert times(by_length) == times(by_time)


def test_speeds_of_classes_and_of_serving() -> None:
    rules: dict[str, Any] = {"capacity": 2000, "cost": "time", "service_time": 5}
    scene = make_scene(
        square(), speeds={"Residential": 20, "track": 10, "unknown": 5}, **rules
    )
    # Serving is by its speed of 10 km/h, but never faster than driving.
    assert times(scene) == [(90, 90, 185), (36, 60, 185), (180, 180, 185), (360, 360, 365)]
    # A class without a speed of its own has that of unknown ones.
    scene = make_scene(square(), speeds={"unknown": 5}, **rules)
    assert [link.seconds for link in scene.links] == [72, 36, 360, 360]


def test_one_way_streets_and_sides() -> None:
    one_way = make_scene(square(one_way=True), capacity=2000, cost="time")
    link = one_way.links[1]
    assert (link.cost, link.reverse_cost, link.reverse_seconds) == (36, None, None)
    two_way = make_scene(square(one_way=True), capacity=2000, cost="time", one_way=False)
    assert numbers(two_way)[1] == (36, 60, 180, 180)
    sides = make_scene(square(), capacity=2000, cost="time", both_sides=True)
    there, back = sides.links[2:4]
    assert (there.tail, back.tail) == (2, 3)
    assert (there.cost, there.seconds, back.cost, back.seconds) == (36, 36, 60, 60)
    assert there.service_cost == back.service_cost == back.service_seconds == 180


def test_streets_that_are_not_served_have_no_time_of_serving() -> None:
    scene = make_scene(square(), capacity=2000, cost="time", serve_kinds=("primary",))
    assert [link.service_seconds for link in scene.links] == [None, 180, None, None]


@given(
    st.integers(1, 600),
    st.integers(1, 200),
    st.floats(0.3, 2000),
    _limits,
    _limits,
    st.floats(1, 100),
    st.floats(0, 100),
)
def test_parts_of_a_split_street_add_up(
    demand: int,
    capacity: int,
    metres: float,
    there: SpeedLimit | None,
    back: SpeedLimit | None,
    service_speed: float,
    service_time: float,
) -> None:
    places = {1: (0.0, 0.0), 2: (0.001, 0.0)}
    street = Street(tail=1, head=2, metres=metres, limit=there, reverse_limit=back)
    street_map = StreetMap(name="one", junctions=places, streets=(street,))
    rules = SceneRules(
        capacity=capacity,
        demand=demand,
        cost="time",
        service_speed=service_speed,
        service_time=service_time,
        depot=places[1],
    )
    by_time = cut_scene(street_map, rules).instance
    by_length = cut_scene(street_map, replace(rules, cost="length")).instance
    whole = measures_of(street, rules)
    assert len(by_time.links) == -(-demand // capacity)
    for instance in (by_time, by_length):
        links = instance.links
        assert sum(link.metres or 0 for link in links) == whole.metres
        assert sum(link.seconds or 0 for link in links) == whole.there
        assert sum(link.reverse_seconds or 0 for link in links) == whole.back
        assert sum(link.service_seconds or 0 for link in links) == whole.serving
    for link in by_time.links:
        assert link.cost == max(1, link.seconds or 0)
        assert link.reverse_cost == max(1, link.reverse_seconds or 0)
        assert link.service_cost == max(1, link.service_seconds or 0)
    for link in by_length.links:
        assert link.cost == link.reverse_cost == link.service_cost
        assert link.cost == max(1, link.metres or 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cost": "money"}, "expected cost to be 'length' or 'time', got 'money'"),
        ({"speeds": {"primary": 0}}, "expected the speed of primary in km/h between 1 and"),
        ({"speeds": {"primary": "fast"}}, "between 1 and 200, got 'fast'"),
        ({"speeds": {3: 30}}, "expected speeds by class of street, got 3 as class"),
        ({"service_speed": 0}, "expected the service speed in km/h between 1 and 200"),
        ({"service_speed": float("nan")}, "got nan"),
        ({"service_time": -1}, "expected the service time in seconds between 0 and"),
    ],
)
def test_options_that_make_no_sense(options: Any, message: str) -> None:
    with refused(OptionError, message):
        SceneRules(capacity=1, **options)


def test_speeds_of_classes_that_are_none() -> None:
    with refused(MapError, "got one for 'primry': did you mean 'primary'?"):
        make_scene(square(), capacity=2000, speeds={"primry": 30})
    # Classes that are not on this map, or known from this map only.
    make_scene(square(), capacity=2000, speeds={"motorway": 80, "track": 5})


def test_every_street_to_drive_on_has_a_speed() -> None:
    assert set(DRIVABLE_KINDS) <= set(CLASS_SPEEDS)
