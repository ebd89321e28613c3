import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcfleet.instance.instance import U_TURNS, Link, Turn, UTurns
from arcfleet.streets.turns import servable
from tests.helpers import street


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
