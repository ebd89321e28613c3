"""What a method is given, and how it runs until its stop rule ends it.

A method is a function `run(network, context) -> Result`. One with an engine in C++ hands
it to `run_engine`; one in Python offers its plans to an `Incumbent`.
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np

from arcfleet.errors import OptionError, SolutionError, UnsolvableError
from arcfleet.search.interrupts import first_interrupt_held
from arcfleet.search.result import Improvement, Result
from arcfleet.search.split import drivable
from arcfleet.search.stop import (
    ANY_NUMBER,
    CallerError,
    Progress,
    Stop,
    caller_errors,
    iterations_left,
    stopped_by,
    time_limit,
)
from arcfleet.solution.checker import check
from arcfleet.solution.plan import to_plan
from arcfleet.solution.words import known_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from arcfleet.instance import Instance
    from arcfleet.network import Network
    from arcfleet.search.stop import ProgressCallback, StoppedBy, StopRule
    from arcfleet.solution import Solution
    from arcfleet.solution.plan import IntArray

# Between slices Python sees Ctrl-C, reports progress and looks at the clock.
_SLICE_SECONDS = 0.04
_FOREVER = 1e9

#: With fewer iterations for each task, a search has hardly begun.
BEGUN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What a method is given beside the network.

    Parameters
    ----------
    method
        Name of the method.
    stop
        Stop rule.
    seed
        Seed of the random number generator.
    threads
        Number of threads.
    started
        `time.perf_counter()` at the call of `solve`.
    progress
        Callback, called several times a second; what it raises ends the search.
    start
        Plan to warm-start from.
    params
        Settings of the method, an instance of its dataclass; None if it has none.
    model
        Loaded model of a learned method; None for others.
    """

    method: str
    stop: StopRule
    seed: int = 0
    threads: int = 1
    started: float = field(default_factory=time.perf_counter)
    progress: ProgressCallback | None = None
    start: Solution | None = None
    params: Any = None
    model: Any = None

    @property
    def seconds(self) -> float:
        """Time since the call of `solve`."""
        return time.perf_counter() - self.started

    @property
    def horizon(self) -> tuple[int, float]:
        """Iterations and seconds that the search will last; 0 where that is unknown."""
        iterations, seconds = 0, 0.0
        if isinstance(self.stop, Stop):
            iterations = self.stop.iterations or 0
            if self.stop.seconds is not None:
                # Never 0, which would mean no limit.
                seconds = max(1e-6, self.stop.seconds - self.seconds)
        return iterations, seconds

    def warm_start(self, network: Network) -> tuple[IntArray, IntArray]:
        """Return the plan to warm-start from as arcs and route starts; empty if none.

        Raises SolutionError if the checker finds a fault in it.
        """
        if self.start is None:
            return np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32)
        report = check(network.instance, self.start)
        if not report.ok:
            raise SolutionError(
                f"expected a plan without faults to start from, got: {report.faults[0]}"
            )
        return to_plan(network, self.start)

    def report(self, progress: Progress) -> None:
        """Call the progress callback, if there is one."""
        if self.progress is not None:
            with caller_errors():
                self.progress(progress)

    def warn_of(self, error: CallerError) -> None:
        """Warn of an error of the caller's function, at which the search ended."""
        warn_of(error.__cause__, stacklevel=6)

    def no_plan(self, network: Network, iterations: int) -> UnsolvableError:
        """Return the error for a search that found no plan that keeps all rules."""
        instance = network.instance
        if instance.operations:
            asked = ", ".join(instance.operations)
            advice = "give it more time, more vehicles or longer routes"
            return UnsolvableError(
                f"found no plan that keeps all rules ({asked}) for "
                f"{instance.name!r} in {iterations} iterations of {self.method}: {advice}"
            )
        return UnsolvableError(
            f"found no plan with at most {instance.fleet_limit} routes for "
            f"{instance.name!r} in {iterations} iterations of {self.method}: "
            "give it more time, try another method or raise the fleet limit"
        )

    def result(
        self,
        network: Network,
        solution: Solution,
        *,
        iterations: int,
        stopped_by: StoppedBy,
        history: Sequence[Improvement],
    ) -> Result:
        """Return the Result; `history` has each better plan, in the order found."""
        if history and history[-1].cost != solution.cost:
            # Turn rules let `drivable` change the plan: cheaper ones could not be driven.
            last = Improvement(self.seconds, history[-1].iteration, solution.cost)
            history = [*(one for one in history if one.cost > solution.cost), last]
        shape = known_shape(network.instance, solution, network)
        return Result(
            instance=network.instance,
            method=self.method,
            seed=self.seed,
            threads=self.threads,
            solution=solution,
            seconds=self.seconds,
            iterations=iterations,
            stopped_by=stopped_by,
            history=tuple(history),
            shape=shape,
        )


def warn_of(cause: BaseException | None, stacklevel: int) -> None:
    """Warn of what the caller's function raised, at which the search ended."""
    warnings.warn(
        "the search ended because the stop rule or progress callback raised "
        f"{cause!r}; the best plan so far is returned",
        RuntimeWarning,
        stacklevel=stacklevel,
    )


class TooShortError(OptionError):
    """No plan is foreseen in time, but `needed` seconds after the call of `solve`."""

    needed: float = 0.0


def too_short(
    instance: Instance,
    limit: float,
    needed: float,
    remedy: str = "give it more time or split it into areas",
) -> TooShortError:
    """Return the error for a time limit that leaves no time for a plan."""
    error = TooShortError(
        f"expected a time limit of at least about {math.ceil(needed)} s for the "
        f"{len(instance.required)} tasks of instance {instance.name!r}, got {limit:g} s: "
        f"{remedy}"
    )
    error.needed = needed
    return error


class Incumbent:
    """The best plan of a search in Python, which also asks the stop rule.

    As a context it ends at Ctrl-C, if there is a plan to return.

    Parameters
    ----------
    network
        Network that is searched on.
    context
        Context of the run.

    Attributes
    ----------
    solution
        Best plan so far; None while there is none.
    stopped_by
        Reason for the end of the search; None while it goes on.

    Examples
    --------
    >>> with Incumbent(network, context) as best:   # doctest: +SKIP
    ...     while best.stopped_by is None:
    ...         best.offer(next_plan())
    >>> return best.result()                        # doctest: +SKIP
    """

    def __init__(self, network: Network, context: RunContext) -> None:
        self.network = network
        self.context = context
        self.solution: Solution | None = None
        self.stopped_by: StoppedBy | None = None
        self.iterations = 0
        self._history: list[Improvement] = []
        self._reported = 0.0

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        *_: object,
    ) -> bool:
        """End the search at Ctrl-C, if there is a plan to return."""
        if isinstance(error, CallerError):
            if self.solution is None:
                raise error.__cause__ or error
            self.context.warn_of(error)
            self.stopped_by = "error"
            return True
        if error_type is not KeyboardInterrupt or self.solution is None:
            return False
        self.stopped_by = "interrupt"
        return True

    @property
    def progress(self) -> Progress:
        """State of the search."""
        best = self._history[-1].iteration if self._history else -1
        return Progress(
            seconds=self.context.seconds,
            iterations=self.iterations,
            cost=None if self.solution is None else self.solution.cost,
            no_improvement=self.iterations - 1 - best,
            find_solution=partial(_known, self.solution),
        )

    def offer(self, solution: Solution | None) -> bool:
        """Count an iteration, and keep its plan if it is the best so far.

        Parameters
        ----------
        solution
            Plan of this iteration; None if it found none within the fleet limit.

        Returns
        -------
        Whether the search goes on.
        """
        best = self.solution
        if solution is not None and (best is None or solution.cost < best.cost):
            self.solution = solution
            now = Improvement(self.context.seconds, self.iterations, solution.cost)
            self._history.append(now)
        self.iterations += 1
        progress = self.progress
        self.stopped_by = stopped_by(self.context.stop, progress)
        if progress.seconds - self._reported >= _SLICE_SECONDS:
            self._reported = progress.seconds
            self.context.report(progress)
        return self.stopped_by is None

    def result(self) -> Result:
        """Return the Result, or raise UnsolvableError if there is no plan."""
        if self.solution is None:
            raise self.context.no_plan(self.network, self.iterations)
        with first_interrupt_held():
            return self.context.result(
                self.network,
                self.solution,
                iterations=self.iterations,
                stopped_by=self.stopped_by or "iterations",
                history=self._history,
            )


AnyEngine = TypeVar("AnyEngine", bound="Engine")


class Engine(Protocol):
    """A search in C++ that can be continued: what `run_engine` needs of it."""

    def run(self, iterations: int, seconds: float, target: int, threads: int) -> None:
        """Go on until one of the limits is met, or until a plan is worth a look.

        A target of -1 is never met.
        """

    @property
    def iterations(self) -> int:
        """Number of iterations so far."""

    @property
    def has_plan(self) -> bool:
        """Whether any plan within the fleet limit was found."""

    @property
    def best_cost(self) -> int:
        """Cost of the best plan."""

    @property
    def no_improvement(self) -> int:
        """Number of iterations since it was found."""

    def best_plan(self) -> tuple[IntArray, IntArray]:
        """Return the best plan as arcs and route starts."""

    def history(self) -> Sequence[tuple[float, int, int]]:
        """Return seconds since construction, iteration and cost of each improvement."""


def run_engine(
    make_engine: Callable[[], AnyEngine],
    network: Network,
    context: RunContext,
    solution_of: Callable[[AnyEngine], Solution] | None = None,
    begun: int = 0,
) -> Result:
    """Make an engine, run it until the stop rule ends it, and return its best plan.

    `solution_of` turns that into a Solution; by default it is a plan of arcs and starts.
    Where a time limit allows fewer than `begun` iterations, a note says how long they take.
    """
    offset = context.seconds  # its history counts from here
    engine = make_engine()
    made = context.seconds

    def solution() -> Solution:
        if solution_of is None:
            return drivable(network, *engine.best_plan())
        return solution_of(engine)

    rule, limit = context.stop, time_limit(context.stop)
    target = -1
    if isinstance(rule, Stop) and rule.target_cost is not None:
        target = rule.target_cost
    # A rule that does not tell how long it can wait is asked after every iteration; with
    # several threads, which a single iteration would not pay for, after every slice.
    unasked = 1 if context.threads == 1 else ANY_NUMBER
    in_slices = unasked > 1 or hasattr(rule, "iterations_left")
    reported = 0.0
    ended_by: StoppedBy | None = None
    try:
        # The first iteration is made whatever the clock says: a plan is always returned.
        engine.run(1, _FOREVER, target, 1)
        progress = _progress(engine, context, solution)
        while (ended_by := stopped_by(rule, progress)) is None:
            left = _FOREVER if limit is None else limit - context.seconds
            engine.run(
                iterations_left(rule, progress, unasked),
                min(_SLICE_SECONDS, max(left, 0.0)),
                target,
                context.threads,
            )
            progress = _progress(engine, context, solution)
            if in_slices or progress.seconds - reported >= _SLICE_SECONDS:
                reported = progress.seconds
                context.report(progress)
    except KeyboardInterrupt:
        if not engine.has_plan:
            raise
        ended_by = "interrupt"
    except CallerError as error:
        if not engine.has_plan:
            raise error.__cause__ or error from None
        context.warn_of(error)
        ended_by = "error"
    if not engine.has_plan:
        raise context.no_plan(network, engine.iterations)
    iterations, searched = engine.iterations, context.seconds - made
    with first_interrupt_held():
        result = context.result(
            network,
            solution(),
            iterations=iterations,
            stopped_by=ended_by,
            history=[Improvement(offset + s, i, c) for s, i, c in engine.history()],
        )
    if ended_by != "seconds" or iterations >= begun:
        return result
    needed = result.seconds - searched + searched / iterations * begun
    note = (
        f"the search had hardly begun when its time was over (iterations: {iterations}, "
        f"tasks: {network.num_tasks}): give it about {_rounded_up(needed)} s"
    )
    return replace(result, notes=(note,))


def _rounded_up(seconds: float) -> str:
    """Return seconds with two digits, or whole ones."""
    if seconds >= 10:
        return f"{math.ceil(seconds)}"
    unit = 10.0 ** (math.floor(math.log10(seconds)) - 1)
    return f"{math.ceil(seconds / unit) * unit:.2g}"


def _known(solution: Solution | None) -> Solution:
    assert solution is not None  # asked where there is a cost
    return solution


def _progress(
    engine: Engine, context: RunContext, find_solution: Callable[[], Solution]
) -> Progress:
    return Progress(
        seconds=context.seconds,
        iterations=engine.iterations,
        cost=engine.best_cost if engine.has_plan else None,
        no_improvement=engine.no_improvement,
        find_solution=find_solution,
    )
