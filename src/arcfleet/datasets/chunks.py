"""Work on many instances in chunks: over several processes, and again after a kill.

Finished chunks are kept in a `Store` beside the file in the making. Each depends on its
position only, so that neither the number of processes nor a kill changes the result.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import io
import tokenize
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from arcfleet.datasets.array_file import small_integers
from arcfleet.datasets.shards import PartForm, identity_of
from arcfleet.datasets.store import LineFormat, Store
from arcfleet.errors import ArcfleetError, FileError
from arcfleet.workers import PROCESSES, TaskFailure, run_tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from arcfleet.datasets.array_file import Array
    from arcfleet.datasets.shards import Shard
    from arcfleet.search.stop import ProgressCallback

    Arrays = dict[str, Array]

Job = TypeVar("Job")
Outcome = TypeVar("Outcome")

#: What numpy and base64 raise of bytes that are no array.
_NOT_ARRAYS = (
    *(ValueError, KeyError, TypeError, MemoryError, OverflowError, SyntaxError),
    *(tokenize.TokenError, binascii.Error),
)

#: Takes the number of instances done and the number of all.
CountCallback = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Arrays of some neighbouring instances, as a line of a store."""

    first: int  # position of the first instance
    arrays: dict[str, str]  # arrays by name: the bytes of an .npy file each, in base 64


CHUNKS = "arcfleet-chunks-1"
CHUNK_PARTS = PartForm(
    LineFormat(CHUNKS, Chunk, "a part of labels"),
    lambda x: [x.first],
    lambda x: x.first,
    "chunks",
)


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
    workers: int | None,
    progress: CountCallback | None,
    executor: str = PROCESSES,
    during: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext,
) -> None:
    """Make the chunks that a store beside a file lacks, and write the file of all.

    `function` makes the arrays of a chunk, in a worker, from what `job` returns for its
    first instance and the one after its last. `during` is the context of the work: no other
    process is at the file then. Ctrl-C keeps what is finished.
    """
    store = _open(path, identity, count, size, what)
    try:
        with during():
            _make_missing(
                store,
                range(0, count, size),
                function,
                job,
                count=count,
                size=size,
                error=error,
                workers=workers,
                executor=executor,
                progress=progress,
            )
        write(joined(store.records, store.path))
        store.remove()
    except BaseException:
        if store.records:
            store.close()
        else:  # nothing that another run could go on from
            store.remove()
        raise


def make_part(
    path: Path,
    identity: Mapping[str, object],
    shard: Shard,
    function: Callable[[Job, ProgressCallback], Arrays],
    job: Callable[[int, int], Job],
    *,
    count: int,
    size: int,
    what: str,
    error: type[ArcfleetError],
    workers: int | None,
    executor: str,
    progress: CountCallback | None,
) -> int:
    """Make the chunks of one part into a store, and return the number of their instances.

    Arguments are those of `make_in_chunks`.
    """
    firsts = shard.tasks(range(0, count, size))
    common = {**identity, "count": count, "chunk": size}
    form = LineFormat(CHUNKS, Chunk, what)
    with Store(path, form, identity_of(shard, len(firsts), common)) as store:
        _make_missing(
            store,
            firsts,
            function,
            job,
            count=count,
            size=size,
            error=error,
            workers=workers,
            executor=executor,
            progress=progress,
        )
    return sum(min(size, count - first) for first in firsts)


def _make_missing(
    store: Store[Chunk],
    firsts: Sequence[int],
    function: Callable[[Job, ProgressCallback], Arrays],
    job: Callable[[int, int], Job],
    *,
    count: int,
    size: int,
    error: type[ArcfleetError],
    workers: int | None,
    executor: str,
    progress: CountCallback | None,
) -> None:
    """Make the chunks that a store lacks, of those that begin at `firsts`."""
    kept = {chunk.first for chunk in store.records}
    left = [first for first in firsts if first not in kept]
    total = sum(min(size, count - first) for first in firsts)

    def tell() -> None:
        if progress is not None:
            progress(sum(min(size, count - x.first) for x in store.records), total)

    def keep(number: int, arrays: Arrays) -> None:
        texts = {name: _encode(values) for name, values in arrays.items()}
        store.add(Chunk(first=left[number], arrays=texts))
        tell()

    tell()
    jobs = [job(first, min(first + size, count)) for first in left]
    run_all(function, jobs, keep, workers=workers, error=error, executor=executor)


def run_all(
    function: Callable[[Job, ProgressCallback], Outcome],
    jobs: Sequence[Job],
    keep: Callable[[int, Outcome], None],
    *,
    workers: int | None,
    error: type[ArcfleetError] = ArcfleetError,
    executor: str = PROCESSES,
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

    workers = None if workers is None else max(1, min(workers, len(jobs)))
    run_tasks(function, jobs, workers=workers, finished=finished, executor=executor)
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
    form = LineFormat(CHUNKS, Chunk, what)
    return Store(store_path(path), form, {**identity, "count": count, "chunk": size})


def joined(chunks: Iterable[Chunk], path: Path) -> Arrays:
    """Return the arrays of all chunks, those of a file, one after the other."""
    chunks = sorted(chunks, key=lambda chunk: chunk.first)
    try:
        parts = [{name: _decode(x) for name, x in c.arrays.items()} for c in chunks]
        names = parts[0] if parts else {}
        return {name: np.concatenate([part[name] for part in parts]) for name in names}
    except _NOT_ARRAYS as error:
        raise FileError(path, "expected arrays, found others: delete it") from error


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
