"""The shape of plans, against networkx and by hand."""

from dataclasses import replace

import pytest
from hypothesis import given

from arcfleet import Stop
from arcfleet.instance.instance import Instance, Turn
from arcfleet.instance.operations import Assignment
from arcfleet.network import Network
from arcfleet.solution.shape import Shape, shape
from arcfleet.solution.solution import Route, Service, Solution
from tests.helpers import NO_ROUTES, make_instance, solved, street
from tests.strategies import connected_instances, street_distances

#   1 --0-- 2 --1-- 3 ----10---- 4 --2-- 5 --3-- 6, and home along the same streets.
ROW = make_instance(
    street(1, 2, 1, 1), street(2, 3, 1, 1), street(4, 5, 1, 1), street(5, 6, 1, 1),
    street(3, 4, 10),
)  # fmt: skip


def plan(*routes: tuple[int, ...], costs: tuple[int, ...]) -> Solution:
    return Solution(
        routes=tuple(
            Route(services=tuple(map(Service, links)), load=len(links), cost=cost)
            for links, cost in zip(routes, costs, strict=True)
        ),
        cost=sum(costs),
        deadhead=0,
        service_cost=0,
    )


def test_shape_by_hand() -> None:
    assert shape(ROW, plan((0, 1), (2, 3), costs=(4, 12))) == Shape(
        longest=12, shortest=4, ratio=3.0, variation=0.5, interleaving=0.0, changed=None
    )
    assert shape(ROW, plan((0, 2), (1, 3), costs=(8, 8))) == Shape(
        longest=8, shortest=8, ratio=1.0, variation=0.0, interleaving=1.0, changed=None
    )
    assert shape(ROW, plan((0,), (1, 2, 3), costs=(8, 8))).interleaving == 0.5
    one = shape(ROW, plan((0, 1, 2, 3), costs=(0,)))
    assert (one.interleaving, one.ratio, one.variation) == (0.0, None, 0.0)
    assert shape(ROW, NO_ROUTES).longest == 0
    network = Network(ROW)
    uneven = plan((0,), (1, 2, 3), costs=(8, 8))
    assert shape(ROW, uneven, network) == shape(ROW, uneven)


def test_changed_streets_are_those_on_another_route_than_before() -> None:
    before = (Assignment(0, 1), Assignment(1, 2), Assignment(2, 7))
    instance = replace(ROW, previous=before)
    found = plan((0, 1), (2, 3), costs=(1, 1))
    assert shape(instance, found).changed == 2
    numbered = replace(found.routes[1], number=7)
    kept = replace(found, routes=(found.routes[0], numbered))
    assert shape(instance, kept).changed == 1
    # Streets that are no longer served are gone, not changed.
    gone = replace(found, routes=found.routes[:1])
    assert shape(instance, gone).changed == 1


@given(connected_instances(max_nodes=8, max_extra_links=8))
def test_nearest_streets_against_networkx(instance: Instance) -> None:
    ways = street_distances(instance)
    required = instance.required
    found = Network(instance).core.nearest_others().tolist()
    for task, link in enumerate(required if len(required) > 1 else ()):
        here = instance.links[link]
        keys = []
        for other, there in enumerate(required):
            if other != task:
                far = instance.links[there]
                pairs = [
                    way
                    for a in (here.tail, here.head)
                    for b in (far.tail, far.head)
                    for way in (ways[a][b], ways[b][a])
                ]
                keys.append((min(pairs) + sum(pairs) // 8, other))
        assert found[task] == min(keys)[1]


def test_streets_without_a_way_between_them_are_the_farthest() -> None:
    # From the depot to 2, 3 and 4: from street 2 nobody turns into the others, nor back.
    closed = [(2, other) for other in (0, 1)] + [(other, 2) for other in (0, 1)]
    town = make_instance(
        *(street(1, node, 5, 1) for node in (2, 3, 4)),
        capacity=3,
        u_turns="dead-ends",
        turns=tuple(Turn(one, True, other, False) for one, other in closed),
    )
    assert Network(town).core.nearest_others().tolist() == [1, 0, 0]
    assert shape(town, plan((0, 1), (2,), costs=(4, 4))).interleaving == 1 / 3
    compact = replace(town, compactness=100, capacity=2)
    found = solved(compact, stop=Stop(iterations=500)).solution
    together = [{each.link for each in route.services} for route in found.routes]
    assert {0, 1} in together


def test_shape_is_frozen() -> None:
    found = shape(ROW, plan((0, 1, 2, 3), costs=(5,)))
    with pytest.raises(AttributeError):
        found.longest = 3  # type: ignore[misc]
