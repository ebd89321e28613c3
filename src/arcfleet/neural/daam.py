"""DaAM, the direction-aware attention model: from where plans stand to logits over arcs.

A graph attention layer over the arc graph, an attention encoder and a pointer. All of it
runs again at every step, which is the paper's model. Decoding is not its business.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from arcfleet.errors import OptionError
from arcfleet.neural.encoder import EncoderLayer
from arcfleet.neural.norms import NORMS, NormName, at_least_single
from arcfleet.neural.rollout import StepNumbers
from arcfleet.neural.state import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch

# Table 1 of the paper: is_depot, cost and demand stand before the MDS coordinates; two
# features change from step to step: the way from the previous arc, and allow_serve.
NUM_PLAIN = 3
NUM_CHANGING = 2

Inputs = Literal["mds+gat", "gat", "mds", "mds+gat+skip"]
INPUTS: tuple[Inputs, ...] = ("mds+gat", "gat", "mds", "mds+gat+skip")

# The CPU takes so many arcs at once: what lies between two layers then stays in its cache.
PORTION = 1600


@dataclass(frozen=True, slots=True, kw_only=True)
class DaamConfig:
    """Every size of the model.

    Parameters
    ----------
    width
        Of the embeddings.
    layers, heads, feed_forward
        Of the attention encoder.
    gat_heads
        Scalar attentions of the graph attention layer; the paper has one.
    mds_dimensions
        Coordinates of a node.
    norm
        One of `NORMS`, after each half of an encoder layer.
    clip
        Logits lie between plus and minus this.
    inputs
        "mds+gat" is the paper's model, "gat" leaves the MDS columns out, "mds" has a
        plain linear layer instead of the graph attention. "mds+gat+skip", ours, adds an
        arc's own features to what it gathered: a mean over all arcs blurs them.
    """

    width: int = 128
    layers: int = 3
    heads: int = 8
    feed_forward: int = 512
    gat_heads: int = 1
    mds_dimensions: int = 8
    norm: NormName = "rms"
    clip: float = 10.0
    inputs: Inputs = "mds+gat"

    def __post_init__(self) -> None:
        """Check every number, and make `clip` a float."""
        positive = ("width", "layers", "heads", "feed_forward", "gat_heads")
        for name in (*positive, "mds_dimensions"):
            value = getattr(self, name)
            if type(value) is not int:  # a bool is an int, but no size
                raise OptionError(
                    f"expected {name} to be a whole number, got {value!r:.40}"
                )
            least = 1 if name in positive else 0
            if value < least:
                raise OptionError(f"expected {name} to be at least {least}, got {value}")
        for name in ("heads", "gat_heads"):
            if self.width % getattr(self, name):
                raise OptionError(
                    f"expected a width that {name} divides, got width {self.width} and "
                    f"{getattr(self, name)} {name}"
                )
        if type(self.clip) not in (int, float):
            raise OptionError(f"expected clip to be a number, got {self.clip!r:.40}")
        if not 0 < self.clip <= sys.float_info.max:
            raise OptionError(
                f"expected clip to be above 0 and finite, got {self.clip!r:.40}"
            )
        object.__setattr__(self, "clip", float(self.clip))
        if self.norm not in NORMS:
            raise OptionError(f"expected norm to be one of {NORMS}, got {self.norm!r}")
        if self.inputs not in INPUTS:
            raise OptionError(f"expected inputs to be one of {INPUTS}, got {self.inputs!r}")

    @property
    def num_static(self) -> int:
        """Features that stay the same while a plan is built."""
        return NUM_PLAIN + 2 * self.mds_dimensions


class Prepared(NamedTuple):
    """What the model needs of a batch, worked out once for all steps.

    Parameters
    ----------
    static
        Static features after the first linear layer, (batch, 1, arcs, width).
    scores
        Their part of the graph attention's scores, at least in float32, (batch, 1, 2,
        heads, arcs): of the arc that looks, of the arc that is looked at; None without
        graph attention.
    incoming
        As `ArcBatch.incoming`, (batch, 1, arcs, arcs).
    real
        (batch, 1, arcs), or None where nothing is padded.
    capacity
        (batch, 1).
    """

    static: Tensor
    scores: Tensor | None
    incoming: Tensor
    real: Tensor | None
    capacity: Tensor

    def rows(self, rows: slice) -> Prepared:
        """Give some of the instances."""
        return Prepared(
            static=self.static[rows],
            scores=None if self.scores is None else self.scores[rows],
            incoming=self.incoming[rows],
            real=None if self.real is None else self.real[rows],
            capacity=self.capacity[rows],
        )


class Daam(nn.Module):
    """The policy: logits over the arcs for every plan.

    Parameters
    ----------
    config
        Its sizes.
    """

    def __init__(self, config: DaamConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        # W of the paper, its static and its changing columns apart.
        self.static = nn.Linear(config.num_static, width, bias=config.inputs == "mds")
        self.changing = nn.Linear(NUM_CHANGING, width, bias=False)
        if config.inputs != "mds":
            heads = config.gat_heads
            self.attend_to = nn.Parameter(torch.empty(heads, width // heads))
            self.attend_from = nn.Parameter(torch.empty(heads, width // heads))
            self.attend_edge = nn.Parameter(torch.zeros(heads))
            nn.init.xavier_uniform_(self.attend_to)
            nn.init.xavier_uniform_(self.attend_from)
        self.encoder = nn.ModuleList(
            EncoderLayer(width, config.heads, config.feed_forward, config.norm)
            for _ in range(config.layers)
        )
        self.context = nn.Linear(2 * width + 2, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)

    @property
    def step_numbers(self) -> StepNumbers:
        """Say what a step holds at once, as `rollout.default_chunk` wants to know."""
        config = self.config
        heads = 0 if config.inputs == "mds" else config.gat_heads
        # Ends, scores, weights and their copy in each head of the graph attention, beside
        # what all share; queries, keys, values and sums, and the hidden layer twice.
        return StepNumbers(4 * heads + 2, 8 * config.width + 2 * config.feed_forward)

    def prepare(self, batch: ArcBatch, *, padded: bool | None = None) -> Prepared:
        """Work out what stays the same at every step; on the CPU or the GPU as `batch`.

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
        features = batch.features
        if self.config.inputs == "gat":
            features = features.clone()
            features[..., NUM_PLAIN:] = 0
        static = self.static(features.to(kind))[:, None]  # (batch, 1, arcs, width)
        scores = None
        if self.config.inputs != "mds":
            attend = self._attend()
            parts = static.unflatten(-1, (self.config.gat_heads, -1)).to(attend.dtype)
            scores = torch.einsum("bkahw,shw->bksha", parts, attend)
        return Prepared(
            static=static,
            scores=scores,
            incoming=batch.incoming().to(kind)[:, None],
            real=batch.real[:, None] if padded else None,
            capacity=batch.capacity[:, None],
        )

    def forward(self, prepared: Prepared, state: State, allowed: Tensor) -> Tensor:
        """Give the logits of each arc, (batch, copies, arcs), -inf where not allowed.

        They are in float32, or in float64 as the model.

        Parameters
        ----------
        prepared
            The instances.
        state
            Where the plans stand, (batch, copies, ...).
        allowed
            Arcs that may be chosen, (batch, copies, arcs).
        """
        # Gradients, batch norm in training and the GPU want all rows at once.
        if torch.is_grad_enabled() or self.training or not allowed.is_cpu:
            return self._logits(prepared, state, allowed)
        wide = torch.promote_types(prepared.static.dtype, torch.float32)
        logits = torch.empty(allowed.shape, dtype=wide)
        for rows, copies in _portions(*allowed.shape):
            logits[rows, copies] = self._logits(
                prepared.rows(rows),
                State(*(part[rows, copies] for part in state)),
                allowed[rows, copies],
            )
        return logits

    def _logits(self, prepared: Prepared, state: State, allowed: Tensor) -> Tensor:
        return self.point(self.encode(prepared, state), prepared, state, allowed)

    def encode(self, prepared: Prepared, state: State) -> Tensor:
        """Give the embeddings of the arcs, (batch, copies, arcs, width)."""
        embedding = self._embed(prepared, state)
        real = None
        if prepared.real is not None:
            real = prepared.real.expand(embedding.shape[:3]).flatten(0, 1)  # (rows, arcs)
        flat = embedding.flatten(0, 1)  # (rows, arcs, width)
        for layer in self.encoder:
            flat = layer(flat, real)
        return flat.view(embedding.shape)

    def _embed(self, prepared: Prepared, state: State) -> Tensor:
        copies = state.previous.shape[1]
        arcs = prepared.incoming.shape[-1]
        kind = prepared.static.dtype
        column = state.previous[:, :, None, None].expand(-1, -1, arcs, 1)
        way = prepared.incoming.expand(-1, copies, -1, -1).gather(3, column)
        changing = torch.cat([way, state.unserved[..., None].to(kind)], dim=-1)
        hidden: Tensor = prepared.static + self.changing(changing)
        if prepared.scores is None:
            return hidden
        heads = self.config.gat_heads
        # The scores follow the changing features as the hidden features do.
        weight = self.changing.weight.view(heads, -1, NUM_CHANGING).to(
            prepared.scores.dtype
        )
        change = torch.einsum("shw,hwc->csh", self._attend(), weight)[..., None]
        # Not a matrix product: its gradient would be a very long and thin one.
        way_part, served_part = changing.to(change.dtype).unbind(-1)
        moved = way_part[:, :, None, None] * change[0] + (
            served_part[:, :, None, None] * change[1]
        )  # (batch, copies, 2, heads, arcs)
        to, source = (prepared.scores + moved).unbind(2)  # (batch, copies, heads, arcs)
        if prepared.real is not None:
            source = source.masked_fill(~prepared.real[:, :, None], -math.inf)
        ends = to[..., None] + source[..., None, :]
        edge = self.attend_edge[:, None, None].to(ends.dtype)
        score = torch.addcmul(ends, prepared.incoming[:, :, None].to(ends.dtype), edge)
        score = functional.leaky_relu(score, 0.2, inplace=True)
        # score: (batch, copies, heads, arcs i, arcs j)
        parts = hidden.view(*hidden.shape[:-1], heads, -1).transpose(2, 3)
        # parts: (batch, copies, heads, arcs, width / heads)
        mixed = score.softmax(-1).to(kind) @ parts
        gathered = functional.elu(mixed.transpose(2, 3).flatten(-2))
        return gathered + hidden if self.config.inputs == "mds+gat+skip" else gathered

    def _attend(self) -> Tensor:
        """Give what looks at an arc itself and at the others, (2, heads, width / heads)."""
        return at_least_single(torch.stack([self.attend_to, self.attend_from]))

    def point(
        self, embedding: Tensor, prepared: Prepared, state: State, allowed: Tensor
    ) -> Tensor:
        """Give the logits of `forward` from the embeddings of `encode`."""
        width, kind = self.config.width, embedding.dtype
        wide = torch.promote_types(kind, torch.float32)
        if prepared.real is None:
            mean = embedding.mean(2)
        else:
            weight = prepared.real.to(wide) / prepared.real.sum(-1, keepdim=True)
            mean = (embedding * weight[..., None].to(kind)).sum(2)
        row = state.previous[..., None, None].expand(-1, -1, 1, width)
        previous = embedding.gather(2, row)[:, :, 0]  # (batch, copies, width)
        room = state.remaining.to(wide) / prepared.capacity
        half_full = state.remaining > prepared.capacity - state.remaining
        numbers = torch.stack([room, half_full.to(room.dtype)], dim=-1)
        context = torch.cat([mean, previous, numbers.to(kind)], dim=-1)
        # q . (K h) = (K^T q) . h, which spares the keys of all arcs.
        query = self.context(context) @ self.key.weight
        match = at_least_single(embedding @ query[..., None])[..., 0] / math.sqrt(width)
        logits = self.config.clip * match.tanh()
        result: Tensor = logits.masked_fill(~allowed, -math.inf)
        return result


def _portions(batch: int, copies: int, arcs: int) -> Iterator[tuple[slice, slice]]:
    """Cut (batch, copies) into blocks of about PORTION arcs."""
    rows = max(1, PORTION // arcs)
    down, across = max(1, rows // max(1, copies)), min(rows, copies)
    for top in range(0, batch, down):
        for left in range(0, copies, across):
            yield slice(top, top + down), slice(left, left + across)
