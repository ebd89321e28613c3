"""The rows of an experiment as tables: methods down, test sets across; Markdown and CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

from arcfleet.report.tables import markdown_table, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from arcfleet.experiments.learned_table import Cell
    from arcfleet.experiments.table_rows import TableRow


class Section(NamedTuple):
    """One table: what it shows, and its cells."""

    title: str
    header: list[str]
    rows: list[list[str | None]]


def sections(cells: Sequence[Cell], rows: Sequence[TableRow]) -> list[Section]:
    """Lay out rows as three tables: gaps, costs and times.

    Parameters
    ----------
    cells
        Those of the experiment that are filled.
    rows
        In the same order.
    """
    pairs = list(zip(cells, rows, strict=True))
    sets = list(dict.fromkeys(cell.key.set_name for cell in cells))
    labels = list(dict.fromkeys(cell.contender.label for cell in cells))
    found = {(cell.contender.label, cell.key.set_name): row for cell, row in pairs}
    whole = {
        name: max((r for c, r in pairs if c.key.set_name == name), key=_count)
        for name in sets
    }

    def lay_out(show: Callable[[TableRow], str]) -> list[list[str | None]]:
        lines: list[list[str | None]] = []
        for label in labels:
            line: list[str | None] = [label]
            for name in sets:
                row = found.get((label, name))
                if row is None:
                    line.append(None)
                    continue
                # A mean over fewer instances does not compare with its neighbours.
                fewer = f" (n={_count(row)})" if _count(row) < _count(whole[name]) else ""
                line.append(show(row) + fewer)
            lines.append(line)
        return lines

    counts = [f"n={_count(whole[name])}" for name in sets]
    references = [f"{whole[name].gaps.mean_reference:.2f}" for name in sets]
    header = ["method", *sets]
    instances: list[str | None] = ["instances", *counts]
    return [
        Section(
            "Mean gap of total cost to the labels in percent, 95 % confidence interval",
            header,
            [instances, *lay_out(gap_text)],
        ),
        Section(
            "Mean total cost",
            header,
            [["labels", *references], *lay_out(lambda row: f"{row.gaps.mean_cost:.2f}")],
        ),
        Section(
            "Milliseconds per instance",
            header,
            lay_out(milliseconds_text),
        ),
    ]


def as_text(tables: Sequence[Section]) -> str:
    """Write tables for a terminal."""
    return "\n\n".join(f"{x.title}\n\n{table(x.rows, x.header)}" for x in tables)


def as_markdown(tables: Sequence[Section], rows: Sequence[TableRow]) -> str:
    """Write tables as Markdown, and below where their figures come from."""
    parts = [f"## {x.title}\n\n{markdown_table(x.rows, x.header)}" for x in tables]
    places = dict.fromkeys(
        f"- {row.device} ({row.machine}), commit {row.commit}" for row in rows
    )
    models = dict.fromkeys(
        f"- model {row.key.model_sha256}" for row in rows if row.key.model_sha256
    )
    sets = dict.fromkeys(
        f"- {row.key.set_name}: data {row.key.data_sha256}, labels {row.key.labels_sha256}"
        for row in rows
    )
    parts.append(
        "\n".join(["Made on, with and of (SHA-256):", "", *places, *models, *sets])
    )
    return "\n\n".join(parts) + "\n"


def as_csv(cells: Sequence[Cell], rows: Sequence[TableRow]) -> str:
    """Write one line per test set and method."""
    lines = [
        {
            "set": row.key.set_name,
            "method": row.key.method,
            "label": cell.contender.label,
            **{name: dict(row.key.settings).get(name) for name in _SETTINGS},
            "instances": row.key.count,
            **asdict(row.gaps),
            "seconds_per_instance": row.seconds_per_instance,
            "judged": row.judged,
            "device": row.device,
            "machine": row.machine,
            "commit": row.commit,
            "model_sha256": row.key.model_sha256,
            "data_sha256": row.key.data_sha256,
            "labels_sha256": row.key.labels_sha256,
        }
        for cell, row in zip(cells, rows, strict=True)
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


_SETTINGS = ("iterations", "samples", "temperature", "seed")


def gap_text(row: TableRow) -> str:
    """Give the mean gap of a row and its confidence interval, without unit."""
    gaps = row.gaps
    width = gaps.half_width_percent
    return f"{gaps.gap_percent:.2f}" + ("" if width is None else f" ± {width:.2f}")


def milliseconds_text(row: TableRow) -> str:
    """Give the time of an instance in milliseconds, without unit."""
    value = 1000 * row.seconds_per_instance
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _count(row: TableRow) -> int:
    return row.key.count
