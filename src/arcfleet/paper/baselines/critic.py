"""The critic of VRP-DL: what a plan of an instance will cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from arcfleet.paper.baselines.seen import num_static

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch


# So that sizes of instances come as numbers near 1.
_USUAL_TASKS = 50.0

_USUAL_ROUTES = 5.0


class Critic(nn.Module):
    """Estimates the deadhead per task from a weighted sum of embedded arcs.

    The weights are the actor's first probabilities (Nazari et al. 2018). That sum does not
    show how large an instance is, so the number of tasks and of full loads come beside it.

    Parameters
    ----------
    mds_dimensions, width
        Its sizes.
    """

    def __init__(self, mds_dimensions: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Linear(num_static(mds_dimensions), width)
        self.hidden = nn.Linear(width + 2, width)
        self.value = nn.Linear(width, 1)
        # About what random plans cost: from 0 on every first plan would be a bad surprise.
        nn.init.ones_(self.value.bias)

    def forward(self, batch: ArcBatch, chances: Tensor) -> Tensor:
        """Give the estimates in the unit of the model, (batch, 1).

        Parameters
        ----------
        batch
            The instances.
        chances
            Of each arc to be the first, (batch, arcs).
        """
        seen = (chances[:, None] @ batch.features.to(chances))[:, 0]
        # The embedding is linear and the weights sum to 1.
        embedded = self.embed(seen)
        tasks = batch.num_tasks.to(chances)
        arc = torch.arange(batch.num_arcs, device=tasks.device)
        once = batch.inverse >= arc  # a task with two arcs counts once
        loads = (batch.features[..., 2].to(chances) * once).sum(1)
        sizes = torch.stack([tasks / _USUAL_TASKS, loads / _USUAL_ROUTES], dim=-1)
        hidden = self.hidden(torch.cat([embedded, sizes], dim=-1)).relu()
        estimate: Tensor = self.value(hidden) * tasks[:, None]
        return estimate
