"""Lines in panels side by side, with one legend and a caption below."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

from arcfleet.report.colours import route_colours
from arcfleet.report.picture import save_picture
from arcfleet.report.plot import check_plottable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: A page of A4 between its margins; text keeps its size when it is printed so wide.
PAGE_INCHES = 7.2
_PANEL_HEIGHT = 3.2
_DOTS_PER_INCH = 200
_LETTERS_PER_INCH = 20
_CAPTION_SIZE = 6.5
_LEGEND_COLUMNS = 3
_MARKERS = "osD^vPX<>*hd"
_GRID = "#e3e6e8"
_GAP_TICKS = (0, 0.25, 0.5, 0.75, 1, 2, 5, 10, 20, 50, 100, 200, 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a panel; those of one label share their colour, and one legend entry.

    Parameters
    ----------
    label
        For the legend.
    x, y
        Its points.
    widths
        How far error bars reach to both sides; empty for none.
    dashed
        Whether it is drawn dashed, with open marks.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    widths: tuple[float, ...] = ()
    dashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes.

    Parameters
    ----------
    title, x_label, y_label
        Its words, with units.
    lines
        What is drawn.
    ticks
        Names of the places 0, 1, 2, ... on the x axis; empty for numbers.
    log_y
        Whether the y axis is logarithmic.
    of_gaps
        Whether the y axis is even up to 1 % and logarithmic above.
    """

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    ticks: tuple[str, ...] = ()
    log_y: bool = False
    of_gaps: bool = False


def draw_panels(
    panels: Sequence[Panel], path: Path, caption: str = "", columns: int = 2
) -> None:
    """Draw panels side by side into a picture file.

    Raises
    ------
    OptionError
        If the suffix is unknown or matplotlib is not installed.
    FileError
        If the file cannot be written.
    """
    check_plottable(path)
    from matplotlib.figure import Figure

    across = max(1, min(columns, len(panels)))
    down = -(-len(panels) // across)
    labels = list(dict.fromkeys(line.label for panel in panels for line in panel.lines))
    colours = dict(zip(labels, route_colours(len(labels)), strict=True))
    markers = {label: _MARKERS[i % len(_MARKERS)] for i, label in enumerate(labels)}
    legend_rows = -(-len(labels) // _LEGEND_COLUMNS)
    legend_height = 0.155 * legend_rows + 0.15
    # A Figure of its own, not pyplot: no window, no state shared with the caller.
    figure = Figure(figsize=(PAGE_INCHES, _PANEL_HEIGHT * down + legend_height))
    # What is measured alike is drawn alike, so that panels compare.
    alike = len({(panel.y_label, panel.log_y) for panel in panels}) == 1
    axes = figure.subplots(down, across, squeeze=False, sharey="row" if alike else False)
    for place, panel in enumerate(panels):
        _draw(axes[place // across][place % across], panel, colours, markers)
    for place in range(len(panels), across * down):
        axes[place // across][place % across].set_axis_off()
    bottom = legend_height / figure.get_figheight()
    figure.tight_layout(rect=(0, bottom, 1, 1))
    _legend(figure, labels, bottom)
    add_caption(figure, caption)
    save_picture(figure, path, dots_per_inch=_DOTS_PER_INCH)


def add_caption(figure: Figure, caption: str, inches: float = PAGE_INCHES) -> None:
    """Write small text below a figure, which grows by it."""
    if caption:
        figure.text(
            0.01,
            0,
            fill(caption, int(_LETTERS_PER_INCH * inches)),
            size=_CAPTION_SIZE,
            color="#4a5560",
            va="top",
            parse_math=False,
        )


def set_gap_axis(axes: Axes, gaps: Sequence[float]) -> None:
    """Let the y axis be even up to 1 %, and logarithmic where differences matter less."""
    axes.set_yscale("symlog", linthresh=1.0)
    highest = 1.3 * max(1.0, *gaps)
    axes.set_yticks([tick for tick in _GAP_TICKS if tick <= highest])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylim(min(0.0, *gaps) - 0.05, highest)


def _reach(line: Line) -> list[float]:
    widths = line.widths or (0.0,) * len(line.y)
    pairs = list(zip(line.y, widths, strict=True))
    return [y - width for y, width in pairs] + [y + width for y, width in pairs]


def _draw(
    axes: Axes, panel: Panel, colours: dict[str, str], markers: dict[str, str]
) -> None:
    for line in panel.lines:
        axes.errorbar(
            line.x,
            line.y,
            yerr=line.widths or None,
            color=colours[line.label],
            marker=markers[line.label] if len(line.x) <= 60 else "",
            markersize=4,
            markerfacecolor="white" if line.dashed else colours[line.label],
            linewidth=1.2,
            elinewidth=0.9,
            capsize=1.5,
            linestyle="--" if line.dashed else "-",
            label=line.label,
        )
    if panel.log_y:
        axes.set_yscale("log")
    if panel.of_gaps:
        set_gap_axis(axes, [y for line in panel.lines for y in _reach(line)])
    if panel.ticks:
        slanted = max(map(len, panel.ticks)) * len(panel.ticks) > 40
        axes.set_xticks(
            range(len(panel.ticks)),
            panel.ticks,
            rotation=30 if slanted else 0,
            ha="right" if slanted else "center",
        )
        axes.set_xlim(-0.4, len(panel.ticks) - 0.6)
    axes.set_title(panel.title, loc="left", fontsize=9)
    axes.set_xlabel(panel.x_label, fontsize=8)
    axes.set_ylabel(panel.y_label, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(visible=True, which="major", color=_GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _legend(figure: Figure, labels: Sequence[str], bottom: float) -> None:
    handles: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        figure.legend(
            [handles[label] for label in labels],
            labels,
            loc="upper center",
            bbox_to_anchor=(0.5, bottom),
            ncols=_LEGEND_COLUMNS,
            frameon=False,
            fontsize=7,
        )
