import numpy as np
import pytest

from arcfleet.errors import InstanceError
from arcfleet.instance import Instance, Link
from arcfleet.network import Network, node_distances
from arcfleet.network.network import UNREACHABLE


def mixed_triangle() -> Instance:
    """Depot 1; 1-2 two-way, 2>3 one-way, 3>1 one-way and not required."""
    return Instance(
        name="triangle",
        nodes=(1, 2, 3),
        links=(
            Link(tail=1, head=2, cost=4, reverse_cost=6, required=True, demand=1),
            Link(tail=3, head=1, cost=5, one_way=True),
            Link(
                tail=2,
                head=3,
                cost=7,
                one_way=True,
                required=True,
                demand=2,
                service_cost=9,
            ),
        ),
        depot=1,
        capacity=3,
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
    instance = Instance(
        name="gap",
        nodes=(1, 2),
        links=(Link(tail=1, head=2, cost=3, one_way=True),),
        depot=1,
        capacity=1,
    )
    assert node_distances(instance).tolist() == [[0, 3], [UNREACHABLE, 0]]


def test_too_long_paths_are_refused() -> None:
    instance = Instance(
        name="far",
        nodes=(1, 2),
        links=(Link(tail=1, head=2, cost=2**29, required=True),),
        depot=1,
        capacity=1,
    )
    with pytest.raises(InstanceError, match=r"at most 536870911.*'far'.*coarser unit"):
        Network(instance)
    with pytest.raises(InstanceError, match="coarser unit"):
        node_distances(instance)


def test_threads_change_nothing() -> None:
    instance = mixed_triangle()
    one, two = Network(instance, threads=1), Network(instance, threads=2)
    assert one.distances.tolist() == two.distances.tolist()
