"""The decision process of building a plan: start, what is allowed, step. Pure functions.

Every tensor has the shape (batch, samples, ...): several plans of one instance (beams,
samples, moments of a labelled plan) stand side by side as its samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch


class StepNumbers(NamedTuple):
    """About how many numbers of 4 bytes a step holds at once of one plan.

    Parameters
    ----------
    per_pair
        For each pair of arcs.
    per_arc
        For each arc: the hidden layers.
    """

    per_pair: int = 6
    per_arc: int = 2048


class State(NamedTuple):
    """Where plans stand.

    Parameters
    ----------
    unserved
        Which arcs are still to be served, (batch, samples, arcs); never the depot.
    previous
        The arc chosen last, (batch, samples); the depot at the start.
    remaining
        Capacity that is left, (batch, samples); in unbound plans as if the vehicle were
        emptied on its way to every arc that does not fit.
    """

    unserved: Tensor
    previous: Tensor
    remaining: Tensor


def reset(batch: ArcBatch, samples: int = 1) -> State:
    """Give the empty plan of every instance."""
    unserved = batch.real.clone()
    unserved[:, 0] = False
    return State(
        unserved=unserved[:, None].expand(-1, samples, -1).contiguous(),
        previous=torch.zeros(
            (len(batch), samples), dtype=torch.int64, device=unserved.device
        ),
        remaining=batch.capacity[:, None].expand(-1, samples).contiguous(),
    )


def action_mask(batch: ArcBatch, state: State, *, capacity_mask: bool = True) -> Tensor:
    """Say which arcs may be chosen next, (batch, samples, arcs); never none.

    Parameters
    ----------
    capacity_mask
        Whether the capacity counts. Without it the depot is visited only at the end:
        where to return is left to the path optimiser.
    """
    arcs_left = state.unserved
    if capacity_mask:
        fits = batch.demand[:, None] <= state.remaining[..., None]
        allowed = arcs_left & fits
        home = (state.previous != 0) | ~arcs_left.any(-1)
    else:
        allowed = arcs_left.clone()
        home = ~arcs_left.any(-1)
    allowed[..., 0] = home
    return allowed


def step(
    batch: ArcBatch, state: State, arcs: Tensor, *, capacity_mask: bool = True
) -> State:
    """Choose `arcs`, of shape (batch, samples); a finished plan goes on choosing arc 0."""
    inverses = batch.inverse.gather(1, arcs)
    served = torch.stack([arcs, inverses], dim=-1)
    unserved = state.unserved.scatter(-1, served, False)
    demand = batch.demand.gather(1, arcs)
    emptied = arcs == 0
    if not capacity_mask:
        emptied = emptied | (demand > state.remaining)
    remaining = torch.where(emptied, batch.capacity[:, None], state.remaining) - demand
    return State(unserved=unserved, previous=arcs, remaining=remaining)


def remaining_capacity(batch: ArcBatch, arcs: Tensor) -> Tensor:
    """Give what is left of the capacity before each arc of unbound plans, as `step` does.

    Parameters
    ----------
    batch
        The instances.
    arcs
        As they were chosen, (batch, ..., steps).
    """
    demand = batch.demand.gather(1, arcs.flatten(1)).view(arcs.shape)
    capacity = batch.capacity.view(-1, *[1] * (arcs.dim() - 1))
    left = capacity.expand((*arcs.shape[:-1], 1))
    before = []
    # One arc after the other: where the vehicle is emptied depends on where it was before.
    for place in range(arcs.shape[-1]):
        here = slice(place, place + 1)
        before.append(left)
        emptied = (arcs[..., here] == 0) | (demand[..., here] > left)
        left = torch.where(emptied, capacity, left) - demand[..., here]
    return torch.cat(before, -1)


def finished(state: State) -> Tensor:
    """Say which plans are complete and back at the depot, (batch, samples)."""
    return (state.previous == 0) & ~state.unserved.any(-1)
