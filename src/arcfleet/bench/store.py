"""What a benchmark leaves behind: one JSON line per run, in a file that can be resumed."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import warnings
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import arcfleet
from arcfleet._files import check_writable
from arcfleet.errors import FileError, FormatWarning

if TYPE_CHECKING:
    from collections.abc import Iterable


_ROOT = Path(__file__).parents[3]


def checkout() -> Path | None:
    """Give the root of the repository; None where only a wheel is installed."""
    return _ROOT if (_ROOT / "benchmarks" / "suites").is_dir() else None


def machine() -> str:
    """Name the processor, the number of cores and the Python."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [x for x in cpuinfo.read_text().splitlines() if x.startswith("model name")]
        processor = names[0].split(":")[1].strip() if names else processor
    return f"{processor}, {os.cpu_count()} cores, Python {platform.python_version()}"


def commit() -> str:
    """Name the commit, with -dirty where files differ from it; else the release.

    Where the files were copied without their history, `ARCFLEET_COMMIT` names it.
    """
    told = os.environ.get("ARCFLEET_COMMIT")
    if told:
        return told
    root = checkout()
    if root is None:
        return f"release {arcfleet.__version__}"
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            capture_output=True,
            text=True,
            check=False,
            cwd=root,
        ).stdout.strip()
    except OSError:  # no git here
        described = ""
    return described or "unknown"


class LineFile:
    """The lines of a file, and the place to add to.

    Each line is written by one call, unbuffered: a kill can cut only the last one. Such a
    half line is dropped with a warning when the file is opened again.

    Parameters
    ----------
    path
        The file; made where it is missing.
    kind
        The format. Every line is a JSON object whose first member names it.
    what
        A line is, for messages: "a run of `arcfleet bench`".

    Raises
    ------
    FileError
        If the file cannot be read, or ends with something else than such a line.
    """

    def __init__(self, path: Path, kind: str, what: str) -> None:
        self.path = path
        self.what = what
        # A last line that starts otherwise is not ours to cut off.
        self._start = f'{{"format": "{kind}", '.encode()
        try:
            data = path.read_bytes() if path.exists() else b""
            *self.lines, self._tail = data.split(b"\n")
        except OSError as error:
            raise FileError(path, f"cannot be read ({error.strerror})") from error
        if self._tail and not (
            self._tail.startswith(self._start) or self._start.startswith(self._tail)
        ):
            self.refuse(len(self.lines) + 1)

    def open(self) -> None:
        """Make it ready to be added to, once all its lines have proved to be right."""
        check_writable(self.path)
        try:
            self._stream = self.path.open("ab", buffering=0)
            if self._tail:
                self._stream.truncate(self._stream.tell() - len(self._tail))
        except OSError as error:
            raise self._not_writable(error) from error
        self.warn_of_half_line("dropped")

    def warn_of_half_line(self, done: str) -> None:
        """Warn of a last line that a kill has cut, and say what was done with it."""
        if self._tail:
            warnings.warn(
                f"{self.path}:{len(self.lines) + 1}: {done} a line that was cut off while "
                "it was written",
                FormatWarning,
                stacklevel=5,
            )

    def add(self, line: bytes) -> None:
        """Append one line, which brings its line end."""
        try:
            written = self._stream.write(line)
        except OSError as error:
            raise self._not_writable(error) from error
        if written != len(line):
            raise FileError(self.path, "could be written only in part; free some space")

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def refuse(self, line: int, cause: Exception | None = None) -> NoReturn:
        """Raise FileError: the line of that number, from 1, is none of ours."""
        raise FileError(
            self.path,
            f"expected {self.what}, found something else; name another file",
            line,
        ) from cause

    def _not_writable(self, error: OSError) -> FileError:
        return FileError(self.path, f"cannot be written ({error.strerror})")


_FORMAT = "arcfleet-run-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKey:
    """What tells one run from another.

    Parameters
    ----------
    set_name, instance
        As in the suite.
    method
        Name of the method.
    seed
        Given to `solve`.
    time_limit
        Seconds given to `solve`.
    stop_at_reference
        Whether a reference cost that is proven optimal ends the run.
    """

    set_name: str
    instance: str
    method: str
    seed: int
    time_limit: float
    stop_at_reference: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One run.

    Parameters
    ----------
    key
        Which run.
    machine, commit
        Where it ran, and what.
    reference
        Best known cost; None where none is known.
    error
        Why there is no valid plan; None where there is one.
    cost, routes
        Of the plan, as the checker confirmed them; None after an error, as all below.
    gap_percent
        How far the cost lies above the reference.
    seconds, seconds_to_best
        The whole run, and until its best plan was found.
    iterations, stopped_by
        As in Result.
    history
        Seconds and cost of each better plan.
    """

    key: RunKey
    machine: str
    commit: str
    reference: int | None
    error: str | None = None
    cost: int | None = None
    gap_percent: float | None = None
    seconds: float | None = None
    seconds_to_best: float | None = None
    iterations: int | None = None
    routes: int | None = None
    stopped_by: str | None = None
    history: tuple[tuple[float, int], ...] = ()


def gap_percent(cost: int, reference: int | None) -> float | None:
    """Give by how many percent a cost exceeds the reference."""
    return 100 * (cost / reference - 1) if reference else None


class RecordFile:
    """A file of runs: what is in it, and the place to add to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: dict[RunKey, Record] = {}
        self._file = LineFile(path, _FORMAT, "a run of `arcfleet bench`")
        for number, line in enumerate(self._file.lines, start=1):
            try:
                record = _parse(line)
            except _NOT_OURS as error:
                self._file.refuse(number, error)
            self.records[record.key] = record  # a later run replaces a failed one
        self._file.open()

    def add(self, record: Record) -> None:
        """Append one run."""
        self._file.add(_format(record))
        self.records[record.key] = record

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def finished(self) -> Iterable[Record]:
        """Give the runs that ended with a valid plan."""
        return [r for r in self.records.values() if r.error is None]


def _format(record: Record) -> bytes:
    facts = asdict(record)
    facts["history"] = [[round(seconds, 4), cost] for seconds, cost in record.history]
    for name in ("gap_percent", "seconds", "seconds_to_best"):
        if facts[name] is not None:
            facts[name] = round(facts[name], 6)
    key = facts.pop("key")
    key = {"set": key.pop("set_name")} | key
    return json.dumps({"format": _FORMAT} | key | facts).encode() + b"\n"


_KEY_FIELDS: dict[str, tuple[type, ...]] = {
    "set_name": (str,),
    "instance": (str,),
    "method": (str,),
    "seed": (int,),
    "time_limit": (float, int),
    "stop_at_reference": (bool,),
}

_FACT_FIELDS: dict[str, tuple[type, ...]] = {
    "machine": (str,),
    "commit": (str,),
    "reference": (int, type(None)),
    "error": (str, type(None)),
    "cost": (int, type(None)),
    "gap_percent": (float, int, type(None)),
    "seconds": (float, int, type(None)),
    "seconds_to_best": (float, int, type(None)),
    "iterations": (int, type(None)),
    "routes": (int, type(None)),
    "stopped_by": (str, type(None)),
    "history": (list,),
}

assert _FACT_FIELDS.keys() == {f.name for f in fields(Record)} - {"key"}


_NOT_OURS = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


def _parse(line: bytes) -> Record:
    facts: dict[str, Any] = json.loads(line)
    if facts.pop("format") != _FORMAT:
        raise ValueError
    facts["set_name"] = facts.pop("set")
    known = _KEY_FIELDS | _FACT_FIELDS
    if facts.keys() != known.keys() or not all(
        isinstance(facts[name], types) for name, types in known.items()
    ):
        raise ValueError
    history = tuple((float(seconds), int(cost)) for seconds, cost in facts["history"])
    if facts["error"] is None and (None in (facts["cost"], facts["seconds"])):
        raise ValueError
    key = RunKey(**{name: facts.pop(name) for name in _KEY_FIELDS})
    return Record(key=key, **(facts | {"history": history}))
