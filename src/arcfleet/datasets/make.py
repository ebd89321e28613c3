"""Making a data set from streets: on several processes, and again after a kill.

Instance number i depends on the streets, the seed, the split and i only, so the number of
processes changes nothing.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from arcfleet._checks import check_whole_number
from arcfleet._files import check_writable
from arcfleet.datasets.array_file import (
    ArrayFile,
    require_npz,
    require_same_facts,
    write_array_file,
)
from arcfleet.datasets.chunks import make_in_chunks, remove_leftover
from arcfleet.datasets.dataset import MADE_BY, Dataset, pieces_to_arrays, write_dataset
from arcfleet.errors import FileError, MapError, OptionError
from arcfleet.search.stop import Progress
from arcfleet.streets.street_arrays import BANDS, Split, StreetArrays, band, join, to_arrays
from arcfleet.streets.synthetic import random_settings, synthetic_streets
from arcfleet.streets.tasks import PieceCutter, VariedCutter, find_task_set

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from arcfleet.datasets.array_file import Array
    from arcfleet.datasets.chunks import CountCallback
    from arcfleet.search.stop import ProgressCallback

MOST_INSTANCES = 10_000_000
MERGE_METRES = 15.0
#: Towns that a split without maps is cut from.
SYNTHETIC_TOWNS = 24

_CHUNK = 500
_STREETS_FORMAT = ("arcfleet-street-arrays", 1)
_STREET_ARRAYS = [field.name for field in fields(StreetArrays)]

#: West, south, east, north.
_Box = tuple[float, float, float, float]


def make_dataset(
    path: Path | str,
    task_set: str,
    *,
    count: int,
    split: Split = "train",
    maps: Sequence[Path | str] = (),
    seed: int = 0,
    mixed: bool = False,
    turn_rules: bool = False,
    merge_metres: float | None = MERGE_METRES,
    workers: int = 1,
    progress: CountCallback | None = None,
) -> Dataset:
    """Cut instances out of streets and write them to one file.

    The same arguments give the same bytes, whatever the number of workers. After a kill
    the same call goes on; a file that is there already is only opened.

    Parameters
    ----------
    path
        File to write.
    task_set
        One of `TASK_SETS`, `VARIED_SETS` or `SCENE_SETS`.
    count
        Number of instances.
    split
        Part of the streets to cut from; no two splits share a junction.
    maps
        Street maps, none of which may overlap another; none means synthetic streets.
    seed
        Seed of the random number generator.
    mixed
        Whether one-way streets stay one-way.
    turn_rules
        Whether each instance has turn rules, drawn at random; every task can then be
        driven to from every other.
    merge_metres
        Junctions of the maps at most this far apart are merged first; 0 merges those at
        the same place, None merges nothing.
    workers
        Number of processes; with more than one, a script must guard its calls by
        `if __name__ == "__main__":`.
    progress
        Callback that takes the number of instances done and the number of all.

    Raises
    ------
    OptionError, MapError
        If an argument is wrong or the streets are too few.
    FileError
        If a file cannot be read or written, or was made with other arguments.
    """
    path = Path(path)
    chosen = find_task_set(task_set)
    check_whole_number("count", count, 1, MOST_INSTANCES)
    check_whole_number("seed", seed, 0, 2**64 - 1)
    check_whole_number("workers", workers, 1, 256)
    if split not in BANDS:
        raise OptionError(f"expected a split among {', '.join(BANDS)}, got {split!r}")
    _check_merge_metres(merge_metres)
    require_npz(path)
    check_writable(path)
    if maps:
        streets, names, attribution = _map_streets(maps, split, mixed, merge_metres)
    else:
        streets, names, attribution = _synthetic_towns(split, seed, mixed)
    facts: dict[str, object] = {
        "name": f"{chosen.name}-{split}",
        "task_set": chosen.name,
        "split": split,
        "seed": seed,
        "mixed": mixed,
        "capacity": chosen.capacity,
        "maps": names,
        "merge_metres": merge_metres if maps else None,
        "credit": attribution,
        "streets_sha256": streets.digest,
    }
    if turn_rules:
        facts["turn_rules"] = True
    if path.exists():
        found = Dataset.open(path)
        require_same_facts(path, found.facts, {**facts, "count": count})
        remove_leftover(path, facts, count=count, size=_CHUNK)
        return found
    chosen.cutter(
        streets, turn_rules=turn_rules
    )  # unfit streets are found before anything is written
    streets_file = path.with_name(f"{path.name}.streets.npz")

    @contextmanager
    def streets_for_workers() -> Iterator[None]:
        arrays = {name: getattr(streets, name) for name in _STREET_ARRAYS}
        try:
            write_array_file(streets_file, *_STREETS_FORMAT, {}, arrays)
            yield
        finally:
            streets_file.unlink(missing_ok=True)

    make_in_chunks(
        path,
        facts,
        _cut_chunk,
        lambda first, last: _Job(
            *(streets_file, streets.digest, chosen.name, turn_rules),
            *(split, seed, first, last),
        ),
        lambda arrays: write_dataset(path, arrays, facts),
        count=count,
        size=_CHUNK,
        what="chunks of a data set in the making",
        error=MapError,
        workers=workers,
        progress=progress,
        during=streets_for_workers,
    )
    return Dataset.open(path)


@dataclass(frozen=True, slots=True)
class _Job:
    streets: Path
    digest: str
    task_set: str
    turn_rules: bool
    split: Split
    seed: int
    first: int
    last: int


def _cut_chunk(job: _Job, progress: ProgressCallback) -> dict[str, Array]:
    cutter = _cutter(job.streets, job.digest, job.task_set, job.turn_rules)
    number = list(BANDS).index(job.split)
    pieces = []
    for index in range(job.first, job.last):
        child = np.random.SeedSequence(job.seed, spawn_key=(number, 1, index))
        pieces.append(cutter.cut(np.random.default_rng(child)))
        if index % 50 == 0:
            progress(Progress(0.0, index, None))  # raises where Ctrl-C came
    return pieces_to_arrays(pieces)


@lru_cache(maxsize=1)  # a worker cuts many chunks from the same streets
def _cutter(
    file: Path, digest: str, task_set: str, turn_rules: bool
) -> PieceCutter | VariedCutter:
    arrays = ArrayFile(file, *_STREETS_FORMAT, MADE_BY)
    streets = StreetArrays(**{name: arrays.array(name) for name in _STREET_ARRAYS})
    if streets.digest != digest:
        raise FileError(file, "expected it to stay the same while it is read")
    return find_task_set(task_set).cutter(streets, turn_rules=turn_rules)


def _check_merge_metres(metres: float | None) -> None:
    """Raise OptionError unless it is a distance or None."""
    if metres is None:
        return
    number = isinstance(metres, int | float) and not isinstance(metres, bool)
    if not (number and math.isfinite(metres) and metres >= 0):
        raise OptionError(
            "expected merge_metres to be a distance of at least 0 m or None to merge "
            f"nothing, got {metres!r}"
        )


def _map_streets(
    maps: Sequence[Path | str], split: Split, mixed: bool, merge_metres: float | None
) -> tuple[StreetArrays, list[str], str]:
    """Return the band of a split of all maps, their names and their attribution."""
    from arcfleet.streets.files import read_map
    from arcfleet.streets.simplify import merge_close_junctions

    parts, names, attributions = [], [], []
    boxes: list[tuple[Path | str, _Box]] = []
    for path in maps:
        street_map = read_map(path)
        if street_map.junctions:
            places = np.array(list(street_map.junctions.values()))
            box = (*places.min(axis=0).tolist(), *places.max(axis=0).tolist())
            _refuse_overlap(path, box, boxes)
            boxes.append((path, box))
        if merge_metres is not None:
            street_map = merge_close_junctions(street_map, merge_metres)
        parts.append(band(to_arrays(street_map, mixed=mixed), split))
        names.append(street_map.name)
        attributions.append(street_map.attribution)
    return join(parts), names, "; ".join(dict.fromkeys(filter(None, attributions)))


@lru_cache(maxsize=2)  # data sets of several scales are cut from the same towns
def _synthetic_towns(
    split: Split, seed: int, mixed: bool
) -> tuple[StreetArrays, list[str], str]:
    """Generate the towns of a split; returns the same three things as `_map_streets`."""
    number = list(BANDS).index(split)
    draw = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number, 0)))
    towns = [
        synthetic_streets(
            random_settings(draw, mixed=mixed),
            seed=int(draw.integers(2**63)),
            name=f"synthetic {town}",
        )
        for town in range(SYNTHETIC_TOWNS)
    ]
    parts = [to_arrays(town, mixed=mixed) for town in towns]
    return join(parts), [town.name for town in towns], ""


def _refuse_overlap(
    path: Path | str, box: _Box, others: Sequence[tuple[Path | str, _Box]]
) -> None:
    west, south, east, north = box
    for other, (other_west, other_south, other_east, other_north) in others:
        if max(west, other_west) <= min(east, other_east) and max(
            south, other_south
        ) <= min(north, other_north):
            raise MapError(
                "expected maps that lie apart, so that no two splits share a street, found "
                f"that the boxes around {other} and {path} overlap: leave one of them out"
            )
