"""Servers and workers that are killed: nothing is lost, nothing is done twice."""

import fcntl
import os
import signal
from pathlib import Path

import pytest

from arcfleet.serve.store import Store, append_event, last_progress, write_json
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


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_server_that_ended_goes_on_where_it_was(
    folder: Path, number: signal.Signals
) -> None:
    with served(folder, workers=1) as server:
        scene = town_scene(server)
        running = server.job(scene["id"], seconds=600, iterations=None)
        waiting = server.job(scene["id"], iterations=5)
        best = first_plan(server, running)
        workers = server.children()
        assert server.end(number) == (-9 if number == signal.SIGKILL else 0)
        until(lambda: not any(map(is_alive, workers)))

        server.start()
        found = first_plan(server, running)
        assert found["cost"] <= best["cost"]
        until(lambda: server.get(f"/jobs/{running['id']}")["state"] == "running")
        assert server.get(f"/jobs/{waiting['id']}")["state"] == "queued"
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


def test_a_plan_that_was_finished_as_the_server_died_is_not_searched_again(
    folder: Path,
) -> None:
    with served(folder, workers=1) as server:
        scene = town_scene(server)
        done = server.solved(scene["id"], iterations=50)
        server.end()
    # As if the server had died before it noted the end.
    store = Store(folder)
    store._db.execute("update jobs set state = 'running', ended = null, result = null")  # noqa: SLF001
    store.close()
    with served(folder, workers=1) as server:
        again = server.ended(done)
        assert again["state"] == "done"
        assert again["result"]["cost"] == done["result"]["cost"]
        assert again["best"]["iterations"] == done["best"]["iterations"]


def test_a_stopped_job_stays_stopped_over_a_restart(folder: Path) -> None:
    with served(folder, workers=1) as server:
        scene = town_scene(server)
        job = server.job(scene["id"], seconds=600, iterations=None)
        first_plan(server, job)
        server.end(signal.SIGKILL)
    store = Store(folder)
    store.ask_to_stop(job["id"])
    store.close()
    with served(folder, workers=1) as server:
        done = server.ended(job)
        assert (done["state"], done["result"]["stopped_by"]) == ("done", "user")


def test_keys_and_maps_outlive_the_server(folder: Path) -> None:
    with served(folder, workers=1) as server:
        scene = town_scene(server)
        body = {"scene": scene["id"], "seconds": 1, "iterations": 5}
        first = server.post("/jobs", body, **{"Idempotency-Key": "k"})
        server.end(signal.SIGKILL)
        server.start()
        assert server.post("/jobs", body, **{"Idempotency-Key": "k"})["id"] == first["id"]
        assert make_town_scene(server, scene["map"])["streets"] == 20


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


def test_a_log_with_a_broken_line_is_still_read(tmp_path: Path) -> None:
    append_event(tmp_path, "progress", {"seconds": 1.0, "iterations": 5, "cost": 9})
    with (tmp_path / "events.jsonl").open("ab") as stream:
        stream.write(b'["progress",{"seco\n')
    assert last_progress(tmp_path)["seconds"] == 1.0
    write_json(tmp_path / "best.json", {"cost": 1})
