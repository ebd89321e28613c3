"""The published DaAM (the paper's sections 4.1 to 4.3) in plain torch, in one file.

    features of Table 1 -> linear layer -> graph attention (Eq. 5) -> 3 encoder layers
    with batch norm (Eq. 1) -> pointer (Eq. 2)

Served arcs stay in sight, marked by `allow_serve`; all of it runs again at every decision
step. Where we read the paper: Eq. 5 applies one matrix W to [F_i || F_j || e_ji] in its
scores and to F_j, which has another width, in its sum. It can be one matrix only if the sum
is over the product that is scored. With W = [W1 | W2 | w]:

    s_ij = LeakyReLU(a . (W1 F_i + W2 F_j + w e_ji)),   c_ij = softmax over j of s_ij
    h_i = ELU(sum_j c_ij W [F_i || F_j || e_ji])
        = ELU(W1 F_i + sum_j c_ij (W2 F_j + w e_ji))

Logits go through a softmax, not u / sum(u). Lengths are divided by the mean of the
arc-to-arc matrix and demands by the capacity: `ArcBatch`.

Shapes: `batch` instances, `samples`, plans of one instance side by side, `arcs` with arc 0
being the depot, `width` numbers for each arc.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import torch
from torch import nn
from torch.nn import functional

from arcfleet.errors import OptionError
from arcfleet.neural.batch import NUM_PLAIN
from arcfleet.neural.env import StepNumbers
from arcfleet.neural.kernels.attention import attention
from arcfleet.neural.model import (
    AttentionModel,
    at_least_single,
    check_attention_sizes,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.env import State

Inputs = Literal["mds+gat", "gat", "mds"]

INPUTS: tuple[Inputs, ...] = get_args(Inputs)

Norm = Literal["batch", "rms"]

NORMS: tuple[Norm, ...] = get_args(Norm)

#: is_depot, cost and demand: the columns of Table 1 beside the MDS coordinates.
NUM_TABLE_1 = 3

#: |e| from the previous arc, and allow_serve: the columns of Table 1 that change.
NUM_CHANGING = 2


def table_1_features(batch: ArcBatch) -> Tensor:
    """Return the static features of Table 1, (batch, arcs, 3 + 2 d), none of later ones."""
    parts = batch.features[..., :NUM_TABLE_1], batch.features[..., NUM_PLAIN:]
    return torch.cat(parts, dim=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedDaamConfig:
    """Sizes of the published model; the defaults are the paper's.

    Parameters
    ----------
    width
        Width of the embeddings.
    layers
        Number of encoder layers.
    heads
        Number of attention heads of each layer.
    feed_forward
        Width of the hidden layer of each feed-forward net.
    mds_dimensions
        Number of MDS coordinates of a node.
    clip
        Bound of the logits: they lie between plus and minus this.
    inputs
        Variant of the ablation: "mds+gat" is the paper's model, "gat" has zeros for the
        MDS coordinates, "mds" a plain linear layer instead of the graph attention.
    norm
        Norm after each half of an encoder layer: "batch" is the paper's. "rms", ours, has
        no statistics of a batch, which several processes would each take of their part.
    """

    width: int = 128
    layers: int = 3
    heads: int = 8
    feed_forward: int = 512
    mds_dimensions: int = 8
    clip: float = 10.0
    inputs: Inputs = "mds+gat"
    norm: Norm = "batch"

    def __post_init__(self) -> None:
        """Check every number and word, and make `clip` a float."""
        check_attention_sizes(self)
        for name, known in (("inputs", INPUTS), ("norm", NORMS)):
            if getattr(self, name) not in known:
                raise OptionError(
                    f"expected {name} to be one of {', '.join(known)}, got "
                    f"{getattr(self, name)!r:.40}"
                )


class BatchNorm(nn.Module):
    """Norm of each channel over all real arcs of the batch; fixed outside training."""

    mean: Tensor
    variance: Tensor

    def __init__(self, width: int, momentum: float = 0.1) -> None:
        super().__init__()
        self.momentum = momentum
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> BatchNorm:
        # bfloat16 would lose most of the small steps by which the statistics move.
        before = self.mean, self.variance
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if self.mean.dtype.itemsize < 4:
            self.mean, self.variance = (
                kept.to(self.mean.device, torch.float32) for kept in before
            )
        return self

    def forward(self, hidden: Tensor, real: Tensor | None) -> Tensor:
        """Normalise (rows, arcs, width); `real`, (rows, arcs), is False for padding."""
        wide = at_least_single(hidden)  # bfloat16 loses the mean of many arcs
        mean, variance = self.mean, self.variance  # (width,)
        if self.training:
            weight = torch.ones_like(wide[..., :1])  # (rows, arcs, 1)
            if real is not None:
                weight = real[..., None].to(wide)
            count = weight.sum((0, 1), keepdim=True)
            mean = (wide * weight).sum((0, 1), keepdim=True) / count  # (1, 1, width)
            squares = (wide - mean).square() * weight
            variance = squares.sum((0, 1), keepdim=True) / count  # (1, 1, width)
            with torch.no_grad():
                self.mean.lerp_(mean.view(-1).to(self.mean.dtype), self.momentum)
                self.variance.lerp_(
                    variance.view(-1).to(self.variance.dtype), self.momentum
                )
        scaled = (wide - mean) * torch.rsqrt(variance + 1e-5)  # (rows, arcs, width)
        return (scaled * self.weight + self.bias).to(hidden.dtype)


class EncoderLayer(nn.Module):
    """Multi-head attention, then a feed-forward net; skip and norm after each (Eq. 1)."""

    def __init__(self, config: PublishedDaamConfig) -> None:
        super().__init__()
        width = config.width
        self.heads = config.heads
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.attention_norm = _make_norm(config)
        self.widen = nn.Linear(width, config.feed_forward)
        self.narrow = nn.Linear(config.feed_forward, width)
        self.feed_forward_norm = _make_norm(config)

    def forward(self, hidden: Tensor, real: Tensor | None) -> Tensor:
        """Compute new embeddings, (rows, arcs, width); `real`, (rows, arcs), or None."""
        parts = self.query_key_value(hidden)  # (rows, arcs, 3 width)
        mixed = attention(parts, real, self.heads)  # (rows, arcs, width)
        hidden = _normalise(self.attention_norm, hidden + self.out(mixed), real)
        # In place it would be a change of a view, whose gradient is copied several times.
        wide = functional.relu(self.widen(hidden), inplace=not torch.is_grad_enabled())
        return _normalise(self.feed_forward_norm, hidden + self.narrow(wide), real)


def _make_norm(config: PublishedDaamConfig) -> BatchNorm | nn.RMSNorm:
    if config.norm == "batch":
        return BatchNorm(config.width)
    return nn.RMSNorm(config.width, eps=1e-6)


def _normalise(norm: BatchNorm | nn.RMSNorm, hidden: Tensor, real: Tensor | None) -> Tensor:
    result: Tensor = norm(hidden, real) if isinstance(norm, BatchNorm) else norm(hidden)
    return result


class Prepared(NamedTuple):
    """What the model needs of a batch, computed once for all steps."""

    static: Tensor  # W1 F of the static features, (batch, 1, arcs, width)
    other: Tensor | None  # W2 F of them, likewise; None without graph attention
    # Their part of the graph attention's scores, at least in float32: a . W1 F_i and
    # a . W2 F_j, (batch, 1, 2, arcs); None without graph attention.
    scores: Tensor | None
    incoming: Tensor  # |e_ji| at [i, j], (batch, 1, arcs, arcs)
    real: Tensor | None  # arcs that are no padding, (batch, 1, arcs), or None for all
    capacity: Tensor  # of a vehicle, (batch, 1)

    def rows(self, rows: slice) -> Prepared:
        """Return some of the instances."""
        some: Any = (None if part is None else part[rows] for part in self)
        return Prepared(*some)


class PublishedDaam(AttentionModel):
    """The published policy: logits over the arcs for every plan."""

    config_class = PublishedDaamConfig
    config: PublishedDaamConfig

    def __init__(self, config: PublishedDaamConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        # W1 of Eq. 5, its static and its changing columns apart.
        num_static = NUM_TABLE_1 + 2 * config.mds_dimensions
        self.static = nn.Linear(num_static, width, bias=config.inputs == "mds")
        self.changing = nn.Linear(NUM_CHANGING, width, bias=False)
        if config.inputs != "mds":
            # W2, w and a.
            self.other_static = nn.Linear(num_static, width, bias=False)
            self.other_changing = nn.Linear(NUM_CHANGING, width, bias=False)
            self.edge = nn.Parameter(torch.empty(width))
            self.attend = nn.Parameter(torch.empty(1, width))
            bound = 1 / math.sqrt(num_static + NUM_CHANGING)  # as columns of W
            nn.init.uniform_(self.edge, -bound, bound)
            nn.init.xavier_uniform_(self.attend)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.context = nn.Linear(2 * width + 2, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)

    @property
    def step_numbers(self) -> StepNumbers:
        """Numbers that a decision step holds at once, by which chunks fit the memory."""
        per_pair = 2 if self.config.inputs == "mds" else 6
        return StepNumbers(per_pair, 8 * self.config.width + 2 * self.config.feed_forward)

    def prepare(self, batch: ArcBatch, *, padded: bool | None = None) -> Prepared:
        """Compute what stays the same at every step; `padded` as `Model.prepare` has it."""
        if padded is None:
            padded = not batch.is_full
        dtype = self.static.weight.dtype
        features = table_1_features(batch)  # (batch, arcs, 3 + 2 d)
        if self.config.inputs == "gat":
            features[..., NUM_TABLE_1:] = 0
        features = features.to(dtype)
        static = self.static(features)[:, None]  # (batch, 1, arcs, width)
        other = scores = None
        if self.config.inputs != "mds":
            other = self.other_static(features)[:, None]  # (batch, 1, arcs, width)
            attend = at_least_single(self.attend)[0]  # (width,)
            both = [part.to(attend.dtype) @ attend for part in (static, other)]
            scores = torch.stack(both, dim=2)  # (batch, 1, 2, arcs)
        return Prepared(
            static=static,
            other=other,
            scores=scores,
            incoming=batch.incoming().to(dtype)[:, None],  # (batch, 1, arcs, arcs)
            real=batch.real[:, None] if padded else None,  # (batch, 1, arcs)
            capacity=batch.capacity[:, None],  # (batch, 1)
        )

    def visible(self, prepared: Prepared, state: State) -> Tensor | None:
        """Return the arcs that others attend to, (batch, 1, arcs): all but padding."""
        return prepared.real

    def embed(self, prepared: Prepared, state: State, visible: Tensor | None) -> Tensor:
        """Compute h^0 of Eq. 5, (batch, samples, arcs, width)."""
        shape, dtype = state.unserved.shape, prepared.static.dtype
        previous = state.previous[:, :, None, None].expand(*shape, 1)
        costs = prepared.incoming.expand(*shape, -1)  # (batch, samples, arcs, arcs)
        from_previous = costs.gather(3, previous)  # (batch, samples, arcs, 1)
        allow_serve = state.unserved[..., None].to(dtype)  # (batch, samples, arcs, 1)
        changing = torch.cat([from_previous, allow_serve], dim=-1)
        own: Tensor = prepared.static + self.changing(changing)  # W1 F of each arc
        if prepared.scores is None or prepared.other is None:
            return own
        other = prepared.other + self.other_changing(changing)  # W2 F of each arc
        # a . W1 F_i and a . W2 F_j of Eq. 5, from what is known of the static features. Not
        # a matrix product: its gradient would be a very long and thin one.
        scores, attend = prepared.scores, at_least_single(self.attend)  # (1, width)
        parts = (self.changing.weight, self.other_changing.weight)
        slopes = torch.cat([attend @ part.to(attend.dtype) for part in parts])
        slopes = slopes.t()[..., None]  # (columns, 2, 1)
        for column, slope in zip(changing.to(slopes.dtype).unbind(-1), slopes, strict=True):
            scores = scores + column[:, :, None] * slope  # (batch, samples, 2, arcs)
        attends, attended = scores.unbind(2)  # (batch, samples, arcs) each
        if visible is not None:
            attended = attended.masked_fill(~visible, -math.inf)
        pairs = attends[..., None] + attended[..., None, :]  # (.., arcs i, arcs j)
        edge = attend @ self.edge.to(attend.dtype)  # a . w, (1,)
        pairs = torch.addcmul(pairs, prepared.incoming.to(pairs.dtype), edge)
        weights = functional.leaky_relu(pairs, 0.2).softmax(-1)  # c_ij
        way = (weights * prepared.incoming).sum(-1, keepdim=True)  # sum of c_ij e_ji
        gathered = weights.to(dtype) @ other + way.to(dtype) * self.edge
        return functional.elu(own + gathered)

    def point(
        self, hidden: Tensor, prepared: Prepared, state: State, mask: Tensor
    ) -> Tensor:
        """Compute the logits (Eq. 2) from the embeddings of the last layer.

        The context is the mean embedding, that of the previous arc, the remaining capacity
        and whether it is more than half.
        """
        width, dtype = self.config.width, hidden.dtype
        wide = torch.promote_types(dtype, torch.float32)
        if prepared.real is None:
            mean = hidden.mean(2)  # (batch, samples, width)
        else:
            weight = prepared.real.to(wide) / prepared.real.sum(-1, keepdim=True)
            mean = (hidden * weight[..., None].to(dtype)).sum(2)  # (batch, samples, width)
        row = state.previous[..., None, None].expand(-1, -1, 1, width)
        previous = hidden.gather(2, row)[:, :, 0]  # (batch, samples, width)
        remaining = state.remaining.to(wide) / prepared.capacity  # (batch, samples)
        half_full = state.remaining > prepared.capacity - state.remaining
        numbers = torch.stack([remaining, half_full.to(wide)], dim=-1).to(dtype)
        context = torch.cat([mean, previous, numbers], dim=-1)  # (.., 2 width + 2)
        # q . (K h) = (K^T q) . h, which spares the keys of all arcs.
        query = self.context(context) @ self.key.weight  # (batch, samples, width)
        match = at_least_single(hidden @ query[..., None])[..., 0] / math.sqrt(width)
        logits = self.config.clip * match.tanh()  # (batch, samples, arcs)
        result: Tensor = logits.masked_fill(~mask, -math.inf)
        return result
