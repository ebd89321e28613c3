"""Tasks and their outcomes, wherever they run: failures, Ctrl-C, seeds."""

from __future__ import annotations

import ctypes
import multiprocessing
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from arcfleet.errors import ArcfleetError
from arcfleet.search.interrupts import first_interrupt_held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from arcfleet.search.stop import Progress, ProgressCallback

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")

#: Why a task has no outcome whose worker died more than once.
CRASHED = "the process that worked on it ended by itself, perhaps for want of memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFailure:
    """A task that gave no outcome."""

    message: str  # reason, in one sentence
    interrupted: bool = False  # whether Ctrl-C is the reason


class Executor(Protocol):
    """Where tasks run: calls a function for each of them, several at a time.

    It takes tasks from the queue as workers become free, and calls `finished` with number
    and outcome of each, in this process, once. Once `stop` is set it takes no others and
    lets the running ones end early, by `call`, each with the flag of its own process. A
    task whose worker was lost runs again; one that ends its workers is a failure.
    """

    def __call__(
        self,
        function: Callable[[Any, ProgressCallback], Any],
        queue: Iterator[tuple[int, Any]],
        *,
        workers: int | None,
        stop: ctypes.c_bool,
        finished: Callable[[int, Any], None],
    ) -> None:
        """Run all tasks of the queue; None workers are the usual number."""


def new_flag() -> ctypes.c_bool:
    """Return a flag that worker processes see."""
    return multiprocessing.RawValue(ctypes.c_bool, False)


def call(
    function: Callable[[Task, ProgressCallback], Outcome], task: Task, stop: ctypes.c_bool
) -> Outcome | TaskFailure:
    """Return the outcome of a task, or why there is none; `stop` ends its search."""

    def end_where_asked(progress: Progress) -> None:
        if stop.value:
            raise KeyboardInterrupt

    try:
        return function(task, end_where_asked)
    except KeyboardInterrupt:
        stop.value = True
        return TaskFailure(message="interrupted before there was a plan", interrupted=True)
    except ArcfleetError as error:
        return TaskFailure(message=str(error))
    except MemoryError:
        return TaskFailure(message="expected it to fit in memory, found too little")
    except Exception as error:
        # A mistake of ours; the other tasks are still worth their time.
        return TaskFailure(message=f"unexpected {type(error).__name__}: {error}")


@contextmanager
def first_interrupt_sets(stop: ctypes.c_bool) -> Iterator[list[int]]:
    """Turn the first Ctrl-C into a flag, so that nothing finished is lost to it.

    Yields a list that has the signals so far: others may set the flag, too.
    """

    def set_flag() -> None:
        stop.value = True

    with first_interrupt_held(set_flag) as signals:
        yield signals


def child_seed(seed: int, position: int) -> int:
    """Return the seed of one instance of many: that of numpy's child `position`."""
    child = np.random.SeedSequence(seed, spawn_key=(position,))
    return int(child.generate_state(1, np.uint64)[0])
