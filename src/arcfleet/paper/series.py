"""Measured costs: lines of a store, and the series that they make together.

A *series* is one row of a table on one test set: a method with its settings, its model and
its device. Its instances come in lines of some neighbouring ones, so that a run that was
killed goes on, a larger count reuses what is there, and files of several machines can be
joined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from arcfleet._files import is_file
from arcfleet.datasets.shards import PartForm
from arcfleet.datasets.store import LineFormat, read_records
from arcfleet.errors import FileError
from arcfleet.paper.rows import OLD_NAMES, ROWS, full_label, full_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Costs of some neighbouring instances of a series: a line of the store."""

    data_sha256: str  # checksum of the test set
    row: str  # name of the row, with its number
    settings: dict[str, int | float]
    # Checksum of the model file or of the labels; None for a method that has neither.
    source_sha256: str | None
    device: str  # name of the GPU, or "cpu"
    # Whether a model decoded one instance at a time, to measure how long one takes.
    alone: bool
    # Name of the test set, its Task set and its maps.
    set_name: str
    scale: str
    place: str
    label: str
    first: int = 0  # position of the first instance in the test set
    # Time of all instances together: for batches the time of the batch, else the sum of the
    # times of the instances.
    seconds: float = 0.0
    # Number of instances that were solved at a time, each with a clock of its own.
    parallel: int = 1
    verified: int = 0  # number of plans that passed the checker
    # Machine and version of the measurement.
    machine: str = ""
    commit: str = ""
    costs: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError if a number is out of range."""
        if self.first < 0 or self.parallel < 1:
            raise ValueError("expected first >= 0 and parallel >= 1")

    @property
    def key(self) -> Key:
        """What tells series apart; names for people do not."""
        settings = tuple(sorted(self.settings.items()))
        source = self.source_sha256
        return (self.data_sha256, self.row, settings, source, self.device, self.alone)


def _upgrade(facts: dict[str, Any]) -> dict[str, Any]:
    """Return a line with today's names of members and rows."""
    if "judged" in facts:
        facts["verified"] = facts.pop("judged")
    settings, base = facts["settings"], facts["row"].partition(":")[0].partition("=")[0]
    facts["row"] = full_name(facts["row"], settings)
    if base in OLD_NAMES:
        row = ROWS[OLD_NAMES[base]]
        number = settings.get("samples", row.number)
        facts["label"] = full_label(row, number, settings.get("temperature"))
    stated = ("first", "seconds", "parallel", "verified", "machine", "commit", "costs")
    if not facts["costs"] or not all(name in facts for name in stated):
        raise ValueError("expected costs and how they were measured")
    return facts


#: Lines of `arcfleet paper`.
COSTS = LineFormat("arcfleet-series-1", Costs, "costs of `arcfleet paper`", _upgrade)


def _positions(line: Costs) -> list[tuple[Key, int]]:
    """Return the tasks that a line has done: the instances of its series."""
    return [(line.key, line.first + i) for i in range(len(line.costs))]


COST_PARTS = PartForm(
    COSTS,
    _positions,
    lambda x: (x.set_name, x.row, x.first),
    "plans",
    has_identity=False,
)


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """All that was measured of one row on one test set."""

    lines: tuple[Costs, ...]  # lines that it was joined from
    costs: dict[int, int]  # cost by position of the instance, in rising order

    def __len__(self) -> int:
        """Return the number of instances."""
        return len(self.costs)

    @property
    def of(self) -> Costs:
        """The first line, which names row, test set, model and device."""
        return self.lines[0]

    @property
    def row(self) -> str:
        """Name of the row."""
        return self.of.row

    @property
    def label(self) -> str:
        """Label of the row."""
        return self.of.label

    @property
    def mean_cost(self) -> float:
        """Mean cost of an instance."""
        return float(np.mean(list(self.costs.values())))

    @property
    def seconds(self) -> float:
        """Mean time of an instance; of a batch, its time divided by its instances."""
        return sum(x.seconds for x in self.lines) / sum(len(x.costs) for x in self.lines)

    @property
    def seconds_at_once(self) -> float:
        """Mean time of an instance where several are solved at a time."""
        spent = sum(x.seconds / x.parallel for x in self.lines)
        return spent / sum(len(x.costs) for x in self.lines)

    @property
    def parallel(self) -> int:
        """The most instances that were solved at a time, each with its own clock."""
        return max(line.parallel for line in self.lines)


def read_series(folders: Sequence[Path], name: str) -> list[Series]:
    """Read the series of the stores of a name in some folders, joined."""
    lines: list[Costs] = []
    for folder in folders:
        path = folder / f"{name}.jsonl"
        if not is_file(path):
            raise FileError(folder, f"expected a folder with {path.name}, found none")
        lines += read_records(path, COSTS)
    return join(lines)


def join(lines: Iterable[Costs]) -> list[Series]:
    """Join the lines of each series; of two costs of an instance the first counts."""
    grouped: dict[Key, list[Costs]] = {}
    for line in lines:
        grouped.setdefault(line.key, []).append(line)
    series = []
    for group in grouped.values():
        costs: dict[int, int] = {}
        for line in group:
            for position, cost in enumerate(line.costs, start=line.first):
                costs.setdefault(position, cost)
        series.append(Series(tuple(group), dict(sorted(costs.items()))))
    return series


def missing(lines: Iterable[Costs], key: Key, count: int) -> list[range]:
    """Return the stretches of the first `count` instances that a series lacks."""
    free = np.ones(count + 2, dtype=np.bool_)
    free[[0, -1]] = False  # borders
    for line in lines:
        if line.key == key:
            last = min(line.first + len(line.costs), count)
            free[line.first + 1 : last + 1] = False
    edges = np.flatnonzero(np.diff(free.astype(np.int8))).tolist()
    return [range(*pair) for pair in zip(edges[::2], edges[1::2], strict=True)]
