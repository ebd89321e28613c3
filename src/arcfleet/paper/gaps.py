"""Series side by side on the same instances: gaps to MAENS, labels and the best known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from arcfleet.errors import OptionError
from arcfleet.paper.rows import LABELS, ROW_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from arcfleet.paper.series import Series


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


#: The row that the paper's gaps are measured from.
PAPER_REFERENCE = "maens"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reference:
    """Costs to compare with.

    Parameters
    ----------
    positions
        Of the instances that have one, rising.
    costs
        Of these.
    """

    positions: NDArray[np.int64]
    costs: NDArray[np.int64]

    def where(self, positions: NDArray[np.int64]) -> Reference:
        """Give it for these instances only."""
        kept = np.isin(self.positions, positions)
        return Reference(positions=self.positions[kept], costs=self.costs[kept])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SetTable:
    """The series of one test set, one per row.

    Parameters
    ----------
    name
        Of its column.
    scale, place
        Its Task set and its maps.
    rows
        By name of the row.
    labels
        The costs of the labels; None where there are none.
    """

    name: str
    scale: str
    place: str
    rows: dict[str, Series]
    labels: Series | None

    @property
    def paper_reference(self) -> Reference | None:
        """Give the costs of MAENS; of several runs of it, of the longest."""
        found = [x for name, x in self.rows.items() if _base(name) == PAPER_REFERENCE]
        if not found:
            return None
        longest = max(found, key=lambda x: dict(x.key.settings).get("iterations", 0))
        return Reference(positions=longest.positions, costs=longest.costs)

    @property
    def label_reference(self) -> Reference | None:
        """Give the costs of the labels."""
        labels = self.labels
        if labels is None:
            return None
        return Reference(positions=labels.positions, costs=labels.costs)

    @property
    def best_known(self) -> Reference:
        """Give the cheapest plan of each instance that has been searched long.

        That is where there is a label, else where MAENS has a plan, else where every row
        has one; labels and all rows then count.
        """
        paper = self.paper_reference
        if self.labels is not None:
            positions = self.labels.positions
        elif paper is not None:
            positions = paper.positions
        else:
            positions = common_positions(list(self.rows.values()))
        best = np.full(len(positions), np.iinfo(np.int64).max)
        every = [*self.rows.values(), *([] if self.labels is None else [self.labels])]
        for series in every:
            known = np.isin(positions, series.positions)
            places = np.searchsorted(series.positions, positions[known])
            best[known] = np.minimum(best[known], series.costs[places])
        return Reference(positions=positions, costs=best)


def set_tables(series: Iterable[Series]) -> list[SetTable]:
    """Sort series by test set and row, those of one instance at a time left out.

    Of a row that was measured on several devices the one with most instances is taken.

    Raises
    ------
    OptionError
        If a row was measured with several settings or models, or there is none.
    """
    by_set: dict[str, list[Series]] = {}
    together = [each for each in series if not each.key.alone]
    require_one_setting(together)
    for each in together:
        by_set.setdefault(each.key.data_sha256, []).append(each)
    tables = [_set_table(group) for group in by_set.values()]
    tables = [table for table in tables if table.rows]
    if not tables:
        raise OptionError("expected measured rows to report, found none: run them first")
    scales = [table.scale for table in tables]
    if len(set(scales)) == len(scales):  # the scale alone tells them apart
        tables = [
            SetTable(
                name=table.scale.replace("task", "Task"),
                scale=table.scale,
                place=table.place,
                rows=table.rows,
                labels=table.labels,
            )
            for table in tables
        ]
    return sorted(tables, key=lambda table: (scale_number(table.scale), table.name))


def require_one_setting(series: Iterable[Series]) -> None:
    """Raise OptionError if a row has several settings or models on one test set."""
    found: dict[tuple[str, str], Series] = {}
    for each in series:
        key = each.key
        other = found.setdefault((key.data_sha256, key.row), each).key
        if key.row != LABELS and (key.settings, key.source_sha256) != (
            other.settings,
            other.source_sha256,
        ):
            raise OptionError(
                f"expected one model and one setting of the row {key.row!r} on "
                f"{key.set_name}, found several: report folders apart in which they differ"
            )


def _set_table(group: Sequence[Series]) -> SetTable:
    key = group[0].key
    rows: dict[str, Series] = {}
    labels: list[Series] = []
    for each in sorted(group, key=len, reverse=True):
        if each.key.row == LABELS:
            labels.append(each)
            continue
        rows.setdefault(each.key.row, each)
    if len({each.key.source_sha256 for each in labels}) > 1:
        raise OptionError(
            f"expected one set of labels of {key.set_name}, found several: report folders "
            "apart in which they differ"
        )
    ordered = {name: rows[name] for name in sorted(rows, key=row_order)}
    return SetTable(
        name=key.set_name,
        scale=key.scale,
        place=key.place,
        rows=ordered,
        labels=labels[0] if labels else None,
    )


def gaps_to(series: Series, reference: Reference | None) -> tuple[PairedGaps, int] | None:
    """Compare a series with a reference on the instances that both have.

    Returns
    -------
    gaps, count
        What the costs say, and on how many instances; None where they share none.
    """
    if reference is None:
        return None
    _, own, other = np.intersect1d(
        series.positions, reference.positions, assume_unique=True, return_indices=True
    )
    if not len(own):
        return None
    gaps = paired_gaps(series.costs[own].tolist(), reference.costs[other].tolist())
    return gaps, len(own)


def row_order(name: str) -> tuple[int, int, str]:
    """Sort rows as the paper's table has them, others after; models by their number."""
    base, _, model = _base(name).partition(":")
    known = list(ROW_TYPES)
    place = known.index(base) if base in known else len(known)
    return place, scale_number(model), name


def scale_number(scale: str) -> int:
    """Give the number of a Task set, to sort by."""
    digits = "".join(letter for letter in scale if letter.isdigit())
    return int(digits) if digits else 0


def best_known_text(tables: Sequence[SetTable]) -> str:
    """Say in sentences what the best known of test sets is."""
    bare = [t.name for t in tables if t.labels is None and t.paper_reference is None]
    text = ""
    if len(bare) < len(tables):
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


def _base(row: str) -> str:
    return row.partition("=")[0]


def common_positions(series: Sequence[Series]) -> NDArray[np.int64]:
    """Give the positions of the instances that all of some series have."""
    common = series[0].positions
    for each in series[1:]:
        common = np.intersect1d(common, each.positions, assume_unique=True)
    return common
