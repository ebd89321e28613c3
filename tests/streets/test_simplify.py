import itertools
import math
from collections.abc import Mapping
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcfleet.errors import MapError, OptionError
from arcfleet.instance.geodesy import line_lengths
from arcfleet.instance.instance import Coordinate
from arcfleet.streets.simplify import (
    Dropped,
    largest_strong_part,
    merge_chains,
    merge_close_junctions,
)
from arcfleet.streets.street_map import Street, StreetMap
from tests.street_strategies import directed_graph, street_maps

Places = Mapping[int, Coordinate]
PLACES = {number: (8.0 + number / 1000, 48.0) for number in range(6)}


def make_map(*streets: Street, places: Places = PLACES) -> StreetMap:
    return StreetMap(name="m", junctions=places, streets=streets, attribution="c")


def street(tail: int, head: int, **more: Any) -> Street:
    return Street(tail=tail, head=head, **({"metres": 10} | more))


def test_a_chain_becomes_one_street_with_its_points() -> None:
    merged = merge_chains(make_map(street(1, 0), street(1, 2), street(3, 2)))
    (only,) = merged.streets
    assert (only.tail, only.head, only.metres) == (3, 0, 30)
    assert only.geometry == (PLACES[3], PLACES[2], PLACES[1], PLACES[0])
    # 4 and 5 lie on no street, and stay.
    assert set(merged.junctions) == {0, 3, 4, 5}
    assert merged.attribution == "c"
    # One-way streets are merged along their direction.
    merged = merge_chains(make_map(street(1, 2, one_way=True), street(0, 1, one_way=True)))
    (only,) = merged.streets
    assert (only.tail, only.head, only.one_way) == (0, 2, True)


@pytest.mark.parametrize(
    "streets",
    [
        [street(0, 1, one_way=True), street(1, 2)],
        [street(0, 1, one_way=True), street(2, 1, one_way=True)],
        [street(1, 0, one_way=True), street(1, 2, one_way=True)],
        [street(0, 1, kind="primary"), street(1, 2, kind="tertiary")],
        [street(0, 1, name="A"), street(1, 2, name="B")],
        [street(0, 1, name="A"), street(1, 2)],
        [street(0, 1), street(1, 2), street(1, 3)],
        [street(0, 0)],
    ],
)
def test_streets_that_differ_crossings_and_loops_stay(streets: list[Street]) -> None:
    street_map = make_map(*streets)
    assert merge_chains(street_map) == street_map


def test_the_longest_piece_names_a_street_merged_across_names_and_kinds() -> None:
    long = street(1, 2, metres=50, kind="primary", name="Long")
    street_map = make_map(street(0, 1, kind="tertiary", name="Short"), long)
    assert len(merge_chains(street_map, across_kinds=True).streets) == 2
    assert len(merge_chains(street_map, across_names=True).streets) == 2
    merged = merge_chains(street_map, across_kinds=True, across_names=True)
    (only,) = merged.streets
    assert (only.kind, only.name, only.metres) == ("primary", "Long", 60)


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


def distances_on(street_map: StreetMap) -> dict[int, dict[int, float]]:
    return dict(nx.all_pairs_dijkstra_path_length(directed_graph(street_map)))


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
        before, after = distances_on(street_map), distances_on(merged)
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


#: About 11 m to the north.
STEP = 1e-4


def test_close_junctions_become_one_at_their_mean_place() -> None:
    bent = ((8.0, 48.01), (8.01, 48.0), (8.0, 48.0))
    street_map = make_map(
        street(5, 3, metres=11.1),
        street(3, 9, metres=1101),
        street(9, 5, metres=2000, one_way=True, geometry=bent),
        places={5: (8.0, 48.0), 3: (8.0, 48.0 + STEP), 9: (8.0, 48.01)},
    )
    merged = merge_close_junctions(street_map, 15)
    middle = (8.0, pytest.approx(48.0 + STEP / 2))
    assert dict(merged.junctions) == {3: middle, 9: (8.0, 48.01)}
    straight, curved = merged.streets
    assert (straight.tail, straight.head, straight.geometry) == (3, 9, ())
    assert straight.metres == pytest.approx(1101 + 11.12 / 2, abs=0.1)
    assert (curved.tail, curved.head, curved.one_way) == (9, 3, True)
    assert curved.geometry == ((8.0, 48.01), (8.01, 48.0), merged.junctions[3])
    assert merged.attribution == "c"


def test_a_chain_of_short_steps_is_one_junction() -> None:
    junctions = {number: (8.0, 48.0 + number * STEP) for number in range(4)}
    streets = tuple(street(n, n + 1, metres=11.1) for n in range(3))
    merged = merge_close_junctions(make_map(*streets, places=junctions), 12)
    assert list(merged.junctions) == [0]
    assert merged.streets == ()


def test_long_ways_round_become_loops_and_loops_stay() -> None:
    # As in maps without geometry, the street from 0 to 1 is longer than it is drawn.
    street_map = make_map(
        street(0, 1, metres=200),
        street(1, 1, metres=7),
        street(0, 1, metres=11.1),
        places={0: (8.0, 48.0), 1: (8.0, 48.0 + STEP)},
    )
    merged = merge_close_junctions(street_map, 15)
    assert [(s.tail, s.head) for s in merged.streets] == [(0, 0), (0, 0)]
    assert [s.metres for s in merged.streets] == pytest.approx([200 - 11.1, 7], abs=0.1)


def test_a_short_street_is_dropped_even_where_moving_its_ends_would_stretch_it() -> None:
    junctions = {number: (8.0, 48.0 + number * STEP) for number in range(3)}
    bend = (8.0, 48.0 - 0.13 * STEP)
    line = (junctions[0], bend, junctions[1])
    length = line_lengths([line])[0]
    assert length < 15
    street_map = make_map(street(0, 1, metres=length, geometry=line), places=junctions)
    # Their mean place is 1, to which the way from the bend and back is 25 m.
    assert merge_close_junctions(street_map, 15).streets == ()


def test_junctions_on_both_sides_of_the_180th_meridian_are_close() -> None:
    street_map = make_map(
        street(0, 1, metres=6),
        street(2, 0, metres=11000),
        places={0: (179.99996, 10.0), 1: (-179.99998, 10.0), 2: (179.9, 10.0)},
    )
    merged = merge_close_junctions(street_map, 10)
    assert merged.junctions[0] == pytest.approx((179.99999, 10.0))


@pytest.mark.parametrize("metres", [-1.0, math.nan, math.inf])
def test_a_distance_that_is_none_is_an_error(metres: float) -> None:
    street_map = make_map(places={0: (8.0, 48.0)})
    with pytest.raises(OptionError, match="at least 0 m"):
        merge_close_junctions(street_map, metres)


@given(street_maps(), st.sampled_from([0.0, 5.0, 12.0, 17.0]))
def test_groups_are_those_of_all_pairs(street_map: StreetMap, metres: float) -> None:
    merged = merge_close_junctions(street_map, metres)
    graph = nx.Graph()
    graph.add_nodes_from(street_map.junctions)
    for one, other in itertools.combinations(street_map.junctions, 2):
        line = (street_map.junctions[one], street_map.junctions[other])
        if line_lengths([line])[0] <= metres:
            graph.add_edge(one, other)
    groups = list(nx.connected_components(graph))
    assert set(merged.junctions) == {min(group) for group in groups}
    target = {member: min(group) for group in groups for member in group}
    expected = [
        (target[s.tail], target[s.head], s.one_way, s.kind, s.name)
        for s in street_map.streets
    ]
    left = [(s.tail, s.head, s.one_way, s.kind, s.name) for s in merged.streets]
    for street in merged.streets:
        points = merged.points(street)
        assert points[0] == merged.junctions[street.tail]
        assert points[-1] == merged.junctions[street.head]
        assert street.metres == pytest.approx(line_lengths([points])[0], abs=1e-6)
    # Only streets within a group may be gone, and the others keep their order.
    remaining = iter(left)
    nothing = ("nothing", 0, False, "", "")
    following = next(remaining, nothing)
    for item in expected:
        if item == following:
            following = next(remaining, nothing)
        else:
            assert item[0] == item[1]
    assert following == nothing


@given(street_maps())
def test_the_largest_strong_part_is_that_of_networkx(street_map: StreetMap) -> None:
    part, dropped = largest_strong_part(street_map)
    components = list(nx.strongly_connected_components(directed_graph(street_map)))
    most = max(len(component) for component in components)
    best = min((c for c in components if len(c) == most), key=min)
    assert set(part.junctions) == best
    assert part.streets == tuple(
        s for s in street_map.streets if s.tail in best and s.head in best
    )
    gone = [s for s in street_map.streets if s not in part.streets]
    assert dropped.junctions == len(street_map.junctions) - len(best)
    assert dropped.streets == len(gone)
    assert dropped.metres == pytest.approx(sum(s.metres for s in gone))


def test_a_long_line_needs_no_deep_recursion() -> None:
    junctions = {number: (8.0, number / 1e4) for number in range(5000)}
    streets = [street(n, (n + 1) % 5000, metres=1, one_way=True) for n in range(5000)]
    part, dropped = largest_strong_part(make_map(*streets, places=junctions))
    assert len(part.junctions) == 5000
    assert dropped == Dropped(junctions=0, streets=0, metres=0)


def test_a_map_without_streets_has_no_part() -> None:
    with pytest.raises(MapError, match="expected at least one street, found none in 'm'"):
        largest_strong_part(make_map(places={0: (8.0, 48.0)}))
