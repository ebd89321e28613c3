from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcfleet import Instance, Stop, check, solve
from arcfleet.errors import UnsolvableError
from arcfleet.network import Network
from arcfleet.search.split import (
    GatheredOrders,
    optimise_path,
    split,
    split_gathered,
    split_orders,
)
from arcfleet.solution.plan import from_plan
from tests.strategies import connected_instances


def brute_force(network: Network, order: list[int], *, turn: bool) -> int | None:
    """The cheapest plan over all cuts and, if asked, all directions; None if none fits."""
    instance = network.instance
    choices = [
        [arc, int(network.arc_inverse[arc])]
        if turn and network.arc_inverse[arc] >= 0
        else [arc]
        for arc in order
    ]
    best = None
    for cuts in product([False, True], repeat=len(order) - 1):
        ends = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), len(order)]
        if instance.fleet_limit is not None and len(ends) - 1 > instance.fleet_limit:
            continue
        loads = (sum(network.arc_demand[order[a:b]]) for a, b in pairwise(ends))
        if any(load > instance.capacity for load in loads):
            continue
        for arcs in product(*choices):
            plan = from_plan(network, np.array(arcs, np.int32), np.array(ends, np.int32))
            best = plan.cost if best is None else min(best, plan.cost)
    return best


@given(
    connected_instances(max_nodes=5, max_extra_links=2),
    st.randoms(use_true_random=False),
    st.booleans(),
    st.none() | st.integers(1, 3),
)
def test_equal_to_brute_force(
    instance: Instance, random: object, turn: bool, fleet_limit: int | None
) -> None:
    instance = replace(instance, fleet_limit=fleet_limit)
    network = Network(instance)
    order = [int(arc) for arc in range(1, network.num_arcs)]
    random.shuffle(order)  # type: ignore[attr-defined]
    arcs = list({int(network.arc_task[arc]): arc for arc in order}.values())
    expected = brute_force(network, arcs, turn=turn)
    order_array = np.array(arcs, dtype=np.int32)
    if expected is None:
        with pytest.raises(UnsolvableError, match="fleet limit"):
            split(network, order_array, choose_directions=turn)
        return
    plan = split(network, order_array, choose_directions=turn)
    assert plan.cost == expected
    assert check(instance, plan).faults == ()


def gathered(
    network: Network, orders: list[list[int]], *, turn: bool, gap: int
) -> GatheredOrders:
    """The costs of some orders, `gap` positions of nonsense after each."""
    arcs = np.concatenate([[*order, *[0] * gap] for order in orders]).astype(np.int32)
    inverses = network.arc_inverse[arcs]
    choices = [arcs, np.where(inverses < 0, arcs, inverses)] if turn else [arcs]

    def costs(source: list[np.ndarray], target: list[np.ndarray]) -> np.ndarray:
        ends = [network.arc_end[arc] for arc in source]
        starts = [network.arc_start[arc] for arc in target]
        return np.array([[network.distances[e, s] for s in starts] for e in ends])

    instance = network.instance
    lengths = [len(order) for order in orders]
    depot = [np.zeros_like(arcs)]
    return GatheredOrders(
        service_cost=np.array([network.arc_service_cost[arc] for arc in choices]),
        out=costs(depot, choices)[0],
        back=costs(choices, depot)[:, 0],
        drive=costs([np.roll(arc, 1) for arc in choices], choices),
        demand=np.where(arcs == 0, -1, network.arc_demand[arcs]),
        can_turn=inverses >= 0 if turn else None,
        order_starts=np.cumsum([0, *(length + gap for length in lengths)])[:-1],
        order_lengths=np.array(lengths, np.int32),
        capacity=np.full(len(orders), instance.capacity, np.int32),
        route_cost=np.full(len(orders), instance.route_cost, np.int32),
        fleet_limit=np.full(len(orders), instance.fleet_limit or 0, np.int32),
    )


@given(
    connected_instances(max_nodes=9, max_extra_links=12),
    st.integers(0, 999),
    st.booleans(),
    st.none() | st.integers(1, 4),
    st.integers(0, 2),
)
def test_gathered_costs_give_the_same_plans(
    instance: Instance, seed: int, turn: bool, fleet_limit: int | None, gap: int
) -> None:
    network = Network(replace(instance, fleet_limit=fleet_limit))
    generator = np.random.default_rng(seed)
    orders = []
    for _ in range(3):
        arcs = generator.permutation(np.arange(1, network.num_arcs))
        orders.append(list({int(network.arc_task[arc]): int(arc) for arc in arcs}.values()))
    starts = np.cumsum([0, *map(len, orders)])
    expected = split_orders(
        [network],
        np.zeros(3, np.int32),
        np.concatenate(orders).astype(np.int32),
        starts,
        choose_directions=turn,
    )
    costs = gathered(network, orders, turn=turn, gap=gap)
    found = split_gathered(costs, threads=2)
    assert found.costs.tolist() == expected.costs.tolist()
    for i, order in enumerate(orders):
        if expected.costs[i] < 0:
            continue
        first = costs.order_starts[i]
        part = slice(first, first + len(order))
        there = slice(starts[i], starts[i + 1])
        assert np.array_equal(found.starts_route[part], expected.starts_route[there])
        chosen = np.where(found.turned[part], network.arc_inverse[order], order)
        assert np.array_equal(chosen, expected.arcs[there])


@given(connected_instances(max_nodes=9, max_extra_links=12), st.integers(0, 9))
def test_never_worse_than_the_plan(instance: Instance, seed: int) -> None:
    network = Network(instance)
    plan = solve(instance, "ps-random-arc", stop=Stop(iterations=1), seed=seed).solution
    fixed = optimise_path(network, plan, choose_directions=False)
    turned = optimise_path(network, plan)
    assert turned.cost <= fixed.cost <= plan.cost
    assert check(instance, fixed).faults == ()
    assert check(instance, turned).faults == ()
