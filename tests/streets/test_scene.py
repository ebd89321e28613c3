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
from arcfleet.instance import Instance, Link, Turn
from arcfleet.instance.diagnose import diagnose
from arcfleet.instance.geodesy import line_lengths
from arcfleet.instance.instance import MAX_NODE
from arcfleet.streets import Street, StreetMap
from arcfleet.streets.area import Box, Circle
from arcfleet.streets.driving import MOST_MEASURED, most_central_junction
from arcfleet.streets.scene import (
    Scene,
    SceneRules,
    cut_line,
    cut_scene,
    equal_shares,
    make_scene,
    serve_what_is_open,
)
from arcfleet.streets.street_map import StreetTurn
from arcfleet.streets.turns import FREE_TURNS, TurnPolicy
from tests.helpers import refused, solved
from tests.street_strategies import directed_graph

WHOLE = SceneRules(capacity=10_000, turns=FREE_TURNS)
CIRCLE = Circle(longitude=5.0, latitude=0.0, metres=500)
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


def test_streets_with_both_ends_in_the_area_are_served() -> None:
    box = Box(west=4.9995, south=-1.0, east=5.0015, north=0.0015)
    corner = [(0, 1), (0, 10), (1, 11), (10, 11)]
    cut = cut_scene(grid(), replace(WHOLE, area=box, margin=0))
    assert set(cut.instance.nodes) == {0, 1, 10, 11}
    assert sorted(map(ends, cut.instance.links)) == corner
    assert (cut.outside.junctions, cut.outside.streets) == (16, 27)
    assert cut.outside.metres == pytest.approx(14 * 111.3 + 13 * 110.6)
    whole = cut_scene(grid(), replace(WHOLE, area=box))
    assert sorted(ends(link) for link in whole.instance.links if link.required) == corner
    assert len(whole.instance.links) == 31
    assert (whole.outside.streets, whole.cut_off.streets) == (0, 0)
    for scene in (cut, whole):
        assert scene.to_serve == scene.served
        assert scene.served.streets == scene.crossing.streets == 4
        assert scene.instance.depot in {0, 1, 10, 11}
        assert scene.instance.depot == cut.instance.depot
    around = Circle(longitude=5.001, latitude=0.001, metres=120)
    assert set(scene_of(grid(), area=around, margin=0).nodes) == {1, 10, 11, 12, 21}


def test_a_margin_adds_streets_to_drive_on() -> None:
    box = Box(west=4.9995, south=-1.0, east=5.0015, north=0.0015)
    near = cut_scene(grid(), replace(WHOLE, area=box, margin=100))
    assert set(near.instance.nodes) == {*range(3), *range(10, 13), *range(20, 23)}
    assert near.served.streets == 4
    assert near.outside.streets == 31 - 12
    drive = Box(west=4.9995, south=-1.0, east=5.0025, north=0.0015)
    scene = cut_scene(grid(), replace(WHOLE, area=box, drive_area=drive))
    assert set(scene.instance.nodes) == {*range(3), *range(10, 13)}
    # What is served is driven on, too.
    scene = cut_scene(grid(), replace(WHOLE, area=drive, drive_area=box))
    assert set(scene.instance.nodes) == {*range(3), *range(10, 13)}
    assert len(scene.instance.required) == 7


def test_a_street_across_the_border_is_served_where_its_middle_is() -> None:
    box = Box(west=4.9995, south=-1.0, east=5.0015, north=0.0017)
    middle = cut_scene(grid(), replace(WHOLE, area=box, border="middle"))
    # The middles of avenues from column 1 to 2 lie on the border of the box.
    found = {ends(middle.instance.links[i]) for i in middle.instance.required}
    avenues, columns = {(1, 2), (11, 12)}, {(10, 20), (11, 21)}
    assert found - avenues == {(0, 1), (0, 10), (1, 11), (10, 11)} | columns
    assert middle.crossing.streets == len(avenues - found)
    left = cut_scene(grid(), replace(WHOLE, area=box))
    assert (left.served.streets, left.crossing.streets) == (4, 4)


def test_a_way_back_outside_the_area_saves_a_street() -> None:
    """A one-way street out of the area, with the way back on a street outside."""
    scene = cut_scene(loop(), replace(WHOLE, area=LOOP_AREA, margin=0))
    (lost,) = scene.unserved
    assert str(lost) == "street 2>3 (Way Out), 100 m: no way back"
    assert (scene.to_serve.streets, scene.served.streets) == (2, 1)
    assert scene.served.metres == pytest.approx(100.0)
    assert "1 of 2 streets to serve (0.1 km) is NOT in the instance" in scene.warnings[-1]
    assert "a larger margin" in scene.warnings[-1]
    for margin in (None, 1, 5000):
        scene = cut_scene(loop(), replace(WHOLE, area=LOOP_AREA, margin=margin))
        assert (scene.unserved, scene.warnings) == ((), ())
        assert scene.served.streets == 2
        assert len(scene.instance.links) == 4
        assert diagnose(scene.instance) == ()


LOOP_AREA = Box(west=-0.001, south=-0.0005, east=0.0025, north=0.0005)


def loop() -> StreetMap:
    """A two-way street, a one-way street on from its end, and a long way back."""
    places = {1: (0.0, 0.0), 2: (0.001, 0.0), 3: (0.002, 0.0), 4: (0.001, 0.01)}
    streets = (
        Street(tail=1, head=2, metres=100.0, name="Stub"),
        Street(tail=2, head=3, metres=100.0, one_way=True, name="Way Out"),
        Street(tail=3, head=4, metres=1200.0, one_way=True, name="Ring"),
        Street(tail=4, head=1, metres=1200.0, one_way=True, name="Ring"),
    )
    return StreetMap(name="loop", junctions=places, streets=streets)


@pytest.mark.parametrize("margin", [None, 50, 400])
def test_a_depot_outside_the_area_stays_where_it_is(margin: float | None) -> None:
    box = Box(west=4.9995, south=-1.0, east=5.0015, north=0.0015)
    rules = replace(WHOLE, area=box, margin=margin, depot=(5.0041, 0.003))
    scene = cut_scene(grid(), rules)
    instance = scene.instance
    assert instance.depot == 34
    assert scene.depot_metres == pytest.approx(11, abs=1)
    assert len(instance.required) == scene.served.streets == 4
    result = solved(instance, "ps")
    # The nearest served junction is five blocks off: there and back at least.
    assert result.solution.deadhead >= 10 * 110
    whole = solved(cut_scene(grid(), replace(rules, margin=None)).instance, "ps")
    assert result.solution.cost == whole.solution.cost
    # Cut at the border of the area, it moves there.
    cut = cut_scene(grid(), replace(rules, margin=0))
    assert cut.instance.depot == 11
    assert cut.depot_metres == pytest.approx(411, abs=5)


def test_the_depot_is_in_the_part_that_serves_most() -> None:
    """Not in that of most junctions, nor on a motorway, nor where there is no way back."""
    far = {n: (5.0 + STEP * n, 0.01) for n in range(100, 130)}
    lanes = [Street(tail=n, head=n + 1, metres=1.0, kind="road") for n in range(100, 129)]
    pass_by = Street(tail=900, head=901, metres=10.0, kind="motorway", one_way=False)
    ramp = Street(tail=901, head=0, metres=10.0, kind="motorway_link")
    places = {900: (5.0005, 0.0004), 901: (5.0004, 0.0004)}
    town = grid()
    street_map = replace(
        town,
        junctions={**town.junctions, **far, **places},
        streets=(*town.streets, *lanes, pass_by, ramp),
    )
    scene = cut_scene(street_map, WHOLE)
    assert scene.instance.depot in town.junctions
    assert scene.served.streets == 31
    assert len(scene.unserved) == 29
    assert {one.reason for one in scene.unserved} == {"no way there or back"}
    assert {k: n.streets for k, n in scene.driven_only.items()} == {
        "motorway": 1,
        "motorway_link": 1,
    }
    assert cut_scene(street_map, replace(WHOLE, depot=places[900])).instance.depot == 0
    assert scene_of(street_map, depot=far[110], serve_kinds=("road",)).depot == 110


def test_motorways_are_driven_and_served_only_if_asked_for() -> None:
    kinds = ["motorway", "motorway_link", "trunk", "trunk_link", "primary", ""]
    streets = [
        replace(street, kind=kinds[i % 6]) for i, street in enumerate(grid().streets)
    ]
    street_map = replace(grid(), streets=tuple(streets))

    def served(**changes: Any) -> set[str]:
        instance = scene_of(street_map, **changes)
        assert len(instance.links) == 31
        return {streets[i].kind for i in instance.required}

    assert served() == {"primary", ""}
    assert served(serve_kinds=("All",)) == set(kinds)
    assert served(serve_kinds=("default", "trunk")) == {"primary", "", "trunk"}
    assert served(serve_kinds=("motorway",)) == {"motorway"}
    assert served(serve_names=(streets[0].name,)) > {"motorway"}
    only = replace(grid(), streets=tuple(replace(s, kind="trunk") for s in streets))
    with pytest.raises(MapError, match="found only motorways, trunk roads and their ramps"):
        scene_of(only)


def test_numbers_that_ask_for_a_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cut_scene(grid(), WHOLE).warnings == ()
    many, split = cut_scene(grid(), replace(WHOLE, capacity=15)).warnings
    assert many == (
        "a total demand of 3441 takes at least 230 routes of capacity 15: "
        "check that the capacity is in the unit of the demand (metres)"
    )
    assert "31 streets have more demand than the capacity of 15" in split
    assert "split into up to 8 parts" in split
    box = Box(west=4.9, south=-1.0, east=5.0015, north=0.0015)
    assert cut_scene(grid(), replace(WHOLE, area=box)).warnings == ()
    monkeypatch.setattr("arcfleet.streets.scene.MANY_STREETS", 100)
    (large,) = cut_scene(grid(8, 8), replace(WHOLE, area=box)).warnings
    assert "112 streets to drive on for 4 to serve" in large


def test_lost_streets_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="1 of 4 streets to serve"):
        instance = make_scene(ring(), capacity=1000)
    assert len(instance.required) == 3


def test_one_way_dead_ends_are_listed_unless_ignored() -> None:
    scene = cut_scene(ring(), WHOLE)
    assert set(scene.instance.nodes) == {1, 2, 3}
    assert all(link.one_way for link in scene.instance.links)
    assert (scene.cut_off.junctions, scene.cut_off.streets) == (1, 1)
    assert scene.cut_off.metres == 70.0
    assert [str(one) for one in scene.unserved] == ["street 3>4, 70 m: no way back"]
    scene = cut_scene(ring(), replace(WHOLE, one_way=False))
    assert set(scene.instance.nodes) == {1, 2, 3, 4}
    assert not any(link.one_way for link in scene.instance.links)
    assert (scene.cut_off.streets, scene.unserved) == (0, ())


def test_what_turn_rules_cut_off_is_not_required() -> None:
    links = (
        Link(tail=1, head=2, cost=5, required=True, demand=2, seconds=3),
        Link(tail=2, head=3, cost=5, required=True, demand=2),
    )
    instance = Instance(
        name="line", nodes=(1, 2, 3), links=links, depot=1, capacity=9, u_turns="dead-ends"
    )
    assert serve_what_is_open(instance) == (instance, {})
    cut = replace(instance, turns=(Turn(1, False, 1, True),))
    left, lost = serve_what_is_open(cut)
    assert lost == dict.fromkeys((0, 1), "the turn rules leave no way there or back")
    assert left.required == ()
    assert left.links[0] == replace(
        links[0],
        required=False,
        demand=0,
        service_cost=None,
        reverse_service_cost=None,
    )


@pytest.mark.parametrize("margin", [None, 50])
def test_a_margin_names_what_turn_rules_cut_off(margin: float | None) -> None:
    # The only way from the ring to 4-5, over 6, is far outside and has a forbidden turn.
    places = {1: (0, 0), 2: (1, 0), 3: (0, 1), 4: (3, 0), 5: (3, 1), 6: (99, 0)}
    ends = [(1, 2), (2, 3), (3, 1), (4, 5), (2, 6), (6, 5)]
    street_map = StreetMap(
        name="far",
        junctions={n: (x * STEP, y * STEP) for n, (x, y) in places.items()},
        streets=tuple(Street(tail=t, head=h, metres=99.0) for t, h in ends),
        turns=(StreetTurn(4, False, 5, False), StreetTurn(5, True, 4, True)),
    )
    area = Box(west=-STEP, south=-STEP, east=4 * STEP, north=2 * STEP)
    rules = SceneRules(capacity=999, area=area, margin=margin)
    scene = cut_scene(street_map, rules)
    reason = "the turn rules leave no way there or back"
    assert [str(one) for one in scene.unserved] == [f"street 4-5, 99 m: {reason}"]
    assert scene.served.streets == len(scene.instance.required) == 3
    assert len(scene.warnings) == 1


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
        ({"depot": (0.0, 91.0)}, "expected a depot or facility as lon"),
        (
            {"depot": (0.0, float("nan"))},
            "expected a depot or facility as lon",
        ),
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
        ({"border": "both"}, "expected border to be 'leave' or 'middle', got 'both'"),
        ({"margin": 5}, "expected an area to serve with margin, got none"),
        ({"drive_area": CIRCLE}, "expected an area to serve with drive_area"),
        ({"area": CIRCLE, "margin": -1}, "expected margin between 0 and"),
        ({"area": CIRCLE, "margin": 5, "drive_area": CIRCLE}, "got both: leave one out"),
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
    instance = scene_of(grid(), area=box, margin=0, capacity=100)
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


def test_name_and_attribution() -> None:
    instance = scene_of(grid(), name="centre")
    assert (instance.name, instance.comment) == ("centre", "")
    assert instance.attribution == "© nobody"
    assert scene_of(ring()).attribution == ""


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


def random_signs(street_map: StreetMap, seed: int, share: float) -> list[StreetTurn]:
    """Forbid a share of all turns."""
    random = np.random.default_rng(seed)
    drives = [
        (i, r, s.ends(r)) for i, s in enumerate(street_map.streets) for r in s.directions
    ]
    return [
        StreetTurn(i, a, o, b)
        for i, a, (_, via) in drives
        for o, b, (start, _) in drives
        if start == via and random.random() < share
    ]


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
    rules = replace(
        WHOLE, capacity=capacity, demand=demand, one_way=one_way, both_sides=both_sides
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


@pytest.mark.parametrize("margin", [None, 1.0])
def test_a_depot_that_no_street_can_be_served_from_is_one_sentence(
    margin: float | None,
) -> None:
    street_map = random_map(639)
    signs = tuple(random_signs(street_map, 639, 0.4))
    box = Box(west=0.0, south=0.0, east=0.0078125, north=0.00513)
    rules = replace(
        WHOLE, area=box, depot=(0.0078125, 0.0), turns=TurnPolicy(), margin=margin
    )
    with refused(MapError, "found none among 3: the turn rules leave no way there or back"):
        cut_scene(replace(street_map, turns=signs), rules)


@given(
    seed=st.integers(0, 2**32 - 1),
    # Mostly a large part of the map, so that few boxes are empty.
    low=st.tuples(*[st.floats(0.0, 0.004)] * 2),
    high=st.tuples(*[st.floats(0.005, 0.01)] * 2),
    margin=st.sampled_from([None, 1.0, 200.0, 600.0]),
    depot=st.none() | st.tuples(st.floats(0.0, 0.01), st.floats(0.0, 0.01)),
    border=st.sampled_from(["leave", "middle"]),
    turns=st.sampled_from([FREE_TURNS, TurnPolicy(), TurnPolicy(u_turns="forbidden")]),
    signs=st.sampled_from([0.0, 0.1, 0.4]),
)
def test_no_street_of_the_area_is_lost_in_silence(
    seed: int,
    low: tuple[float, float],
    high: tuple[float, float],
    margin: float | None,
    depot: tuple[float, float] | None,
    border: Any,
    turns: TurnPolicy,
    signs: float,
) -> None:
    street_map = random_map(seed)
    named = [replace(s, name=f"{i}") for i, s in enumerate(street_map.streets)]
    street_map = replace(street_map, streets=tuple(named))
    street_map = replace(street_map, turns=tuple(random_signs(street_map, seed, signs)))
    area = Box(west=low[0], south=low[1], east=high[0], north=high[1])
    rules = replace(WHOLE, area=area, depot=depot, border=border, turns=turns)
    try:
        cut = cut_scene(street_map, replace(rules, margin=0))
    except MapError:
        assume(False)
    try:
        scene = cut_scene(street_map, replace(rules, margin=margin))
    except MapError as error:
        # On more of the map another junction may be nearest to the place of the depot, and
        # turn rules may leave nothing to serve from there. No other reason is one.
        if depot is None or "the turn rules leave no way there or back" not in str(error):
            raise
        assume(False)
    held = {end for end, at in street_map.junctions.items() if area.holds([at])[0]}
    both_ends = {s.name for s in named if s.tail in held and s.head in held}
    for one in (cut, scene):
        required = {link.name for link in one.instance.links if link.required}
        lost = {unserved.street.name for unserved in one.unserved}
        assert not required & lost
        assert both_ends <= required | lost
        assert len(required) == one.served.streets
        assert len(required | lost) == one.to_serve.streets
        assert diagnose(one.instance) == ()
        solved(one.instance, "ps")
        if border == "leave":
            assert both_ends == required | lost
    # A way on the whole map is a way with any margin but 0.
    whole = cut_scene(street_map, replace(rules, margin=None))
    assert whole.instance.depot == scene.instance.depot
    assert {one.street for one in whole.unserved} == {one.street for one in scene.unserved}
    if turns == FREE_TURNS:
        assert scene.served.metres >= cut.served.metres - 1e-6
        check_depot_drives(scene.instance, whole.instance)


def check_depot_drives(some: Instance, whole: Instance) -> None:
    """The ways from the depot to the required links and back are as short in both."""
    graphs = []
    for instance in (some, whole):
        graph = networkx.MultiDiGraph()
        graph.add_node(instance.depot)
        for link in instance.links:
            graph.add_edge(link.tail, link.head, weight=link.cost)
            if not link.one_way:
                graph.add_edge(link.head, link.tail, weight=link.cost)
        graphs.append(graph)
    required = [link for link in whole.links if link.required]
    for turned in (False, True):
        far = [
            networkx.single_source_dijkstra_path_length(
                graph.reverse() if turned else graph, some.depot
            )
            for graph in graphs
        ]
        # To where a service begins, and back from where it ends.
        where = {link.head if turned else link.tail for link in required}
        where |= {end for link in required if not link.one_way for end in ends(link)}
        for end in where:
            # Ways are chosen by metres, costs are rounded: a metre or so for each link.
            assert far[0][end] == pytest.approx(far[1][end], abs=len(whole.links))


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


# --- Streets by their positions -----------------------------------------------------------


def test_streets_may_be_chosen_by_their_positions() -> None:
    whole = grid()
    chosen: Any = (4, np.int64(0), 9)
    scene = cut_scene(whole, replace(WHOLE, serve_streets=chosen))
    served = [
        street
        for street, link in zip(scene.link_streets, scene.instance.links, strict=True)
        if link.required
    ]
    assert served == [0, 4, 9]
    assert all(
        scene.instance.links[position].name == whole.streets[street].name
        for position, street in enumerate(scene.link_streets)
    )
    assert scene.driven_only == {}


def test_streets_may_be_excluded_by_their_positions() -> None:
    scene = cut_scene(grid(), replace(WHOLE, exclude_streets=(0, 3)))
    assert len(scene.instance.required) == len(grid().streets) - 2
    assert scene.excluded.streets == 2
    only = replace(WHOLE, serve_streets=(1, 2), exclude_streets=(2, 5))
    assert len(cut_scene(grid(), only).instance.required) == 1


def test_a_part_of_a_street_knows_its_street() -> None:
    scene = cut_scene(grid(), replace(WHOLE, capacity=60, serve_streets=(7,)))
    parts = [n for n, street in enumerate(scene.link_streets) if street == 7]
    assert [scene.instance.links[n].required for n in parts] == [True, True]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"serve_streets": (31,)}, "expected serve_streets from 0 to 30, the streets"),
        ({"serve_streets": (-1,)}, "expected serve_streets from 0 to 30, the streets"),
        ({"exclude_streets": (99,)}, "expected exclude_streets from 0 to 30"),
        ({"serve_streets": ()}, "expected a street to serve"),
    ],
)
def test_positions_without_a_street_are_refused(rules: Any, message: str) -> None:
    with refused(MapError, message):
        cut_scene(grid(), replace(WHOLE, **rules))


def test_positions_replace_kinds_and_names() -> None:
    with refused(OptionError, "expected serve_streets without kinds, names or a file"):
        replace(WHOLE, serve_streets=(1,), serve_kinds=("primary",))
