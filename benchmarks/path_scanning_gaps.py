"""Mean gap of each path-scanning variant to the best known cost, per instance set.

1,000 plans each; the five-rule PS builds five plans, one per rule, and is averaged over
many seeds because its ties are broken at random.
"""

from __future__ import annotations

import csv
import statistics

from arcfleet import METHODS, Stop, check, read, solve
from arcfleet.report.tables import table
from benchmarks import describe, run_and_exit, shared_dir

SETS = ("gdb", "kshs", "val", "egl", "egl-large", "C", "D", "E", "F")
SEEDS = {"ps": 200}
DEFAULT_SEEDS = 3


def mean_gaps(set_name: str, best: dict[str, int], method: str) -> list[float]:
    """Mean gap over the set, in percent, one for each seed."""
    files = sorted((shared_dir() / "carplib" / set_name).glob("*.dat"))
    instances = [read(file) for file in files]
    stop = METHODS[method].default_stop
    gaps = []
    for seed in range(SEEDS.get(method, DEFAULT_SEEDS)):
        total = 0.0
        for file, instance in zip(files, instances, strict=True):
            plan = solve(instance, method, stop=stop, seed=seed, threads=2).solution
            assert check(instance, plan).ok
            total += 100 * (plan.cost / best[file.stem] - 1)
        gaps.append(total / len(files))
    return gaps


def main() -> None:
    """Print the table."""
    with (shared_dir() / "carplib" / "best_known.csv").open() as file:
        best = {row["name"]: int(row["upper_bound"]) for row in csv.DictReader(file)}
    methods = [name for name in METHODS if name.startswith("ps")]
    assert all(METHODS[name].default_stop == Stop(iterations=1000) for name in methods[1:])
    rows = []
    for set_name in SETS:
        row = [set_name]
        for method in methods:
            gaps = mean_gaps(set_name, best, method)
            row.append(f"{statistics.mean(gaps):.2f} ± {statistics.stdev(gaps):.2f}")
        rows.append(row)
    print(describe())
    print("mean gap in percent ± standard deviation over seeds")
    print(table(rows, ("set", *methods)))


if __name__ == "__main__":
    run_and_exit(main)
