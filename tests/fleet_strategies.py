"""Random instances with vehicle types, depots, longest routes and facilities."""

from dataclasses import replace

from hypothesis import strategies as st

from arcfleet import Facility, Instance, Vehicle
from tests.strategies import connected_instances


@st.composite
def fleet_instances(
    draw: st.DrawFn, *, max_nodes: int = 5, max_extra_links: int = 2, most_types: int = 2
) -> Instance:
    """Instances with a fleet; whether it can serve all streets is left open."""
    base = draw(connected_instances(max_nodes=max_nodes, max_extra_links=max_extra_links))
    nodes = st.sampled_from(base.nodes)
    exact = draw(st.integers(0, 4)) == 0
    counts = st.integers(1, 2) if exact else st.none() | st.integers(1, 3)
    types = tuple(
        Vehicle(
            name=f"type {i}",
            start=draw(nodes),
            end=draw(nodes),
            capacity=draw(st.integers(5, 12)),
            count=draw(counts),
            fixed_cost=draw(st.integers(0, 9)),
            max_route_cost=draw(st.none() | st.integers(40, 160)),
            forbidden_links=tuple(
                draw(st.lists(st.sampled_from(range(len(base.links))), max_size=1))
            ),
        )
        for i in range(draw(st.integers(1, most_types)))
    )
    stops = draw(st.lists(nodes, max_size=2, unique=True))
    return replace(
        base,
        depot=types[0].start,
        capacity=max(each.capacity for each in types),
        route_cost=0,
        vehicles=types,
        facilities=tuple(Facility(node=n, cost=draw(st.integers(0, 9))) for n in stops),
        empty_at_end=draw(st.booleans()),
        exact_fleet=exact,
        fewest_routes=draw(st.booleans()),
    )
