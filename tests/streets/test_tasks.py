import itertools
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from arcfleet.errors import MapError, OptionError
from arcfleet.instance.diagnose import diagnose
from arcfleet.streets import Street, StreetMap
from arcfleet.streets.street_arrays import BANDS, StreetArrays, band, join, to_arrays
from arcfleet.streets.tasks import (
    SCENE_SETS,
    TASK_SETS,
    VARIED_SETS,
    PieceCutter,
    VariedCutter,
    find_task_set,
)
from tests.shared_data import maps_dir
from tests.towns import town

SPEC = {
    "task20": (25, 30, 20),
    "task30": (30, 35, 30),
    "task40": (45, 50, 40),
    "task50": (55, 60, 50),
    "task60": (65, 70, 60),
    "task80": (85, 90, 80),
    "task100": (105, 110, 100),
}


def rows(*columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.tolist() for column in columns), strict=True)


@cache
def cutter(task_set: str, one_way: float) -> PieceCutter:
    streets = to_arrays(town(3, one_way=one_way, blocks=30), mixed=one_way > 0)
    return PieceCutter(streets, TASK_SETS[task_set])


def test_the_sets_are_those_of_the_specification() -> None:
    assert {
        s.name: (s.least_nodes, s.most_nodes, s.required) for s in TASK_SETS.values()
    } == SPEC


@settings(max_examples=60)
@given(st.sampled_from(list(SPEC)), st.integers(0, 2**32), st.sampled_from([0.0, 0.4]))
def test_every_piece_is_as_specified_and_solvable(
    name: str, seed: int, one_way: float
) -> None:
    least, most, required = SPEC[name]
    piece = cutter(name, one_way).cut(np.random.default_rng(seed))
    instance = piece.instance("x")
    assert least <= len(instance.nodes) <= most
    assert len(instance.required) == required
    assert instance.capacity == 100
    assert {instance.links[i].demand for i in instance.required} <= set(range(5, 11))
    assert all(link.cost >= 1 for link in instance.links)
    assert all(link.service_cost == link.cost for link in instance.links if link.required)
    assert all(link.tail != link.head for link in instance.links)
    directed = [(link.tail, link.head) for link in instance.links]
    directed += [(k.head, k.tail) for k in instance.links if not k.one_way]
    assert len(directed) == len(set(directed))  # no parallels
    assert diagnose(instance) == ()
    assert any(link.one_way for link in instance.links) == (one_way > 0)


@cache
def varied_cutter(name: str, one_way: float) -> VariedCutter:
    streets = to_arrays(town(3, one_way=one_way, blocks=30), mixed=one_way > 0)
    return VARIED_SETS[name].cutter(streets)


@settings(max_examples=60)
@given(
    st.sampled_from(list(VARIED_SETS)), st.integers(0, 2**32), st.sampled_from([0.0, 0.4])
)
def test_every_varied_piece_is_solvable(name: str, seed: int, one_way: float) -> None:
    chosen = VARIED_SETS[name]
    instance = varied_cutter(name, one_way).cut(np.random.default_rng(seed)).instance("x")
    assert chosen.least_required <= len(instance.required) <= chosen.most_required
    demands = [instance.links[i].demand for i in instance.required]
    assert min(demands) >= 1
    assert max(demands) <= instance.capacity == chosen.capacity
    # At most a tenth of a load each as in a Task set, else 20 loads, tiny ones rounded up.
    most = max(21, len(demands) / 10)
    assert sum(demands) <= most * instance.capacity
    assert diagnose(instance) == ()


def test_varied_pieces_differ_in_everything() -> None:
    cut = varied_cutter("varied60", 0.0)
    pieces = [cut.cut(np.random.default_rng(seed)) for seed in range(400)]
    demands = [piece.demand[piece.demand > 0] for piece in pieces]
    tasks = np.array([len(each) for each in demands])
    assert set(tasks) == set(range(31, 61))
    loads = np.array([each.sum() for each in demands]) / 10_000
    assert loads.min() < 1
    assert loads.max() > 15
    dense = tasks / np.array([len(piece.tail) for piece in pieces])
    assert 0.2 < (dense > 0.75).mean() < 0.5
    in_steps = np.array([(each % 100 == 0).all() for each in demands])
    as_task_set = in_steps & np.array([each.max() <= 1000 for each in demands])
    assert 0.18 < as_task_set.mean() < 0.35
    constant = np.array([len(set(each.tolist())) == 1 for each in demands])
    assert 0.1 < constant.mean() < 0.3
    far = np.array([piece.depot > 0.85 * len(piece.longitude) for piece in pieces])
    assert 0.25 < far.mean() < 0.6  # at the edge or outside, or so by chance
    again = cut.cut(np.random.default_rng(7))
    assert again.demand.tolist() == pieces[7].demand.tolist()


@cache
def scene_cutter(name: str) -> VariedCutter:
    return SCENE_SETS[name].cutter(to_arrays(town(3, one_way=0.4, blocks=30), mixed=True))


@settings(max_examples=30)
@given(st.sampled_from(list(SCENE_SETS)), st.integers(0, 2**32))
def test_scenes_are_what_users_cut_out(name: str, seed: int) -> None:
    chosen = SCENE_SETS[name]
    piece = scene_cutter(name).cut(np.random.default_rng(seed))
    instance = piece.instance("x")
    assert chosen.least_required <= len(instance.required) <= chosen.most_required
    assert diagnose(instance) == ()
    demand = piece.demand[piece.demand > 0]
    load = demand.sum() / chosen.capacity
    assert 1.9 < load < 12.1
    # By length, but for rounding.
    lengths = piece.cost[piece.demand > 0]
    assert np.abs(demand / demand.sum() - lengths / lengths.sum()).max() * load < 1e-3
    assert 2 * len(demand) > len(piece.tail)


def test_a_piece_has_all_streets_between_its_nodes_and_grows_breadth_first() -> None:
    streets = to_arrays(town(1), mixed=False)
    place = {point: n for n, point in enumerate(rows(streets.longitude, streets.latitude))}
    known = {
        (min(t, h), max(t, h)): c
        for t, h, c in rows(streets.tail, streets.head, streets.cost)
    }
    piece = PieceCutter(streets, TASK_SETS["task40"]).cut(np.random.default_rng(5))
    nodes = [place[point] for point in rows(piece.longitude, piece.latitude)]
    inside = set(nodes)
    found = {
        tuple(sorted((nodes[t], nodes[h]))): c
        for t, h, c in rows(piece.tail, piece.head, piece.cost)
    }
    assert found == {k: c for k, c in known.items() if inside >= set(k)}
    # Breadth first: no node of the piece lies more steps away than one left out.
    steps = {nodes[0]: 0}
    waiting = [nodes[0]]
    for node in waiting:
        for pair in known:
            if node in pair:
                other = pair[0] if pair[1] == node else pair[1]
                if other not in steps:
                    steps[other] = steps[node] + 1
                    waiting.append(other)
    farthest = max(steps[node] for node in nodes)
    assert all(steps[node] >= farthest for node in steps if node not in inside)


def test_depot_and_required_streets_are_drawn_uniformly() -> None:
    draw = np.random.default_rng(0)
    depots = np.zeros(30)
    first_required, expected_depots, expected_first = 0, np.zeros(30), 0.0
    for _ in range(3000):
        piece = cutter("task20", 0.0).cut(draw)
        nodes, links = len(piece.longitude), len(piece.tail)
        depots[piece.depot] += 1
        expected_depots[:nodes] += 1 / nodes
        first_required += bool(piece.demand[0])
        expected_first += 20 / links
    assert np.abs(depots - expected_depots).max() < 5 * np.sqrt(expected_depots.max())
    assert abs(first_required - expected_first) < 5 * np.sqrt(3000 * 0.25)


def street_map(*streets: Street) -> StreetMap:
    ends = {end for street in streets for end in (street.tail, street.head)}
    junctions = {n: (0.001 * n, 0.0) for n in sorted(ends)}
    return StreetMap(name="m", junctions=junctions, streets=streets)


def as_rows(streets: StreetArrays) -> list[tuple[int, int, int, bool]]:
    return sorted(rows(streets.tail, streets.head, streets.cost, streets.one_way))


def test_loops_and_longer_parallels_are_dropped_and_costs_are_whole() -> None:
    found = to_arrays(
        street_map(
            Street(tail=1, head=1, metres=50),
            Street(tail=1, head=2, metres=70.6, one_way=True),
            Street(tail=2, head=1, metres=70.4),
            Street(tail=2, head=3, metres=0.2),
        ),
        mixed=False,
    )
    assert as_rows(found) == [(0, 1, 70, False), (1, 2, 1, False)]


def test_mixed_loses_no_direction() -> None:
    found = to_arrays(
        street_map(
            Street(tail=1, head=2, metres=10, one_way=True),
            Street(tail=2, head=1, metres=30),  # the only way from 2 to 1
            Street(tail=3, head=2, metres=30, one_way=True),
            Street(tail=3, head=2, metres=20, one_way=True),
            Street(tail=2, head=3, metres=40, one_way=True),
        ),
        mixed=True,
    )
    assert as_rows(found) == [(0, 1, 30, False), (1, 2, 40, True), (2, 1, 20, True)]


@given(st.integers(0, 20))
@settings(max_examples=10)
def test_bands_share_no_junction_and_lie_side_by_side(seed: int) -> None:
    streets = to_arrays(town(seed, blocks=12), mixed=False)
    parts = [band(streets, split) for split in BANDS]  # type: ignore[arg-type]
    assert sum(len(part.longitude) for part in parts) == len(streets.longitude)
    for west, east in itertools.pairwise(parts):
        assert west.longitude.max() <= east.longitude.min()
    for part in parts:
        assert part.tail.max() < len(part.longitude)
        assert part.head.max() < len(part.longitude)


def test_joined_maps_keep_their_streets_apart() -> None:
    first, second = (to_arrays(town(n, blocks=10), mixed=False) for n in (0, 1))
    both = join([first, second])
    assert (both.source[both.tail] == both.source[both.head]).all()
    assert len(both.tail) == len(first.tail) + len(second.tail)
    assert both.digest != first.digest
    cut = PieceCutter(both, TASK_SETS["task20"])
    sources = {cut.cut(np.random.default_rng(n)).source for n in range(20)}
    assert sources == {0, 1}


def test_unfit_streets_and_names_are_named() -> None:
    small = to_arrays(town(0, blocks=4), mixed=False)
    with pytest.raises(MapError, match="at least 110 junctions for task100, found none"):
        PieceCutter(small, TASK_SETS["task100"])
    lane = street_map(
        *(Street(tail=n, head=n + 1, metres=9, one_way=True) for n in range(99))
    )
    cut = PieceCutter(to_arrays(lane, mixed=True), TASK_SETS["task20"])
    with pytest.raises(MapError, match="fewer one-way streets"):
        cut.cut(np.random.default_rng(0))
    few = VARIED_SETS["varied30"].cutter(to_arrays(lane, mixed=True))
    with pytest.raises(MapError, match=r"for varied30, found none in .* draws"):
        few.cut(np.random.default_rng(0))
    with pytest.raises(OptionError, match="did you mean 'varied60'"):
        find_task_set("varied6O")
    with pytest.raises(OptionError, match="did you mean 'task50'"):
        find_task_set("Task5O")
    with pytest.raises(OptionError, match="expected a split among train"):
        band(small, "all")  # type: ignore[arg-type]


def test_beijing_gives_solvable_mixed_pieces_in_each_band() -> None:
    from arcfleet.streets.files import read_map
    from arcfleet.streets.simplify import merge_close_junctions

    beijing = read_map(maps_dir() / "beijing_5ring")
    streets = to_arrays(merge_close_junctions(beijing, 15), mixed=True)
    for split in BANDS:
        cut = PieceCutter(band(streets, split), TASK_SETS["task100"])  # type: ignore[arg-type]
        for seed in range(5):
            instance = cut.cut(np.random.default_rng(seed)).instance("x")
            assert diagnose(instance) == ()
            assert any(link.one_way and link.required for link in instance.links)
