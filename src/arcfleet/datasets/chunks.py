"""Work on many instances in chunks: over several processes, and again after a kill.

Finished chunks are kept in a `Store` beside the file in the making. Each depends on its
position only, so that neither the number of processes nor a kill changes the result.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from arcfleet.datasets.array_file import small_integers
from arcfleet.datasets.store import LineFormat, Store
from arcfleet.errors import ArcfleetError, FileError
from arcfleet.workers import TaskFailure, run_tasks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from arcfleet.datasets.array_file import Array
    from arcfleet.search.stop import ProgressCallback

    Arrays = dict[str, Array]

Job = TypeVar("Job")
Outcome = TypeVar("Outcome")

#: Takes the number of instances done and the number of all.
CountCallback = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Arrays of some neighbouring instances, as a line of a store."""

    first: int  # position of the first instance
    arrays: dict[str, str]  # arrays by name: the bytes of an .npy file each, in base 64


def make_in_chunks(
    path: Path,
    identity: Mapping[str, object],
    function: Callable[[Job, ProgressCallback], Arrays],
    job: Callable[[int, int], Job],
    write: Callable[[Arrays], None],
    *,
    count: int,
    size: int,
    what: str,
    error: type[ArcfleetError],
    workers: int,
    progress: CountCallback | None,
    during: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext,
) -> None:
    """Make the chunks that a store beside a file lacks, and write the file of all.

    `function` makes the arrays of a chunk, in a worker, from what `job` returns for its
    first instance and the one after its last. `during` is the context of the work: no other
    process is at the file then. Ctrl-C keeps what is finished.
    """
    store = _open(path, identity, count, size, what)
    try:
        kept = {chunk.first for chunk in store.records}
        left = [first for first in range(0, count, size) if first not in kept]

        def tell() -> None:
            if progress is not None:
                progress(sum(min(size, count - x.first) for x in store.records), count)

        def keep(number: int, arrays: Arrays) -> None:
            texts = {name: _encode(values) for name, values in arrays.items()}
            store.add(Chunk(first=left[number], arrays=texts))
            tell()

        tell()
        jobs = [job(first, min(first + size, count)) for first in left]
        with during():
            run_all(function, jobs, keep, workers=workers, error=error)
        write(_joined(store))
        store.remove()
    except BaseException:
        if store.records:
            store.close()
        else:  # nothing that another run could go on from
            store.remove()
        raise


def run_all(
    function: Callable[[Job, ProgressCallback], Outcome],
    jobs: Sequence[Job],
    keep: Callable[[int, Outcome], None],
    *,
    workers: int,
    error: type[ArcfleetError] = ArcfleetError,
) -> None:
    """Run jobs over processes and keep each outcome, with the number of its job, at once.

    Raises KeyboardInterrupt after Ctrl-C, and `error` if a job failed, when the others have
    ended.
    """
    failures: list[TaskFailure] = []
    done = 0

    def finished(number: int, outcome: Outcome | TaskFailure) -> None:
        nonlocal done
        if isinstance(outcome, TaskFailure):
            failures.append(outcome)
        else:
            keep(number, outcome)
            done += 1

    run_tasks(function, jobs, workers=max(1, min(workers, len(jobs))), finished=finished)
    if failures and not failures[0].interrupted:
        raise error(failures[0].message)
    if done < len(jobs):
        raise KeyboardInterrupt


def remove_leftover(
    path: Path, identity: Mapping[str, object], *, count: int, size: int
) -> None:
    """Delete the store of a run that was killed after it had written its file."""
    if store_path(path).exists():
        with contextlib.suppress(FileError):  # of another run
            _open(path, identity, count, size, "chunks").remove()


def _open(
    path: Path, identity: Mapping[str, object], count: int, size: int, what: str
) -> Store[Chunk]:
    form = LineFormat("arcfleet-chunks-1", Chunk, what)
    return Store(store_path(path), form, {**identity, "count": count, "chunk": size})


def _joined(store: Store[Chunk]) -> Arrays:
    """Return the arrays of all chunks, one after the other."""
    chunks = sorted(store.records, key=lambda chunk: chunk.first)
    try:
        parts = [{name: _decode(x) for name, x in c.arrays.items()} for c in chunks]
    except (ValueError, binascii.Error) as error:
        raise FileError(store.path, "expected arrays, found others: delete it") from error
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def store_path(path: Path) -> Path:
    """Return the store of a file in the making."""
    return path.with_name(f"{path.name}.log")


def _encode(values: Array) -> str:
    if values.dtype.kind in "iu" and (not values.size or values.min() >= 0):
        values = small_integers(values)
    stream = io.BytesIO()
    np.lib.format.write_array(stream, values, allow_pickle=False)
    return base64.b64encode(stream.getvalue()).decode()


def _decode(text: str) -> Array:
    stream = io.BytesIO(base64.b64decode(text, validate=True))
    return np.lib.format.read_array(stream, allow_pickle=False)
