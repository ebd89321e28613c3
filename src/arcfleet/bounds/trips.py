"""Trips as columns: what the relaxation drives must be what trips can drive.

Each street with a demand is served by one trip, and the deadheads of all trips together
are the deadheads of the relaxation. Trips that pay are found by pricing, in the core. At
the end the duals are a row of the relaxation: a price for each deadhead, at which no trip
serves its streets for less than the streets are worth (Bode and Irnich 2012).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from arcfleet import _core
from arcfleet.bounds.relaxation import IntArray, Relaxation

if TYPE_CHECKING:
    from collections.abc import Sequence

#: So many streets are remembered after a service, those near it.
_NEAR = 12
#: Larger instances have no trips: loads times directions of service, and streets.
_MOST_STATES = 150_000
#: A reduced cost above minus this counts as none.
_TOLERANCE = 4
#: Labels for each load and side, from attempt to attempt, and steps of each.
_LABELS = (2, 16, 10**6)
_MOST_STEPS = 10**9
_MOST_TRIPS = 100


@dataclass(frozen=True, slots=True)
class TripColumns:
    """Trips as columns: starts of their streets and drives, and these."""

    starts: IntArray
    sides: IntArray
    drive_starts: IntArray
    drives: IntArray


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in units of 2^-22: of each column, and of the service of each street."""

    columns: IntArray
    services: IntArray


class Trips:
    """The trips of an instance, of which those that pay are found.

    Parameters
    ----------
    relaxation
        Relaxation of the instance.
    """

    def __init__(self, relaxation: Relaxation) -> None:
        instance = relaxation.instance
        self.relaxation = relaxation
        #: Position among the tasks of the relaxation; those without demand are no part.
        tasks = relaxation.tasks
        self.served = np.flatnonzero([task.demand > 0 for task in tasks])
        arcs = list(relaxation.arc_columns)
        # A street without demand is served in passing: it costs no deadhead.
        for task in tasks:
            if task.demand == 0:
                arcs.append((task.tail, task.head, -1))
                if not task.one_way:
                    arcs.append((task.head, task.tail, -1))
        sides = []  # tail, head, task, column of its share
        for number, i in enumerate(self.served):
            task = tasks[i]
            sides.append((task.tail, task.head, number, task.share))
            if not task.one_way and task.tail != task.head:
                sides.append((task.head, task.tail, number, -1))
        table = np.array(arcs, dtype=np.int32).reshape(-1, 3)
        self._sides = np.array(sides, dtype=np.int64).reshape(-1, 4)
        self.shares = self._sides[self._sides[:, 3] >= 0, 3]
        demand = np.array([tasks[i].demand for i in self.served], dtype=np.int64)
        number = len(relaxation.node_links)
        self._near = self._nearest(table, number)
        self.pricer = _core.TripPricer(
            num_nodes=number,
            arc_tail=np.ascontiguousarray(table[:, 0]),
            arc_head=np.ascontiguousarray(table[:, 1]),
            arc_column=np.ascontiguousarray(table[:, 2]),
            side_tail=self._sides[:, 0].astype(np.int32),
            side_head=self._sides[:, 1].astype(np.int32),
            side_task=self._sides[:, 2].astype(np.int32),
            demand=demand,
            outside=relaxation.outside,
            capacity=instance.capacity,
            near=self._near,
        )

    def _nearest(self, arcs: NDArray, number: int) -> IntArray:
        """Return for each street those nearest to it."""
        cost = np.append(self.relaxation.cost, 0)
        dist = np.full((number, number), np.inf)
        for u, v, c in arcs:
            dist[u, v] = min(dist[u, v], cost[c])
        np.fill_diagonal(dist, 0)
        for k in range(number):
            np.minimum(dist, dist[:, k : k + 1] + dist[k], out=dist)
        count = len(self.served)
        ends = [[] for _ in range(count)]
        for u, v, t, _ in self._sides:
            ends[t] += [u, v]
        out = []
        for a in range(count):
            key = [
                (min(dist[i, j] + dist[j, i] for i in ends[a] for j in ends[b]), b)
                for b in range(count)
            ]
            out += [b for _, b in sorted(key)[: min(_NEAR, count)]]
        return np.array(out, dtype=np.int32)

    def find(self, prices: Prices, labels: int) -> tuple[TripColumns, bool]:
        """Return trips whose reduced cost is negative, and whether no other has one."""
        driven = np.ascontiguousarray(prices.columns[: self.relaxation.num_driven])
        sides = self._sides
        shares = np.append(prices.columns, 0)[sides[:, 3]]
        complete = self.pricer.price(
            driven,
            np.ascontiguousarray(shares - prices.services[sides[:, 2]]),
            _TOLERANCE,
            labels,
            _MOST_STEPS,
            _MOST_TRIPS,
        )
        return self._columns(), complete

    def worth(self, prices):
        """Least value of the prices in any plan, in units."""
        return int(prices.services.sum()) - _TOLERANCE * len(self.served)

    def single(self):
        """Return the trips of one street each, by paths that cost least."""
        self.pricer.find_single(
            np.ascontiguousarray(self.relaxation.cost[: self.relaxation.num_driven])
        )
        return self._columns()

    def _columns(self):
        return TripColumns(
            self.pricer.trip_starts(),
            self.pricer.trip_sides().astype(np.int64),
            self.pricer.drive_starts(),
            self.pricer.drives().astype(np.int64),
        )
