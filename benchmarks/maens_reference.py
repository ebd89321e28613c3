"""MAENS beside the published program, by the protocol its figures were taken with.

500 generations of 180 offspring, an end at the lower bound or after 120 seconds.
`python -m benchmarks.maens_reference gdb val egl-e3-C --seeds 1 2 3`: names of sets or of
instances. The reference has one run of each instance.
"""

from __future__ import annotations

import argparse
import bisect
import csv
import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arcfleet import METHODS, check, read, solve
from arcfleet.report.tables import table
from arcfleet.search import Stop
from benchmarks import describe, run_and_exit, shared_dir

if TYPE_CHECKING:
    from collections.abc import Iterable

CAP = 120.0
REFERENCE = "MAENS reference"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One of our runs beside the reference's run on the same instance."""

    set_name: str
    name: str
    gap: float
    seconds: float
    history: tuple[tuple[float, float], ...]  # seconds and gap of each better plan
    reference_gap: float
    reference_seconds: float
    reference_seconds_to_best: float

    @property
    def seconds_to_reference(self) -> float | None:
        """When the reference's cost was reached; None if it was not."""
        return next((s for s, gap in self.history if gap <= self.reference_gap), None)

    def gap_after(self, seconds: float) -> float:
        """Return the gap had the run been stopped then; infinite before its first plan."""
        return min((gap for s, gap in self.history if s <= seconds), default=math.inf)


def rows_of(file_name: str) -> list[dict[str, str]]:
    """Read a table of the collection."""
    with (shared_dir() / "carplib" / file_name).open() as file:
        return list(csv.DictReader(file))


def measure(known: dict[str, str], reference: dict[str, str], cap: float, seed: int) -> Run:
    """Solve one instance; the gap is to the best known cost."""
    path = shared_dir() / "carplib" / known["set"] / f"{known['name']}.dat"
    instance = read(path)
    stop = Stop(
        iterations=METHODS["maens"].default_stop.iterations,
        seconds=cap,
        target_cost=int(known["lower_bound"]),
    )
    result = solve(instance, "maens", stop=stop, seed=seed)
    assert check(instance, result.solution).ok

    def gap(cost: float) -> float:
        return 100 * (cost / int(known["upper_bound"]) - 1)

    return Run(
        set_name=known["set"],
        name=known["name"],
        gap=gap(result.cost),
        seconds=result.seconds,
        history=tuple((step.seconds, gap(step.cost)) for step in result.history),
        reference_gap=gap(int(reference["cost"])),
        reference_seconds=float(reference["seconds"]),
        reference_seconds_to_best=float(reference["seconds_to_best"]),
    )


def line(name: str, runs: list[Run]) -> tuple[object, ...]:
    """Means over instances, and three times to what the reference reached.

    To its mean gap: every run counts, none may last longer than the least time that
    suffices; the reference has its seconds to its best. To its cost, where some run reached
    it: of the runs that did, and with misses, as if a run that did not were followed by
    others until one does. Instances that no run reached it on count for neither.
    """
    reached = [run for run in runs if run.seconds_to_reference is not None]
    by_instance = {run.name: [x for x in runs if x.name == run.name] for run in reached}
    theirs = mean(each[0].reference_seconds_to_best for each in by_instance.values())
    to_cost = [
        mean(seconds_to_reference(x, count_misses) for x in by_instance.values())
        for count_misses in (False, True)
    ]
    to_best = statistics.mean(run.reference_seconds_to_best for run in runs)
    to_gap = seconds_to_mean_gap(runs)
    return (
        name,
        f"{statistics.mean(run.gap for run in runs):.3f}",
        f"{statistics.mean(run.seconds for run in runs):.2f}",
        f"{statistics.mean(run.reference_gap for run in runs):.3f}",
        f"{statistics.mean(run.reference_seconds for run in runs):.2f}",
        f"{to_best:.3f}",
        *ratio(to_best, to_gap),
        f"{len(reached)} of {len(runs)}",
        number(theirs),
        *ratio(theirs, to_cost[0]),
        *ratio(theirs, to_cost[1]),
    )


def mean(values: Iterable[float]) -> float | None:
    """Return the mean of some numbers, None of none."""
    numbers = list(values)
    return statistics.mean(numbers) if numbers else None


def number(value: float | None) -> str:
    """Write seconds, or that there are none."""
    return "-" if value is None else f"{value:.3f}"


def ratio(theirs: float | None, ours: float | None) -> tuple[str, str]:
    """Write our seconds, and how often they go into the reference's."""
    times = "-" if theirs is None or not ours else f"{theirs / ours:.1f}"
    return number(ours), times


def seconds_to_mean_gap(runs: list[Run]) -> float | None:
    """Return the mean seconds of runs cut where their mean gap is down to the reference's.

    All are cut after the same time, the least that suffices; None where none does.
    """
    wanted = statistics.mean(run.reference_gap for run in runs) + 1e-9

    def suffices(limit: float) -> bool:
        return statistics.mean(run.gap_after(limit) for run in runs) <= wanted

    limits = sorted({seconds for run in runs for seconds, _ in run.history})
    first = bisect.bisect_left(limits, True, key=suffices)
    if first == len(limits):
        return None
    return statistics.mean(min(limits[first], run.seconds) for run in runs)


def seconds_to_reference(runs: list[Run], count_misses: bool) -> float:
    """Return the mean seconds to the reference's cost on an instance that some reached."""
    found = [x.seconds_to_reference for x in runs if x.seconds_to_reference is not None]
    lost = sum(run.seconds for run in runs if run.seconds_to_reference is None)
    return (sum(found) + (lost if count_misses else 0.0)) / len(found)


def main() -> None:
    """Print a line per instance and one per set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", help="sets or instances")
    parser.add_argument("--cap", type=float, default=CAP, help="seconds per instance")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    arguments = parser.parse_args()
    references = {
        row["name"]: row
        for row in rows_of("reference_runs.csv")
        if row["solver"] == REFERENCE and row["seed"] == "1"
    }
    runs = [
        measure(row, references[row["name"]], arguments.cap, seed)
        for row in rows_of("best_known.csv")
        for seed in arguments.seeds
        if row["name"] in references
        and (row["set"] in arguments.names or row["name"] in arguments.names)
    ]
    print(describe())
    sets = list(dict.fromkeys(run.set_name for run in runs))
    names = list(dict.fromkeys(run.name for run in runs))
    lines = [line(name, [run for run in runs if run.name == name]) for name in names]
    lines += [line(s, [run for run in runs if run.set_name == s]) for s in sets]
    header = ("instance or set", "gap %", "s", "reference gap %", "reference s")
    gap = ("reference s to best", "s to its gap", "times faster")
    ends = ("reached its cost", "reference s to it", "s to it", "times faster")
    misses = ("with misses", "times faster")
    print(table(lines, (*header, *gap, *ends, *misses)))


if __name__ == "__main__":
    run_and_exit(main)
