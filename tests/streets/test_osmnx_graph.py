from typing import Any

import networkx as nx
import osmnx
import pytest
import shapely

from arcfleet.errors import MapError
from arcfleet.streets.files import read_map
from arcfleet.streets.osmnx_graph import from_osmnx
from arcfleet.streets.simplify import merge_chains
from arcfleet.streets.street_map import OSM_ATTRIBUTION, Street
from tests.helpers import refused
from tests.shared_data import maps_dir

PLACES = {1: (8.0, 48.0), 2: (8.001, 48.0), 3: (8.002, 48.0)}


def graph_of(*edges: tuple[int, int, dict[str, Any]]) -> nx.MultiDiGraph:
    graph = nx.MultiDiGraph(crs="epsg:4326")
    for number, (x, y) in PLACES.items():
        graph.add_node(number, x=x, y=y)
    for tail, head, data in edges:
        graph.add_edge(tail, head, **data)
    return graph


def line(*points: tuple[float, float]) -> shapely.LineString:
    return shapely.LineString(points)


def test_two_directions_are_one_street() -> None:
    bend = (8.0005, 48.001)
    both = {"oneway": False, "length": 250.0}
    street_map = from_osmnx(
        graph_of(
            (1, 2, {**both, "geometry": line(PLACES[1], bend, PLACES[2])}),
            (2, 1, {**both, "geometry": line(PLACES[2], bend, PLACES[1])}),
            (2, 3, {"oneway": True, "length": 74.0, "highway": "tertiary", "name": "High"}),
        ),
        name="town",
    )
    assert street_map.streets == (
        Street(tail=1, head=2, metres=250, geometry=(PLACES[1], bend, PLACES[2])),
        Street(tail=2, head=3, metres=74, one_way=True, kind="tertiary", name="High"),
    )
    assert (street_map.name, street_map.attribution) == ("town", OSM_ATTRIBUTION)
    assert dict(street_map.junctions) == PLACES


def test_carriageways_stay_two_streets() -> None:
    one_way = {"oneway": True, "length": 74.0}
    street_map = from_osmnx(graph_of((1, 2, one_way), (2, 1, one_way)))
    found = [(s.tail, s.head, s.one_way) for s in street_map.streets]
    assert found == [(1, 2, True), (2, 1, True)]


def test_an_edge_without_its_reverse_has_one_direction() -> None:
    street_map = from_osmnx(graph_of((1, 2, {"oneway": [False, True]}), (2, 3, {})))
    assert [s.one_way for s in street_map.streets] == [True, True]
    assert street_map.streets[0].metres == pytest.approx(74.6, abs=0.1)


def test_parallel_streets_are_paired_by_points_and_length() -> None:
    short, long = {"length": 75.0}, {"length": 90.0}
    street_map = from_osmnx(graph_of((1, 2, short), (1, 2, long), (2, 1, long)))
    found = [(s.tail, s.head, s.metres, s.one_way) for s in street_map.streets]
    assert found == [(1, 2, 75, True), (1, 2, 90, False)]


def test_a_loop_in_both_directions_is_one_street() -> None:
    bends = ((8.0005, 48.001), (8.0009, 48.0))
    there = {"geometry": line(PLACES[1], *bends, PLACES[1])}
    back = {"geometry": line(PLACES[1], *bends[::-1], PLACES[1])}
    street_map = from_osmnx(graph_of((1, 1, there), (1, 1, back)))
    assert [(s.tail, s.head, s.one_way) for s in street_map.streets] == [(1, 1, False)]


def test_the_most_important_kind_and_all_names_count() -> None:
    data = {"highway": ["residential", "secondary"], "name": ["West", "East", "West"]}
    (only,) = from_osmnx(graph_of((1, 2, data))).streets
    assert (only.kind, only.name) == ("secondary", "East; West")


def test_graphs_that_do_not_fit_are_errors() -> None:
    with pytest.raises(MapError, match=r"expected a networkx\.MultiDiGraph"):
        from_osmnx(nx.MultiGraph(graph_of((1, 2, {}))))
    projected = graph_of((1, 2, {}))
    projected.graph["crs"] = "epsg:25832"
    with pytest.raises(MapError, match="got a graph in epsg:25832"):
        from_osmnx(projected)
    with pytest.raises(MapError, match="expected at least one street"):
        from_osmnx(graph_of())
    with pytest.raises(MapError, match=r"expected longitude x and latitude y .* on 4"):
        from_osmnx(graph_of((1, 4, {})))
    for node in ("square", 1.5):
        named = graph_of((1, 2, {}))
        named.add_node(node, x=8.0, y=48.0)
        with pytest.raises(MapError, match="expected whole numbers as nodes"):
            from_osmnx(named)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"geometry": "LINESTRING (8 48, 8.001 48)"}, "got 'LINESTRING (8 48, 8.001 48)'"),
        ({"geometry": shapely.MultiLineString([PLACES.values()])}, "got 'MULTILINESTRING"),
        ({"length": "75 m"}, "expected the length of edge 1-2 in metres, got '75 m'"),
        ({"length": [75.0, 80.0]}, "expected the length of edge 1-2 in metres, got [75.0"),
        ({"length": None}, "expected the length of edge 1-2 in metres, got None"),
        ({"length": -1.0}, "expected a length of at least 0 m, got -1.0"),
    ],
)
def test_edges_that_do_not_fit_are_errors(data: dict[str, Any], expected: str) -> None:
    with refused(MapError, expected):
        from_osmnx(graph_of((1, 2, data)))


def test_a_graph_that_went_through_a_file_as_text_is_read() -> None:
    graph = nx.MultiDiGraph()
    for number, (x, y) in PLACES.items():
        graph.add_node(str(number), x=str(x), y=str(y))
    graph.add_edge("1", "2", length="75.0", oneway="True")
    (only,) = from_osmnx(graph).streets
    assert (only.tail, only.head, only.metres, only.one_way) == (1, 2, 75.0, True)


@pytest.mark.parametrize("simplify", [True, False])
def test_a_graph_of_osmnx_agrees_with_our_reading(simplify: bool) -> None:
    path = maps_dir() / "raw_osm" / "reno_east3.osm"
    graph = osmnx.graph_from_xml(path, simplify=simplify, retain_all=True)
    theirs = from_osmnx(graph, name="Reno")
    ours = read_map(path)
    if not simplify:
        theirs = merge_chains(theirs)
    else:
        ours = merge_chains(ours, across_kinds=True, across_names=True)
    assert len(theirs.junctions) == pytest.approx(len(ours.junctions), rel=0.002)
    assert len(theirs.streets) == pytest.approx(len(ours.streets), rel=0.002)
    assert sum(s.metres for s in theirs.streets) == pytest.approx(
        sum(s.metres for s in ours.streets), rel=0.005
    )
    assert sum(s.one_way for s in theirs.streets) == pytest.approx(
        sum(s.one_way for s in ours.streets), rel=0.01
    )


def test_streets_have_the_numbers_of_their_ways() -> None:
    both = {"oneway": False, "length": 80.0, "osmid": [7, 8]}
    street_map = from_osmnx(
        graph_of((1, 2, both), (2, 1, both), (2, 3, {"oneway": True, "osmid": 9}))
    )
    ways = [[way for way, _ in street.ways] for street in street_map.streets]
    assert ways == [[7, 8], [9]]
