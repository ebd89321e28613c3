"""DaAM, the direction-aware attention model: from the state of a plan to logits over arcs.

This is the network of the shipped weights, top to bottom:

    features -> linear layer -> graph attention, with a skip -> encoder layers -> pointer

and, with `cost_bias`, that of their successor, in which every layer is direction-aware:

    features -> linear layer -> encoder layers, biased by driving costs -> pointer

All of it runs again at every decision step. It differs from the published model, which is
in `arcfleet.paper.model`, in four points: features of the depot, of the capacity and of the
slack; a skip around the graph attention, or none of it; root-mean-square norms; and served
arcs are hidden, so that a half-built plan is a smaller instance.

Shapes: `batch` instances, `samples`, plans of one instance side by side, `arcs` with arc 0
being the depot, `width` numbers for each arc.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from arcfleet.errors import OptionError
from arcfleet.neural.batch import NUM_PLAIN, ArcBatch
from arcfleet.neural.env import State, StepNumbers, visible_arcs
from arcfleet.neural.kernels.attention import attention
from arcfleet.neural.kernels.biased_attention import (
    SLOPES,
    Pairs,
    biased_attention,
    pairs_of,
)
from arcfleet.neural.kernels.core_encoder import CoreEncoder, core_has
from arcfleet.neural.kernels.layer import rest_of_layer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


# ---------------------------------------------------------------------------- config


@dataclass(frozen=True, slots=True, kw_only=True)
class DaamConfig:
    """Sizes of the model; the defaults are those of the shipped weights.

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
    cost_bias
        Bias of the attention by driving costs there and back, in every layer, in place of
        the graph attention before them.
    """

    width: int = 128
    layers: int = 6
    heads: int = 4
    feed_forward: int = 512
    mds_dimensions: int = 8
    clip: float = 10.0
    cost_bias: bool = True

    def __post_init__(self) -> None:
        """Check every number, and make `clip` a float."""
        check_attention_sizes(self)
        if type(self.cost_bias) is not bool:
            raise OptionError(
                f"expected cost_bias to be true or false, got {self.cost_bias!r:.40}"
            )


def check_attention_sizes(config: Any) -> None:
    """Raise OptionError unless the sizes can be; make `clip` a float."""
    sizes = dict.fromkeys(("width", "layers", "heads", "feed_forward"), 1)
    require_sizes(config, **sizes, mds_dimensions=0)
    require_divisors(config.width, heads=config.heads)
    object.__setattr__(config, "clip", _checked_clip(config.clip))


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


def _checked_clip(clip: float) -> float:
    """Return the bound of the logits as a float; raise OptionError if it is none."""
    if type(clip) not in (int, float):
        raise OptionError(f"expected clip to be a number, got {clip!r:.40}")
    if not 0 < clip <= sys.float_info.max:
        raise OptionError(f"expected clip to be above 0 and finite, got {clip!r:.40}")
    return float(clip)


# -------------------------------------------------------------------------- features
# Every column that the network sees. To add one, add its name and its value below:
# docs/howto/add-a-model-feature.md.

#: After the columns of `ArcBatch.features`: is_depot, cost, demand, MDS of start and end.
STATIC_FEATURES = ("cost_from_depot", "cost_to_depot")

CHANGING_FEATURES = (
    "cost_from_previous",  # from the end of the arc served last
    "unserved",
    "remaining",  # capacity that is left, in capacities; the same for all arcs
    "fits",  # whether the arc's demand fits into it
    "demand_left",  # of all unserved tasks, in capacities; the same for all arcs
    "slack",  # capacity that may stay unused before a route more is needed, likewise
    "too_early",  # whether a return to the depot now would waste more than the slack
)


def static_features(batch: ArcBatch, incoming: Tensor) -> Tensor:
    """Compute the features that stay the same, (batch, arcs, columns)."""
    columns = (
        incoming[:, :, 0],  # from the depot
        incoming[:, 0],  # to the depot
    )  # each: (batch, arcs)
    return torch.cat([batch.features.to(incoming), torch.stack(columns, dim=-1)], dim=-1)


def changing_features(prepared: Prepared, state: State) -> Tensor:
    """Compute the features of a decision step, (batch, samples, arcs, columns)."""
    shape, dtype = state.unserved.shape, prepared.static.dtype
    wide = torch.promote_types(dtype, torch.float32)
    capacity, remaining = prepared.capacity, state.remaining  # (batch, 1), (batch, samples)
    demand_left = (prepared.demand_once * state.unserved).sum(-1)  # (batch, samples)
    beyond = (demand_left - remaining).clamp(min=0)
    routes = (beyond + capacity - 1) // capacity  # after this one, at the least
    slack = routes * capacity + remaining - demand_left  # (batch, samples)
    previous = state.previous[:, :, None, None].expand(*shape, 1)
    costs = prepared.incoming.expand(*shape, -1)  # (batch, samples, arcs, arcs)
    columns = (
        costs.gather(3, previous)[..., 0],
        state.unserved,
        (remaining.to(wide) / capacity)[..., None],
        prepared.demand <= remaining[..., None],
        (demand_left.to(wide) / capacity)[..., None],
        (slack.to(wide) / capacity)[..., None],
        (remaining > slack)[..., None],
    )  # each: (batch, samples, arcs or 1)
    return torch.stack([column.to(dtype).expand(shape) for column in columns], dim=-1)


# ---------------------------------------------------------------- what a model must have


class Model(nn.Module, ABC):
    """What decoding and model files ask of every model, those of the paper included."""

    #: Class of `config`, a frozen dataclass that has `mds_dimensions`.
    config_class: ClassVar[type[Any]]
    config: Any
    #: Whether the logits stay the same if served arcs are left out of the batch.
    hides_served: ClassVar[bool] = False
    #: Whether it decodes as well in bfloat16.
    decodes_in_bfloat16: ClassVar[bool] = False

    @property
    def step_numbers(self) -> StepNumbers:
        """Numbers that a decision step holds at once, by which chunks fit the memory."""
        return StepNumbers()

    @abstractmethod
    def prepare(self, batch: ArcBatch, *, padded: bool | None = None) -> Any:
        """Compute what stays the same at every step; `forward` takes it.

        There may be padding if `padded`; None looks, and waits for the device to do so.
        """


AnyModel = TypeVar("AnyModel", bound=Model)


def through_layers(
    layers: Iterable[Any], hidden: Tensor, visible: Tensor | None, prepared: Any
) -> Tensor:
    """Pass embeddings (batch, samples, arcs, width) through the layers of an encoder.

    Layers that are biased by driving costs get those of `prepared`.
    """
    if visible is not None:
        visible = visible.expand(hidden.shape[:3]).flatten(0, 1)  # (rows, arcs)
    pairs: Pairs | None = getattr(prepared, "pairs", None)
    more = () if pairs is None else (pairs,)
    flat = hidden.flatten(0, 1)  # (rows, arcs, width)
    for layer in layers:
        flat = layer(flat, visible, *more)
    return flat.view(hidden.shape)


class AttentionModel(Model):
    """A model whose step embeds the arcs, runs encoder layers over them, and points.

    A subclass has `prepare`, `visible`, `embed` and `point`, and its layers in `encoder`.
    """

    encoder: nn.ModuleList
    #: The layers of the encoder in the core, for decoding on a CPU; None without them.
    core: CoreEncoder | None = None
    decodes_in_bfloat16 = True

    def put_in_core(self) -> None:
        """Let the core compute the layers from now on, if it has them; none may learn."""
        layers = list(self.encoder) if isinstance(self.encoder, nn.ModuleList) else []
        # A class of a user's own may compute something else.
        if all(type(layer) is EncoderLayer for layer in layers) and core_has(layers):
            self.core = CoreEncoder.of(layers)

    @abstractmethod
    def visible(self, prepared: Any, state: State) -> Tensor | None:
        """Return the arcs that others attend to, (batch, samples or 1, arcs); None: all."""

    @abstractmethod
    def embed(self, prepared: Any, state: State, visible: Tensor | None) -> Tensor:
        """Compute what the encoder starts from, (batch, samples, arcs, width)."""

    @abstractmethod
    def point(self, hidden: Tensor, prepared: Any, state: State, mask: Tensor) -> Tensor:
        """Compute the logits of `forward` from the embeddings of `encode`."""

    def forward(self, prepared: Any, state: State, mask: Tensor) -> Tensor:
        """Compute the logits of each arc, (batch, samples, arcs), -inf outside the mask.

        They are in float32, or in float64 as the model. `mask` is the action mask,
        (batch, samples, arcs).
        """
        # Gradients, batch norm in training and the GPU want all rows at once.
        few = mask.numel() <= PORTION
        if few or torch.is_grad_enabled() or self.training or not mask.is_cpu:
            return self.point(self.encode(prepared, state), prepared, state, mask)
        wide = torch.promote_types(prepared.static.dtype, torch.float32)
        logits = torch.empty(mask.shape, dtype=wide)
        for rows, samples in _blocks(*mask.shape):
            some = prepared.rows(rows)
            there = State(*(part[rows, samples] for part in state))
            hidden = self.encode(some, there)  # (rows, samples, arcs, width)
            logits[rows, samples] = self.point(hidden, some, there, mask[rows, samples])
        return logits

    def encode(self, prepared: Any, state: State) -> Tensor:
        """Compute the embeddings of the arcs, (batch, samples, arcs, width)."""
        visible = self.visible(prepared, state)
        hidden = self.embed(prepared, state, visible)  # (batch, samples, arcs, width)
        layers: Iterable[Any] = self.encoder
        if self.core is not None and self.core.takes(hidden):
            layers = [self.core]
        return through_layers(layers, hidden, visible, prepared)

    def begin(
        self, batch: ArcBatch, state: State, padded: bool
    ) -> tuple[Any, Tensor, Tensor | None]:
        """Return what training does before the layers: `prepare`, `embed`, `visible`."""
        prepared = self.prepare(batch, padded=padded)
        visible = self.visible(prepared, state)
        return prepared, self.embed(prepared, state, visible), visible


# The CPU takes so many arcs at once: what lies between two layers then stays in its cache.
PORTION = 1600


def _blocks(batch: int, samples: int, arcs: int) -> Iterator[tuple[slice, slice]]:
    """Cut (batch, samples) into blocks of about PORTION arcs."""
    rows = max(1, PORTION // arcs)
    down, across = max(1, rows // max(1, samples)), min(rows, samples)
    for top in range(0, batch, down):
        for left in range(0, samples, across):
            yield slice(top, top + down), slice(left, left + across)


def at_least_single(values: Tensor) -> Tensor:
    """Return the values in float32, or in float64 where they are."""
    return values if values.dtype == torch.float64 else values.float()


# --------------------------------------------------------------------------- network


#: Added by the norms to what they divide by.
EPSILON = 1e-6


#: Slopes are stored divided by this. AdamW changes every number by about as much in a step,
#: which is little for slopes: so they learn ten times as fast.
SLOPE_UNIT = 10.0


class EncoderLayer(nn.Module):
    """Multi-head attention, then a feed-forward net; skip and norm after each.

    With `cost_bias` the scores of the attention are biased by driving costs.
    """

    def __init__(
        self, width: int, heads: int, feed_forward: int, *, cost_bias: bool = False
    ) -> None:
        super().__init__()
        self.heads = heads
        if cost_bias:
            self.slopes = nn.Parameter(initial_slopes(heads) / SLOPE_UNIT)
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.attention_norm = nn.RMSNorm(width, eps=EPSILON)
        self.widen = nn.Linear(width, feed_forward)
        self.narrow = nn.Linear(feed_forward, width)
        self.feed_forward_norm = nn.RMSNorm(width, eps=EPSILON)

    @property
    def bias_slopes(self) -> Tensor:
        """The slopes of the bias, (heads, 2)."""
        return SLOPE_UNIT * self.slopes

    def forward(
        self, hidden: Tensor, visible: Tensor | None, pairs: Pairs | None = None
    ) -> Tensor:
        """Compute new embeddings from old ones, (rows, arcs, width).

        Arcs attend to the visible ones, (rows, arcs), of which the depot is always one;
        None for all. `pairs` are the driving costs of the bias, if there is one.
        """
        parts = self.query_key_value(hidden)  # (rows, arcs, 3 width)
        if pairs is None:
            mixed = attention(parts, visible, self.heads)  # (rows, arcs, width)
        else:
            mixed = biased_attention(parts, visible, self.heads, pairs, self.bias_slopes)
        result: Tensor = rest_of_layer(
            hidden,
            mixed,
            self.out.weight,
            (self.attention_norm.weight, EPSILON),
            (self.widen.weight, self.widen.bias),
            (self.narrow.weight, self.narrow.bias),
            (self.feed_forward_norm.weight, EPSILON),
        )  # (rows, arcs, width)
        return result


def initial_slopes(heads: int) -> Tensor:
    """Return slopes to start from, (heads, 2): some heads look near, some far.

    Half of them look at where an arc is reached from, half at where it leads to.
    """
    steep = (-0.5, -1.0, -2.0, -4.0) if heads >= 8 else (-0.7, -3.0)
    slopes = torch.zeros(heads, SLOPES)
    for head in range(heads):
        slopes[head, head % 2] = steep[head // 2 % len(steep)]
    return slopes


class Prepared(NamedTuple):
    """What the model needs of a batch, computed once for all steps."""

    static: Tensor  # features after the first linear layer, (batch, 1, arcs, width)
    # Their part of the graph attention's scores, at least in float32, (batch, 1, 2, arcs):
    # of the arc that attends, of the arc that is attended to; None without it.
    scores: Tensor | None
    incoming: Tensor  # as `ArcBatch.incoming`, (batch, 1, arcs, arcs)
    capacity: Tensor  # (batch, 1)
    demand: Tensor  # (batch, 1, arcs)
    demand_once: Tensor  # the same, 0 for one of a task's two arcs
    pairs: Pairs | None  # driving costs of the bias; None without it

    def rows(self, rows: slice) -> Prepared:
        """Return some of the instances."""
        return Prepared(
            static=self.static[rows],
            scores=None if self.scores is None else self.scores[rows],
            incoming=self.incoming[rows],
            capacity=self.capacity[rows],
            demand=self.demand[rows],
            demand_once=self.demand_once[rows],
            pairs=None if self.pairs is None else self.pairs.rows(rows),
        )


class Daam(AttentionModel):
    """The policy: logits over the arcs for every plan."""

    config_class = DaamConfig
    config: DaamConfig
    hides_served = True

    def __init__(self, config: DaamConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        num_static = NUM_PLAIN + 2 * config.mds_dimensions + len(STATIC_FEATURES)
        # One linear layer over all features, its static and its changing columns apart.
        self.static = nn.Linear(num_static, width, bias=False)
        self.changing = nn.Linear(len(CHANGING_FEATURES), width, bias=False)
        if not config.cost_bias:
            self.attend_to = nn.Parameter(torch.empty(1, width))
            self.attend_from = nn.Parameter(torch.empty(1, width))
            self.attend_edge = nn.Parameter(torch.zeros(1))
            nn.init.xavier_uniform_(self.attend_to)
            nn.init.xavier_uniform_(self.attend_from)
        self.encoder = nn.ModuleList(
            EncoderLayer(
                width, config.heads, config.feed_forward, cost_bias=config.cost_bias
            )
            for _ in range(config.layers)
        )
        self.context = nn.Linear(2 * width + 2, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)

    @property
    def step_numbers(self) -> StepNumbers:
        """Numbers that a decision step holds at once, by which chunks fit the memory."""
        # Ends, scores, weights and their copy in the graph attention, and costs (off the
        # kernels a bias takes about as much); queries, keys, values and sums, and the
        # hidden layer twice.
        return StepNumbers(6, 8 * self.config.width + 2 * self.config.feed_forward)

    def prepare(self, batch: ArcBatch, *, padded: bool | None = None) -> Prepared:
        """Compute what stays the same at every step; `padded` is no matter.

        Padding is hidden as served arcs are.
        """
        dtype = self.static.weight.dtype
        incoming = batch.incoming().to(dtype)  # (batch, arcs, arcs)
        static = self.static(static_features(batch, incoming))  # (batch, arcs, width)
        static = static[:, None]  # (batch, 1, arcs, width)
        scores = pairs = None
        if self.config.cost_bias:
            pairs = pairs_of(incoming)
        else:
            attend = self._attend()
            scores = torch.einsum("bpaw,sw->bpsa", static.to(attend.dtype), attend)
        return Prepared(
            static=static,
            scores=scores,  # (batch, 1, 2, arcs)
            incoming=incoming[:, None],  # (batch, 1, arcs, arcs)
            capacity=batch.capacity[:, None],  # (batch, 1)
            demand=batch.demand[:, None],  # (batch, 1, arcs)
            demand_once=batch.demand_once[:, None],  # (batch, 1, arcs)
            pairs=pairs,
        )

    def visible(self, prepared: Prepared, state: State) -> Tensor:
        """Return the arcs that others attend to: unserved, the previous one, the depot."""
        return visible_arcs(state)

    def embed(self, prepared: Prepared, state: State, visible: Tensor | None) -> Tensor:
        """Compute what the encoder starts from, (batch, samples, arcs, width)."""
        changing = changing_features(prepared, state)  # (batch, samples, arcs, columns)
        hidden: Tensor = prepared.static + self.changing(changing)
        # (batch, samples, arcs, width)
        if prepared.scores is None:
            return hidden
        # The scores follow the changing features as the embeddings do.
        weight = self.changing.weight.to(prepared.scores.dtype)  # (width, columns)
        slopes = (self._attend() @ weight).t()[..., None]  # (columns, 2, 1)
        # Not a matrix product: its gradient would be a very long and thin one.
        scores = prepared.scores
        for column, slope in zip(changing.to(slopes.dtype).unbind(-1), slopes, strict=True):
            scores = scores + column[:, :, None] * slope  # (batch, samples, 2, arcs)
        gathered = self._graph_attention(hidden, scores, prepared.incoming, visible)
        # The skip: a mean over all arcs blurs what an arc itself is.
        result: Tensor = functional.elu(gathered) + hidden
        return result

    def _graph_attention(
        self, hidden: Tensor, scores: Tensor, incoming: Tensor, visible: Tensor | None
    ) -> Tensor:
        """Compute what each arc gathers from all, (batch, samples, arcs, width).

        The score of arc i for arc j is LeakyReLU(a1 . h_i + a2 . h_j + w * cost of driving
        from j to i), as in Eq. 5 of the paper.
        """
        attends, attended = scores.unbind(2)  # (batch, samples, arcs) each
        if visible is not None:
            attended = attended.masked_fill(~visible, -math.inf)
        values, over = hidden, -hidden.shape[2] % 8
        if torch.is_grad_enabled() and hidden.is_cuda and over:
            # The product below and its gradients are slow unless rows have whole words.
            attended = functional.pad(attended, (0, over), value=-math.inf)
            incoming = functional.pad(incoming, (0, over))
            values = functional.pad(values, (0, 0, 0, over))
        pairs = attends[..., None] + attended[..., None, :]  # (batch, samples, arcs, arcs)
        edge = self.attend_edge.to(pairs.dtype)
        pairs = torch.addcmul(pairs, incoming.to(pairs.dtype), edge)
        pairs = functional.leaky_relu(pairs, 0.2, inplace=True)
        return pairs.softmax(-1).to(hidden.dtype) @ values

    def _attend(self) -> Tensor:
        """Return a1 and a2 of the graph attention, (2, width)."""
        return at_least_single(torch.cat([self.attend_to, self.attend_from]))

    def point(
        self, hidden: Tensor, prepared: Prepared, state: State, mask: Tensor
    ) -> Tensor:
        """Compute the logits of `forward` from the embeddings of `encode`."""
        width, dtype = self.config.width, hidden.dtype
        wide = torch.promote_types(dtype, torch.float32)
        visible = self.visible(prepared, state)  # (batch, samples, arcs)
        weight = visible.to(wide) / visible.sum(-1, keepdim=True)
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
