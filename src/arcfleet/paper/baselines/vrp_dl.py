"""VRP-DL (Nazari et al. 2018): an element-wise embedding and a recurrent decoder.

The decoder is an LSTM over the arcs chosen so far. At each step it glimpses at all arcs by
attention and points at one of them by a second attention.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from arcfleet.neural.env import StepNumbers
from arcfleet.neural.model import Model, require_sizes
from arcfleet.paper.baselines.shared import (
    NUM_CAPACITY,
    NUM_CHANGING,
    capacity_features,
    changing_features,
    num_static,
    prepare_static,
)
from arcfleet.paper.model import table_1_features

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.env import State


# So that sizes of instances come as numbers near 1.
_USUAL_TASKS = 50.0

_USUAL_ROUTES = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VrpDlConfig:
    """Sizes of the model.

    Parameters
    ----------
    width
        Width of embeddings, decoder and attentions.
    mds_dimensions
        Number of MDS coordinates of a node.
    """

    width: int = 128
    mds_dimensions: int = 8

    def __post_init__(self) -> None:
        """Check every number."""
        require_sizes(self, width=1, mds_dimensions=0)


class PreparedElements(NamedTuple):
    """Tensors of a batch that stay the same at every step, and the decoder's memory."""

    static: Tensor  # embeddings of the static features, (batch, 1, arcs, width)
    # Their parts of the two attentions, (batch, 1, arcs, width).
    glimpsed: Tensor
    pointed: Tensor
    incoming: Tensor  # as `ArcBatch.incoming`, (batch, 1, arcs, arcs)
    real: Tensor | None  # (batch, 1, arcs), or None where nothing is padded
    capacity: Tensor  # (batch, 1)
    memory: Tensor  # output and cell of the decoder, (batch, samples, 2 width)


class Critic(nn.Module):
    """The critic of VRP-DL: the deadhead per task from a weighted sum of embedded arcs.

    The weights are the actor's first probabilities (Nazari et al. 2018). That sum does not
    show how large an instance is, so the number of tasks and of full loads come beside it.
    """

    def __init__(self, mds_dimensions: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Linear(num_static(mds_dimensions), width)
        self.hidden = nn.Linear(width + 2, width)
        self.value = nn.Linear(width, 1)
        # About what random plans cost: from 0 on every first plan would be a bad surprise.
        nn.init.ones_(self.value.bias)

    def forward(self, batch: ArcBatch, chances: Tensor) -> Tensor:
        """Estimate the deadheads in the instances' scale, (batch, 1)."""
        seen = (chances[:, None] @ table_1_features(batch).to(chances))[:, 0]
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


class VrpDl(Model):
    """The policy: logits over the arcs for every plan; with the critic that trains it."""

    config_class = VrpDlConfig

    def __init__(self, config: VrpDlConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        # Convolutions of length 1 in Nazari et al.: the same map for every element.
        self.static = nn.Linear(num_static(config.mds_dimensions), width)
        self.changing = nn.Linear(NUM_CHANGING + NUM_CAPACITY, width)
        self.decoder = nn.LSTMCell(width, width)
        # W of each attention, by the parts of what it is applied to.
        self.glimpse_static = nn.Linear(width, width, bias=False)
        self.glimpse_changing = nn.Linear(width, width, bias=False)
        self.glimpse_decoder = nn.Linear(width, width, bias=False)
        self.glimpse_score = nn.Linear(width, 1, bias=False)
        self.point_static = nn.Linear(width, width, bias=False)
        self.point_changing = nn.Linear(width, width, bias=False)
        self.point_glimpse = nn.Linear(2 * width, width, bias=False)
        self.point_score = nn.Linear(width, 1, bias=False)
        self.critic = Critic(config.mds_dimensions, width)

    @property
    def step_numbers(self) -> StepNumbers:
        """Estimate of the numbers that a decoding step holds."""
        return StepNumbers(1, 6 * self.config.width)

    def prepare(self, batch: ArcBatch, *, padded: bool | None = None) -> PreparedElements:
        """Compute what stays the same at every step, with an empty memory."""
        known = prepare_static(self.static, batch, padded)
        static = known["static"]  # (batch, 1, arcs, width)
        return PreparedElements(
            glimpsed=self.glimpse_static(static),
            pointed=self.point_static(static),
            memory=static.new_zeros(len(batch), 1, 2 * self.config.width),
            **known,
        )

    def remember(self, prepared: PreparedElements, state: State) -> PreparedElements:
        """Update the decoder's memory by the arc that was chosen last."""
        last = _elements_at(prepared.static, state.previous)  # (batch, samples, width)
        output, cell = prepared.memory.flatten(0, 1).chunk(2, dim=-1)
        output, cell = self.decoder(last.flatten(0, 1), (output, cell))
        memory = torch.cat([output, cell], dim=-1)
        return prepared._replace(memory=memory.view_as(prepared.memory))

    def remember_all(self, prepared: PreparedElements, arcs: Tensor) -> Tensor:
        """Compute the output of the decoder before each choice, (batch, steps, width)."""
        before = functional.pad(arcs, (1, 0))[:, :-1]  # the depot, then all but the last
        elements = _elements_at(prepared.static, before)  # (batch, steps, width)
        kept = prepared.memory[:, 0].chunk(2, dim=-1)
        outputs = []
        for element in elements.unbind(1):
            kept = self.decoder(element, kept)
            outputs.append(kept[0])
        return torch.stack(outputs, dim=1)

    def forward(self, prepared: PreparedElements, state: State, allowed: Tensor) -> Tensor:
        """Compute the logits of each arc, (batch, samples, arcs), -inf where masked."""
        output = prepared.memory[..., : self.config.width]
        seen = self._seen(prepared, state)  # (batch, samples, arcs, 4)
        glimpse = self._glimpse(prepared, seen, output)
        inner = prepared.pointed + _through(seen, self.changing, self.point_changing)
        inner = inner + self.point_glimpse(glimpse)[:, :, None]
        logits: Tensor = self.point_score(inner.tanh())[..., 0]
        return logits.masked_fill(~allowed, -math.inf)

    def _seen(self, prepared: PreparedElements, state: State) -> Tensor:
        changing = changing_features(prepared.incoming, state)
        # Every element has the load, as in Nazari et al.
        left = capacity_features(prepared.capacity, state, changing)[:, :, None]
        return torch.cat([changing, left.expand(-1, -1, changing.shape[2], -1)], dim=-1)

    def _glimpse(self, prepared: PreparedElements, seen: Tensor, output: Tensor) -> Tensor:
        """Compute the mean of the elements by attention, (batch, samples, 2 width)."""
        inner = prepared.glimpsed + _through(seen, self.changing, self.glimpse_changing)
        inner = inner + self.glimpse_decoder(output)[:, :, None]
        score = self.glimpse_score(inner.tanh())[..., 0]  # (batch, samples, arcs)
        if prepared.real is not None:
            score = score.masked_fill(~prepared.real, -math.inf)
        weight = score.softmax(-1)
        static = weight @ prepared.static[:, 0]
        changing = self.changing((weight[:, :, None] @ seen)[:, :, 0])
        return torch.cat([static, changing], dim=-1)


def _elements_at(static: Tensor, arcs: Tensor) -> Tensor:
    """Gather the embeddings of arcs (batch, count): (batch, count, width)."""
    wide = arcs[..., None].expand(-1, -1, static.shape[-1])
    return static[:, 0].gather(1, wide)


def _through(seen: Tensor, embed: nn.Linear, mix: nn.Linear) -> Tensor:
    # mix(embed(seen)), without the embeddings: they are linear in four numbers.
    weight = mix.weight @ embed.weight  # (width, 4)
    return functional.linear(seen, weight, mix.weight @ embed.bias)
