"""What a benchmark leaves behind: one JSON line per run, in a file that can be resumed."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from arcfleet.errors import FileError, FormatWarning
from arcfleet.instance.atomic import check_writable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_FORMAT = "arcfleet-run-1"
# Every line starts so. A last line that starts otherwise is not ours to cut off.
_START = f'{{"format": "{_FORMAT}", '.encode()


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
    """A file of runs: what is in it, and the place to add to.

    Each line is written by one call, unbuffered: a kill can cut only the last one. Such a
    half line is dropped with a warning when the file is opened again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        check_writable(path)
        self.records: dict[RunKey, Record] = {}
        try:
            data = path.read_bytes() if path.exists() else b""
            *lines, tail = data.split(b"\n")
            for number, line in enumerate(lines, start=1):
                record = _parse(path, line, number)
                self.records[record.key] = record  # a later run replaces a failed one
            self._stream = path.open("ab", buffering=0)
            if tail:
                self._drop(tail, len(data), len(lines) + 1)
        except OSError as error:
            raise FileError(path, f"cannot be written ({error.strerror})") from error

    def add(self, record: Record) -> None:
        """Append one run."""
        line = _format(record)
        try:
            written = self._stream.write(line)
        except OSError as error:
            raise FileError(self.path, f"cannot be written ({error.strerror})") from error
        if written != len(line):
            raise FileError(self.path, "could be written only in part; free some space")
        self.records[record.key] = record

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def finished(self) -> Iterable[Record]:
        """Give the runs that ended with a valid plan."""
        return [r for r in self.records.values() if r.error is None]

    def _drop(self, tail: bytes, size: int, line: int) -> None:
        if not (tail.startswith(_START) or _START.startswith(tail)):
            self._stream.close()
            raise _not_ours(self.path, line)
        self._stream.truncate(size - len(tail))
        warnings.warn(
            f"{self.path}:{line}: dropped a line that was cut off while it was written",
            FormatWarning,
            stacklevel=4,
        )


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


def _parse(path: Path, line: bytes, number: int) -> Record:
    try:
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
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _not_ours(path, number) from error


def _not_ours(path: Path, line: int) -> FileError:
    return FileError(
        path,
        "expected a run of `arcfleet bench`, found something else; name another file",
        line,
    )
