"""Dialects of keyed text: the keys and lists of one format, as a table."""

from __future__ import annotations

from dataclasses import dataclass

#: Fields of a dialect that are keys of the header.
_SINGLE_KEYS = (
    *("name", "nodes", "capacity", "depot", "vehicles", "comment", "upper_bound"),
    *("cost_kind", "total_cost", "route_cost"),
    *("facility_cost", "max_route_cost", "facilities"),
)


@dataclass(frozen=True, slots=True)
class Section:
    """One list of links."""

    count_key: str  # header key that states how many links the list has
    list_key: str  # key that starts the list
    # The word before each number of a link line, with the `Link` field it stands for.
    fields: tuple[tuple[str, str], ...]
    # Whether the links of the list are required, and whether one-way.
    required: bool
    one_way: bool = False

    @property
    def example(self) -> str:
        """A line as it is expected, for messages."""
        return "( 1, 2) " + " ".join(f"{word} 3" for word, _ in self.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The keys of one keyed text format; None where it has no such key."""

    file_format: str
    suffixes: tuple[str, ...] = ()  # suffixes of files that are written in it
    is_written: bool = True  # whether instances are written in it, too
    title: str  # name in messages
    # Keys every file must have.
    name: str
    nodes: str
    capacity: str
    depot: str
    # Keys a file may have.
    vehicles: str
    comment: str | None = None
    upper_bound: str | None = None
    # Keys a file may have: how costs are given, and the sum of the required ones.
    cost_kind: str | None = None
    total_cost: str | None = None
    # Key of the fixed cost of a route; every file must have it.
    route_cost: str | None = None
    # Key of the cost of a facility visit; every file must have it.
    facility_cost: str | None = None
    # Keys of which a file must have one: the longest route, and the nodes of facilities.
    # A dialect that has them asks for the fewest routes first.
    max_route_cost: str | None = None
    facilities: str | None = None
    # Lists of links, in the order in which the links are numbered.
    sections: tuple[Section, ...]
    first_node: int  # the lowest node number where the data does not show it
    any_nodes: bool = False  # whether node numbers are labels, with gaps and below 0
    by_position: bool = False  # whether the words of a link line are not looked at

    @property
    def keys(self) -> frozenset[str]:
        """All keys."""
        single = (getattr(self, name) for name in _SINGLE_KEYS)
        counts = (section.count_key for section in self.sections)
        lists = (section.list_key for section in self.sections)
        return frozenset(key for key in (*single, *counts, *lists) if key is not None)

    @property
    def telling_keys(self) -> frozenset[str]:
        """Keys of which a file has at least one; empty where it needs none."""
        keys = (self.max_route_cost, self.facilities)
        return frozenset(key for key in keys if key is not None)


#: The one way of giving costs: link by link.
EXPLICIT_COSTS = "EXPLICITOS"


def counted(labels: set[int], count: int) -> bool:
    """Return whether node numbers can be 0 to count - 1 or 1 to count."""
    return min(labels) >= 0 and max(labels) <= count and not {0, count} <= labels
