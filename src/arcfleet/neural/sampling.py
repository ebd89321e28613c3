"""Rollouts over augmentations: flipped signs of MDS axes, with and without capacity mask.

The signs of the axes mean nothing, but lead a model to other plans. Half of the plans are
giant tours, which Split cuts into routes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from arcfleet.errors import OptionError
from arcfleet.neural.batch import with_signs
from arcfleet.neural.decoding import Rollout, greedy, mixed_bits, sample
from arcfleet.neural.plans import best, merge, split_plans

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.decoding import OnStep, Policy, Wrap
    from arcfleet.neural.plans import Plans

#: Largest number of augmentations of an instance, and the fraction of giant tours. What was
#: tried for the shipped model, here and for the temperature: research/log.
NUM_AUGMENTATIONS = 8

GIANT_TOUR_SHARE = 0.5

# Differences of the seeds of two augmentations, and of plans with the capacity mask and
# giant tours; no multiples of what `gumbel_noise` adds for plans and steps.
_NEXT_AUGMENTATION = 0x2545F4914F6CDD1D

_GIANT_TOURS = 0x1D872B41


def augmented_greedy(
    policy: Policy,
    batch: ArcBatch,
    *,
    threads: int = 1,
    on_step: OnStep | None = None,
    wrap: Wrap | None = None,
) -> Plans:
    """Return the cheapest of four greedy rollouts over augmentations, two of giant tours.

    It takes as many steps of as many plans as the paper's two beams of two, whose plans are
    nearly always the same. Split also chooses directions.

    Parameters
    ----------
    policy, batch, on_step, wrap
        As in `decoding.greedy`; steps of giant tours are counted anew.
    threads
        Threads of Split.
    """
    size = len(batch)
    twice = torch.arange(size, device=batch.real.device).repeat_interleave(2)
    pairs = batch.select(twice)
    axis = torch.arange(batch.num_axes, device=batch.real.device)
    alternating = 1 - 2 * (axis % 2)  # +1, -1, +1 ...
    plain = torch.ones_like(alternating)
    both = []
    for signs, capacity_mask in ((plain, True), (alternating, False)):
        flips = torch.stack([signs, -signs]).repeat(size, 1)
        rollout = greedy(
            policy,
            with_signs(pairs, flips),
            capacity_mask=capacity_mask,
            on_step=on_step,
            wrap=wrap,
        )
        plans = Rollout(
            rollout.arcs.view(size, 2, -1), rollout.log_probability.view(size, 2)
        )
        both.append(split_plans(batch, plans, choose_directions=True, threads=threads))
    return best(merge(*both))


def sample_plans(
    policy: Policy,
    batch: ArcBatch,
    samples: int,
    seeds: Tensor,
    *,
    temperature: float | None = None,
    num_augmentations: int = NUM_AUGMENTATIONS,
    giant_tour_share: float = GIANT_TOUR_SHARE,
    threads: int = 1,
    on_step: OnStep | None = None,
    wrap: Wrap | None = None,
) -> Iterator[Plans]:
    """Sample plans of each instance; yield those with the capacity mask, then giant tours.

    Split also chooses directions. The plans of an augmentation start with distinct arcs, as
    far as there are enough.

    Parameters
    ----------
    policy, batch, on_step, wrap
        As in `decoding.sample`; steps of giant tours are counted anew.
    samples
        Plans of each instance.
    seeds
        Seeds of the instances, as from `draw_seeds`.
    temperature
        Divisor of the logits; None for `default_temperature`.
    num_augmentations
        Augmentations of an instance, unless it has fewer plans.
    giant_tour_share
        Fraction of giant tours, from 0 to 1, rounded down.
    threads
        Threads of Split.
    """
    if num_augmentations < 1 or not 0 <= giant_tour_share <= 1:
        raise OptionError(
            "expected at least 1 augmentation and a share of giant tours from 0 to 1, got "
            f"{num_augmentations} and {giant_tour_share}"
        )
    if temperature is None:
        heat = default_temperature(batch.num_tasks)
    else:
        heat = torch.full((len(batch),), temperature, device=batch.real.device)
    giant_tours = int(samples * giant_tour_share)
    for count, capacity_mask in ((samples - giant_tours, True), (giant_tours, False)):
        if count == 0:
            continue
        here = seeds.to(batch.real.device) + (0 if capacity_mask else _GIANT_TOURS)
        each = -(-count // min(num_augmentations, count))  # samples of an augmentation
        used = -(-count // each)
        rollout = sample(
            policy,
            augmentations(batch, here, used),
            each,
            generator=torch.Generator(),
            temperature=heat.repeat_interleave(used),
            capacity_mask=capacity_mask,
            on_step=on_step,
            wrap=wrap,
            seeds=_augmentation_seeds(here, used).flatten(),
            distinct_starts=True,
        )
        arcs = rollout.arcs.view(len(batch), used * each, -1)[:, :count]
        total = rollout.log_probability.view(len(batch), used * each)[:, :count]
        sampled = Rollout(arcs, total)
        yield split_plans(batch, sampled, choose_directions=True, threads=threads)


def default_temperature(tasks: Tensor) -> Tensor:
    """Return the sampling temperature of instances with so many tasks.

    Below 1 likely arcs become likelier. Small instances have few likely plans, of which a
    higher temperature finds more; in large ones its mistakes add up.
    """
    return (1.2 - tasks / 100).clamp(0.5, 0.7)


def augmentations(batch: ArcBatch, seeds: Tensor, count: int) -> ArcBatch:
    """Return `count` augmentations of each instance; the first is the instance itself.

    Parameters
    ----------
    batch
        Instances.
    seeds
        Seeds of the instances, on their device, (batch,).
    count
        Augmentations of each instance, which follow each other.
    """
    if count == 1:
        return batch
    rows = torch.arange(len(batch), device=seeds.device).repeat_interleave(count)
    axis = torch.arange(batch.num_axes, device=seeds.device)
    bits = mixed_bits(_augmentation_seeds(seeds, count))  # (batch, count)
    flipped = (bits[..., None] >> axis) & 1
    flipped[:, 0] = 0
    return with_signs(batch.select(rows), (1 - 2 * flipped).flatten(0, 1))


def _augmentation_seeds(seeds: Tensor, count: int) -> Tensor:
    """Return a seed for each augmentation, (batch, count); the first is the instance's."""
    return seeds[:, None] + torch.arange(count, device=seeds.device) * _NEXT_AUGMENTATION
