"""What `arcfleet dataset make` keeps until the file is whole: chunks, and the streets."""

from __future__ import annotations

import contextlib
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from arcfleet.datasets.array_file import Array, ArrayFile, write_array_file
from arcfleet.datasets.dataset import MADE_BY
from arcfleet.errors import FileError
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

    Raises
    ------
    FileError
        If the folder cannot be made or holds chunks of another run.
    """

    def __init__(self, path: Path, facts: dict[str, object]) -> None:
        self.path = chunk_folder_of(path)
        self.facts = facts
        try:
            self.path.mkdir(exist_ok=True)
        except OSError as error:
            raise FileError(self.path, f"cannot be made ({error.strerror})") from error
        self.chunks: dict[int, Path] = {}
        for file in sorted(self.path.glob("chunk-*.npz")):
            facts_found = ArrayFile(file, _CHUNK_FORMAT, _VERSION, MADE_BY).fact("of", dict)
            if facts_found != facts:
                raise FileError(
                    self.path,
                    "expected chunks made with the same arguments, found those of another "
                    "run: delete this folder or name another file",
                )
            self.chunks[int(file.stem.removeprefix("chunk-"))] = file

    def keep_streets(self, streets: StreetArrays) -> Path:
        """Write the streets where the workers find them."""
        file = self.path / f"streets-{str(self.facts['streets_sha256'])[:16]}.npz"
        if not file.exists():
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
        for pattern in ("chunk-*.npz", "streets-*.npz", ".arcfleet-*.tmp"):
            for file in self.path.glob(pattern):
                file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.path.rmdir()


def read_streets(file: Path) -> StreetArrays:
    """Read what `ChunkFolder.keep_streets` wrote."""
    arrays = ArrayFile(file, _STREETS_FORMAT, _VERSION, MADE_BY)
    names = [field.name for field in fields(StreetArrays)]
    return StreetArrays(**{name: arrays.array(name) for name in names})
