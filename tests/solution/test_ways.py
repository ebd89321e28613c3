from dataclasses import replace

from hypothesis import given

from arcfleet import Instance
from arcfleet.network import Network
from arcfleet.network.network import UNREACHABLE
from arcfleet.solution.ways import NO_WAY, Ways
from tests.helpers import make_instance, street
from tests.strategies import connected_instances


@given(connected_instances())
def test_ways_cost_what_the_network_says(instance: Instance) -> None:
    network = Network(instance)
    ways = Ways(instance)
    places = [instance.depot] + [
        (int(edge) // 2, edge % 2 == 1) for edge in network.arc_edge[1:]
    ]
    for one, start in enumerate(places[:6]):
        for other, end in enumerate(places):
            cost, driven = ways.path(start, end)
            known = network.distances[network.arc_end[one], network.arc_start[other]]
            assert cost in (known, NO_WAY)
            if cost == NO_WAY:
                assert instance.has_turn_rules or known == UNREACHABLE
            assert ways.costs_from(start)(end) == cost
            assert ways.costs_to(end)(start) == cost
            assert (
                sum(
                    instance.links[link].step_cost(reverse, False) or 0
                    for link, reverse in driven
                )
                <= cost
            )


def test_forbidden_links_are_driven_around() -> None:
    town = make_instance(street(1, 2, 1, 1), street(2, 3, 1, 1), street(1, 3, 9, 1))
    assert Ways(town).path(1, 3) == (2, ((0, False), (1, False)))
    assert Ways(town, [1]).path(1, 3) == (9, ((2, False),))
    assert Ways(town, [1, 2]).path(1, 3) == (NO_WAY, ())
    barred = replace(town, u_turns="forbidden")
    assert Ways(barred, [1]).path(1, 3) == (9, ((2, False),))
