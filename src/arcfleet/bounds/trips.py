"""Trips as columns: what the relaxation drives is what trips drive that serve all streets.

A trip starts and ends at a depot or facility, and its streets fit its vehicle. Every plan
consists of trips, so a linear program that mixes trips is a relaxation still, and a
stronger one. Trips that pay at the prices of the program are found by the core (Bode and
Irnich 2012; ng-routes: Baldacci, Mingozzi and Roberti 2011).

At prices where none pays, whatever a plan drives is worth at least what its services are:
a row of the relaxation, whatever the prices are, and valid for whole deadheads, too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from arcfleet import _core

if TYPE_CHECKING:
    from arcfleet.bounds.relaxation import IntArray, Relaxation

#: So many streets are remembered after a service, those near it.
_NEAR = 12
#: Larger instances have no trips: loads times directions of service, and nodes times them.
_MOST_STATES = 150_000
_MOST_PATHS = 500_000
#: A reduced cost above minus this, in units, counts as none: duals have been rounded.
_TOLERANCE = 64
#: Ways to a load and side that are kept, from attempt to attempt.
_LABELS = (1, 8, 10**6)

#: What a trip is made of: columns that it drives over or whose share it is part of, and,
#: after all columns, tasks that it serves; with the factor of each in the linear program.
Trip = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in units of 2^-22, of columns and after them of services.

    Parameters
    ----------
    values
        The prices.
    num_columns
        Number of columns.
    """

    values: IntArray
    num_columns: int

    def reduced_cost(self, trip: Trip) -> int:
        """Return what a trip costs beyond the worth of its services."""
        return -sum(count * int(self.values[place]) for place, count in trip)

    def towards(self, other: Prices, share: float) -> Prices:
        """Return prices that have gone a share of the way to others."""
        values = self.values + np.rint(share * (other.values - self.values)).astype(
            np.int64
        )
        return Prices(values, self.num_columns)


@dataclass(frozen=True, slots=True)
class Worth:
    """A row: the sum of columns times factors is at least some value; in units of 2^-22."""

    columns: IntArray
    least: int

    def violation(self, columns: IntArray) -> float:
        """Return by how many of its own largest factors whole columns miss the row."""
        return float(self.least - int(self.columns @ columns)) / float(
            max(1, np.abs(self.columns).max(initial=0))
        )


class Trips:
    """The trips of an instance, of which those that pay are found.

    Parameters
    ----------
    relaxation
        Relaxation of an instance that they fit.

    Attributes
    ----------
    num_served
        Number of streets that trips serve: those with a demand.
    shares
        Columns of the shares of these, of those that have one.
    """

    @staticmethod
    def fit(relaxation: Relaxation) -> bool:
        """Return whether an instance is small enough."""
        demands = [task.demand for task in relaxation.tasks if task.demand > 0]
        loads = relaxation.instance.capacity // max(1, int(np.gcd.reduce(demands or [1])))
        sides = 2 * len(demands)
        return (
            0 < len(demands) <= _core.TripPricer.most_tasks
            and loads * sides <= _MOST_STATES
            and len(relaxation.node_links) * sides <= _MOST_PATHS
        )

    def __init__(self, relaxation: Relaxation) -> None:
        arcs = list(relaxation.arc_columns)
        sides: list[tuple[int, int, int, int]] = []  # tail, head, task, share or -1
        demands: list[int] = []
        for task in relaxation.tasks:
            ways = [(task.tail, task.head, task.share)]
            if not task.one_way and task.tail != task.head:
                ways.append((task.head, task.tail, -1))
            if task.demand > 0:
                sides += [(tail, head, len(demands), share) for tail, head, share in ways]
                demands.append(task.demand)
            else:
                # Of no trip: any may serve it in passing, which is no deadhead.
                arcs += [(tail, head, -1) for tail, head, _ in ways]
        self.num_served = len(demands)
        self._num_columns = len(relaxation.cost)
        self._num_driven = relaxation.num_driven
        self._tasks = np.array([side[2] for side in sides], dtype=np.int64)
        self._shares = np.array([side[3] for side in sides], dtype=np.int64)
        self.shares = self._shares[self._shares >= 0]
        self._costs = np.ascontiguousarray(relaxation.cost[: self._num_driven])
        tail, head, column = np.array(arcs, dtype=np.int32).reshape(-1, 3).T.copy()
        side_tail, side_head = np.array(sides, dtype=np.int32)[:, :2].T.copy()
        self.pricer = _core.TripPricer(
            num_nodes=len(relaxation.node_links),
            arc_tail=tail,
            arc_head=head,
            arc_column=column,
            side_tail=side_tail,
            side_head=side_head,
            side_task=self._tasks.astype(np.int32),
            demand=np.array(demands, dtype=np.int64),
            outside=relaxation.outside,
            capacity=relaxation.instance.capacity,
            costs=self._costs,
            num_near=_NEAR,
        )

    def single(self) -> list[Trip]:
        """Return a trip of each street alone."""
        self.pricer.find_single(self._costs)
        return self._kept()

    def find_some(self, prices: Prices) -> list[Trip]:
        """Return trips that pay, if some are found at once."""
        self._price(prices, _LABELS[0])
        return self._kept()

    def find(self, prices: Prices) -> tuple[list[Trip], Worth | None]:
        """Return trips that pay; with the row that the prices prove, if no more do."""
        for labels in _LABELS:
            is_complete = self._price(prices, labels)
            trips = self._kept()
            if is_complete:
                return trips, self._worth(prices)
            if trips:
                break
        return trips, None

    def _price(self, prices: Prices, labels: int) -> bool:
        values = np.append(prices.values[: self._num_columns], 0)
        sides = values[self._shares] - prices.values[self._num_columns + self._tasks]
        driven = np.ascontiguousarray(values[: self._num_driven])
        return self.pricer.price(driven, sides, _TOLERANCE, labels)

    def _worth(self, prices: Prices) -> Worth:
        """Return the row, where no trip costs less than the first that was kept."""
        services = prices.values[self._num_columns :]
        costs = self.pricer.trip_costs()
        least = min(-_TOLERANCE, int(costs[0])) if len(costs) else -_TOLERANCE
        # A plan has no more trips than streets.
        total = int(services.sum()) + self.num_served * least
        return Worth(prices.values[: self._num_columns], total)

    def _kept(self) -> list[Trip]:
        pricer = self.pricer
        starts, sides = pricer.trip_starts().tolist(), pricer.trip_sides()
        drive_starts, drives = pricer.drive_starts().tolist(), pricer.drives()
        trips = []
        for i in range(len(starts) - 1):
            served = sides[starts[i] : starts[i + 1]]
            shares = self._shares[served]
            spent = drives[drive_starts[i] : drive_starts[i + 1]].tolist()
            count = Counter(spent + shares[shares >= 0].tolist())
            gained = Counter((self._num_columns + self._tasks[served]).tolist())
            parts = [(place, -number) for place, number in count.items()]
            trips.append(tuple(sorted(parts + list(gained.items()))))
        return trips
