"""What a learned solver has found for one instance so far, and when it is to end."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from arcfleet.errors import UnsolvableError, WithoutLearnedPlanWarning
from arcfleet.search.path_scanning import PATH_SCANNING_VARIANTS, path_scanning
from arcfleet.search.result import Improvement, Result, StoppedBy
from arcfleet.search.stop import Stop
from arcfleet.solution.plan import from_plan, to_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from arcfleet.network import Network
    from arcfleet.solution.plan import IntArray

    FlatPlan = tuple[IntArray, IntArray]

#: Of plans, where nothing limits them.
ANY_NUMBER = 2**62


@dataclass(slots=True, kw_only=True)
class Attempt:
    """The best plan of one instance so far; the one thing here that changes.

    Parameters
    ----------
    network
        The instance.
    stop
        When to end.
    started
        `time.perf_counter()` when the work on it began.
    ended
        The same when it ended; None until then.
    """

    network: Network
    stop: Stop
    started: float
    iterations: int = 0
    cost: int | None = None
    plan: FlatPlan | None = None
    history: list[Improvement] = field(default_factory=list)
    stopped_by: StoppedBy | None = None
    ended: float | None = None

    @property
    def seconds(self) -> float:
        """Wall-clock time from the start to the end, or to now."""
        now = time.perf_counter() if self.ended is None else self.ended
        return now - self.started

    @property
    def iterations_left(self) -> int:
        """Plans that the stop rule still allows, as far as is known now."""
        left = ANY_NUMBER
        if self.stop.iterations is not None:
            left = min(left, self.stop.iterations - self.iterations)
        if self.stop.stale_iterations is not None:
            left = min(left, self.stop.stale_iterations - self._stale)
        return left

    def offer(self, costs: Sequence[int], plan: Callable[[int], FlatPlan]) -> None:
        """Count plans in their order, until one of them meets a limit.

        Parameters
        ----------
        costs
            Of each; -1 where it breaks the fleet limit.
        plan
            Gives one of them by its position.
        """
        for position, cost in enumerate(costs):
            if cost >= 0 and (self.cost is None or cost < self.cost):
                self.cost = cost
                self.plan = plan(position)
                self.history.append(Improvement(self.seconds, self.iterations, cost))
            self.iterations += 1
            self.stopped_by = self._limit_met()
            if self.stopped_by is not None:
                return

    def scan_paths(self, method: str) -> None:
        """Take a plan of path scanning, since time was too short for any other; say so.

        There is none still where the fleet limit does not allow it.
        """
        try:
            found = path_scanning(
                self.network,
                method="ps",
                stop=Stop(iterations=PATH_SCANNING_VARIANTS["ps"].plans),
                seed=0,
                threads=1,
                started=time.perf_counter(),
                progress=None,
            )
        except UnsolvableError:
            return
        warnings.warn(
            f"{method} goes without a learned plan for {self.network.instance.name!r}, "
            "with one of path scanning: the time limit was too short",
            WithoutLearnedPlanWarning,
            stacklevel=2,
        )
        self.offer([found.cost], lambda _: to_plan(self.network, found.solution))

    def warn_without_plan(self) -> None:
        """Say that the search has to do without a learned plan, and why."""
        name = self.network.instance.name
        why = "the fleet limit allows none that was made"
        if self.iterations == 0:
            why = "a fifth of the time limit was too short for one"
        warnings.warn(
            f"hybrid starts without a learned plan for {name!r}: {why}",
            WithoutLearnedPlanWarning,
            stacklevel=2,
        )

    def result(self, *, method: str, seed: int, threads: int) -> Result:
        """Give the best plan, or raise UnsolvableError where there is none."""
        instance = self.network.instance
        if self.plan is None:
            remedy = "give it more time, try another method"
            if method != "daam-sample" and self.iterations > 0:
                remedy = "it makes no more, so try another method, such as ruin-recreate,"
            raise UnsolvableError(
                f"found no plan with at most {instance.fleet_limit} routes for "
                f"{instance.name!r} in {self.iterations} iterations of {method}: "
                f"{remedy} or raise the fleet limit"
            )
        return Result(
            instance=instance.name,
            method=method,
            seed=seed,
            threads=threads,
            solution=from_plan(self.network, *self.plan),
            seconds=self.seconds,
            iterations=self.iterations,
            # A method that has made all its plans has done its iterations.
            stopped_by=self.stopped_by or "iterations",
            history=tuple(self.history),
        )

    @property
    def _stale(self) -> int:
        best = self.history[-1].iteration if self.history else -1
        return self.iterations - 1 - best

    def _limit_met(self) -> StoppedBy | None:
        stop = self.stop
        if (
            stop.target_cost is not None
            and self.cost is not None
            and self.cost <= stop.target_cost
        ):
            return "target_cost"
        if stop.iterations is not None and self.iterations >= stop.iterations:
            return "iterations"
        if stop.stale_iterations is not None and self._stale >= stop.stale_iterations:
            return "stale_iterations"
        if stop.seconds is not None and self.seconds >= stop.seconds:
            return "seconds"
        return None
