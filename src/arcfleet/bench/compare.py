"""One instance solved by several methods, every plan verified."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from arcfleet.errors import ArcfleetError
from arcfleet.methods import solve
from arcfleet.search import Stop
from arcfleet.search.path_scanning import PATH_SCANNING_VARIANTS
from arcfleet.solution import checker
from arcfleet.solution.travel import travel_facts
from arcfleet.solution.words import shape_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from arcfleet.instance import Instance
    from arcfleet.methods import Method
    from arcfleet.neural.solver import LoadedModel
    from arcfleet.search import ProgressCallback, Result


@dataclass(frozen=True, slots=True)
class Entry:
    """The verified result of one method, or why there is none."""

    method: str
    result: Result | None = None  # None if it found no plan
    failure: str | None = None  # why there is no plan, or the faults of the plan

    @property
    def ok(self) -> bool:
        """Whether there is a plan, and the checker accepts it."""
        return self.result is not None and self.failure is None

    def gap_percent(self, best: Result | None) -> float | None:
        """Return the gap to the best plan of a comparison; None if there is none."""
        if best is None or self.result is None:
            return None
        if best.cost == 0:
            return 0.0 if self.result.cost == 0 else None
        return 100 * (self.result.cost - best.cost) / best.cost

    def facts(self, best: Result | None) -> dict[str, object]:
        """Return the entry ready for JSON."""
        if self.result is None:
            return {"method": self.method, "ok": False, "failure": self.failure}
        return {
            "method": self.method,
            **({} if self.result.fallback is None else {"fallback": self.result.fallback}),
            "cost": self.result.cost,
            "deadhead": self.result.solution.deadhead,
            **travel_facts(self.result.solution.travel),
            **shape_facts(self.result.shape),
            "num_routes": self.result.solution.num_routes,
            "gap_percent": self.gap_percent(best),
            "seconds": round(self.result.seconds, 3),
            "stopped_by": self.result.stopped_by,
            "ok": self.ok,
            "failure": self.failure,
        }


def compare(
    instance: Instance,
    methods: Sequence[Method],
    *,
    seconds: float,
    seed: int = 0,
    threads: int = 1,
    models: Mapping[str, LoadedModel] | None = None,
    watch: Callable[[Stop], AbstractContextManager[ProgressCallback | None]] | None = None,
) -> Iterator[Entry]:
    """Solve an instance by one method after the other, each within the time limit.

    Path scanning builds its usual number of plans, in at most that time. `watch` returns a
    context with the progress callback of one method, of its stop rule. Ctrl-C ends the
    method that runs, whose best plan so far still counts, and then the comparison.
    """
    for method in methods:
        stop = Stop(seconds=seconds)
        if method.name in PATH_SCANNING_VARIANTS:
            stop = replace(method.default_stop, seconds=seconds)
        model = None
        if method.model_type is not None and models is not None:
            model = models.get(method.model_type)
        try:
            with nullcontext() if watch is None else watch(stop) as progress:
                result = solve(
                    instance,
                    method.name,
                    stop=stop,
                    seed=seed,
                    threads=threads,
                    progress=progress,
                    model=model,
                )
        except ArcfleetError as error:
            yield Entry(method.name, failure=str(error))
            continue
        report = checker.check(instance, result.solution)
        yield Entry(method.name, result, None if report.ok else "; ".join(report.faults))
        if result.stopped_by == "interrupt":
            raise KeyboardInterrupt


def checking_seconds(instance: Instance, reading_seconds: float) -> float:
    """Return about how long the checker takes, on a machine that read so long.

    Both look at every street, and the checker also at the streets of every deadhead, which
    a large town has more of: 1.2 to 1.3 times the reading was measured at 190 to 375 tasks,
    1.7 at 1,212, 2.5 at 1,809, 5.1 at 4,724.
    """
    return reading_seconds * (1 + len(instance.required) / 1000)


def best_of(entries: Sequence[Entry]) -> Result | None:
    """Return the cheapest result that the checker accepts; of equal ones the first."""
    results = [entry.result for entry in entries if entry.ok and entry.result is not None]
    return min(results, key=lambda result: result.cost, default=None)
