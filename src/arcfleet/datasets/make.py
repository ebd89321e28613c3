"""Making a data set from streets: on several processes, and again after a kill.

Instance number i depends on the streets, the seed, the split and i only, so the number of
processes changes nothing. Chunks are kept in a folder beside the file until all are there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from arcfleet.datasets.chunk_folder import ChunkFolder, chunk_folder_of, read_streets
from arcfleet.datasets.dataset import Dataset, pieces_to_arrays, write_dataset
from arcfleet.errors import ArcfleetError, FileError, MapError, OptionError
from arcfleet.instance.atomic import check_writable
from arcfleet.search.progress import Progress
from arcfleet.search.stop import check_whole_number
from arcfleet.streets.street_arrays import BANDS, Split, StreetArrays, band, join, to_arrays
from arcfleet.streets.synthetic import random_settings, synthetic_streets
from arcfleet.streets.tasks import CAPACITY, PieceCutter, TaskSet, find_task_set
from arcfleet.workers import TaskFailure, run_tasks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.datasets.array_file import Array
    from arcfleet.search.progress import ProgressCallback

#: Takes the number of instances done and of all.
CountCallback = Callable[[int, int], None]

MOST_INSTANCES = 10_000_000
MERGE_METRES = 15.0
#: Towns that a split without maps is cut from.
SYNTHETIC_TOWNS = 24

_CHUNK = 500


def make_dataset(
    path: Path | str,
    task_set: str,
    *,
    count: int,
    split: Split = "train",
    maps: Sequence[Path | str] = (),
    seed: int = 0,
    mixed: bool = False,
    merge_metres: float = MERGE_METRES,
    workers: int = 1,
    progress: CountCallback | None = None,
) -> Dataset:
    """Cut instances out of streets and write them to one file.

    The same arguments give the same bytes, whatever the number of workers. After a kill
    the same call goes on; where the file is there already, it is only opened.

    Parameters
    ----------
    path
        The file to make.
    task_set
        One of `TASK_SETS`.
    count
        Number of instances.
    split
        Which part of the streets to cut from; no two splits share a junction.
    maps
        Street maps; none means synthetic streets.
    seed
        Of all random choices.
    mixed
        Whether one-way streets stay one-way.
    merge_metres
        Junctions of the maps this close to each other are merged first; 0 merges none.
    workers
        Processes; with more than one, a script must guard its calls by
        `if __name__ == "__main__":`.
    progress
        Called as instances are done.

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
    check_writable(path)
    streets, names, credit = _streets(maps, split, seed, mixed, merge_metres)
    facts: dict[str, object] = {
        "name": f"{chosen.name}-{split}",
        "task_set": chosen.name,
        "split": split,
        "seed": seed,
        "mixed": mixed,
        "capacity": CAPACITY,
        "maps": names,
        "merge_metres": merge_metres if maps else 0,
        "credit": credit,
        "streets_sha256": streets.digest,
    }
    chunk_facts = {**facts, "count": count, "chunk": _CHUNK}
    if path.exists():
        found = _already_there(path, {**facts, "count": count})
        if chunk_folder_of(path).exists():  # of a run that was killed at its very end
            ChunkFolder(path, chunk_facts).remove()
        return found
    PieceCutter(streets, chosen)  # unfit streets are found before anything is written
    folder = ChunkFolder(path, chunk_facts)
    job = _Job(folder.keep_streets(streets), chosen.name, split, seed)
    _make_chunks(folder, job, count, workers, progress)
    write_dataset(path, folder.arrays(), facts)
    folder.remove()
    return Dataset.open(path)


def _streets(
    maps: Sequence[Path | str], split: Split, seed: int, mixed: bool, merge_metres: float
) -> tuple[StreetArrays, list[str], str]:
    """Give the streets of a split, the names of their maps and whom they are owed to."""
    if not maps:
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

    from arcfleet.streets.files import read_map
    from arcfleet.streets.simplify import merge_close_junctions

    parts, names, credits = [], [], []
    for path in maps:
        street_map = read_map(path)
        if merge_metres > 0:
            street_map = merge_close_junctions(street_map, merge_metres)
        parts.append(band(to_arrays(street_map, mixed=mixed), split))
        names.append(street_map.name)
        credits.append(street_map.credit)
    return join(parts), names, "; ".join(dict.fromkeys(filter(None, credits)))


def _already_there(path: Path, facts: dict[str, object]) -> Dataset:
    found = Dataset.open(path)
    for name, value in facts.items():
        if found.facts.get(name) != value:
            raise FileError(
                path,
                f"expected no file or one made with {name} {value!r}, found a data set "
                f"with {found.facts.get(name)!r}: name another file or delete this one",
            )
    return found


@dataclass(frozen=True, slots=True)
class _Job:
    streets: Path
    task_set: str
    split: Split
    seed: int
    first: int = 0
    last: int = 0


def _make_chunks(
    folder: ChunkFolder, job: _Job, count: int, workers: int, progress: CountCallback | None
) -> None:
    chunks = range(-(-count // _CHUNK))
    left = [number for number in chunks if number not in folder.chunks]
    sizes = {n: min(count, (n + 1) * _CHUNK) - n * _CHUNK for n in chunks}
    done = sum(sizes[number] for number in folder.chunks)
    failures: list[TaskFailure] = []

    def finish(position: int, outcome: dict[str, Array] | TaskFailure) -> None:
        nonlocal done
        if isinstance(outcome, TaskFailure):
            failures.append(outcome)
            return
        folder.add(left[position], outcome)
        done += sizes[left[position]]
        if progress is not None:
            progress(done, count)

    if progress is not None:
        progress(done, count)
    run_tasks(
        _cut_chunk,
        (
            _Job(
                *(job.streets, job.task_set, job.split, job.seed),
                first=number * _CHUNK,
                last=number * _CHUNK + sizes[number],
            )
            for number in left
        ),
        workers=max(1, min(workers, len(left))),
        finished=finish,
    )
    raise_failures(failures, MapError)
    if done < count:
        raise KeyboardInterrupt


def raise_failures(failures: Sequence[TaskFailure], kind: type[ArcfleetError]) -> None:
    """Raise the first reason why tasks gave no outcome, if there is one."""
    for failure in failures:
        if failure.interrupted:
            raise KeyboardInterrupt
        raise kind(failure.message)


def _cut_chunk(job: _Job, progress: ProgressCallback) -> dict[str, Array]:
    cutter = _cutter(job.streets, find_task_set(job.task_set))
    number = list(BANDS).index(job.split)
    pieces = []
    for index in range(job.first, job.last):
        child = np.random.SeedSequence(job.seed, spawn_key=(number, 1, index))
        pieces.append(cutter.cut(np.random.default_rng(child)))
        if index % 50 == 0:
            progress(Progress(0.0, index, None))  # ends the work where Ctrl-C came
    return pieces_to_arrays(pieces)


@lru_cache(maxsize=1)  # a worker cuts many chunks from the same streets
def _cutter(file: Path, task_set: TaskSet) -> PieceCutter:
    return PieceCutter(read_streets(file), task_set)
