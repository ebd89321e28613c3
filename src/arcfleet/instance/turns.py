"""What the turn rules of an instance mean for one turn."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from arcfleet.instance.instance import Instance

#: A link driven in one direction: its position, and whether from head to tail.
Direction = tuple[int, bool]

_Place = TypeVar("_Place")


class TurnCosts:
    """The cost of every turn.

    Plain lookups, for the checker and for reports. The compiled network reads the rules for
    itself, so that a mistake in one of them is found by the other.

    Parameters
    ----------
    instance
        Instance whose rules are asked.
    """

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._named = {
            ((turn.link_in, turn.reverse_in), (turn.link_out, turn.reverse_out)): turn
            for turn in instance.turns
        }
        self._leaving: dict[int, list[Direction]] = defaultdict(list)
        for index, link in enumerate(instance.links):
            self._leaving[link.tail].append((index, False))
            if not link.one_way:
                self._leaving[link.head].append((index, True))

    def leaving(self, node: int) -> list[Direction]:
        """Return the links that lead away from a node, in their directions."""
        return self._leaving.get(node, [])

    def cost(self, along: Direction, onto: Direction) -> int | None:
        """Return the cost of a turn between two links that meet; None if forbidden."""
        named = self._named.get((along, onto))
        if named is not None:
            return named.penalty
        if along[0] != onto[0] or along[1] == onto[1]:
            return 0
        # A U-turn.
        policy = self._instance.u_turns
        if policy == "forbidden" or (policy == "dead-ends" and not self._dead_end(along)):
            return None
        return self._instance.u_turn_penalty

    def onward(self, along: Direction) -> list[tuple[Direction, int]]:
        """Return where a vehicle may drive on after a link, and the cost of each turn."""
        index, reverse = along
        end = self._instance.links[index].ends(reverse)[1]
        costs = ((onto, self.cost(along, onto)) for onto in self.leaving(end))
        return [(onto, cost) for onto, cost in costs if cost is not None]

    def _dead_end(self, along: Direction) -> bool:
        index, reverse = along
        end = self._instance.links[index].ends(reverse)[1]
        return all(other == index for other, _ in self.leaving(end))


def servable(instance: Instance) -> set[int]:
    """Return the links that some vehicle type can drive to and back by the turn rules."""
    turns = TurnCosts(instance)
    onward: dict[Direction, list[Direction]] = {}
    backward: dict[Direction, list[Direction]] = defaultdict(list)
    arriving: dict[int, list[Direction]] = defaultdict(list)
    for index, link in enumerate(instance.links):
        for reverse in (False,) if link.one_way else (False, True):
            along = index, reverse
            onward[along] = [onto for onto, _ in turns.onward(along)]
            for onto in onward[along]:
                backward[onto].append(along)
            arriving[link.ends(reverse)[1]].append(along)
    found: set[int] = set()
    for vehicle in instance.fleet:
        closed = set(vehicle.forbidden_links)
        end = vehicle.start if vehicle.end is None else vehicle.end
        starts = _open(turns.leaving(vehicle.start), closed)
        reached = reach(starts, _within(onward, closed))
        returning = reach(_open(arriving[end], closed), _within(backward, closed))
        found |= {index for index, _ in reached & returning}
    return found


def _open(places: Iterable[Direction], closed: set[int]) -> list[Direction]:
    return [along for along in places if along[0] not in closed]


def _within(
    neighbours: Mapping[Direction, list[Direction]], closed: set[int]
) -> Mapping[Direction, list[Direction]]:
    if not closed:
        return neighbours
    return {along: _open(onto, closed) for along, onto in neighbours.items()}


def reach(
    starts: Iterable[_Place], neighbours: Mapping[_Place, Iterable[_Place]]
) -> set[_Place]:
    """Return all places that some lead to, these included."""
    reached = set(starts)
    waiting = list(reached)
    while waiting:
        for place in neighbours.get(waiting.pop(), ()):
            if place not in reached:
                reached.add(place)
                waiting.append(place)
    return reached
