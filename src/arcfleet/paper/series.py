"""What experiments leave behind: costs of some instances by one method, a JSON line each.

A *series* is one row of a table on one test set: a method with its settings, its model and
its device. Its instances come in chunks, one line each, so a run that was killed goes on,
a larger count keeps what is there, and files of several machines can be joined.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from arcfleet.bench.store import LineFile
from arcfleet.errors import FileError
from arcfleet.paper.rows import full_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray


#: Files in the folder of experiments: methods on test sets, models that were trained on
#: other instances, and models with other inputs.
Store = Literal["runs", "generalise", "ablation"]


_FORMAT = "arcfleet-series-1"

_DIGITS = 9


Settings = tuple[tuple[str, int | float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesKey:
    """What tells one series from another, and names for people.

    Parameters
    ----------
    data_sha256
        Checksum of the test set.
    row, settings
        How: the name of the row, and its settings in the order of their names.
    source_sha256
        Checksum of the model file, or of the labels; None for a method that has neither.
    device
        Type of the GPU, or "cpu".
    alone
        Whether instances were solved one at a time, to measure how long one takes.
    set_name, scale, place
        Of the test set: its file without ending, its Task set, its maps.
    label
        Of the row.
    """

    data_sha256: str
    row: str
    settings: Settings
    source_sha256: str | None
    device: str
    alone: bool
    set_name: str = field(compare=False)
    scale: str = field(compare=False)
    place: str = field(compare=False)
    label: str = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Some neighbouring instances of a series.

    Parameters
    ----------
    key
        Of which series.
    first
        Position of the first instance in its test set.
    costs
        Total costs, one per instance.
    seconds
        Of all of them together: for batches the time of the batch, else the sum of the
        times of the instances.
    parallel
        How many instances were worked on at once, each with a clock of its own.
    judged
        So many of the plans passed the checker.
    machine, commit
        Where it was made, and by what.
    """

    key: SeriesKey
    first: int
    costs: tuple[int, ...]
    seconds: float
    parallel: int
    judged: int
    machine: str
    commit: str

    @property
    def last(self) -> int:
        """Position after the last instance."""
        return self.first + len(self.costs)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """All that is known of a series.

    Parameters
    ----------
    key
        Which one.
    positions
        Of its instances in the test set, rising.
    costs
        Of these.
    chunks
        Where they come from.
    """

    key: SeriesKey
    positions: NDArray[np.int64]
    costs: NDArray[np.int64]
    chunks: tuple[Chunk, ...]

    def __len__(self) -> int:
        """Give the number of instances."""
        return len(self.positions)

    @property
    def seconds(self) -> float:
        """Mean time of an instance; of a batch, its time divided by its instances."""
        return sum(x.seconds for x in self.chunks) / sum(len(x.costs) for x in self.chunks)

    @property
    def seconds_at_once(self) -> float:
        """Mean time of an instance where several are worked on at once."""
        spent = sum(x.seconds / x.parallel for x in self.chunks)
        return spent / sum(len(x.costs) for x in self.chunks)

    @property
    def parallel(self) -> int:
        """The most instances that were worked on at once, each with its own clock."""
        return max(chunk.parallel for chunk in self.chunks)


class RunFile:
    """The chunks in a file, and the place to add to.

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
        self._file = LineFile(path, _FORMAT, "a chunk of `arcfleet experiment`")
        self.chunks = _parse_lines(self._file)
        self._file.open()

    def add(self, chunk: Chunk) -> None:
        """Append one chunk."""
        self._file.add(_format(chunk))
        self.chunks.append(chunk)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def missing(self, key: SeriesKey, count: int) -> list[range]:
        """Give the stretches of the first `count` instances that a series lacks."""
        free = np.ones(count + 2, dtype=np.bool_)
        free[[0, -1]] = False  # borders
        for chunk in self.chunks:
            if chunk.key == key:
                free[chunk.first + 1 : min(chunk.last, count) + 1] = False
        edges = np.flatnonzero(np.diff(free.astype(np.int8))).tolist()
        return [range(*pair) for pair in zip(edges[::2], edges[1::2], strict=True)]


def store_path(folder: Path, store: Store) -> Path:
    """Give the file of a store in a folder."""
    return folder / f"{store}.jsonl"


def read_chunks(folders: Iterable[Path], store: Store) -> list[Chunk]:
    """Read the chunks that lie in folders, those of the first folder first.

    Raises
    ------
    FileError
        If a folder holds none, or a file holds something else.
    """
    chunks = []
    for folder in folders:
        path = store_path(folder, store)
        if not path.is_file():
            raise FileError(
                folder, f"expected the folder of experiments with {path.name}, found none"
            )
        file = LineFile(path, _FORMAT, "a chunk of `arcfleet experiment`")
        chunks += _parse_lines(file)
        file.warn_of_half_line("left out")
    return chunks


def join(chunks: Iterable[Chunk]) -> list[Series]:
    """Put the chunks of each series together; of a second cost the first one counts."""
    grouped: dict[SeriesKey, list[Chunk]] = {}
    for chunk in chunks:
        grouped.setdefault(chunk.key, []).append(chunk)
    return [_joined(key, group) for key, group in grouped.items()]


def _joined(key: SeriesKey, chunks: Sequence[Chunk]) -> Series:
    costs: dict[int, int] = {}
    for chunk in chunks:
        for position, cost in enumerate(chunk.costs, start=chunk.first):
            costs.setdefault(position, cost)
    positions = sorted(costs)
    return Series(
        key=key,
        positions=np.array(positions, dtype=np.int64),
        costs=np.array([costs[position] for position in positions], dtype=np.int64),
        chunks=tuple(chunks),
    )


def _format(chunk: Chunk) -> bytes:
    facts = asdict(chunk)
    key = facts.pop("key") | {"settings": dict(chunk.key.settings)}
    facts["seconds"] = round(chunk.seconds, _DIGITS)
    costs = {"costs": facts.pop("costs")}  # the long part comes last
    line = {"format": _FORMAT} | key | facts | costs
    return json.dumps(line).encode() + b"\n"


_KEY_FIELDS: dict[str, tuple[type, ...]] = {
    "data_sha256": (str,),
    "row": (str,),
    "settings": (dict,),
    "source_sha256": (str, type(None)),
    "device": (str,),
    "alone": (bool,),
    "set_name": (str,),
    "scale": (str,),
    "place": (str,),
    "label": (str,),
}

_FACT_FIELDS: dict[str, tuple[type, ...]] = {
    "first": (int,),
    "costs": (list,),
    "seconds": (float, int),
    "parallel": (int,),
    "judged": (int,),
    "machine": (str,),
    "commit": (str,),
}

assert _KEY_FIELDS.keys() == {f.name for f in fields(SeriesKey)}

assert _FACT_FIELDS.keys() == {f.name for f in fields(Chunk)} - {"key"}

_NOT_OURS = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


def _parse_lines(file: LineFile) -> list[Chunk]:
    chunks = []
    for number, line in enumerate(file.lines, start=1):
        try:
            chunks.append(_parse(line))
        except _NOT_OURS as error:
            file.refuse(number, error)
    return chunks


def _parse(line: bytes) -> Chunk:
    facts: dict[str, Any] = json.loads(line)
    if facts.pop("format") != _FORMAT:
        raise ValueError
    known = _KEY_FIELDS | _FACT_FIELDS
    if facts.keys() != known.keys() or not all(
        isinstance(facts[name], types) for name, types in known.items()
    ):
        raise ValueError
    costs = facts["costs"]
    if not costs or not all(type(x) is int for x in costs):
        raise ValueError
    if facts["first"] < 0 or facts["parallel"] < 1:
        raise ValueError
    facts["costs"] = tuple(costs)
    facts["row"] = full_name(facts["row"], facts["settings"])
    facts["settings"] = tuple(sorted(facts["settings"].items()))
    key = SeriesKey(**{name: facts[name] for name in _KEY_FIELDS})
    return Chunk(key=key, **{name: facts[name] for name in _FACT_FIELDS})
