from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from arcfleet import Instance, Link, Stop, Turn, check
from arcfleet.errors import SolutionError, UnsolvableError
from arcfleet.network import Network
from arcfleet.search.split import (
    GatheredOrders,
    drivable,
    split,
    split_gathered,
    split_orders,
)
from arcfleet.solution.plan import IntArray, from_plan, to_plan
from tests.helpers import refused, solved
from tests.strategies import connected_instances, turn_rules


@pytest.mark.parametrize("choose_directions", [False, True])
def test_a_batch_equals_one_by_one(
    village: Instance, small: Instance, choose_directions: bool
) -> None:
    networks = [Network(village), Network(small)]
    network_of = [0, 1] * 75
    orders = []
    for seed, which in enumerate(network_of):
        network = networks[which]
        stop = Stop(iterations=1)
        plan = solved(network.instance, "ps-random-arc", stop=stop, seed=seed).solution
        orders.append(to_plan(network, plan)[0])
    starts = np.cumsum([0, *(len(order) for order in orders)])
    batch = split_orders(
        networks,
        np.array(network_of, dtype=np.int32),
        np.concatenate(orders),
        starts,
        choose_directions=choose_directions,
        threads=2,
    )
    for i, order in enumerate(orders):
        single = split(networks[network_of[i]], order, choose_directions=choose_directions)
        assert check(networks[network_of[i]].instance, single).ok
        assert batch.costs[i] == single.cost
        part = slice(starts[i], starts[i + 1])
        arcs, route_starts = to_plan(networks[network_of[i]], single)
        assert batch.arcs[part].tolist() == arcs.tolist()
        cuts = np.flatnonzero(batch.starts_route[part]).tolist()
        assert cuts == route_starts[:-1].tolist()


@pytest.mark.parametrize(
    ("arcs", "starts"), [([0], [0, 1]), ([9999], [0, 1]), ([1], [0, 2]), ([1], [1, 1])]
)
def test_wrong_orders_are_refused(
    village: Instance, arcs: list[int], starts: list[int]
) -> None:
    with pytest.raises(SolutionError, match="orders of services"):
        split_orders(
            [Network(village)],
            np.zeros(1, dtype=np.int32),
            np.array(arcs, dtype=np.int32),
            np.array(starts, dtype=np.int64),
            choose_directions=False,
        )


def test_arcs_end_with_the_last_one(village: Instance) -> None:
    network = Network(village)
    split(network, np.array([network.num_arcs - 1], np.int32))
    with pytest.raises(SolutionError, match="orders of services"):
        split(network, np.array([network.num_arcs], np.int32))


def test_wrong_costs_are_refused() -> None:
    row = np.ones((1, 3), dtype=np.int32)
    one = np.ones(1, dtype=np.int32)
    orders = GatheredOrders(
        service_cost=row,
        out=row,
        back=row,
        drive=row[None],
        demand=row[0],
        can_turn=None,
        order_starts=np.zeros(1, dtype=np.int64),
        order_lengths=np.array([3], dtype=np.int32),
        capacity=np.array([2], dtype=np.int32),
        route_cost=one,
        fleet_limit=0 * one,
    )
    # Two routes: out, three services, one drive, back twice, and a route cost each.
    assert split_gathered(orders).costs.tolist() == [2 * 3 + 3 + 1]
    for wrong in (
        replace(orders, out=row[:, :2]),
        replace(orders, service_cost=np.ones((3, 3), dtype=np.int32)),
        replace(orders, can_turn=np.ones(3, dtype=np.bool_)),
        replace(orders, order_lengths=np.array([4], dtype=np.int32)),
        replace(orders, order_starts=np.array([-1], dtype=np.int64)),
        replace(orders, capacity=np.ones(2, dtype=np.int32)),
        replace(orders, capacity=0 * one),
        replace(orders, demand=-row[0]),
    ):
        with pytest.raises(SolutionError, match="costs of orders"):
            split_gathered(wrong)


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
        whole = np.array([0, len(arcs)])
        result = split_orders(
            [network], np.zeros(1, np.int32), order_array, whole, choose_directions=turn
        )
        assert result.costs.tolist() == [-1]
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
    for flags in (found.starts_route, found.turned, expected.starts_route):
        assert set(flags.view(np.uint8).tolist()) <= {0, 1}
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
    plan = solved(instance, "ps-random-arc", stop=Stop(iterations=1), seed=seed).solution
    order, _ = to_plan(network, plan)
    fixed = split(network, order)
    turned = split(network, order, choose_directions=True)
    assert turned.cost <= fixed.cost <= plan.cost
    assert check(instance, fixed).faults == ()
    assert check(instance, turned).faults == ()


#: Streets 0-1-2-… that vehicles cannot leave at their end; a one-way street leads there.
def trap(length: int, **more: Any) -> Instance:
    streets = [
        Link(tail=i, head=i + 1, cost=10, required=True, demand=1) for i in range(length)
    ]
    return Instance(
        name="trap",
        nodes=tuple(range(length + 1)),
        links=(*streets, Link(tail=0, head=length, cost=100, one_way=True)),
        depot=0,
        capacity=99,
        u_turns="forbidden",
        **more,
    )


@pytest.mark.parametrize("method", ["ps", "ps-random-arc", "ps-ellipse", "maens"])
def test_plans_do_not_end_where_turn_rules_close_the_way_back(method: str) -> None:
    result = solved(trap(12), method, stop=Stop(iterations=3), seed=1)
    assert result.history[-1].cost == result.cost
    costs = [improvement.cost for improvement in result.history]
    assert costs == sorted(costs, reverse=True)


def test_an_order_that_one_route_cannot_drive() -> None:
    # Only from the last street to the first, for no route passes the depot.
    once = trap(12, fleet_limit=1, turns=(Turn(0, True, 12, False),))
    assert solved(once, "ruin-recreate", stop=Stop(iterations=20_000)).cost == 220
    with refused(UnsolvableError, "obeys the turn rules within the fleet limit (1)"):
        solved(once, "ps", stop=Stop(iterations=3))


def test_an_order_beyond_the_fleet_is_no_empty_plan() -> None:
    # Both streets do not fit one vehicle, and the way out is closed by a turn rule.
    streets = (
        Link(tail=0, head=1, cost=1),
        Link(tail=1, head=2, cost=1, required=True, demand=1),
        Link(tail=2, head=3, cost=1, required=True, demand=8),
    )
    town = Instance(
        name="town",
        nodes=(0, 1, 2, 3),
        links=streets,
        depot=0,
        capacity=8,
        fleet_limit=1,
        turns=(Turn(0, False, 1, False),),
    )
    network, order = Network(town), np.array([1, 3], np.int32)
    with refused(UnsolvableError, "obeys the turn rules within the fleet limit (1)"):
        drivable(network, order, np.array([0, 1, 2], np.int32))


@pytest.mark.parametrize("cost", [0, 1])
def test_services_are_turned_round_only_if_asked(cost: int) -> None:
    both: dict[str, Any] = {"service_cost": 9, "reverse_service_cost": cost}
    street = Link(tail=1, head=2, cost=cost, required=True, demand=1, **both)
    town = Instance(name="town", nodes=(1, 2), links=(street,), depot=1, capacity=9)
    network = Network(town)
    forward = next(arc for arc in (1, 2) if network.arc_service_cost[arc] == 9)
    order = np.array([forward], np.int32)
    assert split(network, order).cost == 9 + cost
    turned = split(network, order, choose_directions=True)
    assert turned.cost == cost + cost
    assert turned.routes[0].services[0].reverse
    found = split_gathered(gathered(network, [[forward]], turn=True, gap=0))
    assert (found.costs.tolist(), found.turned.tolist()) == ([2 * cost], [True])


def open_costs(network: Network, order: IntArray) -> list[int]:
    """The costs of all cuts and directions of an order that drive no closed way."""
    instance, closed = network.instance, network.core.closed_cost
    both = [sorted({int(arc), int(network.arc_inverse[arc])} - {-1}) for arc in order]
    found = []
    for cuts in product([False, True], repeat=len(order) - 1):
        ends = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), len(order)]
        routes = list(pairwise(ends))
        if instance.fleet_limit is not None and len(routes) > instance.fleet_limit:
            continue
        if any(sum(network.arc_demand[order[a:b]]) > instance.capacity for a, b in routes):
            continue
        for arcs in product(*both):
            ways = [
                int(network.distances[tail, head])
                for a, b in routes
                for tail, head in zip(
                    [0, *network.arc_end[list(arcs[a:b])]],
                    [*network.arc_start[list(arcs[a:b])], 0],
                    strict=True,
                )
            ]
            if closed not in ways:
                served = sum(int(network.arc_service_cost[arc]) for arc in arcs)
                found.append(sum(ways) + served + len(routes) * instance.route_cost)
    return found


@settings(max_examples=300)
@given(st.data())
def test_closed_ways_are_cut_out_at_least_cost(data: st.DataObject) -> None:
    free = connected_instances(max_nodes=5, max_extra_links=4, capacity=8)
    instance = data.draw(turn_rules(data.draw(free)))
    instance = replace(instance, fleet_limit=data.draw(st.none() | st.integers(1, 3)))
    assume(len(instance.required) <= 5)
    try:
        network = Network(instance)
    except UnsolvableError:
        assume(False)
    assume(network.core.closed_cost)
    arcs = data.draw(st.permutations(range(1, network.num_arcs)))
    chosen = list({int(network.arc_task[arc]): arc for arc in arcs}.values())
    order = np.array(chosen, np.int32)
    ends, load = [0], 0
    for place, demand in enumerate(network.arc_demand[order]):
        load += demand
        if load > instance.capacity or (place and data.draw(st.booleans())):
            ends.append(place)
            load = demand
    starts = np.array([*ends, len(order)], np.int32)
    given_ways = {
        int(network.distances[tail, head])
        for a, b in pairwise(starts)
        for tail, head in zip(
            [0, *network.arc_end[order[a:b]]],
            [*network.arc_start[order[a:b]], 0],
            strict=True,
        )
    }
    if network.core.closed_cost not in given_ways:
        plan = drivable(network, order, starts)
        assert [a.tolist() for a in to_plan(network, plan)] == [chosen, starts.tolist()]
        return
    costs = open_costs(network, order)
    if not costs:
        with refused(UnsolvableError, "expected an order of services that obeys"):
            drivable(network, order, starts)
        return
    plan = drivable(network, order, starts)
    assert plan.cost == min(costs)
    assert check(instance, plan).faults == ()
