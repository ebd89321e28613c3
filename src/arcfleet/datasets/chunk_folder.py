"""What `arcfleet dataset make` keeps until the file is whole: chunks, and the streets."""

from __future__ import annotations

import contextlib
import re
import warnings
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from arcfleet.datasets.array_file import Array, ArrayFile, write_array_file
from arcfleet.datasets.dataset import MADE_BY
from arcfleet.errors import FileError, FormatWarning
from arcfleet.streets.street_arrays import StreetArrays

if TYPE_CHECKING:
    from pathlib import Path

_CHUNK_FORMAT = "arcfleet-dataset-chunk"
_STREETS_FORMAT = "arcfleet-street-arrays"
_VERSION = 1


def chunk_folder_of(path: Path) -> Path:
    """Give the folder that keeps the chunks of a file in the making."""
    return path.with_name(f"{path.name}.parts")


class ChunkFolder:
    """The finished chunks of a data set that is not complete yet.

    Parameters
    ----------
    path
        The file in the making; the folder lies beside it.
    facts
        What it is made from; chunks that are there already must have the same.
    count
        Of all chunks; their numbers start at 0.

    Raises
    ------
    FileError
        If the folder cannot be made or holds chunks of another run.

    Warns
    -----
    FormatWarning
        If a chunk was damaged; it is deleted and can be made again.
    """

    def __init__(self, path: Path, facts: dict[str, object], count: int) -> None:
        self.path = chunk_folder_of(path)
        self.facts = facts
        try:
            self.path.mkdir(exist_ok=True)
        except OSError as error:
            raise FileError(self.path, f"cannot be made ({error.strerror})") from error
        self.chunks: dict[int, Path] = {}
        for file in sorted(self.path.glob("chunk-*.npz")):
            number = _number(file, count)
            try:
                found = _facts_of(file)
            except FileError:
                file.unlink(missing_ok=True)
                warnings.warn(
                    f"{file}: dropped this chunk, which is cut short or damaged; "
                    "its instances are made again",
                    FormatWarning,
                    stacklevel=3,
                )
                continue
            if found != facts:
                raise FileError(
                    self.path,
                    "expected chunks made with the same arguments, found those of another "
                    "run: delete this folder or name another file",
                )
            self.chunks[number] = file

    def keep_streets(self, streets: StreetArrays) -> Path:
        """Write the streets where the workers find them."""
        file = self.path / f"streets-{str(self.facts['streets_sha256'])[:16]}.npz"
        arrays = {field.name: getattr(streets, field.name) for field in fields(streets)}
        write_array_file(file, _STREETS_FORMAT, _VERSION, {}, arrays)
        return file

    def add(self, number: int, arrays: dict[str, Array]) -> None:
        """Keep one more chunk."""
        file = self.path / f"chunk-{number:06}.npz"
        write_array_file(file, _CHUNK_FORMAT, _VERSION, {"of": self.facts}, arrays)
        self.chunks[number] = file

    def arrays(self) -> dict[str, Array]:
        """Put all chunks one after the other."""
        files = [
            ArrayFile(self.chunks[number], _CHUNK_FORMAT, _VERSION, MADE_BY)
            for number in sorted(self.chunks)
        ]
        names = files[0].fact("sha256", dict)
        return {name: np.concatenate([f.array(name) for f in files]) for name in names}

    def remove(self) -> None:
        """Delete what was put there, and the folder unless it holds something else."""
        _remove(self.path)


def remove_leftover(path: Path, facts: dict[str, object]) -> None:
    """Delete the folder beside a finished file, unless it holds chunks of another run."""
    folder = chunk_folder_of(path)
    try:
        of_this_run = all(_facts_of(f) == facts for f in folder.glob("chunk-*.npz"))
    except FileError:
        return
    if of_this_run:
        _remove(folder)


def _number(file: Path, count: int) -> int:
    digits = re.fullmatch(r"chunk-([0-9]{6,9})\.npz", file.name)
    if digits is None or int(digits[1]) >= count:
        raise FileError(
            file,
            f"expected names from chunk-000000.npz to chunk-{count - 1:06}.npz, found "
            "another: move this file elsewhere",
        )
    return int(digits[1])


def _facts_of(file: Path) -> dict[str, object]:
    """Give what a chunk is made from; FileError unless all of its arrays are whole."""
    chunk = ArrayFile(file, _CHUNK_FORMAT, _VERSION, MADE_BY)
    for name in chunk.fact("sha256", dict):
        chunk.array(name)
    facts: dict[str, object] = chunk.fact("of", dict)
    return facts


def _remove(folder: Path) -> None:
    for pattern in ("chunk-*.npz", "streets-*.npz", ".arcfleet-*.tmp"):
        for file in folder.glob(pattern):
            file.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def read_streets(file: Path) -> StreetArrays:
    """Read what `ChunkFolder.keep_streets` wrote."""
    arrays = ArrayFile(file, _STREETS_FORMAT, _VERSION, MADE_BY)
    names = [field.name for field in fields(StreetArrays)]
    return StreetArrays(**{name: arrays.array(name) for name in names})
