"""Neural LNS: destroy groups of neighbouring routes and repair them by sampled rollouts.

Every route of a plan goes into one group with its neighbours. The tasks of a group become a
small instance of their own, for which the policy samples plans; the cheapest replaces the
routes of the group.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from arcfleet.errors import OptionError
from arcfleet.neural.batch import NUM_PLAIN, round_length, shrink, take_rows
from arcfleet.neural.decoding import Rollout, mixed_bits
from arcfleet.neural.env import State
from arcfleet.neural.plans import (
    NO_PLAN,
    Plans,
    best,
    best_so_far,
    merge,
    split_plans,
    without_depot,
)
from arcfleet.neural.sampling import sample_plans
from arcfleet.neural.windows import centred, with_scale

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch, Shrunk
    from arcfleet.neural.decoding import OnStep, Policy, Wrap

#: Tasks of a group. What was tried: research/log.
GROUP_TASKS = 40

# Coordinates are summed as integers in such parts of the unit: floating-point sums on a GPU
# depend on its order of work, and equally near routes would change places.
_PARTS = 2**20

# Difference of the hashed numbers of two routes.
_NEXT_ROUTE = 0x632BE59BD9B4E019

# Difference of the seeds of two groups.
_NEXT_GROUP = 0x5851F42D4C957F2D


def has_one_group(batch: ArcBatch) -> bool:
    """Return whether all instances are so small that to repair is to sample them whole.

    Waits for the device.
    """
    return int(batch.num_tasks.amax()) <= GROUP_TASKS


class RouteGroups(NamedTuple):
    """Groups of routes; every route of every plan is in one.

    Parameters
    ----------
    rows
        Batch row of each group, (groups,), in ascending order.
    numbers
        Number of each group within its plan, from 0 on, (groups,).
    member
        Services of the plan that are in the group, (groups, positions).
    routes
        Number of routes of each group, (groups,).
    """

    rows: Tensor
    numbers: Tensor
    member: Tensor
    routes: Tensor


def group_routes(
    batch: ArcBatch, arcs: Tensor, starts_route: Tensor, seeds: Tensor, most_tasks: int
) -> RouteGroups:
    """Group each randomly chosen route with its nearest neighbours that are left.

    A group has as many routes as have at most `most_tasks` tasks together, or two that
    have more; the last group has what is left. The distance of two routes is that of the
    means of their services' MDS coordinates.

    Parameters
    ----------
    batch
        Instances.
    arcs
        Services of one plan of each in order, (batch, positions), zeros after the last.
    starts_route
        Services with which a route starts, (batch, positions).
    seeds
        Seeds of the instances, on their device, (batch,).
    most_tasks
        Largest number of tasks of a group.
    """
    serves = arcs != 0
    route = (starts_route.cumsum(1) - 1).clamp(min=0)  # (batch, positions)
    count = int(route.amax()) + 1
    tasks = serves.new_zeros((len(arcs), count), dtype=torch.int64)
    tasks = tasks.scatter_add(1, route, serves.long())
    apart = _squared_distances(batch, arcs, route, tasks)
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


def _squared_distances(
    batch: ArcBatch, arcs: Tensor, route: Tensor, tasks: Tensor
) -> Tensor:
    """Return squared distances between route centres, (batch, routes, routes)."""
    ends = take_rows(batch.features[..., NUM_PLAIN:], arcs)  # (batch, positions, 2 d)
    axes = ends.shape[2] // 2
    # Of starts and ends together, so twice the coordinates.
    places = ((ends[..., :axes] + ends[..., axes:]) * _PARTS).round().long()
    places = places * (arcs != 0)[..., None]
    middle = places.new_zeros((*tasks.shape, axes))
    middle = middle.scatter_add(1, route[..., None].expand_as(places), places)
    middle = middle.double() / tasks.clamp(min=1)[..., None]
    return (middle[:, :, None] - middle[:, None]).square().sum(-1)


def destroy_and_repair(
    policy: Policy,
    batch: ArcBatch,
    plans: Plans,
    samples: int,
    seeds: Tensor,
    *,
    group_tasks: int = GROUP_TASKS,
    own_unit: bool = False,
    temperature: float | None = None,
    threads: int = 1,
    on_step: OnStep | None = None,
    wrap: Wrap | None = None,
) -> Iterator[Plans]:
    """Sample the routes of plans anew; yield the plans after every sample.

    They come in the two parts of `sample_plans`. No plan costs more than the one before it.
    Plans that break the fleet limit are sampled anew as a whole; others never get more
    routes where there is a limit.

    Parameters
    ----------
    policy, batch, temperature, threads, on_step, wrap
        As in `sample_plans`.
    plans
        One plan of each instance.
    samples
        Samples of every group.
    seeds
        Seeds of the instances, for this call alone.
    group_tasks
        Tasks that are repaired together, as in `group_routes`.
    own_unit
        Whether lengths and coordinates are scaled to the group alone: for large instances,
        of which a model has never seen such a small part.
    """
    if plans.costs.shape != (len(batch), 1) or group_tasks < 1:
        raise OptionError(
            "expected one plan of each instance and groups of at least 1 task, got plans "
            f"of shape {plans.costs.shape} for {len(batch)} and groups of {group_tasks}"
        )
    device = batch.real.device
    seeds = seeds.to(device)
    arcs = torch.as_tensor(plans.arcs[:, 0], device=device).long()
    legal = torch.as_tensor(plans.costs[:, 0] != NO_PLAN, device=device)
    starts = torch.as_tensor(plans.starts_route[:, 0], device=device) & legal[:, None]
    groups = group_routes(batch, arcs, starts, seeds, group_tasks)
    rows = groups.rows
    services = arcs[rows].masked_fill(~groups.member, 0)  # (groups, positions)
    small = _instances_of(batch, rows, services)
    limit = batch.fleet_limit[rows]
    limit = torch.where((limit > 0) & legal[rows], groups.routes.to(limit), limit)
    parts = replace(small.batch, fleet_limit=limit)
    if own_unit:
        parts = _rescaled(parts)
    most = int(groups.member.sum(1).amax())
    slots = small.slot.gather(1, services)
    old = Rollout(
        without_depot(services, slots, most)[:, None],
        torch.zeros((len(rows), 1), dtype=torch.float64, device=device),
    )
    drawn = sample_plans(
        policy,
        parts,
        samples,
        mixed_bits(seeds[rows] + groups.numbers * _NEXT_GROUP),
        temperature=temperature,
        threads=threads,
        on_step=on_step,
        wrap=wrap,
    )
    known = split_plans(parts, old, choose_directions=True, threads=threads)
    for found in drawn:
        after = best_so_far(merge(known, found)).at((slice(None), slice(1, None)))
        yield _concatenate(after, groups, small.kept, plans.arcs.shape)
        known = best(after)


def _instances_of(batch: ArcBatch, rows: Tensor, services: Tensor) -> Shrunk:
    """Return an instance of the tasks of each group.

    Parameters
    ----------
    batch
        Instances.
    rows
        Batch row of each group, (groups,).
    services
        Services of each group, (groups, positions), zeros between them.
    """
    unserved = torch.zeros_like(batch.real[rows]).scatter(1, services, True)
    unserved |= unserved.gather(1, batch.inverse.long()[rows])
    unserved[:, 0] = False
    longest = int(unserved.sum(1).amax()) + 1
    state = State(
        unserved=unserved[:, None],
        previous=rows.new_zeros((len(rows), 1)),
        remaining=batch.capacity[rows][:, None],
    )
    return shrink(batch, state, round_length(longest), rows)


def _rescaled(batch: ArcBatch) -> ArcBatch:
    """Return parts of instances with their own unit of length and centred coordinates."""
    pairs = (batch.real[:, :, None] & batch.real[:, None]).float()
    scale = (batch.distance * pairs).sum((1, 2)) / pairs.sum((1, 2))
    features = centred(batch.features, batch.real) * batch.real[..., None]
    # Where all driving within a part is free, the unit stays that of the instance.
    return with_scale(
        replace(batch, features=features), torch.where(scale > 0, scale, batch.scale)
    )


def _concatenate(
    parts: Plans, groups: RouteGroups, kept: Tensor, shape: tuple[int, ...]
) -> Plans:
    """Concatenate the routes of all groups of an instance.

    Parameters
    ----------
    parts
        Plans of the groups, (groups, samples, ...).
    groups
        The groups.
    kept
        Arcs of the instance that a group's arcs are, (groups, arcs).
    shape
        Shape of the services of all plans, (batch, 1, positions).
    """
    row = groups.rows.cpu().numpy()
    size, samples, most = shape[0], parts.costs.shape[1], shape[2]
    serves = parts.arcs[:, 0] != 0  # the same in all samples
    length = serves.sum(1)
    before = length.cumsum() - length
    before -= before[np.searchsorted(row, row)]  # within the instance
    group, position = np.nonzero(serves)
    place = row[group], slice(None), before[group] + position
    own = np.take_along_axis(
        kept.cpu().numpy()[:, None], parts.arcs.astype(np.int64), axis=2
    )
    arcs = np.zeros((size, samples, most), dtype=parts.arcs.dtype)
    arcs[place] = own[group, :, position]
    starts = np.zeros(arcs.shape, dtype=np.bool_)
    starts[place] = parts.starts_route[group, :, position]
    costs = np.zeros((size, samples), dtype=np.int64)
    np.add.at(costs, row, parts.costs)
    failed = np.zeros(costs.shape, dtype=np.bool_)
    np.logical_or.at(failed, row, parts.costs == NO_PLAN)
    return Plans(arcs, starts, np.where(failed, NO_PLAN, costs))
