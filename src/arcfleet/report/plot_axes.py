"""Axes for streets: in the shape of the instance, and to scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from arcfleet.report.layout import layout
from arcfleet.report.link_shapes import Places, link_shapes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from arcfleet.instance.instance import Instance

_LONGER_SIDE = 8.0  # inches
_SHORTER_SIDE = 3.5
_POINTS_PER_INCH = 72.0


def whole_axes(figure: Figure, instance: Instance) -> Axes:
    """Axes in the shape of the instance, which fill the figure."""
    places = layout(instance)
    sides, _ = _extent(np.vstack([places, *link_shapes(instance, places)]))
    figure.set_size_inches(*(_LONGER_SIDE * sides / sides.max()))
    return figure.add_axes((0, 0, 1, 1))


def fit(axes: Axes, points: Places) -> tuple[float, float]:
    """Let axes show all points to scale; give the length of a typographic point on them.

    Returns
    -------
    point, inches
        That length, and the width of the axes in inches.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    box = axes.get_position()
    inches = np.array([box.width, box.height]) * figure.get_size_inches()
    sides, centre = _extent(points)
    # The side that is too long for the axes says how much an inch holds.
    sides = inches * (sides / inches).max()
    axes.set_xlim(*(centre[0] + sides[0] * np.array([-0.5, 0.5])))
    axes.set_ylim(*(centre[1] + sides[1] * np.array([-0.5, 0.5])))
    axes.set_axis_off()
    return float(sides[0] / inches[0] / _POINTS_PER_INCH), float(inches[0])


def _extent(points: Places) -> tuple[Places, Places]:
    """Give the sides of a box around points, with a margin, and its centre."""
    low, high = points.min(axis=0), points.max(axis=0)
    extent = float((high - low).max()) or 1.0
    # A margin for arrows and shifted deadheads; the short side is padded to be readable.
    sides = np.maximum(high - low + 0.07 * extent, extent * _SHORTER_SIDE / _LONGER_SIDE)
    return sides, (low + high) / 2
