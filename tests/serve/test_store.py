"""What the server keeps, and what it tells when it cannot."""

import errno
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arcfleet.errors import FileError
from arcfleet.serve.jobs import Board, Limits, Worker
from arcfleet.serve.store import (
    KeyUsedError,
    MapGoneError,
    Store,
    append_event,
    last_progress,
    write_json,
)
from arcfleet.serve.worker import error_facts
from tests.helpers import files_of_at_most, refused
from tests.serve.running import until


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    kept = Store(tmp_path / "data")
    yield kept
    kept.close()


def queued(store: Store, *ids: str) -> None:
    for id in ids:
        store.add_job(id, "s_1", {"scene": "s_1"}, key=f"key of {id}", digest=id)


def test_jobs_leave_the_queue_in_order_and_return_to_its_head(store: Store) -> None:
    queued(store, "j_1", "j_2", "j_3")
    first, second = store.take_job(), store.take_job()
    assert first is not None
    assert second is not None
    assert (first["id"], second["id"]) == ("j_1", "j_2")
    store.requeue("j_2", deaths=1, used=0.5)
    store.requeue("j_1", deaths=1, used=0.5)
    taken = [store.take_job() for _ in range(4)]
    assert [row and row["id"] for row in taken] == ["j_1", "j_2", "j_3", None]


def test_a_job_ends_once(store: Store) -> None:
    queued(store, "j_1")
    assert store.end_job("j_1", "cancelled")
    assert not store.end_job("j_1", "done")
    store.requeue("j_1", deaths=0, used=0.0)
    found = store.job("j_1")
    assert found is not None
    assert found["state"] == "cancelled"
    log = (store.job_folder("j_1") / "events.jsonl").read_text()
    assert log.count('["end",') == 1


def test_a_key_is_for_one_request(store: Store) -> None:
    queued(store, "j_1")
    assert store.made_before("key of j_1", "j_1") == "j_1"
    assert store.made_before("another", "j_1") is None
    with pytest.raises(KeyUsedError):
        store.made_before("key of j_1", "something else")
    # Nothing is made by halves: the key is taken, so there is no job either.
    with pytest.raises(sqlite3.IntegrityError):
        store.add_job("j_2", "s_1", {}, key="key of j_1", digest="x")
    assert store.job("j_2") is None


def test_everything_is_there_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "data")
    queued(store, "j_1")
    before = store.job("j_1")
    store.close()
    store = Store(tmp_path / "data")
    assert store.job("j_1") == before
    store.close()


def test_tables_of_a_later_version_are_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "data")
    store._db.execute("pragma user_version=99")  # noqa: SLF001
    store.close()
    with refused(FileError, "its version is 99"):
        Store(tmp_path / "data")


def test_only_its_owner_looks_into_the_data_folder(store: Store) -> None:
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700


def test_progress_is_found_before_long_lines(tmp_path: Path) -> None:
    append_event(tmp_path, "progress", {"seconds": 1.0, "iterations": 5, "cost": 9})
    append_event(tmp_path, "state", {"request": {"exclude": list(range(100_000))}})
    assert last_progress(tmp_path)["iterations"] == 5


def test_no_scene_is_added_to_a_map_that_is_gone(store: Store) -> None:
    store.add_map("m_1", "town.geojson")
    assert store.remove_map("m_1")
    with pytest.raises(MapGoneError):
        store.add_scene("s_1", "m_1", {}, {})
    assert store.scene("s_1") is None


def test_a_worker_takes_no_program_of_the_folder_it_is_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "queue.py").write_text("raise RuntimeError('a file of the user')")
    monkeypatch.chdir(tmp_path)
    worker = Worker()
    try:
        request = {"name": "", "instance": "example:denver"}
        task = {"task": "scene", "request": request, "folder": str(tmp_path / "s")}
        assert worker.do(task, 60)["streets"] > 0
    finally:
        worker.kill()


def test_a_log_with_a_broken_line_is_still_read(tmp_path: Path) -> None:
    append_event(tmp_path, "progress", {"seconds": 1.0, "iterations": 5, "cost": 9})
    with (tmp_path / "events.jsonl").open("ab") as stream:
        stream.write(b'["progress",{"seco\n')
    assert last_progress(tmp_path)["seconds"] == 1.0


@pytest.mark.parametrize("cause", ["file", "system"])
def test_a_full_disk_is_told_in_a_sentence(tmp_path: Path, cause: str) -> None:
    error: Exception = OSError(errno.ENOSPC, "No space left on device")
    if cause == "file":
        with pytest.raises(FileError) as caught, files_of_at_most(10):
            write_json(tmp_path / "file", list(range(100)))
        error = caught.value
        assert isinstance(error.__cause__, OSError)
        error.__cause__.errno = errno.ENOSPC  # it was EFBIG
    facts = error_facts(error)
    assert facts["type"] == "internal"
    assert facts["message"].startswith("the disk of the server is full")
    assert str(tmp_path) not in facts["message"]


def test_a_job_that_cannot_be_run_fails_and_the_next_one_runs(store: Store) -> None:
    queued(store, "j_1", "j_2")  # without the files that a worker needs
    board = Board(store, 1, Limits())
    board.start()
    until(lambda: store.counts()["failed"] == 2)
    board.end()
    found = store.job("j_1")
    assert found is not None
    assert found["error"]["type"] == "internal"


def test_an_end_is_noted_as_soon_as_the_disk_lets_us(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued(store, "j_1")
    board = Board(store, 1, Limits())
    end_job, tries = store.end_job, []

    def full_at_first(*arguments: Any, **facts: Any) -> bool:
        tries.append(arguments)
        if len(tries) == 1:
            raise sqlite3.OperationalError("database or disk is full")
        return end_job(*arguments, **facts)

    monkeypatch.setattr(store, "end_job", full_at_first)
    monkeypatch.setattr(board, "_pause", lambda: None)
    board._end("j_1", {"error": {"type": "internal", "message": "x"}})  # noqa: SLF001
    found = store.job("j_1")
    assert found is not None
    assert (found["state"], len(tries)) == ("failed", 2)
