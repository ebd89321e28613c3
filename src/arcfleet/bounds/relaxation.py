"""The relaxation of an instance: a linear program whose value no plan can be below.

Deadheads y >= 0 count the drives over a street without serving it, all vehicles together;
z in [0, 1] is the share of a two-way street that is served from tail to head. What leaves
a node has entered it. Cuts, which the separator finds, say how often the border of a set of
nodes is crossed (Belenguer and Benavent 1998, 2003; mixed graphs: Belenguer, Benavent,
Lacomme and Prins 2006).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arcfleet import _core

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from arcfleet.bounds.trips import Worth
    from arcfleet.instance import Instance

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

#: Duals are rounded to multiples of this for the exact bound; sums stay within 64 bits.
UNITS = 2**22
#: With a larger capacity, every load up to it is taken for possible.
_MOST_LOADS = 10**6


class Task(NamedTuple):
    """A required link: positions of its nodes, column of its share served forth or -1."""

    tail: int
    head: int
    demand: int
    one_way: bool
    share: int


class Relaxation:
    """The linear program without its cuts, and the separator of these.

    Where every street can be driven and served either way at the same cost, there is one
    column for each pair of neighbouring nodes: what a solution does in one direction, it
    may do half in each. Otherwise there is one for each direction, one for each two-way
    required link, and a row for each node.

    Parameters
    ----------
    instance
        Instance that can be solved.

    Attributes
    ----------
    constant
        Cost of every plan beside its columns: services, routes, visits of facilities.
    cost, upper
        Cost of each column, and a number that it need not exceed in a best plan.
    pair_columns
        Columns of each pair of nodes, -1 where there is only one.
    is_symmetric
        Whether there is one column for each pair.
    num_driven
        Number of columns that are deadheads; the others are shares of services.
    balance, balance_value
        Node, column and factor of what leaves a node less what enters it, and its value.
    pair_ends
        Both nodes of each pair.
    node_links
        Number of required links at each node.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        position = {node: index for index, node in enumerate(instance.nodes)}
        arcs = dict(_arcs(instance, position))
        tasks = [instance.links[i] for i in instance.required]
        ends = [(position[link.tail], position[link.head]) for link in tasks]
        self.is_symmetric = all(
            arcs.get((v, u)) == cost for (u, v), cost in arcs.items()
        ) and not any(
            link.one_way or link.service_cost != link.reverse_service_cost for link in tasks
        )
        pairs = {pair: i for i, pair in enumerate(sorted({_pair(*arc) for arc in arcs}))}
        # A best plan drives no street twice between two stops, and has at most so many.
        most = 4 * max(1, len(tasks))
        rows: list[tuple[int, int, int]] = []  # node, column, coefficient
        least = np.zeros(len(position), dtype=np.int64)
        load = _largest_load([link.demand for link in tasks], instance.capacity)
        self.constant = _constant(instance, load)
        self.pair_columns = np.full((len(pairs), 2), -1, dtype=np.int64)
        if self.is_symmetric:
            cost = [arcs[pair] for pair in pairs]
            upper = [2 * most] * len(cost)
            self.pair_columns[:, 0] = np.arange(len(pairs))
            self.constant += sum(link.service_cost or 0 for link in tasks)
            self.tasks = [
                Task(u, v, link.demand, link.one_way, -1)
                for link, (u, v) in zip(tasks, ends, strict=True)
            ]
        else:
            cost, upper = [], []
            for (u, v), price in arcs.items():
                pair = pairs[_pair(u, v)]
                self.pair_columns[pair, int(self.pair_columns[pair, 0] >= 0)] = len(cost)
                rows += [(u, len(cost), 1), (v, len(cost), -1)]
                cost.append(price)
                upper.append(most)
            self.tasks = []
            for link, (u, v) in zip(tasks, ends, strict=True):
                share = -1 if u == v or link.one_way else len(cost)
                self.tasks.append(Task(u, v, link.demand, link.one_way, share))
                forth = link.service_cost or 0
                back = forth if link.one_way else link.reverse_service_cost or 0
                if u == v or link.one_way:
                    self.constant += min(forth, back)
                    least[u] -= int(u != v)
                    least[v] += int(u != v)
                    continue
                self.constant += back
                rows += [(u, len(cost), 2), (v, len(cost), -2)]
                least[u] += 1
                least[v] -= 1
                cost.append(forth - back)
                upper.append(1)
        self.arc_columns = (
            [(u, v, pairs[_pair(u, v)]) for u, v in arcs]
            if self.is_symmetric
            else [(u, v, i) for i, (u, v) in enumerate(arcs)]
        )
        self.num_driven = len(cost) if self.is_symmetric else len(arcs)
        self.cost = np.array(cost, dtype=np.int64)
        self.upper = np.array(upper, dtype=np.int64)
        self.balance = np.array(sorted(rows), dtype=np.int64).reshape(-1, 3)
        self.balance_value = least
        # Ends of required links at each node, loops left out.
        at = [node for u, v in ends if u != v for node in (u, v)]
        self.node_links = np.bincount(
            np.array(at, dtype=np.int64), minlength=len(position)
        ).astype(np.int64)
        outside = np.zeros(len(position), dtype=np.uint8)
        for vehicle in instance.fleet:
            outside[[position[node] for node in vehicle.depots]] = 1
        outside[[position[facility.node] for facility in instance.facilities]] = 1
        self.pair_ends = np.array(list(pairs), dtype=np.int32).reshape(-1, 2)
        self.outside = outside
        self.separator = _core.Separator(
            num_nodes=len(position),
            tail=np.array([u for u, _ in ends], dtype=np.int32),
            head=np.array([v for _, v in ends], dtype=np.int32),
            demand=np.array([link.demand for link in tasks], dtype=np.int64),
            pair_tail=np.ascontiguousarray(self.pair_ends[:, 0]),
            pair_head=np.ascontiguousarray(self.pair_ends[:, 1]),
            outside=outside,
            capacity=load,
        )

    @property
    def least(self) -> int:
        """Bound before any program is solved: services in their cheaper directions."""
        below = np.minimum(self.cost, 0) * self.upper
        return max(0, self.constant + int(below.sum()))

    def deadheads(self, values: FloatArray) -> FloatArray:
        """Return the deadheads of each pair in a solution."""
        values = np.append(values, 0.0)  # for column -1
        driven: FloatArray = values[self.pair_columns].sum(axis=1)
        return driven

    def expand(self, starts: IntArray, pairs: IntArray) -> tuple[IntArray, IntArray]:
        """Return starts and columns of rows, given those of their pairs."""
        columns = self.pair_columns[pairs].reshape(-1)
        kept = columns >= 0
        counts = np.append(0, np.cumsum(kept))
        return counts[2 * starts], columns[kept]

    def exact_bound(
        self,
        duals: FloatArray,
        balance_duals: FloatArray,
        rows: tuple[IntArray, IntArray, IntArray],
        worth: Worth | None = None,
    ) -> int:
        """Return the bound that duals prove, in exact arithmetic, rounded up.

        Whatever the duals are, b' dual + sum of min(0, reduced cost) x upper is a lower
        bound (Neumaier and Shcherbina 2004). With duals rounded to multiples of 2^-22 all
        of it are integers.

        Parameters
        ----------
        duals
            Dual value of each cut; what is below 0 counts as 0.
        balance_duals
            Dual value of the row of each node; empty where these have none.
        rows
            Starts, columns and right-hand sides of the cuts.
        worth
            A further row, if given, whose dual is 1.
        """
        starts, columns, least = rows
        units = np.maximum(0, np.rint(duals * UNITS)).astype(np.int64)
        reduced = self.cost * UNITS
        value = 0
        if worth is not None:
            reduced = reduced - worth.columns
            value += worth.least
        np.subtract.at(reduced, columns, np.repeat(units, np.diff(starts)))
        used = np.flatnonzero(units)
        value += sum(int(units[i]) * int(least[i]) for i in used)
        if not self.is_symmetric:
            units = np.rint(balance_duals * UNITS).astype(np.int64)
            nodes, at, factors = self.balance.T
            np.subtract.at(reduced, at, units[nodes] * factors)
            value += sum(
                int(a) * int(b) for a, b in zip(units, self.balance_value, strict=True)
            )
        below = np.flatnonzero(reduced < 0)
        value += sum(int(reduced[i]) * int(self.upper[i]) for i in below)
        return self.constant - (-value // UNITS)


def _pair(u: int, v: int) -> tuple[int, int]:
    return (u, v) if u < v else (v, u)


def _arcs(
    instance: Instance, position: dict[int, int]
) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield the cheapest way to drive from a node straight to another, with its cost."""
    least: dict[tuple[int, int], int] = {}
    for link in instance.links:
        u, v = position[link.tail], position[link.head]
        for arc, cost in (((u, v), link.cost), ((v, u), link.reverse_cost)):
            if cost is not None and u != v:
                least[arc] = min(cost, least.get(arc, cost))
    # A route that ends elsewhere than it starts is closed at no cost.
    for vehicle in instance.fleet:
        start, end = (position[node] for node in vehicle.depots)
        if start != end:
            least[end, start] = 0
    yield from sorted(least.items())


def _largest_load(demands: Sequence[int], capacity: int) -> int:
    """Return the largest load that a trip can have: of no streets together more fits."""
    if capacity > _MOST_LOADS:
        return capacity
    loads, fitting = 1, (1 << (capacity + 1)) - 1  # a bit for each load
    for demand in demands:
        loads |= (loads << min(demand, capacity + 1)) & fitting
    return max(1, loads.bit_length() - 1)


def _constant(instance: Instance, load: int) -> int:
    """Return what all plans pay for routes and for visits of facilities."""
    trips = max(instance.least_trips, -(-instance.total_demand // load))
    # Without facilities a route is a trip.
    routes = max(instance.least_routes, 0 if instance.facilities else trips)
    cost = routes * min(vehicle.fixed_cost for vehicle in instance.fleet)
    if instance.facilities:
        visits = trips
        if not instance.empty_at_end:
            # The last trip of each route may end at its depot.
            counts = [vehicle.count for vehicle in instance.fleet]
            known = [count for count in counts if count is not None]
            visits -= sum(known) if len(known) == len(counts) else visits
        cost += max(0, visits) * min(facility.cost for facility in instance.facilities)
    return cost
