"""The same policy, as fast as the device allows: in bfloat16, compiled if asked."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch.nn import functional

from arcfleet.errors import OptionError
from arcfleet.neural.batch import as_instances, present_arcs, shrink, whole_vectors
from arcfleet.neural.device import has_bfloat16
from arcfleet.neural.env import State, StepNumbers, action_mask, finished, reset, step

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.model import AnyModel, AttentionModel


# Constants of SplitMix64 (Steele, Lea and Flood 2014), as signed numbers.
_GOLDEN = 0x9E3779B97F4A7C15 - 2**64

_FIRST = 0xBF58476D1CE4E5B9 - 2**64

_SECOND = 0x94D049BB133111EB - 2**64


def draw_seeds(count: int, generator: torch.Generator) -> Tensor:
    """Draw a seed for each of `count` instances, on the generator's device."""
    return torch.randint(2**62, (count,), generator=generator, device=generator.device)


def gumbel_noise(seeds: Tensor, samples: int, steps: Tensor, arcs: int) -> Tensor:
    """Give independent Gumbel noise.

    Parameters
    ----------
    seeds
        Of the instances, (batch,).
    samples
        Plans of each instance.
    steps
        Number of the step, a tensor of one number.
    arcs
        Arcs of each instance.

    Returns
    -------
    noise
        Of shape (batch, samples, arcs), float32.
    """
    copy = torch.arange(samples, device=seeds.device)
    arc = torch.arange(arcs, device=seeds.device)
    plans = mixed_bits(
        mixed_bits(seeds[:, None] + copy * _GOLDEN) + steps * _GOLDEN
    )  # (batch, samples)
    bits = mixed_bits(plans[..., None] + arc * _GOLDEN)  # (batch, samples, arcs)
    # 23 bits and a half are exact in float32, and so never 0 or 1.
    uniform = (_shift_right(bits, 41).float() + 0.5) * 2.0**-23
    return -torch.log(-torch.log(uniform))


def mixed_bits(values: Tensor) -> Tensor:
    """Hash whole numbers of 64 bits to others that look random."""
    values = (values ^ _shift_right(values, 30)) * _FIRST
    values = (values ^ _shift_right(values, 27)) * _SECOND
    return values ^ _shift_right(values, 31)


def _shift_right(values: Tensor, count: int) -> Tensor:
    # Without the sign, which >> would copy.
    return (values >> count) & ((1 << (64 - count)) - 1)


def initial_memory(prepared: Any, samples: int) -> Tensor | None:
    """Give the memory of empty plans, (batch, samples, width), or None where there is none.

    Parameters
    ----------
    prepared
        By a policy.
    samples
        Plans of each instance.
    """
    memory: Tensor | None = getattr(prepared, "memory", None)
    return None if memory is None else memory.expand(-1, samples, -1).contiguous()


def recall(
    policy: Policy, prepared: Any, state: State, memory: Tensor | None
) -> tuple[Any, Tensor | None]:
    """Give what the policy decides by, and the memory for the next step.

    Parameters
    ----------
    policy
        Any.
    prepared
        By that policy.
    state
        Where the plans stand.
    memory
        From the step before, (batch, samples, width), or None.
    """
    if memory is None:
        return prepared, None
    recurrent: Any = policy
    prepared = recurrent.remember(prepared._replace(memory=memory), state)
    return prepared, prepared.memory


# Steps between two questions whether all plans are finished: on a GPU each waits for it.
CHECK_EVERY = 8


# More makes a CPU no faster, and a step so long that time limits are missed.
CPU_BYTES = 2**26


class Policy(Protocol):
    """What can be decoded: a model, compiled or not, or a baseline.

    It may have `step_numbers`, by which the chunks are made to fit the memory. One that
    remembers what it chose is described in `memory.py`.
    """

    def prepare(self, batch: ArcBatch) -> Any:
        """Work out what stays the same at every step."""

    def __call__(self, prepared: Any, state: State, allowed: Tensor) -> Tensor:
        """Give the logits of each arc, (batch, samples, arcs), -inf where not allowed."""


class Rollout(NamedTuple):
    """Plans as a policy built them.

    Parameters
    ----------
    arcs
        The arcs chosen, (batch, samples, steps), int64; arc 0 is a visit to the depot. A
        finished plan goes on with 0.
    log_probability
        Of each plan, (batch, samples), float64; -inf, with no arcs, where a beam is wider
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
        Sum over the steps so far, (batch, samples), float64.
    parent
        The copy that each plan came from in the last step, (batch, samples); None where
        every plan stays in its place.
    steps
        Number of steps taken, a tensor without dimensions.
    memory
        What a recurrent policy remembers of each plan, (batch, samples, width); None for
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
        """Give the numbers that arcs, (batch, samples), have among all."""
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
    batch: ArcBatch, *, capacity_mask: bool, initial: State | None = None
) -> list[Limits]:
    """Give the limits of each instance, from `initial` on. Waits for the device, once."""
    if initial is not None:
        return _limits_from(batch, initial, capacity_mask=capacity_mask)
    tasks = batch.num_tasks.long()
    if capacity_mask:
        demand = batch.demand_once.sum(1, dtype=torch.int64)
        capacity = batch.capacity.long()
        least = tasks + (demand + capacity - 1) // capacity
        most = 2 * tasks  # every task on a route of its own
    else:
        least = most = tasks + 1
    return _as_limits(least, most)


def _limits_from(batch: ArcBatch, initial: State, *, capacity_mask: bool) -> list[Limits]:
    arc = torch.arange(batch.num_arcs, device=batch.inverse.device)
    once = (batch.inverse >= arc)[:, None]  # a task with two arcs counts once
    tasks = (
        (initial.unserved & once).sum(-1).amax(1)
    )  # (batch,), of the plan with most left
    # A way home, every task on a route of its own.
    return _as_limits(tasks + 1, 2 * tasks + 1 if capacity_mask else tasks + 1)


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
        Of the plans, (batch, samples).
    chosen, parents
        What every step chose, and the parents, if there are any, (steps, batch, samples).
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
    samples: int,
    *,
    policy: Policy,
    capacity_mask: bool,
    chunk: int | None,
    on_step: OnStep | None,
    initial: State | None = None,
) -> Rollout:
    """Decode a batch in parts of `chunk` instances; None takes what fits the memory.

    `decode` gets a part, its place, its limits and whom to tell the steps taken. The
    policy is asked for its memory only.
    """
    if len(batch) == 0:
        raise OptionError("expected a batch of at least 1 instance, got none")
    if chunk is None:
        chunk = default_chunk(policy, batch, samples)
    if chunk < 1:
        raise OptionError(f"expected a chunk of at least 1 instance, got {chunk}")
    each = step_limits(batch, capacity_mask=capacity_mask, initial=initial)
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


def default_chunk(policy: Policy, batch: ArcBatch, samples: int) -> int:
    """Give the number of instances whose steps fit the memory of the batch's device.

    A power of two, so that it does not change with every byte that others take.
    """
    numbers: StepNumbers = getattr(policy, "step_numbers", StepNumbers())
    arcs = batch.num_arcs
    row = 4 * arcs * (numbers.per_pair * arcs + numbers.per_arc)
    device = batch.real.device
    budget = free_bytes(device) // 2 if device.type == "cuda" else CPU_BYTES
    fitting = max(1, budget // (row * samples))
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


# A new view is prepared, and on a GPU recorded: that pays for a sixth of the arcs, and on a
# GPU for so many arcs of all plans.
_WORTHWHILE = 5 / 6

_LEAST_ON_GPU = 2**17


def narrowing(policy: Policy, *, together: bool) -> Narrower | None:
    """Give what narrows views for a policy; None if it looks at served arcs.

    Parameters
    ----------
    policy
        Its `hides_served` says whether it gives the same logits without served arcs.
    together
        Whether the plans of an instance stay side by side, as in a beam, and an arc
        must be served in all of them; otherwise each plan goes its own way.
    """
    if not getattr(policy, "hides_served", False):
        return None

    def narrower(view: View, carry: Carry) -> tuple[View, Carry] | None:
        plans, arcs = carry.state.previous.numel(), view.batch.num_arcs
        if not carry.state.previous.is_cpu and plans * arcs < _LEAST_ON_GPU:
            return None
        state, rows = carry.state, None
        if not together and state.previous.shape[1] > 1:
            state, rows = as_instances(state)
        longest = int(present_arcs(state).sum(1).amax())
        length = whole_vectors(longest)
        if length > _WORTHWHILE * arcs:
            return None
        small = shrink(view.batch, state, length, rows)
        # Plans that go their own ways do so from the first narrower view on.
        kept = small.kept if view.kept is None else view.kept.gather(1, small.kept)
        shape = small.state.previous.shape
        return View(small.batch, kept), carry._replace(
            state=small.state, log_probability=carry.log_probability.view(shape)
        )

    return narrower


@torch.no_grad()
def greedy(
    policy: Policy,
    batch: ArcBatch,
    *,
    capacity_mask: bool = True,
    chunk: int | None = None,
    on_step: OnStep | None = None,
    wrap: Wrap | None = None,
    initial: State | None = None,
) -> Rollout:
    """Choose the most probable arc at every step; one copy of each instance.

    Parameters
    ----------
    policy
        Gives the logits.
    batch
        The instances.
    capacity_mask
        Whether the capacity counts.
    chunk
        Instances to decode at a time; None for as many as fit the memory.
    on_step
        Told at every step how many are done and how many there are at most; may raise.
    wrap
        Replaces the step by a faster one.
    initial
        Where plans stand already, (batch, samples, ...): each is brought to its end, and
        the rollout holds what comes after. None for one empty plan of each instance.
    """
    samples = 1 if initial is None else initial.previous.shape[1]

    def decode(
        piece: ArcBatch, part: slice, limits: Limits, tell: Callable[[int], None]
    ) -> Rollout:
        def begin(view: View) -> Stage:
            prepared = policy.prepare(view.batch)
            chances = _chances(policy, prepared, view.batch, capacity_mask=capacity_mask)

            def advance(carry: Carry) -> Carry:
                log_probability, memory = chances(carry)  # (batch, samples, arcs)
                chosen = log_probability.argmax(-1)
                return _choose(
                    view.batch, carry, chosen, log_probability, memory, capacity_mask
                )

            return Stage(view, prepared, _wrapped(advance, wrap))

        stage = begin(View(piece))
        carry = _first_carry(stage, samples, initial, part)
        narrower = narrowing(policy, together=samples == 1)
        return _walk(stage, begin, carry, limits, tell, narrower)

    return by_chunks(
        decode,
        batch,
        samples,
        policy=policy,
        capacity_mask=capacity_mask,
        chunk=chunk,
        on_step=on_step,
        initial=initial,
    )


@torch.no_grad()
def sample(
    policy: Policy,
    batch: ArcBatch,
    samples: int,
    *,
    generator: torch.Generator,
    temperature: float | Tensor = 1.0,
    capacity_mask: bool = True,
    chunk: int | None = None,
    on_step: OnStep | None = None,
    wrap: Wrap | None = None,
    initial: State | None = None,
    seeds: Tensor | None = None,
    distinct_starts: bool = False,
) -> Rollout:
    """Draw `samples` plans of each instance, independently, as probable as the policy says.

    With distinct starts only what follows them is independent.

    A seed of the generator gives the same draws on every device and in chunks of any
    size; the plans are the same as far as the logits are. The log-probabilities are those
    of the draw, temperature included.

    Parameters
    ----------
    policy, batch, capacity_mask, chunk, on_step, wrap, initial
        As in `greedy`.
    samples
        Plans of each instance, as many as those of `initial`.
    generator
        Gives the seed of each instance.
    temperature
        Divides the logits: one number, or one for each instance, (batch,).
    seeds
        Of the instances, as `draw_seeds` gives them; the generator is not used then.
    distinct_starts
        Whether the first arcs of the samples are drawn without replacement, as long as
        there are others; the log-probabilities count them as if drawn alone. Not with
        `initial`.
    """
    _check_count("samples", samples)
    device = batch.real.device
    heat = torch.as_tensor(temperature, dtype=torch.float32, device=device)
    if heat.shape not in ((), (len(batch),)):
        raise OptionError(
            f"expected one temperature, or one for each of {len(batch)} instances, got "
            f"{heat.numel()}"
        )
    if not bool(((heat > 0) & (heat < math.inf)).all()):
        raise OptionError(f"expected a temperature above 0, got {heat.min().item():g}")
    heat = heat.expand(len(batch))
    if initial is not None and initial.previous.shape[1] != samples:
        raise OptionError(
            f"expected {initial.previous.shape[1]} samples, one for each plan to continue, "
            f"got {samples}"
        )
    if initial is not None and distinct_starts:
        raise OptionError(
            "expected empty plans for distinct starts, got plans to go on with"
        )
    if seeds is None:
        seeds = draw_seeds(len(batch), generator)
    seeds_here = seeds.to(device)

    def decode(
        piece: ArcBatch, part: slice, limits: Limits, tell: Callable[[int], None]
    ) -> Rollout:
        piece_seeds = seeds_here[part]

        def begin(view: View) -> Stage:
            prepared = policy.prepare(view.batch)
            # With arcs left out, each plan is an instance of its own.
            plans = len(view.batch) // len(piece)
            divisor = heat[part].repeat_interleave(plans)[:, None, None]
            chances = _chances(
                policy,
                prepared,
                view.batch,
                capacity_mask=capacity_mask,
                temperature=divisor,
            )

            def advance(carry: Carry) -> Carry:
                log_probability, memory = chances(carry)  # (batch, samples, arcs)
                noise = gumbel_noise(piece_seeds, samples, carry.steps, piece.num_arcs)
                if view.kept is not None:
                    # An arc draws the same, whether or not others are left out.
                    noise = noise.flatten(0, 1).gather(1, view.kept)[:, None]
                # The largest of log-probabilities with Gumbel noise is a fair draw.
                scores = log_probability + noise
                chosen = scores.argmax(-1)
                # In a narrower view some arc is served already.
                if distinct_starts and view.kept is None:
                    starts = _without_replacement(scores[:, 0], chosen)
                    chosen = torch.where(carry.steps == 0, starts, chosen)
                return _choose(
                    view.batch, carry, chosen, log_probability, memory, capacity_mask
                )

            return Stage(view, prepared, _wrapped(advance, wrap))

        stage = begin(View(piece))
        carry = _first_carry(stage, samples, initial, part)
        narrower = narrowing(policy, together=False)
        return _walk(stage, begin, carry, limits, tell, narrower)

    return by_chunks(
        decode,
        batch,
        samples,
        policy=policy,
        capacity_mask=capacity_mask,
        chunk=chunk,
        on_step=on_step,
        initial=initial,
    )


@torch.no_grad()
def beam(
    policy: Policy,
    batch: ArcBatch,
    width: int,
    *,
    capacity_mask: bool = True,
    chunk: int | None = None,
    on_step: OnStep | None = None,
    wrap: Wrap | None = None,
) -> Rollout:
    """Keep the `width` most probable plans at every step; they are the samples, best first.

    The samples of an instance are never the same. A finished plan keeps its place as long
    as no more probable ones push it out.

    Parameters
    ----------
    policy, batch, capacity_mask, chunk, on_step, wrap
        As in `greedy`, which is a beam of width 1.
    width
        Plans to keep.
    """
    _check_count("width", width)

    def decode(
        piece: ArcBatch, _part: slice, limits: Limits, tell: Callable[[int], None]
    ) -> Rollout:
        def begin(view: View) -> Stage:
            prepared = policy.prepare(view.batch)
            chances = _chances(policy, prepared, view.batch, capacity_mask=capacity_mask)

            def advance(carry: Carry) -> Carry:
                return _extend(view.batch, carry, chances, capacity_mask)

            return Stage(view, prepared, _wrapped(advance, wrap))

        stage = begin(View(piece))
        first = _first_carry(stage, width)
        # All samples of the empty plan but one have no chance, or all would stay the same.
        alone = torch.full_like(first.log_probability, -math.inf)
        alone[:, 0] = 0.0
        first = first._replace(
            log_probability=alone, parent=torch.zeros_like(first.state.previous)
        )
        narrower = narrowing(policy, together=True)
        return _walk(stage, begin, first, limits, tell, narrower)

    return by_chunks(
        decode,
        batch,
        width,
        policy=policy,
        capacity_mask=capacity_mask,
        chunk=chunk,
        on_step=on_step,
    )


def _check_count(name: str, count: int) -> None:
    if count < 1:
        raise OptionError(f"expected {name} to be at least 1, got {count}")


def _wrapped(advance: Advance, wrap: Wrap | None) -> Advance:
    return advance if wrap is None else wrap(advance)


def _first_carry(
    stage: Stage, samples: int, initial: State | None = None, part: slice | None = None
) -> Carry:
    state = reset(stage.view.batch, samples)
    memory = initial_memory(stage.prepared, samples)
    if initial is not None:
        state = State(*(tensor[part] for tensor in initial))
        if memory is not None:
            raise OptionError(
                "expected a policy that decides by the state alone to go on with plans, "
                "got one that remembers their beginning"
            )
    return Carry(
        state=state,
        log_probability=torch.zeros_like(state.previous, dtype=torch.float64),
        parent=None,
        steps=torch.zeros((), dtype=torch.int64, device=state.previous.device),
        memory=memory,
    )


# From where plans stand to log-probabilities of the arcs, and what is remembered.
Chances = Callable[[Carry], "tuple[Tensor, Tensor | None]"]


def _chances(
    policy: Policy,
    prepared: Any,
    batch: ArcBatch,
    *,
    capacity_mask: bool,
    temperature: float | Tensor = 1.0,
) -> Chances:
    def chances(carry: Carry) -> tuple[Tensor, Tensor | None]:
        state = carry.state
        allowed = action_mask(batch, state, capacity_mask=capacity_mask)
        known, memory = recall(policy, prepared, state, carry.memory)
        logits = policy(known, state, allowed)
        if logits.dtype != torch.float64:
            logits = logits.float()
        return (logits / temperature).log_softmax(-1), memory  # (batch, samples, arcs)

    return chances


def _choose(
    batch: ArcBatch,
    carry: Carry,
    chosen: Tensor,
    log_probability: Tensor,
    memory: Tensor | None,
    capacity_mask: bool,
) -> Carry:
    gained = log_probability.gather(-1, chosen[..., None])[..., 0]
    return Carry(
        state=step(batch, carry.state, chosen, capacity_mask=capacity_mask),
        log_probability=carry.log_probability + gained,
        parent=None,
        steps=carry.steps + 1,
        memory=memory,
    )


def _without_replacement(scores: Tensor, alone: Tensor) -> Tensor:
    """Draw an arc for each copy, none twice, by Gumbel's top k (Kool et al. 2019).

    Parameters
    ----------
    scores
        Log-probabilities of the arcs with Gumbel noise, (batch, arcs).
    alone
        What samples choose where there are too few arcs, (batch, samples).
    """
    samples = alone.shape[1]
    drawn = scores.topk(min(samples, scores.shape[1]), dim=1)
    missing = (0, samples - drawn.values.shape[1])
    value = functional.pad(drawn.values, missing, value=-math.inf)
    return torch.where(value > -math.inf, functional.pad(drawn.indices, missing), alone)


def _extend(batch: ArcBatch, carry: Carry, chances: Chances, capacity_mask: bool) -> Carry:
    """Give the most probable continuations, as many as there are plans."""
    width, arcs = carry.state.previous.shape[1], batch.num_arcs
    # float64: sums of many steps must not make different plans look the same.
    gained, memory = chances(carry)
    longer = carry.log_probability[..., None] + gained
    # Of equal ones the first: a stable sort, where topk would take any.
    best = longer.flatten(1).sort(dim=1, descending=True, stable=True)
    chosen = best.indices[:, :width]  # (batch, width)
    parent = chosen // arcs
    rows = parent[..., None].expand(-1, -1, arcs)
    state = State(
        unserved=carry.state.unserved.gather(1, rows),
        previous=carry.state.previous.gather(1, parent),
        remaining=carry.state.remaining.gather(1, parent),
    )
    if memory is not None:
        memory = memory.gather(1, parent[..., None].expand_as(memory))
    return Carry(
        state=step(batch, state, chosen % arcs, capacity_mask=capacity_mask),
        log_probability=best.values[:, :width],
        parent=parent,
        steps=carry.steps + 1,
        memory=memory,
    )


def _walk(
    stage: Stage,
    begin: Begin,
    carry: Carry,
    limits: Limits,
    tell: Callable[[int], None],
    narrower: Narrower | None,
) -> Rollout:
    log_probability, chosen, parents = walk(stage, begin, carry, limits, tell, narrower)
    if parents is not None:
        chosen = _follow(chosen, parents)
    arcs = chosen.permute(1, 2, 0)  # (batch, samples, steps)
    no_plan = log_probability == -math.inf
    return Rollout(arcs.masked_fill(no_plan[..., None], 0), log_probability)


def _follow(chosen: Tensor, parents: Tensor) -> Tensor:
    # From the last step back: where each plan stood among the samples before.
    arcs = torch.empty_like(chosen)  # (steps, batch, samples)
    place = torch.arange(chosen.shape[2], device=chosen.device).expand(chosen.shape[1:])
    for taken in reversed(range(len(chosen))):
        torch.gather(chosen[taken], 1, place, out=arcs[taken])
        place = parents[taken].gather(1, place)
    return arcs


_MOST_SHAPES = 64


class FastPolicy:
    """A model that is only decoded, never trained.

    Parameters
    ----------
    model
        In the precision to decode in.
    compiled
        Whether torch.compile makes the step faster; it takes some ten seconds for each
        shape of batches, which pays for thousands of plans.
    """

    def __init__(self, model: AttentionModel, *, compiled: bool) -> None:
        self.model = model
        self.step_numbers = model.step_numbers
        # A view with fewer arcs would have to be compiled anew.
        self.hides_served = model.hides_served and not compiled
        self._call: Callable[..., Tensor] = model
        self.encode, self.point = model.encode, model.point
        if compiled:
            # Importing it takes seconds. One graph for each shape; giving up after some
            # would be silent.
            from torch._dynamo import config as compiler

            compiler.recompile_limit = max(compiler.recompile_limit, _MOST_SHAPES)
            self._call = torch.compile(model, dynamic=False)
            self.encode = torch.compile(model.encode, dynamic=False)
            self.point = torch.compile(model.point, dynamic=False)

    def prepare(self, batch: ArcBatch) -> Any:
        """Work out what stays the same at every step."""
        return self.model.prepare(batch)

    def __call__(self, prepared: Any, state: State, allowed: Tensor) -> Tensor:
        """Give the logits of each arc, (batch, samples, arcs), -inf where not allowed."""
        return self._call(prepared, state, allowed)


def decoding_model(model: AnyModel) -> AnyModel:
    """Give the model in the precision to decode in: a bfloat16 copy on a recent GPU.

    Of DaAM only: the values of S2V-DQN differ too little from arc to arc.
    """
    if model.decodes_in_bfloat16 and has_bfloat16(next(model.parameters()).device):
        model = copy.deepcopy(model).to(torch.bfloat16)
    return model.eval()


def fast_policy(model: AttentionModel, *, compiled: bool = False) -> FastPolicy:
    """Make the fast form of a model, where the model is."""
    return FastPolicy(decoding_model(model), compiled=compiled)
