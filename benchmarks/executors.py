"""Overhead per task of each executor: processes of this machine, and Ray.

`python -m benchmarks.executors` (needs the extra `cluster`). Most tasks wait for a given
time, so that other work on the machine counts little. The overhead of a task is the time
from the first outcome to the last, times the workers, divided by their number, less what a
task takes alone.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from arcfleet import Instance, Stop, read, solve
from arcfleet.report.tables import table
from arcfleet.workers import EXECUTORS, run_tasks
from benchmarks import describe

if TYPE_CHECKING:
    from arcfleet.search import ProgressCallback

WORKERS = 2
ROUNDS = 3
#: Seconds that a task waits, and number of tasks.
WAITS = {0.0: 4000, 0.01: 1000, 0.1: 100, 1.5: 12}
SOLVES = 400


def _wait(seconds: float, progress: ProgressCallback) -> None:
    time.sleep(seconds)


def _solve(instance: Instance, progress: ProgressCallback) -> object:
    return solve(instance, stop=Stop(iterations=1), progress=progress)


def _timed(executor: str, function: object, tasks: list[object]) -> tuple[float, float]:
    """Return the seconds until the first outcome, and of each task after it."""
    begin = time.perf_counter()
    ends: list[float] = []
    run_tasks(
        function,  # type: ignore[arg-type]
        tasks,
        workers=WORKERS,
        executor=executor,
        finished=lambda number, outcome: ends.append(time.perf_counter()),
    )
    return ends[0] - begin, WORKERS * (ends[-1] - ends[0]) / (len(tasks) - 1)


def _rows() -> list[tuple[str, ...]]:
    instance = read("example:denver")
    works: list[tuple[str, object, list[object], float]] = [
        (f"wait {seconds:g} s", _wait, [seconds] * count, seconds)
        for seconds, count in WAITS.items()
    ]
    started = time.perf_counter()
    for _ in range(20):
        _solve(instance, lambda progress: None)
    alone = (time.perf_counter() - started) / 20
    works.append(("example:denver, 1 iteration", _solve, [instance] * SOLVES, alone))
    rows, starts = [], {name: list[float]() for name in EXECUTORS}
    for text, function, tasks, own in works:
        each = {name: list[float]() for name in EXECUTORS}
        for _ in range(ROUNDS):
            for name in EXECUTORS:  # by turns
                starting, whole = _timed(name, function, tasks)
                each[name].append(whole - own)
                starts[name].append(starting - own)
        shown = [f"{1e3 * statistics.median(each[name]):.2f} ms" for name in EXECUTORS]
        rows.append((text, str(len(tasks)), *shown))
    middle = [f"{statistics.median(starts[name]):.1f} s" for name in EXECUTORS]
    return [*rows, ("start", "", *middle)]


if __name__ == "__main__":
    print(describe())
    print(table(_rows(), ("task", "tasks", *EXECUTORS)))
