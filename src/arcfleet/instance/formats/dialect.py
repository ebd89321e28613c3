"""How a keyed text format is described: its keys and its lists of links."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One list of links.

    Parameters
    ----------
    count_key
        Header key that states how many links the list has.
    list_key
        Key that starts the list.
    fields
        The word before each number of a link line, with the `Link` field it stands for.
    required, one_way
        What the links of the list are.
    """

    count_key: str
    list_key: str
    fields: tuple[tuple[str, str], ...]
    required: bool
    one_way: bool = False

    @property
    def example(self) -> str:
        """A line as it is expected, for messages."""
        return "( 1, 2) " + " ".join(f"{word} 3" for word, _ in self.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The keys of one keyed text format; None where it has no such key.

    Parameters
    ----------
    title
        Its name in messages.
    name, nodes, capacity, depot
        Keys every file must have.
    vehicles, comment, upper_bound
        Keys a file may have.
    cost_kind, total_cost
        Keys a file may have: how costs are given, and the sum of the required ones.
    route_cost
        Key of the fixed cost of a route; every file must have it.
    sections
        Lists of links, in the order in which the links are numbered.
    first_node
        The lowest node number where the data does not show it.
    """

    title: str
    name: str
    nodes: str
    capacity: str
    depot: str
    vehicles: str
    comment: str | None = None
    upper_bound: str | None = None
    cost_kind: str | None = None
    total_cost: str | None = None
    route_cost: str | None = None
    sections: tuple[Section, ...]
    first_node: int

    @property
    def keys(self) -> frozenset[str]:
        """All keys."""
        single = (
            self.name,
            self.nodes,
            self.capacity,
            self.depot,
            self.vehicles,
            self.comment,
            self.upper_bound,
            self.cost_kind,
            self.total_cost,
            self.route_cost,
        )
        counts = (section.count_key for section in self.sections)
        lists = (section.list_key for section in self.sections)
        return frozenset(key for key in (*single, *counts, *lists) if key is not None)


#: The one kind of costs there is: listed link by link.
EXPLICIT_COSTS = "EXPLICITOS"
