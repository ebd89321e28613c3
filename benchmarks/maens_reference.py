"""MAENS beside the published program, by the protocol its figures were taken with.

500 generations of 180 offspring, an end at the lower bound or after 120 seconds.
`python -m benchmarks.maens_reference gdb val egl-e3-C --seeds 1 2 3`: names of sets or of
instances. The reference has one run of each instance.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from dataclasses import dataclass

from arcfleet import METHODS, check, read, solve
from arcfleet.report.tables import table
from arcfleet.search import Stop
from benchmarks.machine import describe, shared_dir

CAP = 120.0
REFERENCE = "MAENS reference"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One of our runs beside the reference's run on the same instance."""

    set_name: str
    name: str
    gap: float
    seconds: float
    seconds_to_reference: float | None
    reference_gap: float
    reference_seconds: float
    reference_seconds_to_best: float


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
    target = int(reference["cost"])
    return Run(
        set_name=known["set"],
        name=known["name"],
        gap=100 * (result.cost / int(known["upper_bound"]) - 1),
        seconds=result.seconds,
        seconds_to_reference=next(
            (step.seconds for step in result.history if step.cost <= target), None
        ),
        reference_gap=100 * (target / int(known["upper_bound"]) - 1),
        reference_seconds=float(reference["seconds"]),
        reference_seconds_to_best=float(reference["seconds_to_best"]),
    )


def line(name: str, runs: list[Run]) -> tuple[object, ...]:
    """Means over instances; times to the reference's cost where some run reached it.

    There are two of them: of the runs that reached it, and with misses, as if a run that
    did not were followed by others until one does. Instances that no run reached it on
    count for neither.
    """
    reached = [run for run in runs if run.seconds_to_reference is not None]
    by_instance = {run.name: [x for x in runs if x.name == run.name] for run in reached}
    theirs = sum(each[0].reference_seconds_to_best for each in by_instance.values())
    times = []
    for count_misses in (False, True):
        ours = sum(seconds_to_reference(x, count_misses) for x in by_instance.values())
        times += [
            f"{ours / len(by_instance):.3f}" if by_instance else "-",
            f"{theirs / ours:.1f}" if by_instance and ours > 0 else "-",
        ]
    return (
        name,
        f"{statistics.mean(run.gap for run in runs):.3f}",
        f"{statistics.mean(run.seconds for run in runs):.2f}",
        f"{statistics.mean(run.reference_gap for run in runs):.3f}",
        f"{statistics.mean(run.reference_seconds for run in runs):.2f}",
        f"{len(reached)} of {len(runs)}",
        f"{theirs / len(by_instance):.3f}" if by_instance else "-",
        *times,
    )


def seconds_to_reference(runs: list[Run], count_misses: bool) -> float:
    """Give the mean seconds to the reference's cost on an instance that some reached."""
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
    ends = ("reached its cost", "reference s to it", "s to it", "times faster")
    misses = ("with misses", "times faster")
    print(table(lines, (*header, *ends, *misses)))


if __name__ == "__main__":
    main()
