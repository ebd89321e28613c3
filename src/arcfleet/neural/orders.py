"""Orders of services from rollouts, and their costs for the path optimiser."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from arcfleet.search.split import GatheredOrders

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch


class CostedOrders(NamedTuple):
    """What the path optimiser needs of some orders, on the host.

    Parameters
    ----------
    costs
        Of all orders, the copies of an instance one after the other.
    arcs
        The services as given and, if directions are chosen, turned round,
        (directions, positions).
    serves_all
        Which orders serve all tasks of their instance, (orders,).
    """

    costs: GatheredOrders
    arcs: NDArray[np.int32]
    serves_all: NDArray[np.bool_]


def without_depot(arcs: Tensor, values: Tensor, most: int) -> Tensor:
    """Move the values of the services together: no visits to the depot between them.

    Parameters
    ----------
    arcs
        As in a rollout, (batch, copies, steps).
    values
        Of each step, of the same shape.
    most
        Services of the longest order.

    Returns
    -------
    moved
        Of shape (batch, copies, most), zeros after the last service.
    """
    serves = arcs != 0
    # All visits to the depot go to one column too many.
    column = torch.where(serves, serves.cumsum(-1) - 1, most)
    shape = (*arcs.shape[:-1], most + 1)
    moved = torch.zeros(shape, dtype=values.dtype, device=values.device)
    return moved.scatter(-1, column, values)[..., :most]


def gather_costs(
    batch: ArcBatch, orders: Tensor, *, choose_directions: bool
) -> CostedOrders:
    """Look up all costs along orders and bring them to the host, in one transfer.

    Parameters
    ----------
    batch
        The instances.
    orders
        Their services in order, (batch, copies, most), zeros after the last.
    choose_directions
        Whether the costs of services turned round are needed.
    """
    copies, most = orders.shape[1:]
    count = len(batch) * copies
    directions = 2 if choose_directions else 1
    rules = [batch.num_tasks, batch.capacity, batch.route_cost, batch.fleet_limit]
    numbers = torch.stack(
        [(orders != 0).sum(-1), *(rule[:, None].expand(-1, copies) for rule in rules)]
    )  # (5, batch, copies)
    rows = _rows(batch, orders, directions)
    flat = torch.cat([numbers.to(torch.int32).flatten(), rows.flatten()])
    host = flat.cpu().numpy()
    length, tasks, capacity, route_cost, fleet_limit = host[: 5 * count].reshape(5, count)
    sizes = [directions, directions, directions, directions, directions**2]
    arcs, service_cost, out, back, drive, demand = np.split(
        host[5 * count :].reshape(-1, count * most), np.cumsum(sizes)
    )
    costs = GatheredOrders(
        service_cost=service_cost,
        out=out,
        back=back,
        drive=drive,
        demand=demand,
        can_turn=arcs[0] != arcs[1] if choose_directions else None,
        order_starts=np.arange(count, dtype=np.int64) * most,
        order_lengths=length,
        capacity=capacity,
        route_cost=route_cost,
        fleet_limit=fleet_limit,
    )
    return CostedOrders(costs, arcs, length == tasks)


def _rows(batch: ArcBatch, orders: Tensor, directions: int) -> Tensor:
    # (rows, batch * copies * most): the arcs, service costs, ways out and back, each in
    # all directions; drives by both directions; demands.
    flat = orders.flatten(1)  # (batch, positions)
    choices = [flat, batch.twin.long().gather(1, flat)][:directions]
    starts = [batch.start.long().gather(1, arcs) for arcs in choices]
    ends = [batch.end.long().gather(1, arcs) for arcs in choices]
    places = batch.distance.shape[2]
    distance = batch.distance.flatten(1)  # (batch, places * places)

    def way(end: Tensor, start: Tensor) -> Tensor:
        return distance.gather(1, end * places + start)

    home_start, home_end = batch.start[:, :1].long(), batch.end[:, :1].long()
    # Before the first service of an order stands nothing that counts.
    ends_before = [end.view(orders.shape).roll(1, dims=-1).flatten(1) for end in ends]
    rows = [
        *choices,
        *(batch.service_cost.gather(1, arcs) for arcs in choices),
        *(way(home_end, start) for start in starts),
        *(way(end, home_start) for end in ends),
        *(way(end, start) for end in ends_before for start in starts),
        batch.demand.gather(1, flat),
    ]
    return torch.stack([row.to(torch.int32).flatten() for row in rows])
