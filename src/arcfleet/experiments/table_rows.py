"""Rows of a table: one method on one test set, as a JSON line that is not made again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from arcfleet.experiments.gaps import PairedGaps, paired_gaps
from arcfleet.experiments.line_file import LineFile

if TYPE_CHECKING:
    from pathlib import Path

_FORMAT = "arcfleet-table-row-1"
_DIGITS = 9

Settings = tuple[tuple[str, int | float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowKey:
    """What tells one row from another.

    Parameters
    ----------
    set_name
        Name of the test set's file, without its ending.
    data_sha256, labels_sha256
        Checksums of the test set and of its labels.
    count
        So many of its first instances were solved.
    method, settings
        How; the settings in the order of their names.
    model_sha256
        Checksum of the model file; None for a method that has none.
    """

    set_name: str
    data_sha256: str
    labels_sha256: str
    count: int
    method: str
    settings: Settings
    model_sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One method on one test set.

    Parameters
    ----------
    key
        Which row.
    machine, device, commit
        Where it was made, and by what.
    seconds_per_instance
        Of a learned method the time of all instances divided by their number; else the
        mean time of an instance on one thread.
    judged
        So many of the plans passed the checker.
    costs, references
        Total costs of the plans and of the labels, instance by instance.
    """

    key: RowKey
    machine: str
    device: str
    commit: str
    seconds_per_instance: float
    judged: int
    costs: tuple[int, ...]
    references: tuple[int, ...]

    @property
    def gaps(self) -> PairedGaps:
        """What the costs say together."""
        return paired_gaps(self.costs, self.references)


class RowFile:
    """A file of rows: what is in it, and the place to add to.

    Parameters
    ----------
    path
        The file; made where it is missing.

    Raises
    ------
    FileError
        If it cannot be written, or holds something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[RowKey, TableRow] = {}
        self._file = LineFile(path, _FORMAT, "a row of `arcfleet experiment`")
        for number, line in enumerate(self._file.lines, start=1):
            try:
                row = _parse(line)
            except _NOT_OURS as error:
                self._file.refuse(number, error)
            self.rows[row.key] = row
        self._file.open()

    def add(self, row: TableRow) -> None:
        """Append one row."""
        self._file.add(_format(row))
        self.rows[row.key] = row

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _format(row: TableRow) -> bytes:
    facts = asdict(row)
    key = facts.pop("key")
    key = {"set": key.pop("set_name")} | key | {"settings": dict(row.key.settings)}
    facts["seconds_per_instance"] = round(row.seconds_per_instance, _DIGITS)
    # For people who read the lines; worked out again from the costs when they are read.
    summary = {
        name: None if value is None else round(value, _DIGITS)
        for name, value in asdict(row.gaps).items()
    }
    costs = {name: facts.pop(name) for name in ("costs", "references")}
    line = {"format": _FORMAT} | key | facts | summary | costs
    return json.dumps(line).encode() + b"\n"


_KEY_FIELDS: dict[str, tuple[type, ...]] = {
    "set_name": (str,),
    "data_sha256": (str,),
    "labels_sha256": (str,),
    "count": (int,),
    "method": (str,),
    "settings": (dict,),
    "model_sha256": (str, type(None)),
}
_FACT_FIELDS: dict[str, tuple[type, ...]] = {
    "machine": (str,),
    "device": (str,),
    "commit": (str,),
    "seconds_per_instance": (float, int),
    "judged": (int,),
    "costs": (list,),
    "references": (list,),
}
assert _KEY_FIELDS.keys() == {f.name for f in fields(RowKey)}
assert _FACT_FIELDS.keys() == {f.name for f in fields(TableRow)} - {"key"}
_SUMMARY = {f.name for f in fields(PairedGaps)}
_NOT_OURS = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


def _parse(line: bytes) -> TableRow:
    facts: dict[str, Any] = json.loads(line)
    if facts.pop("format") != _FORMAT:
        raise ValueError
    facts["set_name"] = facts.pop("set")
    known = _KEY_FIELDS | _FACT_FIELDS
    if facts.keys() != known.keys() | _SUMMARY or not all(
        isinstance(facts[name], types) for name, types in known.items()
    ):
        raise ValueError
    for name in ("costs", "references"):
        values = facts[name]
        if len(values) != facts["count"] or not all(type(x) is int for x in values):
            raise ValueError
        facts[name] = tuple(values)
    facts["settings"] = tuple(sorted(facts["settings"].items()))
    key = RowKey(**{name: facts[name] for name in _KEY_FIELDS})
    return TableRow(key=key, **{name: facts[name] for name in _FACT_FIELDS})
