"""Sets of tasks: random pieces of street maps with demands and a depot.

A piece is grown from a random junction, breadth first on the undirected streets, until it
has the number of nodes drawn; then all streets between its nodes are taken. A piece with
too few streets is drawn again.

In the paper's Task sets all instances have the same number of tasks; required streets,
their demands and the depot are drawn uniformly. In the varied sets the number of tasks,
the share of required streets, the demands, the number of routes and the place of the depot
differ from instance to instance. The scenes are what a user cuts out of a map: nearly all
streets are required, their lengths are the demands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from arcfleet._checks import name_hint
from arcfleet.errors import MapError, OptionError
from arcfleet.instance.instance import Instance, Link
from arcfleet.streets.drawn_rules import PieceTurns, Streets, draw_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from arcfleet.streets.street_arrays import StreetArrays

#: Of every Task set.
CAPACITY = 100
#: Of every varied set: demands are scaled to it, in steps fine enough for any route.
VARIED_CAPACITY = 10_000
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
    capacity: int = CAPACITY

    def cutter(self, streets: StreetArrays, *, turn_rules: bool = False) -> PieceCutter:
        """Return what cuts its instances out of streets."""
        return PieceCutter(streets, self, turn_rules=turn_rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariedSet:
    """Instances of one range of sizes that differ in everything else."""

    name: str  # name of the set, as given to `arcfleet dataset make`
    # The number of required streets is drawn uniformly between these.
    least_required: int
    most_required: int
    capacity: int = VARIED_CAPACITY
    scenes: bool = False  # nearly all streets required, demands by length, 2 to 12 loads

    def cutter(self, streets: StreetArrays, *, turn_rules: bool = False) -> VariedCutter:
        """Return what cuts its instances out of streets."""
        return VariedCutter(streets, self, turn_rules=turn_rules)


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

#: Every range of sizes, by name.
VARIED_SETS: dict[str, VariedSet] = {
    f"varied{most}": VariedSet(
        name=f"varied{most}", least_required=least, most_required=most
    )
    for least, most in ((10, 30), (31, 60), (61, 110), (111, 200), (201, 300))
}

#: Every range of sizes of scenes, by name.
SCENE_SETS: dict[str, VariedSet] = {
    f"scenes{most}": VariedSet(
        name=f"scenes{most}", least_required=least, most_required=most, scenes=True
    )
    for least, most in ((50, 120), (121, 300))
}


def find_task_set(name: str) -> TaskSet | VariedSet:
    """Return the set of that name, or raise OptionError with the nearest one."""
    known: dict[str, TaskSet | VariedSet] = {
        **TASK_SETS,
        **VARIED_SETS,
        **SCENE_SETS,
    }
    if name in known:
        return known[name]
    raise OptionError(
        f"expected the name of a Task set, got {name!r}: {name_hint(name, known)}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """An instance as flat arrays; its nodes are counted from 0."""

    # Position of each node, in degrees.
    longitude: NDArray[np.float32]
    latitude: NDArray[np.float32]
    # Ends, cost and direction of each link; the cost is that of driving and serving, in
    # either direction unless there are others below.
    tail: NDArray[np.integer]
    head: NDArray[np.integer]
    cost: NDArray[np.integer]
    one_way: NDArray[np.bool_]
    demand: NDArray[np.integer]  # demand of each link; 0 means that it is not required
    depot: int  # a node
    capacity: int = CAPACITY
    source: int = 0  # number of the map it was cut from
    # Other costs of each link: all or none of them.
    reverse_cost: NDArray[np.integer] | None = None
    service_cost: NDArray[np.integer] | None = None
    reverse_service_cost: NDArray[np.integer] | None = None
    turns: PieceTurns | None = None  # None where turns are free

    def instance(self, name: str, attribution: str = "") -> Instance:
        """Make an Instance of it."""
        columns = (self.tail, self.head, self.cost, self.one_way, self.demand)
        located = bool(self.longitude.any() or self.latitude.any())
        rules: dict[str, Any] = {}
        if self.turns is not None:
            rules["turns"] = self.turns.turns()
            rules["u_turns"] = self.turns.policy
            rules["u_turn_penalty"] = self.turns.u_turn_penalty
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
                    **self._other_costs(position, one_way=one_way, required=demand > 0),
                )
                for position, (tail, head, cost, one_way, demand) in enumerate(
                    zip(*(column.tolist() for column in columns), strict=True)
                )
            ),
            depot=self.depot,
            capacity=self.capacity,
            attribution=attribution,
            coordinates=tuple(
                zip(self.longitude.tolist(), self.latitude.tolist(), strict=True)
            )
            if located
            else (),
            **rules,
        )

    def _other_costs(
        self, position: int, *, one_way: bool, required: bool
    ) -> dict[str, Any]:
        """Return the costs of a link beside that of driving forwards, where they differ."""
        costs = {}
        if self.reverse_cost is not None and not one_way:
            costs["reverse_cost"] = int(self.reverse_cost[position])
        if self.service_cost is not None and required:
            costs["service_cost"] = int(self.service_cost[position])
        if self.reverse_service_cost is not None and required and not one_way:
            costs["reverse_service_cost"] = int(self.reverse_service_cost[position])
        return costs


class _Area(NamedTuple):
    """Nodes grown from a junction, and all streets between them."""

    places: list[int]  # junctions of the map
    tail: NDArray[np.int32]
    head: NDArray[np.int32]
    links: NDArray[np.int32]  # streets of the map
    one_way: NDArray[np.bool_]
    reached: list[int]  # nodes that can be left and reached again, in order
    servable: list[int]  # links between them
    turns: PieceTurns | None


class _Cutter:
    """What the cutters share: streets as lists, and areas grown on them."""

    def __init__(
        self, streets: StreetArrays, least_nodes: int, name: str, *, turn_rules: bool
    ) -> None:
        self.streets = streets
        self.name = name
        self.turn_rules = turn_rules
        # Lists, because Python reads single numbers from them faster than from arrays.
        self._neighbours: list[list[int]] = [[] for _ in range(len(streets.longitude))]
        self._leaving: list[list[tuple[int, int]]] = [[] for _ in self._neighbours]
        ends = zip(streets.tail.tolist(), streets.head.tolist(), strict=True)
        for street, (tail, head) in enumerate(ends):
            self._neighbours[tail].append(head)
            self._neighbours[head].append(tail)
            self._leaving[tail].append((head, street))
        self._mixed = bool(streets.one_way.any())
        self._starts = _in_large_parts(self._neighbours, least_nodes)
        if not self._starts:
            raise MapError(
                f"expected connected streets with at least {least_nodes} junctions "
                f"for {name}, found none among {len(self._neighbours)} junctions: "
                "use a larger map or a smaller Task set"
            )

    def _grow_area(self, generator: np.random.Generator, wanted: int) -> _Area:
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
        ends = np.array(tail, dtype=np.int32), np.array(head, dtype=np.int32)
        turns = None
        if self.turn_rules:
            places = np.array(nodes, dtype=np.int32)
            whole = self.streets
            turns, edges = draw_rules(
                generator,
                Streets(
                    whole.longitude[places],
                    whole.latitude[places],
                    *ends,
                    whole.cost[links],
                    one_way,
                ),
            )
            both = {link for link in range(len(tail)) if 2 * link in edges}
            both -= {x for x in both if not (one_way[x] or 2 * x + 1 in edges)}
            servable = sorted(both)
            left = {tail[x // 2] if x % 2 == 0 else head[x // 2] for x in edges}
            reached = sorted(left)
        elif self._mixed:
            part = _strong_part(len(nodes), tail, head, one_way.tolist())
            servable = [i for i in range(len(tail)) if tail[i] in part and head[i] in part]
            reached = sorted(part)
        else:
            servable = list(range(len(tail)))
            reached = list(range(len(nodes)))
        return _Area(nodes, *ends, links, one_way, reached, servable, turns)

    def _piece(
        self, area: _Area, demand: NDArray[np.integer], depot: int, capacity: int
    ) -> Piece:
        places = np.array(area.places, dtype=np.int32)
        return Piece(
            longitude=self.streets.longitude[places],
            latitude=self.streets.latitude[places],
            tail=area.tail,
            head=area.head,
            cost=self.streets.cost[area.links],
            one_way=area.one_way,
            demand=demand,
            depot=depot,
            capacity=capacity,
            source=int(self.streets.source[area.places[0]]),
            turns=area.turns,
        )

    def _unfit(self, required: int) -> MapError:
        return MapError(
            f"expected pieces with {required} required streets for "
            f"{self.name}, found none in {_MOST_DRAWS} draws: "
            "use a map with more streets between its junctions or fewer one-way streets"
        )


class PieceCutter(_Cutter):
    """Cuts pieces of one scale out of streets.

    One-way streets make mixed instances: required streets and the depot then lie in the
    part of the piece that can be reached from the junction it was grown from and leads
    back there; a piece where this part has too few streets is drawn again. Turn rules do
    the same.
    """

    def __init__(
        self, streets: StreetArrays, task_set: TaskSet, *, turn_rules: bool = False
    ) -> None:
        super().__init__(streets, task_set.most_nodes, task_set.name, turn_rules=turn_rules)
        self.task_set = task_set

    def cut(self, generator: np.random.Generator) -> Piece:
        """Sample one piece; raise MapError if none of many has enough streets."""
        for _ in range(_MOST_DRAWS):
            piece = self._draw(generator)
            if piece is not None:
                return piece
        raise self._unfit(self.task_set.required)

    def _draw(self, generator: np.random.Generator) -> Piece | None:
        task_set = self.task_set
        wanted = int(generator.integers(task_set.least_nodes, task_set.most_nodes + 1))
        area = self._grow_area(generator, wanted)
        if len(area.servable) < task_set.required:
            return None
        demand = np.zeros(len(area.tail), dtype=np.uint8)
        required = generator.permutation(np.array(area.servable, dtype=np.int32))
        demand[required[: task_set.required]] = generator.integers(
            LEAST_DEMAND, MOST_DEMAND + 1, task_set.required
        )
        depot = area.reached[int(generator.integers(len(area.reached)))]
        return self._piece(area, demand, depot, task_set.capacity)


#: Share of the instances of a varied set that are drawn as those of a Task set.
_AS_TASK_SET = 0.25
#: Vehicle loads of the demand of all others: least, most, and tasks per load at least.
_LOADS = (0.7, 20.0, 2.5)
#: The same of scenes.
_SCENE_LOADS = (2.0, 12.0, 2.5)
#: Nodes of a piece with turn rules that are driven on, as a share of those of its tasks.
_MOST_AROUND = 1.5
#: Streets per junction of a map, about: by it an area gets the tasks that are wanted.
_STREETS_PER_NODE = 1.35


class VariedCutter(_Cutter):
    """Cuts pieces that differ in their sizes, demands, routes and depots out of streets.

    A quarter of them is drawn as those of a Task set. Of the others half have as many nodes
    as those of a Task set; in the other half nearly all streets are required. Demands are
    those of a Task set, the lengths of the streets, all the same or lognormal, a quarter
    each, and fill 0.7 to 20 vehicles, logarithmically uniform. The depot lies anywhere
    (three of five), at the edge (one) or outside of the area with the tasks (one). One-way
    streets are treated as in `PieceCutter`. With turn rules up to half as many nodes more
    are driven on.

    In a scene nearly all streets are required, demands are the lengths of the streets and
    fill 2 to 12 vehicles, and the depot lies anywhere or at the edge.
    """

    def __init__(
        self, streets: StreetArrays, varied_set: VariedSet, *, turn_rules: bool = False
    ) -> None:
        super().__init__(
            streets, varied_set.most_required, varied_set.name, turn_rules=turn_rules
        )
        self.varied_set = varied_set

    def cut(self, generator: np.random.Generator) -> Piece:
        """Sample one piece; raise MapError if none of many has enough streets."""
        chosen = self.varied_set
        tasks = int(generator.integers(chosen.least_required, chosen.most_required + 1))
        as_task_set = not chosen.scenes and generator.random() < _AS_TASK_SET
        dense = chosen.scenes or (not as_task_set and generator.random() < 0.5)
        place = "anywhere"
        if not as_task_set:
            places = ["anywhere", "anywhere", "anywhere", "edge", "outside"]
            if chosen.scenes:
                places = ["anywhere", "edge"]
            place = places[int(generator.integers(len(places)))]
        nodes = float(tasks + int(generator.integers(5, 11)))
        if dense:
            nodes = tasks / (_STREETS_PER_NODE * generator.uniform(0.8, 1.0))
        more = 1.4 if place == "outside" else 1.0
        if self.turn_rules:
            more = max(more, generator.uniform(1.0, _MOST_AROUND))
        for _ in range(_MOST_DRAWS):
            inner = math.ceil(nodes)
            wanted = math.ceil(more * inner)
            area = self._grow_area(generator, wanted)
            within = np.array(area.servable, dtype=np.int32)
            within = within[np.maximum(area.tail[within], area.head[within]) < inner]
            if len(within) >= tasks:
                break
            nodes = min(1.05 * nodes, 2.0 * tasks)  # streets are few here: a larger area
        else:
            raise self._unfit(tasks)
        required = generator.permutation(within)[:tasks]
        demand = np.zeros(len(area.tail), dtype=np.int32)
        lengths = self.streets.cost[area.links[required]]
        demand[required] = self._demands(generator, lengths, as_task_set)
        depots = area.reached
        if place != "anywhere":  # nodes grown last lie at the edge
            depots = depots[-max(1, len(depots) // 8) :]
        depot = depots[int(generator.integers(len(depots)))]
        return self._piece(area, demand, depot, chosen.capacity)

    def _demands(
        self, generator: np.random.Generator, lengths: NDArray[np.int32], as_task_set: bool
    ) -> NDArray[np.int32]:
        capacity, tasks = self.varied_set.capacity, len(lengths)
        uniform = generator.integers(LEAST_DEMAND, MOST_DEMAND + 1, tasks)
        if as_task_set:
            return (uniform * (capacity // CAPACITY)).astype(np.int32)
        kinds = (
            uniform.astype(np.float64),
            lengths.astype(np.float64),
            np.ones(tasks),
            generator.lognormal(0.0, 1.0, tasks),
        )
        if self.varied_set.scenes:
            raw, limits = kinds[1], _SCENE_LOADS
        else:
            raw, limits = kinds[int(generator.integers(len(kinds)))], _LOADS
        least, most, per_load = limits
        most = min(most, tasks / per_load)
        loads = least * (most / least) ** generator.random()
        scaled = np.rint(raw * (loads * capacity / float(raw.sum())))
        demands: NDArray[np.int32] = np.clip(scaled, 1, capacity).astype(np.int32)
        return demands


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
