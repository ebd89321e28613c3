"""Plans side by side in one picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from arcfleet.report.picture import save_picture
from arcfleet.report.plot import check_plottable, draw_panel

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from arcfleet.instance.instance import Instance
    from arcfleet.solution.solution import Solution

_PANEL_INCHES = 4.2
_DOTS_PER_INCH = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One plan of a picture.

    Parameters
    ----------
    instance
        The streets.
    solution
        The plan; None draws the instance alone.
    title
        Above it.
    """

    instance: Instance
    solution: Solution | None
    title: str


def plot_panels(rows: Sequence[Sequence[Panel]], path: Path) -> None:
    """Draw plans in rows, each as long as the first, into a picture file.

    Parameters
    ----------
    rows
        What to draw; at least one panel.
    path
        Where to write; the suffix chooses among PNG, SVG and PDF.

    Raises
    ------
    OptionError
        If the suffix is unknown or matplotlib is not installed.
    FileError
        If the file cannot be written.
    """
    check_plottable(path)
    from matplotlib.figure import Figure

    columns = len(rows[0])
    # A Figure of its own, not pyplot: no window, no state shared with the caller.
    figure = Figure(figsize=(_PANEL_INCHES * columns, _PANEL_INCHES * len(rows)))
    grid = figure.subplots(len(rows), columns, squeeze=False)
    figure.subplots_adjust(0, 0, 1, 1, wspace=0.03, hspace=0.08)
    for panels, line in zip(rows, grid, strict=True):
        for panel, axes in zip(panels, line, strict=True):
            draw_panel(axes, panel.instance, panel.solution, panel.title, _PANEL_INCHES)
    credits = dict.fromkeys(
        line
        for panels in rows
        for panel in panels
        for line in panel.instance.comment.splitlines()[:1]
    )
    if credits:
        figure.text(0.005, -0.005, "; ".join(credits), size=7, va="top", parse_math=False)
    save_picture(figure, path, dots_per_inch=_DOTS_PER_INCH)
