"""What the inputs of the model are worth: costs at equal training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arcfleet.experiments.comparison import best_known_text, gaps_to, set_tables
from arcfleet.experiments.report_files import (
    Drawing,
    Report,
    Section,
    checksums,
    provenance,
    record_of,
)
from arcfleet.experiments.table_report import cost_section, gap_lines, gap_text, lay_out
from arcfleet.report.charts import Panel, draw_panels

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from arcfleet.experiments.series import Series


def ablation_report(series: Sequence[Series]) -> Report:
    """Lay out the costs of models that differ in their inputs, scale by scale.

    Raises
    ------
    OptionError
        If there is nothing to report.
    """
    tables = set_tables(series)
    used = [
        x for t in tables for x in (*t.rows.values(), *([t.labels] if t.labels else []))
    ]
    best = {t.name: t.best_known for t in tables}
    gaps = Section(
        "Mean gap of total cost to the best known in percent, 95 % confidence interval",
        ["inputs", *(t.name for t in tables)],
        lay_out(tables, lambda t, x: gap_text(gaps_to(x, best[t.name]))),
    )
    costs = cost_section(tables)
    panel = Panel(
        title="Inputs of the model",
        x_label="test set",
        y_label="mean gap of total cost to the best known, %",
        lines=gap_lines(tables, lambda t, x: gaps_to(x, best[t.name])),
        ticks=tuple(t.name for t in tables),
    )

    def draw(path: Path, caption: str) -> None:
        draw_panels([panel], path, caption)

    records = []
    for t in tables:
        for x in t.rows.values():
            compared = gaps_to(x, best[t.name])
            gap = None if compared is None else compared[0].gap_percent
            records.append(record_of(x) | {"gap_percent": gap})
    return Report(
        name="ablation",
        sections=(costs._replace(header=["inputs", *costs.header[1:]]), gaps),
        caption=(
            "Each model was pre-trained on the first scale and fine-tuned from there at "
            f"each scale, all alike ({_training(used)}); plans are greedy, as decoded. "
            f"{best_known_text(tables)}{provenance(used)}"
        ),
        details=checksums(used),
        records=tuple(records),
        drawings=(Drawing("ablation", draw),),
    )


def _training(series: Sequence[Series]) -> str:
    """Say how long models were trained, and with what seeds."""
    settings = dict.fromkeys(pair for each in series for pair in each.key.settings)
    return ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in settings)
