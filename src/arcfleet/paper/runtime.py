"""Run times: one instance at a time, and many at once, of every row at every scale."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from arcfleet.errors import OptionError
from arcfleet.paper.gaps import headings, require_one_setting, row_order, scale_number
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
from arcfleet.report.charts import Line, Panel, draw_panels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.paper.commands import Watch
    from arcfleet.paper.series import Series

#: Inputs and settings.
Config = RowsConfig


def run(config: Config, watch: Watch) -> Report:
    """Measure run times, and report them."""
    series = measure_rows(config, watch, alone=(False, True))
    return write_report(runtime_report(series), config.out, figures=config.figures)


def runtime_report(series: Sequence[Series]) -> Report:
    """Lay out the times of series.

    A search works on one instance with one thread, whether others run beside it or not, so
    its time for one instance is measured in either case.
    """
    measured = [x for x in series if x.row != LABELS]
    if not measured:
        raise OptionError("expected measured rows to report, found none: run them first")
    require_one_setting(measured)
    scales = {x.of.set_name: x.of.scale for x in measured}
    names = sorted(scales, key=lambda name: (scale_number(scales[name]), name))
    columns = headings([(name, scales[name]) for name in names])
    found = {(x.of.set_name, x.row, x.of.device, x.of.alone): x for x in measured}
    searches = [x for x in measured if x.of.source_sha256 is None]
    found |= {(x.of.set_name, x.row, x.of.device, True): x for x in searches}
    rows = sorted(
        {(x.row, x.of.device): _label(x) for x in measured}.items(),
        key=lambda item: (row_order(item[0][0]), item[0][1]),
    )
    gpus = list(dict.fromkeys(x.of.device for x in measured if x.of.device != "cpu"))
    several = len(gpus) > 1  # else a dashed line says enough
    found_label = {x.row: x.label for x in measured}
    sections, panels = [], []
    for title, is_alone in (
        ("One instance at a time: seconds until its plan is there", True),
        ("Many instances at once: seconds per instance", False),
    ):
        cells, lines = [], []
        for (row, device), label in rows:
            every = [found.get((name, row, device, is_alone)) for name in names]
            if not any(every):
                continue
            times = [
                None if x is None else x.seconds if is_alone else x.seconds_at_once
                for x in every
            ]
            cells.append([label, *(None if x is None else seconds_text(x) for x in times)])
            known = [(float(place), x) for place, x in enumerate(times) if x is not None]
            lines.append(
                Line(
                    label=label if several else found_label[row],
                    x=tuple(place for place, _ in known),
                    y=tuple(x for _, x in known),
                    dashed=device != "cpu",
                )
            )
        if cells:
            sections.append(Section(title, ["method, device", *columns], cells))
            panels.append(
                Panel(
                    title=title.partition(":")[0],
                    x_label="test set",
                    y_label="seconds per instance",
                    lines=tuple(lines),
                    ticks=tuple(columns),
                    log_y=True,
                )
            )

    devices = f"Solid lines: CPU; dashed: {' or '.join(gpus)}. " if gpus else ""
    parallel = max(x.parallel for x in measured)
    return Report(
        name="runtime",
        sections=tuple(sections),
        caption=(
            "One instance at a time: models decode batches of one, searches have a thread. "
            "Many at once: models decode batches, searches run in "
            f"{'one process' if parallel == 1 else f'{parallel} processes'} of one thread. "
            "Preparation and path optimiser count, reading files and loading models do "
            f"not. {devices}{provenance(measured)}"
        ),
        details=checksums(measured),
        records=tuple(record_of(x) for x in measured),
        figures={"runtime": partial(draw_panels, panels)},
    )


def _label(series: Series) -> str:
    device = series.of.device
    return f"{series.label}, {'CPU' if device == 'cpu' else device}"
