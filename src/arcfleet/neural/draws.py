"""Some plans of each instance, likely or drawn by chance, through the path optimiser.

They shall differ from each other and still be good. So not all come from one look at an
instance: the signs of the MDS axes mean nothing, and the model sees several views that
differ in them; and some are built without the capacity, as tours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from arcfleet.errors import OptionError
from arcfleet.neural.decode import greedy, sample
from arcfleet.neural.features import num_axes, with_signs
from arcfleet.neural.gumbel import mixed_bits
from arcfleet.neural.plans import best, merge, optimise
from arcfleet.neural.rollout import Rollout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.plans import Plans
    from arcfleet.neural.rollout import OnStep, Policy, Wrap

#: Views of an instance, at most, and the share of plans that are tours. What was tried for
#: the shipped model, here and for the temperature: docs/training-log.md.
VIEWS = 8
TOUR_SHARE = 0.5

# Seeds differ by these from view to view, and from plans under the capacity to tours; no
# multiples of what `gumbel_noise` adds for plans and steps.
_NEXT_VIEW = 0x2545F4914F6CDD1D
_TOURS = 0x1D872B41


def likeliest_of_views(
    policy: Policy,
    batch: ArcBatch,
    *,
    threads: int = 1,
    on_step: OnStep | None = None,
    wrap: Wrap | None = None,
) -> Plans:
    """Give the cheapest of four plans: the likeliest of four views, two of them tours.

    It takes as many steps of as many plans as the paper's two beams of two, whose plans are
    nearly always the same. The path optimiser also chooses directions.

    Parameters
    ----------
    policy, batch, on_step, wrap
        As `decode.greedy` takes them; steps of tours are counted anew.
    threads
        Of the path optimiser.
    """
    size, axes = len(batch), num_axes(batch)
    twice = torch.arange(size, device=batch.real.device).repeat_interleave(2)
    pairs = batch.select(twice)
    odd = 1 - 2 * (torch.arange(axes, device=batch.real.device) % 2)  # +1, -1, +1 ...
    plain = torch.ones_like(odd)
    both = []
    for signs, bound in (((plain, -plain), True), ((odd, -odd), False)):
        views = with_signs(pairs, torch.stack(signs).repeat(size, 1))
        rollout = greedy(policy, views, bound=bound, on_step=on_step, wrap=wrap)
        plans = Rollout(
            rollout.arcs.view(size, 2, -1), rollout.log_probability.view(size, 2)
        )
        both.append(optimise(batch, plans, choose_directions=True, threads=threads))
    return best(merge(*both))


def draw_parts(
    policy: Policy,
    batch: ArcBatch,
    copies: int,
    seeds: Tensor,
    *,
    temperature: float | None = None,
    views: int = VIEWS,
    tour_share: float = TOUR_SHARE,
    threads: int = 1,
    on_step: OnStep | None = None,
    wrap: Wrap | None = None,
) -> Iterator[Plans]:
    """Draw plans of each instance; give those under the capacity, then the tours.

    The path optimiser also chooses directions. The plans of a view start with different
    arcs, as far as there are some.

    Parameters
    ----------
    policy, batch, on_step, wrap
        As `decode.sample` takes them; steps of tours are counted anew.
    copies
        Plans of each instance.
    seeds
        Of the instances, as `draw_seeds` gives them.
    temperature
        Divides the logits; None for what `usual_temperature` gives.
    views
        How many there are of an instance, unless it has fewer plans.
    tour_share
        Of the plans, from 0 to 1, rounded down.
    threads
        Of the path optimiser.
    """
    if views < 1 or not 0 <= tour_share <= 1:
        raise OptionError(
            "expected at least 1 view and a share of tours from 0 to 1, got "
            f"{views} and {tour_share}"
        )
    if temperature is None:
        heat = usual_temperature(batch.num_tasks)
    else:
        heat = torch.full((len(batch),), temperature, device=batch.real.device)
    tours = int(copies * tour_share)
    for count, bound in ((copies - tours, True), (tours, False)):
        if count == 0:
            continue
        here = seeds.to(batch.real.device) + (0 if bound else _TOURS)
        each = -(-count // min(views, count))  # copies of a view
        used = -(-count // each)
        rollout = sample(
            policy,
            views_of(batch, here, used),
            each,
            generator=torch.Generator(),
            temperature=heat.repeat_interleave(used),
            bound=bound,
            on_step=on_step,
            wrap=wrap,
            seeds=_seeds_of_views(here, used).flatten(),
            distinct_starts=True,
        )
        arcs = rollout.arcs.view(len(batch), used * each, -1)[:, :count]
        chances = rollout.log_probability.view(len(batch), used * each)[:, :count]
        drawn = Rollout(arcs, chances)
        yield optimise(batch, drawn, choose_directions=True, threads=threads)


def usual_temperature(tasks: Tensor) -> Tensor:
    """Give what divides the logits where plans of so many tasks are drawn.

    Below 1 likely arcs become likelier. Small instances have few likely plans, of which
    more heat finds more; in large ones it adds up to mistakes.
    """
    return (1.2 - tasks / 100).clamp(0.5, 0.7)


def views_of(batch: ArcBatch, seeds: Tensor, views: int) -> ArcBatch:
    """Give views of each instance, one after the other; the first is the instance itself.

    Parameters
    ----------
    batch
        The instances.
    seeds
        Of the instances, on their device, (batch,).
    views
        Of each instance.
    """
    if views == 1:
        return batch
    rows = torch.arange(len(batch), device=seeds.device).repeat_interleave(views)
    axes = num_axes(batch)
    bits = mixed_bits(_seeds_of_views(seeds, views))  # (batch, views)
    flipped = (bits[..., None] >> torch.arange(axes, device=seeds.device)) & 1
    flipped[:, 0] = 0
    return with_signs(batch.select(rows), (1 - 2 * flipped).flatten(0, 1))


def _seeds_of_views(seeds: Tensor, views: int) -> Tensor:
    """Give a seed for each view, (batch, views); the first is that of the instance."""
    return seeds[:, None] + torch.arange(views, device=seeds.device) * _NEXT_VIEW
