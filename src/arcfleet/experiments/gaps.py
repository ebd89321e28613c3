"""How far costs lie above a reference on the same instances, and how sure that is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from arcfleet.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedGaps:
    """What the costs of some instances say together.

    Parameters
    ----------
    mean_cost, mean_reference
        Mean total costs.
    gap_percent
        Mean over the instances of 100 x (cost / reference - 1).
    half_width_percent
        The 95 % confidence interval of that mean reaches so far to both sides; None for
        a single instance.
    gap_of_means_percent
        100 x (mean cost / mean reference - 1).
    """

    mean_cost: float
    mean_reference: float
    gap_percent: float
    half_width_percent: float | None
    gap_of_means_percent: float


def paired_gaps(costs: Sequence[int], references: Sequence[int]) -> PairedGaps:
    """Compare costs with references, instance by instance.

    The interval takes the gaps of the instances as independent, by Student's t.

    Raises
    ------
    OptionError
        If there is no instance, or not one positive reference for each.
    """
    if len(costs) != len(references) or not len(costs) or min(references) < 1:
        raise OptionError(
            f"expected a positive reference cost for each of at least 1 instance, got "
            f"{len(references)} references for {len(costs)} costs"
            + (f", the least {min(references)}" if len(references) else "")
        )
    own = np.asarray(costs, dtype=np.float64)
    other = np.asarray(references, dtype=np.float64)
    gaps = 100 * (own / other - 1)
    count = len(gaps)
    half_width = None
    if count > 1:
        error = float(gaps.std(ddof=1)) / math.sqrt(count)
        half_width = student_quantile(count - 1) * error
    return PairedGaps(
        mean_cost=float(own.mean()),
        mean_reference=float(other.mean()),
        gap_percent=float(gaps.mean()),
        half_width_percent=half_width,
        gap_of_means_percent=float(100 * (own.mean() / other.mean() - 1)),
    )


def student_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Give t such that Student's distribution lies between -t and t with this chance.

    Parameters
    ----------
    freedom
        Degrees of freedom, at least 1.
    confidence
        The chance, below 1.
    """
    low, high = 0.0, 1.0
    while _chance_within(high, freedom) < confidence:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if _chance_within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return high


def _chance_within(t: float, freedom: int) -> float:
    """Give the chance of -t to t: Abramowitz and Stegun 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(freedom))
    square = math.cos(angle) ** 2
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for exponent in range(odd, freedom - 1, 2):
        total += term
        term *= square * (exponent + 1) / (exponent + 2)
    total *= math.sin(angle)
    return (angle + total) * 2 / math.pi if odd else total
