"""Random instances that lie on a map, with plans for them."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from arcfleet import Stop
from arcfleet.instance.instance import Coordinate, Instance, Link
from arcfleet.solution.solution import Solution
from tests.helpers import solved
from tests.strategies import connected_instances, own_attributes, street_ids


def _places() -> st.SearchStrategy[Coordinate]:
    return st.tuples(st.floats(5.0, 5.05), st.floats(51.0, 51.03))


@st.composite
def located_plans(draw: st.DrawFn) -> tuple[Instance, Solution]:
    """Instances with bent streets and streets drawn beside their ends, and a plan.

    There are one-way streets, loops and parallel streets, served in both directions.
    """
    bare = draw(connected_instances())
    places = {node: draw(_places()) for node in bare.nodes}
    links = []
    own: dict[str, Any]
    for link in bare.links:
        kind = draw(st.sampled_from(["straight", "bent", "beside"]))
        inner = tuple(draw(st.lists(_places(), min_size=2, max_size=4)))
        ends = places[link.tail], places[link.head]
        bent = (ends[0], *inner, ends[1])
        geometry = {"straight": (), "bent": bent, "beside": inner}[kind]
        own = {"ids": tuple(draw(st.lists(street_ids(), max_size=2)))}
        if draw(st.booleans()):
            own["attributes"] = draw(own_attributes())
        name = draw(st.text(max_size=5))
        links.append(replace(link, geometry=geometry, name=name, **own))
    instance = replace(
        bare,
        links=tuple(links),
        coordinates=tuple(places[node] for node in bare.nodes),
        name=draw(st.text(max_size=8)),
        comment=draw(st.text(max_size=8)),
    )
    plan = solved(instance, "ps-efficiency", stop=Stop(iterations=3)).solution
    return instance, plan


def cross() -> Instance:
    """A crossing with a dead end to the north; the depot lies in the south."""
    places = {1: (5.0, 51.0), 2: (5.0, 51.001), 3: (5.0, 51.002), 4: (5.002, 51.001)}
    main = Link(tail=1, head=2, cost=111, name="Main", metres=111, seconds=10)
    work = replace(main, tail=2, head=3, required=True, demand=4)
    side = replace(work, head=4, name="Side", demand=5)
    links = (main, work, side)
    return Instance(
        name="cross",
        nodes=tuple(places),
        links=links,
        depot=1,
        capacity=9,
        coordinates=tuple(places.values()),
        u_turns="dead-ends",
        cost_unit="seconds",
    )
