"""The paper's main table: costs and gaps of every row at every scale."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from arcfleet.paper.gaps import Column, best_known_text, columns_of, gaps_to, row_order
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
from arcfleet.report.charts import Line, Panel, draw_panels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from arcfleet.paper.commands import Watch
    from arcfleet.paper.gaps import Compared
    from arcfleet.paper.series import Series

    Compare = Callable[[Column, Series], Compared]

#: Inputs and settings.
Config = RowsConfig


def run(config: Config, watch: Watch) -> Report:
    """Measure the rows of the paper's table, and report them."""
    series = measure_rows(config, watch)
    return write_report(table_report(series), config.out, figures=config.figures)


def table_report(series: Sequence[Series]) -> Report:
    """Lay out series as the paper's table."""
    tables = columns_of(series)
    used = [x for t in tables for x in t.series]
    paper = {t.name: t.paper_reference for t in tables}
    labels = {t.name: t.label_reference for t in tables}
    best = {t.name: t.best_known for t in tables}
    sections = [
        cost_section(tables),
        _gap_section(
            tables,
            "Mean gap of total cost to MAENS in percent, 95 % confidence interval",
            lambda t, x: gaps_to(x, paper[t.name]),
        ),
        _gap_section(
            tables,
            "Mean gap of total cost to the labels in percent, 95 % confidence interval",
            lambda t, x: gaps_to(x, labels[t.name]),
        ),
        _gap_section(
            tables,
            "Mean gap of total cost to the best known in percent, 95 % confidence interval",
            lambda t, x: gaps_to(x, best[t.name]),
        ),
        Section(
            "Time per instance: of models in batches, of all others on one core",
            ["method", *(t.name for t in tables)],
            lay_out(tables, lambda _, x: seconds_text(x.seconds)),
        ),
    ]
    records = []
    for t in tables:
        for x in t.rows.values():
            record = record_of(x)
            record |= _gap_facts("to_maens", gaps_to(x, paper[t.name]))
            record |= _gap_facts("to_labels", gaps_to(x, labels[t.name]))
            record |= _gap_facts("to_best_known", gaps_to(x, best[t.name]))
            records.append(record)
    curves = gap_lines(tables, lambda t, x: gaps_to(x, best[t.name]))
    panel = Panel(
        title="Gap to the best known",
        x_label="test set",
        y_label="mean gap of total cost, %",
        lines=curves,
        ticks=tuple(t.name for t in tables),
        of_gaps=True,
    )

    return Report(
        name="table",
        sections=tuple(section for section in sections if section.rows),
        caption=(
            "Gaps are means over the instances that both have (n) of 100 (cost / reference "
            f"- 1). {best_known_text(tables)}{provenance(used)}"
        ),
        details=checksums(used),
        records=tuple(records),
        figures={"table": partial(draw_panels, [panel])},
    )


def row_labels(tables: Sequence[Column]) -> dict[str, str]:
    """Return the labels of all rows, in order; equal ones with the names of the rows."""
    found: dict[str, list[str]] = {}
    for t in tables:
        for name, x in t.rows.items():
            found.setdefault(name, []).append(x.label)
    labels = {name: " / ".join(dict.fromkeys(found[name])) for name in found}
    every = list(labels.values())
    return {
        name: labels[name] if every.count(labels[name]) == 1 else f"{labels[name]} ({name})"
        for name in sorted(labels, key=row_order)
    }


def lay_out(
    tables: Sequence[Column], show: Callable[[Column, Series], str | None]
) -> list[list[str | None]]:
    """Return a line per row with a cell per test set."""
    return [
        [label, *(show(t, t.rows[name]) if name in t.rows else None for t in tables)]
        for name, label in row_labels(tables).items()
    ]


def cost_section(tables: Sequence[Column]) -> Section:
    """Return the mean costs; a mean of fewer instances than others bears their number."""
    most = {t.name: max(map(len, t.rows.values())) for t in tables}

    def show(t: Column, x: Series) -> str:
        fewer = f" (n={len(x)})" if len(x) < most[t.name] else ""
        return f"{x.mean_cost:.1f}{fewer}"

    instances: list[str | None] = ["instances", *(f"n={most[t.name]}" for t in tables)]
    return Section(
        "Mean total cost",
        ["method", *(t.name for t in tables)],
        [instances, *lay_out(tables, show)],
    )


def _gap_section(
    tables: Sequence[Column],
    title: str,
    compare: Compare,
) -> Section:
    found = {(t.name, name): compare(t, x) for t in tables for name, x in t.rows.items()}
    most = {
        t.name: max(
            (c[1] for (place, _), c in found.items() if c and place == t.name), default=0
        )
        for t in tables
    }
    rows = lay_out(tables, lambda t, x: gap_text(found[t.name, x.row], most[t.name]))
    shown = [row for row in rows if any(cell is not None for cell in row[1:])]
    instances: list[str | None] = ["instances", *(f"n={most[t.name]}" for t in tables)]
    return Section(
        title, ["method", *(t.name for t in tables)], [instances, *shown] if shown else []
    )


def gap_text(compared: Compared, usual: int = 0) -> str | None:
    """Return a mean gap, its confidence interval and, if not as usual, the instances."""
    if compared is None:
        return None
    gaps, count = compared
    width = gaps.half_width_percent
    spread = "" if width is None else f" ± {width:.2f}"
    number = "" if count == usual else f" (n={count})"
    return f"{gaps.gap_percent:.2f}{spread}{number}"


def gap_lines(tables: Sequence[Column], compare: Compare) -> tuple[Line, ...]:
    """Return the mean gaps of each row over the test sets, to be drawn."""
    lines = []
    for name, label in row_labels(tables).items():
        places, gaps, widths = [], [], []
        for place, t in enumerate(tables):
            compared = compare(t, t.rows[name]) if name in t.rows else None
            if compared is not None:
                places.append(float(place))
                gaps.append(compared[0].gap_percent)
                widths.append(compared[0].half_width_percent or 0.0)
        if places:
            lines.append(
                Line(label=label, x=tuple(places), y=tuple(gaps), widths=tuple(widths))
            )
    return tuple(lines)


def _gap_facts(name: str, compared: Compared) -> dict[str, object]:
    if compared is None:
        return {}
    gaps, count = compared
    facts = {f"{fact}_{name}": value for fact, value in asdict(gaps).items()}
    facts.pop(f"mean_cost_{name}")
    return {f"instances_{name}": count, **facts}
