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
    from pathlib import Path

    from arcfleet.datasets.array_file import Array
    from arcfleet.search.stop import ProgressCallback

    Arrays = dict[str, Array]

Job = TypeVar("Job")

#: Takes the number of instances done and the number of all.
CountCallback = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Arrays of some neighbouring instances, as a line of a store."""

    first: int  # position of the first instance
    arrays: dict[str, str]  # arrays by name: the bytes of an .npy file each, in base 64

    @classmethod
    def of(cls, first: int, arrays: Mapping[str, Array]) -> Chunk:
        """Return the chunk of arrays."""
        return cls(first=first, arrays={name: _encode(x) for name, x in arrays.items()})

    def decode(self) -> Arrays:
        """Return the arrays."""
        return {name: _decode(text) for name, text in self.arrays.items()}


def make_chunks(
    path: Path,
    identity: Mapping[str, object],
    function: Callable[[Job, ProgressCallback], Arrays],
    job: Callable[[int, int], Job],
    *,
    count: int,
    size: int,
    what: str,
    error: type[ArcfleetError],
    workers: int,
    progress: CountCallback | None,
) -> Store[Chunk]:
    """Make the chunks that a store beside a file lacks, and return it with all of them.

    `function` makes the arrays of a chunk, in a worker, from what `job` returns for its
    first instance and the one after its last. Ctrl-C keeps what is finished.
    """
    store = _open(path, identity, count, size, what)
    try:
        kept = {chunk.first for chunk in store.records}
        left = [first for first in range(0, count, size) if first not in kept]
        failures: list[TaskFailure] = []

        def tell() -> None:
            if progress is not None:
                progress(sum(min(size, count - x.first) for x in store.records), count)

        def finish(position: int, outcome: Arrays | TaskFailure) -> None:
            if isinstance(outcome, TaskFailure):
                failures.append(outcome)
                return
            store.add(Chunk.of(left[position], outcome))
            tell()

        tell()
        run_tasks(
            function,
            (job(first, min(first + size, count)) for first in left),
            workers=max(1, min(workers, len(left))),
            finished=finish,
        )
        raise_failures(failures, error)
        if len(store.records) < len(range(0, count, size)):
            raise KeyboardInterrupt
    except BaseException:
        if store.records:
            store.close()
        else:  # nothing that another run could go on from
            store.remove()
        raise
    return store


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


def joined(store: Store[Chunk]) -> Arrays:
    """Return the arrays of all chunks, one after the other."""
    chunks = sorted(store.records, key=lambda chunk: chunk.first)
    try:
        parts = [chunk.decode() for chunk in chunks]
    except (ValueError, binascii.Error) as error:
        raise FileError(store.path, "expected arrays, found others: delete it") from error
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def store_path(path: Path) -> Path:
    """Return the store of a file in the making."""
    return path.with_name(f"{path.name}.log")


def raise_failures(failures: Sequence[TaskFailure], error: type[ArcfleetError]) -> None:
    """Raise the first reason why tasks have no outcome, if there is one."""
    for failure in failures:
        if failure.interrupted:
            raise KeyboardInterrupt
        raise error(failure.message)


def _encode(values: Array) -> str:
    if values.dtype.kind in "iu" and (not values.size or values.min() >= 0):
        values = small_integers(values)
    stream = io.BytesIO()
    np.lib.format.write_array(stream, values, allow_pickle=False)
    return base64.b64encode(stream.getvalue()).decode()


def _decode(text: str) -> Array:
    stream = io.BytesIO(base64.b64decode(text, validate=True))
    return np.lib.format.read_array(stream, allow_pickle=False)
