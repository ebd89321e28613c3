"""Series side by side on the same instances: gaps to MAENS, labels and the best known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from arcfleet.errors import OptionError
from arcfleet.paper.rows import LABELS, ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from arcfleet.paper.series import Series

CONFIDENCE = 0.95

#: The row that the paper's gaps are measured from.
PAPER_REFERENCE = "maens"

#: Costs to compare with, by position of the instance.
Reference = Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedGaps:
    """Costs and references of the same instances, compared."""

    mean_cost: float
    mean_reference: float
    gap_percent: float  # mean over the instances of 100 x (cost / reference - 1)
    # Half the width of the 95 % confidence interval of that mean; None for a single
    # instance.
    half_width_percent: float | None
    gap_of_means_percent: float  # 100 x (mean cost / mean reference - 1)


Compared = tuple[PairedGaps, int] | None


def paired_gaps(costs: Sequence[int], references: Sequence[int]) -> PairedGaps:
    """Compare costs with references, instance by instance.

    The interval takes the gaps of the instances as independent, by Student's t.
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


@lru_cache
def student_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Return t such that Student's distribution lies within -t and t with a probability."""
    low, high = 0.0, 1.0
    while _probability_within(high, freedom) < confidence:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if _probability_within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return high


def _probability_within(t: float, freedom: int) -> float:
    """Return the probability of -t to t: Abramowitz and Stegun 26.7.3 and 26.7.4."""
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


def gaps_to(series: Series, reference: Reference | None) -> Compared:
    """Compare a series with a reference on the instances that both have."""
    common = [x for x in series.costs if x in reference] if reference is not None else []
    if reference is None or not common:
        return None
    own = [series.costs[x] for x in common]
    return paired_gaps(own, [reference[x] for x in common]), len(common)


@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """The series of one test set: a column of a table."""

    name: str  # heading
    # Task set and maps of the test set.
    scale: str
    place: str
    rows: dict[str, Series]  # series by name of the row
    labels: Series | None  # costs of the labels; None where there are none

    @property
    def series(self) -> list[Series]:
        """All series, those of the labels among them."""
        return [*self.rows.values(), *([] if self.labels is None else [self.labels])]

    @property
    def paper_reference(self) -> Reference | None:
        """Costs of MAENS; of several runs of it, of the longest."""
        found = [x for name, x in self.rows.items() if _base(name) == PAPER_REFERENCE]
        if not found:
            return None
        return max(found, key=lambda x: x.of.settings.get("iterations", 0)).costs

    @property
    def label_reference(self) -> Reference | None:
        """Costs of the labels."""
        return None if self.labels is None else self.labels.costs

    @cached_property
    def best_known(self) -> Reference:
        """Cost of the cheapest plan of each instance that has been searched long.

        These are the instances with a label, else those with a plan by MAENS, else those
        with a plan by every row. Labels and all rows count.
        """
        positions: Iterable[int] | None = self.label_reference or self.paper_reference
        if positions is None:
            positions = common_positions(list(self.rows.values()))
        every = self.series
        return {p: min(x.costs[p] for x in every if p in x.costs) for p in positions}


def columns_of(series: Iterable[Series]) -> list[Column]:
    """Sort series by test set and row, without those of one instance at a time.

    Of a row that was measured on several devices the one with most instances is taken.
    """
    by_set: dict[str, list[Series]] = {}
    together = [each for each in series if not each.of.alone]
    require_one_setting(together)
    for each in together:
        by_set.setdefault(each.of.data_sha256, []).append(each)
    columns = [_column(group) for group in by_set.values()]
    columns = [column for column in columns if column.rows]
    if not columns:
        raise OptionError("expected measured rows to report, found none: run them first")
    names = headings([(column.name, column.scale) for column in columns])
    columns = [replace(x, name=name) for x, name in zip(columns, names, strict=True)]
    return sorted(columns, key=lambda column: (scale_number(column.scale), column.name))


def headings(sets: Sequence[tuple[str, str]]) -> list[str]:
    """Return headings of test sets: their scales where these differ, else their names."""
    scales = [scale for _, scale in sets]
    if len(set(scales)) < len(scales):
        return [name for name, _ in sets]
    return [scale.replace("task", "Task") for scale in scales]


def require_one_setting(series: Iterable[Series]) -> None:
    """Raise OptionError if a row has several settings or models on one test set."""
    found: dict[tuple[str, str], Series] = {}
    for each in series:
        of = each.of
        other = found.setdefault((of.data_sha256, of.row), each).of
        if of.row != LABELS and (of.settings, of.source_sha256) != (
            other.settings,
            other.source_sha256,
        ):
            raise OptionError(
                f"expected one model and one setting of the row {of.row!r} on "
                f"{of.set_name}, found several: report folders apart in which they differ"
            )


def _column(group: Sequence[Series]) -> Column:
    of = group[0].of
    rows: dict[str, Series] = {}
    labels: list[Series] = []
    for each in sorted(group, key=len, reverse=True):
        if each.row == LABELS:
            labels.append(each)
            continue
        rows.setdefault(each.row, each)
    if len({each.of.source_sha256 for each in labels}) > 1:
        raise OptionError(
            f"expected one set of labels of {of.set_name}, found several: report folders "
            "apart in which they differ"
        )
    return Column(
        name=of.set_name,
        scale=of.scale,
        place=of.place,
        rows={name: rows[name] for name in sorted(rows, key=row_order)},
        labels=labels[0] if labels else None,
    )


def row_order(name: str) -> tuple[int, int, str]:
    """Sort rows as the paper's table has them, others after; models by their number."""
    base, _, model = _base(name).partition(":")
    known = list(ROWS)
    place = known.index(base) if base in known else len(known)
    return place, scale_number(model), name


def scale_number(scale: str) -> int:
    """Return the number of a Task set, to sort by."""
    digits = "".join(letter for letter in scale if letter.isdigit())
    return int(digits) if digits else 0


def best_known_text(columns: Sequence[Column]) -> str:
    """Return the sentences that define the best known of test sets."""
    bare = [t.name for t in columns if t.labels is None and t.paper_reference is None]
    text = ""
    if len(bare) < len(columns):
        text = (
            "The best known is the cheapest of label and all rows, on instances that have "
            "a label; without labels, on those that MAENS solved. "
        )
    if bare:
        what = "which has" if len(bare) == 1 else "which have"
        it = "it" if text else "the best known"
        text += (
            f"In {', '.join(bare)}, {what} neither labels nor MAENS, {it} is but the "
            "cheapest of these rows, on instances that all of them solved. "
        )
    return text


def common_positions(series: Sequence[Series]) -> list[int]:
    """Return the positions of the instances that all of some series have."""
    return sorted(set.intersection(*(set(each.costs) for each in series)))


def _base(row: str) -> str:
    return row.partition("=")[0]
