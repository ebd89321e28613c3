"""Charts of results: panels of lines, anytime curves, gap against time, coloured tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from arcfleet.report.colours import route_colours
from arcfleet.report.picture import new_figure, save_picture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

#: A page of A4 between its margins; text keeps its size when it is printed so wide.
PAGE_INCHES = 7.2
_PANEL_HEIGHT = 3.2
_PARETO_HEIGHT = 3.75
_ROW_INCHES = 0.36
_LEAST_HEIGHT = 2.3  # inches: space for the words beside the colours
_DOTS_PER_INCH = 200
_LETTERS_PER_INCH = 20
_LEGEND_COLUMNS = 3
_MOST_COLUMNS = 3
_MARKERS = "osD^vPX<>*hd"
_GRID = "#e3e6e8"
_FRONT = "#4a5560"
_GAP_TICKS = (0, 0.25, 0.5, 0.75, 1, 2, 5, 10, 20, 50, 100, 200, 500)
#: By whether a GPU was used: its name, the marks of methods, the line of the best of them.
_DEVICES = {False: ("CPU", "o", "-"), True: ("GPU", "^", "--")}
# Marks nearer than by this logarithm of time and gap get one text; gaps below the least
# are all but on the axis.
_NEAR = 0.3
_LEAST = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a panel; those of one label share their colour, and one legend entry."""

    label: str
    # Points of the line.
    x: tuple[float, ...]
    y: tuple[float, ...]
    widths: tuple[float, ...] = ()  # half-widths of the error bars; empty for none
    dashed: bool = False  # whether it is drawn dashed, with open marks


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes."""

    # Title and axis labels, with units.
    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    # Names of the places 0, 1, 2, ... on the x axis; empty for numbers.
    ticks: tuple[str, ...] = ()
    log_y: bool = False
    of_gaps: bool = False  # whether the y axis is even up to 1 % and logarithmic above
    over_time: bool = False  # whether x is logarithmic and lines are steps from 0 up


def draw_panels(
    panels: Sequence[Panel], path: Path, caption: str = "", columns: int = 2
) -> None:
    """Draw panels side by side into a picture file."""
    across = max(1, min(columns, len(panels)))
    down = -(-len(panels) // across)
    labels = list(dict.fromkeys(line.label for panel in panels for line in panel.lines))
    colours = dict(zip(labels, route_colours(len(labels)), strict=True))
    markers = {label: _MARKERS[i % len(_MARKERS)] for i, label in enumerate(labels)}
    below = _legend_inches(len(labels))
    figure = new_figure(path, figsize=(PAGE_INCHES, _PANEL_HEIGHT * down + below))
    # What is measured alike is drawn alike, so that panels compare.
    alike = len({(panel.y_label, panel.log_y) for panel in panels}) == 1
    axes = figure.subplots(down, across, squeeze=False, sharey="row" if alike else False)
    handles: dict[str, Any] = {}
    for panel, place in zip(panels, axes.flat, strict=False):
        _draw_panel(place, panel, colours, markers)
        drawn = zip(*place.get_legend_handles_labels(), strict=True)
        handles = {label: handle for handle, label in drawn} | handles
    for place in axes.flat[len(panels) :]:
        place.set_axis_off()
    _save(figure, path, below, [handles[label] for label in labels], caption)


def _legend_inches(entries: int) -> float:
    return 0.155 * -(-entries // _LEGEND_COLUMNS) + 0.15


def _save(
    figure: Figure, path: Path, below: float, handles: Sequence[Any], caption: str
) -> None:
    """Write a figure with a legend on the inches below its axes, and a caption."""
    bottom = below / figure.get_figheight()
    figure.tight_layout(rect=(0, bottom, 1, 1))
    if handles:
        figure.legend(
            handles=handles,
            loc="upper center",
            bbox_to_anchor=(0.5, bottom),
            ncols=_LEGEND_COLUMNS,
            frameon=False,
            fontsize=7,
        )
    add_caption(figure, caption)
    save_picture(figure, path, dots_per_inch=_DOTS_PER_INCH)


def add_caption(figure: Figure, caption: str, inches: float = PAGE_INCHES) -> None:
    """Write small text below a figure, which grows by it."""
    if caption:
        figure.text(
            0.01,
            0,
            fill(caption, int(_LETTERS_PER_INCH * inches)),
            size=6.5,
            color=_FRONT,
            va="top",
            parse_math=False,
        )


def set_gap_axis(axes: Axes, gaps: Sequence[float]) -> None:
    """Scale the y axis linearly up to 1 %, and logarithmically above."""
    axes.set_yscale("symlog", linthresh=1.0)
    highest = 1.3 * max(1.0, *gaps)
    axes.set_yticks([tick for tick in _GAP_TICKS if tick <= highest])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylim(min(0.0, *gaps) - 0.05, highest)


def _draw_panel(
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
            drawstyle="steps-post" if panel.over_time else "default",
            label=line.label,
        )
    if panel.log_y:
        axes.set_yscale("log")
    if panel.over_time:
        axes.set_xscale("log")
        axes.set_ylim(bottom=min([0.0, *(y for line in panel.lines for y in line.y)]))
    if panel.of_gaps:
        reach = [
            y + sign * width
            for line in panel.lines
            for y, width in zip(line.y, line.widths or (0.0,) * len(line.y), strict=True)
            for sign in (-1, 1)
        ]
        set_gap_axis(axes, reach)
    if panel.ticks:
        slanted = max(map(len, panel.ticks)) * len(panel.ticks) > 40
        axes.set_xticks(
            range(len(panel.ticks)),
            panel.ticks,
            rotation=30 if slanted else 0,
            ha="right" if slanted else "center",
        )
        axes.set_xlim(-0.4, len(panel.ticks) - 0.6)
    _finish(axes, panel.title, panel.x_label, panel.y_label)


def _finish(axes: Axes, title: str, x_label: str, y_label: str) -> None:
    axes.set_title(title, loc="left", fontsize=9)
    axes.set_xlabel(x_label, fontsize=8)
    axes.set_ylabel(y_label, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(visible=True, which="major", color=_GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def plot_anytime(curves: Mapping[str, Sequence[Line]], path: Path) -> None:
    """Draw the mean gaps against seconds, one panel per set, into a picture file."""
    panels = [
        Panel(
            title=name,
            x_label="seconds",
            y_label="mean gap to the reference, %",
            lines=tuple(lines),
            over_time=True,
        )
        for name, lines in curves.items()
    ]
    draw_panels(panels, path, columns=_MOST_COLUMNS)


class Point(NamedTuple):
    """A method in the plane of time and gap."""

    label: str
    seconds: float
    # Mean gap, and half-width of its confidence interval.
    gap_percent: float
    half_width: float
    on_gpu: bool  # whether a GPU was used
    is_best: bool  # whether no other is both faster and better


def _set_seconds_axis(axes: Axes, seconds: Sequence[float]) -> None:
    """Make the x axis one of seconds, with labels that do not overlap."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.set_xscale("log")
    is_short = max(seconds) < 100 * min(seconds)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if is_short else (1.0,)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def draw_pareto(
    points: Sequence[Point], path: Path, *, title: str, caption: str = ""
) -> None:
    """Draw gap against time into a picture file."""
    labels = list(dict.fromkeys(point.label for point in points))
    colours = dict(zip(labels, route_colours(len(labels)), strict=True))
    numbers = {label: number for number, label in enumerate(labels, start=1)}
    below = _legend_inches(len(labels) + 3)
    figure = new_figure(path, figsize=(PAGE_INCHES, _PARETO_HEIGHT + below))
    axes = figure.add_subplot()
    for on_gpu, (_, _, style) in _DEVICES.items():
        best = sorted(p[1:3] for p in points if p.on_gpu == on_gpu and p.is_best)
        if len(best) > 1:
            front = zip(*best, strict=True)
            axes.plot(*front, color=_FRONT, linewidth=0.9, linestyle=style, zorder=1)
    for point in points:
        axes.errorbar(
            point.seconds,
            point.gap_percent,
            yerr=point.half_width,
            color=colours[point.label],
            marker=_DEVICES[point.on_gpu][1],
            markersize=7,
            markeredgewidth=1.4,
            markerfacecolor=colours[point.label] if point.is_best else "white",
            linestyle="",
            elinewidth=0.9,
        )
    for group in _neighbours(points):
        first = group[0]
        axes.annotate(
            " ".join(str(numbers[point.label]) for point in group),
            (first.seconds, first.gap_percent),
            xytext=(6, 4),
            textcoords="offset points",
            fontsize=6.5,
        )
    _set_seconds_axis(axes, [point.seconds for point in points])
    reach = [p.gap_percent + sign * p.half_width for p in points for sign in (-1, 1)]
    set_gap_axis(axes, reach)
    _finish(
        axes, title, "seconds per instance, many at once", "mean gap to the best known, %"
    )
    handles = [
        _mark(f"{numbers[label]}  {label}", colours[label], "s", filled=True)
        for label in labels
    ]
    for on_gpu, (name, marker, style) in _DEVICES.items():
        if any(point.on_gpu == on_gpu for point in points):
            line = "solid" if style == "-" else "dashed"
            text = f"{name}, {line} line: the best"
            handles.append(_mark(text, _FRONT, marker, filled=True))
    handles.append(_mark("another is faster and better", _FRONT, "o", filled=False))
    _save(figure, path, below, handles, caption)


def _neighbours(points: Sequence[Point]) -> list[list[Point]]:
    """Return points in groups whose marks overlap, so that one text names them all."""
    groups: list[list[Point]] = []
    for point in sorted(points, key=lambda point: point.seconds, reverse=True):
        for group in groups:
            first = group[0]
            near = math.log(first.seconds / point.seconds) < _NEAR
            ratio = max(first.gap_percent, _LEAST) / max(point.gap_percent, _LEAST)
            if near and abs(math.log(ratio)) < _NEAR:
                group.append(point)
                break
        else:
            groups.append([point])
    return [sorted(group, key=points.index) for group in groups]


def _mark(label: str, colour: str, marker: str, *, filled: bool) -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D(
        [],
        [],
        color=colour,
        marker=marker,
        markerfacecolor=colour if filled else "white",
        linestyle="",
        label=label,
    )


def draw_heat(
    values: Sequence[Sequence[float | None]],
    path: Path,
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    x_label: str,
    y_label: str,
    value_label: str,
    caption: str = "",
) -> None:
    """Draw a table, darker where numbers are larger; None leaves a square empty."""
    grid = np.array([[np.nan if x is None else x for x in row] for row in values])
    height = max(_LEAST_HEIGHT, 1.1 + _ROW_INCHES * len(rows))
    figure = new_figure(path, figsize=(PAGE_INCHES, height))
    axes = figure.add_subplot()
    # One hue from light to dark: what is darker is larger for every reader.
    image = axes.imshow(grid, cmap="Blues", aspect="auto", vmin=min(0.0, np.nanmin(grid)))
    darkest = np.nanmax(grid)
    for (row, column), value in np.ndenumerate(grid):
        if np.isfinite(value):
            axes.text(
                column,
                row,
                f"{value:.2f}",
                ha="center",
                va="center",
                fontsize=7.5,
                color="white" if value > 0.6 * darkest else "black",
            )
    axes.set_xticks(range(len(columns)), columns, fontsize=7.5)
    axes.set_yticks(range(len(rows)), rows, fontsize=7.5)
    axes.set_xlabel(x_label, fontsize=8)
    axes.set_ylabel(y_label, fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, pad=0.02)
    bar.set_label(value_label, fontsize=7)
    bar.ax.tick_params(labelsize=6.5)
    figure.tight_layout()
    add_caption(figure, caption)
    save_picture(figure, path, dots_per_inch=_DOTS_PER_INCH)
