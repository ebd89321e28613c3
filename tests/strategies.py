"""Random instances for property tests.

`instances` are well formed and no more: streets may be cut off and demands too large.
`connected_instances` always have a plan.
"""

import itertools
from dataclasses import replace

import networkx as nx
from hypothesis import strategies as st

from arcfleet.instance.instance import (
    COST_UNITS,
    MAX_NODE,
    MAX_NUMBER,
    MIN_NODE,
    U_TURNS,
    Coordinate,
    Instance,
    Link,
    Turn,
)
from arcfleet.instance.operations import Assignment, Facility, Lock, Vehicle
from arcfleet.instance.own_data import AttributeValue

_LIMIT = 180.0


def plain_texts() -> st.SearchStrategy[str]:
    """Texts that a line of a file can hold as they are."""
    return st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=8)


def coordinates() -> st.SearchStrategy[Coordinate]:
    degrees = st.floats(-_LIMIT, _LIMIT)
    return st.tuples(degrees, degrees)


@st.composite
def links(
    draw: st.DrawFn,
    tail: int,
    head: int,
    *,
    one_way: bool | None = None,
    required: bool | None = None,
    by_direction: bool = True,
    separate_service: bool = True,
    decorated: bool = True,
    largest: int = 30,
    most_demand: int = 10,
) -> Link:
    """One link; None leaves `one_way` or `required` to chance."""
    numbers = st.integers(0, largest)
    if one_way is None:
        one_way = draw(st.booleans())
    if required is None:
        required = draw(st.booleans())
    cost = draw(numbers)
    reverse_cost = None if one_way or not by_direction else draw(numbers)
    service_cost = reverse_service_cost = None
    if required and separate_service:
        service_cost = draw(numbers)
        reverse_service_cost = None if one_way or not by_direction else draw(numbers)
    return Link(
        tail=tail,
        head=head,
        cost=cost,
        reverse_cost=reverse_cost,
        one_way=one_way,
        required=required,
        demand=draw(st.integers(0, most_demand)) if required else 0,
        service_cost=service_cost,
        reverse_service_cost=reverse_service_cost,
        name=draw(st.text(max_size=6)) if decorated else "",
        geometry=(
            tuple(draw(st.sampled_from([0, 2, 3]).flatmap(_points))) if decorated else ()
        ),
        metres=draw(st.none() | numbers) if decorated else None,
        seconds=draw(st.none() | numbers) if decorated else None,
        reverse_seconds=draw(st.none() | numbers) if decorated and not one_way else None,
        service_seconds=draw(st.none() | numbers) if decorated and required else None,
        kind=draw(st.sampled_from(["", "residential"])) if decorated else "",
        ways=tuple(draw(st.lists(_way_numbers(), max_size=2))) if decorated else (),
        speed_kmh=draw(_speeds()) if decorated else None,
        reverse_speed_kmh=draw(_speeds()) if decorated and not one_way else None,
        ids=tuple(draw(st.lists(street_ids(), max_size=2))) if decorated else (),
        attributes=draw(own_attributes()) if decorated else {},
    )


def street_ids() -> st.SearchStrategy[int | str]:
    return st.integers(MIN_NODE, MAX_NODE) | st.text(min_size=1, max_size=4)


def own_attributes() -> st.SearchStrategy[dict[str, AttributeValue]]:
    numbers = st.integers(MIN_NODE, MAX_NODE) | st.floats(
        allow_nan=False, allow_infinity=False
    )
    values = st.none() | st.booleans() | numbers | st.text(max_size=4)
    names = st.text(min_size=1, max_size=4) | st.sampled_from(["route", "kind", "link"])
    return st.dictionaries(names, values, max_size=2)


def _way_numbers() -> st.SearchStrategy[int]:
    return st.integers(MIN_NODE, MAX_NODE)


def _speeds() -> st.SearchStrategy[float | None]:
    return st.none() | st.floats(0.1, 200)


def _points(count: int) -> st.SearchStrategy[list[Coordinate]]:
    return st.lists(coordinates(), min_size=count, max_size=count)


@st.composite
def instances(
    draw: st.DrawFn,
    *,
    one_way: bool = True,
    by_direction: bool = True,
    separate_service: bool = True,
    decorated: bool = True,
    any_nodes: bool = True,
    limits: bool = True,
    max_nodes: int = 6,
    max_links: int = 10,
) -> Instance:
    """Mixed graphs with parallel links and loops; flags say what they may have.

    `decorated`: coordinates, street names, geometry and any text as name; `any_nodes`: any
    numbers in any order, not only 0..n-1 or 1..n; `limits`: a fleet limit and a route cost.
    """
    if any_nodes and draw(st.booleans()):
        numbers = st.one_of(st.integers(-20, 20), st.integers(MIN_NODE, MAX_NODE))
        nodes = draw(st.lists(numbers, min_size=1, max_size=max_nodes, unique=True))
        depot = draw(st.sampled_from(nodes))
    else:
        first = draw(st.integers(0, 1))
        nodes = list(range(first, first + draw(st.integers(1, max_nodes))))
        # With the depot there, a text file shows that it counts from 0.
        depot = draw(st.sampled_from(nodes)) if first or any_nodes else 0
    largest = draw(st.sampled_from([3, 100, MAX_NUMBER]))
    made = [
        draw(
            links(
                draw(st.sampled_from(nodes)),
                draw(st.sampled_from(nodes)),
                one_way=None if one_way else False,
                by_direction=by_direction and draw(st.booleans()),
                separate_service=separate_service and draw(st.booleans()),
                decorated=decorated and draw(st.booleans()),
                largest=largest,
                most_demand=largest,
            )
        )
        for _ in range(draw(st.integers(0, max_links)))
    ]
    made_instance = Instance(
        name=draw(st.text(max_size=10) if decorated else plain_texts()),
        nodes=tuple(nodes),
        links=tuple(made),
        depot=depot,
        capacity=draw(st.integers(1, largest)),
        route_cost=draw(st.integers(0, largest)) if limits else 0,
        fleet_limit=draw(st.none() | st.integers(1, 9)) if limits else None,
        stated_vehicles=draw(st.none() | st.integers(0, 9)),
        upper_bound=draw(st.none() | st.integers(0, MAX_NODE)) if decorated else None,
        comment=draw(st.text(max_size=10)) if decorated else "",
        attribution=draw(st.text(max_size=10)) if decorated else "",
        coordinates=(
            tuple(draw(_points(len(nodes)))) if decorated and draw(st.booleans()) else ()
        ),
        cost_unit=draw(st.sampled_from(COST_UNITS)) if decorated else "",
    )
    return draw(turn_rules(made_instance)) if decorated else made_instance


@st.composite
def turn_rules(draw: st.DrawFn, instance: Instance, largest: int = 30) -> Instance:
    """The instance with random turn rules; some turns may be closed for good."""
    ways = [
        (index, reverse, *link.ends(reverse))
        for index, link in enumerate(instance.links)
        for reverse in ((False,) if link.one_way else (False, True))
    ]
    possible = [
        (link_in, reverse_in, link_out, reverse_out)
        for link_in, reverse_in, _, node in ways
        for link_out, reverse_out, start, _ in ways
        if start == node
    ]
    named = draw(st.lists(st.sampled_from(possible), unique=True)) if possible else []
    penalties = st.none() | st.integers(0, largest)
    return replace(
        instance,
        turns=tuple(Turn(*turn, draw(penalties)) for turn in named),
        u_turns=draw(st.sampled_from(U_TURNS)),
        u_turn_penalty=draw(st.integers(0, largest)),
    )


@st.composite
def operations(
    draw: st.DrawFn, instance: Instance, largest: int = 30, max_types: int = 3
) -> Instance:
    """The instance with whatever operations may ask; it need not have a plan."""
    nodes = st.sampled_from(instance.nodes)
    numbers = st.integers(0, largest)
    positive = st.integers(1, largest)
    links = range(len(instance.links))
    types = draw(st.integers(0, max_types))
    vehicles = tuple(
        Vehicle(
            name=f"type {number}",
            start=draw(nodes),
            end=draw(st.none() | nodes),
            capacity=draw(positive),
            count=draw(st.none() | positive),
            fixed_cost=draw(numbers),
            max_route_cost=draw(st.none() | positive),
            forbidden_links=(
                tuple(draw(st.lists(st.sampled_from(links), unique=True))) if links else ()
            ),
        )
        for number in range(types)
    )
    if vehicles:
        instance = replace(
            instance,
            depot=vehicles[0].start,
            capacity=max(vehicle.capacity for vehicle in vehicles),
            route_cost=0,
            fleet_limit=None,
            vehicles=vehicles,
        )
    else:
        instance = replace(instance, max_route_cost=draw(st.none() | positive))
    counted = all(vehicle.count is not None for vehicle in instance.fleet)
    free = draw(st.permutations(instance.required))
    locked = free[: draw(st.integers(0, len(free)))]
    cuts = sorted({0, len(locked), draw(st.integers(0, len(locked)))})
    locks = tuple(
        Lock(
            route=number,
            services=tuple((link, draw(st.booleans())) for link in locked[first:last]),
            vehicle=draw(st.integers(0, len(instance.fleet) - 1)),
        )
        for number, (first, last) in enumerate(itertools.pairwise(cuts), start=1)
    )
    pinned = [link for link in free if link not in locked and draw(st.booleans())]
    routes = st.integers(len(locks) + 1, len(locks) + 9)
    return replace(
        instance,
        facilities=tuple(
            Facility(node=node, cost=draw(numbers), name=draw(st.text(max_size=4)))
            for node in draw(st.lists(nodes, unique=True, max_size=3))
        ),
        empty_at_end=draw(st.booleans()),
        exact_fleet=counted and draw(st.booleans()),
        fewest_routes=draw(st.booleans()),
        balance=draw(st.floats(0, 100)),
        compactness=draw(numbers),
        pins=tuple(Assignment(link, draw(routes)) for link in pinned),
        locks=locks,
        previous=tuple(
            Assignment(link, draw(routes)) for link in free if draw(st.booleans())
        ),
        change_price=draw(numbers),
    )


@st.composite
def connected_instances(
    draw: st.DrawFn,
    *,
    mixed: bool = True,
    max_nodes: int = 7,
    max_extra_links: int = 6,
    capacity: int = 10,
) -> Instance:
    """Instances that have a plan.

    Two-way streets connect all nodes, every demand fits a vehicle, at least one link is
    required and the fleet is free. `mixed`: links may be one-way and cost differently by
    direction and for service.
    """
    first = draw(st.integers(0, 1))
    nodes = list(range(first, first + draw(st.integers(1, max_nodes))))
    # Each node hangs on an earlier one: a random spanning tree.
    ends = [
        (draw(st.sampled_from(nodes[:i])), nodes[i], False) for i in range(1, len(nodes))
    ]
    extra = draw(st.integers(1 if len(nodes) == 1 else 0, max_extra_links))
    for _ in range(extra):
        tail, head = draw(st.sampled_from(nodes)), draw(st.sampled_from(nodes))
        ends.append((tail, head, mixed and draw(st.booleans())))
    sure = draw(st.integers(0, len(ends) - 1))
    made = [
        draw(
            links(
                tail,
                head,
                one_way=one_way,
                required=True if index == sure else None,
                by_direction=mixed and draw(st.booleans()),
                separate_service=mixed and draw(st.booleans()),
                decorated=False,
                most_demand=capacity,
            )
        )
        for index, (tail, head, one_way) in enumerate(ends)
    ]
    return Instance(
        name="random",
        nodes=tuple(nodes),
        links=tuple(draw(st.permutations(made))),
        depot=draw(st.sampled_from(nodes)),
        capacity=capacity,
        route_cost=draw(st.integers(0, 5)) if mixed else 0,
    )


def street_distances(instance: Instance) -> dict[int, dict[int, float]]:
    """Lengths of shortest paths between nodes by networkx; no entry where there is none."""
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(instance.nodes)
    for link in instance.links:
        graph.add_edge(link.tail, link.head, weight=link.cost)
        if link.reverse_cost is not None:
            graph.add_edge(link.head, link.tail, weight=link.reverse_cost)
    return dict(nx.all_pairs_dijkstra_path_length(graph))
