"""Driving costs under turn rules by an exhaustive search."""

from collections.abc import Collection
from itertools import product

from arcfleet import Instance

#: A link, and whether it is driven from head to tail.
Way = tuple[int, bool]


class LiteralTurns:
    """The turn rules read word by word, and driving costs by trying everything.

    No vehicle drives along `closed` links.
    """

    def __init__(self, instance: Instance, closed: Collection[int] = ()) -> None:
        self.instance = instance
        self.ways: list[Way] = [
            (index, reverse)
            for index, link in enumerate(instance.links)
            for reverse in ((False,) if link.one_way else (False, True))
        ]
        self.open = [way for way in self.ways if way[0] not in closed]

    def start(self, way: Way) -> int:
        return self.instance.links[way[0]].ends(way[1])[0]

    def end(self, way: Way) -> int:
        return self.instance.links[way[0]].ends(way[1])[1]

    def turn(self, along: Way, onto: Way) -> int | None:
        if self.end(along) != self.start(onto):
            return None
        for turn in self.instance.turns:
            named = (turn.link_in, turn.reverse_in), (turn.link_out, turn.reverse_out)
            if named == (along, onto):
                return turn.penalty
        if along[0] != onto[0] or along[1] == onto[1]:
            return 0
        exits = [w for w in self.ways if self.start(w) == self.end(along)]
        dead_end = all(index == along[0] for index, _ in exits)
        allowed = {"allowed": True, "dead-ends": dead_end, "forbidden": False}
        return self.instance.u_turn_penalty if allowed[self.instance.u_turns] else None

    def drive(self, way: Way) -> int:
        cost = self.instance.links[way[0]].step_cost(way[1], serves=False)
        assert cost is not None
        return cost

    def costs_after(self, first: Way | None) -> dict[Way, int]:
        """Least cost of having driven along each way, after a first one or the depot."""
        if first is None:
            leaving = (w for w in self.open if self.start(w) == self.instance.depot)
            known = {way: self.drive(way) for way in leaving}
        else:
            known = {first: 0}
        changed = True
        while changed:
            changed = False
            for along, onto in product(list(known), self.open):
                turn = self.turn(along, onto)
                if turn is None:
                    continue
                cost = known[along] + turn + self.drive(onto)
                if cost < known.get(onto, cost + 1):
                    known[onto] = cost
                    changed = True
        return known

    def legs_from(self, first: Way | None) -> dict[Way | None, int]:
        """Least cost of driving from a service, or the depot, to each start of service."""
        known = self.costs_after(first)
        legs: dict[Way | None, int] = {}
        for target in (*self.ways, None):
            place = self.instance.depot if target is None else self.start(target)
            offers = [0] if first is None and place == self.instance.depot else []
            for along, cost in known.items():
                turn = 0 if target is None else self.turn(along, target)
                if self.end(along) == place and turn is not None:
                    offers.append(cost + turn)
            if offers:
                legs[target] = min(offers)
        return legs
