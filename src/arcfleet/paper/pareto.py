"""Gap against time: what each method reaches in its seconds, and which to choose."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from arcfleet.errors import OptionError
from arcfleet.paper.gaps import (
    best_known_text,
    columns_of,
    common_positions,
    gaps_to,
    row_order,
    scale_number,
)
from arcfleet.paper.measure import RowsConfig, measure_rows
from arcfleet.paper.report import (
    Report,
    Section,
    checksums,
    provenance,
    record_of,
    seconds_text,
    write_report,
)
from arcfleet.paper.rows import LABELS
from arcfleet.report.charts import Point, draw_pareto

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.paper.commands import Watch
    from arcfleet.paper.series import Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Inputs and settings of `arcfleet paper pareto`.

    Parameters
    ----------
    comparison
        Test sets, rows and how they are measured.
    scale
        Task set to report, as task60; default: the largest.
    """

    comparison: RowsConfig
    scale: str | None = None


def run(config: Config, watch: Watch) -> Report:
    """Measure rows, and report gap against time at one scale."""
    rows = config.comparison
    report = pareto_report(measure_rows(rows, watch), config.scale)
    return write_report(report, rows.out, figures=rows.figures)


class _Choice(NamedTuple):
    series: Series
    seconds: float
    gap: float
    half_width: float


def pareto_report(series: Sequence[Series], scale: str | None = None) -> Report:
    """Lay out gap against time at one scale."""
    tables = columns_of(series)
    wanted = scale or max((t.scale for t in tables), key=scale_number)
    chosen = [t for t in tables if t.scale == wanted]
    if len(chosen) != 1:
        known = ", ".join(dict.fromkeys(t.scale for t in tables))
        raise OptionError(
            f"expected one test set of scale {wanted!r}, found {len(chosen)}: measured are "
            f"{known}"
        )
    (table,) = chosen
    data = next(iter(table.rows.values())).of.data_sha256
    used = [
        x for x in series if x.of.data_sha256 == data and not x.of.alone and x.row != LABELS
    ]
    # On other instances a method could look better than one that it is no better than.
    common = set(common_positions(used))
    best = {x: cost for x, cost in table.best_known.items() if x in common}
    if not best:
        raise OptionError(
            f"expected instances of {table.name} with a best known that every row solved, "
            "found none: leave rows out"
        )
    choices = []
    for x in sorted(used, key=lambda x: (row_order(x.row), x.of.device)):
        compared = gaps_to(x, best)
        if compared is not None:
            gaps, _ = compared
            width = gaps.half_width_percent or 0.0
            choices.append(_Choice(x, x.seconds_at_once, gaps.gap_percent, width))
    on_cpu = [choice for choice in choices if choice.series.of.device == "cpu"]
    has_gpu = len(on_cpu) < len(choices)
    sections = [_all_points(choices)]
    if on_cpu:
        sections.insert(0, _which_when("Which method when, without a GPU", on_cpu))
    if has_gpu:
        sections.insert(-1, _which_when("Which method when, with a GPU", choices))
    fronts = {id(choice) for choice in (*front(choices), *front(on_cpu))}
    points = [
        Point(
            label=choice.series.label,
            seconds=choice.seconds,
            gap_percent=choice.gap,
            half_width=choice.half_width,
            on_gpu=choice.series.of.device != "cpu",
            is_best=id(choice) in fronts,
        )
        for choice in choices
    ]

    counts = sorted({x.parallel for x in used if x.of.device == "cpu"} or {1})
    parallel = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    return Report(
        name="pareto",
        sections=tuple(sections),
        caption=(
            f"{table.name}: mean gap of total cost to the best known, with 95 % confidence "
            f"interval, on the {len(best):,} instances that all have solved, "
            "against the time per instance of many at once: searches "
            f"in {parallel} process{'es' if counts[-1] > 1 else ''} with one thread each, "
            f"models in batches. {best_known_text(chosen)}{provenance(used)}"
        ),
        details=checksums(used),
        records=tuple(
            record_of(choice.series)
            | {
                "gap_percent": choice.gap,
                "half_width_percent": choice.half_width,
                "on_front": id(choice) in fronts,
            }
            for choice in choices
        ),
        figures={"pareto": partial(draw_pareto, points, title=table.name)},
    )


def front(choices: Sequence[_Choice]) -> list[_Choice]:
    """Return the Pareto front of time and gap, the fastest first."""
    kept: list[_Choice] = []
    for choice in sorted(choices, key=lambda x: (x.seconds, x.gap)):
        if not kept or choice.gap < kept[-1].gap:
            kept.append(choice)
    return kept


def _which_when(title: str, choices: Sequence[_Choice]) -> Section:
    """Return the methods of the front with the time from which each is the best."""
    header = ["time per instance you have", "take", "device", "it takes", "mean gap, %"]
    rows = []
    for number, x in enumerate(front(choices)):
        takes = seconds_text(x.seconds)
        least = "any" if number == 0 else f"at least {takes}"
        rows.append([least, x.series.label, x.series.of.device, takes, f"{x.gap:.2f}"])
    return Section(title, header, rows)


def _all_points(choices: Sequence[_Choice]) -> Section:
    """Return time and gap of every method."""
    header = ["method", "device", "time per instance", "mean gap, %"]
    rows = []
    for x in choices:
        gap = f"{x.gap:.2f} ± {x.half_width:.2f}"
        takes = seconds_text(x.seconds)
        rows.append([x.series.label, x.series.of.device, takes, gap])
    return Section("All methods: time per instance and gap to the best known", header, rows)
