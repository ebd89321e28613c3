"""Routes of plans in groups of neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from arcfleet.neural.arc_batch import take_rows
from arcfleet.neural.daam_config import NUM_PLAIN
from arcfleet.neural.gumbel import mixed_bits

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch

# Coordinates are summed as whole numbers of such parts of the unit: floating-point sums on
# a GPU depend on its order of work, and equally near routes would change places.
_PARTS = 2**20

# Between what is hashed for one route and the next.
_NEXT_ROUTE = 0x632BE59BD9B4E019


class RouteGroups(NamedTuple):
    """Every route of every plan in one group.

    Parameters
    ----------
    rows
        Whose plan each group is of, (groups,), in rising order.
    numbers
        Of each group among those of its plan, from 0 on, (groups,).
    member
        Which services of that plan are in the group, (groups, positions).
    routes
        Routes of each group, (groups,).
    """

    rows: Tensor
    numbers: Tensor
    member: Tensor
    routes: Tensor


def group_routes(
    batch: ArcBatch, arcs: Tensor, starts_route: Tensor, seeds: Tensor, most_tasks: int
) -> RouteGroups:
    """Put each route that is drawn by chance together with the nearest that are left.

    A group has as many routes as have at most `most_tasks` tasks together, or two that
    have more; the last one what is left. Near are routes whose services are near in the
    mean, by the MDS coordinates.

    Parameters
    ----------
    batch
        The instances.
    arcs
        Services of a plan of each in order, (batch, positions), zeros after the last.
    starts_route
        Whether a route starts with the service, (batch, positions).
    seeds
        Of the instances, on their device, (batch,).
    most_tasks
        Of a group.
    """
    serves = arcs != 0
    route = (starts_route.cumsum(1) - 1).clamp(min=0)  # (batch, positions)
    count = int(route.amax()) + 1
    tasks = serves.new_zeros((len(arcs), count), dtype=torch.int64)
    tasks = tasks.scatter_add(1, route, serves.long())
    apart = _apart(batch, arcs, route, tasks)
    number = torch.arange(count, device=arcs.device)
    drawn = mixed_bits(seeds[:, None] + number * _NEXT_ROUTE)
    group = torch.full_like(tasks, -1)  # of each route
    free = tasks > 0
    made = 0
    while bool(free.any()):
        first = drawn.masked_fill(~free, torch.iinfo(drawn.dtype).max).argmin(1)
        near = take_rows(apart, first[:, None])[:, 0]  # (batch, routes)
        near = near.scatter(1, first[:, None], -1.0).masked_fill(~free, torch.inf)
        order = near.argsort(dim=1, stable=True)
        together = tasks.masked_fill(~free, 0).gather(1, order).cumsum(1)
        fits = (together <= most_tasks) | (number < 2)
        chosen = torch.zeros_like(free).scatter(1, order, fits) & free
        group = group.masked_fill(chosen, made)
        free = free & ~chosen
        made += 1
    every = torch.arange(made, device=arcs.device)
    routes = (group[:, None] == every[:, None]).sum(2)  # (batch, groups)
    rows, numbers = routes.nonzero(as_tuple=True)
    of_service = group.gather(1, route).masked_fill(~serves, -1)
    return RouteGroups(
        rows, numbers, of_service[rows] == numbers[:, None], routes[rows, numbers]
    )


def _apart(batch: ArcBatch, arcs: Tensor, route: Tensor, tasks: Tensor) -> Tensor:
    """Give what grows with the way between middles of routes, (batch, routes, routes)."""
    ends = take_rows(batch.features[..., NUM_PLAIN:], arcs)  # (batch, positions, 2 d)
    axes = ends.shape[2] // 2
    # Of starts and ends together, so twice the coordinates.
    places = ((ends[..., :axes] + ends[..., axes:]) * _PARTS).round().long()
    places = places * (arcs != 0)[..., None]
    middle = places.new_zeros((*tasks.shape, axes))
    middle = middle.scatter_add(1, route[..., None].expand_as(places), places)
    middle = middle.double() / tasks.clamp(min=1)[..., None]
    return (middle[:, :, None] - middle[:, None]).square().sum(-1)
