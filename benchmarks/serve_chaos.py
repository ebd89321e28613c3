"""What `arcfleet serve` withstands: processes killed, many watchers, a long queue.

    python -m benchmarks.serve_chaos --out benchmarks/results/serve

starts a server on an empty data folder and kills it and its workers (kill -9) at random
while it solves jobs; each job must end once, with a plan that the checker finds right.
Then many clients watch one job, and a long queue is drained. One JSON line per measurement
replaces that in DIR/serve.jsonl.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.error import URLError

from arcfleet import check, read, read_solution
from arcfleet.bench.machine import commit, machine
from arcfleet.datasets.store import LineFormat
from arcfleet.paper.report import Section
from arcfleet.report.tables import table
from benchmarks import describe, run_and_exit
from benchmarks.drivable import Lines, add_out_option, replace_lines
from examples.serve_client import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ARCFLEET = [sys.executable, "-c", "import sys, arcfleet_command as a; sys.exit(a.main())"]
JOBS, KILLS, WATCHERS, QUEUED, WORKERS = 50, 20, 20, 1000, 2
#: Seconds of a job while processes are killed, and between two kills at most.
JOB_SECONDS, PAUSE = 2.0, 4.0
#: Seconds until idle workers end, and some more.
IDLE_SECONDS = 75.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeRun:
    """One measurement of a server."""

    measure: str
    found: str
    seconds: float
    machine: str
    commit: str
    load: float  # mean number of processes that wanted a processor in the minute before
    seed: int

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the measurement."""
        return (self.measure,)


class Server:
    """A server that may be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.start()

    def start(self) -> None:
        """Start it and wait until it answers."""
        words = ["serve", "--port", "0", "--data", str(self.folder)]
        self.process = subprocess.Popen(
            [*ARCFLEET, *words, "--workers", str(WORKERS)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        self.client = Client(self.process.stdout.readline().strip())
        patiently(lambda: self.client.get("/health"))

    def kill(self) -> None:
        """Kill it as the system does for want of memory, and start it again."""
        self.process.kill()
        self.process.wait()
        self.start()

    def workers(self) -> list[int]:
        """Return the numbers of its worker processes."""
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)],
            capture_output=True,
            text=True,
            check=False,
        )
        return [int(word) for word in listed.stdout.split()]


def patiently(ask: Callable[[], Any]) -> Any:
    """Ask until there is an answer."""
    for _ in range(600):
        try:
            return ask()
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise SystemExit("the server does not answer any more")


def wait_for_all(server: Server, count: int) -> list[dict[str, Any]]:
    """Return all jobs when they have ended, oldest first."""
    while True:
        jobs = patiently(lambda: server.client.get("/jobs?limit=1000"))["jobs"]
        if len(jobs) >= count and all(job["ended"] for job in jobs):
            return list(reversed(jobs))
        time.sleep(0.5)


def chaos(server: Server, scene: str, seed: int) -> str:
    """Kill the server and workers while jobs come and run; return what became of them."""
    draw = random.Random(seed)
    gone = Counter[str]()
    asked = 0

    def ask(number: int) -> None:
        # A client that gets no answer asks again with the same key.
        body = {"scene": scene, "seconds": JOB_SECONDS, "seed": number}
        patiently(lambda: server.client.post("/jobs", body, key=f"job-{number}"))

    for kill in range(KILLS):
        while asked < JOBS * (kill + 1) // KILLS:
            ask(asked)
            asked += 1
        time.sleep(draw.uniform(0.2, PAUSE))
        if draw.random() < 0.5:
            server.kill()
            gone["server"] += 1
            continue
        while not (workers := server.workers()):
            time.sleep(0.05)
        os.kill(draw.choice(workers), signal.SIGKILL)
        gone["workers"] += 1
    jobs = wait_for_all(server, JOBS)
    seeds = Counter(job["request"]["seed"] for job in jobs)
    lost = sum(number not in seeds for number in range(JOBS))
    doubled = sum(count - 1 for count in seeds.values())
    states = Counter(job["state"] for job in jobs)
    told = [list(server.client.events(job["id"])) for job in jobs]
    doubled += sum(sum(event == "end" for event, _ in events) - 1 for events in told)
    right = sum(is_right(server, job) for job in jobs)
    used = [x["seconds"] for events in told for name, x in events if name == "progress"]
    for job in jobs:
        if job["error"]:
            print(f"{job['id']}: {job['error']['message']}", flush=True)
    return (
        f"{gone['server']} kills of the server, {gone['workers']} of workers; {lost} lost, "
        f"{doubled} doubled; {states['done']} done, {right} plans right; longest search "
        f"{max(used):.1f} s of {JOB_SECONDS:g} s"
    )


def is_right(server: Server, job: dict[str, Any]) -> bool:
    """Return whether the checker finds the plan of a job right."""
    with TemporaryDirectory() as name:
        plan = Path(name) / "plan.json"
        server.client.download(job["id"], "json", plan)
        instance = read(server.folder / "scenes" / job["scene"] / "instance.json")
        return check(instance, read_solution(plan, instance)).ok


def watched(server: Server, scene: str) -> str:
    """Let many clients watch one job; return what they saw."""
    job = server.client.post("/jobs", {"scene": scene, "seconds": 10})
    seen: list[list[Any]] = []

    def watch() -> None:
        seen.append(list(server.client.events(job["id"])))

    threads = [threading.Thread(target=watch) for _ in range(WATCHERS)]
    before = cpu_seconds(server.process.pid)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = cpu_seconds(server.process.pid) - before
    same = sum(events == seen[0] for events in seen)
    return (
        f"{len(seen)} saw the end, {same} the same {len(seen[0])} events; CPU of the "
        f"server {spent:.1f} s in 10 s"
    )


def drained(server: Server, scene: str) -> str:
    """Queue many short jobs; return how they were drained."""
    began = time.perf_counter()
    ids = [
        server.client.post("/jobs", {"scene": scene, "seconds": 5, "iterations": 1})["id"]
        for _ in range(QUEUED)
    ]
    queued = time.perf_counter() - began
    while server.client.get("/health")["queued"] or server.client.get("/health")["running"]:
        time.sleep(0.5)
    took = time.perf_counter() - began
    jobs = [server.client.get(f"/jobs/{id}") for id in ids]
    starts = [job["started"] for job in jobs]
    done = sum(job["state"] == "done" for job in jobs)
    return (
        f"{done} done, {'in' if starts == sorted(starts) else 'NOT in'} order of arrival; "
        f"taken in {queued:.1f} s, drained in {took:.1f} s"
    )


def idle(server: Server) -> str:
    """Return the memory of a server that has nothing to do."""
    at_work = [memory(pid) for pid in server.workers()]
    time.sleep(IDLE_SECONDS)
    left = len(server.workers())
    return (
        f"{memory(server.process.pid):.0f} MB and {left} workers; before, "
        f"{len(at_work)} workers of {max(at_work, default=0):.0f} MB at most"
    )


def memory(pid: int) -> float:
    """Return the resident memory of a process in MB."""
    text = Path(f"/proc/{pid}/status").read_text()
    line = next(x for x in text.splitlines() if x.startswith("VmRSS"))
    return int(line.split()[1]) / 1000


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _section(records: Sequence[ServeRun]) -> Section:
    header = ("measurement", "found", "elapsed", "load")
    rows = [(x.measure, x.found, f"{x.seconds:.0f} s", f"{x.load:.1f}") for x in records]
    return Section("What `arcfleet serve` withstands", header, rows)


def _caption(records: Sequence[ServeRun]) -> str:
    return (
        f"{WORKERS} workers, residential streets of the bundled map. Every kill is kill "
        "-9; a client that gets no answer asks again with the same Idempotency-Key. "
        "Doubled: a request that made two jobs, or a job that ended twice. Load: processes "
        "that wanted a processor before, those of others too. Seed "
        f"{', '.join(dict.fromkeys(str(x.seed) for x in records))}."
    )


#: Lines of this benchmark.
SERVE_RUNS = Lines(
    "serve.jsonl",
    LineFormat("arcfleet-serve-1", ServeRun, "a run of `benchmarks.serve_chaos`"),
    _section,
    lambda _: "python -m benchmarks.serve_chaos --out benchmarks/results/serve",
    _caption,
)


def main() -> None:
    """Make all measurements and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_out_option(parser)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(describe())
    records = []
    with TemporaryDirectory() as name:
        server = Server(Path(name) / "data")
        try:
            rules = {"map": server.client.ready("m_denver"), "capacity": 6000}
            rules["serve"] = {"kinds": ["residential"]}
            scene = server.client.post("/scenes", rules)["id"]
            runs: tuple[tuple[str, Callable[[], str]], ...] = (
                (
                    f"{KILLS} kills during {JOBS} jobs",
                    partial(chaos, server, scene, options.seed),
                ),
                (f"{WATCHERS} clients watch one job", partial(watched, server, scene)),
                (f"{QUEUED} jobs in the queue", partial(drained, server, scene)),
                ("idle memory", partial(idle, server)),
            )
            for measure, run in runs:
                load, began = os.getloadavg()[0], time.perf_counter()
                found = run()
                record = ServeRun(
                    measure=measure,
                    found=found,
                    seconds=round(time.perf_counter() - began, 1),
                    machine=machine(),
                    commit=commit(),
                    load=round(load, 1),
                    seed=options.seed,
                )
                records.append(record)
                print(f"{measure}: {found}", flush=True)
                if options.out is not None:
                    replace_lines(SERVE_RUNS, options.out, [record])
        finally:
            server.process.kill()
    section = _section(records)
    print(table(section.rows, section.header))


if __name__ == "__main__":
    run_and_exit(main)
