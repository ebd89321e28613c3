"""Split: the best places to return to the depot, and the best directions.

Given an order of services, dynamic programming finds the cheapest way of cutting it into
routes (Ulusoy 1985; the path optimiser, Eq. 8 of the DaAM paper). The stronger form also
chooses the direction of every service, the order being kept. Both are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from arcfleet import _core
from arcfleet.errors import SolutionError, UnsolvableError
from arcfleet.network import Network
from arcfleet.search.fleet_rules import fleet_rules
from arcfleet.solution.plan import IntArray, from_plan
from arcfleet.solution.trips import TripPlan, from_trips

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from arcfleet.solution import Solution


@dataclass(frozen=True, slots=True, eq=False)
class SplitOrders:
    """Many orders, cut into routes."""

    arcs: IntArray  # the orders one after the other, directions as chosen
    starts_route: NDArray[np.bool_]  # whether a route starts with each arc
    # Total cost of each order's plan; -1 where the fleet limit cannot be kept.
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
    networks, network_of
        Networks, and the position among them of the network of each order.
    arcs, order_starts
        The orders one after the other, without depot arcs; the position where each order
        starts, and the length of `arcs` at the end.
    choose_directions
        Whether services may be turned round.
    threads
        Number of threads.
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


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GatheredOrders:
    """Orders of services by their costs alone, for callers who hold no networks.

    Costs stand by position, the orders one after the other; between them may be positions
    that are never read. A first axis of length 1 holds the services as given; of length
    2, the services as given and turned round, and directions are chosen.
    """

    # Cost of the service, of driving there from the depot, and back, each (directions,
    # positions).
    service_cost: IntArray
    out: IntArray
    back: IntArray
    # Cost of driving from the service before, by its direction and this one's, (directions,
    # directions, positions); not read where an order begins.
    drive: IntArray
    demand: IntArray  # demand of each service, (positions,)
    # Whether the service may be turned round, (positions,); None with one direction.
    can_turn: NDArray[np.bool_] | None
    # Position where each order starts, and its services, (orders,).
    order_starts: NDArray[np.int64]
    order_lengths: IntArray
    # Limits and fixed cost of each order, (orders,); a fleet limit of 0 is none.
    capacity: IntArray
    route_cost: IntArray
    fleet_limit: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class SplitGathered:
    """Gathered orders, cut into routes."""

    turned: NDArray[np.bool_]  # whether the service at each position is turned round
    starts_route: NDArray[np.bool_]  # whether a route starts at each position
    # Total cost of each order's plan; -1 where the fleet limit cannot be kept.
    costs: NDArray[np.int64]


def split_gathered(orders: GatheredOrders, *, threads: int = 1) -> SplitGathered:
    """Cut many orders of services into routes, each at least cost, as `split_orders`."""
    can_turn = np.zeros(0, np.bool_) if orders.can_turn is None else orders.can_turn
    try:
        turned, starts_route, costs = _core.split_gathered(
            len(orders.service_cost),
            _flat(orders.service_cost),
            _flat(orders.out),
            _flat(orders.back),
            _flat(orders.drive),
            _flat(orders.demand),
            np.ascontiguousarray(can_turn, dtype=np.uint8),
            np.ascontiguousarray(orders.order_starts, dtype=np.int64),
            _flat(orders.order_lengths),
            _flat(orders.capacity),
            _flat(orders.route_cost),
            _flat(orders.fleet_limit),
            threads,
        )
    except ValueError as error:
        raise SolutionError(f"expected costs of orders of services: {error}") from None
    return SplitGathered(turned.view(np.bool_), starts_route.view(np.bool_), costs)


def _flat(values: IntArray) -> IntArray:
    return np.ascontiguousarray(values, dtype=np.int32).reshape(-1)


def split(
    network: Network, order: IntArray, *, choose_directions: bool = False
) -> Solution:
    """Cut one order of arcs into the cheapest routes.

    With vehicle types each route is of the best one, and with facilities a route is cut
    into trips; where the fewest routes are wanted, they come before cost. Raises
    UnsolvableError where the fleet or another rule leaves no way of cutting the order, and
    where the instance asks for what an order alone does not tell, as pins do.
    """
    if network.instance.operations:
        return _split_trips(network, order, choose_directions)
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


#: What concerns more than one route, or which one it is.
_BEYOND_SPLIT = (
    "balance",
    "compactness",
    "pins",
    "locked routes",
    "a price for change",
)


def _split_trips(network: Network, order: IntArray, choose_directions: bool) -> Solution:
    """Cut one order of arcs into routes and trips of a fleet."""
    instance = network.instance
    beyond = [asked for asked in instance.operations if asked in _BEYOND_SPLIT]
    if beyond:
        raise UnsolvableError(
            f"expected an instance for Split without {', '.join(beyond)}, got "
            f"{instance.name!r}: use ruin-recreate"
        )
    try:
        parts = _core.split_trips(
            networks=network.cores,
            rules=fleet_rules(network),
            arcs=np.ascontiguousarray(order, dtype=np.int32),
            choose_directions=choose_directions,
        )
    except ValueError as error:
        raise SolutionError(
            f"expected an order of services of the network: {error}"
        ) from None
    except OverflowError:
        raise UnsolvableError(
            "expected a fleet that Split can count, got too many counted vehicle types for "
            f"an order of {len(order)} streets in {instance.name!r}: use ruin-recreate"
        ) from None
    if parts is None:
        raise UnsolvableError(
            f"expected an order that the fleet of {instance.name!r} can serve, got one for "
            "which no routes and trips keep all rules: allow more vehicles or longer routes"
        )
    arcs, starts, vehicles, vias = (part.tolist() for part in parts)
    return from_trips(
        network,
        [
            TripPlan(tuple(arcs[a:b]), tuple(map(bool, vias[a:b])), vehicle)
            for a, b, vehicle in zip(starts[:-1], starts[1:], vehicles, strict=True)
        ],
    )


def drivable(network: Network, arcs: IntArray, route_starts: IntArray) -> Solution:
    """Return the Solution of a plan, without ways that the turn rules close.

    A search pays more for such a way than for any other, but a simple one may run into it.
    Then its order is cut into routes anew, with the best directions; raises
    UnsolvableError where that takes more routes than the fleet limit allows.
    """
    if network.in_parts:
        try:
            return from_plan(network, arcs, route_starts)
        except SolutionError:
            network = Network(network.instance)  # which prices closed ways
    if not _drives_closed(network, arcs, route_starts):
        return from_plan(network, arcs, route_starts)
    found = _split_on_open_ways(network, arcs)
    if found is None or _drives_closed(network, *found):
        limit = network.instance.fleet_limit
        within = "" if limit is None else f" within the fleet limit ({limit})"
        raise UnsolvableError(
            f"expected an order of services that obeys the turn rules{within}, got none: "
            "search longer, by ruin-recreate"
            + ("" if limit is None else ", or raise the fleet limit")
        )
    return from_plan(network, *found)


def _drives_closed(network: Network, arcs: IntArray, route_starts: IntArray) -> bool:
    """Return whether any deadhead of a plan is a way that the turn rules close."""
    closed = network.core.closed_cost
    if not closed:
        return False
    is_first = np.zeros(len(arcs), dtype=np.bool_)
    is_first[route_starts[:-1]] = True
    ends = network.arc_end[arcs]
    before = np.where(is_first, 0, np.roll(ends, 1))  # the depot is terminal 0
    out = network.distances[before, network.arc_start[arcs]]
    home = network.distances[ends[route_starts[1:] - 1], 0]
    return bool((out == closed).any() or (home == closed).any())


def _split_on_open_ways(
    network: Network, order: IntArray
) -> tuple[IntArray, IntArray] | None:
    """Cut an order into routes with as few closed ways as there can be.

    Returns None where the order needs more routes than the fleet limit.
    """
    rules, closed = network.instance, network.core.closed_cost
    inverse = network.arc_inverse[order]
    arcs = np.stack([order, np.where(inverse < 0, order, inverse)])  # (2, services)
    starts, ends = network.arc_start[arcs], network.arc_end[arcs]

    def ways(tails: IntArray | int, heads: IntArray | int) -> IntArray:
        # The price of the network is below that of many routes more.
        costs = network.distances[tails, heads]
        return np.where(costs == closed, np.iinfo(np.int32).max, costs)

    def single(number: int) -> IntArray:
        return np.array([number], dtype=np.int32)

    orders = GatheredOrders(
        service_cost=network.arc_service_cost[arcs],
        out=ways(0, starts),
        back=ways(ends, 0),
        drive=ways(np.roll(ends, 1, axis=1)[:, None], starts[None]),
        demand=network.arc_demand[order],
        can_turn=inverse >= 0,
        order_starts=np.zeros(1, dtype=np.int64),
        order_lengths=single(len(order)),
        capacity=single(rules.capacity),
        route_cost=single(rules.route_cost),
        fleet_limit=single(rules.fleet_limit or 0),
    )
    result = split_gathered(orders)
    if result.costs[0] < 0:
        return None
    chosen = np.where(result.turned, arcs[1], arcs[0])
    cuts = np.append(np.flatnonzero(result.starts_route), len(order))
    return chosen, cuts.astype(np.int32)
