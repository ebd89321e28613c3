"""The environment: a plan is built arc by arc. Reset, action mask, step; pure functions.

Tensors have the shape (batch, samples, ...): several plans of one instance (samples, beams,
decision steps of a labelled plan) lie side by side. Arc 0 is the depot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from arcfleet.neural.batch import ArcBatch


class StepNumbers(NamedTuple):
    """Estimate of the numbers of 4 bytes that one decoding step of one plan holds."""

    per_pair: int = 6  # for each pair of arcs
    per_arc: int = 2048  # for each arc: the hidden layers


class State(NamedTuple):
    """State of partial plans.

    In giant tours the vehicle counts as emptied before every arc that does not fit.
    """

    unserved: Tensor  # arcs still to be served, (batch, samples, arcs); never the depot
    previous: Tensor  # arc chosen last, (batch, samples); the depot after a reset
    remaining: Tensor  # remaining capacity, (batch, samples)


def reset(batch: ArcBatch, samples: int = 1) -> State:
    """Return the state of empty plans."""
    unserved = batch.real.clone()
    unserved[:, 0] = False
    shape = (len(batch), samples)
    return State(
        unserved=unserved[:, None].expand(-1, samples, -1).contiguous(),
        previous=torch.zeros(shape, dtype=torch.int64, device=unserved.device),
        remaining=batch.capacity[:, None].expand(-1, samples).contiguous(),
    )


def action_mask(batch: ArcBatch, state: State, *, capacity_mask: bool = True) -> Tensor:
    """Return the arcs that may be chosen next, (batch, samples, arcs); at least one.

    The capacity mask hides arcs that exceed the remaining capacity. Without it the plan is
    a giant tour: the depot comes last, and Split places the returns.
    """
    unserved = state.unserved
    if capacity_mask:
        allowed = unserved & (batch.demand[:, None] <= state.remaining[..., None])
        depot = (state.previous != 0) | ~unserved.any(-1)
    else:
        allowed = unserved.clone()
        depot = ~unserved.any(-1)
    allowed[..., 0] = depot
    return allowed


def step(
    batch: ArcBatch, state: State, arcs: Tensor, *, capacity_mask: bool = True
) -> State:
    """Return the state after choosing `arcs`, (batch, samples).

    A finished plan keeps choosing arc 0.
    """
    both = torch.stack([arcs, batch.inverse.gather(1, arcs)], dim=-1)
    unserved = state.unserved.scatter(-1, both, False)
    demand = batch.demand.gather(1, arcs)
    emptied = arcs == 0
    if not capacity_mask:
        emptied = emptied | (demand > state.remaining)
    remaining = torch.where(emptied, batch.capacity[:, None], state.remaining) - demand
    return State(unserved=unserved, previous=arcs, remaining=remaining)


def remaining_capacity(batch: ArcBatch, arcs: Tensor) -> Tensor:
    """Compute the remaining capacity before each arc of giant tours, (batch, .., steps)."""
    demand = batch.demand.gather(1, arcs.flatten(1)).view(arcs.shape)
    capacity = batch.capacity.view(-1, *[1] * (arcs.dim() - 1))
    left = capacity.expand((*arcs.shape[:-1], 1))
    before = []
    # Step by step: where the vehicle is emptied depends on where it was emptied before.
    for place in range(arcs.shape[-1]):
        here = slice(place, place + 1)
        before.append(left)
        emptied = (arcs[..., here] == 0) | (demand[..., here] > left)
        left = torch.where(emptied, capacity, left) - demand[..., here]
    return torch.cat(before, -1)


def finished(state: State) -> Tensor:
    """Return which plans are complete and back at the depot, (batch, samples)."""
    return (state.previous == 0) & ~state.unserved.any(-1)


def visible_arcs(state: State) -> Tensor:
    """Return the unserved arcs, the previous one and the depot, (batch, samples, arcs)."""
    arc = torch.arange(state.unserved.shape[-1], device=state.unserved.device)
    return state.unserved | (arc == state.previous[..., None]) | (arc == 0)
