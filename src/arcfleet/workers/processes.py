"""Tasks on processes of this machine: spawned, and replaced where one dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic

from arcfleet.errors import OptionError
from arcfleet.workers.tasks import CRASHED, Outcome, Task, TaskFailure, call, new_flag

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable, Iterator

    from arcfleet.search.stop import ProgressCallback

#: How often a worker looks whether it is still needed.
_WATCH_SECONDS = 0.2


def run_over_processes(
    function: Callable[[Any, ProgressCallback], Any],
    queue: Iterator[tuple[int, Any]],
    *,
    workers: int | None,
    stop: ctypes.c_bool,
    finished: Callable[[int, Any], None],
) -> None:
    """Run tasks on spawned processes; one worker, the usual number, is this process."""
    if workers is not None and workers > 1:
        _Pool(function, workers, stop).run(queue, finished)
        return
    for number, task in queue:
        finished(number, call(function, task, stop))
        if stop.value:
            return


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
        self.given_up = new_flag()
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
                            finished(number, TaskFailure(message=CRASHED))
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
        self.given_up = new_flag()
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
    return call(function, task, _stop_of_worker)


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
