"""Shortest ways in plain Python (Dijkstra), for the few that a diagnosis or a repair needs.

Searches take theirs from the network, which computes all of them at once. The checker has
its own, so that a mistake here does not hide itself.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

Place = TypeVar("Place", bound="Hashable")
Step = TypeVar("Step")


def shortest_ways(
    starts: Mapping[Place, int],
    onward: Callable[[Place], Iterable[tuple[Place, int, Step]]],
    goal: Place | None = None,
) -> tuple[dict[Place, int], dict[Place, tuple[Place, Step]]]:
    """Return the least cost of every place, and the place and step before it.

    Parameters
    ----------
    starts
        Places to start from, with costs of their own.
    onward
        Places that a place leads to, the costs of going there, and what to remember of it.
    goal
        Place to stop at; others then may have no cost, or not the least.

    Returns
    -------
    costs, before
        Places that cannot be reached are in neither, starts not in `before`.
    """
    costs = dict(starts)
    before: dict[Place, tuple[Place, Step]] = {}
    # Numbers decide between equal costs, since places need not have an order.
    heap = [(cost, number, place) for number, (place, cost) in enumerate(costs.items())]
    heapq.heapify(heap)
    number = len(heap)
    while heap:
        cost, _, place = heapq.heappop(heap)
        if goal is not None and place == goal:
            break
        if cost > costs[place]:
            continue
        for other, more, step in onward(place):
            if other not in costs or cost + more < costs[other]:
                costs[other] = cost + more
                before[other] = place, step
                number += 1
                heapq.heappush(heap, (cost + more, number, other))
    return costs, before
