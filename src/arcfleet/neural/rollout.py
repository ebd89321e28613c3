"""Runs a policy step by step over a batch, in chunks that fit the memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch

from arcfleet.errors import OptionError
from arcfleet.neural.state import State, finished

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch

# Steps between two questions whether all plans are finished: on a GPU each waits for it.
CHECK_EVERY = 8

# More makes a CPU no faster, and a step so long that time limits are missed.
CPU_BYTES = 2**26


class StepNumbers(NamedTuple):
    """About how many numbers of 4 bytes a step holds at once of one plan.

    Parameters
    ----------
    per_pair
        For each pair of arcs.
    per_arc
        For each arc: the hidden layers.
    """

    per_pair: int = 6
    per_arc: int = 2048


class Policy(Protocol):
    """What can be decoded: a model, compiled or not, or a baseline.

    It may have `step_numbers`, by which the chunks are made to fit the memory. One that
    remembers what it chose is described in `memory.py`.
    """

    def prepare(self, batch: ArcBatch) -> Any:
        """Work out what stays the same at every step."""

    def __call__(self, prepared: Any, state: State, allowed: Tensor) -> Tensor:
        """Give the logits of each arc, (batch, copies, arcs), -inf where not allowed."""


class Rollout(NamedTuple):
    """Plans as a policy built them.

    Parameters
    ----------
    arcs
        The arcs chosen, (batch, copies, steps), int64; arc 0 is a visit to the depot. A
        finished plan goes on with 0.
    log_probability
        Of each plan, (batch, copies), float64; -inf, with no arcs, where a beam is wider
        than there are plans.
    """

    arcs: Tensor
    log_probability: Tensor


class Carry(NamedTuple):
    """What goes from step to step.

    Parameters
    ----------
    state
        Where the plans stand; `state.previous` is what the last step chose.
    log_probability
        Sum over the steps so far, (batch, copies), float64.
    parent
        The copy that each plan came from in the last step, (batch, copies); None where
        every plan stays in its place.
    steps
        Number of steps taken, a tensor without dimensions.
    memory
        What a recurrent policy remembers of each plan, (batch, copies, width); None for
        one that decides by the state alone. See `memory.py`.
    """

    state: State
    log_probability: Tensor
    parent: Tensor | None
    steps: Tensor
    memory: Tensor | None = None


# One step. It must be a function of tensors alone, with no question to the device: then
# torch.compile or a CUDA graph can wrap it whole.
Advance = Callable[[Carry], Carry]
Wrap = Callable[[Advance], Advance]


class View(NamedTuple):
    """The instances as a step sees them.

    Parameters
    ----------
    batch
        All of their arcs, or some.
    kept
        Which ones, (batch, arcs); None for all.
    """

    batch: ArcBatch
    kept: Tensor | None = None

    def original(self, arcs: Tensor) -> Tensor:
        """Give the numbers that arcs, (batch, copies), have among all."""
        return arcs if self.kept is None else self.kept.gather(1, arcs)


class Stage(NamedTuple):
    """Steps on one view of the instances.

    Parameters
    ----------
    view
        What they see.
    prepared
        What the policy worked out of it.
    advance
        A step.
    """

    view: View
    prepared: Any
    advance: Advance


Begin = Callable[[View], Stage]

# Gives a view with fewer arcs, and the carry for it, where that pays.
Narrower = Callable[[View, Carry], "tuple[View, Carry] | None"]

# Told at every step how many are done and the most that there can be; may raise to end
# the decoding. A GPU may still be some steps behind.
OnStep = Callable[[int, int], None]


class Limits(NamedTuple):
    """Steps that the plans of some instances take at least, and at most."""

    least: int
    most: int


def step_limits(
    batch: ArcBatch, *, bound: bool, first: State | None = None
) -> list[Limits]:
    """Give the limits of each instance, from `first` on. Waits for the device, once."""
    if first is not None:
        return _limits_from(batch, first, bound=bound)
    tasks = batch.num_tasks.long()
    if bound:
        demand = batch.demand_once.sum(1, dtype=torch.int64)
        capacity = batch.capacity.long()
        least = tasks + (demand + capacity - 1) // capacity
        most = 2 * tasks  # every task on a route of its own
    else:
        least = most = tasks + 1
    return _as_limits(least, most)


def _limits_from(batch: ArcBatch, first: State, *, bound: bool) -> list[Limits]:
    arc = torch.arange(batch.num_arcs, device=batch.twin.device)
    once = (batch.twin >= arc)[:, None]  # a task with two arcs counts once
    tasks = (first.unserved & once).sum(-1).amax(1)  # (batch,), of the plan with most left
    # A way home, every task on a route of its own.
    return _as_limits(tasks + 1, 2 * tasks + 1 if bound else tasks + 1)


def _as_limits(least: Tensor, most: Tensor) -> list[Limits]:
    pairs = torch.stack([least, most]).clamp(min=1).tolist()
    return [Limits(low, high) for low, high in zip(*pairs, strict=True)]


def walk(
    stage: Stage,
    begin: Begin,
    carry: Carry,
    limits: Limits,
    told: Callable[[int], None] | None = None,
    narrower: Narrower | None = None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Advance until all plans are finished; tell at every step how many were taken.

    Parameters
    ----------
    stage, carry
        What to start from.
    begin
        Makes the stage for another view of the instances.
    limits
        Of the steps.
    told
        Told at every step how many were taken.
    narrower
        Asked now and then for a view with fewer arcs.

    Returns
    -------
    log_probability
        Of the plans, (batch, copies).
    chosen, parents
        What every step chose, and the parents, if there are any, (steps, batch, copies).
    """
    shape = carry.state.previous.shape
    chosen = carry.state.previous.new_zeros((limits.most, *shape))
    parents = None if carry.parent is None else torch.zeros_like(chosen)
    on_cpu = carry.state.previous.is_cpu
    every, look_every = (1, 4) if on_cpu else (CHECK_EVERY, 2 * CHECK_EVERY)
    taken = 0
    while taken < limits.most:
        carry = stage.advance(carry)
        # Outside of `advance`, which thus knows no position in a buffer.
        chosen[taken] = stage.view.original(carry.state.previous).view(shape)
        if parents is not None and carry.parent is not None:
            parents[taken] = carry.parent
        taken += 1
        if told is not None:
            told(taken)
        # No plan is ready before the least number of steps: no need to ask the device.
        late = taken - limits.least
        if late >= 0 and late % every == 0 and bool(_all_done(carry)):
            break
        if narrower is not None and taken % look_every == 0:
            found = narrower(stage.view, carry)
            if found is not None:
                view, carry = found
                stage = begin(view)
    return (
        carry.log_probability.view(shape),
        chosen[:taken],
        None if parents is None else parents[:taken],
    )


def _all_done(carry: Carry) -> Tensor:
    no_plan = carry.log_probability == -math.inf
    return (finished(carry.state) | no_plan).all()


def by_chunks(
    decode: Callable[[ArcBatch, slice, Limits, Callable[[int], None]], Rollout],
    batch: ArcBatch,
    copies: int,
    *,
    policy: Policy,
    bound: bool,
    chunk: int | None,
    on_step: OnStep | None,
    first: State | None = None,
) -> Rollout:
    """Decode a batch in parts of `chunk` instances; None takes what fits the memory.

    `decode` gets a part, its place, its limits and whom to tell the steps taken. The
    policy is asked for its memory only.
    """
    if len(batch) == 0:
        raise OptionError("expected a batch of at least 1 instance, got none")
    if chunk is None:
        chunk = default_chunk(policy, batch, copies)
    if chunk < 1:
        raise OptionError(f"expected a chunk of at least 1 instance, got {chunk}")
    each = step_limits(batch, bound=bound, first=first)
    parts = [slice(i, min(i + chunk, len(batch))) for i in range(0, len(batch), chunk)]
    limits = [
        Limits(max(x.least for x in each[part]), max(x.most for x in each[part]))
        for part in parts
    ]
    total = sum(limit.most for limit in limits)
    done = 0
    rollouts = []
    for part, limit in zip(parts, limits, strict=True):

        def tell(taken: int, before: int = done) -> None:
            if on_step is not None:
                on_step(before + taken, total)

        piece = batch
        if len(parts) > 1:
            piece = batch.select(
                torch.arange(part.start, part.stop, device=batch.real.device)
            )
        rollouts.append(decode(piece, part, limit, tell))
        done += limit.most
        tell(limit.most)
    return _join(rollouts)


def default_chunk(policy: Policy, batch: ArcBatch, copies: int) -> int:
    """Give the number of instances whose steps fit the memory of the batch's device.

    A power of two, so that it does not change with every byte that others take.
    """
    numbers: StepNumbers = getattr(policy, "step_numbers", StepNumbers())
    arcs = batch.num_arcs
    row = 4 * arcs * (numbers.per_pair * arcs + numbers.per_arc)
    device = batch.real.device
    budget = free_bytes(device) // 2 if device.type == "cuda" else CPU_BYTES
    fitting = max(1, budget // (row * copies))
    return 1 << (fitting.bit_length() - 1)


def free_bytes(device: torch.device) -> int:
    """Say how much memory of a GPU can still be used."""
    free: int = torch.cuda.mem_get_info(device)[0]
    # What torch keeps of earlier calls can be used again.
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return free + kept


def _join(rollouts: list[Rollout]) -> Rollout:
    # Without the last steps, in which nothing happens.
    longest = max(rollout.arcs.shape[-1] for rollout in rollouts)
    arcs = torch.cat(
        [
            torch.nn.functional.pad(rollout.arcs, (0, longest - rollout.arcs.shape[-1]))
            for rollout in rollouts
        ]
    )
    serves = (arcs != 0).any(0).any(0).long()  # (steps,)
    order = torch.arange(1, longest + 1, device=arcs.device)
    needed = min(longest, int((serves * order).amax()) + 1)  # and the way home
    return Rollout(
        arcs[..., :needed].contiguous(),
        torch.cat([rollout.log_probability for rollout in rollouts]),
    )
