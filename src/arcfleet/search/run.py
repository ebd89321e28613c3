"""Runs a search engine until its stop rule is met, in slices short enough to watch it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from arcfleet.errors import UnsolvableError
from arcfleet.search.progress import Progress
from arcfleet.search.result import Improvement, Result, StoppedBy
from arcfleet.solution.plan import from_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.network import Network
    from arcfleet.search.progress import ProgressCallback
    from arcfleet.search.stop import Stop
    from arcfleet.solution.plan import IntArray

# Between slices Python sees Ctrl-C, reports progress and looks at the clock.
_SLICE_SECONDS = 0.04
_FOREVER = 1e9
_ANY_NUMBER = 2**62


class Engine(Protocol):
    """A search in C++ that can be continued: what `run_engine` needs of it."""

    def run(self, iterations: int, seconds: float, target: int, threads: int) -> None:
        """Go on until one of the limits is met; a target of -1 is never met."""

    @property
    def iterations(self) -> int:
        """Iterations done so far."""

    @property
    def has_plan(self) -> bool:
        """Whether any plan within the fleet limit was found."""

    @property
    def best_cost(self) -> int:
        """Cost of the best plan."""

    @property
    def best_iteration(self) -> int:
        """Iteration that found it, from 0; -1 while there is none."""

    def best_plan(self) -> tuple[IntArray, IntArray]:
        """Give the best plan as arcs and route starts."""

    def history(self) -> Sequence[tuple[float, int, int]]:
        """Seconds since construction, iteration and cost of each improvement."""


def run_engine(
    engine: Engine,
    network: Network,
    *,
    method: str,
    stop: Stop,
    seed: int,
    threads: int,
    started: float,
    engine_started: float,
    progress: ProgressCallback | None,
) -> Result:
    """Run until `stop` is met and give the best plan found.

    Parameters
    ----------
    engine
        The search, not yet run.
    network
        What it searches on.
    method, seed, threads
        For the result; `threads` also for the engine.
    stop
        At least one limit that is certain to be met.
    started, engine_started
        `time.perf_counter()` when the caller asked, and when the engine was made.
    progress
        Called after each slice.
    """
    target = -1 if stop.target_cost is None else stop.target_cost
    stopped_by: StoppedBy | None = None
    try:
        # The first iteration is made whatever the clock says: a plan is always returned.
        engine.run(1, _FOREVER, target, 1)
        while (
            stopped_by := _limit_met(engine, stop, time.perf_counter() - started)
        ) is None:
            left = _FOREVER
            if stop.seconds is not None:
                left = stop.seconds - (time.perf_counter() - started)
            engine.run(
                _iterations_left(engine, stop),
                min(_SLICE_SECONDS, max(left, 0.0)),
                target,
                threads,
            )
            if progress is not None:
                progress(
                    Progress(
                        time.perf_counter() - started,
                        engine.iterations,
                        engine.best_cost if engine.has_plan else None,
                    )
                )
    except KeyboardInterrupt:
        if not engine.has_plan:
            raise
        stopped_by = "interrupt"
    if not engine.has_plan:
        raise UnsolvableError(
            f"found no plan with at most {network.instance.fleet_limit} routes for "
            f"{network.instance.name!r} in {engine.iterations} iterations of {method}: "
            "give it more time, try another method or raise the fleet limit"
        )
    solution = from_plan(network, *engine.best_plan())
    offset = engine_started - started
    return Result(
        instance=network.instance,
        method=method,
        seed=seed,
        threads=threads,
        solution=solution,
        seconds=time.perf_counter() - started,
        iterations=engine.iterations,
        stopped_by=stopped_by,
        history=tuple(Improvement(offset + s, i, c) for s, i, c in engine.history()),
    )


def _limit_met(engine: Engine, stop: Stop, seconds: float) -> StoppedBy | None:
    if (
        engine.has_plan
        and stop.target_cost is not None
        and engine.best_cost <= stop.target_cost
    ):
        return "target_cost"
    if stop.iterations is not None and engine.iterations >= stop.iterations:
        return "iterations"
    if stop.stale_iterations is not None and _stale(engine) >= stop.stale_iterations:
        return "stale_iterations"
    if stop.seconds is not None and seconds >= stop.seconds:
        return "seconds"
    return None


def _iterations_left(engine: Engine, stop: Stop) -> int:
    left = _ANY_NUMBER
    if stop.iterations is not None:
        left = min(left, stop.iterations - engine.iterations)
    if stop.stale_iterations is not None:
        left = min(left, stop.stale_iterations - _stale(engine))
    return left


def _stale(engine: Engine) -> int:
    return engine.iterations - 1 - engine.best_iteration
