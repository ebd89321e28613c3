"""Windows: rollouts of instances far larger than a model was trained on.

At every step the model sees a window: the depot, the arc chosen last, and the arcs of the
unserved tasks nearest to it. A window is an `ArcBatch` like any other, so neither the model
nor the environment knows of it, and a plan takes memory for one window only.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from arcfleet.errors import OptionError
from arcfleet.neural import env
from arcfleet.neural.batch import NUM_PLAIN, ArcBatch, mean_service_cost, some_arcs
from arcfleet.neural.decoding import initial_memory, recall
from arcfleet.neural.env import State
from arcfleet.neural.plans import NO_PLAN, Plans

if TYPE_CHECKING:
    from collections.abc import Callable

    from arcfleet.network import Network
    from arcfleet.neural.model import Model

#: Beyond so many tasks the model sees a window of the nearest ones.
MOST_TASKS_AT_ONCE = 300

# Windows whose mean driving cost becomes the unit of length.
NUM_SAMPLES = 32


def stands_alone(network: Network) -> bool:
    """Return whether an instance shares no batch: it is large, or has no tasks."""
    return network.num_tasks > MOST_TASKS_AT_ONCE or network.num_tasks == 0


def has_short_routes(plans: Plans) -> bool:
    """Return whether any two routes of a plan fit what a model sees at once."""
    if (plans.costs == NO_PLAN).any():
        return False
    route = plans.starts_route[:, 0].cumsum(1) * (plans.arcs[:, 0] != 0)
    longest = (np.sort(np.bincount(one)[1:])[-2:].sum() for one in route)
    return all(tasks <= MOST_TASKS_AT_ONCE for tasks in longest)


@torch.no_grad()
def windowed_rollout(
    model: Model,
    batch: ArcBatch,
    *,
    choose: Callable[[Tensor], Tensor],
    tasks: int = 100,
    samples: int = 1,
    capacity_mask: bool = True,
) -> Tensor:
    """Roll a policy out on one instance, window by window; return (1, samples, steps).

    Parameters
    ----------
    model
        Policy.
    batch
        One instance.
    choose
        Function from logits, (1, samples, arcs of the window), to arcs of the window,
        (1, samples); may raise to end the rollout.
    tasks
        Tasks of a window.
    samples
        Plans built side by side.
    capacity_mask
        Whether the capacity masks arcs, as in `action_mask`.
    """
    if len(batch) != 1 or tasks < 1 or samples < 1:
        raise OptionError(
            "expected one instance to see through windows of at least 1 task, and at least "
            f"1 sample, got {len(batch)}, {tasks} and {samples}"
        )
    num_tasks = int(batch.num_tasks)
    state = env.reset(batch, samples)
    chosen: list[Tensor] = []
    memory: Tensor | None = None
    if num_tasks:
        batch = with_scale(batch, window_scale(batch, tasks))
    # At worst every task is a route of its own; no plan is done before `num_tasks` steps,
    # so that until then nobody need wait for the device to ask.
    while len(chosen) < 2 * num_tasks:
        if len(chosen) > num_tasks and bool(env.finished(state).all()):
            break
        window = look(batch, state, min(tasks, num_tasks))
        prepared = model.prepare(window.batch, padded=True)
        if not chosen:
            memory = initial_memory(prepared, 1)  # (samples, 1, width), or None
        prepared, memory = recall(model, prepared, window.state, memory)
        allowed = env.action_mask(window.batch, window.state, capacity_mask=capacity_mask)
        logits = model(prepared, window.state, allowed)  # (samples, 1, arcs of the window)
        picked = choose(logits.transpose(0, 1)).transpose(0, 1)  # (samples, 1)
        arcs = window.arcs.gather(1, picked).transpose(0, 1)  # (1, samples)
        state = env.step(batch, state, arcs, capacity_mask=capacity_mask)
        chosen.append(arcs)
    if not chosen:
        return state.previous.new_zeros(1, samples, 0)
    return torch.stack(chosen, dim=-1)


class Window(NamedTuple):
    """What the model sees of one instance; every sample has a window of its own.

    The depot comes first, then the arc chosen last, then the tasks, two directions each.
    """

    arcs: Tensor  # of the instance, (samples, arcs of the window); 0 for padding
    batch: ArcBatch  # of `samples` instances; the places are the arcs
    state: State  # of the plans, (samples, 1, ...)


def look(batch: ArcBatch, state: State, tasks: int) -> Window:
    """Open a window of the `tasks` unserved tasks nearest to each plan of one instance."""
    previous = state.previous[0]  # (samples,)
    first, found = _nearest(batch, batch.end[0, previous], state.unserved[0], tasks)
    second = batch.inverse[0, first]
    pairs = torch.stack([first, second], dim=-1).flatten(1)  # (samples, 2 tasks)
    both = torch.stack([found, found & (second != first)], dim=-1).flatten(1)
    away = previous[:, None] != 0  # a plan at the depot shows the depot once
    real = torch.cat([torch.ones_like(away), away, both], dim=1)
    arcs = torch.cat([torch.zeros_like(away), previous[:, None], pairs], dim=1)
    arcs = torch.where(real, arcs, 0)  # (samples, 2 + 2 tasks)
    samples, size = arcs.shape

    here = torch.arange(size, device=arcs.device).expand(samples, -1)
    other = torch.where(here < 2, here, here ^ 1)  # pairs begin at an even number
    inverse = torch.where(real & real.gather(1, other), other, here)
    window = some_arcs(batch, torch.zeros_like(previous), arcs, real, inverse)
    features = centred(window.features, real) * real[..., None]
    window = replace(window, features=features)
    local = State(
        unserved=(real & (here >= 2))[:, None],
        previous=away.long(),
        remaining=state.remaining[0, :, None],
    )
    return Window(arcs=arcs, batch=window, state=local)


def window_scale(batch: ArcBatch, tasks: int) -> Tensor:
    """Return the mean driving cost between the arcs of a typical window, (1,).

    A model was trained on lengths divided by the mean of a whole, smaller instance; this is
    the scale for which windows look like that. It is the mean over windows of unserved
    tasks around arcs spread evenly over the instance. Where all driving is free, the mean
    service cost, as in `ArcBatch`.
    """
    real = batch.real[0]
    count = int(real.sum())
    places = torch.linspace(1, count - 1, min(NUM_SAMPLES, count - 1)).long()
    unserved = env.reset(batch).unserved[0].expand(len(places), -1)
    middle = batch.end[0, places.to(real.device)]
    first, found = _nearest(batch, middle, unserved, min(tasks, int(batch.num_tasks)))
    arcs = torch.cat([first, batch.inverse[0, first]], dim=1)  # (samples, 2 tasks)
    weight = torch.cat([found, found], dim=1).float()
    weight = weight[:, :, None] * weight[:, None, :]
    ends, starts = batch.end[0, arcs].long(), batch.start[0, arcs].long()
    costs = batch.distance[0, ends[:, :, None], starts[:, None, :]]
    mean = (costs * weight).sum() / weight.sum()
    serving = mean_service_cost(batch.service_cost, batch.real).to(mean)
    return torch.where(mean > 0, mean, serving)


def with_scale(batch: ArcBatch, scale: Tensor) -> ArcBatch:
    """Return the same instances with another unit of length, (batch,)."""
    ratio = (batch.scale / scale)[:, None, None]
    is_depot, cost, others, mds = batch.features.split_with_sizes(
        [1, 1, NUM_PLAIN - 2, batch.features.shape[2] - NUM_PLAIN], dim=2
    )
    features = torch.cat([is_depot, cost * ratio, others, mds * ratio], dim=2)
    return replace(batch, features=features, scale=scale)


def _nearest(
    batch: ArcBatch, places: Tensor, unserved: Tensor, tasks: int
) -> tuple[Tensor, Tensor]:
    """Return one arc of each of the nearest unserved tasks, and which of them exist."""
    inverse, once = batch.inverse[0], batch.task_arcs[0]
    drive = batch.distance[0, places.long()][:, batch.start[0].long()].float()
    drive = torch.minimum(drive, drive[:, inverse])  # (rows, arcs)
    drive = drive.masked_fill(~(unserved & once), math.inf)
    nearest = drive.topk(tasks, largest=False)  # (rows, tasks)
    return nearest.indices, nearest.values < math.inf


def centred(features: Tensor, real: Tensor) -> Tensor:
    """Return features whose MDS coordinates are those of the window alone.

    Centred, and the axes by descending variance: that is what a model was trained on. The
    depot, which may be far off, does not count.
    """
    plain, mds = features[..., :NUM_PLAIN], features[..., NUM_PLAIN:]
    rows, arcs, columns = mds.shape
    if not columns:
        return features
    points = mds.reshape(rows, 2 * arcs, columns // 2)  # starts and ends
    weight = real.clone()
    weight[:, 0] = False
    weights = weight.repeat_interleave(2, dim=1)[..., None].to(points)
    count = weights.sum(1, keepdim=True).clamp(min=1)
    points = points - (points * weights).sum(1, keepdim=True) / count
    spread = (points * weights).mT @ points / count  # (rows, d, d)
    axes = torch.linalg.eigh(spread).eigenvectors.flip(-1)
    return torch.cat([plain, (points @ axes).view(mds.shape)], dim=-1)
