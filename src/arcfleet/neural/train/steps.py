"""A training step: from plans to states and choices, from logits to a loss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import torch
from torch.nn import functional

from arcfleet.neural.batch import as_instances, flip_axes, shrink
from arcfleet.neural.env import State, action_mask
from arcfleet.neural.model import through_layers
from arcfleet.neural.train.data import back_inverse, backwards, of_arcs

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Generator, Tensor

    from arcfleet.neural.batch import ArcBatch, Bucket
    from arcfleet.neural.train.config import LabelOrder
    from arcfleet.neural.train.data import LabelledPlans
    from arcfleet.neural.train.distributed import World

    Function = TypeVar("Function", bound=Callable[..., Tensor])

# Largest number of graphs of one function for each data set: lengths of states, and what
# differs beside them.
_GRAPHS = 16


class LearningForm:
    """A DaAM in training: compiled in parts, whose graphs the layers share.

    With a number of data sets the model is compiled, for so many shapes.
    """

    def __init__(self, model: Any, data_sets: int | None = None) -> None:
        self._begin, self._point, self._layers = model.begin, model.point, model.encoder
        if data_sets is not None:
            allow_graphs(_GRAPHS * data_sets)
            self._begin = torch.compile(model.begin, dynamic=False)
            self._point = torch.compile(model.point, dynamic=False)
            self._layers = [torch.compile(layer, dynamic=False) for layer in model.encoder]

    def logits(
        self, batch: ArcBatch, state: State, *, padded: bool, capacity_mask: bool = True
    ) -> Tensor:
        """Compute the logits of all arcs, (batch, samples, arcs), -inf where masked."""
        mask = action_mask(batch, state, capacity_mask=capacity_mask)
        prepared, embedding, visible = self._begin(batch, state, padded)
        hidden = through_layers(self._layers, embedding, visible, prepared)
        logits: Tensor = self._point(hidden, prepared, state, mask)
        return logits


def compiled_by_scale(function: Function, shapes: int) -> Function:
    """Compile a function that is called with so many shapes, each a graph of its own."""
    allow_graphs(2 * shapes)
    compiled: Any = torch.compile(function, dynamic=False)
    return compiled  # type: ignore[no-any-return]


def allow_graphs(count: int) -> None:
    """Let torch.compile make so many graphs of one function; its fallback is silent."""
    from torch._dynamo import config as compiler

    compiler.recompile_limit = max(compiler.recompile_limit, count)


class Sequences(NamedTuple):
    """Plans as sequences of decisions, each route ending with arc 0."""

    arcs: Tensor  # decisions, (batch, most steps), 0 after the last
    remaining: Tensor  # capacity before each decision, (batch, most steps)
    steps: Tensor  # number of decisions, (batch,)


class Minibatch(NamedTuple):
    """States and the choices to imitate."""

    batch: ArcBatch  # one instance for each state where served arcs are left out
    state: State  # as `states_at` returns them
    choice: Tensor
    weight: Tensor  # of each choice, 1 in the mean, of the shape of `choice`
    capacity_mask: bool = True  # False for giant tours

    def shard(self, world: World) -> Minibatch:
        """Return the part of one process."""
        if world.size == 1:
            return self
        return self._replace(
            batch=world.shard_batch(self.batch),
            state=State(*map(world.shard, self.state)),
            choice=world.shard(self.choice),
            weight=world.shard(self.weight),
        )


def sequences(
    batch: ArcBatch, plans: LabelledPlans, label_order: LabelOrder, generator: Generator
) -> Sequences:
    """Lay out labelled plans as sequences of decisions."""
    arcs = plans.arcs.long()  # (batch, routes, longest)
    if label_order == "farthest":
        drawn = torch.rand(
            arcs.shape[:2], dtype=torch.float64, device=arcs.device, generator=generator
        )
        reverse = plans.reversible & (drawn < 0.5)  # (batch, routes)
        arcs = torch.where(reverse[..., None], backwards(batch, arcs), arcs)
        arcs = _farthest_first(batch, arcs)
    length = (arcs > 0).sum(2)  # (batch, routes)
    taken = length + (length > 0)  # with the return
    first = taken.cumsum(1) - taken
    # One more place for the return; what is neither goes to a slot that is cut off.
    arcs = functional.pad(arcs, (0, 1))  # (batch, routes, longest + 1)
    place = torch.arange(arcs.shape[2], device=arcs.device)
    slot = torch.where(place < taken[..., None], first[..., None] + place, plans.most_steps)
    flat = _into_slots(arcs.flatten(1), slot.flatten(1), plans.most_steps)
    remaining = remaining_of_routes(batch, flat[:, None])[:, 0]
    return Sequences(arcs=flat, remaining=remaining, steps=taken.sum(1))


def _farthest_first(batch: ArcBatch, arcs: Tensor) -> Tensor:
    rows = torch.arange(len(batch), device=batch.start.device)[:, None]
    way = batch.distance[rows, batch.end[:, :1].long(), batch.start.long()]
    away = way.minimum(way.gather(1, batch.inverse))  # to the nearer end, (batch, arcs)
    reach = of_arcs(away, arcs).masked_fill(arcs == 0, -1).amax(2)  # (batch, routes)
    # Empty routes reach -1, so they come last.
    ranked = (-reach.double()).argsort(dim=1, stable=True)
    return arcs.gather(1, ranked[..., None].expand_as(arcs))


def _into_slots(values: Tensor, slot: Tensor, count: int) -> Tensor:
    """Scatter values (batch, places) into (batch, count); slot `count` is dropped."""
    empty = values.new_zeros((len(values), count + 1))
    return empty.scatter(1, slot, values)[:, :count]


def giant_tours(plans: Sequences) -> Sequences:
    """Return the same services as giant tours, which return only at the end.

    The remaining capacity is that of the routes, so that the states are those that the
    model knows: where a plan returns to the depot, its giant tour goes on to the next route
    with the load of the last.
    """
    serves = plans.arcs != 0
    most = plans.arcs.shape[1]
    slot = torch.where(serves, serves.cumsum(1) - 1, most)
    returned = functional.pad(~serves, (1, 0))[:, :-1]
    at_return = functional.pad(plans.remaining, (1, 0))[:, :-1]
    remaining = torch.where(returned, at_return, plans.remaining)
    return Sequences(
        arcs=_into_slots(plans.arcs, slot, most),
        remaining=_into_slots(remaining, slot, most),
        steps=serves.sum(1) + 1,
    )


def draw_minibatch(
    batch: ArcBatch,
    plans: LabelledPlans,
    *,
    label_order: LabelOrder,
    decision_steps: int,
    bucket: Bucket | None,
    flip: bool,
    generator: Generator,
    capacity_mask: bool = True,
) -> Minibatch:
    """Sample decision steps of labelled plans, each plan and instance augmented anew."""
    if flip:
        batch = flip_axes(batch, generator)
    laid_out = sequences(batch, plans, label_order, generator)
    if not capacity_mask:
        laid_out = giant_tours(laid_out)
    arcs, remaining = laid_out.arcs[:, None], laid_out.remaining[:, None]
    count = laid_out.steps - 1  # the last return is no choice
    first = torch.zeros_like(count)
    if bucket is not None:
        first, count = steps_in_bucket(laid_out.arcs, count, bucket)
    drawn = draw_decision_steps(count, decision_steps, generator) + first[:, None]
    state, choice = states_at(batch, arcs, drawn[:, None], remaining)
    if bucket is None:
        weight = torch.ones(choice.shape, device=choice.device)
        return Minibatch(batch, state, choice, weight, capacity_mask)
    state, rows = as_instances(state)
    small = shrink(batch, state, bucket.length, rows)
    # A plan counts by its decisions in the bucket, perhaps none.
    weight = count.repeat_interleave(decision_steps)[:, None].float()
    return Minibatch(
        batch=small.batch,
        state=small.state,
        choice=small.slot.gather(1, choice.reshape(-1, 1)),
        weight=weight / weight.mean().clamp(min=1e-9),
        capacity_mask=capacity_mask,
    )


def draw_decision_steps(count: Tensor, number: int, generator: Generator) -> Tensor:
    """Sample decision steps of every plan, (plans, number), evenly spread over `count`.

    Stratified: each comes from its own part of the plan, so together they are uniform, and
    rarely the same. A plan without decisions gives step 0.
    """
    where = torch.rand(
        (len(count), number), device=count.device, dtype=torch.float64, generator=generator
    )
    fraction = (torch.arange(number, device=count.device) + where) / number
    count = count[:, None]
    return (fraction * count).long().minimum(count - 1).clamp(min=0)


def steps_in_bucket(arcs: Tensor, count: Tensor, bucket: Bucket) -> tuple[Tensor, Tensor]:
    """Return the first decision step of a length bucket in each plan, and their number."""
    serves = arcs != 0
    left = serves.flip(-1).cumsum(-1).flip(-1)  # tasks before each decision, (..., steps)
    first = (left > bucket.most).sum(-1)
    stop = (left > bucket.above).sum(-1).minimum(count)
    return first, (stop - first).clamp(min=0)


def num_choices(arcs: Tensor) -> Tensor:
    """Count the decisions of rollouts up to the last service, (batch, samples)."""
    number = torch.arange(1, arcs.shape[-1] + 1, device=arcs.device)
    return ((arcs != 0) * number).amax(-1)


def draw_choices(
    arcs: Tensor, decision_steps: int, generator: Generator, bucket: Bucket | None = None
) -> tuple[Tensor, Tensor]:
    """Sample decision steps of rollouts, (batch, samples, steps), in a length bucket.

    Also returned is the number of decisions in the bucket, (batch, samples). The mean over
    the sampled steps, times that, is in expectation the sum over all decisions of the
    bucket. A rollout that has none is sampled all the same, and must not count.
    """
    count = num_choices(arcs)
    first = torch.zeros_like(count)
    if bucket is not None:
        first, count = steps_in_bucket(arcs, count, bucket)
    within = draw_decision_steps(count.flatten(), decision_steps, generator)
    return within.view(*arcs.shape[:2], decision_steps) + first[..., None], count


def states_at(
    batch: ArcBatch, arcs: Tensor, decision_steps: Tensor, remaining: Tensor | None = None
) -> tuple[State, Tensor]:
    """Return the states of plans at some decision steps, and the chosen arcs.

    Plans are (batch, samples, steps) arcs from the empty plan on, `decision_steps` (batch,
    samples, decision steps); what is returned is (batch, samples * decision steps, ...).
    `remaining`, (batch, samples, steps), is the capacity before each decision; None for
    plans built under the capacity.
    """
    size, samples, steps = arcs.shape
    time = torch.arange(steps, device=arcs.device).expand_as(arcs)
    # When each arc is served; the slot of the depot takes all returns and means nothing.
    when = torch.zeros(
        (size, samples, batch.num_arcs), dtype=torch.int64, device=arcs.device
    )
    when = when.scatter(2, arcs, time).scatter(2, back_inverse(batch, arcs), time)
    unserved = (when[:, :, None] >= decision_steps[..., None]) & batch.real[:, None, None]
    unserved[..., 0] = False
    before = functional.pad(arcs, (1, 0))[..., :-1]
    if remaining is None:
        remaining = remaining_of_routes(batch, arcs)
    state = State(
        unserved=unserved.flatten(1, 2),
        previous=before.gather(2, decision_steps).flatten(1),
        remaining=remaining.gather(2, decision_steps).flatten(1),
    )
    return state, arcs.gather(2, decision_steps).flatten(1)


def remaining_of_routes(batch: ArcBatch, arcs: Tensor) -> Tensor:
    """Compute the remaining capacity before each decision of plans with returns."""
    load = of_arcs(batch.demand, arcs).cumsum(2)
    # Loads never fall, so the load at the last visit to the depot is the largest yet.
    unloaded = torch.where(arcs == 0, load, 0).cummax(2).values
    carried = functional.pad(load - unloaded, (1, 0))[..., :-1]
    return (batch.capacity[:, None, None] - carried).to(batch.capacity.dtype)


def imitation_loss(model: LearningForm, minibatch: Minibatch, padded: bool) -> Tensor:
    """Compute the weighted mean cross-entropy of the choices among the masked arcs."""
    batch, state, choice, weight, capacity_mask = minibatch
    logits = model.logits(batch, state, padded=padded, capacity_mask=capacity_mask)
    losses = functional.cross_entropy(
        logits.flatten(0, 1), choice.flatten(), reduction="none"
    )
    return (losses * weight.flatten()).mean()


def log_probabilities(logits: Tensor, choice: Tensor, temperature: float = 1.0) -> Tensor:
    """Compute the log-probability of each choice, (batch, samples)."""
    chosen = (logits / temperature).log_softmax(-1).gather(-1, choice[..., None])
    return chosen[..., 0]


def kl_divergence(logits: Tensor, reference: Tensor) -> Tensor:
    """Compute the Kullback-Leibler divergence from a reference policy, (batch, samples).

    Both are logits of the same states, and may learn; the result is in nats.
    """
    now = logits.log_softmax(-1)
    # Where an arc is masked, both have -inf: no difference.
    apart = (now - reference.log_softmax(-1)).masked_fill(now == -math.inf, 0)
    return (now.exp() * apart).sum(-1)


def reinforce_loss(log_probability: Tensor, advantage: Tensor) -> Tensor:
    """Compute the loss of REINFORCE (Williams 1992)."""
    return -(log_probability * advantage).mean()


def leave_one_out(costs: Tensor, k: int = 1) -> Tensor:
    """Compute the advantage of each sample beside the others, (batch, samples).

    For k = 1 it is the mean cost of the other samples less the sample's own (Kool et al.
    2019). For more it is k times how much cheaper the best of k samples is in the mean, if
    the sample is one of them, than if it is not: REINFORCE then follows the gradient of the
    expected cost of the best of k (max@k).
    """
    samples = costs.shape[1]
    if k == 1:
        return (costs.mean(1, keepdim=True) - costs) * (samples / (samples - 1))
    # The others of each sample, cheapest first, (batch, samples, samples - 1).
    is_other = ~torch.eye(samples, dtype=torch.bool, device=costs.device)
    others = costs[:, None].expand(-1, samples, -1)[:, is_other]
    others = others.view(-1, samples, samples - 1).sort(-1).values
    without = (others * _first_of(samples - 1, k).to(others)).sum(-1)
    best = torch.minimum(others, costs[..., None])
    within = (best * _first_of(samples - 1, k - 1).to(others)).sum(-1)
    return k * (without - within)


def _first_of(count: int, drawn: int) -> Tensor:
    """Return the probability of each of `count` ranks to be the first of those drawn."""
    choices = math.comb(count, drawn)
    # Whole numbers of any length: only their quotients are sure to be floats.
    chances = [math.comb(count - 1 - rank, drawn - 1) / choices for rank in range(count)]
    return torch.tensor(chances, dtype=torch.float64)
