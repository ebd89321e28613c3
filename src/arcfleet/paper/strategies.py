"""The paper's decoding: beam search with and without the capacity mask, then Split.

Registered in the table of `neural.strategies` when this module is imported, which does not
import torch.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from arcfleet.neural.strategies import Strategy, register_strategy

if TYPE_CHECKING:
    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.decoding import OnStep, Policy, Wrap
    from arcfleet.neural.decoding_run import DecodingRun
    from arcfleet.neural.plans import Plans


def paper_beams(
    policy: Policy,
    batch: ArcBatch,
    *,
    width: int = 2,
    mirrored: bool = True,
    choose_directions: bool = False,
    threads: int = 1,
    on_step: OnStep | None = None,
    wrap: Wrap | None = None,
) -> Plans:
    """Return the cheapest plans of two beams, with and without the capacity mask, split.

    If `mirrored`, which is ours, the second beam sees the instances with all MDS axes
    flipped, so that it errs elsewhere than the first: the signs of the axes mean nothing.
    What that brings: research/log.

    Parameters
    ----------
    policy, batch, on_step, wrap
        As in `decoding.greedy`.
    width
        Width of each beam; 2 is the paper's.
    mirrored
        Whether the second beam sees the axes flipped.
    choose_directions, threads
        As in `split_plans`; the paper keeps directions.
    """
    import torch

    from arcfleet.neural.batch import with_signs
    from arcfleet.neural.decoding import beam
    from arcfleet.neural.plans import best, merge, split_plans

    second = batch
    if mirrored:
        signs = -torch.ones((len(batch), batch.num_axes), device=batch.real.device)
        second = with_signs(batch, signs)
    both = []
    for seen, capacity_mask in ((batch, True), (second, False)):
        rollout = beam(
            policy, seen, width, capacity_mask=capacity_mask, on_step=on_step, wrap=wrap
        )
        both.append(
            split_plans(
                batch, rollout, choose_directions=choose_directions, threads=threads
            )
        )
    return best(merge(*both))


def _beams(run: DecodingRun, *, mirrored: bool) -> Plans:
    return paper_beams(
        run.policy,
        run.batch,
        mirrored=mirrored,
        threads=run.threads,
        on_step=run.on_step,
        wrap=run.wrap,
    )


#: The strategy of the row `daam-po`.
BEAMS = register_strategy(
    Strategy(
        name="beams",
        summary="the paper's: two beams, with and without the capacity mask, then Split",
        decode=partial(_beams, mirrored=True),
        rollouts=4,
    )
)

#: The same as published, a row of its own.
PUBLISHED_BEAMS = register_strategy(
    Strategy(
        name="published-beams",
        summary="the same as published: both beams see the instance as it is",
        decode=partial(_beams, mirrored=False),
        rollouts=4,
    )
)
