"""Decoding: from a policy to plans, by the best arc, by chance, or by a beam.

A plan is bound if the policy minds the capacity and returns to the depot by itself; unbound
if it gives one long order of services, which the path optimiser cuts (`plans.optimise`).

All of it works on (batch, copies, ...) tensors with no Python loop over instances. A step
is one function of tensors, `advance(carry) -> carry`, which `wrap` may replace: by
`torch.compile`, or by a CUDA graph that copies the carry into its own tensors, replays and
gives its own carry back. Compiling the policy alone works, too: a compiled Daam is a
Policy. The policy is used as it is: call `eval()` on a model before.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from arcfleet.errors import OptionError
from arcfleet.neural.gumbel import draw_seeds, gumbel_noise
from arcfleet.neural.memory import first_memory, recall
from arcfleet.neural.narrow import narrowing
from arcfleet.neural.rollout import Carry, Rollout, Stage, View, by_chunks, walk
from arcfleet.neural.state import State, allowed_arcs, start, step

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.rollout import (
        Advance,
        Begin,
        Limits,
        Narrower,
        OnStep,
        Policy,
        Wrap,
    )

    # From where plans stand to log-probabilities of the arcs, and what is remembered.
    Chances = Callable[[Carry], tuple[Tensor, Tensor | None]]


@torch.no_grad()
def greedy(
    policy: Policy,
    batch: ArcBatch,
    *,
    bound: bool = True,
    chunk: int | None = None,
    on_step: OnStep | None = None,
    wrap: Wrap | None = None,
    first: State | None = None,
) -> Rollout:
    """Choose the most probable arc at every step; one copy of each instance.

    Parameters
    ----------
    policy
        Gives the logits.
    batch
        The instances.
    bound
        Whether the capacity counts.
    chunk
        Instances to decode at a time; None for as many as fit the memory.
    on_step
        Told at every step how many are done and how many there are at most; may raise.
    wrap
        Replaces the step by a faster one.
    first
        Where plans stand already, (batch, copies, ...): each is brought to its end, and
        the rollout holds what comes after. None for one empty plan of each instance.
    """
    copies = 1 if first is None else first.previous.shape[1]

    def decode(
        piece: ArcBatch, part: slice, limits: Limits, tell: Callable[[int], None]
    ) -> Rollout:
        def begin(view: View) -> Stage:
            prepared = policy.prepare(view.batch)
            chances = _chances(policy, prepared, view.batch, bound=bound)

            def advance(carry: Carry) -> Carry:
                log_probability, memory = chances(carry)  # (batch, copies, arcs)
                chosen = log_probability.argmax(-1)
                return _choose(view.batch, carry, chosen, log_probability, memory, bound)

            return Stage(view, prepared, _wrapped(advance, wrap))

        stage = begin(View(piece))
        carry = _first_carry(stage, copies, first, part)
        narrower = narrowing(policy, together=copies == 1)
        return _walk(stage, begin, carry, limits, tell, narrower)

    return by_chunks(
        decode,
        batch,
        copies,
        policy=policy,
        bound=bound,
        chunk=chunk,
        on_step=on_step,
        first=first,
    )


@torch.no_grad()
def sample(
    policy: Policy,
    batch: ArcBatch,
    copies: int,
    *,
    generator: torch.Generator,
    temperature: float | Tensor = 1.0,
    bound: bool = True,
    chunk: int | None = None,
    on_step: OnStep | None = None,
    wrap: Wrap | None = None,
    first: State | None = None,
    seeds: Tensor | None = None,
    distinct_starts: bool = False,
) -> Rollout:
    """Draw `copies` plans of each instance, independently, as probable as the policy says.

    With distinct starts only what follows them is independent.

    A seed of the generator gives the same draws on every device and in chunks of any
    size; the plans are the same as far as the logits are. The log-probabilities are those
    of the draw, temperature included.

    Parameters
    ----------
    policy, batch, bound, chunk, on_step, wrap, first
        As in `greedy`.
    copies
        Plans of each instance, as many as those of `first`.
    generator
        Gives the seed of each instance.
    temperature
        Divides the logits: one number, or one for each instance, (batch,).
    seeds
        Of the instances, as `draw_seeds` gives them; the generator is not used then.
    distinct_starts
        Whether the first arcs of the copies are drawn without replacement, as long as
        there are others; the log-probabilities count them as if drawn alone. Not with
        `first`.
    """
    _check_count("copies", copies)
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
    if first is not None and first.previous.shape[1] != copies:
        raise OptionError(
            f"expected {first.previous.shape[1]} copies, one for each plan to go on with, "
            f"got {copies}"
        )
    if first is not None and distinct_starts:
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
                policy, prepared, view.batch, bound=bound, temperature=divisor
            )

            def advance(carry: Carry) -> Carry:
                log_probability, memory = chances(carry)  # (batch, copies, arcs)
                noise = gumbel_noise(piece_seeds, copies, carry.steps, piece.num_arcs)
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
                return _choose(view.batch, carry, chosen, log_probability, memory, bound)

            return Stage(view, prepared, _wrapped(advance, wrap))

        stage = begin(View(piece))
        carry = _first_carry(stage, copies, first, part)
        narrower = narrowing(policy, together=False)
        return _walk(stage, begin, carry, limits, tell, narrower)

    return by_chunks(
        decode,
        batch,
        copies,
        policy=policy,
        bound=bound,
        chunk=chunk,
        on_step=on_step,
        first=first,
    )


@torch.no_grad()
def beam(
    policy: Policy,
    batch: ArcBatch,
    width: int,
    *,
    bound: bool = True,
    chunk: int | None = None,
    on_step: OnStep | None = None,
    wrap: Wrap | None = None,
) -> Rollout:
    """Keep the `width` most probable plans at every step; they are the copies, best first.

    The copies of an instance are never the same. A finished plan keeps its place as long
    as no more probable ones push it out.

    Parameters
    ----------
    policy, batch, bound, chunk, on_step, wrap
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
            chances = _chances(policy, prepared, view.batch, bound=bound)

            def advance(carry: Carry) -> Carry:
                return _extend(view.batch, carry, chances, bound)

            return Stage(view, prepared, _wrapped(advance, wrap))

        stage = begin(View(piece))
        first = _first_carry(stage, width)
        # All copies of the empty plan but one have no chance, or all would stay the same.
        alone = torch.full_like(first.log_probability, -math.inf)
        alone[:, 0] = 0.0
        first = first._replace(
            log_probability=alone, parent=torch.zeros_like(first.state.previous)
        )
        narrower = narrowing(policy, together=True)
        return _walk(stage, begin, first, limits, tell, narrower)

    return by_chunks(
        decode, batch, width, policy=policy, bound=bound, chunk=chunk, on_step=on_step
    )


def _check_count(name: str, count: int) -> None:
    if count < 1:
        raise OptionError(f"expected {name} to be at least 1, got {count}")


def _wrapped(advance: Advance, wrap: Wrap | None) -> Advance:
    return advance if wrap is None else wrap(advance)


def _first_carry(
    stage: Stage, copies: int, first: State | None = None, part: slice | None = None
) -> Carry:
    state = start(stage.view.batch, copies)
    memory = first_memory(stage.prepared, copies)
    if first is not None:
        state = State(*(tensor[part] for tensor in first))
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


def _chances(
    policy: Policy,
    prepared: Any,
    batch: ArcBatch,
    *,
    bound: bool,
    temperature: float | Tensor = 1.0,
) -> Chances:
    def chances(carry: Carry) -> tuple[Tensor, Tensor | None]:
        state = carry.state
        allowed = allowed_arcs(batch, state, bound=bound)
        known, memory = recall(policy, prepared, state, carry.memory)
        logits = policy(known, state, allowed)
        if logits.dtype != torch.float64:
            logits = logits.float()
        return (logits / temperature).log_softmax(-1), memory  # (batch, copies, arcs)

    return chances


def _choose(
    batch: ArcBatch,
    carry: Carry,
    chosen: Tensor,
    log_probability: Tensor,
    memory: Tensor | None,
    bound: bool,
) -> Carry:
    gained = log_probability.gather(-1, chosen[..., None])[..., 0]
    return Carry(
        state=step(batch, carry.state, chosen, bound=bound),
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
        What copies choose where there are too few arcs, (batch, copies).
    """
    copies = alone.shape[1]
    drawn = scores.topk(min(copies, scores.shape[1]), dim=1)
    missing = (0, copies - drawn.values.shape[1])
    value = functional.pad(drawn.values, missing, value=-math.inf)
    return torch.where(value > -math.inf, functional.pad(drawn.indices, missing), alone)


def _extend(batch: ArcBatch, carry: Carry, chances: Chances, bound: bool) -> Carry:
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
        state=step(batch, state, chosen % arcs, bound=bound),
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
    arcs = chosen.permute(1, 2, 0)  # (batch, copies, steps)
    no_plan = log_probability == -math.inf
    return Rollout(arcs.masked_fill(no_plan[..., None], 0), log_probability)


def _follow(chosen: Tensor, parents: Tensor) -> Tensor:
    # From the last step back: where each plan stood among the copies before.
    arcs = torch.empty_like(chosen)  # (steps, batch, copies)
    place = torch.arange(chosen.shape[2], device=chosen.device).expand(chosen.shape[1:])
    for taken in reversed(range(len(chosen))):
        torch.gather(chosen[taken], 1, place, out=arcs[taken])
        place = parents[taken].gather(1, place)
    return arcs
