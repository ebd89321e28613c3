"""Gap against time, one mark per method, those with a GPU in another shape."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from arcfleet.report.colours import route_colours
from arcfleet.report.panels import PAGE_INCHES, add_caption, set_gap_axis
from arcfleet.report.picture import save_picture
from arcfleet.report.plot import check_plottable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.lines import Line2D

_HEIGHT = 3.9
_DOTS_PER_INCH = 200
_LEGEND_COLUMNS = 3
_MARKERS = {False: "o", True: "^"}
_FRONT = "#4a5560"
# Of the fronts.
_LINES = {False: "solid line:", True: "dashed line:"}
# Marks nearer than by this logarithm of time and gap get one text; gaps below the least
# are all but on the axis.
_NEAR = 0.3
_LEAST = 0.05


class Point(NamedTuple):
    """A method.

    Parameters
    ----------
    label
        For the legend.
    seconds
        Per instance.
    gap_percent, half_width
        Mean gap, and how far its confidence interval reaches to both sides.
    on_gpu
        Whether a GPU was used.
    is_best
        Whether no other is both faster and better.
    """

    label: str
    seconds: float
    gap_percent: float
    half_width: float
    on_gpu: bool
    is_best: bool


def draw_pareto(
    points: Sequence[Point], path: Path, *, title: str, caption: str = ""
) -> None:
    """Draw gap against time into a picture file.

    Raises
    ------
    OptionError
        If the suffix is unknown or matplotlib is not installed.
    FileError
        If the file cannot be written.
    """
    check_plottable(path)
    from matplotlib.figure import Figure

    labels = list(dict.fromkeys(point.label for point in points))
    colours = dict(zip(labels, route_colours(len(labels)), strict=True))
    numbers = {label: number for number, label in enumerate(labels, start=1)}
    legend_rows = -(-(len(labels) + 3) // _LEGEND_COLUMNS)
    figure = Figure(figsize=(PAGE_INCHES, _HEIGHT + 0.155 * legend_rows))
    axes = figure.add_subplot()
    for on_gpu in (False, True):
        best = sorted(p[1:3] for p in points if p.on_gpu == on_gpu and p.is_best)
        if len(best) > 1:
            axes.plot(
                *zip(*best, strict=True),
                color=_FRONT,
                linewidth=0.9,
                linestyle="--" if on_gpu else "-",
                zorder=1,
            )
    for point in points:
        axes.errorbar(
            point.seconds,
            point.gap_percent,
            yerr=point.half_width,
            color=colours[point.label],
            marker=_MARKERS[point.on_gpu],
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
    axes.set_xscale("log")
    reach = [p.gap_percent + sign * p.half_width for p in points for sign in (-1, 1)]
    set_gap_axis(axes, reach)
    axes.set_title(title, loc="left", fontsize=9)
    axes.set_xlabel("seconds per instance, many at once", fontsize=8)
    axes.set_ylabel("mean gap to the best known, %", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(visible=True, which="major", color="#e3e6e8", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    bottom = (0.155 * legend_rows + 0.15) / figure.get_figheight()
    figure.tight_layout(rect=(0, bottom, 1, 1))
    figure.legend(
        handles=[
            _mark(f"{numbers[label]}  {label}", colours[label], "s", filled=True)
            for label in labels
        ]
        + _shapes(points),
        loc="upper center",
        bbox_to_anchor=(0.5, bottom),
        ncols=_LEGEND_COLUMNS,
        frameon=False,
        fontsize=7,
    )
    add_caption(figure, caption)
    save_picture(figure, path, dots_per_inch=_DOTS_PER_INCH)


def _neighbours(points: Sequence[Point]) -> list[list[Point]]:
    """Give points in groups whose marks overlap, so that one text names them all."""
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


def _shapes(points: Sequence[Point]) -> list[Line2D]:
    """Explain what shapes and lines mean."""
    names = {False: "CPU", True: "GPU"}
    used = [on_gpu for on_gpu in names if any(p.on_gpu == on_gpu for p in points)]
    texts = {gpu: f"{names[gpu]}, {_LINES[gpu]} the best" for gpu in used}
    return [
        *(_mark(texts[gpu], _FRONT, _MARKERS[gpu], filled=True) for gpu in used),
        _mark("another is faster and better", _FRONT, "o", filled=False),
    ]


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
