"""The line along which every link is drawn, such that no link hides another."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from arcfleet.report.layout import longitude_scale

if TYPE_CHECKING:
    from arcfleet.instance.instance import Instance

Places = NDArray[np.float64]

#: How far parallel links bend apart, as a share of their length.
_BEND = 0.16
#: Diameter of a loop, as a share of the typical length of a drawn link.
_LOOP = 0.28
#: Angle between two loops at the same node.
_LOOP_FAN = math.pi / 2
_CURVE_POINTS = 17


def link_shapes(instance: Instance, places: Places) -> list[Places]:
    """Give every link a line from tail to head.

    The street's own geometry where there is one and the nodes lie at their coordinates;
    otherwise a straight line, with parallel links bent apart and loops as circles.

    Parameters
    ----------
    instance
        Whose links.
    places
        Where its nodes lie, as from `layout`.

    Returns
    -------
    shapes
        Per link its points, (points, 2).
    """
    position = {node: i for i, node in enumerate(instance.nodes)}
    scale = longitude_scale(instance)
    shapes: dict[int, Places] = {}
    between: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, link in enumerate(instance.links):
        if link.geometry and instance.coordinates:
            shapes[index] = np.array(link.geometry, dtype=np.float64) * (scale, 1.0)
        else:
            tail, head = position[link.tail], position[link.head]
            between[min(tail, head), max(tail, head)].append(index)

    away = _directions_away(instance, places, position)
    diameter = _LOOP * _typical_length(instance, places, position)
    for (first, second), indices in between.items():
        for rank, index in enumerate(indices):
            if first == second:
                # Fanned out, up to a full circle of loops.
                apart = min(_LOOP_FAN, 2 * math.pi / len(indices))
                turn = away[first] + apart * (rank - (len(indices) - 1) / 2)
                shapes[index] = _loop(places[first], turn, diameter)
                continue
            bend = _BEND * (rank - (len(indices) - 1) / 2)
            shape = _curve(places[first], places[second], bend)
            forward = position[instance.links[index].tail] == first
            shapes[index] = shape if forward else shape[::-1]
    return [shapes[index] for index in range(len(instance.links))]


def shifted(shape: Places, distance: float) -> Places:
    """Move a line sideways, to the right of its direction."""
    along = np.gradient(shape, axis=0)
    lengths = np.hypot(along[:, 0], along[:, 1])
    lengths[lengths == 0] = 1.0
    right = np.column_stack([along[:, 1], -along[:, 0]]) / lengths[:, None]
    return shape + distance * right


def middle(shape: Places) -> tuple[Places, Places]:
    """Point halfway along a line and the unit vector of its direction there."""
    pieces = np.diff(shape, axis=0)
    lengths = np.hypot(pieces[:, 0], pieces[:, 1])
    ends = np.cumsum(lengths)
    half = ends[-1] / 2
    piece = min(int(np.searchsorted(ends, half)), len(pieces) - 1)
    if lengths[piece] == 0:
        return shape[0], np.array([1.0, 0.0])
    share = (half - ends[piece]) / lengths[piece] + 1
    return shape[piece] + share * pieces[piece], pieces[piece] / lengths[piece]


def _curve(start: Places, end: Places, bend: float) -> Places:
    if bend == 0:
        return np.array([start, end])
    across = np.array([start[1] - end[1], end[0] - start[0]])
    # A quadratic curve passes its control point at half the distance.
    control = (start + end) / 2 + 2 * bend * across
    t = np.linspace(0, 1, _CURVE_POINTS)[:, None]
    return np.asarray((1 - t) ** 2 * start + 2 * t * (1 - t) * control + t**2 * end)


def _loop(node: Places, direction: float, diameter: float) -> Places:
    centre = node + diameter / 2 * np.array([math.cos(direction), math.sin(direction)])
    angles = direction + math.pi + np.linspace(0, 2 * math.pi, 2 * _CURVE_POINTS)
    return np.asarray(
        centre + diameter / 2 * np.column_stack([np.cos(angles), np.sin(angles)])
    )


def _directions_away(
    instance: Instance, places: Places, position: dict[int, int]
) -> NDArray[np.float64]:
    """Angle per node that points away from its neighbours, where a loop finds room."""
    towards = np.zeros_like(places)
    for link in instance.links:
        tail, head = position[link.tail], position[link.head]
        step = places[head] - places[tail]
        length = math.hypot(*step)
        if length > 0:
            towards[tail] += step / length
            towards[head] -= step / length
    return np.arctan2(-towards[:, 1], -towards[:, 0])


def _typical_length(instance: Instance, places: Places, position: dict[int, int]) -> float:
    lengths = [
        math.hypot(*(places[position[link.head]] - places[position[link.tail]]))
        for link in instance.links
    ]
    positive = [length for length in lengths if length > 0]
    return float(np.median(positive)) if positive else 1.0
