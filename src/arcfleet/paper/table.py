"""The paper's main table: costs and gaps of every row at every scale."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from arcfleet.datasets.shards import Shard
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

#: References of gaps: words, property of `Column`, and ending of names in the CSV file.
_REFERENCES = (
    ("MAENS", "paper_reference", "to_maens"),
    ("the labels", "label_reference", "to_labels"),
    ("the best known", "best_known", "to_best_known"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(RowsConfig):
    """Inputs and settings of the table.

    Parameters
    ----------
    shard
        Part of the plans to make, as in 3/10 for the third of ten parts; `arcfleet merge`
        joins their files runs.jsonl, of which the same command without --shard reports.
    """

    shard: str | None = field(default=None, metadata={"metavar": "I/N"})

    def __post_init__(self) -> None:
        """Raise OptionError if there is no such part."""
        if self.shard is not None:
            Shard.parse(self.shard)


def run(config: Config, watch: Watch) -> Report:
    """Measure the rows of the paper's table, and report them; of a part, only measure."""
    if config.shard is not None:
        series = measure_rows(config, watch, shard=Shard.parse(config.shard))
        caption = f"{sum(map(len, series))} plans of part {config.shard}"
        return Report(
            name="table", sections=(), caption=caption, files=(config.out / "runs.jsonl",)
        )
    series = measure_rows(config, watch)
    return write_report(table_report(series), config.out, figures=config.figures)


def table_report(series: Sequence[Series]) -> Report:
    """Lay out series as the paper's table."""
    tables = columns_of(series)
    used = [x for t in tables for x in t.series]
    times = Section(
        "Time per instance: of models in batches, of all others on one core",
        ["method", *(t.name for t in tables)],
        lay_out(tables, lambda _, x: seconds_text(x.seconds)),
    )
    gaps = [_gap_section(tables, words, name) for words, name, _ in _REFERENCES]
    sections = [cost_section(tables), *gaps, times]
    records = []
    for t in tables:
        for x in t.rows.values():
            record = record_of(x)
            for _, reference, fact in _REFERENCES:
                record |= _gap_facts(fact, gaps_to(x, getattr(t, reference)))
            records.append(record)
    panel = gap_panel(
        tables, "Gap to the best known", "mean gap of total cost, %", of_gaps=True
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

    instances = ["instances", *(f"n={most[t.name]}" for t in tables)]
    return Section(
        "Mean total cost",
        ["method", *(t.name for t in tables)],
        [instances, *lay_out(tables, show)],
    )


def _gap_section(tables: Sequence[Column], words: str, reference: str) -> Section:
    """Return the mean gaps to a reference; without rows where no column has it."""
    found = {
        (t.name, name): gaps_to(x, getattr(t, reference))
        for t in tables
        for name, x in t.rows.items()
    }
    most = {
        t.name: max((c[1] for (at, _), c in found.items() if c and at == t.name), default=0)
        for t in tables
    }
    rows = lay_out(tables, lambda t, x: gap_text(found[t.name, x.row], most[t.name]))
    shown = [row for row in rows if any(cell is not None for cell in row[1:])]
    instances = ["instances", *(f"n={most[t.name]}" for t in tables)]
    header = ["method", *(t.name for t in tables)]
    return Section(gap_title(words), header, [instances, *shown] if shown else [])


def gap_title(reference: str) -> str:
    """Return the title of a table of gaps."""
    return f"Mean gap of total cost to {reference} in percent, 95 % confidence interval"


def gap_text(compared: Compared, usual: int = 0) -> str | None:
    """Return a mean gap, its confidence interval and, if not as usual, the instances."""
    if compared is None:
        return None
    gaps, count = compared
    width = gaps.half_width_percent
    spread = "" if width is None else f" ± {width:.2f}"
    number = "" if count == usual else f" (n={count})"
    return f"{gaps.gap_percent:.2f}{spread}{number}"


def gap_panel(
    tables: Sequence[Column], title: str, y_label: str, *, of_gaps: bool = False
) -> Panel:
    """Return a panel of the mean gaps of each row to the best known, over the test sets."""
    lines = []
    for name, label in row_labels(tables).items():
        pairs = [
            (i, gaps_to(t.rows[name], t.best_known))
            for i, t in enumerate(tables)
            if name in t.rows
        ]
        known = [(float(place), x[0]) for place, x in pairs if x is not None]
        if known:
            lines.append(
                Line(
                    label=label,
                    x=tuple(place for place, _ in known),
                    y=tuple(gaps.gap_percent for _, gaps in known),
                    widths=tuple(gaps.half_width_percent or 0.0 for _, gaps in known),
                )
            )
    return Panel(
        title=title,
        x_label="test set",
        y_label=y_label,
        lines=tuple(lines),
        ticks=tuple(t.name for t in tables),
        of_gaps=of_gaps,
    )


def _gap_facts(name: str, compared: Compared) -> dict[str, object]:
    if compared is None:
        return {}
    gaps, count = compared
    facts = {f"{fact}_{name}": value for fact, value in asdict(gaps).items()}
    facts.pop(f"mean_cost_{name}")
    return {f"instances_{name}": count, **facts}
