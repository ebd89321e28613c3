import math

import networkx as nx
import pytest
from hypothesis import given

from arcfleet.streets.simplify import merge_chains
from arcfleet.streets.street_map import Street, StreetMap
from tests.street_strategies import street_maps

PLACES = {number: (8.0 + number / 1000, 48.0) for number in range(6)}


def make_map(*streets: Street) -> StreetMap:
    return StreetMap(name="m", junctions=PLACES, streets=streets, attribution="c")


def street(
    tail: int, head: int, *, one_way: bool = False, kind: str = "", name: str = ""
) -> Street:
    return Street(tail=tail, head=head, metres=10, one_way=one_way, kind=kind, name=name)


def test_a_chain_becomes_one_street_with_its_points() -> None:
    merged = merge_chains(make_map(street(1, 0), street(1, 2), street(3, 2)))
    (only,) = merged.streets
    assert (only.tail, only.head, only.metres) == (3, 0, 30)
    assert only.geometry == (PLACES[3], PLACES[2], PLACES[1], PLACES[0])
    # 4 and 5 lie on no street, and stay.
    assert set(merged.junctions) == {0, 3, 4, 5}
    assert merged.attribution == "c"


def test_one_way_streets_are_merged_along_their_direction() -> None:
    merged = merge_chains(make_map(street(1, 2, one_way=True), street(0, 1, one_way=True)))
    (only,) = merged.streets
    assert (only.tail, only.head, only.one_way) == (0, 2, True)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (street(0, 1, one_way=True), street(1, 2)),
        (street(0, 1, one_way=True), street(2, 1, one_way=True)),
        (street(1, 0, one_way=True), street(1, 2, one_way=True)),
        (street(0, 1, kind="primary"), street(1, 2, kind="tertiary")),
        (street(0, 1, name="A"), street(1, 2, name="B")),
        (street(0, 1, name="A"), street(1, 2)),
    ],
)
def test_streets_that_differ_stay_apart(first: Street, second: Street) -> None:
    street_map = make_map(first, second)
    assert merge_chains(street_map) == street_map


def test_the_longest_piece_names_a_street_merged_across_names_and_kinds() -> None:
    long = Street(tail=1, head=2, metres=50, kind="primary", name="Long")
    street_map = make_map(street(0, 1, kind="tertiary", name="Short"), long)
    assert len(merge_chains(street_map, across_kinds=True).streets) == 2
    assert len(merge_chains(street_map, across_names=True).streets) == 2
    merged = merge_chains(street_map, across_kinds=True, across_names=True)
    (only,) = merged.streets
    assert (only.kind, only.name, only.metres) == ("primary", "Long", 60)


def test_a_crossing_stays() -> None:
    street_map = make_map(street(0, 1), street(1, 2), street(1, 3))
    assert merge_chains(street_map) == street_map


@pytest.mark.parametrize("one_way", [True, False])
def test_a_ring_keeps_one_junction(one_way: bool) -> None:
    merged = merge_chains(
        make_map(*(street(n, (n + 1) % 4, one_way=one_way) for n in range(4)))
    )
    (only,) = merged.streets
    assert (only.tail, only.head, only.metres) == (0, 0, 40)
    assert only.geometry == (*(PLACES[n] for n in range(4)), PLACES[0])


def test_a_ring_at_a_crossing_hangs_there_as_a_loop() -> None:
    merged = merge_chains(make_map(street(5, 0), street(1, 2), street(0, 1), street(2, 0)))
    assert {(s.tail, s.head) for s in merged.streets} == {(5, 0), (0, 0)}


def test_a_loop_alone_stays() -> None:
    street_map = make_map(street(0, 0))
    assert merge_chains(street_map) == street_map


@given(street_maps())
def test_merging_keeps_lengths_and_distances(street_map: StreetMap) -> None:
    for across in (False, True):
        merged = merge_chains(street_map, across_kinds=across, across_names=across)
        assert math.isclose(
            sum(s.metres for s in merged.streets),
            sum(s.metres for s in street_map.streets),
            rel_tol=1e-9,
        )
        assert set(merged.junctions) <= set(street_map.junctions)
        before, after = distances(street_map), distances(merged)
        for tail in merged.junctions:
            expected = {k: v for k, v in before[tail].items() if k in merged.junctions}
            assert after[tail] == pytest.approx(expected)
        for one in merged.streets:
            points = merged.points(one)
            assert points[0] == merged.junctions[one.tail]
            assert points[-1] == merged.junctions[one.head]
        # Nothing is left to merge.
        again = merge_chains(merged, across_kinds=across, across_names=across)
        assert again == merged


def distances(street_map: StreetMap) -> dict[int, dict[int, float]]:
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(street_map.junctions)
    for one in street_map.streets:
        graph.add_edge(one.tail, one.head, weight=one.metres)
        if not one.one_way:
            graph.add_edge(one.head, one.tail, weight=one.metres)
    return dict(nx.all_pairs_dijkstra_path_length(graph))
