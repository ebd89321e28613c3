"""Shape of a plan: how even its routes are, and how far they interleave."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

import numpy as np

from arcfleet.network.network import node_distances

if TYPE_CHECKING:
    from arcfleet.instance.instance import Instance
    from arcfleet.solution.solution import Solution


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Figures of a plan."""

    longest: int
    shortest: int
    ratio: float | None
    variation: float
    interleaving: float
    changed: int | None


def shape(instance: Instance, solution: Solution) -> Shape:
    """Return the shape of a plan."""
    costs = [route.cost for route in solution.routes]
    route_of = {s.link: i for i, r in enumerate(solution.routes) for s in r.services}
    tasks = list(instance.required)
    count = len(tasks)
    position = {node: i for i, node in enumerate(instance.nodes)}
    ends = np.array(
        [[position[node] for node in instance.links[i].ends(reverse=False)] for i in tasks]
    ).reshape(-1, 2)
    ways = node_distances(instance)[ends[:, None, :, None], ends[None, :, None, :]]
    near = ways.min(axis=(2, 3)).astype(float)
    near = np.minimum(near, near.T)
    np.fill_diagonal(near, np.inf)
    nearest = near.argmin(axis=1) if count > 1 else np.zeros(0, int)
    other = [route_of[tasks[i]] != route_of[tasks[j]] for i, j in enumerate(nearest)]
    previous = {item.link: item.route for item in instance.previous}
    numbers = solution.numbers
    return Shape(
        longest=max(costs, default=0),
        shortest=min(costs, default=0),
        ratio=max(costs) / min(costs) if costs and min(costs) > 0 else None,
        variation=pstdev(costs) / fmean(costs) if costs and any(costs) else 0.0,
        interleaving=fmean(other) if other else 0.0,
        changed=sum(
            previous.get(link, numbers[i]) != numbers[i] for link, i in route_of.items()
        )
        if previous
        else None,
    )
