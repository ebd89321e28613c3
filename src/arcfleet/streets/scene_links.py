"""Makes links of streets, cutting those that one vehicle cannot serve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arcfleet.errors import MapError
from arcfleet.instance.instance import Coordinate, Link
from arcfleet.streets.cutting import cut_line, equal_shares

if TYPE_CHECKING:
    from arcfleet.streets.scene_rules import SceneRules
    from arcfleet.streets.street_map import Street, StreetMap

#: Capacity and demand in different units would cut streets to crumbs.
_MOST_PARTS = 1000


class LinkMaker:
    """Collects the links of a scene, and the junctions that cutting streets makes.

    Parameters
    ----------
    street_map
        Where the streets lie.
    rules
        Say the capacity, and what becomes of two-way and of oversized streets.
    first_new_junction
        Number of the first junction that is made.
    """

    def __init__(
        self, street_map: StreetMap, rules: SceneRules, first_new_junction: int
    ) -> None:
        self._map = street_map
        self._rules = rules
        self._next_junction = first_new_junction
        self.links: list[Link] = []
        self.new_junctions: dict[int, Coordinate] = {}
        self.split_streets = 0

    def add(self, street: Street, demand: int | None) -> None:
        """Add the links of a street; a demand of None means that it is not served."""
        cost = max(1, round(street.metres))
        if demand is None:
            self.links.append(
                Link(
                    tail=street.tail,
                    head=street.head,
                    cost=cost,
                    one_way=street.one_way,
                    name=street.name,
                    geometry=street.geometry,
                )
            )
            return
        by_side = self._rules.both_sides and not street.one_way
        # Each side of a street has half of its demand, rounded up.
        load = -(-demand // 2) if by_side else demand
        parts = self._parts(street, load)
        ends, lines = self._cut(street, parts)
        for part, (part_cost, part_load) in enumerate(
            zip(equal_shares(cost, parts), equal_shares(load, parts), strict=True)
        ):
            there = Link(
                tail=ends[part],
                head=ends[part + 1],
                cost=max(1, part_cost),
                one_way=street.one_way or by_side,
                required=True,
                demand=part_load,
                name=street.name,
                geometry=lines[part],
            )
            self.links.append(there)
            if by_side:
                self.links.append(_reversed(there))

    def _parts(self, street: Street, load: int) -> int:
        capacity = self._rules.capacity
        parts = max(1, -(-load // capacity))
        if parts == 1:
            return 1
        too_much = (
            f"expected at most {capacity} (the capacity) as demand of a street, "
            f"got {load} on {_describe(street)} of map {self._map.name!r}"
        )
        if self._rules.oversized == "refuse":
            raise MapError(f"{too_much}: raise the capacity or let such streets be split")
        if parts > _MOST_PARTS:
            raise MapError(
                f"{too_much}, which would be split into {parts} parts: "
                "give capacity and demand in the same unit"
            )
        self.split_streets += 1
        return parts

    def _cut(
        self, street: Street, parts: int
    ) -> tuple[list[int], list[tuple[Coordinate, ...]]]:
        """Give the junctions along a street, new ones included, and the lines between."""
        if parts == 1:
            return [street.tail, street.head], [street.geometry]
        lines = cut_line(self._map.points(street), parts)
        between = range(self._next_junction, self._next_junction + parts - 1)
        self._next_junction += parts - 1
        for junction, line in zip(between, lines, strict=False):
            self.new_junctions[junction] = line[-1]
        # A street without geometry is straight, and so are its parts.
        if not street.geometry:
            lines = [() for _ in lines]
        return [street.tail, *between, street.head], lines


def _reversed(link: Link) -> Link:
    return Link(
        tail=link.head,
        head=link.tail,
        cost=link.cost,
        one_way=True,
        required=True,
        demand=link.demand,
        name=link.name,
        geometry=link.geometry[::-1],
    )


def _describe(street: Street) -> str:
    arrow = ">" if street.one_way else "-"
    name = " ".join(street.name.split())  # a message stays one line
    return f"street {street.tail}{arrow}{street.head}" + (f" ({name})" if name else "")
