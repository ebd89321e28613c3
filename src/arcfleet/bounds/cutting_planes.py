"""Cutting planes: solve the relaxation, find violated cuts, add them, solve again.

First with fractional deadheads, until no violated cut is found; then with whole ones, by
branch and bound. The first bound is verified in exact arithmetic from the duals of the
linear program; the second is that of HiGHS less a tolerance, rounded up.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from arcfleet.bounds.relaxation import UNITS, FloatArray, IntArray, Relaxation
from arcfleet.bounds.trips import _LABELS, Prices, Trips

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from arcfleet.instance import Instance

#: Families of cuts, in the order of their numbers in the core.
FAMILIES = ("connected", "odd", "capacity")

#: A cut is added where it is violated by more than this.
_VIOLATED = 0.005
#: A row that has had slack for so many rounds leaves the linear program, not the pool.
_IDLE_ROUNDS = 12
_FEWEST_TO_DROP = 50
#: Where the bound has not risen by this share in so many rounds, whole numbers come next.
_LEAST_RISE = 1e-5
_RISE_ROUNDS = 40
#: Cuts with so little slack are part of the first integer program.
_NEAR = 0.6
#: First limit of branching, in nodes; each time it is met it is so many times larger.
_FIRST_NODES = 200
_NODES_GROWTH = 4
#: Taken off the bound of branch and bound before it is rounded up: its tolerances.
_TOLERANCE = 0.01
_RELATIVE_TOLERANCE = 1e-7
#: HiGHS ends where its bound is closer than one unit to its solution: costs are integers.
_INTEGER_GAP = 0.98

_LONGEST = 1e9


class CuttingPlanes:
    """A lower bound that rises round by round.

    Parameters
    ----------
    instance
        Instance that can be solved.
    seed
        Seed of the random numbers with which cuts are looked for.

    Attributes
    ----------
    value
        Bound so far; another thread may read it at any time.
    linear_value
        Bound of the linear program alone.
    iterations
        Number of programs that were solved.
    seconds
        Time that each step has taken, for the profile.
    """

    def __init__(self, instance: Instance, seed: int = 0) -> None:
        import highspy

        self._highs = highspy
        self.relaxation = Relaxation(instance)
        self.separator = self.relaxation.separator
        self.value = self.linear_value = self.relaxation.least
        self.iterations = 0
        self.seconds: dict[str, float] = {}
        self._seed = seed
        self._cancelled = False
        self._num_nodes = len(instance.nodes)
        # The pool as rows of columns.
        self._routes: list[tuple[IntArray, int]] = []
        self._starts: IntArray = np.zeros(1, dtype=np.int64)
        self._columns: IntArray = np.zeros(0, dtype=np.int64)
        self._least: IntArray = np.zeros(0, dtype=np.int64)
        self._families: IntArray = np.zeros(0, dtype=np.int64)

    @property
    def cuts(self) -> dict[str, int]:
        """Number of cuts found, by family."""
        counts = np.bincount(self._families, minlength=len(FAMILIES))
        return {name: int(n) for name, n in zip(FAMILIES, counts, strict=True) if n}

    def cancel(self) -> None:
        """End what is running soon; to be called from another thread."""
        self._cancelled = True
        self.separator.cancel()

    def rounds(self, seconds_left: Callable[[], float]) -> Iterator[None]:
        """Solve program after program; `value` has risen where it could.

        Parameters
        ----------
        seconds_left
            Called before each step; none is begun or continued without time.
        """
        self.separator.find_first()
        self._read_pool()
        self._deadheads = np.zeros(len(self.relaxation.pair_columns))
        yield from self._linear_rounds(seconds_left)
        if self.use_trips:
            self._trips = Trips(self.relaxation)
            yield from self._trip_rounds(seconds_left)
        yield from self._integer_rounds(self._deadheads, seconds_left)

    # --- With fractional deadheads ------------------------------------------------------

    def _linear_rounds(self, seconds_left: Callable[[], float]) -> Iterator[None]:
        relaxation = self.relaxation
        program = _Program(self._highs, relaxation)
        program.add(range(len(self._least)), self._rows)
        idle = np.zeros(len(self._least), dtype=np.int64)
        values: list[float] = []
        while self._goes_on(seconds_left):
            with self._timed("linear programs"):
                if not program.solve(seconds_left()):
                    return
            self.iterations += 1
            duals, slack = program.duals_and_slack()
            rows = self._rows(program.rows)
            with self._timed("exact arithmetic"):
                proven = relaxation.exact_bound(duals, program.balance_duals(), rows)
            self.value = self.linear_value = max(self.value, proven)
            values.append(program.value)
            deadheads = self._deadheads = relaxation.deadheads(program.columns())
            inside = np.array(program.rows, dtype=np.int64)
            idle[inside] = np.where(
                (slack > 2 * _VIOLATED) & (duals == 0), idle[inside], -1
            )
            idle[inside] += 1
            dropped = np.flatnonzero(idle[inside] >= _IDLE_ROUNDS)
            if len(dropped) >= _FEWEST_TO_DROP:
                program.drop(dropped)
            known = len(self._least)
            violations = self.separator.violations(deadheads)
            violations[inside] = 0.0
            again = np.flatnonzero(violations > _VIOLATED)
            found = len(again) + self._separate(deadheads)
            yield
            if found == 0 or _has_stalled(values):
                return
            idle = np.concatenate([idle, np.zeros(len(self._least) - known, np.int64)])
            idle[again] = 0
            program.add([*again.tolist(), *range(known, len(self._least))], self._rows)

    use_trips = True
    _trips = None
    log = None

    def _new_program(self):
        program = _Program(self._highs, self.relaxation)
        program.add_trip_rows(self._trips)
        return program

    def _price(self, program, seconds_left):
        """Add trips until none pays; return the exact prices."""
        attempt = 0
        while self._goes_on(seconds_left):
            with self._timed("linear programs"):
                if not program.solve(seconds_left()):
                    return None
            self.iterations += 1
            prices = program.prices()
            with self._timed("pricing"):
                for labels in _LABELS:
                    found, complete = self._trips.find(prices, labels)
                    if len(found.starts) > 1 or complete:
                        break
            if self.log: self.log(program.value, len(found.starts)-1, complete, labels, self._trips.pricer.steps)
            if len(found.starts) == 1:
                return prices if complete else None
            program.add_trips(found)
        return None

    def _trip_rounds(self, seconds_left):
        relaxation = self.relaxation
        near = np.flatnonzero(self.separator.violations(self._deadheads) > -0.3).tolist()
        program = self._new_program()
        program.add(near, self._rows)
        while True:
            prices = self._price(program, seconds_left)
            if prices is None:
                return
            duals, slack = program.duals_and_slack()
            worth = self._trips.worth(prices)
            proven = relaxation.exact_bound(duals, program.balance_duals(), self._rows(program.rows), prices.columns, worth)
            self.value = self.linear_value = max(self.value, proven)
            if self.log: self.log("converged", program.value + relaxation.constant, proven, len(program.rows))
            deadheads = self._deadheads = relaxation.deadheads(program.columns())
            inside = np.array(program.rows, dtype=np.int64)
            known = len(self._least)
            violations = self.separator.violations(deadheads)
            violations[inside] = 0.0
            again = np.flatnonzero(violations > _VIOLATED)
            found = len(again) + self._separate(deadheads)
            self._routes.append((prices.columns, worth))
            yield
            if found == 0:
                break
            program.add([*again.tolist(), *range(known, len(self._least))], self._rows)
        self._trip_program = program

    def _separate(self, deadheads: FloatArray) -> int:
        """Look for violated cuts, the cheapest way first; return how many were found."""
        separator, nodes = self.separator, self._num_nodes
        seed = (self._seed * 1_000_003 + self.iterations) % 2**63
        # A round of a large network finds many cuts, each attempt a good share of them.
        many, attempts = max(60, nodes // 2), min(nodes, max(40, 12_000 // nodes))
        with self._timed("components"):
            found = separator.find_components(deadheads, many)
        if found < 2 * many // 3:
            with self._timed("odd cuts"):
                found += separator.find_odd(deadheads, many)
        if found < 2 * many // 3:
            with self._timed("growth"):
                found += separator.find_by_growth(
                    deadheads, seed, attempts, False, max(80, many)
                )
        if found < 15:
            with self._timed("maximum flow"):
                found += separator.find_by_flow(deadheads, seed, 20, 60)
        for attempt in range(1, 4):
            if found >= 5:
                break
            with self._timed("growth, perturbed"):
                found += separator.find_by_growth(
                    deadheads, seed + 7919 * attempt, min(2 * nodes, 200), True, 60
                )
        self._read_pool()
        return found

    # --- With whole deadheads -----------------------------------------------------------

    def _integer_rounds(
        self, deadheads: FloatArray, seconds_left: Callable[[], float]
    ) -> Iterator[None]:
        near = set(np.flatnonzero(self.separator.violations(deadheads) > -_NEAR).tolist())
        nodes = _FIRST_NODES
        while self._goes_on(seconds_left):
            program = _Program(self._highs, self.relaxation)
            program.add(sorted(near), self._rows)
            for spent, worth in self._routes:
                program.add_route(spent, worth)
            program.make_integer()
            with self._timed("integer programs"):
                is_best = program.solve_integer(
                    seconds_left(), nodes, lambda: self._cancelled, self._raise_to
                )
            self.iterations += 1
            self._raise_to(program.integer_bound())
            found: set[int] = set()
            if program.has_solution():
                driven = np.rint(self.relaxation.deadheads(program.columns()))
                known = len(self._least)
                violated = self.separator.violations(driven) > _VIOLATED
                found = set(np.flatnonzero(violated).tolist())
                self._separate_whole(driven)
                found |= set(range(known, len(self._least)))
                if self.log: self.log("whole", program.integer_bound()+self.relaxation.constant, self.value, is_best, len(found))
                if not found and self._trips is not None:
                    more = self._separate_trips(program.columns(), seconds_left)
                    yield
                    if more:
                        continue
            yield
            if not found and is_best:
                return
            near |= found
            if not is_best:
                nodes *= _NODES_GROWTH

    def _separate_trips(self, columns, seconds_left):
        """Price trips at a whole solution; return whether a row was added that it violates."""
        columns = np.rint(columns)
        if not hasattr(self, "_fixed_program"):
            self._fixed_program = self._new_program()
        program = self._fixed_program
        program.fix(columns)
        prices = self._price(program, seconds_left)
        if prices is None:
            return False
        worth = self._trips.worth(prices)
        violation = worth / UNITS - float(prices.columns @ columns) / UNITS
        if self.log: self.log("violation", violation)
        if violation < 1e-3:
            return False
        self._routes.append((prices.columns, worth))
        return True

    def _separate_whole(self, driven: FloatArray) -> None:
        separator, nodes = self.separator, self._num_nodes
        seed = (self._seed * 1_000_003 + self.iterations) % 2**63
        with self._timed("cuts of whole solutions"):
            found = separator.find_components(driven, 200)
            found += separator.find_odd(driven, 100)
            found += separator.find_by_growth(driven, seed, nodes, False, 100)
            if found < 20:
                found += separator.find_by_flow(driven, seed, 60, 100)
            if found < 20:
                separator.find_by_growth(driven, seed, 400, True, 100)
        self._read_pool()

    def _raise_to(self, bound: float) -> None:
        """Take over a bound of branch and bound, of columns alone."""
        if math.isfinite(bound):
            total = bound + self.relaxation.constant
            safe = total - _TOLERANCE - _RELATIVE_TOLERANCE * abs(total)
            self.value = max(self.value, math.ceil(safe))

    # --- Both ---------------------------------------------------------------------------

    def _goes_on(self, seconds_left: Callable[[], float]) -> bool:
        return not self._cancelled and seconds_left() > 0

    def _read_pool(self) -> None:
        """Take over the rows that the separator has added to its pool."""
        known = len(self._least)
        if self.separator.num_rows == known:
            return
        starts = self.separator.row_starts(known)
        pairs = self.separator.row_pairs(int(starts[0])).astype(np.int64)
        starts, columns = self.relaxation.expand(starts - starts[0], pairs)
        self._starts = np.concatenate([self._starts, self._starts[-1] + starts[1:]])
        self._columns = np.concatenate([self._columns, columns])
        self._least = np.concatenate([self._least, self.separator.row_least(known)])
        families = self.separator.row_family(known).astype(np.int64)
        self._families = np.concatenate([self._families, families])

    def _rows(self, rows: Sequence[int]) -> tuple[IntArray, IntArray, IntArray]:
        """Return starts, columns and right-hand sides of rows of the pool."""
        chosen = np.array(rows, dtype=np.int64)
        counts = self._starts[chosen + 1] - self._starts[chosen]
        starts = np.append(0, np.cumsum(counts))
        places = np.arange(starts[-1]) + np.repeat(
            self._starts[chosen] - starts[:-1], counts
        )
        return starts, self._columns[places], self._least[chosen]

    def _timed(self, step: str) -> _Timed:
        return _Timed(self.seconds, step)


def _has_stalled(values: list[float]) -> bool:
    if len(values) <= _RISE_ROUNDS:
        return False
    return values[-1] - values[-1 - _RISE_ROUNDS] < _LEAST_RISE * abs(values[-1])


class _Timed:
    """Adds the time of a block to that of its step."""

    def __init__(self, seconds: dict[str, float], step: str) -> None:
        self.seconds, self.step = seconds, step

    def __enter__(self) -> None:
        self.began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        spent = time.perf_counter() - self.began
        self.seconds[self.step] = self.seconds.get(self.step, 0.0) + spent


Rows = tuple[IntArray, IntArray, IntArray]


class _Program:
    """A linear or integer program in HiGHS: the relaxation with some rows of the pool."""

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
        self.trips = None
        self.rows: list[int] = []  # of the pool, in the order of the program
        self.first = 0  # of them
        if not relaxation.is_symmetric:
            balance, value = relaxation.balance, relaxation.balance_value.astype(float)
            self.first = len(value)
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

    def add_trip_rows(self, trips):
        self.trips = trips
        h = self.model
        inf = self.highs.kHighsInf
        driven, shares, tasks = self.relaxation.num_driven, trips.shares, len(trips.served)
        self.link = self.first
        cols = np.concatenate([np.arange(driven), shares])
        n = len(cols)
        h.addRows(n, np.zeros(n), np.append(np.full(driven, inf), np.zeros(len(shares))), n, np.arange(n, dtype=np.int32), cols.astype(np.int32), np.ones(n))
        h.addRows(tasks, np.ones(tasks), np.ones(tasks), 0, np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0))
        self.first += n + tasks
        self.add_trips(trips.single())
        h.setOptionValue("simplex_strategy", 4)

    def add_trips(self, found):
        """Add trips as columns."""
        trips, relaxation = self.trips, self.relaxation
        driven, shares = relaxation.num_driven, trips.shares
        share_row = {int(c): driven + i for i, c in enumerate(shares)}
        starts, index, value = [], [], []
        for k in range(len(found.starts) - 1):
            col = {}
            for c in found.drives[found.drive_starts[k]:found.drive_starts[k+1]].tolist():
                col[c] = col.get(c, 0) - 1
            for s in found.sides[found.starts[k]:found.starts[k+1]].tolist():
                _, _, task, share = trips._sides[s]
                if share >= 0:
                    r = share_row[int(share)]
                    col[r] = col.get(r, 0) - 1
                r = driven + len(shares) + int(task)
                col[r] = col.get(r, 0) + 1
            starts.append(len(index))
            for r in sorted(col):
                index.append(self.link + r); value.append(col[r])
        n = len(starts)
        self.model.addCols(n, np.zeros(n), np.zeros(n), np.full(n, self.highs.kHighsInf), len(index), np.array(starts, dtype=np.int32), np.array(index, dtype=np.int32), np.array(value, dtype=float))

    def prices(self):
        trips, relaxation = self.trips, self.relaxation
        driven, shares = relaxation.num_driven, trips.shares
        dual = np.array(self.solution.row_dual[self.link:self.first])
        units = np.rint(dual * UNITS).astype(np.int64)
        columns = np.zeros(len(relaxation.cost), dtype=np.int64)
        columns[:driven] = np.maximum(0, units[:driven])
        columns[shares] = units[driven:driven + len(shares)]
        return Prices(columns, units[driven + len(shares):])

    def fix(self, columns):
        driven = self.relaxation.num_driven
        n = len(columns)
        upper = columns.copy()
        upper[:driven] = self.highs.kHighsInf
        self.model.changeColsBounds(n, np.arange(n, dtype=np.int32), columns, upper)

    def add_route(self, spent, worth):
        at = np.flatnonzero(spent)
        self.model.addRows(1, np.array([worth / UNITS]), np.array([self.highs.kHighsInf]), len(at), np.zeros(1, np.int32), at.astype(np.int32), spent[at] / UNITS)

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
        return np.array(self.solution.row_dual[: self.first])

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
