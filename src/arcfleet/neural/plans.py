"""From rollouts to plans: depot visits as decoded, or placed at least cost by Split.

The costs along the orders are gathered on the batch's device and come to the host in one
transfer, where Split (`search/split.py`) runs on threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from arcfleet.errors import UnsolvableError
from arcfleet.search.split import GatheredOrders, split_gathered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.decoding import Rollout
    from arcfleet.solution.plan import IntArray


class CostedOrders(NamedTuple):
    """Input of Split, on the host; the orders of an instance follow each other."""

    costs: GatheredOrders
    arcs: NDArray[np.int32]  # services as given, and inverted, (directions, positions)
    serves_all: NDArray[np.bool_]  # whether an order serves all tasks, (orders,)


def without_depot(arcs: Tensor, values: Tensor, most: int) -> Tensor:
    """Move the values of services together, without depot visits between them.

    Takes (batch, samples, steps), returns (batch, samples, most), zeros after the last.
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
    """Gather all costs along orders, (batch, samples, most), on the host at once."""
    samples, most = orders.shape[1:]
    count = len(batch) * samples
    directions = 2 if choose_directions else 1
    rules = [batch.num_tasks, batch.capacity, batch.route_cost, batch.fleet_limit]
    numbers = torch.stack(
        [(orders != 0).sum(-1), *(rule[:, None].expand(-1, samples) for rule in rules)]
    )  # (5, batch, samples)
    rows = _rows(batch, orders, directions)
    host = torch.cat([numbers.to(torch.int32).flatten(), rows.flatten()]).cpu().numpy()
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
    # (rows, batch * samples * most): the arcs, service costs, ways out and back, each in
    # all directions; drives by both directions; demands.
    flat = orders.flatten(1)  # (batch, positions)
    choices = [flat, batch.inverse.long().gather(1, flat)][:directions]
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


#: Cost of what is no plan: not all tasks served, or a limit broken. As in `search.split`.
NO_PLAN = -1

# Services gathered at a time, which bounds the memory: at most 60 bytes each.
_MOST_POSITIONS = 2**22


class Plans(NamedTuple):
    """Plans of the instances of a batch, on the host."""

    arcs: IntArray  # services in order, (batch, samples, tasks), zeros after the last
    starts_route: NDArray[np.bool_]  # whether a route starts there, (batch, samples, tasks)
    costs: NDArray[np.int64]  # total costs, (batch, samples), or NO_PLAN

    def at(self, index: Any) -> Plans:
        """Return the plans at a numpy index into (batch, samples)."""
        return Plans(self.arcs[index], self.starts_route[index], self.costs[index])


def as_decoded(batch: ArcBatch, rollout: Rollout) -> Plans:
    """Return the plans with the routes as decoded.

    The cost is NO_PLAN where they exceed the capacity, as giant tours do, or the fleet
    limit.
    """
    arcs = rollout.arcs
    shape = arcs.shape
    serves = arcs != 0
    after_depot = torch.cat([torch.ones_like(serves[..., :1]), ~serves[..., :-1]], dim=-1)
    starts = serves & after_depot
    routes = starts.sum(-1)
    legal = serves.sum(-1) == batch.num_tasks[:, None]
    legal &= (batch.fleet_limit[:, None] == 0) | (routes <= batch.fleet_limit[:, None])
    # Loads never fall along the order, so the load at the last visit is the largest yet.
    load = batch.demand.long().gather(1, arcs.flatten(1)).view(shape).cumsum(-1)
    unloaded = torch.where(serves, 0, load).cummax(-1).values
    before = torch.cat([torch.zeros_like(load[..., :1]), unloaded[..., :-1]], dim=-1)
    legal &= ((load - before) <= batch.capacity[:, None, None]).all(-1)
    service = batch.service_cost.long().gather(1, arcs.flatten(1)).view(shape).sum(-1)
    costs = service + batch.deadheads(arcs) + routes * batch.route_cost[:, None].long()
    costs = costs.masked_fill(~legal, NO_PLAN)
    most = int(batch.num_tasks.amax())
    orders = without_depot(arcs, arcs, most)
    return Plans(
        orders.to(torch.int32).cpu().numpy(),
        without_depot(arcs, starts.long(), most).bool().cpu().numpy(),
        costs.cpu().numpy(),
    )


def split_plans(
    batch: ArcBatch, rollout: Rollout, *, choose_directions: bool, threads: int = 1
) -> Plans:
    """Split the orders of rollouts into routes of least total cost.

    Split also chooses the direction of each service if `choose_directions`. The plans never
    cost more than `as_decoded`.
    """
    most = int(batch.num_tasks.amax())
    samples = rollout.arcs.shape[1]
    chunk = max(1, _MOST_POSITIONS // max(1, samples * most))
    parts = []
    for first in range(0, len(batch), chunk):
        rows = torch.arange(first, min(first + chunk, len(batch)), device=batch.real.device)
        piece = batch if len(rows) == len(batch) else batch.select(rows)
        arcs = rollout.arcs[first : first + chunk]
        orders = without_depot(arcs, arcs, most)
        parts.append(_split(piece, orders, choose_directions, threads))
    return _concatenate(parts, axis=0)


def best(plans: Plans) -> Plans:
    """Return the cheapest plan of each instance, as its only sample."""
    cheapest = _comparable(plans).argmin(axis=1)
    return plans.at((np.arange(len(cheapest))[:, None], cheapest[:, None]))


def best_so_far(plans: Plans) -> Plans:
    """Return the running minimum over the samples; of equal plans the first."""
    least = np.minimum.accumulate(_comparable(plans), axis=1)
    better = np.zeros(least.shape, dtype=np.bool_)
    better[:, 1:] = least[:, 1:] < least[:, :-1]
    number = np.where(better, np.arange(least.shape[1]), 0)
    sample = np.maximum.accumulate(number, axis=1)
    return plans.at((np.arange(len(sample))[:, None], sample))


def _comparable(plans: Plans) -> NDArray[np.int64]:
    return np.where(plans.costs == NO_PLAN, np.iinfo(np.int64).max, plans.costs)


def merge(*parts: Plans) -> Plans:
    """Concatenate the samples of several sets of plans for the same batch."""
    return _concatenate(parts, axis=1)


def padded(plans: Plans, tasks: int) -> Plans:
    """Pad plans to a larger number of tasks."""
    more = ((0, 0), (0, 0), (0, tasks - plans.arcs.shape[2]))
    return Plans(np.pad(plans.arcs, more), np.pad(plans.starts_route, more), plans.costs)


def flat_plan(plans: Plans, instance: int) -> tuple[IntArray, IntArray]:
    """Return the cheapest plan of one instance in the form of `solution.plan.from_plan`.

    Raise UnsolvableError if none of its samples is a plan.
    """
    plan = best(plans.at(slice(instance, instance + 1)))
    if plan.costs[0, 0] == NO_PLAN:
        raise UnsolvableError(
            "expected at least one plan within the fleet limit, got none among "
            f"{plans.costs.shape[1]} decoded: sample more, or raise the fleet limit"
        )
    arcs = plan.arcs[0, 0]
    length = np.count_nonzero(arcs)
    cuts = np.flatnonzero(plan.starts_route[0, 0, :length])
    return arcs[:length], np.append(cuts, length).astype(np.int32)


def _split(batch: ArcBatch, orders: Tensor, choose_directions: bool, threads: int) -> Plans:
    gathered = gather_costs(batch, orders, choose_directions=choose_directions)
    split = split_gathered(gathered.costs, threads=threads)
    arcs = np.where(split.turned, gathered.arcs[-1], gathered.arcs[0])
    costs = np.where(gathered.serves_all, split.costs, NO_PLAN)
    return Plans(
        arcs.reshape(orders.shape),
        split.starts_route.reshape(orders.shape),
        costs.reshape(orders.shape[:2]),
    )


def _concatenate(parts: Sequence[Plans], *, axis: int) -> Plans:
    return Plans(*(np.concatenate(each, axis=axis) for each in zip(*parts, strict=True)))
