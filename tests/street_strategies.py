"""Random street maps for property tests."""

import networkx as nx
from hypothesis import strategies as st

from arcfleet.instance.geodesy import line_lengths
from arcfleet.instance.instance import Coordinate
from arcfleet.streets.street_map import Street, StreetMap

#: Steps of this many degrees, about 11 m, so that some junctions are close and some not.
_GRID = 1e-4


@st.composite
def places(draw: st.DrawFn) -> Coordinate:
    """A place on a small grid, with many of them a few metres apart."""
    east, north = draw(st.integers(0, 12)), draw(st.integers(0, 12))
    return 8.0 + east * _GRID, 48.0 + north * _GRID


@st.composite
def street_maps(draw: st.DrawFn) -> StreetMap:
    """A map with loops, parallel streets, one-way streets, dead ends and islands."""
    count = draw(st.integers(1, 9))
    junctions = dict(
        enumerate(
            draw(st.lists(places(), min_size=count, max_size=count, unique=True)), start=7
        )
    )
    streets = []
    for _ in range(draw(st.integers(1, 12))):
        tail, head = (draw(st.sampled_from(list(junctions))) for _ in range(2))
        inner = draw(st.lists(places(), min_size=1 if tail == head else 0, max_size=2))
        line = (junctions[tail], *inner, junctions[head])
        streets.append(
            Street(
                tail=tail,
                head=head,
                metres=line_lengths([line])[0],
                one_way=draw(st.booleans()),
                kind=draw(st.sampled_from(["residential", "tertiary"])),
                name=draw(st.sampled_from(["", "High Street"])),
                geometry=line if inner else (),
            )
        )
    return StreetMap(
        name="random", junctions=junctions, streets=tuple(streets), attribution="c"
    )


def directed_graph(street_map: StreetMap) -> nx.MultiDiGraph:
    """The map for networkx, with metres as weights."""
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(street_map.junctions)
    for street in street_map.streets:
        graph.add_edge(street.tail, street.head, weight=street.metres)
        if not street.one_way:
            graph.add_edge(street.head, street.tail, weight=street.metres)
    return graph
