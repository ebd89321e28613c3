"""Losses of reinforcement: from states, choices and what they were worth to gradients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import torch
from torch.nn import functional

from arcfleet.neural.batch import as_instances, flip_axes, shrink
from arcfleet.neural.env import State, action_mask
from arcfleet.neural.train.data import back_inverse, backwards, of_arcs

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Generator, Tensor

    from arcfleet.neural.batch import ArcBatch, Bucket
    from arcfleet.neural.model import AttentionModel
    from arcfleet.neural.train.config import PretrainConfig
    from arcfleet.neural.train.data import LabelledPlans

    Function = TypeVar("Function", bound=Callable[..., Tensor])


# Of a set, at most: lengths of states, and what differs beside them.
_SHAPES = 16


class LearningForm:
    """A model that learns.

    Parameters
    ----------
    model
        In the precision to work in.
    compiled
        Whether to use torch.compile.
    """

    def __init__(self, model: AttentionModel, *, compiled: bool = False) -> None:
        self._begin, self._point = model.begin, model.point
        self._layers: list[Callable[..., Tensor]] = list(model.encoder)
        if compiled:
            self._begin = torch.compile(model.begin, dynamic=False)
            self._point = torch.compile(model.point, dynamic=False)
            self._layers = [torch.compile(layer, dynamic=False) for layer in model.encoder]

    def logits(
        self, batch: ArcBatch, state: State, allowed: Tensor, *, padded: bool
    ) -> Tensor:
        """Give the logits of each arc, (batch, copies, arcs), -inf where not allowed.

        Parameters
        ----------
        batch, padded
            As `AttentionModel.prepare` takes them.
        state, allowed
            As `AttentionModel.forward` does.
        """
        prepared, embedding, present = self._begin(batch, state, padded)
        real = None
        if present is not None:
            real = present.expand(embedding.shape[:3]).flatten(0, 1)  # (rows, arcs)
        flat = embedding.flatten(0, 1)  # (rows, arcs, width)
        for layer in self._layers:
            flat = layer(flat, real)
        return self._point(flat.view(embedding.shape), prepared, state, allowed)


def learning_form(model: AttentionModel, config: PretrainConfig, sets: int) -> LearningForm:
    """Give the form of a model to learn from so many sets, compiled if it shall be."""
    if config.compile:
        allow_graphs(_SHAPES * sets)
    return LearningForm(model, compiled=config.compile)


def compiled_by_scale(function: Function, shapes: int) -> Function:
    """Compile what is called with so many kinds of shapes, each a graph of its own."""
    allow_graphs(2 * shapes)
    compiled: Any = torch.compile(function, dynamic=False)
    return compiled  # type: ignore[no-any-return]


def allow_graphs(count: int) -> None:
    """Let torch.compile make so many graphs of one function.

    Sizes that vary within a graph would make it slower, and giving up after some graphs
    would be silent.
    """
    from torch._dynamo import config as compiler

    compiler.recompile_limit = max(compiler.recompile_limit, count)


RouteOrder = Literal[
    "farthest", "nearest", "random", "largest-load", "lightest-last", "angle", "as-labelled"
]

ROUTE_ORDERS: tuple[RouteOrder, ...] = (
    *("farthest", "nearest", "random", "largest-load"),
    *("lightest-last", "angle", "as-labelled"),
)

Directions = Literal["random", "near-first", "far-first", "as-labelled"]

DIRECTIONS: tuple[Directions, ...] = ("random", "near-first", "far-first", "as-labelled")


class Sequences(NamedTuple):
    """Plans as the decisions that build them, each route ending with arc 0.

    Parameters
    ----------
    arcs
        The decisions, (batch, most steps), 0 after the last.
    remaining
        Capacity left before each decision, (batch, most steps).
    steps
        How many decisions there are, (batch,).
    """

    arcs: Tensor
    remaining: Tensor
    steps: Tensor


class Lesson(NamedTuple):
    """What to learn from.

    Parameters
    ----------
    batch
        The instances, one for each moment where served arcs are left out.
    state, choice
        As those of `state_at`.
    weight
        How much each choice counts, 1 in the mean, of the shape of `choice`.
    capacity_mask
        Whether the capacity counts, as `action_mask` takes it.
    """

    batch: ArcBatch
    state: State
    choice: Tensor
    weight: Tensor
    capacity_mask: bool = True


def sequences(
    batch: ArcBatch,
    plans: LabelledPlans,
    *,
    route_order: RouteOrder,
    directions: Directions,
    generator: Generator,
) -> Sequences:
    """Lay out plans as sequences of decisions.

    Parameters
    ----------
    batch, plans
        The instances and a plan of each.
    route_order
        "farthest" brings first the route with the task farthest from the depot,
        "nearest" last; "largest-load" the fullest first; "lightest-last" the emptiest
        last and the others at random; "angle" goes round the depot in the plane of the
        first two MDS coordinates.
    directions
        Which reversible routes are driven backwards: half of them at random, or so that
        the end nearer to (farther from) the depot comes first.
    generator
        Of the random choices; on the device of the batch.
    """
    arcs = plans.arcs.long()  # (batch, routes, longest)
    turn = plans.reversible & _turned(batch, arcs, directions, generator)
    arcs = torch.where(turn[..., None], backwards(batch, arcs), arcs)
    empty = (arcs == 0).all(2)
    key = _order_key(batch, arcs, route_order, generator).masked_fill(empty, torch.inf)
    ranked = key.argsort(dim=1, stable=True)  # (batch, routes)
    arcs = arcs.gather(1, ranked[..., None].expand_as(arcs))

    length = (arcs > 0).sum(2)  # (batch, routes)
    taken = length + (length > 0)  # with the return
    first = taken.cumsum(1) - taken
    # One more place for the return; what is neither goes to a slot that is cut off.
    arcs = torch.nn.functional.pad(arcs, (0, 1))  # (batch, routes, longest + 1)
    place = torch.arange(arcs.shape[2], device=arcs.device)
    slot = torch.where(
        place < taken[..., None], first[..., None] + place, plans.most_steps
    ).flatten(1)
    demand = of_arcs(batch.demand, arcs)
    remaining = batch.capacity[:, None, None] - (demand.cumsum(2) - demand)
    return Sequences(
        arcs=_into_slots(arcs, slot, plans.most_steps),
        remaining=_into_slots(remaining.to(batch.capacity.dtype), slot, plans.most_steps),
        steps=taken.sum(1),
    )


def without_returns(plans: Sequences) -> Sequences:
    """Give the same services as one tour, which goes home only at the end.

    So plans are built where the capacity does not count. What is left of it is that of the
    routes, so that the same states are shown as with the capacity: where a plan goes home,
    its tour goes on to the next route as full as it is.
    """
    serves = plans.arcs != 0
    most = plans.arcs.shape[1]
    slot = torch.where(serves, serves.cumsum(1) - 1, most)
    returned = torch.nn.functional.pad(~serves, (1, 0))[:, :-1]
    at_return = torch.nn.functional.pad(plans.remaining, (1, 0))[:, :-1]
    remaining = torch.where(returned, at_return, plans.remaining)
    return Sequences(
        arcs=_into_slots(plans.arcs[:, None], slot, most),
        remaining=_into_slots(remaining[:, None], slot, most),
        steps=serves.sum(1) + 1,
    )


def draw_lesson(
    batch: ArcBatch,
    plans: LabelledPlans,
    *,
    route_order: RouteOrder,
    directions: Directions,
    moments: int,
    bucket: Bucket | None,
    flip: bool,
    generator: Generator,
    capacity_mask: bool = True,
) -> Lesson:
    """Draw moments of plans, each laid out and each instance looked at anew.

    Parameters
    ----------
    batch, plans, route_order, directions, generator
        As those of `sequences`.
    moments
        Of each plan.
    bucket
        Which moments, their served arcs left out; None for any, with all arcs.
    flip
        Whether the MDS axes are flipped at random.
    capacity_mask
        Whether plans are built under the capacity; else as one tour, by
        `without_returns`.
    """
    if flip:
        batch = flip_axes(batch, generator)
    laid_out = sequences(
        batch, plans, route_order=route_order, directions=directions, generator=generator
    )
    if not capacity_mask:
        laid_out = without_returns(laid_out)
    if bucket is None:
        drawn = draw_moments(laid_out.steps, moments, generator)
        state, choice = state_at(batch, laid_out, drawn)
        weight = torch.ones(choice.shape, device=choice.device)
        return Lesson(batch, state, choice, weight, capacity_mask)
    choices = laid_out.steps - 1  # but for the last return
    first, count = moments_of(laid_out.arcs, choices, bucket)
    drawn = draw_moments(count + 1, moments, generator) + first[:, None]
    state, choice = state_at(batch, laid_out, drawn)
    state, rows = as_instances(state)
    small = shrink(batch, state, bucket.length, rows)
    # A plan counts by the decisions that it has on the bucket, perhaps none.
    weight = count.repeat_interleave(moments)[:, None].float()
    return Lesson(
        batch=small.batch,
        state=small.state,
        choice=small.slot.gather(1, choice.reshape(-1, 1)),
        weight=weight / weight.mean().clamp(min=1e-9),
        capacity_mask=capacity_mask,
    )


def draw_moments(steps: Tensor, copies: int, generator: Generator) -> Tensor:
    """Draw moments of every plan, (batch, copies), evenly spread over its decisions.

    Each copy draws from its own share of the plan: together they are uniform, and rarely
    the same. The last return is left out: there is no choice in it.
    """
    where = torch.rand(
        (len(steps), copies), device=steps.device, dtype=torch.float64, generator=generator
    )
    share = (torch.arange(copies, device=steps.device) + where) / copies
    choices = steps[:, None] - 1
    return (share * choices).long().minimum(choices - 1).clamp(min=0)


def moments_of(arcs: Tensor, choices: Tensor, bucket: Bucket) -> tuple[Tensor, Tensor]:
    """Give the first moment of a bucket in each plan, and how many there are.

    Parameters
    ----------
    arcs
        The decisions of plans, (..., steps).
    choices
        How many of them count, (...).
    bucket
        Which moments. A plan that has none, having fewer tasks, gives its start and 0.
    """
    serves = arcs != 0
    left = serves.flip(-1).cumsum(-1).flip(-1)  # tasks before each decision, (..., steps)
    first = (left > bucket.most).sum(-1)
    stop = (left > bucket.above).sum(-1).minimum(choices)
    return first, (stop - first).clamp(min=0)


def state_at(batch: ArcBatch, plans: Sequences, moments: Tensor) -> tuple[State, Tensor]:
    """Give where plans stood, and what came next.

    Parameters
    ----------
    batch, plans
        The instances, and a plan of each.
    moments
        Decisions made before, (batch, copies).

    Returns
    -------
    state
        (batch, copies, ...).
    choice
        The arc that the plan goes on with, (batch, copies).
    """
    count = plans.arcs.shape[1]
    time = torch.arange(count, device=moments.device).expand_as(plans.arcs)
    # When each arc is served; the slot of the depot takes all returns and means nothing.
    when = torch.zeros(batch.real.shape, dtype=torch.int64, device=moments.device)
    when = when.scatter(1, plans.arcs, time)
    inverses = back_inverse(batch, plans.arcs[:, None])[:, 0]
    when = when.scatter(1, inverses, time)  # (batch, arcs)
    unserved = batch.real[:, None] & (when[:, None] >= moments[..., None])
    unserved[..., 0] = False
    previous = plans.arcs.gather(1, (moments - 1).clamp(min=0))
    state = State(
        unserved=unserved,
        previous=torch.where(moments > 0, previous, 0),
        remaining=plans.remaining.gather(1, moments),
    )
    return state, plans.arcs.gather(1, moments)


def _turned(
    batch: ArcBatch, arcs: Tensor, directions: Directions, generator: Generator
) -> Tensor:
    """Say which routes to drive backwards if they can be, (batch, routes)."""
    if directions == "as-labelled":
        return torch.zeros(arcs.shape[:2], dtype=torch.bool, device=arcs.device)
    if directions == "random":
        return _uniform(arcs, generator) < 0.5
    depot = batch.start[:, :1].long()  # (batch, 1)
    rows = torch.arange(len(batch), device=arcs.device)[:, None]
    last = arcs.gather(2, ((arcs > 0).sum(2, keepdim=True) - 1).clamp(min=0))
    starts = of_arcs(batch.start, arcs[..., :1])[..., 0].long()
    ends = of_arcs(batch.end, last)[..., 0].long()
    out = batch.distance[rows, depot, starts]  # (batch, routes)
    home = batch.distance[rows, ends, depot]
    return home < out if directions == "near-first" else home > out


def _order_key(
    batch: ArcBatch, arcs: Tensor, route_order: RouteOrder, generator: Generator
) -> Tensor:
    """Give a number by which to sort the routes, (batch, routes)."""
    served = arcs > 0
    if route_order == "random":
        return _uniform(arcs, generator)
    if route_order == "as-labelled":
        return torch.arange(arcs.shape[1], device=arcs.device).expand_as(arcs[..., 0]) * 1.0
    if route_order in ("largest-load", "lightest-last"):
        load = of_arcs(batch.demand, arcs).sum(2)
        if route_order == "largest-load":
            return -load.double()
        lightest = torch.where(served.any(2), load, load.max() + 1).argmin(1, keepdim=True)
        return _uniform(arcs, generator).scatter(1, lightest, 2.0)
    if route_order == "angle":
        return _angle(batch, arcs)
    reach = of_arcs(_away(batch), arcs).masked_fill(~served, -1).amax(2).double()
    return -reach if route_order == "farthest" else reach


def _away(batch: ArcBatch) -> Tensor:
    """Give the way from the depot to the nearer end of each task, (batch, arcs)."""
    rows = torch.arange(len(batch), device=batch.start.device)[:, None]
    way = batch.distance[rows, batch.end[:, :1].long(), batch.start.long()]
    return way.minimum(way.gather(1, batch.inverse))


def _angle(batch: ArcBatch, arcs: Tensor) -> Tensor:
    """Give the direction in which the middle of each route lies, (batch, routes)."""
    # The first two coordinates of the start; without MDS there is no plane.
    plane = batch.features[..., 3:5].double()
    served = (arcs > 0).double()
    count = served.sum(2).clamp(min=1)
    across, up = (
        (of_arcs(axis - axis[:, :1], arcs) * served).sum(2) / count
        for axis in plane.unbind(-1)
    )
    return torch.atan2(up, across)


def _uniform(arcs: Tensor, generator: Generator) -> Tensor:
    return torch.rand(
        arcs.shape[:2], dtype=torch.float64, device=arcs.device, generator=generator
    )


def _into_slots(values: Tensor, slot: Tensor, count: int) -> Tensor:
    """Put (batch, routes, places) where `slot` says, (batch, count)."""
    empty = values.new_zeros((len(values), count + 1))
    return empty.scatter(1, slot, values.flatten(1))[:, :count]


def num_choices(arcs: Tensor) -> Tensor:
    """Count the decisions of plans up to the last service, (batch, copies).

    Parameters
    ----------
    arcs
        As in a rollout from the empty plan, (batch, copies, steps). After the last
        service the way home is no choice.
    """
    number = torch.arange(1, arcs.shape[-1] + 1, device=arcs.device)
    return ((arcs != 0) * number).amax(-1)


def draw_choices(
    arcs: Tensor, moments: int, generator: Generator, bucket: Bucket | None = None
) -> tuple[Tensor, Tensor]:
    """Draw moments of sampled plans.

    Parameters
    ----------
    arcs
        As those of `num_choices`.
    moments
        Of each plan.
    generator
        On the device of the plans.
    bucket
        Which moments; None for any.

    Returns
    -------
    drawn
        (batch, copies, moments). Their mean, times `count`, is in the mean the sum over
        all decisions of the bucket.
    count
        Decisions of the bucket, (batch, copies). A plan that has none is drawn from all
        the same, and must not count.
    """
    count = num_choices(arcs)
    first = torch.zeros_like(count)
    if bucket is not None:
        first, count = moments_of(arcs, count, bucket)
    # One more for the way home, which is never drawn.
    within = draw_moments(count.flatten() + 1, moments, generator)
    return within.view(*arcs.shape[:2], moments) + first[..., None], count


def states_at(
    batch: ArcBatch, arcs: Tensor, moments: Tensor, room: Tensor | None = None
) -> tuple[State, Tensor]:
    """Give where sampled plans stood, and what they chose.

    Parameters
    ----------
    batch
        The instances.
    arcs
        As in a rollout from the empty plan, (batch, copies, steps).
    moments
        Decisions made before, (batch, copies, moments).
    room
        What was left of the capacity before each decision, (batch, copies, steps), as
        `remaining_capacity` gives it; None for plans that were built under the capacity.

    Returns
    -------
    state
        (batch, copies * moments, ...).
    choice
        (batch, copies * moments).
    """
    size, copies, steps = arcs.shape
    time = torch.arange(steps, device=arcs.device).expand_as(arcs)
    # When each arc is served; the slot of the depot takes all returns and means nothing.
    when = torch.zeros(
        (size, copies, batch.num_arcs), dtype=torch.int64, device=arcs.device
    )
    when = when.scatter(2, arcs, time).scatter(2, back_inverse(batch, arcs), time)
    unserved = (when[:, :, None] >= moments[..., None]) & batch.real[:, None, None]
    unserved[..., 0] = False
    before = functional.pad(arcs, (1, 0))[..., :-1]
    if room is None:
        room = _room(batch, arcs)
    state = State(
        unserved=unserved.flatten(1, 2),
        previous=before.gather(2, moments).flatten(1),
        remaining=room.gather(2, moments).flatten(1),
    )
    return state, arcs.gather(2, moments).flatten(1)


def _room(batch: ArcBatch, arcs: Tensor) -> Tensor:
    """Give the capacity that is left before each decision, (batch, copies, steps)."""
    load = of_arcs(batch.demand, arcs).cumsum(2)
    # Loads never fall, so the load at the last visit to the depot is the largest yet.
    unloaded = torch.where(arcs == 0, load, 0).cummax(2).values
    carried = functional.pad(load - unloaded, (1, 0))[..., :-1]
    return (batch.capacity[:, None, None] - carried).to(batch.capacity.dtype)


def logits_of(
    model: LearningForm,
    batch: ArcBatch,
    state: State,
    *,
    padded: bool,
    capacity_mask: bool = True,
) -> Tensor:
    """Give the logits of all arcs, (batch, copies, arcs), -inf where not allowed.

    Parameters
    ----------
    model
        What decides.
    batch, state
        The instances, and where plans of them stand, (batch, copies, ...).
    padded
        Whether there may be padding.
    capacity_mask
        Whether the capacity counts.
    """
    allowed = action_mask(batch, state, capacity_mask=capacity_mask)
    return model.logits(batch, state, allowed, padded=padded)


def log_probabilities(logits: Tensor, choice: Tensor, temperature: float = 1.0) -> Tensor:
    """Give the log-probability of each choice, (batch, copies).

    Parameters
    ----------
    logits
        As `logits_of` gives them.
    choice
        Arcs, (batch, copies).
    temperature
        By which logits are divided, as where the choices were sampled.
    """
    chosen = (logits / temperature).log_softmax(-1).gather(-1, choice[..., None])
    return chosen[..., 0]


def divergence(logits: Tensor, first: Tensor) -> Tensor:
    """Say how far a policy has left another, in nats, (batch, copies).

    The Kullback-Leibler divergence of each decision, from the logits of both.
    """
    now = logits.log_softmax(-1)
    # Where neither may choose, both have -inf: no difference.
    apart = (now - first.log_softmax(-1)).masked_fill(now == -math.inf, 0)
    return (now.exp() * apart).sum(-1)


def reinforce_loss(log_probability: Tensor, worth: Tensor) -> Tensor:
    """Give the loss of REINFORCE (Williams 1992): its gradient raises what was worth it.

    Parameters
    ----------
    log_probability
        Of the choices, with a gradient.
    worth
        Advantage of each, times what it counts.
    """
    return -(log_probability * worth).mean()


def clipped_loss(
    log_probability: Tensor, old: Tensor, advantage: Tensor, weight: Tensor, clip: float
) -> Tensor:
    """Give the loss of PPO-clip (Schulman et al. 2017).

    Parameters
    ----------
    log_probability
        Of the choices, with a gradient.
    old
        Their log-probability under the policy that made them.
    advantage, weight
        What each was worth, and how much it counts.
    clip
        How far the ratio of probabilities may pay to leave 1.
    """
    ratio = (log_probability - old).exp()
    bounded = ratio.clamp(1 - clip, 1 + clip)
    return -(weight * torch.minimum(ratio * advantage, bounded * advantage)).mean()


def leave_one_out(costs: Tensor, best_of: int = 1) -> Tensor:
    """Say what each copy is worth beside the others, (batch, copies).

    Times `best_of`, how much cheaper the best of so many copies is in the mean, if the copy
    is one of them, than if it is not. For one this is how much cheaper it is than the mean
    of the others; with more of them, what counts is to be better than most. It makes
    REINFORCE follow the gradient of the expected cost of the best of so many samples.

    Parameters
    ----------
    costs
        Of the copies, (batch, copies), more than `best_of`.
    best_of
        Copies of which only the best counts.
    """
    copies = costs.shape[1]
    if best_of == 1:
        return (costs.mean(1, keepdim=True) - costs) * (copies / (copies - 1))
    # The others of each copy, cheapest first, (batch, copies, copies - 1).
    is_other = ~torch.eye(copies, dtype=torch.bool, device=costs.device)
    others = costs[:, None].expand(-1, copies, -1)[:, is_other]
    others = others.view(-1, copies, copies - 1).sort(-1).values
    without = (others * _chances_to_lead(copies - 1, best_of).to(others)).sum(-1)
    best = torch.minimum(others, costs[..., None])
    within = (best * _chances_to_lead(copies - 1, best_of - 1).to(others)).sum(-1)
    return best_of * (without - within)


def _chances_to_lead(count: int, drawn: int) -> Tensor:
    """Give the chance of each of `count` ranks to be the first of so many drawn ones."""
    choices = math.comb(count, drawn)
    # Whole numbers of any length: only their quotients are sure to be floats.
    chances = [math.comb(count - 1 - rank, drawn - 1) / choices for rank in range(count)]
    return torch.tensor(chances, dtype=torch.float64)
