"""Runs one function over many tasks, on several workers, and survives bad tasks."""

from __future__ import annotations

import pickle
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from arcfleet._checks import check_whole_number, name_hint
from arcfleet.errors import OptionError
from arcfleet.workers.tasks import (
    Executor,
    Outcome,
    Task,
    TaskFailure,
    first_interrupt_sets,
    new_flag,
)

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable, Iterable

    from arcfleet.search.stop import ProgressCallback

#: The usual executor.
PROCESSES = "processes"


class _Kind(NamedTuple):
    module: str  # imported when it is first needed
    function: str  # the executor in it
    most_workers: int


_EXECUTORS = {
    PROCESSES: _Kind("arcfleet.workers.processes", "run_over_processes", 256),
    "ray": _Kind("arcfleet.workers.ray", "run_over_ray", 100_000),
}

#: Names of all executors.
EXECUTORS = tuple(_EXECUTORS)


def check_workers(
    workers: int | None, executor: str = PROCESSES, *, name: str = "workers"
) -> None:
    """Raise OptionError unless there is such an executor, and may be so many workers."""
    if executor not in _EXECUTORS:
        hint = name_hint(executor, EXECUTORS)
        raise OptionError(f"expected the name of an executor, got {executor!r}: {hint}")
    if workers is not None:
        most = _EXECUTORS[executor].most_workers
        check_whole_number(name, workers, 1, most)


def check_sendable(*, method: object, settings: object, stop: object = None) -> None:
    """Raise OptionError if worker processes cannot be sent one of these."""
    for what, value in (
        ("the function of the method", method),
        ("the stop rule", stop),
        ("the settings", settings),
    ):
        try:
            pickle.dumps(value)
        except Exception as error:
            raise OptionError(
                f"expected {what} to be defined at the top level of a module, so that "
                f"worker processes can import it, got {value!r} ({error}): move it there "
                "or use workers=1"
            ) from None


def run_tasks(
    function: Callable[[Task, ProgressCallback], Outcome],
    tasks: Iterable[Task],
    *,
    workers: int | None,
    finished: Callable[[int, Outcome | TaskFailure], None],
    executor: str = PROCESSES,
    stop: ctypes.c_bool | None = None,
) -> bool:
    """Call `function` for each task and `finished`, in this process, as each one ends.

    Returns whether there was a Ctrl-C. `finished` may set the flag `stop` to the same end.

    The first Ctrl-C ends the running tasks as it would end a `solve`, reports them and
    starts no others; the second gives up. With several workers, `function` and the tasks
    must be picklable, and a script must guard its calls by `if __name__ == "__main__"`,
    because the processes are spawned. `function` must hand its progress callback to
    `solve`; what it raises is reported and ends only its task. Tasks are taken one by one
    as workers become free; one worker is this process.
    """
    check_workers(workers, executor)
    kind = _EXECUTORS[executor]
    run: Executor = getattr(import_module(kind.module), kind.function)
    if stop is None:
        stop = new_flag()
    with first_interrupt_sets(stop) as signals:
        run(function, enumerate(tasks), workers=workers, stop=stop, finished=finished)
    return bool(signals)
