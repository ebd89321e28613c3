"""Tasks on the machines of a Ray cluster: the one place that knows Ray.

Each core that is used has an actor, which works on some tasks for about a second before it
reports, so that the overhead of a call is small beside them. What Ray loses is found by the
calls that fail: their tasks run again on other actors. Nothing is kept in Ray's own store,
so no outcome is lost that was reported.
"""

from __future__ import annotations

import ctypes
import math
import os
import platform
import signal
import threading
import time
import warnings
from collections import Counter, deque
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from arcfleet._checks import needs
from arcfleet._version import __version__
from arcfleet.errors import FormatWarning, OptionError
from arcfleet.workers.tasks import CRASHED, TaskFailure, call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from arcfleet.search.stop import ProgressCallback

#: A worker reports when it has worked so long, at the end of a task.
_GROUP_SECONDS = 1.0
_MOST_PER_GROUP = 1000
#: A task is a failure once it was alone with so many workers that were lost.
_MOST_LOSSES = 3
_MOST_FAILED_STARTS = 10
#: How often the driver looks for Ctrl-C, and for machines that joined.
_LOOK_SECONDS = 1.0
_COUNT_SECONDS = 5.0
_PATIENCE_SECONDS = 30.0


def run_over_ray(
    function: Callable[[Any, ProgressCallback], Any],
    queue: Iterator[tuple[int, Any]],
    *,
    workers: int | None,
    stop: ctypes.c_bool,
    finished: Callable[[int, Any], None],
) -> None:
    """Run tasks on a Ray cluster, by default on all of its cores.

    The cluster is the one that the script is connected to, else that of RAY_ADDRESS or the
    one that runs on this machine; without any, one is started here and ended at the end.
    """
    with _connected():
        _Team(function, queue, workers, stop, finished).run()


@contextmanager
def _connected() -> Iterator[None]:
    with needs("Ray", "executor 'ray'", "cluster"):
        import ray
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    in_main_thread = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of Ray's next versions
        try:
            ray.init(log_to_driver=False, include_dashboard=False, logging_level="ERROR")
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise OptionError(
                f"expected a Ray cluster at {os.environ.get('RAY_ADDRESS', 'this machine')}"
                f", found none ({str(error).strip().splitlines()[0]:.200}): start it by "
                "`ray start --head`, or unset RAY_ADDRESS"
            ) from error
    if in_main_thread:
        signal.signal(signal.SIGTERM, before)  # Ray has put its own there
    try:
        yield
    finally:
        ray.shutdown()


class _Worker:
    """An actor: works on groups of tasks."""

    def __init__(self, function: Callable[[Any, ProgressCallback], Any]) -> None:
        self.function = function
        self.stop = ctypes.c_bool(False)

    def about(self) -> tuple[str, str]:
        """Return the version of arcfleet and the name of the machine."""
        return __version__, platform.node()

    def work(self, tasks: list[Any]) -> tuple[list[Any], float]:
        """Return the outcomes of the first tasks, and the seconds that they took."""
        outcomes: list[Any] = []
        started = time.perf_counter()
        seconds = 0.0
        for task in tasks:
            if self.stop.value or seconds >= _GROUP_SECONDS:
                break
            outcomes.append(call(self.function, task, self.stop))
            seconds = time.perf_counter() - started
        return outcomes, seconds

    def end(self) -> None:
        """End the running search."""
        self.stop.value = True


@dataclass(frozen=True, slots=True)
class _Call:
    actor: Any
    group: tuple[tuple[int, Any], ...] | None  # numbers and tasks; None while it starts


class _Team:
    """The actors of a run, and the tasks that they have in hand."""

    def __init__(
        self,
        function: Callable[[Any, ProgressCallback], Any],
        queue: Iterator[tuple[int, Any]],
        workers: int | None,
        stop: ctypes.c_bool,
        finished: Callable[[int, Any], None],
    ) -> None:
        import ray

        self.ray = ray
        # `end` is called while `work` is at it.
        options = {"num_cpus": 1, "max_restarts": 0, "concurrency_groups": {"end": 1}}
        self.actor = ray.remote(**options)(_Worker)
        self.function = ray.put(function)
        self.queue = queue
        self.workers = workers
        self.stop = stop
        self.finished = finished
        self.calls: dict[Any, _Call] = {}  # by the reference of what is called
        self.idle: list[Any] = []  # actors that are ready
        self.again: deque[tuple[int, Any]] = deque()  # tasks that come first
        self.alone: set[int] = set()  # numbers of those that were lost with others
        self.losses: Counter[int] = Counter()
        self.failed_starts = 0
        self.seconds_each: float | None = None
        self.size = 0  # actors that there may be
        self.counted = -math.inf
        self.worked = time.monotonic()

    def run(self) -> None:
        """Work until nothing is left, or until Ctrl-C."""
        told = False
        try:
            while True:
                if self.stop.value and not told:
                    told = True
                    self._tell_to_end()
                self._hand_out()
                if not any(x.group for x in self.calls.values()) and (
                    self.stop.value or not self._is_more()
                ):
                    return
                done, _ = self.ray.wait(
                    list(self.calls), num_returns=1, timeout=_LOOK_SECONDS
                )
                for reference in done:
                    self._take(self.calls.pop(reference), reference)
                if not done:
                    self._warn_if_nothing_works()
        finally:
            for actor in (*self.idle, *(x.actor for x in self.calls.values())):
                self.ray.kill(actor)

    def _hand_out(self) -> None:
        """Hand tasks to the actors that are ready, and start others for those left."""
        while not self.stop.value and self.idle and (group := self._group()):
            actor = self.idle.pop()
            reference = actor.work.remote([task for _, task in group])
            self.calls[reference] = _Call(actor, group)
        starting = sum(x.group is None for x in self.calls.values())
        while (
            not self.stop.value
            and len(self.idle) + len(self.calls) < self._size()
            and self._is_more(starting + 1)
        ):
            actor = self.actor.remote(self.function)
            self.calls[actor.about.remote()] = _Call(actor, None)
            starting += 1

    def _size(self) -> int:
        """Return the number of actors that there may be: machines come and go."""
        now = time.monotonic()
        if now - self.counted >= _COUNT_SECONDS:
            self.counted = now
            cores = int(self.ray.cluster_resources().get("CPU", 0))
            self.size = max(1, cores if self.workers is None else self.workers)
        return self.size

    def _is_more(self, number: int = 1) -> bool:
        """Return whether so many tasks are waiting."""
        lacking = number - len(self.again)
        if lacking > 0:
            self.again.extend(islice(self.queue, lacking))
        return len(self.again) >= number

    def _group(self) -> tuple[tuple[int, Any], ...]:
        """Take tasks of about a second; one that was lost with others is tried alone."""
        if not self._is_more():
            return ()
        if self.again[0][0] in self.alone or not self.seconds_each:
            return (self.again.popleft(),)
        size = min(_MOST_PER_GROUP, math.ceil(_GROUP_SECONDS / self.seconds_each))
        self._is_more(size)
        group: list[tuple[int, Any]] = []
        while self.again and len(group) < size and self.again[0][0] not in self.alone:
            group.append(self.again.popleft())
        return tuple(group)

    def _take(self, made: _Call, reference: Any) -> None:
        """Take what a call returned, or what became of it."""
        try:
            found = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            self.ray.kill(made.actor)
            if made.group is None:
                self._start_failed(error)
            else:
                self._lost(made.group, error)
            return
        self.idle.append(made.actor)
        self.worked = time.monotonic()
        if made.group is None:
            self.failed_starts = 0
            _require_same_version(*found)
            return
        outcomes, seconds = found
        each = max(seconds / max(len(outcomes), 1), 1e-6)
        usual = self.seconds_each
        self.seconds_each = each if usual is None else (usual + each) / 2
        self.again.extendleft(reversed(made.group[len(outcomes) :]))
        for (number, _), outcome in zip(made.group, outcomes, strict=False):
            self.finished(number, outcome)

    def _lost(self, group: tuple[tuple[int, Any], ...], error: Exception) -> None:
        """Put tasks back whose worker was lost; of several each is tried alone."""
        if len(group) == 1:
            ((number, _),) = group
            self.losses[number] += 1
            is_ours = isinstance(error, self.ray.exceptions.RayTaskError)
            if is_ours or self.losses[number] >= _MOST_LOSSES:
                message = f"unexpected {_first_line(error)}" if is_ours else CRASHED
                self.finished(number, TaskFailure(message=message))
                return
        self.alone.update(number for number, _ in group)
        self.again.extendleft(reversed(group))

    def _start_failed(self, error: Exception) -> None:
        self.failed_starts += 1
        if self.failed_starts >= _MOST_FAILED_STARTS:
            raise OptionError(
                f"expected arcfleet {__version__} on every machine of the Ray cluster, but "
                f"no worker starts ({_first_line(error)}): install it there"
            ) from error

    def _tell_to_end(self) -> None:
        for made in self.calls.values():
            if made.group:
                made.actor.end.options(concurrency_group="end").remote()

    def _warn_if_nothing_works(self) -> None:
        """Warn once where no worker finds a core."""
        waited = time.monotonic() - self.worked
        if waited > _PATIENCE_SECONDS and not any(x.group for x in self.calls.values()):
            self.worked = math.inf
            warnings.warn(
                "waits for a free core of the Ray cluster, see `ray status`",
                FormatWarning,
                stacklevel=2,
            )


def _require_same_version(version: str, machine: str) -> None:
    if version != __version__:
        raise OptionError(
            f"expected arcfleet {__version__} on every machine of the Ray cluster, found "
            f"{version} on {machine}: install the same"
        )


def _first_line(error: Exception) -> str:
    cause = getattr(error, "cause", None) or error
    lines = [line for line in str(cause).splitlines() if line.strip()] or [""]
    return f"{type(cause).__name__}: {lines[-1].strip()[:200]}"
