"""The path optimiser: the best places to return to the depot, and the best directions.

Given an order of services, dynamic programming finds the cheapest way of cutting it into
routes (Ulusoy 1985; Eq. 8 of the DaAM paper). The stronger form also chooses the direction
of every service, the order being kept. Both are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from arcfleet import _core
from arcfleet.errors import SolutionError, UnsolvableError
from arcfleet.solution.plan import IntArray, from_plan, to_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from arcfleet.network import Network
    from arcfleet.solution import Solution


@dataclass(frozen=True, slots=True, eq=False)
class SplitOrders:
    """Many orders, cut into routes.

    Parameters
    ----------
    arcs
        The orders one after the other, directions as chosen.
    starts_route
        For each arc whether a route starts with it.
    costs
        Total cost of each order's plan; -1 where the fleet limit cannot be kept.
    """

    arcs: IntArray
    starts_route: NDArray[np.bool_]
    costs: NDArray[np.int64]


def split_orders(
    networks: Sequence[Network],
    network_of: IntArray,
    arcs: IntArray,
    order_starts: NDArray[np.int64],
    *,
    choose_directions: bool,
    threads: int = 1,
) -> SplitOrders:
    """Cut many orders of services into routes, each at least cost.

    Parameters
    ----------
    networks
        What the orders are for.
    network_of
        For each order the position of its network.
    arcs
        The orders one after the other, without depot arcs.
    order_starts
        Where each order starts in `arcs`, and the length of `arcs` as last entry.
    choose_directions
        Whether services may be turned round.
    threads
        Threads to spread the orders over.
    """
    try:
        out, starts_route, costs = _core.split_many(
            [network.core for network in networks],
            np.ascontiguousarray(network_of, dtype=np.int32),
            np.ascontiguousarray(arcs, dtype=np.int32),
            np.ascontiguousarray(order_starts, dtype=np.int64),
            choose_directions,
            threads,
        )
    except ValueError as error:
        raise SolutionError(
            f"expected orders of services of the networks: {error}"
        ) from None
    return SplitOrders(out, starts_route.view(np.bool_), costs)


def split(
    network: Network, order: IntArray, *, choose_directions: bool = False
) -> Solution:
    """Cut one order of arcs into the cheapest routes.

    Raises UnsolvableError where that takes more routes than the fleet limit allows.
    """
    result = split_orders(
        [network],
        np.zeros(1, dtype=np.int32),
        order,
        np.array([0, len(order)], dtype=np.int64),
        choose_directions=choose_directions,
    )
    if result.costs[0] < 0:
        raise UnsolvableError(
            f"expected an order that {network.instance.fleet_limit} routes can serve, got "
            "one that needs more: raise the fleet limit"
        )
    cuts = np.flatnonzero(result.starts_route)
    route_starts = np.append(cuts, len(order)).astype(np.int32)
    return from_plan(network, result.arcs, route_starts)


def optimise_path(
    network: Network, solution: Solution, *, choose_directions: bool = True
) -> Solution:
    """Put the returns to the depot, and the directions, of a plan where they cost least.

    The order of its services is kept. The result never costs more.
    """
    order, _ = to_plan(network, solution)
    return split(network, order, choose_directions=choose_directions)
