"""Data sets side by side: sizes, degrees, lengths, demands, and one piece of each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from arcfleet.report.colours import DEPOT, route_colours
from arcfleet.report.picture import check_plottable, save_picture

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

_PANEL_INCHES = (4.4, 3.3)
_DOTS_PER_INCH = 130
_MOST_PIECES = 4
_COLUMNS = 12  # which three panels of facts and one to four pieces share evenly
_MOST_BARS = 12
_GRID = {"visible": True, "color": "#e3e6e8", "linewidth": 0.8}


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFigures:
    """Statistics of one data set, and one of its instances."""

    label: str
    # Share of the nodes with 0, 1, 2, ... links; the last entry holds all above.
    degrees: Sequence[float]
    lengths: NDArray[np.integer]  # lengths of all links, in metres
    # Number of nodes and of links of each instance.
    nodes: NDArray[np.integer]
    links: NDArray[np.integer]
    demands: NDArray[np.integer]  # demands of all required links
    routes: NDArray[np.integer]  # least number of routes of each instance
    places: NDArray[np.float64]  # (longitude, latitude) of the nodes of one instance
    ends: NDArray[np.int64]  # positions of the nodes at the two ends of its links
    required: NDArray[np.bool_]  # whether each of them must be served
    depot: int  # position of its depot
    attribution: str = ""  # attribution of the map data; empty if none


def plot_datasets(figures: Sequence[DatasetFigures], path: Path) -> None:
    """Draw data sets side by side into a picture file."""
    check_plottable(path)
    save_picture(draw_datasets(figures), path, dots_per_inch=_DOTS_PER_INCH)


def draw_datasets(figures: Sequence[DatasetFigures]) -> Figure:
    """Draw data sets side by side; needs matplotlib."""
    from matplotlib.figure import Figure

    pieces = figures[:_MOST_PIECES]
    width, height = _PANEL_INCHES
    # A Figure of its own, not pyplot: no window, no state shared with the caller.
    figure = Figure(figsize=(width * 3, height * 3), layout="constrained")
    cells = figure.add_gridspec(3, _COLUMNS)
    colours = route_colours(len(figures))
    degrees, lengths, demands, nodes, links, routes = (
        figure.add_subplot(cells[row, column : column + 4])
        for row in (0, 1)
        for column in (0, 4, 8)
    )
    _draw_degrees(degrees, figures, colours)
    _draw_lengths(lengths, figures, colours)
    for axes, values, x_label, of in (
        (demands, [f.demands for f in figures], "demand of a required link", "links"),
        (nodes, [f.nodes for f in figures], "nodes per instance", "instances"),
        (links, [f.links for f in figures], "links per instance", "instances"),
        (routes, [f.routes for f in figures], "least routes", "instances"),
    ):
        _draw_counts(axes, values, colours, x_label, f"share of the {of}, %")
    degrees.legend(frameon=False, fontsize=9)
    span = _COLUMNS // len(pieces)
    for number, (facts, colour) in enumerate(zip(pieces, colours, strict=False)):
        place = cells[2, number * span : (number + 1) * span]
        _draw_piece(figure.add_subplot(place), facts, colour)
    attributions = dict.fromkeys(
        facts.attribution for facts in figures if facts.attribution
    )
    if attributions:
        figure.supxlabel("; ".join(attributions), x=0.995, ha="right", fontsize=8)
    return figure


def _draw_degrees(
    axes: Axes, figures: Sequence[DatasetFigures], colours: Sequence[str]
) -> None:
    bar = 0.8 / len(figures)
    most = len(figures[0].degrees) - 1
    for number, (facts, colour) in enumerate(zip(figures, colours, strict=True)):
        places = np.arange(1, most + 1) - 0.4 + (number + 0.5) * bar
        shares = 100 * np.asarray(facts.degrees[1:])
        axes.bar(places, shares, width=bar, color=colour, label=facts.label)
    axes.set_xticks(range(1, most + 1), [*map(str, range(1, most)), f"{most}+"])
    _finish(axes, "links at a node", "share of the nodes, %")


def _draw_lengths(
    axes: Axes, figures: Sequence[DatasetFigures], colours: Sequence[str]
) -> None:
    longest = max(int(facts.lengths.max()) for facts in figures)
    edges = np.geomspace(5, max(longest, 10), 46)
    for facts, colour in zip(figures, colours, strict=True):
        counts, _ = np.histogram(np.maximum(facts.lengths, 5), edges)
        shares = 100 * counts / len(facts.lengths)
        axes.stairs(shares, edges, color=colour, linewidth=1.6)
    axes.set_xscale("log")
    # A ferry or a motorway must not squeeze all streets to one side.
    axes.set_xlim(5, 1.5 * max(np.percentile(facts.lengths, 99.9) for facts in figures))
    _finish(axes, "length of a link, m", "share of the links, %")


def _draw_counts(
    axes: Axes,
    values: Sequence[NDArray[np.integer]],
    colours: Sequence[str],
    x_label: str,
    y_label: str,
) -> None:
    from matplotlib.ticker import MaxNLocator

    least = min(int(numbers.min()) for numbers in values)
    most = max(int(numbers.max()) for numbers in values)
    if most - least < _MOST_BARS:
        bar = 0.8 / len(values)
        for number, (numbers, colour) in enumerate(zip(values, colours, strict=True)):
            shares = 100 * np.bincount(numbers - least) / len(numbers)
            places = least + np.arange(len(shares)) - 0.4 + (number + 0.5) * bar
            axes.bar(places, shares, width=bar, color=colour)
    else:
        step = max(1, math.ceil((most - least + 1) / 40))
        edges = np.arange(least, most + step + 1, step) - 0.5
        for numbers, colour in zip(values, colours, strict=True):
            counts, _ = np.histogram(numbers, edges)
            axes.stairs(100 * counts / len(numbers), edges, color=colour, linewidth=1.6)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _finish(axes, x_label, y_label)


def _draw_piece(axes: Axes, facts: DatasetFigures, colour: str) -> None:
    from matplotlib.collections import LineCollection

    lines = facts.places[facts.ends]  # (links, 2, 2)
    for chosen, shade, width in (
        (~facts.required, "#b8bec3", 1.2),
        (facts.required, colour, 2.0),
    ):
        axes.add_collection(
            LineCollection([*lines[chosen]], colors=shade, linewidths=width)
        )
    x, y = facts.places.T
    axes.scatter(x, y, s=7, color="#4a5560", zorder=3)
    depot = facts.depot
    axes.scatter(x[depot], y[depot], s=45, marker="s", color=DEPOT, zorder=4)
    axes.margins(0.05)
    axes.set_aspect(1 / math.cos(math.radians(float(facts.places[:, 1].mean()))))
    axes.set_title(f"{facts.label}: one instance", loc="left", fontsize=10)
    axes.set_axis_off()


def _finish(axes: Axes, x_label: str, y_label: str) -> None:
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.set_axisbelow(True)
    axes.grid(**_GRID)  # type: ignore[arg-type]
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
