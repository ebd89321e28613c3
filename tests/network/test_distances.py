from hypothesis import given

from arcfleet.instance import Instance
from arcfleet.network import Network, node_distances
from arcfleet.network.network import UNREACHABLE
from tests.strategies import connected_instances, instances, street_distances


@given(instances(decorated=False).filter(lambda i: all(x.cost < 1000 for x in i.links)))
def test_all_distances_equal_networkx(instance: Instance) -> None:
    if any((link.reverse_cost or 0) > 1000 for link in instance.links):
        return
    found = node_distances(instance)
    expected = street_distances(instance)
    for i, tail in enumerate(instance.nodes):
        for j, head in enumerate(instance.nodes):
            assert found[i, j] == expected[tail].get(head, UNREACHABLE)


@given(connected_instances())
def test_terminal_distances_equal_networkx(instance: Instance) -> None:
    network = Network(instance)
    expected = street_distances(instance)
    places = [instance.nodes[i] for i in network.terminal_nodes]
    assert places[0] == instance.depot
    for i, tail in enumerate(places):
        for j, head in enumerate(places):
            assert network.distances[i, j] == expected[tail][head]
