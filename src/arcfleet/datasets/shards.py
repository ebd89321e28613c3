"""Work in parts: the tasks of each part, and the merging of the files of all.

Part 3/10 has a tenth of the tasks, drawn at random but always the same, so that long and
short ones are spread and no part has all of one method or one seed. Its file is a `Store`
whose first line states the part and its number of tasks, beside what all parts have in
common. Merging checks by these that no part and no task is missing or doubled, and needs
neither the instances nor the order in which the parts were made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from arcfleet.datasets.store import LineFormat, read_with_identity
from arcfleet.errors import FileError, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
    from pathlib import Path

Record = TypeVar("Record")
Task = TypeVar("Task")

_MOST_SHARDS = 1_000_000
_WRITTEN = re.compile(r"([0-9]{1,7})/([0-9]{1,7})")
_MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several parts of a work.

    Parameters
    ----------
    number
        Number of the part, counted from 1.
    of
        Number of parts.
    """

    number: int
    of: int

    def __post_init__(self) -> None:
        """Raise OptionError if there is no such part."""
        if not 1 <= self.number <= self.of <= _MOST_SHARDS:
            raise _unfit(str(self))

    def __str__(self) -> str:
        """Return the part as it is written on the command line."""
        return f"{self.number}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Return the part that a text such as `3/10` names."""
        found = _WRITTEN.fullmatch(text)
        if found is None:
            raise _unfit(text)
        return cls(int(found[1]), int(found[2]))

    def tasks(self, all_tasks: Sequence[Task]) -> list[Task]:
        """Return the tasks of this part, in their order."""
        # `random()` gives the same numbers in every version of Python.
        draw = Random(0).random
        drawn = [draw() for _ in all_tasks]
        shuffled = sorted(range(len(all_tasks)), key=drawn.__getitem__)
        return [all_tasks[x] for x in sorted(shuffled[self.number - 1 :: self.of])]


def _unfit(text: str) -> OptionError:
    return OptionError(
        f"expected a part as NUMBER/PARTS, counted from 1 as in 3/10, got {text[:40]!r}"
    )


def identity_of(
    shard: Shard, tasks: int, common: Mapping[str, object]
) -> dict[str, object]:
    """Return the first line of the file of a part.

    Parameters
    ----------
    shard, tasks
        The part and its number of tasks.
    common
        What all parts have in common.
    """
    return {**common, "shard": str(shard), "tasks": tasks}


class PartForm(NamedTuple, Generic[Record]):
    """What merging needs to know of a format of lines."""

    form: LineFormat[Record]
    tasks: Callable[[Record], Iterable[Hashable]]  # tasks that a line has done
    order: Callable[[Record], Any]  # by which the lines of a merged file are sorted
    what: str  # plural noun of the tasks
    # Whether the file of all tasks states in its first line what its parts have in common.
    has_identity: bool = True


class Merged(NamedTuple, Generic[Record]):
    """All parts of a work."""

    identity: dict[str, Any]  # first line of the file of all tasks
    records: list[Record]  # in order


@dataclass(frozen=True, slots=True)
class _Part(Generic[Record]):
    path: Path
    shard: Shard
    tasks: int
    common: dict[str, Any]
    records: list[Record]


def merge(paths: Sequence[Path], part_form: PartForm[Record]) -> Merged[Record]:
    """Return the records of all parts of a work.

    Of two lines of a task in one part the later one counts: a failed task was tried again.

    Raises
    ------
    FileError
        If a file is no part, belongs to another work or lacks a task, or a task or a part
        is missing or doubled.
    """
    parts = [_read(path, part_form) for path in paths]
    _require_one_work(parts)
    _require_all(parts)
    found: dict[Hashable, Path] = {}
    records = []
    for part in parts:
        done: set[Hashable] = set()
        for record in reversed(part.records):
            tasks = set(part_form.tasks(record))
            if tasks - done:
                records.append(record)
            done |= tasks
        if len(done) != part.tasks:
            raise FileError(
                part.path,
                f"expected {part.tasks} {part_form.what} in part {part.shard}, found "
                f"{len(done)}: run its command again, which resumes, and then merge",
            )
        for task in done:
            if found.setdefault(task, part.path) != part.path:
                raise FileError(
                    part.path,
                    f"expected {part_form.what} of its own, found one that "
                    f"{found[task]} has, too: delete the file and run its command again",
                )
    identity = parts[0].common if part_form.has_identity else {}
    return Merged(identity, sorted(records, key=part_form.order))


def _read(path: Path, part_form: PartForm[Record]) -> _Part[Record]:
    common, records = read_with_identity(path, part_form.form)
    shard, tasks = common.pop("shard", None), common.pop("tasks", None)
    try:
        if not isinstance(shard, str) or type(tasks) is not int:
            raise OptionError("no part")
        return _Part(path, Shard.parse(shard), tasks, common, records)
    except OptionError:
        raise FileError(
            path, "expected a part made with --shard, found a file of another command"
        ) from None


def _require_one_work(parts: Sequence[_Part[Any]]) -> None:
    """Raise FileError unless all parts are of one command."""
    first = parts[0]
    for part in parts[1:]:
        common = first.common | part.common
        names = [n for n in common if first.common.get(n) != part.common.get(n)]
        if part.shard.of != first.shard.of:
            names.append("number of parts")
        if names:
            words = " and ".join(name.replace("_", " ") for name in names)
            raise FileError(
                part.path,
                f"expected the same {words} as in {first.path}, found another: merge the "
                "parts of one command",
            )


def _require_all(parts: Sequence[_Part[Any]]) -> None:
    """Raise FileError unless each part is there once."""
    found: dict[int, Path] = {}
    for part in parts:
        other = found.setdefault(part.shard.number, part.path)
        if other != part.path or [x.path for x in parts].count(part.path) > 1:
            raise FileError(
                part.path, f"expected each part once, found {part.shard} in {other}, too"
            )
    of = parts[0].shard.of
    lacking = [f"{n}/{of}" for n in range(1, of + 1) if n not in found]
    if lacking:
        more = len(lacking) - _MOST_NAMED
        listed = ", ".join(lacking[:_MOST_NAMED]) + (f" and {more} more" * (more > 0))
        raise FileError(
            parts[0].path,
            f"expected beside it all parts from 1/{of} to {of}/{of}, found none for "
            f"{listed}: run their commands and name their files",
        )
