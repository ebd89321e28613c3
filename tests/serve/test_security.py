"""Who may ask, and what nobody may."""

import bz2
import errno
import gzip
import io
import json
import re
import signal
import socket
import stat
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from argon2 import PasswordHasher

from arcfleet.errors import FileError
from arcfleet.serve.app import create_app
from arcfleet.serve.jobs import Board, Limits
from arcfleet.serve.security import Tokens, write_token
from arcfleet.serve.store import Store
from tests.cli.running import arcfleet, one_sentence
from tests.serve.running import PATIENCE, Json, Server, served, town, until


@contextmanager
def with_limits(folder: Path, **limits: Any) -> Iterator[httpx.Client]:
    """A server in this process, with smaller limits."""
    chosen = Limits(**limits)
    store = Store(folder)
    app = create_app(store, Board(store, 1, chosen), limits=chosen)
    running = uvicorn.Server(uvicorn.Config(app, log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=running.run, args=[[listener]])
        thread.start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            with httpx.Client(base_url=address, timeout=PATIENCE) as client:
                yield client
        finally:
            running.should_exit = True
            thread.join()


# --- Hosts and origins --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("127.0.0.1:8321", 200),
        ("[::1]:80", 200),
        ("LOCALHOST", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example:8321", 403),
        ("", 403),
    ],
)
def test_only_names_of_this_machine_are_hosts(
    server: Server, host: str, status: int
) -> None:
    answer = server.client.get("/v1/health", headers={"Host": host})
    assert answer.status_code == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 404),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 404),
    ],
)
def test_pages_of_others_can_change_nothing(
    server: Server, headers: dict[str, str], status: int
) -> None:
    assert server.client.post("/v1/jobs/x/stop", headers=headers).status_code == status
    assert server.client.delete("/v1/jobs/x", headers=headers).status_code == status


def test_the_own_page_may_ask(server: Server) -> None:
    origin = server.address.rstrip("/")
    answer = server.client.post("/v1/jobs/x/stop", headers={"Origin": origin})
    assert answer.status_code == 404


def test_every_answer_has_the_headers_that_browsers_obey(server: Server) -> None:
    for path in ("/", "/v1/health", "/nothing", "/openapi.json", "/v1/jobs/x"):
        headers = server.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers
    assert server.client.get("/v1/health").headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/assets/../../../../etc/passwd",
        "/assets/..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/v1/maps/..%2f..%2flock/streets",
        "/v1/jobs/..%2f..%2farcfleet.sqlite/plan",
        "/v1/scenes/%00/instance",
    ],
)
def test_no_path_leads_out_of_the_page(server: Server, path: str) -> None:
    host, port = "127.0.0.1", int(server.address.rpartition(":")[2].strip("/"))
    with socket.create_connection((host, port)) as line:
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        line.sendall(request.encode())
        answer = b"".join(iter(lambda: line.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 404"), answer[:200]


# --- Tokens -------------------------------------------------------------------------------


def test_a_token_is_told_once_and_kept_as_its_hash(tmp_path: Path) -> None:
    file = tmp_path / "token"
    ran = arcfleet("serve", "--token-file", file, "--new-token")
    token = ran.stdout.strip()
    assert len(token) >= 40
    assert token not in ran.stderr
    assert token not in file.read_text()
    assert file.read_text().startswith("$argon2id$")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    other = arcfleet("serve", "--token-file", tmp_path / "other", "--new-token", "--json")
    assert len(json.loads(other.stdout)["token"]) >= 40
    again = one_sentence(arcfleet("serve", "--token-file", file, "--new-token"))
    assert "is there already" in again
    line = one_sentence(arcfleet("serve", "--new-token"))
    assert "expected --token-file" in line
    (tmp_path / "text").write_text("hello")
    line = one_sentence(arcfleet("serve", "--token-file", tmp_path / "text"))
    assert "expected the hash of a token" in line
    line = one_sentence(arcfleet("serve", "--token-file", tmp_path / "none"))
    assert "--new-token" in line


def test_others_are_served_with_a_token_only(tmp_path: Path) -> None:
    line = one_sentence(arcfleet("serve", "--host", "0.0.0.0", "--data", tmp_path / "d"))
    assert "expected a token for 0.0.0.0" in line
    assert "--new-token" in line
    assert not (tmp_path / "d").exists()


def test_a_server_with_a_token_lets_in_who_has_it(tmp_path: Path) -> None:
    token = write_token(tmp_path / "token")
    options = ("--host", "0.0.0.0", "--token-file", str(tmp_path / "token"))
    with served(tmp_path / "data", *options) as server:
        assert "warning" in server.log.read_text()
        address = server.address.replace("0.0.0.0", "127.0.0.1")
        with httpx.Client(base_url=address, timeout=60) as client:
            for headers in ({}, {"Authorization": "Bearer no"}, {"Authorization": token}):
                answer = client.get("/v1/health", headers=headers)
                assert answer.status_code == 401
                assert answer.json()["error"]["type"] == "unauthorised"
            bearer = {"Authorization": f"Bearer {token}"}
            for path in ("/v1/health", "/openapi.json", "/"):
                assert client.get(path, headers=bearer).status_code == 200
            # A browser: from the page to the form, and back with a cookie.
            assert client.get("/").headers["location"] == "/login"
            assert 'type="password"' in client.get("/login").text
            wrong = client.post("/login", data={"token": "wrong"})
            assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
            foreign = {"Origin": "http://evil.example"}
            assert client.post("/login", data={"token": token}, headers=foreign).is_error
            right = client.post("/login", data={"token": token})
            assert (right.status_code, right.headers["location"]) == (303, "/")
            cookie = right.headers["set-cookie"]
            assert "HttpOnly" in cookie
            assert re.search("samesite=strict", cookie, re.IGNORECASE)
            assert token not in cookie
            assert client.get("/v1/health").status_code == 200
            client.cookies.clear()
            assert client.get("/v1/health").status_code == 401
        server.end(signal.SIGTERM)
        text = server.log.read_text()
        assert token not in text
        for file in server.folder.rglob("*"):
            assert not file.is_file() or token.encode() not in file.read_bytes()


def test_a_proxy_on_this_machine_may_keep_its_own_name(tmp_path: Path) -> None:
    token = write_token(tmp_path / "token")
    with served(tmp_path / "data", "--token-file", str(tmp_path / "token")) as server:
        asked = {"Host": "plans.example", "Authorization": f"Bearer {token}"}
        assert server.client.get("/v1/health", headers=asked).status_code == 200
        own = asked | {"Origin": "https://plans.example"}
        assert server.client.delete("/v1/jobs/x", headers=own).status_code == 404
        foreign = asked | {"Origin": "https://evil.example"}
        assert server.client.delete("/v1/jobs/x", headers=foreign).status_code == 403
        del asked["Authorization"]
        assert server.client.get("/v1/health", headers=asked).status_code == 401


def test_many_wrong_tokens_close_the_door_for_a_while(tmp_path: Path) -> None:
    fast = PasswordHasher(time_cost=1, memory_cost=64)
    (tmp_path / "token").write_text(fast.hash("right"))
    tokens = Tokens(tmp_path / "token")
    assert not any(tokens.fits("wrong") for _ in range(21))
    assert not tokens.fits("right")
    assert Tokens(tmp_path / "token").fits("right")


# --- Sizes and counts ---------------------------------------------------------------------


def test_bodies_have_limits(tmp_path: Path) -> None:
    with with_limits(tmp_path / "data", body=1000, upload=2000) as client:

        def error(answer: httpx.Response) -> str:
            assert answer.status_code == 413, answer.text
            found: str = answer.json()["error"]["type"]
            return found

        assert error(client.post("/v1/scenes", content=b"x" * 1001)) == "too_large"
        chunks = (b"x" * 600 for _ in range(3))
        assert error(client.post("/v1/scenes", content=chunks)) == "too_large"
        assert error(client.post("/v1/maps?name=a", content=b"x" * 2001)) == "too_large"
        many = (b"x" * 600 for _ in range(5))
        assert error(client.post("/v1/maps?name=a", content=many)) == "too_large"
        assert list((tmp_path / "data" / "parts").iterdir()) == []


def test_counts_have_limits(tmp_path: Path) -> None:
    with with_limits(tmp_path / "data", queued=0, maps=1, watchers=0) as client:
        full = client.post("/v1/maps?name=a", content=town())
        assert (full.status_code, full.json()["error"]["type"]) == (429, "too_many")
        made = client.post("/v1/scenes", json={"instance": "example:denver"})
        full = client.post("/v1/jobs", json={"scene": made.json()["id"]})
        assert full.status_code == 429
        assert full.headers["retry-after"]
        assert list((tmp_path / "data" / "jobs").iterdir()) == []


def test_what_takes_too_long_is_ended(tmp_path: Path) -> None:
    with with_limits(tmp_path / "data", scene_seconds=0.0) as client:
        late = client.post("/v1/scenes", json={"instance": "example:denver"})
        assert (late.status_code, late.json()["error"]["type"]) == (504, "timeout")
        assert list((tmp_path / "data" / "scenes").iterdir()) == []


def test_what_takes_too_much_memory_fails(tmp_path: Path) -> None:
    with with_limits(tmp_path / "data", read_memory=1 << 20) as client:
        answer = client.post("/v1/maps?name=big", content=town(100))
        path = f"/v1/maps/{answer.json()['id']}"
        until(lambda: client.get(path).json()["state"] != "reading")
        found = client.get(path).json()
        assert found["state"] == "failed"
        assert found["error"]["type"] == "too_large"


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_bomb_is_refused(server: Server, pack: Any) -> None:
    found = server.upload("bomb.osm.gz", pack(b"<osm>" + b" " * (140 << 20)))
    assert found["state"] == "failed"
    assert found["error"]["type"] in ("invalid", "too_large")


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b'{"type": 1e999}',
        b"\x00" * 100,
        b"<osm" * 1000,
        b"{}",
        b"PK\x03\x04",
    ],
)
def test_damaged_uploads_fail_with_a_sentence(server: Server, data: bytes) -> None:
    found = server.upload("../../../etc/passwd", data)
    assert found["state"] == "failed"
    assert found["error"]["type"] == "invalid"
    assert str(server.folder) not in found["error"]["message"]
    assert not list(server.folder.rglob("passwd"))


def test_a_mistake_of_ours_is_answered_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with with_limits(tmp_path / "data") as client:
        monkeypatch.delattr(Store, "counts")
        answer = client.get("/v1/health")
        assert (answer.status_code, answer.json()["error"]["type"]) == (500, "internal")
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("raised", ["system", "file"])
def test_a_full_disk_is_no_fault_of_the_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: str
) -> None:
    with with_limits(tmp_path / "data") as client:
        scene = client.post("/v1/scenes", json={"instance": "example:denver"}).json()

        def full(path: Path, value: object) -> None:
            error = OSError(errno.ENOSPC, "No space left on device", str(path))
            if raised == "system":
                raise error
            raise FileError(path, "cannot be written (No space left on device)") from error

        monkeypatch.setattr("arcfleet.serve.app.write_json", full)
        answer = client.post("/v1/jobs", json={"scene": scene["id"]})
        assert (answer.status_code, answer.json()["error"]["type"]) == (500, "internal")
        message = answer.json()["error"]["message"]
        assert "No space left on device" in message
        assert "free some space" in message
        assert str(tmp_path) not in message
        assert list((tmp_path / "data" / "jobs").iterdir()) == []


def test_those_who_watch_see_the_end_that_a_full_disk_kept_out_of_the_log(
    tmp_path: Path,
) -> None:
    with with_limits(tmp_path / "data") as client:
        scene = client.post("/v1/scenes", json={"instance": "example:denver"}).json()
        body = {"scene": scene["id"], "iterations": 5}
        path = f"/v1/jobs/{client.post('/v1/jobs', json=body).json()['id']}"
        until(lambda: client.get(path).json()["ended"] is not None)
        log = tmp_path / "data" / "jobs" / path.rpartition("/")[2] / "events.jsonl"
        until(lambda: b'["end",' in log.read_bytes())
        whole = client.get(f"{path}/events").text
        kept = log.read_bytes().partition(b'["end",')[0]
        log.write_bytes(kept + b'["end",{"id":')
        assert client.get(f"{path}/events").text == whole
        last = {"Last-Event-ID": str(kept.count(b"\n") + 1)}
        assert "event: end" not in client.get(f"{path}/events", headers=last).text


def test_an_upload_that_breaks_off_leaves_nothing(server: Server) -> None:
    host, port = "127.0.0.1", int(server.address.rpartition(":")[2].strip("/"))
    before = server.get("/maps")
    with socket.create_connection((host, port)) as line:
        head = (
            "POST /v1/maps?name=a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n"
        )
        line.sendall(f"{head}{{".encode())
        until(lambda: any((server.folder / "parts").iterdir()))
    until(lambda: not any((server.folder / "parts").iterdir()))
    assert server.get("/maps") == before
    assert "Traceback" not in server.log.read_text()


# --- Nothing in a request opens a file ----------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_no_upload_leads_to_another_file(
    server: Server, tmp_path: Path, packed: bool
) -> None:
    secret = tmp_path / "secret.geojson"
    secret.write_bytes(town(2))
    data = (
        "<OGRVRTDataSource><!-- <kml --><OGRVRTLayer name='secret'><SrcDataSource>"
        f"{secret}</SrcDataSource></OGRVRTLayer></OGRVRTDataSource>"
    ).encode()
    if packed:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("doc.kml", data)
        data = stream.getvalue()
    found = server.upload("town.kml", data)
    assert found["state"] == "failed"
    message = found["error"]["message"]
    assert message.startswith("town.kml: expected an OpenStreetMap extract")
    assert str(server.folder) not in message


def test_no_rule_of_a_request_names_a_file(server: Server, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("name,demand\nRow 1,5\n")
    usual = {"map": "m_denver", "capacity": 9000}
    for rule in ("serve_file", "demand_file", "exclude_file", "drive_area", "speeds"):
        answer = server.client.post("/v1/scenes", json=usual | {rule: str(secret)})
        assert answer.status_code == 422
        assert answer.json()["error"]["field"] == rule
    for body in (
        usual | {"area": str(secret)},
        usual | {"area": {"type": "FeatureCollection", "features": str(secret)}},
        usual | {"serve": {"names": [str(secret)]}},
        {"instance": str(secret)},
        {"instance": {"format": str(secret)}},
        {"instance": "example:../../../etc/passwd"},
    ):
        answer = server.client.post("/v1/scenes", json=body)
        assert answer.status_code == 422, answer.text
        assert "Row 1" not in answer.text
    plan = {"scene": "s_x", "plan": str(secret)}
    assert server.client.post("/v1/plans", json=plan).status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        b'{"map": "m_denver", "depot": [NaN, 1]}',
        b'{"map": "m_denver", "depot": [1e999, 1]}',
        b'{"map": "m_denver", "area": {"type": "Polygon", "coordinates": [NaN]}}',
        b'{"map": "m_denver", "name": "\\ud800"}',
        b'{"map": "\\ud800", "\\ud800": 1}',
        b'{"instance": {"a": "\\ud800"}}',
        b'{"map": "m_denver", "capacity": 1' + b"0" * 5000 + b"}",
        b'{"map": ' + b"[" * 100_000,
        b'{"instance": {"a": ' + b"[" * 900 + b"]" * 900 + b"}}",
        b"\xff\xfe{}",
        b"",
        b"null",
        b"[]",
    ],
)
def test_strange_json_is_refused_with_a_sentence(server: Server, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = server.client.post("/v1/scenes", content=body, headers=headers)
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["error"]["type"] == "invalid"


def test_names_of_uploads_are_labels(server: Server) -> None:
    found = server.upload("a\nb/../c.osm.pbf", town(3))
    assert found["name"] == "a?b/../c"
    files = (server.folder / "maps" / found["id"]).iterdir()
    assert sorted(file.name for file in files) == ["streets.geojson", "upload"]


def test_the_page_has_no_inline_script(server: Server) -> None:
    page = server.client.get("/").text
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"\son\w+=", page)
    assert "http://" not in page
    assert "https://" not in page


def test_the_description_of_the_api_has_examples(server: Server) -> None:
    described: Json = server.client.get("/openapi.json").json()
    schemas = described["components"]["schemas"]
    assert schemas["SceneRequest"]["examples"]
    assert schemas["JobRequest"]["examples"]
    assert len(described["paths"]) == 16
    assert json.dumps(described)
