"""A picture of the streets that moved between two plans."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from arcfleet.report.colours import DEPOT, numbered_colours
from arcfleet.report.layout import layout, link_shapes
from arcfleet.report.picture import new_figure, save_picture

if TYPE_CHECKING:
    from arcfleet.instance.instance import Instance
    from arcfleet.solution.diff import Diff
    from arcfleet.solution.solution import Solution

_STREET = "#dfe2e4"
_GONE = "#333333"
_DOTS_PER_INCH = 160
_MOST_LEGEND_ROUTES = 12
_LONGER_SIDE = 8.0  # inches
#: Opacity of streets that stay on their route.
_FAINT = 0.35


def plot_diff(instance: Instance, after: Solution, diff: Diff, path: Path) -> None:
    """Draw the streets that moved between two plans into a file.

    A street that moved has the colour of its new route, between lines in that of its old
    one. Streets that stay are faint, removed ones dotted, added ones between black lines.

    Parameters
    ----------
    instance
        Instance of the later plan.
    after
        The later plan.
    diff
        What differs, see `diff`.
    path
        File to write; the suffix chooses among PNG, SVG and PDF.

    Raises
    ------
    OptionError
        If the suffix is unknown or matplotlib is not installed.
    FileError
        If the file cannot be written.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    path = Path(path)
    figure = new_figure(path)
    places = layout(instance)
    shapes = link_shapes(instance, places)
    colours = _colours(after, diff)
    moved = [one for one in (*diff.moved, *diff.added) if one.link is not None]
    removed = [one.link for one in diff.removed if one.link is not None]
    changed = {one.link for one in moved if one.link is not None}
    stayed = [
        (service.link, colours[number])
        for number, route in zip(after.numbers, after.routes, strict=True)
        for service in route.services
        if service.link not in changed
    ]
    shown = np.vstack(
        [shapes[x] for x in {*instance.required, *changed, *removed}] or shapes
    )
    low, high = shown.min(axis=0), shown.max(axis=0)
    margin = 0.04 * (float((high - low).max()) or 1.0)
    sides = np.maximum(high - low + 2 * margin, 0.4 * float((high - low).max()) or 1.0)
    figure.set_size_inches(*(_LONGER_SIDE * sides / sides.max()))
    axes = figure.add_axes((0, 0, 1, 1))
    centre = (low + high) / 2
    axes.set_xlim(*(centre[0] + sides[0] * np.array([-0.5, 0.5])))
    axes.set_ylim(*(centre[1] + sides[1] * np.array([-0.5, 0.5])))
    axes.set_axis_off()

    def draw(
        links: list[int], shades: Any, width: float, layer: float, **more: Any
    ) -> None:
        lines = [shapes[link] for link in links]
        drawn = LineCollection(
            lines, colors=shades, linewidths=width, zorder=layer, capstyle="butt", **more
        )
        axes.add_collection(drawn, autolim=False)

    draw(list(range(len(shapes))), _STREET, 1.0, 1)
    draw([x for x, _ in stayed], [colour for _, colour in stayed], 2.0, 2, alpha=_FAINT)
    draw(removed, _GONE, 2.2, 3, linestyles="dotted")
    links = [one.link for one in moved if one.link is not None]
    casings = [_GONE if x.before is None else colours[x.before] for x in moved]
    draw(links, casings, 7.0, 4)
    draw(links, "white", 4.4, 4.5)
    draw(links, [colours[x.after or 0] for x in moved], 3.2, 5)
    depots = dict.fromkeys([instance.depot, *(x.start for x in instance.fleet)])
    at = places[[instance.nodes.index(node) for node in depots]]
    axes.scatter(
        at[:, 0], at[:, 1], s=75, marker="s", color=DEPOT, edgecolors="white", zorder=6
    )
    numbers = sorted({n for x in moved for n in (x.before, x.after) if n is not None})
    marks = [Line2D([], [], color=DEPOT, marker="s", linestyle="", label="depot")]
    marks += [
        Line2D([], [], color=colours[number], linewidth=3.2, label=f"route {number}")
        for number in numbers[:_MOST_LEGEND_ROUTES]
    ]
    if removed:
        dotted: dict[str, Any] = {"linestyle": "dotted", "linewidth": 2.2}
        marks.append(Line2D([], [], color=_GONE, label="removed", **dotted))
    axes.legend(
        handles=marks,
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        frameon=False,
        fontsize=9,
    )
    title = (
        f"{instance.name}: {len(diff.moved)} of {diff.streets} streets moved, "
        f"{len(diff.removed)} removed, {len(diff.added)} added"
    )
    axes.set_title(title, fontsize=13, pad=10, parse_math=False)
    axes.text(
        *(0, 0, instance.attribution),
        transform=axes.transAxes,
        size=7,
        va="top",
        parse_math=False,
    )
    save_picture(figure, path, dots_per_inch=_DOTS_PER_INCH)


def _colours(after: Solution, diff: Diff) -> dict[int, str]:
    """Return the colour of each route, as pictures of the later plan have it."""
    return numbered_colours(after.numbers, (route.number for route in diff.routes))
