"""Where to draw nodes and links: their coordinates, or places that fit the distances."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from arcfleet.errors import InstanceError
from arcfleet.network import node_distances
from arcfleet.network.network import UNREACHABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.instance.instance import Instance

#: Beyond this, laying nodes out from their distances takes too long and shows too little.
_MOST_NODES = 5000
_MOST_ITERATIONS = 300
#: Relative progress in stress below which more iterations are not visible in a picture.
_TOLERANCE = 1e-5
Places = NDArray[np.float64]
#: How far parallel links bend apart, as a share of their length.
_BEND = 0.16
#: Diameter of a loop, as a share of the typical length of a drawn link.
_LOOP = 0.28
#: Angle between two loops at the same node.
_LOOP_FAN = math.pi / 2
_CURVE_POINTS = 17


def layout(instance: Instance) -> NDArray[np.float64]:
    """Place every node in the plane.

    Coordinates are used where the instance has them, with longitude scaled so that shapes
    look as on a map. Otherwise the nodes of every connected part are placed such that
    straight lines are about as long as the shortest paths, and the parts side by side.
    The same instance always gets the same layout: one (x, y) per node, y pointing up.
    """
    if instance.coordinates:
        scale = longitude_scale(instance)
        return np.array(instance.coordinates, dtype=np.float64) * (scale, 1.0)
    check_drawable(instance)
    parts = _connected_parts(instance)
    if len(instance.nodes) == len(parts):
        distances = np.zeros((len(instance.nodes), len(instance.nodes)))
    else:
        directed = node_distances(instance)
        distances = np.minimum(directed, directed.T).astype(np.float64)
    return _side_by_side(parts, [embed(distances[np.ix_(part, part)]) for part in parts])


def check_drawable(instance: Instance) -> None:
    """Raise InstanceError where `layout` would give up."""
    if not instance.coordinates and len(instance.nodes) > _MOST_NODES:
        raise InstanceError(
            f"expected coordinates or at most {_MOST_NODES} nodes to draw, got "
            f"{len(instance.nodes)} nodes without any in instance {instance.name!r}: "
            "add coordinates"
        )


def longitude_scale(instance: Instance) -> float:
    """Length of a degree of longitude where the instance lies, in degrees of latitude.

    It is 1 where the coordinates cannot be degrees, as for plane coordinates in metres.
    """
    latitudes = [latitude for _, latitude in instance.coordinates]
    if not latitudes or max(map(abs, latitudes)) >= 90:
        return 1.0
    return math.cos(math.radians((min(latitudes) + max(latitudes)) / 2))


def embed(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Place points in the plane such that their distances fit a given matrix.

    Classical scaling gives the start, majorisation of the stress (SMACOF; Gansner, Koren
    and North 2005) with weights 1/distance^2 the rest: short distances, which are the
    streets that will be drawn, count as much as long ones. The matrix is symmetric, with
    UNREACHABLE where two points are connected through third ones only.
    """
    count = len(distances)
    if count == 1:
        return np.zeros((1, 2))
    goal = _positive(_filled(distances))
    places = _classical_scaling(goal)
    weights = goal**-2
    np.fill_diagonal(weights, 0.0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    # The Laplacian is singular along (1, ..., 1); adding that direction makes it regular
    # and changes nothing for centred places.
    inverse = np.linalg.inv(laplacian + weights.mean())
    weighted_goal = weights * goal
    before = math.inf
    for _ in range(_MOST_ITERATIONS):
        actual = _pairwise(places)
        stress = float((weights * (actual - goal) ** 2).sum())
        if before - stress <= _TOLERANCE * before and before < math.inf:
            break
        before = stress
        pull = -weighted_goal / np.maximum(actual, 1e-12 * goal.max())
        np.fill_diagonal(pull, 0.0)
        np.fill_diagonal(pull, -pull.sum(axis=1))
        places = inverse @ (pull @ places)
    return _turned(places - places.mean(axis=0))


def _filled(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Join pairs that no legal path connects, as u and v in u -> w <- v, through others."""
    if (distances < UNREACHABLE).all():
        return distances
    joined = np.where(distances < UNREACHABLE, distances, np.inf)
    for via in range(len(joined)):
        np.minimum(joined, joined[:, via, None] + joined[None, via, :], out=joined)
    return joined


def _positive(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Keep nodes at distance 0 visibly apart."""
    pairs = distances[~np.eye(len(distances), dtype=bool)]
    positive = pairs[pairs > 0]
    # A tenth of the typical distance to the nearest other node; anything if all are 0.
    nearest = np.where(distances > 0, distances, np.inf).min(axis=1)
    least = 0.1 * float(np.median(nearest[np.isfinite(nearest)])) if len(positive) else 1.0
    goal = np.where(distances > 0, distances, least)
    np.fill_diagonal(goal, 1.0)
    return goal


def _classical_scaling(goal: NDArray[np.float64]) -> NDArray[np.float64]:
    count = len(goal)
    squares = goal**2
    np.fill_diagonal(squares, 0.0)
    centred = (
        squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    )
    values, vectors = np.linalg.eigh(-centred / 2)
    places = np.zeros((count, 2))
    for axis in range(min(2, count)):
        places[:, axis] = vectors[:, -1 - axis] * math.sqrt(max(values[-1 - axis], 0.0))
    # Points exactly on a line or on each other would stay so; a spiral frees them.
    angles = np.arange(count) * math.pi * (3 - math.sqrt(5))
    spiral = np.column_stack([np.cos(angles), np.sin(angles)])
    spiral *= np.sqrt((np.arange(count) + 1) / count)[:, None]
    return np.asarray(places + 1e-3 * goal.mean() * spiral)


def _pairwise(places: NDArray[np.float64]) -> NDArray[np.float64]:
    x, y = places[:, 0], places[:, 1]
    return np.hypot(x[:, None] - x, y[:, None] - y)


def _turned(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lay the long axis across, with signs that do not depend on the linear algebra."""
    _, _, axes = np.linalg.svd(places, full_matrices=False)
    turned = places @ axes.T
    for axis in range(2):
        extreme = turned[int(np.abs(turned[:, axis]).argmax()), axis]
        if extreme < 0:
            turned[:, axis] *= -1
    return np.asarray(turned)


def _connected_parts(instance: Instance) -> list[NDArray[np.intp]]:
    """Positions of the nodes of every part that links connect, the largest part first."""
    position = {node: i for i, node in enumerate(instance.nodes)}
    neighbours: list[list[int]] = [[] for _ in instance.nodes]
    for link in instance.links:
        tail, head = position[link.tail], position[link.head]
        neighbours[tail].append(head)
        neighbours[head].append(tail)
    parts = []
    seen: set[int] = set()
    for start in range(len(instance.nodes)):
        if start in seen:
            continue
        seen.add(start)
        part = [start]
        for node in part:
            new = [other for other in dict.fromkeys(neighbours[node]) if other not in seen]
            seen.update(new)
            part.extend(new)
        parts.append(np.array(sorted(part), dtype=np.intp))
    return sorted(parts, key=len, reverse=True)


def _side_by_side(
    parts: Sequence[NDArray[np.intp]], places: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Put the parts next to each other in rows about as wide as all of them are high."""
    together = np.zeros((sum(map(len, parts)), 2))
    sizes = [np.ptp(part_places, axis=0) for part_places in places]
    gap = 0.15 * max(float(size.max()) for size in sizes) or 1.0
    areas = sum((width + gap) * (height + gap) for width, height in sizes)
    row_width = max(1.3 * math.sqrt(areas), max(float(width) for width, _ in sizes))
    left = top = row_height = 0.0
    for part, part_places, (width, height) in zip(parts, places, sizes, strict=True):
        if left > 0 and left + width > row_width:
            left, top, row_height = 0.0, top - row_height - gap, 0.0
        corner = np.array([part_places[:, 0].min(), part_places[:, 1].max()])
        together[part] = part_places - corner + (left, top)
        left += float(width) + gap
        row_height = max(row_height, float(height))
    return together


def link_shapes(instance: Instance, places: Places) -> list[Places]:
    """Return the line of every link, from tail to head.

    The street's own geometry where there is one and the nodes lie at their coordinates;
    otherwise a straight line, with parallel links bent apart and loops as circles.
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
    """Angle per node that points away from its neighbours, with space for a loop."""
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
