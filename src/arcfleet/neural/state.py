"""The decision process of building a plan: start, what is allowed, step. Pure functions.

Every tensor has the shape (batch, copies, ...): several plans of one instance (beams,
samples, moments of a labelled plan) stand side by side as its copies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch


class State(NamedTuple):
    """Where plans stand.

    Parameters
    ----------
    unserved
        Which arcs are still to be served, (batch, copies, arcs); never the depot.
    previous
        The arc chosen last, (batch, copies); the depot at the start.
    remaining
        Capacity that is left, (batch, copies).
    """

    unserved: Tensor
    previous: Tensor
    remaining: Tensor


def start(batch: ArcBatch, copies: int = 1) -> State:
    """Give the empty plan of every instance."""
    unserved = batch.real.clone()
    unserved[:, 0] = False
    return State(
        unserved=unserved[:, None].expand(-1, copies, -1).contiguous(),
        previous=torch.zeros(
            (len(batch), copies), dtype=torch.int64, device=unserved.device
        ),
        remaining=batch.capacity[:, None].expand(-1, copies).contiguous(),
    )


def allowed_arcs(batch: ArcBatch, state: State, *, bound: bool = True) -> Tensor:
    """Say which arcs may be chosen next, (batch, copies, arcs); never none.

    Parameters
    ----------
    bound
        Whether the capacity counts. Without it the depot is visited only at the end:
        where to return is left to the path optimiser.
    """
    arcs_left = state.unserved
    if bound:
        fits = batch.demand[:, None] <= state.remaining[..., None]
        allowed = arcs_left & fits
        home = (state.previous != 0) | ~arcs_left.any(-1)
    else:
        allowed = arcs_left.clone()
        home = ~arcs_left.any(-1)
    allowed[..., 0] = home
    return allowed


def step(batch: ArcBatch, state: State, arcs: Tensor, *, bound: bool = True) -> State:
    """Choose `arcs`, of shape (batch, copies); a finished plan goes on choosing arc 0."""
    twins = batch.twin.gather(1, arcs)
    served = torch.stack([arcs, twins], dim=-1)
    unserved = state.unserved.scatter(-1, served, False)
    remaining = state.remaining
    if bound:
        remaining = torch.where(
            arcs == 0,
            batch.capacity[:, None],
            state.remaining - batch.demand.gather(1, arcs),
        )
    return State(unserved=unserved, previous=arcs, remaining=remaining)


def finished(state: State) -> Tensor:
    """Say which plans are complete and back at the depot, (batch, copies)."""
    return (state.previous == 0) & ~state.unserved.any(-1)
