from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcfleet import Stop, check, solve
from arcfleet.errors import UnsolvableError
from arcfleet.network import Network
from arcfleet.search.split import optimise_path, split
from arcfleet.solution.plan import from_plan
from tests.strategies import connected_instances

if TYPE_CHECKING:
    from arcfleet import Instance


def brute_force(network: Network, order: list[int], *, turn: bool) -> int | None:
    """The cheapest plan over all cuts and, if asked, all directions; None if none fits."""
    instance = network.instance
    choices = [
        [arc, int(network.arc_twin[arc])] if turn and network.arc_twin[arc] >= 0 else [arc]
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


@given(connected_instances(max_nodes=9, max_extra_links=12), st.integers(0, 9))
def test_never_worse_than_the_plan(instance: Instance, seed: int) -> None:
    network = Network(instance)
    plan = solve(instance, "ps-random-arc", stop=Stop(iterations=1), seed=seed).solution
    fixed = optimise_path(network, plan, choose_directions=False)
    turned = optimise_path(network, plan)
    assert turned.cost <= fixed.cost <= plan.cost
    assert check(instance, fixed).faults == ()
    assert check(instance, turned).faults == ()
