"""How good a model is: greedy plans against the labels of a validation set."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from arcfleet.neural.cuda_graph import fastest_wrap
from arcfleet.neural.decode import greedy
from arcfleet.neural.plans import as_decoded, optimise

if TYPE_CHECKING:
    from arcfleet.neural.labelled_set import LabelledSet
    from arcfleet.neural.plans import Plans
    from arcfleet.neural.rollout import Policy


class Gaps(NamedTuple):
    """Mean gaps of total cost to the labels, in percent.

    Parameters
    ----------
    greedy
        Of the plans as decoded.
    optimised
        After the path optimiser with directions.
    """

    greedy: float
    optimised: float


@torch.no_grad()
def validate(
    model: Policy, labelled: LabelledSet, *, threads: int = 1
) -> tuple[Gaps, Plans]:
    """Decode every instance greedily and compare costs; give the plans as decoded, too."""
    wrap = fastest_wrap(labelled.batch.real.device)
    rollout = greedy(model, labelled.batch, wrap=wrap)
    label = labelled.plans.cost.double().cpu()
    decoded = as_decoded(labelled.batch, rollout)
    optimised = optimise(labelled.batch, rollout, choose_directions=True, threads=threads)
    costs = (torch.as_tensor(plans.costs).double().cpu() for plans in (decoded, optimised))
    # To a label that costs nothing there is no gap in percent; it counts as one that
    # costs 1, so that the mean stays a number.
    unit = label.clamp(min=1)
    # (instances, 1): greedy has one copy
    gaps = (100 * ((cost[:, 0] - label) / unit).mean().item() for cost in costs)
    return Gaps(*gaps), decoded
