"""DaAM, the direction-aware attention model: from where plans stand to logits over arcs.

A graph attention layer over the arc graph, an attention encoder and a pointer. All of it
runs again at every step, which is the paper's model. Decoding is not its business.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from arcfleet.errors import OptionError
from arcfleet.neural.batch import NUM_PLAIN
from arcfleet.neural.env import State, StepNumbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch


def require_sizes(config: object, **least: int) -> None:
    """Raise OptionError unless sizes of a model are whole numbers, and large enough."""
    for name, smallest in least.items():
        value = getattr(config, name)
        if type(value) is not int:  # a bool is an int, but no size
            raise OptionError(f"expected {name} to be a whole number, got {value!r:.40}")
        if value < smallest:
            raise OptionError(f"expected {name} to be at least {smallest}, got {value}")


def require_divisors(width: int, **heads: int) -> None:
    """Raise OptionError unless every number of heads divides the width."""
    for name, count in heads.items():
        if width % count:
            raise OptionError(
                f"expected a width that {name} divides, got width {width} and "
                f"{count} {name}"
            )


NormName = Literal["rms", "layer", "instance", "batch"]

NORMS: tuple[NormName, ...] = ("rms", "layer", "instance", "batch")


def at_least_single(values: Tensor) -> Tensor:
    """Give the same in float32, or in float64 where it is."""
    return values if values.dtype == torch.float64 else values.float()


def make_norm(name: NormName, width: int) -> nn.Module:
    """Make a norm that takes (rows, arcs, width) and which arcs are real, or None."""
    if name == "rms":
        return ArcWiseNorm(nn.RMSNorm(width, eps=1e-6))
    if name == "layer":
        return ArcWiseNorm(nn.LayerNorm(width))
    if name == "instance":
        return InstanceNorm(width)
    return BatchNorm(width)


class ArcWiseNorm(nn.Module):
    """A norm over the width of each arc alone."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, hidden: Tensor, real: Tensor | None) -> Tensor:
        """Normalise (rows, arcs, width)."""
        result: Tensor = self.norm(hidden)
        return result


class InstanceNorm(nn.Module):
    """Each channel over the arcs of one row."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, hidden: Tensor, real: Tensor | None) -> Tensor:
        """Normalise (rows, arcs, width)."""
        mean, variance = _moments(hidden, real, (1,))
        return _normalise(hidden, mean, variance, self.weight, self.bias)


class BatchNorm(nn.Module):
    """Each channel over all arcs of the batch; fixed statistics outside training."""

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
        """Normalise (rows, arcs, width)."""
        mean, variance = self.mean, self.variance
        if self.training:
            mean, variance = _moments(hidden, real, (0, 1))
            with torch.no_grad():
                self.mean.lerp_(mean.view(-1).to(self.mean.dtype), self.momentum)
                self.variance.lerp_(
                    variance.view(-1).to(self.variance.dtype), self.momentum
                )
        return _normalise(hidden, mean, variance, self.weight, self.bias)


def _moments(
    hidden: Tensor, real: Tensor | None, dims: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    # bfloat16 loses the mean of many arcs.
    wide = at_least_single(hidden)
    weight = torch.ones_like(wide[..., :1]) if real is None else real[..., None].to(wide)
    count = weight.sum(dims, keepdim=True)
    mean = (wide * weight).sum(dims, keepdim=True) / count
    variance = ((wide - mean).square() * weight).sum(dims, keepdim=True) / count
    return mean, variance


def _normalise(
    hidden: Tensor, mean: Tensor, variance: Tensor, weight: Tensor, bias: Tensor
) -> Tensor:
    wide = at_least_single(hidden)
    scaled = (wide - mean) * torch.rsqrt(variance + 1e-5)
    return (scaled * weight + bias).to(hidden.dtype)


# Table 1 of the paper: is_depot, cost and demand stand before the MDS coordinates; two
# features change from step to step: the way from the previous arc, and allow_serve.
NUM_CHANGING = 2

# Ours: the ways from the depot and to it; the capacity left, and whether the arc fits in;
# the demand left, what may stay empty, and whether going home leaves more than that.
NUM_MORE_STATIC = 2

NUM_MORE_CHANGING = 2

NUM_SPARE = 3


Inputs = Literal["mds+gat", "gat", "mds", "mds+gat+skip"]

INPUTS: tuple[Inputs, ...] = ("mds+gat", "gat", "mds", "mds+gat+skip")

Features = Literal["paper", "more", "more+spare"]

#: Each has all columns of those before it, and its own after them.
FEATURES: tuple[Features, ...] = ("paper", "more", "more+spare")

Served = Literal["seen", "hidden"]

SERVED: tuple[Served, ...] = ("seen", "hidden")


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
    features
        "paper" for those of its Table 1. "more", ours, adds the exact ways from the depot
        to an arc and back, the capacity left, and whether the arc fits into it: in the
        paper's model only the pointer knows the capacity. "more+spare" also says how much
        demand is left, how much room may stay empty before a route more is needed, and
        whether going home now would leave more than that: whole vehicles are hard to count.
    served
        "seen" keeps all arcs in every step, as the paper does. "hidden", ours, lets no arc
        attend to those that are done, the previous one and the depot excepted: a plan half
        built is a smaller instance, and its served arcs need not be computed.
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
    features: Features = "paper"
    served: Served = "seen"

    def __post_init__(self) -> None:
        """Check every number, and make `clip` a float."""
        sizes = dict.fromkeys(("width", "layers", "heads", "feed_forward", "gat_heads"), 1)
        require_sizes(self, **sizes, mds_dimensions=0)
        require_divisors(self.width, heads=self.heads, gat_heads=self.gat_heads)
        if type(self.clip) not in (int, float):
            raise OptionError(f"expected clip to be a number, got {self.clip!r:.40}")
        if not 0 < self.clip <= sys.float_info.max:
            raise OptionError(
                f"expected clip to be above 0 and finite, got {self.clip!r:.40}"
            )
        object.__setattr__(self, "clip", float(self.clip))
        words = {"norm": NORMS, "inputs": INPUTS, "features": FEATURES, "served": SERVED}
        for name, known in words.items():
            if getattr(self, name) not in known:
                raise OptionError(
                    f"expected {name} to be one of {', '.join(known)}, got "
                    f"{getattr(self, name)!r:.40}"
                )

    @property
    def num_static(self) -> int:
        """Features that stay the same while a plan is built."""
        more = 0 if self.features == "paper" else NUM_MORE_STATIC
        return NUM_PLAIN + 2 * self.mds_dimensions + more

    @property
    def num_changing(self) -> int:
        """Features that change from step to step."""
        more = 0 if self.features == "paper" else NUM_MORE_CHANGING
        return NUM_CHANGING + more + (NUM_SPARE if self.features == "more+spare" else 0)


try:
    from arcfleet.neural.kernels import attention as short
    from arcfleet.neural.kernels import feed_forward as learning
    from arcfleet.neural.kernels import layer as kernels
except ImportError:  # not every torch brings Triton; the general kernels do the same
    kernels = learning = short = None  # type: ignore[assignment]


class EncoderLayer(nn.Module):
    """Attention of all arcs to all, then a feed-forward net; skip and norm after each.

    Parameters
    ----------
    width, heads, feed_forward
        Its sizes.
    norm
        One of `NORMS`.
    """

    def __init__(self, width: int, heads: int, feed_forward: int, norm: NormName) -> None:
        super().__init__()
        self.heads = heads
        self.norm = norm
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.attention_norm = make_norm(norm, width)
        self.widen = nn.Linear(width, feed_forward)
        self.narrow = nn.Linear(feed_forward, width)
        self.feed_forward_norm = make_norm(norm, width)

    def forward(self, hidden: Tensor, real: Tensor | None) -> Tensor:
        """Give new embeddings, (rows, arcs, width).

        Parameters
        ----------
        hidden
            The embeddings, (rows, arcs, width).
        real
            Which arcs may be looked at, (rows, arcs), or None for all; the depot, arc 0, is
            always one of them.
        """
        mixed = self._attend(self.query_key_value(hidden), real)
        widen = self.widen.weight, self.widen.bias
        narrow = self.narrow.weight, self.narrow.bias
        ours, compiling = self._fits_kernels(hidden), torch.compiler.is_compiling()
        if ours and not compiling and not torch.is_grad_enabled():
            return kernels.after_attention(
                hidden,
                mixed,
                self.out.weight,
                _of_norm(self.attention_norm),
                widen,
                narrow,
                _of_norm(self.feed_forward_norm),
            )
        change = self.out(mixed)
        if ours and not compiling:  # torch.compile makes one of its own
            hidden = kernels.add_and_norm(hidden, change, *_of_norm(self.attention_norm))
        else:
            hidden = self.attention_norm(hidden + change, real)
        if ours:
            return learning.feed_forward(
                hidden, widen, narrow, _of_norm(self.feed_forward_norm)
            )
        # In place it would be a change of a view, whose gradient is copied several times.
        wide = functional.relu(self.widen(hidden), inplace=not torch.is_grad_enabled())
        change = self.narrow(wide)
        result: Tensor = self.feed_forward_norm(hidden + change, real)
        return result

    def _fits_kernels(self, hidden: Tensor) -> bool:
        """Say whether the kernels of ours can be used."""
        return (
            hidden.is_cuda
            and kernels is not None
            and self.norm == "rms"
            and kernels.fits(hidden, self.widen.out_features)
            and self.out.weight.dtype == hidden.dtype
        )

    def _attend(self, joined: Tensor, real: Tensor | None) -> Tensor:
        # joined: (rows, arcs, 3 width)
        if joined.is_cuda and short is not None and short.fits(joined, self.heads):
            attended: Tensor = short.short_attention(joined, real, self.heads)
            return attended
        parts = joined.view(*joined.shape[:-1], 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        # each: (rows, heads, arcs, width / heads)
        mask = None
        if real is not None:
            # The fused kernels take numbers, not truth values.
            mask = torch.zeros(real.shape, dtype=joined.dtype, device=real.device)
            mask = mask.masked_fill(~real, -math.inf)[:, None, None]
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return mixed.transpose(1, 2).flatten(2)


def _of_norm(norm: nn.Module) -> tuple[Tensor, float]:
    """Give the weight and the epsilon of a root-mean-square norm."""
    inner: Any = norm.norm
    return inner.weight, inner.eps


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
