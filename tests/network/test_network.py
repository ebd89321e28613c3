import numpy as np
import pytest

from arcfleet.errors import InstanceError
from arcfleet.instance import Instance
from arcfleet.network import Network, node_distances
from arcfleet.network.network import UNREACHABLE
from tests.helpers import make_instance, street


def mixed_triangle() -> Instance:
    """Depot 1; 1-2 two-way, 2>3 one-way, 3>1 one-way and not required."""
    return make_instance(
        street(1, 2, 4, 1, reverse_cost=6),
        street(3, 1, 5, one_way=True),
        street(2, 3, 7, 2, one_way=True, service_cost=9),
    )


def test_arcs_of_two_way_and_one_way_tasks() -> None:
    network = Network(mixed_triangle())
    assert network.num_tasks == 2
    assert network.num_arcs == 4
    assert network.arc_task.tolist() == [-1, 0, 0, 1]
    assert network.arc_edge.tolist() == [-1, 0, 1, 4]
    assert network.arc_inverse.tolist() == [-1, 2, 1, -1]
    assert network.arc_service_cost.tolist() == [0, 4, 6, 9]
    assert network.arc_demand.tolist() == [0, 1, 1, 2]
    places = network.terminal_nodes[network.arc_start].tolist()
    assert places == [0, 0, 1, 1]


def test_distances_follow_one_way_rules() -> None:
    expected = [[0, 4, 11], [6, 0, 7], [5, 9, 0]]
    assert node_distances(mixed_triangle()).tolist() == expected
    network = Network(mixed_triangle())
    order = network.terminal_nodes
    assert network.distances.tolist() == np.array(expected)[np.ix_(order, order)].tolist()


def test_distances_are_read_only_and_outlive_the_network() -> None:
    distances = Network(mixed_triangle()).distances
    with pytest.raises(ValueError, match="read-only"):
        distances[0, 0] = 1
    assert int(distances[0, 0]) == 0


def test_no_way_is_marked() -> None:
    instance = make_instance(street(1, 2, 3, one_way=True))
    assert node_distances(instance).tolist() == [[0, 3], [UNREACHABLE, 0]]


def test_too_long_paths_are_refused() -> None:
    instance = make_instance(street(1, 2, 2**29, 0), name="far")
    with pytest.raises(InstanceError, match=r"at most 536870911.*'far'.*coarser unit"):
        Network(instance)
    with pytest.raises(InstanceError, match="coarser unit"):
        node_distances(instance)


def test_threads_change_nothing() -> None:
    instance = mixed_triangle()
    one, two = Network(instance, threads=1), Network(instance, threads=2)
    assert one.distances.tolist() == two.distances.tolist()
