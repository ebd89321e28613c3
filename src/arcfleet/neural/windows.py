"""Plans for networks far larger than a model was trained on.

At every moment the model sees a window: the depot, the arc chosen last, and the arcs of
the unserved tasks nearest to it. A window is an `ArcBatch` like any other, so model and
decision process need not know of it, and beside the network itself a plan takes memory for
one window only.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import torch

from arcfleet.errors import OptionError
from arcfleet.neural import env as process
from arcfleet.neural.batch import NUM_PLAIN, ArcBatch, mean_service_cost
from arcfleet.neural.decoding import initial_memory, recall
from arcfleet.neural.env import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from arcfleet.neural.model import Model


# Windows whose mean driving cost becomes the unit of length.
NUM_SAMPLES = 32


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
    """Build plans of one instance, window by window.

    Parameters
    ----------
    model
        The policy.
    batch
        One instance.
    choose
        From logits, (1, samples, arcs of the window), to one of those arcs, (1, samples);
        may raise to end it all.
    tasks
        Tasks in a window.
    samples
        Plans built side by side.
    capacity_mask
        Whether the capacity counts, as in `action_mask`.

    Returns
    -------
    arcs
        Arcs of the instance in order, (1, samples, steps), the depot visits as they were
        chosen; a plan that is done earlier than others ends with arc 0 repeated.
    """
    if len(batch) != 1:
        raise OptionError(f"expected one instance to see through windows, got {len(batch)}")
    if tasks < 1:
        raise OptionError(f"expected windows of at least 1 task, got {tasks}")
    if samples < 1:
        raise OptionError(f"expected at least 1 copy, got {samples}")
    num_tasks = int(batch.num_tasks)
    state = process.reset(batch, samples)
    chosen: list[Tensor] = []
    memory: Tensor | None = None
    if num_tasks:
        batch = with_scale(batch, window_scale(batch, tasks))
    # At worst every task is a route of its own; no plan is done before `num_tasks` steps,
    # so that until then nobody need wait for the device to ask.
    while len(chosen) < 2 * num_tasks:
        if len(chosen) > num_tasks and bool(process.finished(state).all()):
            break
        window = look(batch, state, min(tasks, num_tasks))
        prepared = model.prepare(window.batch, padded=True)
        if not chosen:
            memory = initial_memory(prepared, 1)  # (samples, 1, width), or None
        prepared, memory = recall(model, prepared, window.state, memory)
        allowed = process.action_mask(
            window.batch, window.state, capacity_mask=capacity_mask
        )
        logits = model(prepared, window.state, allowed)  # (samples, 1, arcs of the window)
        picked = choose(logits.transpose(0, 1)).transpose(0, 1)  # (samples, 1)
        arcs = window.arcs.gather(1, picked).transpose(0, 1)  # (1, samples)
        state = process.step(batch, state, arcs, capacity_mask=capacity_mask)
        chosen.append(arcs)
    if not chosen:
        return state.previous.new_zeros(1, samples, 0)
    return torch.stack(chosen, dim=-1)


class Window(NamedTuple):
    """What the model sees of one instance, every copy through a window of its own.

    Parameters
    ----------
    arcs
        Arcs of the instance, (samples, arcs of the window); 0 for padding. The depot comes
        first, then the arc chosen last, then the tasks, two directions each.
    batch
        The window as a batch of `samples` instances, its places being its arcs.
    state
        Where the plans stand, (samples, 1, ...).
    """

    arcs: Tensor
    batch: ArcBatch
    state: State


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
    window = ArcBatch(
        features=centred(batch.features[0, arcs], real) * real[..., None],
        distance=_costs(batch, arcs),
        start=here,
        end=here,
        service_cost=batch.service_cost[0, arcs] * real,
        demand=batch.demand[0, arcs] * real,
        inverse=inverse,
        real=real,
        capacity=batch.capacity.expand(samples),
        route_cost=batch.route_cost.expand(samples),
        fleet_limit=batch.fleet_limit.expand(samples),
        scale=batch.scale.expand(samples),
    )
    local = State(
        unserved=(real & (here >= 2))[:, None],
        previous=away.long(),
        remaining=state.remaining[0, :, None],
    )
    return Window(arcs=arcs, batch=window, state=local)


def window_scale(batch: ArcBatch, tasks: int) -> Tensor:
    """Give the mean driving cost between the arcs of a typical window, (1,).

    A model was trained on lengths divided by the mean of a whole, smaller instance; this
    is the number for which windows look like that. It is taken over windows of unserved
    tasks around arcs spread evenly over the instance, and one for all of them. Where all
    driving is free it is as in `features`.
    """
    real = batch.real[0]
    count = int(real.sum())
    places = torch.linspace(1, count - 1, min(NUM_SAMPLES, count - 1)).long()
    unserved = process.reset(batch).unserved[0].expand(len(places), -1)
    middle = batch.end[0, places.to(real.device)]
    first, found = _nearest(batch, middle, unserved, min(tasks, int(batch.num_tasks)))
    arcs = torch.cat([first, batch.inverse[0, first]], dim=1)  # (samples, 2 tasks)
    weight = torch.cat([found, found], dim=1).float()
    weight = weight[:, :, None] * weight[:, None, :]
    mean = (_costs(batch, arcs) * weight).sum() / weight.sum()
    serving = mean_service_cost(batch.service_cost, batch.real).to(mean)
    return torch.where(mean > 0, mean, serving)


def with_scale(batch: ArcBatch, scale: Tensor) -> ArcBatch:
    """Give the same instances with another unit of length, (batch,)."""
    ratio = (batch.scale / scale)[:, None, None]
    is_depot, cost, demand, mds = batch.features.split_with_sizes(
        [1, 1, 1, batch.features.shape[2] - NUM_PLAIN], dim=2
    )
    features = torch.cat([is_depot, cost * ratio, demand, mds * ratio], dim=2)
    return replace(batch, features=features, scale=scale)


def _nearest(
    batch: ArcBatch, places: Tensor, unserved: Tensor, tasks: int
) -> tuple[Tensor, Tensor]:
    """Find the unserved tasks nearest to some places.

    Gives one arc of each, (rows, tasks), and which of them are any, (rows, tasks).
    """
    inverse = batch.inverse[0]
    once = inverse >= torch.arange(len(inverse), device=inverse.device)
    drive = batch.distance[0, places.long()][:, batch.start[0].long()].float()
    drive = torch.minimum(drive, drive[:, inverse])  # (rows, arcs)
    drive = drive.masked_fill(~(unserved & once), math.inf)
    nearest = drive.topk(tasks, largest=False)
    return nearest.indices, nearest.values < math.inf


def _costs(batch: ArcBatch, arcs: Tensor) -> Tensor:
    """Driving costs from each of (rows, arcs) to each other, (rows, arcs, arcs)."""
    ends, starts = batch.end[0, arcs].long(), batch.start[0, arcs].long()
    return batch.distance[0, ends[:, :, None], starts[:, None, :]]


def centred(features: Tensor, real: Tensor) -> Tensor:
    """Turn the MDS coordinates as classical scaling of the window alone would have them.

    Centred, and the axes by falling variance: that is what a model was trained on. The
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
