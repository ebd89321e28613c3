"""The nearest arc at each step: what a learned policy must beat."""

import torch
from torch import Tensor

from arcfleet.neural.batch import ArcBatch
from arcfleet.neural.env import State


class Nearest:
    """Choose the arc with the shortest way to it; go home as the last resort."""

    def prepare(self, batch: ArcBatch) -> Tensor:
        ways = batch.incoming()
        ways[:, 0] = 1e6
        return ways

    def __call__(self, prepared: Tensor, state: State, allowed: Tensor) -> Tensor:
        columns = state.previous[:, None].expand(-1, prepared.shape[1], -1)
        ways = prepared.gather(2, columns).mT  # (batch, samples, arcs)
        return (-ways).masked_fill(~allowed, -torch.inf)
