"""A real server in a process of its own, and a tiny town to plan."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.cli.running import ARCFLEET

Json = dict[str, Any]

#: Nothing here should take so long; a test that does hangs.
PATIENCE = 60.0
#: Streets of the town, each way along its side.
SIDE = 5


def town(side: int = SIDE) -> bytes:
    """A grid of streets as GeoJSON; rows are residential, columns are tertiary."""
    features = []
    at = [[(7 + 0.002 * x, 50 + 0.0014 * y) for x in range(side)] for y in range(side)]
    for number in range(side):
        row, column = at[number], [at[y][number] for y in range(side)]
        for line, kind, name in (
            (row, "residential", f"Row {number}"),
            (column, "tertiary", f"Column {number}"),
        ):
            features.append(
                {
                    "type": "Feature",
                    "properties": {"highway": kind, "name": name},
                    "geometry": {"type": "LineString", "coordinates": line},
                }
            )
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


class Server:
    """A server with its data folder; it may be killed and started again."""

    def __init__(self, folder: Path, *arguments: str, workers: int = 2) -> None:
        self.folder, self.workers, self.arguments = folder, workers, arguments
        self.headers: dict[str, str] = {}
        self.start()

    def start(self) -> None:
        self.log = self.folder.with_suffix(".log")
        command = [*ARCFLEET, "serve", "--port", "0", "--data", str(self.folder)]
        command += ["--workers", str(self.workers), *self.arguments]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        assert self.address.startswith("http://"), self.log.read_text()
        self.client = httpx.Client(
            base_url=self.address, timeout=PATIENCE, headers=self.headers
        )
        until(self._answers)

    def _answers(self) -> bool:
        try:
            return bool(self.client.get("/login").status_code)
        except httpx.TransportError:
            return False

    def end(self, number: int = signal.SIGTERM) -> int:
        self.client.close()
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def children(self) -> list[int]:
        """Numbers of the worker processes."""
        return children_of(self.process.pid)

    # --- Requests that must succeed -------------------------------------------------------

    def get(self, path: str, **more: Any) -> Any:
        answer = self.client.get(f"/v1{path}", **more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Json, **headers: str) -> Json:
        answer = self.client.post(f"/v1{path}", json=body, headers=headers)
        assert answer.status_code in (200, 201, 202), answer.text
        found: Json = answer.json()
        return found

    def upload(self, name: str, data: bytes) -> Json:
        answer = self.client.post("/v1/maps", params={"name": name}, content=data)
        assert answer.status_code == 202, answer.text
        id = answer.json()["id"]
        until(lambda: self.get(f"/maps/{id}")["state"] != "reading")
        found: Json = self.get(f"/maps/{id}")
        return found

    def job(self, scene: str, **request: Any) -> Json:
        """Queue a job."""
        return self.post(
            "/jobs", {"scene": scene, "seconds": 60, "iterations": 500} | request
        )

    def ended(self, job: Json) -> Json:
        """Wait for the end of a job."""
        until(lambda: self.get(f"/jobs/{job['id']}")["ended"] is not None)
        found: Json = self.get(f"/jobs/{job['id']}")
        return found

    def solved(self, scene: str, **request: Any) -> Json:
        """Queue a job and wait until it is done."""
        found = self.ended(self.job(scene, **request))
        assert found["state"] == "done", found
        return found

    def routes(self, job: Json) -> dict[int, int]:
        """Return the route of each link of a job's plan."""
        drawn = self.get(f"/jobs/{job['id']}/plan")
        facts = [feature["properties"] for feature in drawn["features"]]
        return {x["link"]: x["route"] for x in facts if x["kind"] == "service"}

    def events(self, id: str, last: int | None = None) -> list[tuple[int, str, Json]]:
        """Return all events of a job that ends: number, name and data."""
        return list(self.watch(id, last))

    def watch(self, id: str, last: int | None = None) -> Iterator[tuple[int, str, Json]]:
        headers = {} if last is None else {"Last-Event-ID": str(last)}
        with self.client.stream("GET", f"/v1/jobs/{id}/events", headers=headers) as stream:
            fields: dict[str, str] = {}
            for line in stream.iter_lines():
                if not line and "id" in fields:
                    data = json.loads(fields["data"])
                    yield int(fields["id"]), fields["event"], data
                    fields = {}
                elif line and not line.startswith(":"):
                    name, _, value = line.partition(": ")
                    fields[name] = value

    def watch_until(
        self, id: str, event: str, state: str, times: int
    ) -> list[tuple[int, str, Json]]:
        """Return the events of a job up to the last of some with a state."""
        found = []
        for told in self.watch(id):
            found.append(told)
            times -= told[1] == event and told[2].get("state") == state
            if not times:
                break
        return found


def until(done: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started and that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@contextmanager
def served(folder: Path, *arguments: str, workers: int = 2) -> Iterator[Server]:
    """A server that ends with the test."""
    server = Server(folder, *arguments, workers=workers)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.end(signal.SIGKILL)
