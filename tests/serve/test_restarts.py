"""Servers and workers that are killed: nothing is lost, nothing is done twice."""

import fcntl
import os
import signal
from pathlib import Path

import pytest

from arcfleet.serve.store import Store, last_progress
from tests.cli.running import arcfleet, one_sentence
from tests.serve.conftest import make_town_scene
from tests.serve.running import Json, Server, is_alive, served, town, until


def town_scene(server: Server) -> Json:
    return make_town_scene(server, server.upload("town.geojson", town())["id"])


def is_held(lock: Path) -> bool:
    """Return whether a worker is at a job."""
    if not lock.exists():
        return False
    with lock.open() as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def first_plan(server: Server, job: Json) -> Json:
    """Wait for the first plan of a job."""
    until(lambda: server.get(f"/jobs/{job['id']}")["best"] is not None)
    best: Json = server.get(f"/jobs/{job['id']}")["best"]
    return best


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_that_ended_goes_on_where_it_was(
    folder: Path, number: signal.Signals
) -> None:
    with served(folder, workers=1) as server:
        scene = town_scene(server)
        running = server.job(scene["id"], seconds=600, iterations=None)
        body = {"scene": scene["id"], "seconds": 60, "iterations": 5}
        waiting = server.post("/jobs", body, **{"Idempotency-Key": "waiting"})
        best = first_plan(server, running)
        workers = server.children()
        assert server.end(number) == (-9 if number == signal.SIGKILL else 0)
        until(lambda: not any(map(is_alive, workers)))

        server.start()
        found = first_plan(server, running)
        assert found["cost"] <= best["cost"]
        until(lambda: server.get(f"/jobs/{running['id']}")["state"] == "running")
        again = server.post("/jobs", body, **{"Idempotency-Key": "waiting"})
        assert (again["id"], again["state"]) == (waiting["id"], "queued")
        assert make_town_scene(server, scene["map"])["streets"] == 20
        server.client.post(f"/v1/jobs/{running['id']}/stop")
        done = server.ended(running)
        assert done["state"] == "done"
        assert done["result"]["cost"] <= best["cost"]
        assert server.ended(waiting)["state"] == "done"
        assert len(server.get("/jobs")["jobs"]) == 2
        told = [name for _, name, _ in server.events(running["id"])]
        assert told.count("end") == 1


def test_a_job_whose_worker_was_killed_goes_on_with_the_seconds_left(folder: Path) -> None:
    with served(folder, workers=1) as server:
        scene = town_scene(server)
        job = server.job(scene["id"], seconds=600, iterations=None)
        later = server.job(scene["id"], iterations=5)
        best = first_plan(server, job)
        log = server.folder / "jobs" / job["id"]
        until(lambda: last_progress(log)["iterations"] > 1000)
        for pid in server.children():
            os.kill(pid, signal.SIGKILL)
        states = [
            data["state"]
            for _, name, data in server.watch_until(job["id"], "state", "running", 2)
            if name == "state"
        ]
        assert states == ["queued", "running", "queued", "running"]
        assert server.get(f"/jobs/{later['id']}")["state"] == "queued"
        server.client.post(f"/v1/jobs/{job['id']}/stop")
        done = server.ended(job)
        assert done["state"] == "done"
        assert done["result"]["cost"] <= best["cost"]
        assert done["best"]["iterations"] >= best["iterations"]
        seconds = [
            x["seconds"] for _, name, x in server.events(job["id"]) if name == "progress"
        ]
        assert seconds == sorted(seconds)
        assert server.ended(later)["state"] == "done"


def test_a_job_that_only_ever_loses_its_worker_fails(folder: Path) -> None:
    with served(folder, workers=1) as server:
        # Without a plan to find there is no progress to count.
        until(lambda: server.get("/maps/m_denver")["state"] == "ready")
        found = server.post("/scenes", {"map": "m_denver", "capacity": 3000})
        job = server.job(found["id"], method="maens", seconds=3000, iterations=None)
        log = server.folder / "jobs" / job["id"]

        def failed() -> bool:
            if is_held(log / "lock") and last_progress(log)["iterations"] == 0:
                for pid in server.children():
                    os.kill(pid, signal.SIGKILL)
            return bool(server.get(f"/jobs/{job['id']}")["state"] == "failed")

        until(failed)
        error = server.get(f"/jobs/{job['id']}")["error"]
        assert "ended 3 times in a row" in error["message"]
        assert server.solved(found["id"], iterations=1)["state"] == "done"


def test_the_worker_of_a_map_may_die_once(folder: Path) -> None:
    with served(folder, workers=1) as server:
        until(lambda: server.get("/maps/m_denver")["state"] == "ready")
        answer = server.client.post("/v1/maps?name=town.geojson", content=town(40))
        until(lambda: bool(server.children()))
        for pid in server.children():
            os.kill(pid, signal.SIGKILL)
        id = answer.json()["id"]
        until(lambda: server.get(f"/maps/{id}")["state"] != "reading")
        assert server.get(f"/maps/{id}")["state"] == "ready"


def test_what_was_noted_as_the_server_died_is_not_forgotten(folder: Path) -> None:
    with served(folder, workers=1) as server:
        scene = town_scene(server)
        done = server.solved(scene["id"], iterations=50)
        stopped = server.job(scene["id"], seconds=600, iterations=None)
        first_plan(server, stopped)
        server.end(signal.SIGKILL)
        # As if it had died before it noted the end of one job, and as the user stopped the
        # other.
        store = Store(folder)
        store._db.execute(  # noqa: SLF001
            "update jobs set state = 'running', ended = null, result = null where id = ?",
            (done["id"],),
        )
        store.ask_to_stop(stopped["id"])
        store.close()

        server.start()
        again = server.ended(done)
        assert again["state"] == "done"
        assert again["result"]["cost"] == done["result"]["cost"]
        assert again["best"]["iterations"] == done["best"]["iterations"]
        found = server.ended(stopped)
        assert (found["state"], found["result"]["stopped_by"]) == ("done", "user")


def test_two_servers_cannot_share_a_data_folder(folder: Path) -> None:
    with served(folder):
        line = one_sentence(arcfleet("serve", "--port", 0, "--data", folder))
        assert "in use by another server" in line


def test_a_port_in_use_is_told_in_a_sentence(folder: Path) -> None:
    with served(folder) as server:
        port = server.address.rpartition(":")[2].strip("/")
        line = one_sentence(arcfleet("serve", "--port", port, "--data", f"{folder}2"))
        assert f"127.0.0.1:{port} cannot be used" in line


def test_a_folder_that_cannot_be_written_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    line = one_sentence(arcfleet("serve", "--port", 0, "--data", tmp_path / "file" / "x"))
    assert "cannot be written" in line
