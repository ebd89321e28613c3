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

from arcfleet._checks import check_whole_number
from arcfleet._files import check_writable
from arcfleet.datasets.array_file import require_npz, require_same_facts
from arcfleet.datasets.chunk_folder import ChunkFolder, read_streets, remove_leftover
from arcfleet.datasets.dataset import Dataset, pieces_to_arrays, write_dataset
from arcfleet.datasets.street_source import (
    check_merge_metres,
    map_streets,
    synthetic_towns,
)
from arcfleet.errors import ArcfleetError, MapError, OptionError
from arcfleet.search.stop import Progress
from arcfleet.streets.street_arrays import BANDS, Split
from arcfleet.streets.tasks import CAPACITY, PieceCutter, TaskSet, find_task_set
from arcfleet.workers import TaskFailure, run_tasks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.datasets.array_file import Array
    from arcfleet.search.stop import ProgressCallback

#: Takes the number of instances done and of all.
CountCallback = Callable[[int, int], None]

MOST_INSTANCES = 10_000_000
MERGE_METRES = 15.0

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
    merge_metres: float | None = MERGE_METRES,
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
        Street maps, none of which may overlap another; none means synthetic streets.
    seed
        Of all random choices.
    mixed
        Whether one-way streets stay one-way.
    merge_metres
        Junctions of the maps at most this far apart are merged first; 0 merges those at
        the same place, None merges nothing.
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
    check_merge_metres(merge_metres)
    require_npz(path)
    check_writable(path)
    if maps:
        streets, names, credit = map_streets(maps, split, mixed, merge_metres)
    else:
        streets, names, credit = synthetic_towns(split, seed, mixed)
    facts: dict[str, object] = {
        "name": f"{chosen.name}-{split}",
        "task_set": chosen.name,
        "split": split,
        "seed": seed,
        "mixed": mixed,
        "capacity": CAPACITY,
        "maps": names,
        "merge_metres": merge_metres if maps else None,
        "credit": credit,
        "streets_sha256": streets.digest,
    }
    chunk_facts = {**facts, "count": count, "chunk": _CHUNK}
    if path.exists():
        found = Dataset.open(path)
        require_same_facts(path, found.facts, {**facts, "count": count})
        remove_leftover(path, chunk_facts)  # of a run that was killed at its very end
        return found
    PieceCutter(streets, chosen)  # unfit streets are found before anything is written
    folder = ChunkFolder(path, chunk_facts, -(-count // _CHUNK))
    try:
        job = _Job(folder.keep_streets(streets), chosen.name, split, seed)
        _make_chunks(folder, job, count, workers, progress)
    except BaseException:
        if not folder.chunks:  # nothing that another run could go on from
            folder.remove()
        raise
    write_dataset(path, folder.arrays(), facts)
    folder.remove()
    return Dataset.open(path)


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
