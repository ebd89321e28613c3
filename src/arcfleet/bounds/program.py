"""Linear and integer programs in HiGHS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from arcfleet.bounds.relaxation import UNITS, FloatArray, IntArray, Relaxation
from arcfleet.bounds.trips import Prices

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from arcfleet.bounds.trips import Trip, Trips, Worth

#: HiGHS ends where its bound is closer than one unit to its solution: costs are integers.
_INTEGER_GAP = 0.98
_LONGEST = 1e9

Rows = tuple[IntArray, IntArray, IntArray]


class Program:
    """A linear or integer program in HiGHS: the relaxation with some rows of the pool.

    Parameters
    ----------
    highs
        The module `highspy`.
    relaxation
        Relaxation that it solves.
    """

    def __init__(self, highs: Any, relaxation: Relaxation) -> None:
        self.highs, self.relaxation = highs, relaxation
        self.model = highs.Highs()
        for name, value in {
            "output_flag": False,
            "threads": 1,
            "presolve": "off",  # it would lose the basis
            "solver": "simplex",
        }.items():
            self.model.setOptionValue(name, value)
        number = len(relaxation.cost)
        upper = np.where(
            np.arange(number) < relaxation.num_driven, highs.kHighsInf, relaxation.upper
        )
        self._add_columns(relaxation.cost, upper)
        self.rows: list[int] = []  # of the pool, in the order of the program
        self.first = 0  # of them
        self._num_balance = 0 if relaxation.is_symmetric else len(relaxation.balance_value)
        if not relaxation.is_symmetric:
            balance, value = relaxation.balance, relaxation.balance_value.astype(float)
            self.first = self._num_balance
            starts = np.searchsorted(balance[:, 0], np.arange(self.first))
            self.model.addRows(
                self.first,
                value,
                value,
                len(balance),
                starts.astype(np.int32),
                balance[:, 1].astype(np.int32),
                balance[:, 2].astype(float),
            )

    def _add_columns(self, cost: IntArray, upper: FloatArray) -> None:
        none, number = np.zeros(0, dtype=np.int32), len(cost)
        self.model.addCols(
            number,
            cost.astype(float),
            np.zeros(number),
            upper,
            0,
            none,
            none,
            np.zeros(0),
        )

    def add(self, rows: Sequence[int], rows_of: Callable[[Sequence[int]], Rows]) -> None:
        """Add rows of the pool."""
        if not rows:
            return
        starts, columns, least = rows_of(rows)
        self.model.addRows(
            len(rows),
            least.astype(float),
            np.full(len(rows), self.highs.kHighsInf),
            len(columns),
            starts[:-1].astype(np.int32),
            columns.astype(np.int32),
            np.ones(len(columns)),
        )
        self.rows += rows

    def add_worths(self, worths: Sequence[Worth]) -> None:
        """Add rows: what is driven and served is worth as much as the services are."""
        for worth in worths:
            columns = np.flatnonzero(worth.columns)
            self.model.addRow(
                worth.least / UNITS,
                self.highs.kHighsInf,
                len(columns),
                columns.astype(np.int32),
                worth.columns[columns] / UNITS,
            )

    def drop(self, places: IntArray) -> None:
        """Take out rows, by their places in `rows`."""
        self.model.deleteRows(len(places), (places + self.first).astype(np.int32))
        gone = set(places.tolist())
        self.rows = [row for place, row in enumerate(self.rows) if place not in gone]

    def solve(self, seconds: float) -> bool:
        """Solve the linear program, from the last basis; return whether it was solved."""
        left = min(max(seconds, 0.0), _LONGEST)
        self.model.setOptionValue("time_limit", self.model.getRunTime() + left)
        self.model.run()
        self.solution = self.model.getSolution()
        best = self.highs.HighsModelStatus.kOptimal
        return bool(self.model.getModelStatus() == best)

    @property
    def value(self) -> float:
        """Value of the solution."""
        return float(self.model.getInfo().objective_function_value)

    def columns(self) -> FloatArray:
        """Return the values of the columns of the relaxation."""
        return np.array(self.solution.col_value[: len(self.relaxation.cost)])

    def balance_duals(self) -> FloatArray:
        """Return the duals of the rows of the nodes."""
        return np.array(self.solution.row_dual[: self._num_balance])

    def duals_and_slack(self) -> tuple[FloatArray, FloatArray]:
        """Return the dual and the slack of each row of the pool."""
        values = np.array(self.solution.row_value[self.first :])
        least = np.array(self.model.getLp().row_lower_[self.first :])
        return np.array(self.solution.row_dual[self.first :]), values - least

    def make_integer(self) -> None:
        """Let all columns be whole numbers, and every node be left as often as entered."""
        relaxation, model = self.relaxation, self.model
        model.setOptionValue("presolve", "choose")
        model.setOptionValue("solver", "choose")
        model.setOptionValue("mip_rel_gap", 0.0)
        model.setOptionValue("mip_abs_gap", _INTEGER_GAP)
        if relaxation.is_symmetric:
            # Deadheads at a node and its required links are twice the visits.
            crossing = relaxation.node_links
            nodes, number = len(crossing), len(relaxation.cost)
            self._add_columns(
                np.zeros(nodes, dtype=np.int64), np.full(nodes, self.highs.kHighsInf)
            )
            ends = relaxation.pair_ends.astype(np.int64)
            pairs = np.arange(len(ends))
            at = np.concatenate([ends[:, 0], ends[:, 1], np.arange(nodes)])
            column = np.concatenate([pairs, pairs, number + np.arange(nodes)])
            factor = np.concatenate([np.ones(2 * len(ends)), np.full(nodes, -2.0)])
            order = np.argsort(at, kind="stable")
            starts = np.searchsorted(at[order], np.arange(nodes))
            model.addRows(
                nodes,
                -crossing.astype(float),
                -crossing.astype(float),
                len(order),
                starts.astype(np.int32),
                column[order].astype(np.int32),
                factor[order],
            )
        number = model.getNumCol()
        whole = np.array([self.highs.HighsVarType.kInteger] * number)
        model.changeColsIntegrality(number, np.arange(number, dtype=np.int32), whole)

    def solve_integer(
        self,
        seconds: float,
        nodes: int,
        is_cancelled: Callable[[], bool],
        report: Callable[[float], None],
    ) -> bool:
        """Solve the integer program; return whether it was solved to the end."""

        def look(event: Any) -> None:
            report(float(event.data_out.mip_dual_bound))
            if is_cancelled():
                event.data_in.user_interrupt = True

        self.model.setOptionValue("time_limit", min(max(seconds, 0.0), _LONGEST))
        self.model.setOptionValue("mip_max_nodes", nodes)
        self.model.cbMipInterrupt.subscribe(look)
        self.model.run()
        self.solution = self.model.getSolution()
        best = self.highs.HighsModelStatus.kOptimal
        return bool(self.model.getModelStatus() == best)

    def integer_bound(self) -> float:
        """Return the bound of branch and bound."""
        return float(self.model.getInfo().mip_dual_bound)

    def has_solution(self) -> bool:
        """Return whether a whole solution was found."""
        feasible = self.highs.SolutionStatus.kSolutionStatusFeasible
        return bool(self.model.getInfo().primal_solution_status == feasible)


class TripProgram(Program):
    """The linear program with trips as columns: they serve each street, and drive.

    Its rows before those of the pool are: for each deadhead, at least those of all trips;
    for each share, that of the trips; for each street with a demand, one service.

    Parameters
    ----------
    highs
        The module `highspy`.
    relaxation
        Relaxation that it solves.
    trips
        Trips of the instance.
    """

    def __init__(self, highs: Any, relaxation: Relaxation, trips: Trips) -> None:
        super().__init__(highs, relaxation)
        # Of each column that trips have to do with: its row, as long as there is no pool.
        self._linked = np.append(np.arange(relaxation.num_driven), trips.shares)
        self._links = self.first
        number, served = len(self._linked), trips.num_served
        self.model.addRows(
            number,
            np.zeros(number),
            np.where(self._linked < relaxation.num_driven, highs.kHighsInf, 0.0),
            number,
            np.arange(number, dtype=np.int32),
            self._linked.astype(np.int32),
            np.ones(number),
        )
        none = np.zeros(0, dtype=np.int32)
        ones = np.ones(served)
        self.model.addRows(
            served, ones, ones, 0, np.zeros(served, dtype=np.int32), none, np.zeros(0)
        )
        self.first += number + served
        self._row_of = np.zeros(len(relaxation.cost) + served, dtype=np.int64)
        self._row_of[self._linked] = np.arange(number)
        self._row_of[len(relaxation.cost) :] = number + np.arange(served)
        self._known: set[tuple[tuple[int, int], ...]] = set()
        self.add_trips(trips.single())

    def add_trips(self, trips: Sequence[Trip], prices: Prices | None = None) -> int:
        """Add trips as columns; return how many of them are new.

        Parameters
        ----------
        trips
            Trips, any of which may be there already.
        prices
            At which they have to pay, if given.
        """
        starts: list[int] = []
        rows: list[int] = []
        factors: list[int] = []
        for trip in trips:
            known = trip in self._known
            if known or (prices is not None and prices.reduced_cost(trip) >= 0):
                continue
            self._known.add(trip)
            starts.append(len(rows))
            for place, count in trip:
                rows.append(self._links + int(self._row_of[place]))
                factors.append(count)
        number = len(starts)
        self.model.addCols(
            number,
            np.zeros(number),
            np.zeros(number),
            np.full(number, self.highs.kHighsInf),
            len(rows),
            np.array(starts, dtype=np.int32),
            np.array(rows, dtype=np.int32),
            np.array(factors, dtype=float),
        )
        return number

    def prices(self) -> Prices:
        """Return the duals as prices of trips."""
        duals = np.array(self.solution.row_dual[self._links : self.first])
        units = np.rint(duals * UNITS).astype(np.int64)
        driven = self.relaxation.num_driven
        values = units[self._row_of]
        values[:driven] = np.maximum(0, values[:driven])
        # Shares that no trip has to do with are at no price.
        free = np.ones(len(values), dtype=bool)
        free[self._linked] = free[len(self.relaxation.cost) :] = False
        values[free] = 0
        return Prices(values, len(self.relaxation.cost))

    def require(self, columns: FloatArray) -> None:
        """Have a solution drive at least as much as another, and serve as it does."""
        number = len(columns)
        upper = np.where(
            np.arange(number) < self.relaxation.num_driven, self.highs.kHighsInf, columns
        )
        self.model.changeColsBounds(
            number, np.arange(number, dtype=np.int32), columns, upper
        )
