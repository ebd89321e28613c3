"""Decoding: one loop that rolls a policy out, with a chooser for each kind of search.

`greedy`, `sample` and `beam` differ only in how a step chooses arcs from the
log-probabilities. The loop decodes a batch in chunks that fit the memory, drops served arcs
where the policy ignores them, lets CUDA graphs replace the step, and reports every step, so
that a time limit can end it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from arcfleet.errors import OptionError
from arcfleet.neural.batch import (
    ArcBatch,
    as_instances,
    pad_arcs,
    present_arcs,
    round_length,
    shrink,
)
from arcfleet.neural.device import has_bfloat16
from arcfleet.neural.env import State, StepNumbers, action_mask, finished, reset, step
from arcfleet.neural.kernels.core_encoder import is_fast_here
from arcfleet.neural.model import AttentionModel

if TYPE_CHECKING:
    from arcfleet.neural.model import AnyModel


class Policy(Protocol):
    """What can be decoded: a model, compiled or not, or a baseline.

    Optional attributes: `step_numbers` (memory of a step, which sizes the chunks) and
    `hides_served` (logits do not depend on served arcs, which are then dropped). A
    recurrent policy has a `memory` in what it prepares, (batch, 1, width), and a method
    `remember(prepared, state)` that updates it before each decision.
    """

    def prepare(self, batch: ArcBatch) -> Any:
        """Compute what stays the same at every step."""

    def __call__(self, prepared: Any, state: State, allowed: Tensor) -> Tensor:
        """Compute the logits, (batch, samples, arcs), -inf where not allowed."""


class Rollout(NamedTuple):
    """Plans as a policy built them.

    Parameters
    ----------
    arcs
        Arcs in the order of choice, (batch, samples, steps), int64. Arc 0 is a visit to
        the depot, with which finished plans are padded.
    log_probability
        Log-probability of each plan, (batch, samples), float64. -inf, with no arcs, where
        a beam is wider than there are plans.
    """

    arcs: Tensor
    log_probability: Tensor


class Carry(NamedTuple):
    """What goes from step to step."""

    state: State  # `state.previous` is what the last step chose
    log_probability: Tensor  # sum over the steps so far, (batch, samples), float64
    parent: Tensor | None  # beam that each plan extended, (batch, samples); None: itself
    steps: Tensor  # number of steps taken, no dimensions
    memory: Tensor | None = None  # of a recurrent policy, (batch, samples, width)


# One step: a function of tensors that never waits for the device, so that torch.compile or
# a CUDA graph can wrap it whole.
Advance = Callable[[Carry], Carry]

Wrap = Callable[[Advance], Advance]

# Called after every step with the steps done and the largest possible number of them; may
# raise to end the decoding. A GPU may still be some steps behind.
OnStep = Callable[[int, int], None]


class View(NamedTuple):
    """The instances as a step sees them, with all of their arcs or some."""

    batch: ArcBatch
    kept: Tensor | None = None  # numbers of those arcs among all, (batch, arcs); None: all


# ---------------------------------------------------------------------------- choosers

# Next arc of each plan, log-probability of the plan with it, and the beam that it extends
# (None: itself), (batch, samples) each.
Choice = tuple[Tensor, Tensor, Tensor | None]


class _Greedy:
    """Choose the most probable arc; the base of the other choosers."""

    #: Whether the plans of an instance share one set of arcs while served ones are dropped.
    shares_arcs = False

    def of_chunk(self, chunk: slice) -> _Greedy:
        """Return the chooser of some of the instances."""
        return self

    def temperature(self, batch: ArcBatch) -> float | Tensor:
        """Return the divisor of the logits."""
        return 1.0

    def initial(self, carry: Carry) -> Carry:
        """Return the carry to begin with."""
        return carry

    def choose(self, view: View, carry: Carry, log_probability: Tensor) -> Choice:
        """Choose by the log-probabilities of the arcs, (batch, samples, arcs)."""
        return _chosen(carry, log_probability, log_probability.argmax(-1))


@dataclass(frozen=True, eq=False)
class _Sampling(_Greedy):
    """Sample arcs by Gumbel noise: the largest noisy log-probability is a fair sample."""

    seeds: Tensor  # (batch,)
    temperatures: Tensor  # (batch,)
    samples: int
    num_arcs: int
    distinct_starts: bool

    def of_chunk(self, chunk: slice) -> _Sampling:
        return replace(self, seeds=self.seeds[chunk], temperatures=self.temperatures[chunk])

    def temperature(self, batch: ArcBatch) -> float | Tensor:
        # With arcs dropped, each plan is an instance of its own.
        plans = len(batch) // len(self.seeds)
        return self.temperatures.repeat_interleave(plans)[:, None, None]

    def choose(self, view: View, carry: Carry, log_probability: Tensor) -> Choice:
        noise = gumbel_noise(self.seeds, self.samples, carry.steps, self.num_arcs)
        if view.kept is not None:
            # An arc has the same noise, whether or not others are dropped.
            noise = noise.flatten(0, 1).gather(1, view.kept)[:, None]
        noisy = log_probability + noise
        arcs = noisy.argmax(-1)
        # Where arcs were dropped, the first step is over.
        if self.distinct_starts and view.kept is None:
            starts = _without_replacement(noisy[:, 0], arcs)
            arcs = torch.where(carry.steps == 0, starts, arcs)
        return _chosen(carry, log_probability, arcs)


class _Beam(_Greedy):
    """Extend the most probable plans of each instance."""

    shares_arcs = True

    def initial(self, carry: Carry) -> Carry:
        # All empty plans but one have no chance, or all beams would stay the same.
        alone = torch.full_like(carry.log_probability, -math.inf)
        alone[:, 0] = 0.0
        parent = torch.zeros_like(carry.state.previous)
        return carry._replace(log_probability=alone, parent=parent)

    def choose(self, view: View, carry: Carry, log_probability: Tensor) -> Choice:
        _, width, arcs = log_probability.shape
        # float64: sums of many steps must not make different plans look the same.
        extended = carry.log_probability[..., None] + log_probability
        # A stable sort: of equals the first, where topk would take any.
        best = extended.flatten(1).sort(dim=1, descending=True, stable=True)
        chosen = best.indices[:, :width]  # (batch, width)
        return chosen % arcs, best.values[:, :width], chosen // arcs


def _chosen(carry: Carry, log_probability: Tensor, arcs: Tensor) -> Choice:
    gained = log_probability.gather(-1, arcs[..., None])[..., 0]
    return arcs, carry.log_probability + gained, None


def _without_replacement(noisy: Tensor, alone: Tensor) -> Tensor:
    """Sample distinct first arcs by the Gumbel-top-k trick (Kool et al. 2019).

    `noisy`, (batch, arcs), has log-probabilities with Gumbel noise; samples for which no
    distinct arc is left take theirs of `alone`, (batch, samples).
    """
    samples = alone.shape[1]
    drawn = noisy.topk(min(samples, noisy.shape[1]), dim=1)
    missing = (0, samples - drawn.values.shape[1])
    value = functional.pad(drawn.values, missing, value=-math.inf)
    return torch.where(value > -math.inf, functional.pad(drawn.indices, missing), alone)


# ------------------------------------------------------------------ decoding a batch


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
    """Choose the most probable arc at every step; one plan of each instance.

    Parameters
    ----------
    policy
        Policy that computes the logits.
    batch
        Instances.
    capacity_mask
        Whether the capacity masks arcs, as in `action_mask`; giant tours without.
    chunk
        Instances decoded at a time; None for as many as fit the memory.
    on_step
        Callback after every step; may raise.
    wrap
        Function that makes a step faster.
    initial
        State of partial plans to complete, (batch, samples, ...), of which the rollout
        holds what comes after. None for one empty plan of each instance.
    """
    batch, initial = whole_vectors(policy, batch, initial)
    samples = 1 if initial is None else initial.previous.shape[1]
    return _decode(
        _Greedy(), policy, batch, samples, capacity_mask, chunk, on_step, wrap, initial
    )


@torch.no_grad()
def sample(
    policy: Policy,
    batch: ArcBatch,
    samples: int,
    *,
    generator: torch.Generator | None = None,
    temperature: float | Tensor = 1.0,
    capacity_mask: bool = True,
    chunk: int | None = None,
    on_step: OnStep | None = None,
    wrap: Wrap | None = None,
    initial: State | None = None,
    seeds: Tensor | None = None,
    distinct_starts: bool = False,
) -> Rollout:
    """Sample `samples` independent plans of each instance from the policy.

    One seed of the generator gives the same samples on every device and in chunks of any
    size, as far as the logits are the same. The log-probabilities are those of the
    sampling distribution, temperature included.

    Parameters
    ----------
    policy, batch, capacity_mask, chunk, on_step, wrap, initial
        As in `greedy`.
    samples
        Plans of each instance, as many as those of `initial`.
    generator
        Generator of the instances' seeds.
    temperature
        Divisor of the logits: one number, or one for each instance, (batch,).
    seeds
        Seeds of the instances, as from `draw_seeds`, in place of a generator.
    distinct_starts
        Whether the first arcs of an instance's samples are sampled without replacement, as
        long as there are others. The log-probabilities count them as if sampled alone.
    """
    _require_positive(samples=samples)
    batch, initial = whole_vectors(policy, batch, initial)
    device = batch.real.device
    heat = torch.as_tensor(temperature, dtype=torch.float32, device=device)
    given = samples if initial is None else initial.previous.shape[1]
    if heat.shape not in ((), (len(batch),)):
        raise OptionError(
            f"expected one temperature, or one for each of {len(batch)} instances, got "
            f"{heat.numel()}"
        )
    if not bool(((heat > 0) & (heat < math.inf)).all()):
        raise OptionError(f"expected a temperature above 0, got {heat.min().item():g}")
    if given != samples:
        raise OptionError(
            f"expected {given} samples, one for each plan to continue, got {samples}"
        )
    if initial is not None and distinct_starts:
        raise OptionError("expected empty plans for distinct starts, got partial plans")
    if seeds is None:
        if generator is None:
            raise OptionError("expected a generator or seeds to sample by, got neither")
        seeds = draw_seeds(len(batch), generator)
    heat = heat.expand(len(batch))
    chooser = _Sampling(seeds.to(device), heat, samples, batch.num_arcs, distinct_starts)
    return _decode(
        chooser, policy, batch, samples, capacity_mask, chunk, on_step, wrap, initial
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
    """Search with a beam: keep the `width` most probable plans, in that order.

    The plans of an instance all differ. A finished plan keeps its place until more probable
    ones push it out.

    Parameters
    ----------
    policy, batch, capacity_mask, chunk, on_step, wrap
        As in `greedy`, which is a beam of width 1.
    width
        Number of plans kept.
    """
    _require_positive(width=width)
    batch, _ = whole_vectors(policy, batch, None)
    return _decode(_Beam(), policy, batch, width, capacity_mask, chunk, on_step, wrap)


def _require_positive(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise OptionError(f"expected {name} to be at least 1, got {count}")


def whole_vectors(
    policy: Policy, batch: ArcBatch, initial: State | None
) -> tuple[ArcBatch, State | None]:
    """Pad arcs to whole vectors of the kernels, where a policy hides what is padding.

    Rows of other lengths, such as the 101 arcs of Task50, take a GPU twice as long.
    """
    if batch.real.is_cpu or not getattr(policy, "hides_served", False):
        return batch, initial
    wider = pad_arcs(batch, round_length(batch.num_arcs))
    if initial is not None:
        more = wider.num_arcs - batch.num_arcs
        initial = initial._replace(unserved=functional.pad(initial.unserved, (0, more)))
    return wider, initial


def _decode(
    chooser: _Greedy,
    policy: Policy,
    batch: ArcBatch,
    samples: int,
    capacity_mask: bool,
    chunk: int | None,
    on_step: OnStep | None,
    wrap: Wrap | None,
    initial: State | None = None,
) -> Rollout:
    """Decode a batch chunk by chunk."""
    _require_positive(instances=len(batch))
    if chunk is None:
        chunk = default_chunk(policy, batch, samples)
    _require_positive(chunk=chunk)
    least, most = _step_limits(batch, initial, capacity_mask)
    parts = [slice(i, min(i + chunk, len(batch))) for i in range(0, len(batch), chunk)]
    total = sum(max(most[part]) for part in parts)
    done = 0
    rollouts = []
    for part in parts:

        def report(taken: int, before: int = done) -> None:
            if on_step is not None:
                on_step(before + taken, total)

        piece, here = batch, initial
        if len(parts) > 1:
            rows = torch.arange(part.start, part.stop, device=batch.real.device)
            piece = batch.select(rows)
            if initial is not None:
                here = State(*(tensor[part] for tensor in initial))
        loop = _Loop(chooser.of_chunk(part), policy, capacity_mask, wrap)
        limits = max(least[part]), max(most[part])
        rollouts.append(loop.run(piece, samples, limits, report, here))
        done += limits[1]
        report(limits[1])
    return _concatenate(rollouts)


def _step_limits(
    batch: ArcBatch, initial: State | None, capacity_mask: bool
) -> tuple[list[int], list[int]]:
    """Return the steps that each instance takes at least and at most; waits once."""
    if initial is not None:
        # Of the plan with most tasks left, (batch,); and the way home.
        tasks = (initial.unserved & batch.task_arcs[:, None]).sum(-1).amax(1)
        least, most = tasks + 1, 2 * tasks + 1 if capacity_mask else tasks + 1
    elif capacity_mask:
        tasks = batch.num_tasks.long()
        demand = batch.demand_once.sum(1, dtype=torch.int64)
        capacity = batch.capacity.long()
        least = tasks + (demand + capacity - 1) // capacity
        most = 2 * tasks  # every task on a route of its own
    else:
        least = most = batch.num_tasks.long() + 1
    low, high = torch.stack([least, most]).clamp(min=1).tolist()
    return low, high


def _concatenate(rollouts: list[Rollout]) -> Rollout:
    longest = max(rollout.arcs.shape[-1] for rollout in rollouts)
    arcs = torch.cat(
        [functional.pad(x.arcs, (0, longest - x.arcs.shape[-1])) for x in rollouts]
    )
    # Without the last steps, in which nothing happens.
    serves = (arcs != 0).any(0).any(0).long()  # (steps,)
    order = torch.arange(1, longest + 1, device=arcs.device)
    needed = min(longest, int((serves * order).amax()) + 1)  # and the way home
    return Rollout(
        arcs[..., :needed].contiguous(),
        torch.cat([rollout.log_probability for rollout in rollouts]),
    )


# More makes a CPU no faster, and a step so long that time limits are missed.
CPU_BYTES = 2**26


def default_chunk(policy: Policy, batch: ArcBatch, samples: int) -> int:
    """Return the number of instances whose steps fit the memory of the batch's device.

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
    """Return the memory of a GPU that can still be used."""
    free: int = torch.cuda.mem_get_info(device)[0]
    # What torch keeps of earlier calls can be used again.
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return free + kept


# -------------------------------------------------------------------- the decoding loop

# Steps between two checks whether all plans are finished: on a GPU each waits for it.
CHECK_EVERY = 8


@dataclass(frozen=True, eq=False)
class _Loop:
    """The decoding loop for one chunk of instances."""

    chooser: _Greedy
    policy: Policy
    capacity_mask: bool
    wrap: Wrap | None

    def run(
        self,
        batch: ArcBatch,
        samples: int,
        limits: tuple[int, int],
        report: Callable[[int], None],
        initial: State | None,
    ) -> Rollout:
        """Take steps until all plans are finished."""
        least, most = limits
        view = View(batch)
        prepared = self.policy.prepare(batch)
        advance = self.step_on(view, prepared)
        carry = self.chooser.initial(_initial_carry(prepared, batch, samples, initial))
        shape = carry.state.previous.shape
        chosen = carry.state.previous.new_zeros((most, *shape))
        parents = None if carry.parent is None else torch.zeros_like(chosen)
        on_cpu = carry.state.previous.is_cpu
        check_every, drop_every = (1, 8) if on_cpu else (CHECK_EVERY, 2 * CHECK_EVERY)
        drops = getattr(self.policy, "hides_served", False)
        taken = 0
        while taken < most:
            if on_cpu and self.wrap is None and self.leaves_no_choice(view, carry):
                carry = self.step_on(view, None)(carry)
            else:
                carry = advance(carry)
            # Outside of `advance`, which thus knows no position in a buffer.
            arcs = carry.state.previous
            if view.kept is not None:
                arcs = view.kept.gather(1, arcs)
            chosen[taken] = arcs.view(shape)
            if parents is not None and carry.parent is not None:
                parents[taken] = carry.parent
            taken += 1
            report(taken)
            # No plan is finished before the least number of steps: no need to wait.
            late = taken - least
            if late >= 0 and late % check_every == 0:
                no_plan = carry.log_probability == -math.inf
                if bool((finished(carry.state) | no_plan).all()):
                    break
            if drops and taken % drop_every == 0:
                smaller = drop_served(view, carry, together=self.chooser.shares_arcs)
                if smaller is not None:
                    view, carry = smaller
                    advance = self.step_on(view, self.policy.prepare(view.batch))
        log_probability = carry.log_probability.view(shape)
        chosen = chosen[:taken]
        if parents is not None:
            chosen = _follow(chosen, parents[:taken])
        no_plan = log_probability == -math.inf
        arcs = chosen.permute(1, 2, 0)  # (batch, samples, steps)
        return Rollout(arcs.masked_fill(no_plan[..., None], 0), log_probability)

    def leaves_no_choice(self, view: View, carry: Carry) -> bool:
        """Return whether every plan has one arc to choose, such as the way home.

        On a GPU to ask takes longer than to compute. Policies that remember see all steps.
        """
        if carry.memory is not None:
            return False
        mask = action_mask(view.batch, carry.state, capacity_mask=self.capacity_mask)
        return bool((mask.sum(-1) == 1).all())

    def step_on(self, view: View, prepared: Any | None) -> Advance:
        """Return the step for a view of the instances.

        None for what was prepared is a step without the policy, where there is no choice.
        """
        batch, policy, chooser = view.batch, self.policy, self.chooser
        capacity_mask, temperature = self.capacity_mask, chooser.temperature(view.batch)

        def advance(carry: Carry) -> Carry:
            state = carry.state
            allowed = action_mask(batch, state, capacity_mask=capacity_mask)
            if prepared is None:
                memory = None
                logits = allowed.new_zeros(allowed.shape, dtype=torch.float32)
                logits = logits.masked_fill(~allowed, -math.inf)
            else:
                known, memory = recall(policy, prepared, state, carry.memory)
                logits = policy(known, state, allowed)
            if logits.dtype != torch.float64:
                logits = logits.float()
            log_probability = (logits / temperature).log_softmax(-1)
            arcs, total, parent = chooser.choose(view, carry, log_probability)
            if parent is not None:
                state, memory = _at_beams(state, memory, parent)
            state = step(batch, state, arcs, capacity_mask=capacity_mask)
            return Carry(state, total, parent, carry.steps + 1, memory)

        return advance if self.wrap is None or prepared is None else self.wrap(advance)


def _initial_carry(
    prepared: Any, batch: ArcBatch, samples: int, initial: State | None
) -> Carry:
    memory = initial_memory(prepared, samples)
    if initial is not None and memory is not None:
        raise OptionError(
            "expected a policy without memory to complete partial plans, got one that "
            "remembers their beginning"
        )
    state = reset(batch, samples) if initial is None else initial
    zeros = torch.zeros_like(state.previous, dtype=torch.float64)
    steps = torch.zeros((), dtype=torch.int64, device=zeros.device)
    return Carry(state, zeros, None, steps, memory)


def _at_beams(
    state: State, memory: Tensor | None, parent: Tensor
) -> tuple[State, Tensor | None]:
    """Return state and memory of the beams that plans extend."""
    rows = parent[..., None].expand(-1, -1, state.unserved.shape[-1])
    state = State(
        unserved=state.unserved.gather(1, rows),
        previous=state.previous.gather(1, parent),
        remaining=state.remaining.gather(1, parent),
    )
    if memory is not None:
        memory = memory.gather(1, parent[..., None].expand_as(memory))
    return state, memory


def _follow(chosen: Tensor, parents: Tensor) -> Tensor:
    """Trace each beam back from the last step, (steps, batch, samples)."""
    arcs = torch.empty_like(chosen)
    place = torch.arange(chosen.shape[2], device=chosen.device).expand(chosen.shape[1:])
    for taken in reversed(range(len(chosen))):
        torch.gather(chosen[taken], 1, place, out=arcs[taken])
        place = parents[taken].gather(1, place)
    return arcs


# A smaller view is prepared, and on a GPU recorded: that pays for a sixth of the arcs, and
# on a GPU for so many arcs of all plans.
_WORTHWHILE = 5 / 6
_LEAST_ON_GPU = 2**17


def drop_served(view: View, carry: Carry, *, together: bool) -> tuple[View, Carry] | None:
    """Return a view without served arcs, and the carry for it; None where it does not pay.

    Plans of an instance stay side by side if `together`, as in a beam: an arc must then be
    served in all of them. Otherwise each plan becomes an instance of its own.
    """
    plans, arcs = carry.state.previous.numel(), view.batch.num_arcs
    if not carry.state.previous.is_cpu and plans * arcs < _LEAST_ON_GPU:
        return None
    state, rows = carry.state, None
    if not together and state.previous.shape[1] > 1:
        state, rows = as_instances(state)
    length = round_length(int(present_arcs(state).sum(1).amax()))
    if length > _WORTHWHILE * arcs:
        return None
    small = shrink(view.batch, state, length, rows)
    kept = small.kept if view.kept is None else view.kept.gather(1, small.kept)
    total = carry.log_probability.view(small.state.previous.shape)
    return View(small.batch, kept), carry._replace(state=small.state, log_probability=total)


def initial_memory(prepared: Any, samples: int) -> Tensor | None:
    """Return the memory of empty plans, (batch, samples, width), or None without one."""
    memory: Tensor | None = getattr(prepared, "memory", None)
    return None if memory is None else memory.expand(-1, samples, -1).contiguous()


def recall(
    policy: Policy, prepared: Any, state: State, memory: Tensor | None
) -> tuple[Any, Tensor | None]:
    """Return what a policy, recurrent or not, decides by, and the memory after it."""
    if memory is None:
        return prepared, None
    recurrent: Any = policy
    prepared = recurrent.remember(prepared._replace(memory=memory), state)
    return prepared, prepared.memory


# ------------------------------------------------------------------------ random numbers

# Constants of SplitMix64 (Steele, Lea and Flood 2014), as signed numbers.
_GOLDEN = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64


def draw_seeds(count: int, generator: torch.Generator) -> Tensor:
    """Sample a seed for each of `count` instances, on the generator's device."""
    return torch.randint(2**62, (count,), generator=generator, device=generator.device)


def gumbel_noise(seeds: Tensor, samples: int, steps: Tensor, arcs: int) -> Tensor:
    """Compute Gumbel noise by hashing, (batch, samples, arcs); the same on every device.

    It differs by the seed of the instance, (batch,), the sample, the step and the arc.
    """
    number = torch.arange(samples, device=seeds.device)
    arc = torch.arange(arcs, device=seeds.device)
    plans = mixed_bits(
        mixed_bits(seeds[:, None] + number * _GOLDEN) + steps * _GOLDEN
    )  # (batch, samples)
    bits = mixed_bits(plans[..., None] + arc * _GOLDEN)  # (batch, samples, arcs)
    # 23 bits and a half are exact in float32, and so never 0 or 1.
    uniform = (_shift_right(bits, 41).float() + 0.5) * 2.0**-23
    return -torch.log(-torch.log(uniform))


def mixed_bits(values: Tensor) -> Tensor:
    """Hash integers of 64 bits."""
    values = (values ^ _shift_right(values, 30)) * _FIRST
    values = (values ^ _shift_right(values, 27)) * _SECOND
    return values ^ _shift_right(values, 31)


def _shift_right(values: Tensor, count: int) -> Tensor:
    # Without the sign, which >> would copy.
    return (values >> count) & ((1 << (64 - count)) - 1)


# ---------------------------------------------------------------------- models to decode

_MOST_SHAPES = 64


class FastPolicy:
    """A model for decoding only, in the precision to decode in.

    torch.compile takes some ten seconds for each shape of batches, and pays for thousands
    of plans.
    """

    def __init__(self, model: AttentionModel, *, compiled: bool) -> None:
        self.model = model
        self.prepare = model.prepare
        self.step_numbers = model.step_numbers
        # A view with fewer arcs would have to be compiled again.
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

    def __call__(self, prepared: Any, state: State, allowed: Tensor) -> Tensor:
        """Compute the logits, (batch, samples, arcs), -inf where not allowed."""
        return self._call(prepared, state, allowed)


def decoding_model(model: AnyModel) -> AnyModel:
    """Return the model in the form to decode in: another than the one that learns.

    On a recent GPU a copy in bfloat16. Only of models that say so: the values of S2V-DQN
    differ too little from arc to arc. On a CPU a copy whose layers are computed by the
    core, where that has them and is faster.
    """
    if model.decodes_in_bfloat16 and has_bfloat16(next(model.parameters()).device):
        model = copy.deepcopy(model).to(torch.bfloat16)
    elif isinstance(model, AttentionModel) and is_fast_here():
        model = copy.deepcopy(model)
        model.put_in_core()
    return model.eval()
