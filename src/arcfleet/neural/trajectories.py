"""Moments of sampled plans: where each stood, and what it chose there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from arcfleet.neural.imitation import draw_moments, moments_of
from arcfleet.neural.labelled_plans import back_twin, of_arcs
from arcfleet.neural.state import State

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.shrink import Rung


def num_choices(arcs: Tensor) -> Tensor:
    """Count the decisions of plans up to the last service, (batch, copies).

    Parameters
    ----------
    arcs
        As in a rollout from the empty plan, (batch, copies, steps). After the last
        service the way home is no choice.
    """
    number = torch.arange(1, arcs.shape[-1] + 1, device=arcs.device)
    return ((arcs != 0) * number).amax(-1)


def draw_choices(
    arcs: Tensor, moments: int, generator: Generator, rung: Rung | None = None
) -> tuple[Tensor, Tensor]:
    """Draw moments of sampled plans.

    Parameters
    ----------
    arcs
        As those of `num_choices`.
    moments
        Of each plan.
    generator
        On the device of the plans.
    rung
        Which moments; None for any.

    Returns
    -------
    drawn
        (batch, copies, moments). Their mean, times `count`, is in the mean the sum over
        all decisions of the rung.
    count
        Decisions of the rung, (batch, copies). A plan that has none is drawn from all
        the same, and must not count.
    """
    count = num_choices(arcs)
    first = torch.zeros_like(count)
    if rung is not None:
        first, count = moments_of(arcs, count, rung)
    # One more for the way home, which is never drawn.
    within = draw_moments(count.flatten() + 1, moments, generator)
    return within.view(*arcs.shape[:2], moments) + first[..., None], count


def states_at(
    batch: ArcBatch, arcs: Tensor, moments: Tensor, room: Tensor | None = None
) -> tuple[State, Tensor]:
    """Give where sampled plans stood, and what they chose.

    Parameters
    ----------
    batch
        The instances.
    arcs
        As in a rollout from the empty plan, (batch, copies, steps).
    moments
        Decisions made before, (batch, copies, moments).
    room
        What was left of the capacity before each decision, (batch, copies, steps), as
        `room_of_tours` gives it; None for plans that were built under the capacity.

    Returns
    -------
    state
        (batch, copies * moments, ...).
    choice
        (batch, copies * moments).
    """
    size, copies, steps = arcs.shape
    time = torch.arange(steps, device=arcs.device).expand_as(arcs)
    # When each arc is served; the slot of the depot takes all returns and means nothing.
    when = torch.zeros(
        (size, copies, batch.num_arcs), dtype=torch.int64, device=arcs.device
    )
    when = when.scatter(2, arcs, time).scatter(2, back_twin(batch, arcs), time)
    unserved = (when[:, :, None] >= moments[..., None]) & batch.real[:, None, None]
    unserved[..., 0] = False
    before = functional.pad(arcs, (1, 0))[..., :-1]
    if room is None:
        room = _room(batch, arcs)
    state = State(
        unserved=unserved.flatten(1, 2),
        previous=before.gather(2, moments).flatten(1),
        remaining=room.gather(2, moments).flatten(1),
    )
    return state, arcs.gather(2, moments).flatten(1)


def _room(batch: ArcBatch, arcs: Tensor) -> Tensor:
    """Give the capacity that is left before each decision, (batch, copies, steps)."""
    load = of_arcs(batch.demand, arcs).cumsum(2)
    # Loads never fall, so the load at the last visit to the depot is the largest yet.
    unloaded = torch.where(arcs == 0, load, 0).cummax(2).values
    carried = functional.pad(load - unloaded, (1, 0))[..., :-1]
    return (batch.capacity[:, None, None] - carried).to(batch.capacity.dtype)
