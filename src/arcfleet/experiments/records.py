"""What a benchmark leaves behind: one JSON line per run, in a file that can be resumed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from arcfleet.experiments.line_file import LineFile

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

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
