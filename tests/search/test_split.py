from dataclasses import replace

import numpy as np
import pytest

from arcfleet import Stop, read, solve
from arcfleet.errors import SolutionError
from arcfleet.network import Network
from arcfleet.search.split import GatheredOrders, split, split_gathered, split_orders
from arcfleet.solution.plan import to_plan
from tests.helpers import ROOT


@pytest.mark.parametrize("choose_directions", [False, True])
def test_a_batch_equals_one_by_one(choose_directions: bool) -> None:
    files = (ROOT / "examples" / "village.json", ROOT / "tests" / "data" / "small.dat")
    networks = [Network(read(file)) for file in files]
    orders = []
    network_of = []
    for seed in range(150):
        which = seed % 2
        plan = solve(
            networks[which].instance, "ps-random-arc", stop=Stop(iterations=1), seed=seed
        ).solution
        orders.append(to_plan(networks[which], plan)[0])
        network_of.append(which)
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
        assert batch.costs[i] == single.cost
        part = slice(starts[i], starts[i + 1])
        arcs, route_starts = to_plan(networks[network_of[i]], single)
        assert batch.arcs[part].tolist() == arcs.tolist()
        cuts = np.flatnonzero(batch.starts_route[part]).tolist()
        assert cuts == route_starts[:-1].tolist()


@pytest.mark.parametrize(
    ("arcs", "starts"), [([0], [0, 1]), ([9999], [0, 1]), ([1], [0, 2]), ([1], [1, 1])]
)
def test_wrong_orders_are_refused(arcs: list[int], starts: list[int]) -> None:
    network = Network(read(ROOT / "examples" / "village.json"))
    with pytest.raises(SolutionError, match="orders of services"):
        split_orders(
            [network],
            np.zeros(1, dtype=np.int32),
            np.array(arcs, dtype=np.int32),
            np.array(starts, dtype=np.int64),
            choose_directions=False,
        )


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
