"""Good plans made better: neighbouring routes are drawn anew, a few at a time.

A model plans small instances far better than large ones. The routes of a plan are put into
groups of neighbours, and the tasks of a group are an instance of their own, of which plans
are drawn as of any other. Each group takes its cheapest, the routes that it had included:
so all groups get better side by side, and no plan ever gets dearer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from arcfleet.errors import OptionError
from arcfleet.neural.draws import draw_parts
from arcfleet.neural.gumbel import mixed_bits
from arcfleet.neural.orders import without_depot
from arcfleet.neural.plans import NO_PLAN, Plans, best, best_so_far, merge, optimise
from arcfleet.neural.rollout import Rollout
from arcfleet.neural.route_groups import group_routes
from arcfleet.neural.shrink import shrink, whole_vectors
from arcfleet.neural.state import State
from arcfleet.neural.window import centred, with_scale

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.rollout import OnStep, Policy, Wrap
    from arcfleet.neural.route_groups import RouteGroups
    from arcfleet.neural.shrink import Shrunk

#: Plans that are drawn whole before routes are drawn anew, and tasks of a group. What was
#: tried: docs/training-log.md.
WHOLE = 16
GROUP_TASKS = 40

# Draws between two groupings at least, and groupings about at most, however many are asked.
_ROUND = 4
_ROUNDS = 16

# Seeds differ by these from group to group, and from round to round.
_NEXT_GROUP = 0x5851F42D4C957F2D
_NEXT_ROUND = 0x3C6EF372FE94F82B


def round_size(copies: int) -> int:
    """Say how often routes are drawn anew before there are other groups."""
    return max(_ROUND, copies // _ROUNDS)


def has_one_group(batch: ArcBatch) -> bool:
    """Say whether all instances are so small that to draw them anew is to draw them whole.

    Waits for the device.
    """
    return int(batch.num_tasks.amax()) <= GROUP_TASKS


def draw_and_redraw(
    policy: Policy,
    batch: ArcBatch,
    copies: int,
    seeds: Tensor,
    *,
    temperature: float | None = None,
    threads: int = 1,
    wrap: Wrap | None = None,
) -> Iterator[Plans]:
    """Draw some plans of each instance, then go on with the routes of the best.

    Parameters
    ----------
    policy, batch, seeds, temperature, threads, wrap
        As `draws.draw_parts` takes them.
    copies
        Plans of each instance; up to `WHOLE` of them are drawn whole, and all where there
        is one group.
    """
    whole = copies if has_one_group(batch) else min(copies, WHOLE)
    found = []
    for plans in draw_parts(
        policy,
        batch,
        whole,
        seeds,
        temperature=temperature,
        threads=threads,
        wrap=wrap,
    ):
        found.append(plans)
        yield plans
    kept = best(merge(*found))
    size = round_size(copies)
    for first in range(whole, copies, size):
        seeds = mixed_bits(seeds + _NEXT_ROUND)
        for plans in redraw(
            policy,
            batch,
            kept,
            min(size, copies - first),
            seeds,
            temperature=temperature,
            threads=threads,
            wrap=wrap,
        ):
            kept = best(plans)
            yield plans


def redraw(
    policy: Policy,
    batch: ArcBatch,
    plans: Plans,
    copies: int,
    seeds: Tensor,
    *,
    group_tasks: int = GROUP_TASKS,
    own_unit: bool = False,
    temperature: float | None = None,
    threads: int = 1,
    on_step: OnStep | None = None,
    wrap: Wrap | None = None,
) -> Iterator[Plans]:
    """Draw the routes of plans anew; give what each plan is after every draw.

    They come in the parts of `draws.draw_parts`. None is dearer than the one before it.
    Plans that break the fleet limit are drawn anew as a whole; the others never get more
    routes where there is a limit.

    Parameters
    ----------
    policy, batch, temperature, threads, on_step, wrap
        As `draws.draw_parts` takes them.
    plans
        One of each instance.
    copies
        How often every route is drawn anew.
    seeds
        Of the instances, for this call alone.
    group_tasks
        Tasks that are drawn together, as `group_routes` takes them.
    own_unit
        Whether lengths and coordinates are those of a group alone: for large instances, of
        which a model knows no such small part.
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
        parts = _seen_alone(parts)
    most = int(groups.member.sum(1).amax())
    slots = small.slot.gather(1, services)
    old = Rollout(
        without_depot(services, slots, most)[:, None],
        torch.zeros((len(rows), 1), dtype=torch.float64, device=device),
    )
    drawn = draw_parts(
        policy,
        parts,
        copies,
        mixed_bits(seeds[rows] + groups.numbers * _NEXT_GROUP),
        temperature=temperature,
        threads=threads,
        on_step=on_step,
        wrap=wrap,
    )
    known = optimise(parts, old, choose_directions=True, threads=threads)
    for found in drawn:
        after = best_so_far(merge(known, found)).at((slice(None), slice(1, None)))
        yield _joined(after, groups, small.kept, plans.arcs.shape)
        known = best(after)


def _instances_of(batch: ArcBatch, rows: Tensor, services: Tensor) -> Shrunk:
    """Make an instance of the tasks of each group.

    Parameters
    ----------
    batch
        The instances that the groups are of.
    rows
        Which one, (groups,).
    services
        Those of each group, (groups, positions), zeros between them.
    """
    unserved = torch.zeros_like(batch.real[rows]).scatter(1, services, True)
    unserved |= unserved.gather(1, batch.twin.long()[rows])
    unserved[:, 0] = False
    longest = int(unserved.sum(1).amax()) + 1
    state = State(
        unserved=unserved[:, None],
        previous=rows.new_zeros((len(rows), 1)),
        remaining=batch.capacity[rows][:, None],
    )
    return shrink(batch, state, whole_vectors(longest), rows)


def _seen_alone(batch: ArcBatch) -> ArcBatch:
    """Give parts of instances their own unit of length, and coordinates around them."""
    pairs = (batch.real[:, :, None] & batch.real[:, None]).float()
    scale = (batch.distance * pairs).sum((1, 2)) / pairs.sum((1, 2))
    features = centred(batch.features, batch.real) * batch.real[..., None]
    # Where all driving within a part is free, the unit stays that of the instance.
    return with_scale(
        replace(batch, features=features), torch.where(scale > 0, scale, batch.scale)
    )


def _joined(
    parts: Plans, groups: RouteGroups, kept: Tensor, shape: tuple[int, ...]
) -> Plans:
    """Put the routes of all groups of an instance one after the other.

    Parameters
    ----------
    parts
        Plans of the groups, (groups, copies, ...).
    groups
        Whose they are.
    kept
        The arcs that a group's arcs are of the instance, (groups, arcs).
    shape
        Of the services of all plans, (batch, 1, positions).
    """
    row = groups.rows.cpu().numpy()
    size, copies, most = shape[0], parts.costs.shape[1], shape[2]
    serves = parts.arcs[:, 0] != 0  # the same in all copies
    length = serves.sum(1)
    before = length.cumsum() - length
    before -= before[np.searchsorted(row, row)]  # within the instance
    group, position = np.nonzero(serves)
    place = row[group], slice(None), before[group] + position
    own = np.take_along_axis(
        kept.cpu().numpy()[:, None], parts.arcs.astype(np.int64), axis=2
    )
    arcs = np.zeros((size, copies, most), dtype=parts.arcs.dtype)
    arcs[place] = own[group, :, position]
    starts = np.zeros(arcs.shape, dtype=np.bool_)
    starts[place] = parts.starts_route[group, :, position]
    costs = np.zeros((size, copies), dtype=np.int64)
    np.add.at(costs, row, parts.costs)
    failed = np.zeros(costs.shape, dtype=np.bool_)
    np.logical_or.at(failed, row, parts.costs == NO_PLAN)
    return Plans(arcs, starts, np.where(failed, NO_PLAN, costs))
