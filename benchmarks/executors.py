"""Overhead per task of each executor: processes of this machine, and Ray.

`python -m benchmarks.executors` (needs the extra `cluster`). The overhead of a task is how
long its worker was idle between the end of the task before and its start; beside it is the
time that the driver computes for each task, which bounds how many tasks per second there
may be. Most tasks wait for a given time, so that other work on the machine counts little.
"""

from __future__ import annotations

import itertools
import os
import statistics
import time
from typing import TYPE_CHECKING, NamedTuple

from arcfleet import Instance, Stop, read, solve
from arcfleet.report.tables import table
from arcfleet.workers import EXECUTORS, run_tasks
from benchmarks import describe

if TYPE_CHECKING:
    from arcfleet.search import ProgressCallback

WORKERS = 2
ROUNDS = 3
#: Seconds that a task waits, and number of tasks.
WAITS = {0.0: 2000, 0.01: 500, 0.1: 60, 1.0: 10}
SOLVES = 200


class _Worked(NamedTuple):
    process: int
    start: float  # by the clock that all processes of a machine share
    end: float
    result: object


def _work(task: float | Instance, progress: ProgressCallback) -> _Worked:
    start, result = time.monotonic(), None
    if isinstance(task, Instance):
        result = solve(task, stop=Stop(iterations=1), progress=progress)
    else:
        time.sleep(task)
    return _Worked(os.getpid(), start, time.monotonic(), result)


class _Times(NamedTuple):
    starting: float  # seconds until the first task begins
    idle: float  # mean seconds between two tasks of a worker
    driver: float  # seconds that this process computed, for each task


def _timed(executor: str, tasks: list[float | Instance]) -> _Times:
    found: list[_Worked] = []

    def finished(number: int, outcome: object) -> None:
        assert isinstance(outcome, _Worked)
        found.append(outcome)

    begin, computed = time.monotonic(), time.process_time()
    run_tasks(_work, tasks, workers=WORKERS, executor=executor, finished=finished)
    computed = time.process_time() - computed
    idle = [
        after.start - before.end
        for before, after in itertools.pairwise(sorted(found))
        if before.process == after.process
    ]
    first = min(x.start for x in found)
    return _Times(first - begin, statistics.fmean(idle), computed / len(tasks))


def _rows() -> list[tuple[str, ...]]:
    works: list[tuple[str, list[float | Instance]]] = [
        (f"wait {1000 * seconds:g} ms", [seconds] * count)
        for seconds, count in WAITS.items()
    ]
    works.append(("denver, 1 iteration", [read("example:denver")] * SOLVES))
    rows, starts = [], {name: list[float]() for name in EXECUTORS}
    for text, tasks in works:
        times = {name: list[_Times]() for name in EXECUTORS}
        for _ in range(ROUNDS):
            for name in EXECUTORS:  # by turns
                times[name].append(_timed(name, tasks))
        cells = []
        for name in EXECUTORS:
            starts[name] += [x.starting for x in times[name]]
            for values in zip(*(x[1:] for x in times[name]), strict=True):
                cells.append(f"{1000 * statistics.median(values):.2f}")
        rows.append((text, str(len(tasks)), *cells))
    middle = [f"{1000 * statistics.median(starts[name]):.0f}" for name in EXECUTORS]
    return [*rows, ("until the first begins", "", *(y for x in middle for y in (x, "")))]


if __name__ == "__main__":
    import ray

    ray.init(
        address="local", num_cpus=WORKERS, log_to_driver=False, include_dashboard=False
    )
    print(describe())
    columns = [f"{name}: {what}" for name in EXECUTORS for what in ("idle ms", "driver ms")]
    print(table(_rows(), ("task", "tasks", *columns)))
