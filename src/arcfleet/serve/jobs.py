"""The queue: threads that hand jobs to worker processes, and watch these.

`arcfleet.workers` runs a list of short tasks and opens all of its processes anew when one
dies; the jobs here come one by one and run for up to an hour, each can be stopped, killed,
limited in memory and time, and goes on elsewhere when its process dies. Hence processes of
our own, one per thread.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from arcfleet.serve.store import last_progress, read_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from arcfleet.serve.store import Row, Store

#: A job fails when it has lost so many workers in a row without coming farther.
_MOST_DEATHS = 3
#: Workers that die before they get to their job count once in so many times.
_MOST_FALSE_STARTS = 10
#: Seconds after which an idle worker ends, so that an idle server is small.
_IDLE = 60.0
#: Seconds beyond the search that a job may take: reading, shortest paths, a bound.
_JOB_GRACE = 600.0
#: Workers for what a user waits for, beside those of the jobs.
_DESKS = 2
_MISTAKE = {
    "type": "internal",
    "message": "unexpected mistake of the server: tell the developers, see its log",
    "field": None,
}
_LOG = logging.getLogger("arcfleet.serve")


def _memory_of_the_machine() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one user may ask of the server.

    Parameters
    ----------
    body
        Bytes of a request.
    upload
        Bytes of an uploaded map.
    queued
        Jobs that wait.
    maps
        Maps.
    watchers
        Streams of events at a time.
    waiting
        Requests that wait for a worker at a time.
    read_memory
        Bytes of address space for reading a map or making a scene.
    job_memory
        Bytes of address space for a job; by default the memory of the machine.
    read_seconds
        Time for reading a map.
    scene_seconds
        Time for making a scene or an export.
    """

    body: int = 64 << 20
    upload: int = 512 << 20
    queued: int = 5000
    maps: int = 200
    watchers: int = 200
    waiting: int = 16
    read_memory: int = 6 << 30
    job_memory: int = field(default_factory=_memory_of_the_machine)
    read_seconds: float = 600.0
    scene_seconds: float = 120.0


class WorkerLostError(Exception):
    """A worker process ended in the middle of a task."""


class BusyError(Exception):
    """Too many requests wait for a worker."""


class TooLateError(Exception):
    """A task took longer than it may."""


class Worker:
    """A worker process; it is started when there is something to do."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""
        self._last_use = time.monotonic()
        self._pen = threading.Lock()  # for lines to the process, and these two:
        self._stop_asked = self._doomed = False

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.kill()
            # Threads of BLAS would each reserve memory.
            environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
            self._process = subprocess.Popen(
                # -P: without the folder that the server was started in.
                [sys.executable, "-P", "-m", "arcfleet.serve.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                bufsize=0,
            )
            self._buffer = b""
        return self._process

    def do(
        self, task: Row, seconds: float, tell: Callable[[Row], None] | None = None
    ) -> Row:
        """Do a task and return its end; what it says before goes to `tell`.

        Raises
        ------
        WorkerLostError
            If the process ended by itself or was killed.
        TooLateError
            If it took too long; the process is killed.
        """
        with self._pen:
            process = self._start()
            self._send(process, task)
            if self._stop_asked:
                self._send(process, {"stop": task["folder"]})
            if self._doomed:
                process.kill()
        deadline = time.monotonic() + seconds
        try:
            while "end" not in (message := self._read(process, deadline)):
                if tell is not None:
                    tell(message)
        except BaseException:
            self.kill()  # it is gone, or in the middle of what nobody waits for
            raise
        self._last_use = time.monotonic()
        end: Row = message["end"]
        return end

    def _send(self, process: subprocess.Popen[bytes], message: Row) -> None:
        assert process.stdin is not None
        try:
            left = memoryview(json.dumps(message).encode() + b"\n")
            while left:
                left = left[process.stdin.write(left) or 0 :]
        except (OSError, ValueError) as error:  # it is gone
            process.kill()  # its end is read, as that of any other
            _LOG.debug("a worker was lost: %s", error)

    def _read(self, process: subprocess.Popen[bytes], deadline: float) -> Row:
        assert process.stdout is not None
        poller = select.poll()
        poller.register(process.stdout, select.POLLIN)
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if not poller.poll(1000 * max(0.0, left)):
                raise TooLateError
            part = os.read(process.stdout.fileno(), 1 << 16)
            if not part:
                raise WorkerLostError
            self._buffer += part
        line, self._buffer = self._buffer.split(b"\n", 1)
        message: Row = json.loads(line)
        return message

    def prepare(self) -> None:
        """Forget what was asked of the last task."""
        with self._pen:
            self._stop_asked = self._doomed = False

    def stop_task(self, folder: str) -> None:
        """Ask the running task, or the one to come, to end with what it has."""
        with self._pen:
            self._stop_asked = True
            process = self._process
            if process is not None and process.poll() is None:
                self._send(process, {"stop": folder})

    def doom_task(self) -> None:
        """Kill the process of the running task, or of the one to come."""
        with self._pen:
            self._doomed = True
            process = self._process
            if process is not None:
                process.kill()

    def kill(self) -> None:
        """End the process at once."""
        process = self._process
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            self._process = None

    def rest(self) -> None:
        """End the process if it has been idle for long."""
        if self._process is not None and time.monotonic() - self._last_use > _IDLE:
            self.kill()


class Desk:
    """Workers for what somebody waits for: maps, scenes, exports, comparisons."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._all = [Worker() for _ in range(_DESKS)]
        self._free = list(self._all)
        self._changed = threading.Condition()
        self._waiting = 0
        self.ended = False

    def do(self, task: Row, seconds: float | None = None) -> Row:
        """Do a task within the limits and return its end.

        Raises
        ------
        BusyError, WorkerLostError, TooLateError
            If there is no end.
        """
        limits = self._limits
        with self._worker() as worker:
            return worker.do(
                task | {"memory": limits.read_memory}, seconds or limits.scene_seconds
            )

    @contextlib.contextmanager
    def _worker(self) -> Iterator[Worker]:
        with self._changed:
            if self._waiting >= self._limits.waiting:
                raise BusyError
            self._waiting += 1
            try:
                patient = self._changed.wait_for(
                    lambda: self._free or self.ended, self._limits.scene_seconds
                )
            finally:
                self._waiting -= 1
            if not patient or self.ended:
                raise BusyError
            worker = self._free.pop()
        try:
            yield worker
        finally:
            with self._changed:
                self._free.append(worker)
                self._changed.notify()

    def rest(self) -> None:
        """End processes that have been idle for long."""
        with self._changed:
            for worker in self._free:
                worker.rest()

    def end(self) -> None:
        """End all processes, also those at work."""
        with self._changed:
            self.ended = True
            self._changed.notify_all()
        for worker in self._all:
            worker.doom_task()


class Board:
    """All that works in the background: jobs in order of arrival, and maps to read."""

    def __init__(self, store: Store, workers: int, limits: Limits) -> None:
        self.store, self.workers, self.limits = store, workers, limits
        self.desk = Desk(limits)
        self.ending = threading.Event()
        self._changed = threading.Condition()
        self._running: dict[str, Worker] = {}
        self._false_starts = Counter[str]()
        self._job_workers = [Worker() for _ in range(workers)]
        self._threads = [
            threading.Thread(target=self._work, args=[worker], daemon=True)
            for worker in self._job_workers
        ]
        self._threads.append(threading.Thread(target=self._read_maps, daemon=True))

    def start(self) -> None:
        """Take up what the last server left, and begin."""
        for row in self.store.running():
            used = last_progress(self.store.job_folder(row["id"]))["seconds"]
            self.store.requeue(row["id"], deaths=row["deaths"], used=used)
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """End all worker processes; what they were at goes on at the next start."""
        self.ending.set()
        self.wake()
        self.desk.end()
        while any(thread.is_alive() for thread in self._threads):
            for worker in self._job_workers:
                worker.doom_task()
            self._threads[-1].join(0.05)

    def wake(self) -> None:
        """Look again for something to do."""
        with self._changed:
            self._changed.notify_all()

    def stop_job(self, id: str) -> None:
        """End a job with its best plan, or as soon as it has one."""
        self.store.ask_to_stop(id)
        with self._changed:
            worker = self._running.get(id)
            if worker is not None:
                worker.stop_task(str(self.store.job_folder(id)))

    def cancel_job(self, id: str) -> None:
        """End a job at once."""
        if self.store.end_job(id, "cancelled"):
            with self._changed:
                worker = self._running.get(id)
                if worker is not None:
                    worker.doom_task()

    # --- Threads --------------------------------------------------------------------------

    def _pause(self) -> None:
        with self._changed:
            self._changed.wait(1.0)

    def _work(self, worker: Worker) -> None:
        while not self.ending.is_set():
            row = None
            try:
                row = self.store.take_job()
                if row is None:
                    worker.rest()
                    self._pause()
                    continue
                worker.prepare()
                with self._changed:
                    self._running[row["id"]] = worker
                # What was asked since it was taken did not find the worker.
                row = self.store.job_row(row["id"]) or row
                if row["state"] == "running":
                    self._run(row, worker)
            except Exception:
                _LOG.exception("a job could not be run")
                self._pause()
                if row is not None:
                    self._end(row["id"], {"error": _MISTAKE})
            finally:
                if row is not None:
                    with self._changed:
                        self._running.pop(row["id"], None)

    def _run(self, row: Row, worker: Worker) -> None:
        store, id, request = self.store, row["id"], json.loads(row["request"])
        folder = store.job_folder(id)
        links = read_json(folder / "job.json")
        task = {
            "task": "job",
            "request": request,
            "folder": str(folder),
            "instance": str(store.scene_folder(request["scene"]) / "instance.json"),
            "new_scene": str(store.scene_folder(links["new_scene"])),
            "start_instance": str(
                store.scene_folder(links["start_scene"] or "") / "instance.json"
            ),
            "stop": bool(row["stop"]),
            "memory": self.limits.job_memory,
        }

        has_begun = False

        def tell(message: Row) -> None:
            nonlocal has_begun
            if "scene" in message:
                store.set_scene(id, links["new_scene"], message["scene"])
            has_begun = True

        try:
            end = worker.do(task, 2 * request["seconds"] + _JOB_GRACE, tell)
        except WorkerLostError:
            if not self.ending.is_set():
                self._lost(row, has_begun)
            return
        except TooLateError:
            end = {"error": _too_late("solving it")}
        self._end(id, end)

    def _end(self, id: str, end: Row) -> None:
        """Note the end of a job, as soon as the disk lets us."""
        while not self.ending.is_set():
            try:
                if "error" in end:
                    self.store.end_job(id, "failed", error=end["error"])
                else:
                    self.store.end_job(id, "done", **end)
            except sqlite3.OperationalError as error:
                _LOG.error("the end of a job cannot be noted yet: %s", error)
                self._pause()
            else:
                return

    def _lost(self, row: Row, has_begun: bool) -> None:
        """Put a job back whose worker died; one that only ever dies fails."""
        id = row["id"]
        self._false_starts[id] += not has_begun
        counts = has_begun or self._false_starts[id] % _MOST_FALSE_STARTS == 0
        used = last_progress(self.store.job_folder(id))["seconds"]
        deaths = counts + (0 if used > row["used"] else row["deaths"])
        if deaths >= _MOST_DEATHS:
            error = {
                "type": "internal",
                "message": f"the processes that worked on it ended {deaths} times in a row "
                "without coming farther, perhaps for want of memory: solve a smaller scene",
                "field": None,
            }
            self._end(id, {"error": error})
        else:
            self.store.requeue(id, deaths=deaths, used=used)

    def _read_maps(self) -> None:
        deaths: dict[str, int] = {}
        while not self.ending.is_set():
            try:
                id = self.store.next_map()
                if id is None:
                    self.desk.rest()
                    self._pause()
                    continue
                self._read_map(id, deaths)
            except Exception:
                _LOG.exception("a map could not be read")
                self._pause()

    def _read_map(self, id: str, deaths: dict[str, int]) -> None:
        folder = self.store.map_folder(id)
        folder.mkdir(exist_ok=True)
        task = self.map_source(id) | {"task": "map", "folder": str(folder)}
        task["file"] = self.store.upload_name(id)
        try:
            end = self.desk.do(task, self.limits.read_seconds)
        except BusyError:
            self._pause()
            return
        except TooLateError:
            end = {"error": _too_late("reading the map")}
        except WorkerLostError:
            if self.ending.is_set():
                return
            deaths[id] = deaths.get(id, 0) + 1
            if deaths[id] < _MOST_DEATHS:
                return
            end = {"error": _lost_error("the map")}
        if "error" in end:
            self.store.map_read(id, None, end["error"])
        else:
            self.store.map_read(id, end)

    def map_source(self, id: str) -> Row:
        """Return how a worker gets at a map: its file, none for the bundled one."""
        found = self.store.map(id) or {"name": "", "bundled": False}
        upload = str(self.store.map_folder(id) / "upload")
        return {"source": "" if found["bundled"] else upload, "name": found["name"]}


def _too_late(what: str) -> dict[str, Any]:
    message = f"{what} took longer than it may: take a smaller part"
    return {"type": "timeout", "message": message, "field": None}


def _lost_error(what: str) -> dict[str, Any]:
    message = (
        f"expected {what} to fit in memory, but the process that worked on it ended: take "
        "a smaller part"
    )
    return {"type": "too_large", "message": message, "field": None}


def desk_error(error: Exception) -> dict[str, Any]:
    """Return what to answer where a task at the desk has no end."""
    if isinstance(error, TooLateError):
        return _too_late("it")
    if isinstance(error, WorkerLostError):
        return _lost_error("it")
    message = "too many requests at a time: ask again in some seconds"
    return {"type": "too_many", "message": message, "field": None}
