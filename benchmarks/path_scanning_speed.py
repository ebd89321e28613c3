"""Plans per second of each path-scanning variant on one core."""

from __future__ import annotations

import statistics
import time

from arcfleet import METHODS, Stop, read, solve
from arcfleet.report.tables import table
from benchmarks import describe, shared_dir

# egl-s4-A has 190 tasks; E09 stands for a 100-task instance (103 tasks).
INSTANCES = ("egl/egl-s4-A.dat", "E/E09.dat")
PLANS = 20_000
ROUNDS = 5


def plans_per_second(path: str, method: str, threads: int) -> float:
    """Median over the rounds."""
    instance = read(shared_dir() / "carplib" / path)
    rates = []
    for seed in range(ROUNDS):
        started = time.perf_counter()
        solve(instance, method, stop=Stop(iterations=PLANS), seed=seed, threads=threads)
        rates.append(PLANS / (time.perf_counter() - started))
    return statistics.median(rates)


if __name__ == "__main__":
    print(describe())
    rows = [
        (
            method,
            *(
                f"{plans_per_second(path, method, threads):,.0f}"
                for path in INSTANCES
                for threads in (1, 2)
            ),
        )
        for method in METHODS
        if method.startswith("ps")
    ]
    columns = [
        f"{path.split('/')[1][:-4]}, {n} thread" for path in INSTANCES for n in (1, 2)
    ]
    print(table(rows, ("method", *columns)))
