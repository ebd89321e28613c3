"""S2V-DQN (Khalil et al. 2017) with graph attention in place of structure2vec.

The value of choosing an arc is what is still to be gained from there: minus the driving to
come. All of it runs again at every step, since the embeddings depend on the present state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from torch import nn
from torch.nn import functional

from arcfleet.neural.env import StepNumbers
from arcfleet.neural.model import Model, require_divisors, require_sizes
from arcfleet.paper.baselines.gat import GraphAttention
from arcfleet.paper.baselines.seen import (
    NUM_CHANGING,
    NUM_ROOM,
    changing_features,
    num_static,
    room_features,
)

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.env import State


# The embeddings of all arcs are summed, as structure2vec does, so that their number shows;
# divided by about as many as there are, so that the sum has the size of the others.
_USUAL_ARCS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class S2vDqnConfig:
    """Every size of the model.

    Parameters
    ----------
    width
        Of the embeddings.
    layers
        Rounds of graph attention.
    heads
        Of each round.
    mds_dimensions
        Coordinates of a node.
    """

    width: int = 64
    layers: int = 3
    heads: int = 1
    mds_dimensions: int = 8

    def __post_init__(self) -> None:
        """Check every number."""
        require_sizes(self, width=1, layers=1, heads=1, mds_dimensions=0)
        require_divisors(self.width, heads=self.heads)


class PreparedGraph(NamedTuple):
    """What the model needs of a batch, worked out once for all steps.

    Parameters
    ----------
    static
        Static features after the first linear layer, (batch, 1, arcs, width).
    incoming
        As `ArcBatch.incoming`, (batch, 1, arcs, arcs).
    real
        (batch, 1, arcs), or None where nothing is padded.
    capacity
        (batch, 1).
    """

    static: Tensor
    incoming: Tensor
    real: Tensor | None
    capacity: Tensor


class S2vDqn(Model):
    """Values of all arcs; as a policy, they are its logits.

    Parameters
    ----------
    config
        Its sizes.
    """

    config_class = S2vDqnConfig

    def __init__(self, config: S2vDqnConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.static = nn.Linear(num_static(config.mds_dimensions), width)
        self.changing = nn.Linear(NUM_CHANGING, width, bias=False)
        self.rounds = nn.ModuleList(
            GraphAttention(width, config.heads) for _ in range(config.layers)
        )
        self.of_graph = nn.Linear(width, width)
        self.of_arc = nn.Linear(width, width, bias=False)
        self.of_room = nn.Linear(NUM_ROOM, width, bias=False)
        self.value = nn.Linear(width, 1)

    @property
    def step_numbers(self) -> StepNumbers:
        """Say what a step holds at once, as `rollout.default_chunk` wants to know."""
        return StepNumbers(3 * self.config.heads + 1, 8 * self.config.width)

    def prepare(self, batch: ArcBatch, *, padded: bool | None = None) -> PreparedGraph:
        """Work out what stays the same at every step.

        Parameters
        ----------
        batch
            The instances.
        padded
            Whether there may be padding; None looks, and waits for the device to do so.
        """
        if padded is None:
            padded = not batch.is_full
        kind = self.static.weight.dtype
        return PreparedGraph(
            static=self.static(batch.features.to(kind))[:, None],
            incoming=batch.incoming().to(kind)[:, None],
            real=batch.real[:, None] if padded else None,
            capacity=batch.capacity[:, None],
        )

    def forward(self, prepared: PreparedGraph, state: State, allowed: Tensor) -> Tensor:
        """Give the value of each arc, (batch, copies, arcs), -inf where not allowed.

        Parameters
        ----------
        prepared
            The instances.
        state
            Where the plans stand, (batch, copies, ...).
        allowed
            Arcs that may be chosen, (batch, copies, arcs).
        """
        own = prepared.static + self.changing(changing_features(prepared.incoming, state))
        hidden = functional.relu(own)  # (batch, copies, arcs, width)
        for gather in self.rounds:
            # structure2vec adds an arc's own features in every round, and so do we: what
            # is gathered from all arcs hardly differs from arc to arc.
            hidden = functional.relu(own + gather(hidden, prepared.incoming, prepared.real))
        counted = hidden
        if prepared.real is not None:
            counted = hidden * prepared.real[..., None].to(hidden)
        graph = self.of_graph(counted.sum(2) / _USUAL_ARCS)
        graph = graph + self.of_room(room_features(prepared.capacity, state, graph))
        joined = functional.relu(self.of_arc(hidden) + graph[:, :, None])
        value: Tensor = self.value(joined)[..., 0]
        return value.masked_fill(~allowed, -math.inf)
