"""Runs one function over many tasks, on several processes, and survives bad tasks."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import threading
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from arcfleet.errors import ArcfleetError, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from arcfleet.search.stop import Progress, ProgressCallback

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")

#: How often a worker looks whether it is still needed.
_WATCH_SECONDS = 0.2
_CRASHED = "the process that worked on it ended by itself, perhaps for want of memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFailure:
    """A task that gave no outcome."""

    message: str  # reason, in one sentence
    interrupted: bool = False  # whether Ctrl-C is the reason


def run_tasks(
    function: Callable[[Task, ProgressCallback], Outcome],
    tasks: Iterable[Task],
    *,
    workers: int,
    finished: Callable[[int, Outcome | TaskFailure], None],
) -> None:
    """Call `function` for each task and `finished`, in this process, as each one ends.

    The first Ctrl-C ends the running tasks as it would end a `solve`, reports them and
    starts no others; the second gives up. With several workers, `function` and the tasks
    must be picklable, and a script must guard its calls by `if __name__ == "__main__"`,
    because the processes are spawned. `function` must hand its progress callback to
    `solve`; what it raises is reported and ends only its task. Tasks are taken one by one
    as workers become free; one worker is this process.
    """
    stop = _new_flag()
    queue = enumerate(tasks)
    with first_interrupt_sets(stop):
        if workers > 1:
            _Pool(function, workers, stop).run(queue, finished)
            return
        for number, task in queue:
            finished(number, _call(function, task, stop))
            if stop.value:
                return


def _new_flag() -> ctypes.c_bool:
    """Return a flag that worker processes see."""
    return multiprocessing.RawValue(ctypes.c_bool, False)


class _Pool(Generic[Task, Outcome]):
    """Worker processes, and the tasks they have in hand: never more than workers."""

    def __init__(
        self,
        function: Callable[[Task, ProgressCallback], Outcome],
        workers: int,
        stop: ctypes.c_bool,
    ) -> None:
        self.function = function
        self.workers = workers
        self.stop = stop
        self.running: dict[Future[Outcome | TaskFailure], tuple[int, Task]] = {}
        # Tasks that were in hand when a process died. Each is tried again alone, which
        # tells the guilty one from those that only ran beside it.
        self.suspects: deque[tuple[int, Task]] = deque()
        self.on_trial = False
        self.given_up = _new_flag()
        self.executor = self._open()

    def run(
        self,
        queue: Iterator[tuple[int, Task]],
        finished: Callable[[int, Outcome | TaskFailure], None],
    ) -> None:
        try:
            while True:
                self._fill(queue)
                if not self.running:
                    return
                # A timeout, because some systems see Ctrl-C only between two waits.
                done, _ = wait(self.running, timeout=1.0, return_when=FIRST_COMPLETED)
                broken = False
                for future in done:
                    number, task = self.running.pop(future)
                    try:
                        outcome = future.result()
                    except BrokenProcessPool:
                        broken = True
                        if self.on_trial:
                            finished(number, TaskFailure(message=_CRASHED))
                        else:
                            self.suspects.append((number, task))
                        continue
                    finished(number, outcome)
                if broken:
                    self.suspects.extend(self.running.values())
                    self.running.clear()
                    self.given_up.value = True
                    self.executor.shutdown()
                    self.executor = self._open()
        finally:
            self.stop.value = True  # for the case that `finished` raised
            self.executor.shutdown(wait=not self.running, cancel_futures=True)

    def _fill(self, queue: Iterator[tuple[int, Task]]) -> None:
        """Hand out tasks to idle workers; a suspect runs alone."""
        if self.stop.value or (self.running and self.on_trial):
            return
        self.on_trial = bool(self.suspects)
        if self.on_trial:
            self._submit(*self.suspects.popleft())
            return
        for number, task in islice(queue, self.workers - len(self.running)):
            self._submit(number, task)

    def _submit(self, number: int, task: Task) -> None:
        with _interrupts_held():  # a process made here never sees them itself
            future = self.executor.submit(_call_in_worker, self.function, task)
        self.running[future] = (number, task)

    def _open(self) -> ProcessPoolExecutor:
        self.given_up = _new_flag()
        executor = ProcessPoolExecutor(
            self.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start_worker,
            initargs=(self.stop, self.given_up),
        )
        try:
            with _interrupts_held():
                ready = executor.submit(os.getpid)
            ready.result()
        except BrokenProcessPool as error:
            self.given_up.value = True
            raise OptionError(
                "expected worker processes to start, but they ended at once: guard the "
                'calls of your script by `if __name__ == "__main__":`, or use workers=1'
            ) from error
        return executor


# Set once, when a worker starts: shared memory can be handed over only then.
_stop_of_worker: ctypes.c_bool


def _start_worker(stop: ctypes.c_bool, given_up: ctypes.c_bool) -> None:
    global _stop_of_worker
    _stop_of_worker = stop
    # The parent tells through `stop`; these may be sent to all processes of a group.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=[given_up], daemon=True).start()


def _end_with_parent(given_up: ctypes.c_bool) -> None:
    """Do not outlive a parent that was killed, nor a pool that was given up.

    When a worker dies, the pool sends SIGTERM to the others, which they ignore, and from
    Python 3.12 on waits for their end.
    """
    parent = multiprocessing.parent_process()
    while parent is not None:
        parent.join(_WATCH_SECONDS)
        if given_up.value or not parent.is_alive():
            os._exit(1)


def _call_in_worker(
    function: Callable[[Task, ProgressCallback], Outcome], task: Task
) -> Outcome | TaskFailure:
    return _call(function, task, _stop_of_worker)


def _call(
    function: Callable[[Task, ProgressCallback], Outcome], task: Task, stop: ctypes.c_bool
) -> Outcome | TaskFailure:
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
def first_interrupt_sets(stop: ctypes.c_bool) -> Iterator[None]:
    """Turn the first Ctrl-C into a flag, so that nothing finished is lost to it."""
    before = signal.getsignal(signal.SIGINT)
    if (
        threading.current_thread() is not threading.main_thread()
        or before is not signal.default_int_handler
    ):
        yield
        return

    def note(number: int, frame: object) -> None:
        if stop.value:
            raise KeyboardInterrupt
        stop.value = True

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Block SIGINT and SIGTERM; a process spawned meanwhile blocks them for good."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    both = {signal.SIGINT, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, both)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def child_seed(seed: int, position: int) -> int:
    """Return the seed of one instance of many: that of numpy's child `position`."""
    child = np.random.SeedSequence(seed, spawn_key=(position,))
    return int(child.generate_state(1, np.uint64)[0])
