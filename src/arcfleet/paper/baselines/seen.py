"""What the baselines see of a plan: the same numbers as DaAM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from arcfleet.neural.batch import NUM_PLAIN

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.env import State


#: Of the way from the previous arc, and whether an arc is still to be served.
NUM_CHANGING = 2

#: Of the capacity that is left: its share, and whether it is more than half.
NUM_ROOM = 2


def num_static(mds_dimensions: int) -> int:
    """Give the number of features that stay the same while a plan is built."""
    return NUM_PLAIN + 2 * mds_dimensions


def changing_features(incoming: Tensor, state: State) -> Tensor:
    """Give what changes from step to step of each arc, (batch, copies, arcs, 2).

    Parameters
    ----------
    incoming
        As `ArcBatch.incoming`, (batch, 1, arcs, arcs).
    state
        Where the plans stand.
    """
    arcs, copies = incoming.shape[-1], state.previous.shape[1]
    column = state.previous[:, :, None, None].expand(-1, -1, arcs, 1)
    way = incoming.expand(-1, copies, -1, -1).gather(3, column)
    return torch.cat([way, state.unserved[..., None].to(way)], dim=-1)


def room_features(capacity: Tensor, state: State, like: Tensor) -> Tensor:
    """Give what is left of the capacity, (batch, copies, 2), in the type of `like`.

    Parameters
    ----------
    capacity
        (batch, 1).
    state
        Where the plans stand.
    like
        Any tensor of the wanted type.
    """
    share = state.remaining.to(like) / capacity
    half = state.remaining > capacity - state.remaining
    return torch.stack([share, half.to(share)], dim=-1)
