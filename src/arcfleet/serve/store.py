"""What was made, kept in a data folder: rows in SQLite, files beside it.

Maps, scenes and plans never change once they are made. Only the server writes rows; a
worker process writes files into the folder of its job, each of them whole or not at all,
and lines of its log. So either may be killed at any time: what a job has found lies in its
files, and a row says "running" until somebody has looked there.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import secrets
import shutil
import sqlite3
import threading
from collections import Counter
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from arcfleet._files import write_bytes_atomically
from arcfleet.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

#: Version of the tables.
_VERSION = 1
_TABLES = """
create table maps(
    number integer primary key autoincrement, id text unique not null, name text not null,
    state text not null, facts text, error text, created text not null,
    bundled integer not null);
create table scenes(
    number integer primary key autoincrement, id text unique not null, map text,
    facts text not null, request text not null, created text not null);
create table jobs(
    number integer primary key autoincrement, id text unique not null, scene text not null,
    state text not null, request text not null, created text not null, started text,
    ended text, stop integer not null default 0, deaths integer not null default 0,
    used real not null default 0, best text, result text, error text,
    repair text not null default '[]');
create index jobs_by_state on jobs(state, number);
create table keys(key text primary key, digest text not null, id text not null);
"""
ENDED = ("done", "failed", "cancelled")
#: Of the log of a job that is read first to find its last line of progress.
_TAIL = 1 << 16
#: What the name of a map lacks of that of its file.
_SUFFIXES = (".gz", ".bz2", ".pbf", ".osm", ".geojson", ".json", ".xml")
#: Requests with different keys seldom wait for each other.
_KEY_LOCKS = 64

Row = dict[str, Any]


class MapGoneError(Exception):
    """A scene was made of a map that was removed meanwhile."""


class KeyUsedError(Exception):
    """An idempotency key came again with another request."""


def new_id(prefix: str) -> str:
    """Return an id that nobody can guess."""
    return f"{prefix}_{secrets.token_urlsafe(15)}"


def now() -> str:
    """Return the time as ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def digest(*parts: bytes) -> str:
    """Return the digest that tells requests apart."""
    found = hashlib.sha256()
    for part in parts:
        found.update(hashlib.sha256(part).digest())
    return found.hexdigest()


def write_json(path: Path, value: object) -> None:
    """Write a value as JSON, whole or not at all."""
    write_bytes_atomically(path, json.dumps(value, separators=(",", ":")).encode())


def read_json(path: Path) -> Any:
    """Return what a file of `write_json` holds; None where there is none."""
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None


class Store:
    """The data folder of one server, which no other may use at the same time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for part in ("maps", "scenes", "jobs", "parts"):
                (folder / part).mkdir(exist_ok=True)
            self._lock_file = (folder / "lock").open("w")
        except OSError as error:
            raise FileError(
                folder,
                f"cannot be written ({error.strerror}); choose another folder with --data",
            ) from error
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock_file.close()
            raise FileError(
                folder,
                "is in use by another server; stop it, or choose another folder with "
                "--data",
            ) from error
        self._lock = threading.RLock()
        self._db = sqlite3.connect(":memory:")  # until the file is open
        self._key_locks = [threading.Lock() for _ in range(_KEY_LOCKS)]
        try:
            self._open()
        except sqlite3.Error as error:
            self.close()
            raise FileError(
                folder / "arcfleet.sqlite",
                f"cannot be used ({error}); choose another folder with --data",
            ) from error
        for left in (folder / "parts").iterdir():  # of uploads that a server did not end
            remove(left)

    def _open(self) -> None:
        self._db = sqlite3.connect(
            self.folder / "arcfleet.sqlite", check_same_thread=False, isolation_level=None
        )
        self._db.row_factory = sqlite3.Row
        self._db.execute("pragma journal_mode=wal")
        self._db.execute("pragma synchronous=full")
        version = self._db.execute("pragma user_version").fetchone()[0]
        if version == 0:
            script = f"begin; {_TABLES} pragma user_version={_VERSION}; commit;"
            self._db.executescript(script)
        elif version != _VERSION:
            raise sqlite3.Error(f"its version is {version}, this program's is {_VERSION}")

    def close(self) -> None:
        """Close the tables and let another server use the folder."""
        with self._lock:
            self._db.close()
        self._lock_file.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._db.execute("begin immediate")
            try:
                yield self._db
            except BaseException:
                self._db.execute("rollback")
                raise
            self._db.execute("commit")

    def _rows(self, query: str, *values: object) -> list[Row]:
        with self._lock:
            return [dict(row) for row in self._db.execute(query, values)]

    def _row(self, query: str, *values: object) -> Row | None:
        return next(iter(self._rows(query, *values)), None)

    # --- Idempotency keys -----------------------------------------------------------------

    @contextmanager
    def key(self, key: str | None) -> Iterator[None]:
        """Hold a key, so that of two requests with it the second waits for the first."""
        if key is None:
            yield
            return
        with self._key_locks[hash(key) % len(self._key_locks)]:
            yield

    def made_before(self, key: str | None, digest: str) -> str | None:
        """Return the id of what the key made; KeyUsedError if that was something else."""
        row = None
        if key is not None:
            row = self._row("select digest, id from keys where key = ?", key)
        if row is None:
            return None
        if row["digest"] != digest:
            raise KeyUsedError
        return str(row["id"])

    def _insert(
        self, table: str, row: Row, key: str | None = None, digest: str = ""
    ) -> None:
        """Insert a row, and in the same transaction the key that made it."""
        names = ", ".join(row)
        marks = ", ".join("?" * len(row))
        with self._transaction() as db:
            db.execute(f"insert into {table}({names}) values ({marks})", (*row.values(),))
            if key is not None:
                db.execute("insert into keys values (?, ?, ?)", (key, digest, row["id"]))

    # --- Maps -----------------------------------------------------------------------------

    def add_map(
        self, id: str, name: str, key: str | None = None, digest: str = "", **more: Any
    ) -> None:
        """Add a map that is yet to be read; `name` is that of its file."""
        row = {"id": id, "name": name, "state": "reading", "created": now(), "bundled": 0}
        self._insert("maps", row | more, key, digest)

    def map(self, id: str) -> Row | None:
        """Return a map; None if there is none."""
        row = self._row("select * from maps where id = ?", id)
        return None if row is None else _map_view(row)

    def upload_name(self, id: str) -> str:
        """Return the name of the file of a map, as its user gave it."""
        row = self._row("select name from maps where id = ?", id)
        return "" if row is None else str(row["name"])

    def maps(self) -> list[Row]:
        """Return all maps, in the order they came."""
        return [_map_view(row) for row in self._rows("select * from maps order by number")]

    def next_map(self) -> str | None:
        """Return the id of the next map to read."""
        query = "select id from maps where state = 'reading' order by number limit 1"
        row = self._row(query)
        return None if row is None else str(row["id"])

    def map_read(self, id: str, facts: Row | None, error: Row | None = None) -> None:
        """Note that a map was read, or why it was not."""
        with self._transaction() as db:
            db.execute(
                "update maps set state = ?, facts = ?, error = ? where id = ?",
                ("failed" if error else "ready", _dump(facts), _dump(error), id),
            )

    def remove_map(self, id: str) -> bool:
        """Remove a map with its files, unless a scene uses it."""
        with self._transaction() as db:
            if db.execute("select 1 from scenes where map = ? limit 1", (id,)).fetchone():
                return False
            db.execute("delete from maps where id = ?", (id,))
            db.execute("delete from keys where id = ?", (id,))
        remove(self.map_folder(id))
        return True

    def map_folder(self, id: str) -> Path:
        """Return the folder of a map; the id is one of ours."""
        return self.folder / "maps" / id

    # --- Scenes ---------------------------------------------------------------------------

    def add_scene(
        self,
        id: str,
        map: str | None,
        facts: Row,
        request: Row,
        key: str | None = None,
        digest: str = "",
    ) -> None:
        """Add a scene whose files are written."""
        row = {"id": id, "map": map, "facts": _dump(facts), "request": _dump(request)}
        with self._lock:
            if map is not None and self.map(map) is None:
                raise MapGoneError
            self._insert("scenes", row | {"created": now()}, key, digest)

    def scene(self, id: str) -> Row | None:
        """Return a scene; None if there is none."""
        row = self._row("select * from scenes where id = ?", id)
        if row is None:
            return None
        named = {name: row[name] for name in ("id", "map", "created")}
        facts: Row = json.loads(row["facts"])
        return named | facts | {"request": json.loads(row["request"])}

    def scene_folder(self, id: str) -> Path:
        """Return the folder of a scene; the id is one of ours."""
        return self.folder / "scenes" / id

    # --- Jobs -----------------------------------------------------------------------------

    def add_job(
        self,
        id: str,
        scene: str,
        request: Row,
        key: str | None = None,
        digest: str = "",
        **more: Any,
    ) -> None:
        """Add a job at the end of the queue, or as `more` says."""
        row = {"id": id, "scene": scene, "request": _dump(request), "created": now()}
        with self._lock:
            self._insert("jobs", {"state": "queued"} | row | more, key, digest)
            self._log(id)

    def add_done_job(
        self, id: str, scene: str, request: Row, end: Row, key: str | None, digest: str
    ) -> None:
        """Add a job whose plan is there already."""
        facts = {name: _dump(end[name]) for name in ("best", "result", "repair")}
        more = {"state": "done", "started": now(), "ended": now(), **facts}
        self.add_job(id, scene, request, key, digest, **more)
        self._log(id, "end")

    def job_row(self, id: str) -> Row | None:
        """Return the row of a job; None if there is none."""
        return self._row("select * from jobs where id = ?", id)

    def job(self, id: str) -> Row | None:
        """Return a job as it is answered; None if there is none."""
        with self._lock:
            row = self.job_row(id)
            return None if row is None else self._job_view(row)

    def jobs(self, state: str | None, limit: int, after: str | None) -> list[Row]:
        """Return some jobs, newest first; only those before `after`, if that is given."""
        query, values = "select * from jobs where 1", list[object]()
        if state is not None:
            query += " and state = ?"
            values.append(state)
        if after is not None:
            query += " and number < (select number from jobs where id = ?)"
            values.append(after)
        query += " order by number desc limit ?"
        with self._lock:
            return [self._job_view(row) for row in self._rows(query, *values, limit)]

    def counts(self) -> Counter[str]:
        """Return the number of jobs in each state."""
        rows = self._rows("select state, count(*) as count from jobs group by state")
        return Counter({row["state"]: row["count"] for row in rows})

    def _job_view(self, row: Row) -> Row:
        position = None
        if row["state"] == "queued":
            query = "select count(*) as n from jobs where state = 'queued' and number <= ?"
            position = self._rows(query, row["number"])[0]["n"]
        best = _load(row["best"])
        if row["state"] == "running":
            best = read_json(self.job_folder(row["id"]) / "best.json") or best
        return {
            **{name: row[name] for name in ("id", "scene", "state")},
            "position": position,
            "request": json.loads(row["request"]),
            **{name: row[name] for name in ("created", "started", "ended")},
            "best": best,
            "result": _load(row["result"]),
            "error": _load(row["error"]),
            "repair": json.loads(row["repair"]),
        }

    def job_folder(self, id: str) -> Path:
        """Return the folder of a job; the id is one of ours."""
        return self.folder / "jobs" / id

    def take_job(self) -> Row | None:
        """Return the first job of the queue, which is running from now on."""
        with self._lock:
            with self._transaction() as db:
                row = db.execute(
                    "update jobs set state = 'running', started = coalesce(started, ?) "
                    "where number = (select min(number) from jobs where state = 'queued') "
                    "returning *",
                    (now(),),
                ).fetchone()
            if row is None:
                return None
            self._log(row["id"])
            return dict(row)

    def requeue(self, id: str, *, deaths: int, used: float) -> None:
        """Put a running job back; it keeps its place, so it is the next to run."""
        with self._lock:
            with self._transaction() as db:
                changed = db.execute(
                    "update jobs set state = 'queued', deaths = ?, used = ? "
                    "where id = ? and state = 'running'",
                    (deaths, used, id),
                )
            if changed.rowcount:
                self._log(id)

    def running(self) -> list[Row]:
        """Return the rows of all jobs that are marked as running."""
        return self._rows("select * from jobs where state = 'running' order by number")

    def set_scene(self, id: str, scene: str, facts: Row) -> None:
        """Note that a job has made a scene of its own, which its plan belongs to."""
        with self._transaction() as db:
            job = db.execute("select scene, request from jobs where id = ?", (id,))
            found = job.fetchone()
            if found is None or found["scene"] == scene:
                return
            asked = db.execute(
                "select map, request from scenes where id = ?", (found["scene"],)
            ).fetchone()
            db.execute(
                "insert or ignore into scenes(id, map, facts, request, created) "
                "values (?, ?, ?, ?, ?)",
                (scene, asked["map"], _dump(facts), asked["request"], now()),
            )
            db.execute("update jobs set scene = ? where id = ?", (scene, id))
        self._log(id)

    def end_job(self, id: str, state: str, **facts: Any) -> bool:
        """Note the end of a job; False if it has ended before, or is gone."""
        names = {name: _dump(value) for name, value in facts.items()}
        if state == "cancelled" or "best" not in names:
            names["best"] = _dump(read_json(self.job_folder(id) / "best.json"))
        sets = "".join(f", {name} = ?" for name in names)
        with self._lock:
            with self._transaction() as db:
                changed = db.execute(
                    f"update jobs set state = ?, ended = ?{sets} "
                    "where id = ? and state in ('queued', 'running')",
                    (state, now(), *names.values(), id),
                )
            if changed.rowcount:
                self._log(id, "end")
        return changed.rowcount > 0

    def ask_to_stop(self, id: str) -> None:
        """Note that a job is to end with its best plan, whatever happens."""
        with self._transaction() as db:
            db.execute("update jobs set stop = 1 where id = ?", (id,))

    def purge_job(self, id: str) -> bool:
        """Remove an ended job with its files; False if it has not ended."""
        with self._transaction() as db:
            marks = ", ".join("?" * len(ENDED))
            changed = db.execute(
                f"delete from jobs where id = ? and state in ({marks})", (id, *ENDED)
            )
            if changed.rowcount:
                db.execute("delete from keys where id = ?", (id,))
        if changed.rowcount:
            remove(self.job_folder(id))
        return changed.rowcount > 0

    # --- The log of a job -----------------------------------------------------------------

    def _log(self, id: str, event: str = "state") -> None:
        """Write the job as it is now into its log, for those who watch it."""
        job = self.job(id)
        if job is not None:
            with suppress(OSError):  # a full disk; the row has it
                folder = self.job_folder(id)
                folder.mkdir(exist_ok=True)
                append_event(folder, event, job)


def append_event(folder: Path, event: str, data: Row) -> None:
    """Append a line to the log of a job, in one write, which ends whole or not at all."""
    line = json.dumps([event, data], separators=(",", ":")) + "\n"
    with (folder / "events.jsonl").open("ab", buffering=0) as stream:
        stream.write(line.encode())


def events_of(lines: Iterable[bytes]) -> Iterator[tuple[str, Row]]:
    """Yield the events of lines of a log; a broken line has none."""
    for line in lines:
        with suppress(ValueError):
            event, data = json.loads(line)
            yield event, data


def last_progress(folder: Path) -> Row:
    """Return how far a job had come: seconds and iterations."""
    try:
        with (folder / "events.jsonl").open("rb") as stream:
            size, tail = stream.seek(0, 2), _TAIL
            while True:
                stream.seek(max(0, size - tail))
                for event, data in events_of(reversed(stream.read().split(b"\n"))):
                    if event == "progress":
                        return data
                if tail >= size:
                    break
                tail *= 8  # a long request is in the lines of its states
    except FileNotFoundError:
        pass
    return {"seconds": 0.0, "iterations": 0}


def remove(path: Path) -> None:
    """Remove a file or a folder with all in it, if it is there."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _dump(value: object) -> str | None:
    return None if value is None else json.dumps(value, separators=(",", ":"))


def _load(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _map_view(row: Row) -> Row:
    facts = _load(row["facts"]) or {
        "streets": 0,
        "length": 0.0,
        "bounds": None,
        "kinds": [],
        "attribution": "",
    }
    named = {name: row[name] for name in ("id", "name", "state", "created")}
    for suffix in _SUFFIXES:
        named["name"] = named["name"].removesuffix(suffix)
    named["name"] = named["name"] or "map"
    return named | facts | {"error": _load(row["error"]), "bundled": bool(row["bundled"])}
