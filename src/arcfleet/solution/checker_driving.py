"""Shortest driving for the checker: plain searches over the links, one vehicle type each.

No arrays and no compiled core, so that no mistake of the network is repeated here.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from arcfleet.instance.instance import Instance, Link
    from arcfleet.instance.turns import Direction, TurnCosts

#: A deadhead from one place of a route to the next: a service, or a node (depot or
#: facility), at which no turn is taken.
Leg = tuple["Direction | int", "Direction | int"]


class Driving:
    """Costs of the deadheads of one vehicle type.

    Parameters
    ----------
    instance
        Instance whose links are driven.
    turns
        Its turn rules.
    forbidden_links
        Positions of the links that the vehicle type may not drive along.
    """

    def __init__(
        self, instance: Instance, turns: TurnCosts, forbidden_links: Iterable[int] = ()
    ) -> None:
        self._instance = instance
        self._turns = turns
        self._forbidden = frozenset(forbidden_links)
        self._neighbours: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for index, link in enumerate(instance.links):
            if index in self._forbidden:
                continue
            self._neighbours[link.tail].append((link.head, link.cost))
            if link.reverse_cost is not None:
                self._neighbours[link.head].append((link.tail, link.reverse_cost))

    def leg_costs(self, legs: Iterable[Leg]) -> dict[Leg, int]:
        """Compute the cost of every leg that can be driven.

        One search per place where legs start.
        """
        wanted = set(legs)
        if self._instance.has_turn_rules:
            following: dict[Direction | int, set[Direction | int]] = defaultdict(set)
            for start, end in wanted:
                following[start].add(end)
            return {
                (start, end): cost
                for start, ends in following.items()
                for end, cost in self._search_by_turns(start, ends).items()
            }
        links = self._instance.links
        targets: dict[int, set[int]] = defaultdict(set)
        for leg in wanted:
            start_node, end_node = leg_nodes(links, leg)
            targets[start_node].add(end_node)
        by_nodes = {
            (start_node, end_node): cost
            for start_node, ends in targets.items()
            for end_node, cost in self._search(start_node, ends).items()
        }
        found = ((leg, by_nodes.get(leg_nodes(links, leg))) for leg in wanted)
        return {leg: cost for leg, cost in found if cost is not None}

    def _search(self, source: int, targets: set[int]) -> dict[int, int]:
        missing = set(targets)
        done: dict[int, int] = {}
        best = {source: 0}
        waiting = [(0, source)]
        while waiting and missing:
            distance, node = heapq.heappop(waiting)
            if node in done:
                continue
            done[node] = distance
            missing.discard(node)
            for neighbour, cost in self._neighbours[node]:
                reached = distance + cost
                if reached < best.get(neighbour, reached + 1):
                    best[neighbour] = reached
                    heapq.heappush(waiting, (reached, neighbour))
        return {node: done[node] for node in targets if node in done}

    def _search_by_turns(
        self, source: Direction | int, targets: set[Direction | int]
    ) -> dict[Direction | int, int]:
        """Search over the links just driven: a turn depends on the one before it."""
        links = self._instance.links
        targets_at: dict[int, list[Direction | int]] = defaultdict(list)
        for target in targets:
            targets_at[leg_nodes(links, (source, target))[1]].append(target)
        found: dict[Direction | int, int] = {}
        best: dict[Direction, int] = {}
        waiting: list[tuple[int, Direction]] = []

        def reach(distance: int, along: Direction) -> None:
            if distance < best.get(along, distance + 1):
                best[along] = distance
                heapq.heappush(waiting, (distance, along))

        def drive(distance: int, onto: Direction) -> None:
            if onto[0] not in self._forbidden:
                reach(distance + self._driving_cost(onto), onto)

        if isinstance(source, int):
            # No turn is taken where a route leaves a depot or a facility.
            found.update(dict.fromkeys(targets_at[source], 0))
            for onto in self._turns.leaving(source):
                drive(0, onto)
        else:
            reach(0, source)
        done: set[Direction] = set()
        while waiting:
            distance, along = heapq.heappop(waiting)
            if len(found) == len(targets) and distance >= max(found.values()):
                break
            if along in done:
                continue
            done.add(along)
            node = links[along[0]].ends(along[1])[1]
            for target in targets_at.get(node, ()):
                turn = 0 if isinstance(target, int) else self._turns.cost(along, target)
                if turn is not None:
                    known = found.get(target, distance + turn)
                    found[target] = min(known, distance + turn)
            for onto, turn in self._turns.onward(along):
                drive(distance + turn, onto)
        return found

    def _driving_cost(self, along: Direction) -> int:
        cost = self._instance.links[along[0]].step_cost(along[1], serves=False)
        assert cost is not None  # only legal directions leave a node
        return cost


def leg_nodes(links: tuple[Link, ...], leg: Leg) -> tuple[int, int]:
    """Return the nodes where a deadhead starts and ends."""
    before, after = leg
    return (
        before if isinstance(before, int) else links[before[0]].ends(before[1])[1],
        after if isinstance(after, int) else links[after[0]].ends(after[1])[0],
    )
