"""S2V-DQN (Khalil et al. 2017) with graph attention in place of structure2vec.

The value of choosing an arc is what is still to be gained from there: minus the driving to
come. All of it runs again at every step, since the embeddings depend on the present state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from arcfleet.neural.env import StepNumbers
from arcfleet.neural.model import Model, require_divisors, require_sizes
from arcfleet.paper.baselines.shared import (
    NUM_CAPACITY,
    NUM_CHANGING,
    capacity_features,
    changing_features,
    num_static,
    prepare_static,
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
    """Sizes of the model.

    Parameters
    ----------
    width
        Width of the embeddings.
    layers
        Number of rounds of graph attention.
    heads
        Number of heads of each round.
    mds_dimensions
        Number of MDS coordinates of a node.
    """

    width: int = 64
    layers: int = 3
    heads: int = 1
    mds_dimensions: int = 8

    def __post_init__(self) -> None:
        """Check every number."""
        require_sizes(self, width=1, layers=1, heads=1, mds_dimensions=0)
        require_divisors(self.width, heads=self.heads)


class GraphAttention(nn.Module):
    """A graph attention layer (Velickovic et al. 2018) over the arc graph.

    The scores are those of DaAM's layer.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.mix = nn.Linear(width, width, bias=False)
        self.attend_to = nn.Parameter(torch.empty(heads, width // heads))
        self.attend_from = nn.Parameter(torch.empty(heads, width // heads))
        self.attend_edge = nn.Parameter(torch.zeros(heads))
        nn.init.xavier_uniform_(self.attend_to)
        nn.init.xavier_uniform_(self.attend_from)

    def forward(self, hidden: Tensor, incoming: Tensor, real: Tensor | None) -> Tensor:
        """Compute new embeddings, (batch, samples, arcs, width)."""
        parts = self.mix(hidden).unflatten(-1, (self.heads, -1)).transpose(2, 3)
        # parts: (batch, samples, heads, arcs, width / heads)
        attend = torch.stack([self.attend_to, self.attend_from])
        mixed_by = self.mix.weight.view(self.heads, -1, hidden.shape[-1])
        # attend . (mix h) = (attend mix) . h: one thin product for both ends of all heads.
        both = torch.einsum("shw,hwi->shi", attend, mixed_by).flatten(0, 1)
        scores = functional.linear(hidden, both).mT  # (batch, samples, 2 heads, arcs)
        to = scores[:, :, : self.heads, :, None]
        source = scores[:, :, self.heads :, None]
        if real is not None:
            source = source.masked_fill(~real[:, :, None, None], -math.inf)
        edge = self.attend_edge[:, None, None]
        score = torch.addcmul(to + source, incoming[:, :, None], edge)
        score = functional.leaky_relu(score, 0.2)
        mixed: Tensor = score.softmax(-1) @ parts
        return mixed.transpose(2, 3).flatten(-2)


class PreparedGraph(NamedTuple):
    """Tensors of a batch that stay the same at every step."""

    static: Tensor  # static features after the first linear layer, (batch, 1, arcs, width)
    incoming: Tensor  # as `ArcBatch.incoming`, (batch, 1, arcs, arcs)
    real: Tensor | None  # (batch, 1, arcs), or None where nothing is padded
    capacity: Tensor  # (batch, 1)


class S2vDqn(Model):
    """Values of all arcs; as a policy, they are its logits."""

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
        self.of_room = nn.Linear(NUM_CAPACITY, width, bias=False)
        self.value = nn.Linear(width, 1)

    @property
    def step_numbers(self) -> StepNumbers:
        """Estimate of the numbers that a decoding step holds."""
        return StepNumbers(3 * self.config.heads + 1, 8 * self.config.width)

    def prepare(self, batch: ArcBatch, *, padded: bool | None = None) -> PreparedGraph:
        """Compute what stays the same at every step."""
        return PreparedGraph(**prepare_static(self.static, batch, padded))

    def forward(self, prepared: PreparedGraph, state: State, allowed: Tensor) -> Tensor:
        """Compute the value of each arc, (batch, samples, arcs), -inf where masked."""
        own = prepared.static + self.changing(changing_features(prepared.incoming, state))
        hidden = functional.relu(own)  # (batch, samples, arcs, width)
        for gather in self.rounds:
            # structure2vec adds an arc's own features in every round, and so do we: what
            # is gathered from all arcs hardly differs from arc to arc.
            hidden = functional.relu(own + gather(hidden, prepared.incoming, prepared.real))
        counted = hidden
        if prepared.real is not None:
            counted = hidden * prepared.real[..., None].to(hidden)
        graph = self.of_graph(counted.sum(2) / _USUAL_ARCS)
        graph = graph + self.of_room(capacity_features(prepared.capacity, state, graph))
        joined = functional.relu(self.of_arc(hidden) + graph[:, :, None])
        value: Tensor = self.value(joined)[..., 0]
        return value.masked_fill(~allowed, -math.inf)
