"""A client of `arcfleet serve`, with the standard library alone.

arcfleet serve                       # in another terminal
python examples/serve_client.py      # plans a part of Denver, writes plan.xlsx
"""

import json
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

Json = dict[str, Any]


class ServerError(Exception):
    """A request that the server refused; the message says what to do."""


class Client:
    """The API of one server."""

    def __init__(self, address: str = "http://127.0.0.1:8321", token: str = "") -> None:
        self.base = address.rstrip("/") + "/v1"
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def _open(self, path: str, data: bytes | None = None, **headers: str) -> Any:
        more = {name.replace("_", "-"): text for name, text in headers.items()}
        request = Request(self.base + path, data, self.headers | more)
        try:
            return urlopen(request)
        except HTTPError as error:
            raise ServerError(json.load(error)["error"]["message"]) from None

    def get(self, path: str) -> Any:
        """Return the JSON at a path."""
        with self._open(path) as answer:
            return json.load(answer)

    def post(self, path: str, body: Json | bytes, key: str = "") -> Json:
        """Make something; asked again with the same key, return what is there."""
        data, kind = body, "application/octet-stream"
        if not isinstance(data, bytes):
            data, kind = json.dumps(data).encode(), "application/json"
        key = key or str(uuid.uuid4())
        with self._open(path, data, Content_Type=kind, Idempotency_Key=key) as answer:
            found: Json = json.load(answer)
            return found

    def upload(self, file: Path) -> str:
        """Upload a map and return its id when it is read."""
        query = urlencode({"name": file.name})
        return self.ready(self.post(f"/maps?{query}", file.read_bytes())["id"])

    def ready(self, map_id: str) -> str:
        """Return the id of a map when it is read."""
        while (found := self.get(f"/maps/{map_id}"))["state"] == "reading":
            time.sleep(0.2)
        if found["error"]:
            raise ServerError(found["error"]["message"])
        return map_id

    def events(self, job: str, last: int = 0) -> Iterator[tuple[str, Json]]:
        """Yield what happens to a job until it has ended."""
        with self._open(f"/jobs/{job}/events", Last_Event_ID=str(last)) as lines:
            for line in (raw.decode().rstrip("\n") for raw in lines):
                name, _, text = line.partition(": ")
                if name == "event":
                    event = text
                elif name == "data":
                    yield event, json.loads(text)

    def solve(self, scene: str, **request: Any) -> Json:
        """Search for a plan and return the job when it has ended."""
        job = self.post("/jobs", {"scene": scene, **request})
        for event, data in self.events(job["id"]):
            if event == "progress":
                print(f"{data['seconds']:6.1f} s  cost {data['cost']}", file=sys.stderr)
        if data["error"]:
            raise ServerError(data["error"]["message"])
        return data

    def download(self, job: str, form: str, file: Path) -> None:
        """Write the plan of a job in a format: json, xlsx, gpx, sheets, html, ..."""
        with self._open(f"/jobs/{job}/plan?format={form}") as answer:
            file.write_bytes(answer.read())


if __name__ == "__main__":
    client = Client(*sys.argv[1:])
    town = client.post("/scenes", {"map": client.ready("m_denver"), "capacity": 20000})
    plan = client.solve(town["id"], seconds=5)
    client.download(plan["id"], "xlsx", Path("plan.xlsx"))
    print(f"cost {plan['best']['cost']}, {plan['best']['routes']} routes: plan.xlsx")
