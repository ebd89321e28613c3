"""The paper's Task sets: random pieces of street maps with demands and a depot.

A piece is grown from a random junction, breadth first on the undirected streets, until it
has the number of nodes drawn; then all streets between its nodes are taken. Required
streets and the depot are drawn uniformly. A piece with too few streets is drawn again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from arcfleet._checks import name_hint
from arcfleet.errors import MapError, OptionError
from arcfleet.instance.instance import Instance, Link

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from arcfleet.streets.street_arrays import StreetArrays

#: Of every Task set.
CAPACITY = 100
LEAST_DEMAND, MOST_DEMAND = 5, 10
#: Draws for one piece before the map is found unfit.
_MOST_DRAWS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSet:
    """One scale of the paper."""

    name: str  # name of the set, as given to `arcfleet dataset make`
    # The number of nodes is drawn uniformly between these.
    least_nodes: int
    most_nodes: int
    required: int  # number of required streets


#: Every scale, by name.
TASK_SETS: dict[str, TaskSet] = {
    f"task{required}": TaskSet(
        name=f"task{required}", least_nodes=least, most_nodes=least + 5, required=required
    )
    for required, least in (
        *((20, 25), (30, 30), (40, 45), (50, 55)),
        *((60, 65), (80, 85), (100, 105)),
    )
}


def find_task_set(name: str) -> TaskSet:
    """Return the Task set of that name, or raise OptionError with the nearest one."""
    if name in TASK_SETS:
        return TASK_SETS[name]
    raise OptionError(
        f"expected the name of a Task set, got {name!r}: {name_hint(name, TASK_SETS)}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """An instance as flat arrays; its nodes are counted from 0."""

    # Position of each node, in degrees.
    longitude: NDArray[np.float32]
    latitude: NDArray[np.float32]
    # Ends, cost and direction of each link; the cost is that of driving and serving.
    tail: NDArray[np.integer]
    head: NDArray[np.integer]
    cost: NDArray[np.integer]
    one_way: NDArray[np.bool_]
    demand: NDArray[np.integer]  # demand of each link; 0 means that it is not required
    depot: int  # a node
    capacity: int = CAPACITY
    source: int = 0  # number of the map it was cut from

    def instance(self, name: str, attribution: str = "") -> Instance:
        """Make an Instance of it."""
        columns = (self.tail, self.head, self.cost, self.one_way, self.demand)
        return Instance(
            name=name,
            nodes=tuple(range(len(self.longitude))),
            links=tuple(
                Link(
                    tail=tail,
                    head=head,
                    cost=cost,
                    one_way=one_way,
                    required=demand > 0,
                    demand=demand,
                )
                for tail, head, cost, one_way, demand in zip(
                    *(column.tolist() for column in columns), strict=True
                )
            ),
            depot=self.depot,
            capacity=self.capacity,
            attribution=attribution,
            coordinates=tuple(
                zip(self.longitude.tolist(), self.latitude.tolist(), strict=True)
            ),
        )


class PieceCutter:
    """Cuts pieces of one scale out of streets.

    One-way streets make mixed instances: required streets and the depot then lie in the
    part of the piece that can be reached from the junction it was grown from and leads
    back there; a piece where this part has too few streets is drawn again.
    """

    def __init__(self, streets: StreetArrays, task_set: TaskSet) -> None:
        self.streets = streets
        self.task_set = task_set
        # Lists, because Python reads single numbers from them faster than from arrays.
        self._neighbours: list[list[int]] = [[] for _ in range(len(streets.longitude))]
        self._leaving: list[list[tuple[int, int]]] = [[] for _ in self._neighbours]
        ends = zip(streets.tail.tolist(), streets.head.tolist(), strict=True)
        for street, (tail, head) in enumerate(ends):
            self._neighbours[tail].append(head)
            self._neighbours[head].append(tail)
            self._leaving[tail].append((head, street))
        self._mixed = bool(streets.one_way.any())
        self._starts = _in_large_parts(self._neighbours, task_set.most_nodes)
        if not self._starts:
            raise MapError(
                f"expected connected streets with at least {task_set.most_nodes} junctions "
                f"for {task_set.name}, found none among {len(self._neighbours)} junctions: "
                "use a larger map or a smaller Task set"
            )

    def cut(self, generator: np.random.Generator) -> Piece:
        """Sample one piece; raise MapError if none of many has enough streets."""
        for _ in range(_MOST_DRAWS):
            piece = self._draw(generator)
            if piece is not None:
                return piece
        raise MapError(
            f"expected pieces with {self.task_set.required} required streets for "
            f"{self.task_set.name}, found none in {_MOST_DRAWS} draws: "
            "use a map with more streets between its junctions or fewer one-way streets"
        )

    def _draw(self, generator: np.random.Generator) -> Piece | None:
        task_set = self.task_set
        wanted = int(generator.integers(task_set.least_nodes, task_set.most_nodes + 1))
        start = self._starts[int(generator.integers(len(self._starts)))]
        nodes = _grow(self._neighbours, start, wanted)
        position = {node: index for index, node in enumerate(nodes)}
        tail, head, chosen = [], [], []
        for index, node in enumerate(nodes):
            for other, street in self._leaving[node]:
                if other in position:
                    tail.append(index)
                    head.append(position[other])
                    chosen.append(street)
        links = np.array(chosen, dtype=np.int32)
        one_way = self.streets.one_way[links]
        if self._mixed:
            part = _strong_part(len(nodes), tail, head, one_way.tolist())
            servable = [i for i in range(len(tail)) if tail[i] in part and head[i] in part]
            depots = sorted(part)
        else:
            servable = list(range(len(tail)))
            depots = list(range(len(nodes)))
        if len(servable) < task_set.required:
            return None
        demand = np.zeros(len(tail), dtype=np.uint8)
        required = generator.permutation(np.array(servable, dtype=np.int32))
        demand[required[: task_set.required]] = generator.integers(
            LEAST_DEMAND, MOST_DEMAND + 1, task_set.required
        )
        places = np.array(nodes, dtype=np.int32)
        return Piece(
            longitude=self.streets.longitude[places],
            latitude=self.streets.latitude[places],
            tail=np.array(tail, dtype=np.int32),
            head=np.array(head, dtype=np.int32),
            cost=self.streets.cost[links],
            one_way=one_way,
            demand=demand,
            depot=depots[int(generator.integers(len(depots)))],
            source=int(self.streets.source[start]),
        )


def _grow(neighbours: Sequence[Sequence[int]], start: int, wanted: int) -> list[int]:
    """Return the first `wanted` nodes of a breadth-first search."""
    nodes = [start]
    known = {start}
    for node in nodes:  # it grows meanwhile
        for other in neighbours[node]:
            if other not in known:
                known.add(other)
                nodes.append(other)
                if len(nodes) == wanted:
                    return nodes
    return nodes


def _in_large_parts(neighbours: Sequence[Sequence[int]], least: int) -> list[int]:
    """Return the nodes of all connected parts with at least so many nodes, in order."""
    known = bytearray(len(neighbours))
    found: list[int] = []
    for start in range(len(neighbours)):
        if known[start]:
            continue
        part = _grow(neighbours, start, len(neighbours) + 1)
        for node in part:
            known[node] = 1
        if len(part) >= least:
            found += part
    return sorted(found)


def _strong_part(
    nodes: int, tail: Sequence[int], head: Sequence[int], one_way: Sequence[bool]
) -> set[int]:
    """Return the nodes that node 0 reaches and that reach node 0."""
    onward: list[list[int]] = [[] for _ in range(nodes)]
    backward: list[list[int]] = [[] for _ in range(nodes)]
    for first, last, single in zip(tail, head, one_way, strict=True):
        onward[first].append(last)
        backward[last].append(first)
        if not single:
            onward[last].append(first)
            backward[first].append(last)
    return set(_grow(onward, 0, nodes + 1)) & set(_grow(backward, 0, nodes + 1))
