"""What choices of plans were worth: the driving of the next steps, and then an estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.nn import functional

from arcfleet.neural.env import action_mask
from arcfleet.neural.train.steps import num_choices

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.env import State
    from arcfleet.paper.baselines.s2v_dqn import S2vDqn


class Gains(NamedTuple):
    """What followed some choices.

    Parameters
    ----------
    gained
        Minus the driving costs of the steps in between, in the instance's unit,
        (batch, copies * moments).
    later
        Choices made before the moment at which the estimate takes over,
        (batch, copies, moments).
    over
        Whether there is none left to make: then the way home is among the costs,
        (batch, copies * moments).
    """

    gained: Tensor
    later: Tensor
    over: Tensor


def n_step_gains(batch: ArcBatch, arcs: Tensor, moments: Tensor, n_steps: int) -> Gains:
    """Sum what plans gained over the next choices.

    Parameters
    ----------
    batch
        The instances.
    arcs
        Plans from the empty one on, (batch, copies, steps).
    moments
        Choices made before those that are looked at, (batch, copies, moments).
    n_steps
        Choices to sum over.
    """
    choices = num_choices(arcs)[..., None]  # (batch, copies, 1)
    later = moments + n_steps
    over = later >= choices
    driven = functional.pad(ways(batch, arcs).cumsum(-1), (1, 0))  # before each choice
    last = driven.shape[-1] - 1
    reached = torch.where(over, last, later)  # after the last step: the way home is made
    gained = driven.gather(-1, moments) - driven.gather(-1, reached)
    # Where it is over the moment means nothing; any that there is will do.
    later = torch.minimum(later, choices - 1)
    return Gains(gained.flatten(1), later, over.flatten(1))


def ways(batch: ArcBatch, arcs: Tensor) -> Tensor:
    """Give the driving cost of each step in the instance's unit, (batch, copies, steps)."""
    rows = torch.arange(len(batch), device=arcs.device)[:, None, None]
    before = functional.pad(arcs, (1, 0))[..., :-1]
    ends, starts = batch.end[rows, before], batch.start[rows, arcs]
    costs = batch.distance[rows, ends.long(), starts.long()]
    return costs / batch.scale[:, None, None]


def best_values(model: S2vDqn, batch: ArcBatch, state: State, padded: bool) -> Tensor:
    """Give the largest value of the allowed arcs, (batch, copies)."""
    prepared = model.prepare(batch, padded=padded)
    values: Tensor = model(prepared, state, action_mask(batch, state))
    return values.amax(-1)
