import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcfleet import make_scene
from arcfleet.errors import MapError, OptionError
from arcfleet.instance import turns as turns_module
from arcfleet.instance.geodesy import bearing, turn_angle
from arcfleet.instance.instance import U_TURNS, Coordinate, Instance, Link, Turn, UTurns
from arcfleet.streets.scene import SceneRules, cut_scene
from arcfleet.streets.simplify import (
    keep_junctions,
    largest_strong_part,
    merge_chains,
    merge_close_junctions,
)
from arcfleet.streets.street_map import Street, StreetMap, StreetTurn
from arcfleet.streets.turns import (
    FREE_TURNS,
    TurnPolicy,
    turns_of_groups,
)
from tests.helpers import street
from tests.street_strategies import street_maps


def servable(
    links: Sequence[Link], turns: Iterable[Turn], u_turns: UTurns, depot: int
) -> set[int]:
    """The links of an instance that its turn rules let be served."""
    ends = {depot, *(end for link in links for end in (link.tail, link.head))}
    return turns_module.servable(
        Instance(
            name="streets",
            nodes=tuple(sorted(ends)),
            links=tuple(links),
            depot=depot,
            capacity=1,
            turns=tuple(turns),
            u_turns=u_turns,
        )
    )


def two_way(*ends: tuple[int, int]) -> list[Link]:
    return [street(tail, head) for tail, head in ends]


#: A ring 1-2-3 with the depot on it, and the dead end 3-4.
LOLLIPOP = two_way((1, 2), (2, 3), (3, 1), (3, 4))


@pytest.mark.parametrize(
    ("u_turns", "found"),
    [("allowed", {0, 1, 2, 3}), ("dead-ends", {0, 1, 2, 3}), ("forbidden", {0, 1, 2})],
)
def test_dead_ends_need_u_turns(u_turns: UTurns, found: set[int]) -> None:
    assert servable(LOLLIPOP, [], u_turns, depot=1) == found


def test_a_turn_of_its_own_takes_precedence_over_the_policy() -> None:
    at_the_end = Turn(3, False, 3, True, 0)
    assert servable(LOLLIPOP, [at_the_end], "forbidden", depot=1) == {0, 1, 2, 3}
    banned = Turn(3, False, 3, True)
    assert servable(LOLLIPOP, [banned], "allowed", depot=1) == {0, 1, 2}


def test_a_street_behind_forbidden_turns_cannot_be_served() -> None:
    # Into the dead end from neither side.
    banned = [Turn(1, False, 3, False), Turn(2, True, 3, False)]
    assert servable(LOLLIPOP, banned, "allowed", depot=1) == {0, 1, 2}
    # A penalty is no ban.
    priced = [Turn(1, False, 3, False, 99), Turn(2, True, 3, False)]
    assert servable(LOLLIPOP, priced, "allowed", depot=1) == {0, 1, 2, 3}


def test_no_turn_is_taken_at_the_depot_where_routes_start_and_end() -> None:
    links = two_way((1, 2))
    assert servable(links, [], "dead-ends", depot=1) == {0}
    # From a depot in the middle of a street out to both sides.
    links = two_way((1, 2), (2, 3))
    assert servable(links, [], "dead-ends", depot=2) == {0, 1}
    # A dead end beside the depot without a place to turn round, entered from outside.
    links = [street(1, 2, one_way=True), street(2, 1, one_way=True), street(2, 3)]
    assert servable(links, [], "dead-ends", depot=1) == {0, 1, 2}
    assert servable(links, [], "forbidden", depot=1) == {0, 1}
    assert servable([], [], "forbidden", depot=1) == set()


@st.composite
def ruled_links(draw: st.DrawFn) -> tuple[list[Link], list[Turn], UTurns]:
    ends = st.integers(1, 5)
    links = [
        street(draw(ends), draw(ends), one_way=draw(st.booleans()))
        for _ in range(draw(st.integers(1, 7)))
    ]
    possible = [
        (i, a, o, b)
        for i, one in enumerate(links)
        for o, other in enumerate(links)
        for a in ([False] if one.one_way else [False, True])
        for b in ([False] if other.one_way else [False, True])
        if one.ends(a)[1] == other.ends(b)[0]
    ]
    chosen = draw(st.lists(st.sampled_from(possible), unique=True)) if possible else []
    turns = [Turn(*turn, draw(st.sampled_from([None, None, 0, 7]))) for turn in chosen]
    return links, turns, draw(st.sampled_from(U_TURNS))


@given(ruled_links())
def test_servable_is_what_some_route_drives_along(
    ruled: tuple[list[Link], list[Turn], UTurns],
) -> None:
    links, turns, u_turns = ruled
    costs = {(t.link_in, t.reverse_in, t.link_out, t.reverse_out): t.penalty for t in turns}
    graph = nx.DiGraph()
    graph.add_nodes_from(["start", "end"])
    ways = [(i, r) for i, link in enumerate(links) for r in {False, not link.one_way}]
    for i, a in ways:
        start, end = links[i].ends(a)
        if start == 1:
            graph.add_edge("start", (i, a))
        if end == 1:
            graph.add_edge((i, a), "end")
        onto = [(o, b) for o, b in ways if links[o].ends(b)[0] == end]
        for o, b in onto:
            allowed = True
            if (i, not a) == (o, b):
                dead_end = {other for other, _ in onto} == {i}
                allowed = u_turns == "allowed" or (u_turns == "dead-ends" and dead_end)
            if (i, a, o, b) in costs:
                allowed = costs[i, a, o, b] is not None
            if allowed:
                graph.add_edge((i, a), (o, b))
    there = nx.descendants(graph, "start") & nx.ancestors(graph, "end")
    assert servable(links, turns, u_turns, depot=1) == {i for i, _ in there - {"start"}}


# Turns of maps, and what simplifying makes of them.


def map_of(*ends: tuple[int, int], turns: Any = (), **more: Any) -> StreetMap:
    """Streets of about 111 m between some of the places below."""
    places = {0: (0, 0), 1: (-1, 0), 2: (1, 0), 3: (0, 1), 4: (0, -1), 5: (0, -2)}
    return StreetMap(
        name="m",
        junctions={n: (8 + x / 1000, y / 1000) for n, (x, y) in places.items()},
        streets=tuple(
            Street(tail=tail, head=head, metres=111.0, **more) for tail, head in ends
        ),
        turns=tuple(StreetTurn(*turn) for turn in turns),
    )


@pytest.mark.parametrize(
    ("turn", "message"),
    [
        ((0, False, 2, False), "expected a street from 0 to 1, got 2 in turn 0 of map 'm'"),
        ((0, True, 1, False), "one-way street 1>0 in reverse in turn 0"),
        ((0, False, 1, True), "one-way street 0>2 in reverse in turn 0"),
        ((1, False, 0, False), "comes to junction 2 and leaves junction 1 in turn 0"),
    ],
)
def test_turns_of_a_map_that_are_none(turn: Any, message: str) -> None:
    with pytest.raises(MapError, match=message):
        map_of((1, 0), (0, 2), one_way=True, turns=[turn])


@st.composite
def maps_with_turns(draw: st.DrawFn) -> StreetMap:
    """A random map, each street with points of its own, and turns among all there are."""
    street_map = draw(street_maps())
    streets = []
    for number, one in enumerate(street_map.streets):
        start, end = street_map.junctions[one.tail], street_map.junctions[one.head]
        inner = [(8.01 + number / 1000, 48.01), (8.01 + number / 1000, 48.02)]
        streets.append(replace(one, geometry=(start, *inner, end)))
    possible = [
        StreetTurn(i, a, o, b)
        for i, one in enumerate(streets)
        for o, other in enumerate(streets)
        for a, b in itertools.product(one.directions, other.directions)
        if one.ends(a)[1] == other.ends(b)[0]
    ]
    chosen = draw(st.sets(st.sampled_from(possible), max_size=6)) if possible else set()
    return replace(street_map, streets=tuple(streets), turns=tuple(sorted(chosen)))


Trace = tuple[Coordinate, int, Coordinate]


def traces(street_map: StreetMap) -> dict[Trace, StreetTurn]:
    """The turns by the point before, the junction and the point after."""
    found = {}
    for turn in street_map.turns:
        along = street_map.streets[turn.street_in]
        onto = street_map.streets[turn.street_out]
        before = along.geometry[1 if turn.reverse_in else -2]
        after = onto.geometry[-2 if turn.reverse_out else 1]
        found[before, along.ends(turn.reverse_in)[1], after] = turn
    return found


@given(maps_with_turns(), st.booleans())
def test_merged_chains_keep_all_turns_between_streets(
    street_map: StreetMap, across: bool
) -> None:
    merged = merge_chains(street_map, across_kinds=across, across_names=across)
    before, after = traces(street_map), traces(merged)
    assert len(after) == len(merged.turns)
    assert set(after) <= set(before)
    for trace in set(before) - set(after):
        # Nobody turns round within a street.
        turn = before[trace]
        assert turn.street_in == turn.street_out
        assert trace[1] not in merged.junctions
    assert len(merge_chains(replace(street_map, turns=())).streets) <= len(
        merge_chains(street_map).streets
    )


@given(maps_with_turns(), st.data())
def test_kept_junctions_keep_the_turns_between_their_streets(
    street_map: StreetMap, data: st.DataObject
) -> None:
    kept = data.draw(st.sets(st.sampled_from(sorted(street_map.junctions))))
    strong, _ = largest_strong_part(street_map)
    for part in (keep_junctions(street_map, kept)[0], strong):
        left = {one.geometry for one in part.streets}
        assert set(traces(part)) == {
            trace
            for trace, turn in traces(street_map).items()
            if street_map.streets[turn.street_in].geometry in left
            and street_map.streets[turn.street_out].geometry in left
        }


@given(maps_with_turns(), st.sampled_from([0.0, 12.0, 17.0]))
def test_merged_junctions_keep_the_turns_between_streets_that_stay(
    street_map: StreetMap, metres: float
) -> None:
    merged = merge_close_junctions(street_map, metres)
    left = {point for one in merged.streets for point in one.geometry[1:-1]}
    before = {(a, b) for a, _, b in traces(street_map) if a in left and b in left}
    after = {(a, b) for a, _, b in traces(merged)}
    assert before <= after
    if len(merged.streets) == len(street_map.streets):
        assert before == after


def test_a_sign_on_a_street_that_merging_drops_still_holds() -> None:
    # 0 and 1 are a few metres apart, the street between them goes; 2 and 3 are far away.
    places = {0: (8.0, 0.0), 1: (8.00005, 0.0), 2: (7.99, 0.0), 3: (8.01, 0.0)}
    lines = [(2, 0, 1000.0), (0, 1, 5.5), (1, 3, 1000.0), (0, 2, 1200.0)]
    street_map = StreetMap(
        name="m",
        junctions=places,
        streets=tuple(Street(tail=t, head=h, metres=m) for t, h, m in lines),
        turns=(StreetTurn(0, False, 1, False),),
    )
    merged = merge_close_junctions(street_map, 10)
    assert [(s.tail, s.head) for s in merged.streets] == [(2, 0), (0, 3), (0, 2)]
    assert merged.turns == (StreetTurn(0, False, 1, False),)
    # By the other street from 2 the way is free.
    assert turns_of_groups(street_map, {0: 0, 1: 0}, {0, 2, 3}) == (
        StreetTurn(0, False, 2, False),
    )


def test_a_sign_against_turning_round_by_a_ring_is_no_rule_of_u_turns() -> None:
    # 0>1>0 is a small ring; merging drops it. Streets 2 and 3 lead from it to 2 and 3.
    places = {0: (8.0, 0.0), 1: (8.00005, 0.0), 2: (7.99, 0.0), 3: (8.01, 0.0)}
    ring = [Street(tail=t, head=h, metres=5.5, one_way=True) for t, h in ((0, 1), (1, 0))]
    street_map = StreetMap(
        name="m",
        junctions=places,
        streets=(
            *ring,
            *(Street(tail=t, head=h, metres=999.0) for t, h in ((2, 0), (1, 3))),
        ),
        turns=(StreetTurn(1, False, 2, True),),
    )
    # All ways round the ring back into street 2 are closed. From 3 to 2 that is a turn
    # between streets; from 2 to 2 it is a U-turn, which the policy decides.
    assert turns_of_groups(street_map, {0: 0, 1: 0}, {2, 3}) == (
        StreetTurn(3, True, 2, True),
    )


# Turns of scenes.


def scene(street_map: StreetMap, text: str = "", **more: Any) -> Instance:
    turns = TurnPolicy.parse(text) if text else TurnPolicy()
    rules = SceneRules(capacity=10_000, depot=(8.0, 0.0), turns=turns)
    return cut_scene(street_map, replace(rules, **more)).instance


def of(instance: Instance) -> dict[tuple[int, bool, int, bool], int | None]:
    turns = instance.turns
    return {(t.link_in, t.reverse_in, t.link_out, t.reverse_out): t.penalty for t in turns}


#: A crossing: west, east, north, south.
CROSSING = ((1, 0), (0, 2), (0, 3), (4, 0))


def test_restrictions_reach_the_links() -> None:
    street_map = map_of(*CROSSING, turns=[(0, False, 2, False)])
    assert of(scene(street_map)) == {(0, False, 2, False): None}
    assert of(scene(street_map, "free")) == {}
    assert of(scene(street_map, "free,osm")) == {(0, False, 2, False): None}
    assert scene(street_map).u_turns == "dead-ends"
    assert scene(street_map, "free").u_turns == "allowed"
    assert not scene(street_map, "free").has_turn_rules
    assert scene(street_map, one_way=False).turns == scene(street_map).turns


def test_restrictions_attach_to_the_ends_of_split_streets() -> None:
    turns = [(0, False, 2, False), (2, True, 0, True)]
    instance = scene(map_of(*CROSSING, turns=turns), capacity=40)
    # Each street is in three parts.
    assert of(instance) == {(2, False, 6, False): None, (6, True, 2, True): None}


def test_from_one_side_to_the_other_is_a_u_turn() -> None:
    street_map = map_of((1, 0), (0, 2), turns=[(0, False, 1, False)])
    instance = scene(street_map, both_sides=True)
    # Links: 0 there and 1 back in the west, 2 there and 3 back in the east.
    sign = {(0, False, 2, False): None}
    at_crossing = {(0, False, 1, False): None, (3, False, 2, False): None}
    at_ends = {(1, False, 0, False): None, (2, False, 3, False): None}
    assert of(instance) == sign | at_crossing
    # Without U-turns nothing on a line can be served.
    with pytest.raises(MapError, match="that the turn rules let be served"):
        scene(street_map, "u-turn=forbidden", both_sides=True)
    everywhere = dict.fromkeys(at_crossing | at_ends, 7)
    text = "u-turn=allowed,u-turn-penalty=7"
    assert of(scene(street_map, text, both_sides=True)) == sign | everywhere
    text = "u-turn-penalty=7"
    assert of(scene(street_map, text, both_sides=True)) == (
        sign | at_crossing | dict.fromkeys(at_ends, 7)
    )


def test_sides_of_a_split_street_have_no_u_turns_in_between() -> None:
    instance = scene(map_of((1, 0)), both_sides=True, capacity=30)
    # Two parts: 0 there and 1 back, 2 there and 3 back; both ends are dead ends.
    within = {(0, False, 1, False): None, (3, False, 2, False): None}
    assert of(instance) == within
    instance = scene(map_of((1, 0)), "free,u-turn-penalty=5", both_sides=True, capacity=30)
    at_ends = {(1, False, 0, False): 5, (2, False, 3, False): 5}
    assert of(instance) == dict.fromkeys(within, 5) | at_ends
    # A penalty of 0 is no rule, one of 1 is.
    assert of(scene(map_of((1, 0)), "free", both_sides=True, capacity=30)) == {}
    instance = scene(map_of((1, 0)), "free,u-turn-penalty=1", both_sides=True, capacity=30)
    assert of(instance) == dict.fromkeys(within | at_ends, 1)


def test_every_split_street_has_its_own_u_turns_in_between() -> None:
    instance = scene(map_of((1, 0), (2, 0)), both_sides=True, capacity=20)
    # Three parts each: links 0 to 5 in the west, 6 to 11 in the east; even ones lead to 0.
    assert [link.head for link in instance.links[4::6]] == [0, 0]
    # Forbidden at both ends of each part, but for the dead ends 1 and 2.
    back = {(link, False, link + 1, False) for link in (0, 2, 4, 6, 8, 10)}
    there = {(link + 1, False, link, False) for link in (2, 4, 8, 10)}
    assert of(instance) == dict.fromkeys(back | there)


#: A street that begins and ends at 0.
LOOP = Street(
    tail=0,
    head=0,
    metres=380.0,
    geometry=((8.0, 0.0), (8.001, 0.001), (8.001, -0.001), (8.0, 0.0)),
)


def test_the_ends_of_a_loop_are_no_dead_end_where_another_street_begins() -> None:
    # Links 0 and 1 are the sides of the loop: vehicles turn round at either end.
    alone = replace(map_of((1, 0)), streets=(LOOP,))
    around = {(0, False, 1, False), (1, False, 0, False)}
    assert of(scene(alone, "u-turn-penalty=4", both_sides=True)) == dict.fromkeys(around, 4)
    # Now they are links 2 and 3, and a vehicle can leave the loop along link 1.
    with_street = replace(alone, streets=(*map_of((1, 0)).streets, LOOP))
    at_loop = {(0, False, 1, False), (2, False, 3, False), (3, False, 2, False)}
    assert of(scene(with_street, "u-turn-penalty=4", both_sides=True)) == {
        (1, False, 0, False): 4,  # the dead end in the west
        **dict.fromkeys(at_loop),
    }


def test_a_junction_is_no_dead_end_because_the_scene_lacks_its_streets() -> None:
    # The one-way street from 4 to 5 leads nowhere and is cut off.
    streets = (*map_of(*CROSSING).streets, Street(tail=4, head=5, metres=9.0, one_way=True))
    street_map = replace(map_of(*CROSSING), streets=streets)
    instance = scene(street_map)
    assert len(instance.links) == 4
    assert of(instance) == {(3, True, 3, False): None}
    assert servable(instance.links, instance.turns, "dead-ends", 0) == {0, 1, 2}
    # A one-way street towards it is no way on.
    towards = replace(street_map.streets[-1], tail=5, head=4)
    instance = scene(replace(street_map, streets=(*streets[:-1], towards)))
    assert of(instance) == {}


def test_penalties_by_angle() -> None:
    found = of(scene(map_of(*CROSSING), "left=3,right=2,straight=1"))
    assert len(found) == 12  # no U-turns
    west, east, north, south = (0, False), (1, True), (2, True), (3, False)
    to_west, to_east, to_north, to_south = (0, True), (1, False), (2, False), (3, True)
    assert found[west + to_north] == found[north + to_east] == 3
    assert found[east + to_south] == found[south + to_west] == 3
    assert found[west + to_south] == found[south + to_east] == 2
    assert found[west + to_east] == found[south + to_north] == 1
    assert set(of(scene(map_of(*CROSSING), "left=3")).values()) == {3}
    # A sign takes precedence.
    signed = map_of(*CROSSING, turns=[west + to_north])
    assert of(scene(signed, "left=3"))[west + to_north] is None


def test_three_streets_are_a_junction() -> None:
    found = of(scene(map_of(*CROSSING[:3]), "left=3,right=2,straight=1"))
    west, east, north = (0, False), (1, True), (2, True)
    to_west, to_east, to_north = (0, True), (1, False), (2, False)
    assert found == {
        west + to_east: 1,
        west + to_north: 3,
        east + to_west: 1,
        east + to_north: 2,
        north + to_west: 2,
        north + to_east: 3,
    }


def test_a_bend_is_no_turn() -> None:
    assert of(scene(map_of((1, 0), (0, 3)), "left=3,straight=1")) == {}
    # Nor is the place where a street is split.
    assert of(scene(map_of((1, 0), (0, 3)), "left=3,straight=1", capacity=40)) == {}


@pytest.mark.parametrize(("traffic", "side"), [("right", "left"), ("left", "right")])
def test_turning_back_onto_another_street_crosses_the_traffic(
    traffic: str, side: str
) -> None:
    # Out on one carriageway, back on the other, at a small angle to each other.
    policy = TurnPolicy.parse(f"{side}=5,traffic={traffic}")
    assert policy.penalty(175) == policy.penalty(-175) == 5
    other = TurnPolicy.parse(f"{side}=0,traffic={traffic}")
    assert other.penalty(175) == 0


def test_bearings_look_past_the_first_metres() -> None:
    metre = 1 / 111_195
    line = [(8.0, 0.0), (8.0, 1 * metre), (8.0 + 50 * metre, 1 * metre)]
    assert bearing(line) == pytest.approx(84.8, abs=0.5)
    assert bearing([(8.0, 0.0), (8.0 - 3 * metre, 0.0)]) == pytest.approx(270)
    assert bearing([(179.9999, 0.0), (-179.9999, 0.0)]) == pytest.approx(90)
    assert bearing([(8.0, 60.0), (8.0 + 2 * metre, 60.0 + metre)]) == pytest.approx(
        45, abs=1
    )
    assert bearing([(8.0, 1.0), (8.0, 1.0)]) == 0
    # From the south, on to the east: right.
    assert turn_angle(180, 90) == pytest.approx(90)
    assert turn_angle(180, 270) == pytest.approx(-90)
    assert turn_angle(180, 0) == pytest.approx(0)
    assert abs(turn_angle(180, 180)) == pytest.approx(180)


# What users write.


def test_policies_from_texts() -> None:
    assert TurnPolicy.parse("osm,u-turn=dead-ends") == TurnPolicy()
    assert TurnPolicy.parse("free") == FREE_TURNS
    assert TurnPolicy.parse("free, osm , left = 15".replace(" = ", "=")) == TurnPolicy(
        u_turns="allowed", left=15
    )
    assert TurnPolicy.parse(
        "u-turn=forbidden,u-turn-penalty=1,left=2,right=3,straight=4,traffic=left"
    ) == TurnPolicy(
        u_turns="forbidden", u_turn_penalty=1, left=2, right=3, straight=4, traffic="left"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "got ''"),
        ("fre", "got 'fre': did you mean 'free'"),
        ("osm,free", "got 'free': free comes first"),
        ("lef=3", "got 'lef=3': did you mean 'left='"),
        ("left", "got 'left': did you mean 'left='"),
        (
            "left=-1",
            "expected left to be a whole number from 0 .* got '-1' in the turn rul",
        ),
        ("left=1.5", "got '1.5'"),
        ("left=5,osm,left=7", "expected every turn rule once, got left twice"),
        (
            "u-turn=never",
            "expected u-turn to be one of 'allowed', 'dead-ends', 'forbidden'",
        ),
        ("traffic=middle", "expected traffic to be one of 'right', 'left', got 'middle'"),
    ],
)
def test_texts_that_are_no_policy(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        TurnPolicy.parse(text)
    assert "\n" not in str(caught.value)


def test_policies_that_are_none() -> None:
    with pytest.raises(OptionError, match="restrictions to be True or False, got 1"):
        TurnPolicy(restrictions=1)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="expected left to be a whole number"):
        TurnPolicy(left=True)
    with pytest.raises(OptionError, match="expected turns to be a TurnPolicy, got 'free'"):
        SceneRules(capacity=1, turns="free")  # type: ignore[arg-type]


def test_make_scene_takes_a_policy_or_its_text() -> None:
    street_map = map_of(*CROSSING)
    by_text = make_scene(street_map, capacity=999, turns="left=3")
    assert by_text == make_scene(street_map, capacity=999, turns=TurnPolicy(left=3))
    assert by_text.turns
    assert not make_scene(street_map, capacity=999, turns="free").has_turn_rules
