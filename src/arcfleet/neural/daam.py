"""DaAM, the direction-aware attention model: from where plans stand to logits over arcs.

A graph attention layer over the arc graph, an attention encoder and a pointer. All of it
runs again at every step, which is the paper's model. Decoding is not its business.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from arcfleet.neural.daam_config import NUM_PLAIN
from arcfleet.neural.encoder import EncoderLayer
from arcfleet.neural.norms import at_least_single
from arcfleet.neural.rollout import StepNumbers
from arcfleet.neural.state import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.daam_config import DaamConfig

# The CPU takes so many arcs at once: what lies between two layers then stays in its cache.
PORTION = 1600


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
    demand
        (batch, 1, arcs).
    once
        The same, 0 for one arc of a task with two.
    """

    static: Tensor
    scores: Tensor | None
    incoming: Tensor
    real: Tensor | None
    capacity: Tensor
    demand: Tensor
    once: Tensor

    def rows(self, rows: slice) -> Prepared:
        """Give some of the instances."""
        return Prepared(
            static=self.static[rows],
            scores=None if self.scores is None else self.scores[rows],
            incoming=self.incoming[rows],
            real=None if self.real is None else self.real[rows],
            capacity=self.capacity[rows],
            demand=self.demand[rows],
            once=self.once[rows],
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
        self.changing = nn.Linear(config.num_changing, width, bias=False)
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
    def hides_served(self) -> bool:
        """Whether the logits are the same if served arcs are left out."""
        return self.config.served == "hidden"

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
        incoming = batch.incoming().to(kind)  # (batch, arcs, arcs)
        if self.config.features != "paper":
            ways = torch.stack([incoming[:, :, 0], incoming[:, 0]], dim=-1)
            features = torch.cat([features.to(kind), ways], dim=-1)
        static = self.static(features.to(kind))[:, None]  # (batch, 1, arcs, width)
        scores = None
        if self.config.inputs != "mds":
            attend = self._attend()
            parts = static.unflatten(-1, (self.config.gat_heads, -1)).to(attend.dtype)
            scores = torch.einsum("bkahw,shw->bksha", parts, attend)
        return Prepared(
            static=static,
            scores=scores,
            incoming=incoming[:, None],
            real=batch.real[:, None] if padded else None,
            capacity=batch.capacity[:, None],
            demand=batch.demand[:, None],
            once=batch.demand_once[:, None],
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
        present = self._present(prepared, state)
        return self._attend_all(self._embed(prepared, state, present), present)

    def begin(
        self, batch: ArcBatch, state: State, padded: bool
    ) -> tuple[Prepared, Tensor, Tensor | None]:
        """Prepare a batch; give what the encoder starts from, and whom arcs may see."""
        prepared = self.prepare(batch, padded=padded)
        present = self._present(prepared, state)
        return prepared, self._embed(prepared, state, present), present

    def _attend_all(self, embedding: Tensor, present: Tensor | None) -> Tensor:
        real = None
        if present is not None:
            real = present.expand(embedding.shape[:3]).flatten(0, 1)  # (rows, arcs)
        flat = embedding.flatten(0, 1)  # (rows, arcs, width)
        for layer in self.encoder:
            flat = layer(flat, real)
        return flat.view(embedding.shape)

    def _present(self, prepared: Prepared, state: State) -> Tensor | None:
        """Say which arcs the others may look at, (batch, copies or 1, arcs); None: all."""
        if self.config.served == "seen":
            return prepared.real
        arc = torch.arange(state.unserved.shape[-1], device=state.unserved.device)
        return state.unserved | (arc == state.previous[..., None]) | (arc == 0)

    def _embed(self, prepared: Prepared, state: State, present: Tensor | None) -> Tensor:
        copies = state.previous.shape[1]
        arcs = prepared.incoming.shape[-1]
        kind = prepared.static.dtype
        column = state.previous[:, :, None, None].expand(-1, -1, arcs, 1)
        way = prepared.incoming.expand(-1, copies, -1, -1).gather(3, column)
        columns = [way, state.unserved[..., None].to(kind)]
        if self.config.features != "paper":
            columns.extend(_room(prepared, state, kind))
        if self.config.features == "more+spare":
            columns.extend(_spare(prepared, state, kind))
        changing = torch.cat(columns, dim=-1)  # (batch, copies, arcs, changing)
        hidden: Tensor = prepared.static + self.changing(changing)
        if prepared.scores is None:
            return hidden
        heads = self.config.gat_heads
        # The scores follow the changing features as the hidden features do.
        weight = self.changing.weight.view(heads, -1, self.config.num_changing).to(
            prepared.scores.dtype
        )
        change = torch.einsum("shw,hwc->csh", self._attend(), weight)[..., None]
        # Not a matrix product: its gradient would be a very long and thin one.
        ends = prepared.scores
        for part, by in zip(changing.to(change.dtype).unbind(-1), change, strict=True):
            ends = ends + part[:, :, None, None] * by  # (batch, copies, 2, heads, arcs)
        to, source = ends.unbind(2)  # (batch, copies, heads, arcs)
        if present is not None:
            source = source.masked_fill(~present[:, :, None], -math.inf)
        parts = hidden.view(*hidden.shape[:-1], heads, -1).transpose(2, 3)
        # parts: (batch, copies, heads, arcs, width / heads)
        incoming = prepared.incoming[:, :, None]
        if torch.is_grad_enabled() and hidden.is_cuda and arcs % 8:
            # The product below and its gradients are slow unless rows have whole words.
            over = -arcs % 8
            source = functional.pad(source, (0, over), value=-math.inf)
            incoming = functional.pad(incoming, (0, over))
            parts = functional.pad(parts, (0, 0, 0, over))
        pairs = to[..., None] + source[..., None, :]
        edge = self.attend_edge[:, None, None].to(pairs.dtype)
        score = torch.addcmul(pairs, incoming.to(pairs.dtype), edge)
        score = functional.leaky_relu(score, 0.2, inplace=True)
        # score: (batch, copies, heads, arcs i, arcs j)
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
        present = self._present(prepared, state)
        if present is None:
            mean = embedding.mean(2)
        else:
            weight = present.to(wide) / present.sum(-1, keepdim=True)
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


def _room(prepared: Prepared, state: State, kind: torch.dtype) -> list[Tensor]:
    """Give the share of the capacity left, and where an arc fits, (.., arcs, 1) each."""
    left = state.remaining[..., None]  # (batch, copies, 1)
    fits = prepared.demand <= left  # (batch, copies, arcs)
    wide = torch.promote_types(kind, torch.float32)
    share = (left.to(wide) / prepared.capacity[..., None]).expand(fits.shape)
    return [share[..., None].to(kind), fits[..., None].to(kind)]


def _spare(prepared: Prepared, state: State, kind: torch.dtype) -> list[Tensor]:
    """Give demand left, what may stay empty, and whether going home is too early.

    All three in capacities, the same for all arcs of a plan, (.., arcs, 1) each.
    """
    left = (prepared.once * state.unserved).sum(-1)  # (batch, copies)
    room, capacity = state.remaining, prepared.capacity
    beyond = (left - room).clamp(min=0)
    routes = (beyond + capacity - 1) // capacity  # after this one, at the least
    spare = routes * capacity + room - left
    wide = torch.promote_types(kind, torch.float32)
    numbers = [left.to(wide) / capacity, spare.to(wide) / capacity, room > spare]
    shape = (*state.unserved.shape, 1)
    return [number[..., None, None].to(kind).expand(shape) for number in numbers]


def _portions(batch: int, copies: int, arcs: int) -> Iterator[tuple[slice, slice]]:
    """Cut (batch, copies) into blocks of about PORTION arcs."""
    rows = max(1, PORTION // arcs)
    down, across = max(1, rows // max(1, copies)), min(rows, copies)
    for top in range(0, batch, down):
        for left in range(0, copies, across):
            yield slice(top, top + down), slice(left, left + across)
