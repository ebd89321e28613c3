"""Cuts the tasks of a city into districts: compact, and alike in demand."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from arcfleet.network.network import UNREACHABLE, distances_from

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from arcfleet.instance import Instance

    Int64Array = NDArray[np.int64]

#: Ends of streets to serve from which all are measured; each lies far from those before it.
_LANDMARKS = 8


def cut_into_districts(instance: Instance, districts: int) -> list[tuple[int, ...]]:
    """Share the required links out over districts.

    The city is cut in two, and each part again, across the direction in which it is
    spread out most, so that the parts have demands as alike as can be. Where streets lie is
    told by driving costs alone. Every required link is in one district.

    Parameters
    ----------
    instance
        Instance to cut.
    districts
        Number of districts, at most that of the required links.

    Returns
    -------
    links
        Required links of each district, by position.
    """
    tasks = np.array(instance.required, dtype=np.int64)
    if not len(tasks):
        return [()] * districts
    places = _places(instance, tasks)
    demand = np.array([instance.links[link].demand for link in tasks], dtype=np.int64)
    if not demand.any():
        demand[:] = 1
    found: list[tuple[int, ...]] = []

    def cut(part: Int64Array, number: int) -> None:
        if number == 1:
            found.append(tuple(sorted(tasks[part].tolist())))
            return
        part = part[np.argsort(_widest(places[part]), kind="stable")]
        before = np.cumsum(demand[part])
        half = number // 2
        middle = int(np.searchsorted(before, before[-1] * half / number)) + 1
        middle = min(max(middle, half), len(part) - (number - half))
        cut(part[:middle], half)
        cut(part[middle:], number - half)

    cut(np.arange(len(tasks)), districts)
    return found


def _places(instance: Instance, tasks: Int64Array) -> Int64Array:
    """Return driving costs from all landmarks to each task, (tasks, landmarks)."""
    position = {node: index for index, node in enumerate(instance.nodes)}
    links = instance.links
    ends = np.array([[position[links[x].tail], position[links[x].head]] for x in tasks])
    # Not the ends of the map, which may lie far from all of them.
    nodes = np.unique(ends)
    landmark = position[instance.depot]
    columns: list[Int64Array] = []
    nearest = np.full(len(instance.nodes), np.iinfo(np.int64).max)
    # The depot finds the first landmark, and is none.
    for number in range(_LANDMARKS + 1):
        start = np.array([landmark], dtype=np.int32)
        far = distances_from(instance, start)[0].astype(np.int64)
        reached = far < UNREACHABLE
        far = np.where(reached, far, far[reached].max())
        if number:
            columns.append(far[ends].sum(axis=1))
            nearest = np.minimum(nearest, far)
        known = np.where(reached, nearest if number else far, -1)
        landmark = int(nodes[np.argmax(known[nodes])])
    return np.stack(columns, axis=1)


def _widest(places: Int64Array) -> Int64Array:
    """Return coordinates along the line between the landmarks that spreads them most."""
    lines = [places[:, i] - places[:, j] for i, j in combinations(range(_LANDMARKS), 2)]
    return max(lines, key=lambda line: float(line.var()))
