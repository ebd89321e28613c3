"""Cutting planes: solve the relaxation, find violated cuts, add them, solve again.

First with fractional deadheads, until no violated cut is found; then with whole ones, by
branch and bound. Instances that are not too large go on with trips as columns: again first
with fractional deadheads, then with whole ones, which trips have to be able to drive. The
bounds of linear programs are verified in exact arithmetic from their duals; those of
branch and bound are those of HiGHS less a tolerance, rounded up.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import numpy as np

from arcfleet.bounds.program import Program, TripProgram
from arcfleet.bounds.relaxation import FloatArray, IntArray, Relaxation
from arcfleet.bounds.trips import Trips, Worth

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from arcfleet.instance import Instance

#: Families of cuts, in the order of their numbers in the core, and rows of trips.
FAMILIES = ("connected", "odd", "capacity", "trips")

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
#: Prices of trips go such a share of the way to those of the last linear program.
_PRICE_STEP = 0.2


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
        Bound of linear programs alone, with trips and without.
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
        self._trips: Trips | None = None
        self._worths: list[Worth] = []
        self._whole_program: TripProgram | None = None  # trips for whole deadheads
        self._cancelled = False
        self._num_nodes = len(instance.nodes)
        # The pool as rows of columns.
        self._starts: IntArray = np.zeros(1, dtype=np.int64)
        self._columns: IntArray = np.zeros(0, dtype=np.int64)
        self._least: IntArray = np.zeros(0, dtype=np.int64)
        self._families: IntArray = np.zeros(0, dtype=np.int64)

    @property
    def cuts(self) -> dict[str, int]:
        """Number of cuts found, by family."""
        counts = np.bincount(self._families, minlength=len(FAMILIES))
        counts[-1] = len(self._worths)
        return {name: int(n) for name, n in zip(FAMILIES, counts, strict=True) if n}

    def cancel(self) -> None:
        """End what is running soon; to be called from another thread."""
        self._cancelled = True
        self.separator.cancel()
        if self._trips is not None:
            self._trips.pricer.cancel()

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
        has_trips = Trips.fit(self.relaxation)
        yield from self._integer_rounds(seconds_left, _FIRST_NODES, goes_on=not has_trips)
        if has_trips and self._goes_on(seconds_left):
            self._trips = Trips(self.relaxation)
            yield from self._trip_rounds(seconds_left)
            yield from self._integer_rounds(seconds_left, _FIRST_NODES)

    # --- With fractional deadheads ------------------------------------------------------

    def _linear_rounds(self, seconds_left: Callable[[], float]) -> Iterator[None]:
        relaxation = self.relaxation
        program = Program(self._highs, relaxation)
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

    # --- With trips ---------------------------------------------------------------------

    def _trip_rounds(self, seconds_left: Callable[[], float]) -> Iterator[None]:
        """Solve linear programs with trips as columns, to the end."""
        assert self._trips is not None
        relaxation = self.relaxation
        program = TripProgram(self._highs, relaxation, self._trips)
        program.add(sorted(self._near_rows()), self._rows)
        while True:
            worth = yield from self._find_trips(program, seconds_left)
            if worth is None:
                return
            duals, _ = program.duals_and_slack()
            rows = self._rows(program.rows)
            with self._timed("exact arithmetic"):
                proven = relaxation.exact_bound(duals, program.balance_duals(), rows, worth)
            self.linear_value = max(self.linear_value, proven)
            self.value = max(self.value, proven)
            self._worths.append(worth)
            yield
            deadheads = self._deadheads = relaxation.deadheads(program.columns())
            known = len(self._least)
            violations = self.separator.violations(deadheads)
            violations[program.rows] = 0.0
            again = np.flatnonzero(violations > _VIOLATED).tolist()
            if not again and self._separate(deadheads) == 0:
                return
            program.add([*again, *range(known, len(self._least))], self._rows)

    def _find_trips(
        self, program: TripProgram, seconds_left: Callable[[], float]
    ) -> Generator[None, None, Worth | None]:
        """Add trips until none pays; return the row that is proven then, if it is."""
        assert self._trips is not None
        smooth = None
        while self._goes_on(seconds_left):
            with self._timed("linear programs"):
                if not program.solve(seconds_left()):
                    return None
            self.iterations += 1
            prices = program.prices()
            # Prices jump from program to program; trips that pay at means of them serve.
            smooth = prices if smooth is None else smooth.towards(prices, _PRICE_STEP)
            worth = None
            with self._timed("trips"):
                added = program.add_trips(self._trips.find_some(smooth), prices)
                if not added:
                    smooth = prices
                    trips, worth = self._trips.find(prices)
                    added = program.add_trips(trips, prices)
            yield
            if not added:
                return worth
        return None

    def _trip_row(
        self, columns: FloatArray, seconds_left: Callable[[], float]
    ) -> Iterator[None]:
        """Look for a row of trips that a whole solution violates."""
        if self._trips is None:
            return
        if self._whole_program is None:
            self._whole_program = TripProgram(self._highs, self.relaxation, self._trips)
        self._whole_program.require(columns)
        worth = yield from self._find_trips(self._whole_program, seconds_left)
        if worth is not None and worth.violation(columns.astype(np.int64)) > _VIOLATED:
            self._worths.append(worth)

    # --- With whole deadheads -----------------------------------------------------------

    def _integer_rounds(
        self, seconds_left: Callable[[], float], nodes: int, *, goes_on: bool = True
    ) -> Iterator[None]:
        """Branch with a limit of nodes, and, if it goes on, with higher ones."""
        near = self._near_rows()
        while self._goes_on(seconds_left):
            program = Program(self._highs, self.relaxation)
            program.add(sorted(near), self._rows)
            program.add_worths(self._worths)
            program.make_integer()
            with self._timed("integer programs"):
                is_best = program.solve_integer(
                    seconds_left(), nodes, lambda: self._cancelled, self._raise_to
                )
            self.iterations += 1
            self._raise_to(program.integer_bound())
            found: set[int] = set()
            worths = len(self._worths)
            has_solution = program.has_solution()
            if has_solution:
                driven = np.rint(self.relaxation.deadheads(program.columns()))
                known = len(self._least)
                violated = self.separator.violations(driven) > _VIOLATED
                found = set(np.flatnonzero(violated).tolist())
                self._separate_whole(driven)
                found |= set(range(known, len(self._least)))
            yield
            if has_solution and not found:
                yield from self._trip_row(np.rint(program.columns()), seconds_left)
            if not found and len(self._worths) == worths and is_best:
                return
            near |= found
            if not is_best:
                if not goes_on:
                    return
                nodes *= _NODES_GROWTH

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

    def _near_rows(self) -> set[int]:
        """Return the rows of the pool that the last solution meets with little slack."""
        violations = self.separator.violations(self._deadheads)
        return set(np.flatnonzero(violations > -_NEAR).tolist())

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
