"""Gap against time, one mark per method, those with a GPU in another shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from arcfleet.report.colours import route_colours
from arcfleet.report.panels import PAGE_INCHES, add_caption
from arcfleet.report.picture import save_picture
from arcfleet.report.plot import check_plottable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_HEIGHT = 4.2
_DOTS_PER_INCH = 200
_CPU, _GPU = route_colours(2)


class Point(NamedTuple):
    """A method.

    Parameters
    ----------
    label
        Beside its mark.
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

    figure = Figure(figsize=(PAGE_INCHES, _HEIGHT))
    axes = figure.add_subplot()
    for on_gpu, colour, marker, name in (
        (False, _CPU, "o", "CPU"),
        (True, _GPU, "^", "GPU"),
    ):
        for is_best in (True, False):
            chosen = [p for p in points if (p.on_gpu, p.is_best) == (on_gpu, is_best)]
            if chosen:
                axes.errorbar(
                    [p.seconds for p in chosen],
                    [p.gap_percent for p in chosen],
                    yerr=[p.half_width for p in chosen],
                    color=colour,
                    marker=marker,
                    markersize=6,
                    markerfacecolor=colour if is_best else "white",
                    linestyle="",
                    elinewidth=0.9,
                    label=name + (", none faster and better" if is_best else ""),
                )
        best = sorted(p[1:3] for p in points if p.on_gpu == on_gpu and p.is_best)
        if len(best) > 1:
            axes.plot(*zip(*best, strict=True), color=colour, linewidth=0.8, zorder=1)
    axes.set_xscale("log")
    _write_labels(axes, points)
    axes.set_ylim(bottom=min(0.0, *(p.gap_percent for p in points)) - 0.3)
    axes.margins(x=0.14)
    axes.set_title(title, loc="left", fontsize=9)
    axes.set_xlabel("seconds per instance, many at once", fontsize=8)
    axes.set_ylabel("mean gap to the best known, %", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(visible=True, which="major", color="#e3e6e8", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=7, loc="upper right")
    figure.tight_layout()
    add_caption(figure, caption)
    save_picture(figure, path, dots_per_inch=_DOTS_PER_INCH)


def _write_labels(axes: object, points: Sequence[Point]) -> None:
    """Write names beside the marks, a line apart where marks lie close together."""
    import math

    tallest = max((p.gap_percent for p in points), default=1.0) or 1.0
    written: list[tuple[float, float]] = []
    for point in sorted(points, key=lambda p: (-p.gap_percent, p.seconds)):
        across = math.log10(max(point.seconds, 1e-9))
        height = point.gap_percent / tallest
        while any(abs(across - x) < 1.1 and abs(height - y) < 0.035 for x, y in written):
            height -= 0.012
        written.append((across, height))
        axes.annotate(  # type: ignore[attr-defined]
            point.label,
            (point.seconds, point.gap_percent),
            xytext=(point.seconds * 1.12, height * tallest),
            textcoords="data",
            fontsize=6.5,
            va="center",
        )
