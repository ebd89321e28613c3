"""Shortest ways between services, depots and facilities, in plain Python.

For the few ways that a changed plan needs. Searches take theirs from the network, which
computes all of them at once.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from arcfleet.instance.shortest_ways import shortest_ways
from arcfleet.instance.turns import Direction, TurnCosts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from arcfleet.instance.instance import Instance

#: Where a way starts or ends: a node, at which no turn is taken, or a link that was just
#: driven along, or is driven along next.
Place = int | Direction
#: A node that is reached, or, with turn rules, a link that is driven along next.
_Key = int | Direction

#: Cost where there is no way.
NO_WAY = float("inf")


class Ways:
    """Shortest ways of one vehicle type, by the turn rules.

    Parameters
    ----------
    instance
        Instance to drive in.
    forbidden
        Positions of links that may not be driven along.
    """

    def __init__(self, instance: Instance, forbidden: Iterable[int] = ()) -> None:
        self._instance = instance
        self._rules = instance.has_turn_rules
        self._turns = TurnCosts(instance)
        self._closed = frozenset(forbidden)
        #: (key, cost, link driven) of every step onward, and of every step back.
        self._onward: dict[_Key, list[tuple[_Key, int, Direction]]] = defaultdict(list)
        self._back: dict[_Key, list[tuple[_Key, int, Direction]]] = defaultdict(list)
        for index, link in enumerate(instance.links):
            if index in self._closed:
                continue
            for reverse in (False,) if link.one_way else (False, True):
                self._add((index, reverse), link.step_cost(reverse, serves=False) or 0)
        self._paths: dict[tuple[Place, Place], tuple[float, tuple[Direction, ...]]] = {}
        self._from: dict[Place, Callable[[Place], float]] = {}
        self._to: dict[Place, Callable[[Place], float]] = {}

    def _add(self, along: Direction, cost: int) -> None:
        start, end = self._ends(along)
        if not self._rules:
            self._onward[start].append((end, cost, along))
            self._back[end].append((start, cost, along))
            return
        for onto, turn in self._allowed(along):
            self._onward[along].append((onto, cost + turn, along))
            self._back[onto].append((along, cost + turn, along))
        self._onward[along].append((end, cost, along))
        self._back[end].append((along, cost, along))

    def path(self, start: Place, end: Place) -> tuple[float, tuple[Direction, ...]]:
        """Return the cost of the shortest way between two places, and its links."""
        if (start, end) not in self._paths:
            self._paths[start, end] = self._search(start, end)
        return self._paths[start, end]

    def cost(self, start: Place, end: Place) -> float:
        """Return the cost of the shortest way between two places."""
        if start in self._from:
            return self._from[start](end)
        if end in self._to:
            return self._to[end](start)
        return self.path(start, end)[0]

    def costs_from(self, start: Place) -> Callable[[Place], float]:
        """Return a function of the cost from a place to any other, after one search."""
        if start not in self._from:
            costs, _ = shortest_ways(
                self._starts(start), lambda key: self._onward.get(key, ())
            )
            self._from[start] = lambda end: costs.get(self._goal(end), NO_WAY)
        return self._from[start]

    def costs_to(self, end: Place) -> Callable[[Place], float]:
        """Return a function of the cost to a place from any other, after one search."""
        if end not in self._to:
            costs, _ = shortest_ways(
                {self._goal(end): 0}, lambda key: self._back.get(key, ())
            )
            self._to[end] = lambda start: min(
                (c + costs.get(key, NO_WAY) for key, c in self._starts(start).items()),
                default=NO_WAY,
            )
        return self._to[end]

    def _ends(self, along: Direction) -> tuple[int, int]:
        return self._instance.links[along[0]].ends(along[1])

    def _allowed(self, along: Direction) -> list[tuple[Direction, int]]:
        return [
            (onto, turn)
            for onto, turn in self._turns.onward(along)
            if onto[0] not in self._closed
        ]

    def _starts(self, place: Place) -> dict[_Key, int]:
        """Return the keys that a way from a place starts with, and their costs."""
        node = place if isinstance(place, int) else self._ends(place)[1]
        if not self._rules:
            return {node: 0}
        starts: dict[_Key, int] = {node: 0}
        if isinstance(place, int):
            leaving = self._turns.leaving(place)
            starts |= {onto: 0 for onto in leaving if onto[0] not in self._closed}
        else:
            starts |= dict(self._allowed(place))
        return starts

    def _goal(self, place: Place) -> _Key:
        """Return the key that a way to a place ends with."""
        return place if isinstance(place, int) or self._rules else self._ends(place)[0]

    def _search(self, start: Place, end: Place) -> tuple[float, tuple[Direction, ...]]:
        goal = self._goal(end)
        costs, before = shortest_ways(
            self._starts(start), lambda key: self._onward.get(key, ()), goal
        )
        if goal not in costs:
            return NO_WAY, ()
        driven = []
        key = goal
        while key in before:
            key, along = before[key]
            driven.append(along)
        return costs[goal], tuple(reversed(driven))
