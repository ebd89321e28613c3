"""Features of the baselines: the same numbers as the paper's model has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from arcfleet.paper.model import NUM_TABLE_1, table_1_features

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Linear

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.env import State


#: Features of an arc that change: distance from the previous arc, still to be served.
NUM_CHANGING = 2

#: Features of the remaining capacity: its fraction, and whether it is more than half.
NUM_CAPACITY = 2


def num_static(mds_dimensions: int) -> int:
    """Return the number of features that stay the same while a plan is built."""
    return NUM_TABLE_1 + 2 * mds_dimensions


def changing_features(incoming: Tensor, state: State) -> Tensor:
    """Compute the changing features of each arc, (batch, samples, arcs, 2)."""
    arcs, samples = incoming.shape[-1], state.previous.shape[1]
    column = state.previous[:, :, None, None].expand(-1, -1, arcs, 1)
    way = incoming.expand(-1, samples, -1, -1).gather(3, column)
    return torch.cat([way, state.unserved[..., None].to(way)], dim=-1)


def capacity_features(capacity: Tensor, state: State, like: Tensor) -> Tensor:
    """Compute the features of the remaining capacity, (batch, samples, 2)."""
    share = state.remaining.to(like) / capacity
    half = state.remaining > capacity - state.remaining
    return torch.stack([share, half.to(share)], dim=-1)


def prepare_static(embed: Linear, batch: ArcBatch, padded: bool | None) -> dict[str, Any]:
    """Return what stays the same at every step; `padded` as `Model.prepare` has it."""
    if padded is None:
        padded = not batch.is_full
    dtype = embed.weight.dtype
    return {
        # Static features after the first linear layer, (batch, 1, arcs, width).
        "static": embed(table_1_features(batch).to(dtype))[:, None],
        "incoming": batch.incoming().to(dtype)[:, None],  # (batch, 1, arcs, arcs)
        "real": batch.real[:, None] if padded else None,  # (batch, 1, arcs)
        "capacity": batch.capacity[:, None],  # (batch, 1)
    }
