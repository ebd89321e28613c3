"""Anytime curves: how good the best plan is after so many seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arcfleet.report.colours import route_colours
from arcfleet.report.picture import save_picture
from arcfleet.report.plot import check_plottable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

_PANEL_INCHES = (5.6, 3.6)
_DOTS_PER_INCH = 130
_MOST_COLUMNS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Mean gap against time.

    Parameters
    ----------
    label
        For the legend.
    seconds
        Rising, above 0.
    gap_percent
        At each of them.
    """

    label: str
    seconds: tuple[float, ...]
    gap_percent: tuple[float, ...]


def plot_anytime(curves: Mapping[str, Sequence[Curve]], path: Path) -> None:
    """Draw one panel per set, with a logarithmic time axis, into a picture file.

    Raises
    ------
    OptionError
        If the suffix is unknown or matplotlib is not installed.
    FileError
        If the file cannot be written.
    """
    check_plottable(path)
    from matplotlib.figure import Figure

    columns = max(1, min(len(curves), _MOST_COLUMNS))
    rows = max(1, math.ceil(len(curves) / columns))
    width, height = _PANEL_INCHES
    # A Figure of its own, not pyplot: no window, no state shared with the caller.
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    labels = dict.fromkeys(curve.label for panel in curves.values() for curve in panel)
    colours = dict(zip(labels, route_colours(len(labels)), strict=True))
    for number, (set_name, panel) in enumerate(curves.items(), start=1):
        _draw(figure.add_subplot(rows, columns, number), set_name, panel, colours)
    save_picture(figure, path, dots_per_inch=_DOTS_PER_INCH)


def _draw(
    axes: Axes, set_name: str, panel: Sequence[Curve], colours: Mapping[str, str]
) -> None:
    for curve in panel:
        axes.plot(
            curve.seconds,
            curve.gap_percent,
            color=colours[curve.label],
            linewidth=1.6,
            drawstyle="steps-post",
            label=curve.label,
        )
    axes.set_xscale("log")
    axes.set_title(set_name, loc="left", fontsize=11)
    axes.set_xlabel("seconds")
    axes.set_ylabel("mean gap to the reference, %")
    lowest = min((min(curve.gap_percent) for curve in panel), default=0.0)
    axes.set_ylim(bottom=min(0.0, lowest))
    axes.grid(visible=True, which="major", color="#e3e6e8", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
