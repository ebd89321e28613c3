"""`bound`: the computation on a thread of its own, so that Ctrl-C ends it at any time."""

from __future__ import annotations

import importlib.util
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from arcfleet._checks import check_whole_number, whole
from arcfleet.errors import OptionError
from arcfleet.instance import Instance
from arcfleet.instance.diagnose import require_solvable
from arcfleet.instance.files import read
from arcfleet.search.stop import Stop, at_bound, time_limit
from arcfleet.solution.bound import Bound

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from arcfleet.bounds.cutting_planes import CuttingPlanes
    from arcfleet.network import Network
    from arcfleet.search import Progress, Result, RunContext
    from arcfleet.solution.bound import BoundStoppedBy

#: Time limit where none is given.
DEFAULT_SECONDS = 60.0

_POLL_SECONDS = 0.04
#: Beside a search the bound keeps so much of a time limit back, and at most such a share.
_ENDING_SECONDS = 0.5
_ENDING_SHARE = 0.1


def require_highs() -> None:
    """Raise OptionError unless HiGHS is installed."""
    if importlib.util.find_spec("highspy") is None:
        raise OptionError(
            "expected highspy for lower bounds, found it not installed: "
            'pip install "arcfleet[bounds]"'
        )


def bound(
    instance: Instance | Path | str,
    *,
    stop: Stop | None = None,
    seconds: float | None = None,
    seed: int = 0,
    progress: Callable[[Bound], None] | None = None,
) -> Bound:
    """Compute a lower bound: no plan of the instance costs less.

    It needs the extra `bounds`. The bound rises until no cut is found that could raise it
    further, which may take seconds or minutes, or the stop rule ends it; it holds at any
    time. Ctrl-C returns the bound so far. The same seed and number of iterations give the
    same bound.

    Parameters
    ----------
    instance
        The instance, or the path of its file.
    stop
        Stop rule: `seconds`, `iterations` (linear and integer programs),
        `no_improvement` (iterations in a row without a higher bound), `target_cost` (a
        bound that is high enough, such as the cost of a plan); by default 60 s.
    seconds
        Time limit, short for `stop=Stop(seconds=...)`.
    seed
        Seed of the random number generator.
    progress
        Callback, called with the Bound so far several times a second.

    Raises
    ------
    UnsolvableError
        If no plan can exist, with the reasons.
    OptionError
        If an argument is wrong or highspy is not installed.
    FileError
        If the file of the instance is not one or is corrupt.

    Examples
    --------
    >>> best = arcfleet.bound(instance, seconds=60)           # doctest: +SKIP
    >>> best.value, best.gap_percent(result.cost)             # doctest: +SKIP
    """
    started = time.perf_counter()
    require_highs()
    if seconds is not None:
        if stop is not None:
            raise OptionError(
                "expected either seconds or stop, got both: use Stop(seconds=...)"
            )
        stop = Stop(seconds=seconds)
    if stop is None:
        stop = Stop(seconds=DEFAULT_SECONDS)
    if not isinstance(stop, Stop):
        raise OptionError(f"expected stop to be a Stop, got {stop!r:.60}")
    seed = whole(seed)
    check_whole_number("seed", seed, 0, 2**64 - 1)
    if not isinstance(instance, Instance):
        instance = read(instance)
    require_solvable(instance)
    run = BoundRun(instance, stop, seed=seed, started=started)
    run.start()
    try:
        while not run.wait(_POLL_SECONDS):
            if progress is not None:
                progress(run.bound)
    except KeyboardInterrupt:
        return run.finish("interrupt")
    except BaseException:
        run.finish("error")
        raise
    return run.finish("no more cuts")


class BoundRun:
    """A bound that is being computed on another thread.

    Parameters
    ----------
    instance
        Instance that can be solved.
    stop
        Stop rule.
    seed
        Seed of the random number generator.
    started
        `time.perf_counter()` when the time of the stop rule began.
    """

    def __init__(
        self, instance: Instance, stop: Stop, *, seed: int = 0, started: float | None = None
    ) -> None:
        require_highs()
        self._instance = instance
        self._stop = stop
        self._seed = seed
        self._started = time.perf_counter() if started is None else started
        self._planes: CuttingPlanes | None = None
        self._stopped_by: BoundStoppedBy = "running"
        self._seconds: float | None = None
        self._error: BaseException | None = None
        self._is_cancelled = False
        self._thread = threading.Thread(target=self._run, name="bound", daemon=True)
        # Ctrl-C during `Thread.join` would have the thread count as ended.
        self._ended = threading.Event()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait for the end, but no longer than some seconds; return whether it is there."""
        return self._ended.wait(seconds)

    def finish(self, reason: BoundStoppedBy) -> Bound:
        """End the thread, if it still runs, for a reason, and return the bound."""
        if not self._ended.is_set():
            self._stopped_by = reason
            self.cancel()
            self._ended.wait()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self.bound

    def cancel(self) -> None:
        """Have the thread end soon."""
        self._is_cancelled = True
        if self._planes is not None:
            self._planes.cancel()

    @property
    def value(self) -> int | None:
        """Bound so far; None while there is none."""
        return None if self._planes is None else self._planes.value

    @property
    def bound(self) -> Bound:
        """Bound so far."""
        planes = self._planes
        seconds = time.perf_counter() - self._started
        return Bound(
            instance=self._instance,
            value=0 if planes is None else planes.value,
            seconds=seconds if self._seconds is None else self._seconds,
            iterations=0 if planes is None else planes.iterations,
            cuts={} if planes is None else planes.cuts,
            ignored=ignored_rules(self._instance),
            stopped_by=self._stopped_by,
        )

    def _run(self) -> None:
        try:
            self._compute()
        except BaseException as error:
            self._error = error
        self._seconds = time.perf_counter() - self._started
        self._ended.set()

    def _compute(self) -> None:
        from arcfleet.bounds.cutting_planes import CuttingPlanes

        planes = CuttingPlanes(self._instance, self._seed)
        self._planes = planes
        best, raised = -1, 0
        for _ in planes.rounds(self._seconds_left):
            if planes.value > best:
                best, raised = planes.value, planes.iterations
            reason = self._limit_met(planes, planes.iterations - raised)
            if reason is not None or self._is_cancelled:
                break
        else:
            reason = "no more cuts" if self._seconds_left() > 0 else "seconds"
        if self._stopped_by == "running":
            self._stopped_by = reason or "no more cuts"

    def _seconds_left(self) -> float:
        if self._is_cancelled:
            return 0.0
        if self._stop.seconds is None:
            return float("inf")
        return self._stop.seconds - (time.perf_counter() - self._started)

    def _limit_met(
        self, planes: CuttingPlanes, no_improvement: int
    ) -> BoundStoppedBy | None:
        stop = self._stop
        if stop.target_cost is not None and planes.value >= stop.target_cost:
            return "target_cost"
        if stop.iterations is not None and planes.iterations >= stop.iterations:
            return "iterations"
        if stop.no_improvement is not None and no_improvement >= stop.no_improvement:
            return "no_improvement"
        return None if self._seconds_left() > 0 else "seconds"


def run_with_bound(
    run: Callable[[Network, RunContext], Result], network: Network, context: RunContext
) -> Result:
    """Run a method with a bound beside it; the search ends at a plan that meets it."""
    limit = time_limit(context.stop)
    # It ends a little before the search, which need not wait for it then.
    left = None if limit is None else limit - min(_ENDING_SECONDS, _ENDING_SHARE * limit)
    stop = Stop(seconds=DEFAULT_SECONDS if left is None else left)
    beside = BoundRun(network.instance, stop, seed=context.seed, started=context.started)
    told = context.progress

    def report(progress: Progress) -> None:
        if told is not None:
            told(replace(progress, bound=beside.value))

    beside.start()
    try:
        result = run(
            network,
            replace(
                context,
                stop=at_bound(context.stop, lambda: beside.value),
                progress=None if told is None else report,
            ),
        )
        stopped_by: BoundStoppedBy = "search"
        if result.stopped_by in ("interrupt", "error"):
            stopped_by = result.stopped_by
        elif result.stopped_by != "bound":
            # A search that ended early leaves the bound the rest of the time.
            with suppress(KeyboardInterrupt):
                while not beside.wait(_POLL_SECONDS):
                    value = beside.value
                    if value is not None and value >= result.cost:
                        break
    finally:
        beside.cancel()
    found = beside.finish(stopped_by)
    return replace(result, bound=found, seconds=context.seconds)


def ignored_rules(instance: Instance) -> tuple[str, ...]:
    """Return the rules of an instance that its bound leaves out, in words."""
    fleet = instance.fleet
    left_out = {
        "turn rules": instance.has_turn_rules,
        "the fleet limit": instance.fleet_limit is not None,
        "the length of routes": any(x.max_route_cost is not None for x in fleet),
        "capacities below the largest": len({x.capacity for x in fleet}) > 1,
        "which depot a route belongs to": len({x.depots for x in fleet}) > 1,
        "numbers of vehicles": bool(instance.vehicles)
        and any(x.count is not None for x in fleet),
        "fixed costs above the least": len({x.fixed_cost for x in fleet}) > 1,
        "forbidden links": any(x.forbidden_links for x in fleet),
        "visits of facilities on the way": bool(instance.facilities),
        "an exact fleet": instance.exact_fleet,
        "fewest routes first": instance.fewest_routes,
        "balance": instance.balance > 0,
        "compactness": instance.compactness > 0,
        "pins": bool(instance.pins),
        "locked routes": bool(instance.locks),
        "a price for change": instance.change_price > 0 and bool(instance.previous),
    }
    return tuple(name for name, is_there in left_out.items() if is_there)
