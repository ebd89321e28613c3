import itertools
import sys
from dataclasses import replace
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from arcfleet.errors import ArcfleetError, MapError, OptionError
from arcfleet.instance import Instance, Link
from arcfleet.instance.diagnose import diagnose
from arcfleet.instance.geodesy import line_lengths
from arcfleet.instance.instance import MAX_NODE
from arcfleet.streets import Street, StreetMap
from arcfleet.streets.area import Box, Circle
from arcfleet.streets.driving import MOST_MEASURED, most_central_junction
from arcfleet.streets.scene import Scene, SceneRules, cut_line, cut_scene, equal_shares
from tests.street_strategies import directed_graph

WHOLE = SceneRules(capacity=10_000)
STEP = 0.001  # degrees between the junctions of the grid; about 111 m


def grid(width: int = 5, height: int = 4, base: int = 10) -> StreetMap:
    """Two-way streets; junction base * row + column; rows are avenues, columns streets."""
    junctions = {
        base * row + column: (5.0 + STEP * column, STEP * row)
        for row, column in itertools.product(range(height), range(width))
    }
    streets = [
        Street(tail=j, head=j + step, metres=metres, kind=kind, name=f"{number} {name}")
        for step, metres, kind, name in (
            (1, 111.3, "primary", "Avenue"),
            (base, 110.6, "residential", "Street"),
        )
        for j in junctions
        if j + step in junctions
        for number in [j // base if step == 1 else j % base]
    ]
    return StreetMap(
        name="grid", junctions=junctions, streets=tuple(streets), attribution="© nobody"
    )


def ring(*, one_way: bool = True) -> StreetMap:
    """Round three junctions, with a one-way dead end at junction 3."""
    places = {1: (0.0, 0.0), 2: (0.001, 0.0), 3: (0.0, 0.001), 4: (0.001, 0.001)}
    ends = [(1, 2), (2, 3), (3, 1)]
    streets = [Street(tail=t, head=h, metres=100.0, one_way=one_way) for t, h in ends]
    streets.append(Street(tail=3, head=4, metres=70.0, one_way=True))
    return StreetMap(name="ring", junctions=places, streets=tuple(streets))


def scene_of(street_map: StreetMap, **changes: Any) -> Instance:
    return cut_scene(street_map, replace(WHOLE, **changes)).instance


def ends(link: Link) -> tuple[int, int]:
    return link.tail, link.head


def test_all_of_a_map_by_default() -> None:
    street_map = grid()
    scene = cut_scene(street_map, WHOLE)
    instance = scene.instance
    assert instance.name == "grid"
    assert (instance.comment, instance.attribution) == ("", "© nobody")
    assert dict(zip(instance.nodes, instance.coordinates, strict=True)) == dict(
        street_map.junctions
    )
    assert len(instance.required) == len(instance.links) == len(street_map.streets) == 31
    for link, street in zip(instance.links, street_map.streets, strict=True):
        assert ends(link) == (street.tail, street.head)
        assert link.cost == link.demand == link.service_cost == round(street.metres) == 111
        assert link.name == street.name
    assert scene.metres == pytest.approx(16 * 111.3 + 15 * 110.6)
    assert scene.outside == scene.cut_off
    assert (scene.cut_off.junctions, scene.cut_off.streets) == (0, 0)
    assert scene.split_streets == 0
    assert scene.depot_metres is None


def test_streets_with_both_ends_in_the_area_are_kept() -> None:
    box = Box(west=4.9995, south=-1.0, east=5.0015, north=0.0015)
    scene = cut_scene(grid(), replace(WHOLE, area=box))
    assert set(scene.instance.nodes) == {0, 1, 10, 11}
    found = sorted(ends(link) for link in scene.instance.links)
    assert found == [(0, 1), (0, 10), (1, 11), (10, 11)]
    assert (scene.outside.junctions, scene.outside.streets) == (16, 27)
    assert scene.outside.metres == pytest.approx(14 * 111.3 + 13 * 110.6)
    around = Circle(longitude=5.001, latitude=0.001, metres=120)
    assert set(scene_of(grid(), area=around).nodes) == {1, 10, 11, 12, 21}


def test_one_way_dead_ends_are_dropped_and_counted_unless_ignored() -> None:
    scene = cut_scene(ring(), WHOLE)
    assert set(scene.instance.nodes) == {1, 2, 3}
    assert all(link.one_way for link in scene.instance.links)
    assert (scene.cut_off.junctions, scene.cut_off.streets) == (1, 1)
    assert scene.cut_off.metres == 70.0
    scene = cut_scene(ring(), replace(WHOLE, one_way=False))
    assert set(scene.instance.nodes) == {1, 2, 3, 4}
    assert not any(link.one_way for link in scene.instance.links)
    assert scene.cut_off.streets == 0


def test_the_depot_is_the_nearest_junction_or_central() -> None:
    scene = cut_scene(grid(), replace(WHOLE, depot=(5.0031, 0.0022)))
    assert scene.instance.depot == 23
    assert scene.depot_metres == pytest.approx(24.8, abs=0.5)
    assert scene_of(grid(5, 3)).depot == 12
    # In a ring of one-way streets none is better than the others: the least number.
    assert scene_of(ring()).depot == 1


@given(st.integers(0, 2**32 - 1))
def test_the_most_central_junction_is_that_of_brute_force(seed: int) -> None:
    street_map = random_map(seed)
    part = cut_scene(street_map, WHOLE).street_map
    graph = directed_graph(part)
    far = dict(networkx.all_pairs_dijkstra_path_length(graph))
    sums = {one: sum(far[one][other] + far[other][one] for other in graph) for one in graph}
    assert sums[most_central_junction(part)] == pytest.approx(min(sums.values()), abs=0.5)


def test_on_a_large_map_some_distances_stand_for_all() -> None:
    side = 35
    assert side**2 > MOST_MEASURED
    row, column = divmod(most_central_junction(grid(side, side, 100)), 100)
    assert abs(row - side // 2) <= 1
    assert abs(column - side // 2) <= 1


def test_streets_to_serve_by_kind_and_name() -> None:
    by_kind = scene_of(grid(), serve_kinds=("Residential",))
    assert {link.name for link in by_kind.links if link.required} == {
        f"{column} Street" for column in range(5)
    }
    assert len(by_kind.links) == 31  # the others may still be driven
    by_name = scene_of(grid(), serve_names=("2 avenue",))
    assert {link.name for link in by_name.links if link.required} == {"2 Avenue"}
    either = scene_of(grid(), serve_kinds=("residential",), serve_names=("2 Avenue",))
    assert len(either.required) == len(by_kind.required) + len(by_name.required)


def test_streets_without_a_kind_are_unknown() -> None:
    streets = list(grid().streets)
    streets[3] = replace(streets[3], kind="", name="")
    instance = scene_of(replace(grid(), streets=tuple(streets)), serve_kinds=("unknown",))
    assert instance.required == (3,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"serve_kinds": ("residental",)}, "got 'residental': did you mean 'residential'?"),
        ({"serve_kinds": ("xyz",)}, "got 'xyz': there are primary, residential"),
        ({"serve_kinds": ("",)}, "got ''"),
        ({"serve_names": ("3 Avenu",)}, "got '3 Avenu': did you mean '3 Avenue'"),
        ({"serve_kinds": ("primary",), "serve_names": ("",)}, "expected the name"),
        ({"depot": (5.1, 0.0)}, "which is 10,6.. m from the nearest one"),
        ({"depot": (0.0, 91.0)}, "expected the depot as longitude,latitude"),
        ({"depot": (0.0, float("nan"))}, "expected the depot as longitude,latitude"),
        (
            {"area": Box(west=8.0, south=1.0, east=9.0, north=2.0)},
            "expected junctions in the box 8,1,9,2 of map 'grid', found none: "
            "the map reaches from 5.0000,0.0000 to 5.0040,0.0030",
        ),
        (
            {"area": Circle(longitude=5.0, latitude=0.0, metres=50)},
            "expected a street with both ends in 50 m around 5,0",
        ),
        (
            {"capacity": 110, "oversized": "refuse"},
            r"expected at most 110 .* got 111 on street 0-1 \(0 Avenue\) of map 'grid'",
        ),
        ({"capacity": 1, "demand": 2000}, "split into 2000 parts"),
    ],
)
def test_what_the_map_does_not_have(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(MapError, match=message.replace("?", r"\?")) as caught:
        scene_of(grid(), **changes)
    assert "\n" not in str(caught.value)


def test_many_kinds_and_no_names() -> None:
    streets = [replace(s, kind=f"kind{n}") for n, s in enumerate(grid().streets)]
    with pytest.raises(MapError, match="kind11 and 19 more"):
        scene_of(replace(grid(), streets=tuple(streets)), serve_kinds=("xyz",))
    with pytest.raises(MapError, match="no street there has a name"):
        scene_of(ring(), serve_names=("High Street",))


def test_one_way_streets_that_lead_nowhere() -> None:
    street = Street(tail=1, head=2, metres=5.0, one_way=True)
    street_map = StreetMap(
        name="line", junctions={1: (0.0, 0.0), 2: (0.0, 0.1)}, streets=(street,)
    )
    with pytest.raises(MapError, match="found none among 1: take a larger area or ignore"):
        scene_of(street_map)
    assert len(scene_of(street_map, one_way=False).links) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"capacity": 0}, "expected capacity to be a whole number from 1"),
        ({"capacity": -3}, "got -3"),
        ({"capacity": 2.5}, "got 2.5"),
        ({"capacity": True}, "got True"),
        ({"seed": -1}, "expected seed"),
        ({"oversized": "drop"}, "got 'drop'"),
        ({"demand": "weight"}, "got 'weight'"),
        ({"demand": -1}, "expected demand"),
        ({"demand": (5, 3)}, "got 5 before 3"),
        ({"demand": (-5, 3)}, "expected the least demand"),
        ({"demand": (1, 2, 3)}, r"got \(1, 2, 3\)"),
    ],
)
def test_rules_that_are_none(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        replace(WHOLE, **changes)


def test_constant_and_random_demand() -> None:
    assert {link.demand for link in scene_of(grid(), demand=7).links} == {7}
    drawn = [link.demand for link in scene_of(grid(), demand=(5, 7)).links]
    assert set(drawn) == {5, 6, 7}
    assert drawn == [link.demand for link in scene_of(grid(), demand=(5, 7)).links]
    assert drawn != [link.demand for link in scene_of(grid(), demand=(5, 7), seed=1).links]
    # Serving fewer streets leaves the demand of the others as it was.
    fewer = scene_of(grid(), demand=(5, 7), serve_kinds=("residential",))
    assert [link.demand for link in fewer.links if link.required] == drawn[16:]


def test_both_sides_of_two_way_streets() -> None:
    bent = ((0.0, 0.0), (0.0005, 0.0005), (0.0, 0.001))
    two_way = Street(tail=1, head=3, metres=51.0, name="Two Way", geometry=bent)
    streets = (*ring().streets[:3], two_way)
    instance = scene_of(replace(ring(), streets=streets), both_sides=True)
    there, back = [link for link in instance.links if link.name == "Two Way"]
    assert (ends(there), ends(back)) == ((1, 3), (3, 1))
    assert there.one_way
    assert back.one_way
    assert there.demand == back.demand == 26  # half of 51, rounded up
    assert there.cost == back.cost == 51
    assert back.geometry == there.geometry[::-1] != ()
    assert len(instance.links) == 5  # one-way streets stay as they are
    # So do streets that are not served.
    instance = scene_of(grid(), both_sides=True, serve_names=("0 Avenue",))
    assert sum(link.required for link in instance.links) == 8
    assert sum(link.one_way for link in instance.links) == 8


def test_an_oversized_street_is_cut_into_equal_parts() -> None:
    points = ((0.0, 0.0), (0.003, 0.0), (0.003, 0.001))
    long = Street(tail=1, head=2, metres=445.0, name="Long", geometry=points)
    short = Street(tail=2, head=1, metres=100.0)
    street_map = StreetMap(
        name="two", junctions={1: points[0], 2: points[-1]}, streets=(long, short)
    )
    scene = cut_scene(street_map, replace(WHOLE, capacity=120))
    instance = scene.instance
    assert scene.split_streets == 1
    assert instance.nodes == (1, 2, 3, 4, 5)
    parts = instance.links[:4]
    assert [ends(link) for link in parts] == [(1, 3), (3, 4), (4, 5), (5, 2)]
    assert [link.demand for link in parts] == [112, 111, 111, 111]
    assert sum(link.cost for link in parts) == 445
    assert {link.name for link in parts} == {"Long"}
    lengths = line_lengths([link.geometry for link in parts])
    assert lengths == pytest.approx([sum(lengths) / 4] * 4, rel=1e-3)
    assert points[1] in parts[2].geometry + parts[3].geometry
    assert diagnose(instance) == ()


def test_parts_of_both_sides_share_their_junctions() -> None:
    instance = scene_of(grid(2, 1), both_sides=True, capacity=20)
    # 111 m: 56 on each side, in three parts.
    found = [ends(link) for link in instance.links]
    assert found == [(0, 2), (2, 0), (2, 3), (3, 2), (3, 1), (1, 3)]
    assert [link.demand for link in instance.links] == [19, 19, 19, 19, 18, 18]
    assert all(link.geometry == () for link in instance.links)
    # A street without geometry is straight: its new junctions lie on the line.
    assert instance.coordinates[2] == pytest.approx((5.0 + STEP / 3, 0.0), abs=1e-7)


def test_new_junctions_are_beyond_all_of_the_map() -> None:
    box = Box(west=4.9, south=-1.0, east=5.0015, north=0.0005)
    instance = scene_of(grid(), area=box, capacity=100)
    assert instance.nodes == (0, 1, 35)
    junctions = {1: (0.0, 0.0), MAX_NODE: (0.0, 0.001)}
    street = Street(tail=1, head=MAX_NODE, metres=110.0)
    full = StreetMap(name="full", junctions=junctions, streets=(street,))
    assert scene_of(full).nodes == (1, MAX_NODE)
    with pytest.raises(ArcfleetError, match="expected"):
        scene_of(full, capacity=100)


def test_costs_are_at_least_1() -> None:
    street = Street(tail=1, head=1, metres=0.2)
    tiny = StreetMap(name="tiny", junctions={1: (0.0, 0.0)}, streets=(street,))
    (link,) = scene_of(tiny).links
    assert (link.cost, link.demand) == (1, 1)
    parts = scene_of(tiny, demand=9, capacity=3).links
    assert [link.cost for link in parts] == [1, 1, 1]


def test_name_and_remark() -> None:
    instance = scene_of(grid(), name="centre", remark="cut by hand")
    assert (instance.name, instance.comment) == ("centre", "cut by hand")
    assert instance.attribution == "© nobody"
    assert scene_of(ring(), remark="cut by hand").attribution == ""


def test_without_scipy_a_depot_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("scipy.sparse", "scipy.sparse.csgraph"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(OptionError, match=r"install arcfleet\[maps\] or name a depot"):
        scene_of(grid())
    assert scene_of(grid(), depot=(5.0, 0.0)).depot == 0


def random_map(seed: int) -> StreetMap:
    """One-way and two-way streets with loops, parallels, bends and cut-off parts."""
    random = np.random.default_rng(seed)
    numbers = random.choice(1000, size=int(random.integers(2, 12)), replace=False).tolist()
    places = random.uniform(0.0, 0.01, size=(len(numbers), 2)).tolist()
    junctions = {n: (x, y) for n, (x, y) in zip(numbers, places, strict=True)}
    streets = [Street(tail=numbers[0], head=numbers[1], metres=float(random.uniform(0, 9)))]
    for _ in range(int(random.integers(1, 25))):
        tail, head = random.choice(numbers, size=2).tolist()
        bend = [
            tuple(p) for p in random.uniform(0, 0.01, (random.integers(0, 3), 2)).tolist()
        ]
        streets.append(
            Street(
                tail=tail,
                head=head,
                metres=float(random.uniform(0, 900)),
                one_way=bool(random.integers(2)),
                kind=str(random.choice(["", "primary", "residential"])),
                geometry=(junctions[tail], *bend, junctions[head]) if bend else (),
            )
        )
    return StreetMap(name="random", junctions=junctions, streets=tuple(streets))


@given(
    seed=st.integers(0, 2**32 - 1),
    capacity=st.sampled_from([40, 333, 5000]),
    demand=st.sampled_from(["length", 17, (0, 60)]),
    one_way=st.booleans(),
    both_sides=st.booleans(),
)
def test_every_scene_can_be_solved_and_keeps_the_streets(
    seed: int, capacity: int, demand: Any, one_way: bool, both_sides: bool
) -> None:
    street_map = random_map(seed)
    rules = SceneRules(
        capacity=capacity, demand=demand, one_way=one_way, both_sides=both_sides
    )
    scene = cut_scene(street_map, rules)
    instance = scene.instance
    assert diagnose(instance) == ()
    assert scene == cut_scene(street_map, rules)
    check_shapes(instance)
    kept = scene.street_map
    assert set(kept.junctions) <= set(instance.nodes)
    assert len(kept.streets) + scene.cut_off.streets == len(street_map.streets)
    assert scene.metres + scene.cut_off.metres == pytest.approx(
        sum(street.metres for street in street_map.streets)
    )
    if demand == "length":
        check_demand(scene, both_sides)
    if not one_way and not both_sides:
        assert not any(link.one_way for link in instance.links)


def check_shapes(instance: Instance) -> None:
    """Links begin and end where their nodes are."""
    places = dict(zip(instance.nodes, instance.coordinates, strict=True))
    for link in instance.links:
        if link.geometry:
            assert link.geometry[0] == places[link.tail]
            assert link.geometry[-1] == places[link.head]


def check_demand(scene: Scene, both_sides: bool) -> None:
    expected = 0
    for street in scene.street_map.streets:
        demand = max(1, round(street.metres))
        by_side = both_sides and not street.one_way
        expected += 2 * -(-demand // 2) if by_side else demand
    assert scene.instance.total_demand == expected


@given(amount=st.integers(0, 10**6), parts=st.integers(1, 50))
def test_equal_shares(amount: int, parts: int) -> None:
    shares = equal_shares(amount, parts)
    assert sum(shares) == amount
    assert len(shares) == parts
    assert max(shares) - min(shares) <= 1


@given(
    points=st.lists(
        st.tuples(st.floats(7.0, 7.1), st.floats(50.0, 50.1)), min_size=2, max_size=6
    ),
    parts=st.integers(1, 6),
)
def test_a_line_is_cut_by_length(points: list[tuple[float, float]], parts: int) -> None:
    whole = line_lengths([points])[0]
    assume(whole > 100)
    lines = cut_line(points, parts)
    assert len(lines) == parts
    assert (lines[0][0], lines[-1][-1]) == (points[0], points[-1])
    for line, following in itertools.pairwise(lines):
        assert line[-1] == following[0]
    assert line_lengths(lines) == pytest.approx([whole / parts] * parts, abs=0.1, rel=1e-3)


def test_a_line_of_no_length() -> None:
    place = (7.0, 50.0)
    assert cut_line([place, place], 3) == [(place, place)] * 3
