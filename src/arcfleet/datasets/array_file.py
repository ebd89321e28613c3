"""One file of named arrays with a header: the container of data sets and labels.

It is an .npz that `numpy.load` reads too, but written so that the same arrays give the
same bytes: members are stored as they are, in order, with one fixed date. The member
`header` is JSON: format, version, facts, and the SHA-256 of every array. Nothing is
pickled.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arcfleet._files import check_zip_size, write_bytes_atomically
from arcfleet.errors import FileError, OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

Array = NDArray[Any]

_HEADER = "header.npy"
_DATE = (1980, 1, 1, 0, 0, 0)
_LARGEST_HEADER = 1 << 24
#: What a whole number may be: more does not fit an instance.
LARGEST = 2**31 - 1


def small_integers(values: Array) -> Array:
    """Return whole numbers of at least 0 in the smallest type that holds them all."""
    most = int(values.max()) if values.size else 0
    for dtype in (np.uint8, np.uint16, np.int32):
        if most <= np.iinfo(dtype).max:
            return values.astype(dtype)
    return values.astype(np.int64)


def require_npz(path: Path) -> None:
    """Raise OptionError where the name does not say what the file will be."""
    if path.suffix != ".npz":
        raise OptionError(f"expected a file ending in .npz, got {path.name!r}")


def require_same_facts(
    path: Path, found: Mapping[str, object], expected: Mapping[str, object]
) -> None:
    """Raise FileError where a finished file was made with other arguments."""
    for name, value in expected.items():
        if found.get(name) != value:
            raise FileError(
                path,
                f"expected no file or one made with {name} {value!r}, found one "
                f"with {found.get(name)!r}: name another file or delete this one",
            )


def starts_of(counts: Array) -> NDArray[np.int64]:
    """Return where the entries of each instance start, and their total."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def position_of(index: int, length: int) -> int:
    """Return the position of an index, which may count from the end."""
    position = index + length if index < 0 else index
    if not 0 <= position < length:
        raise IndexError(f"expected an index below {length}, got {index}")
    return position


def write_array_file(
    path: Path | str,
    name: str,
    version: int,
    facts: Mapping[str, object],
    arrays: Mapping[str, Array],
) -> None:
    """Write a file whole or not at all."""
    header = {
        "format": name,
        "version": version,
        **facts,
        "sha256": {name: _digest(values) for name, values in arrays.items()},
    }
    text = json.dumps(header, ensure_ascii=False).encode()
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_STORED) as archive:
        members = {_HEADER: np.frombuffer(text, dtype=np.uint8)}
        members |= {f"{name}.npy": values for name, values in arrays.items()}
        for name, values in members.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, _little(values), allow_pickle=False)
            entry = zipfile.ZipInfo(name, _DATE)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, member.getvalue())
    write_bytes_atomically(path, data.getvalue())


class ArrayFile:
    """An open file of arrays: the header is read at once, an array on first use."""

    def __init__(self, path: Path | str, name: str, version: int, made_by: str) -> None:
        self.path = Path(path)
        self._made_by = made_by
        data = self._member(_HEADER)
        if data.dtype != np.uint8 or data.ndim != 1:
            raise self._foreign()
        try:
            header = json.loads(data.tobytes())
        except (ValueError, RecursionError) as error:
            raise self._foreign() from error
        if not isinstance(header, dict) or header.get("format") != name:
            found = header.get("format") if isinstance(header, dict) else None
            raise self._foreign(
                f"one of format {str(found)[:40]!r}" if found else "another"
            )
        if header.get("version") not in range(1, version + 1):
            raise FileError(
                self.path,
                f"expected version {version} of {name} or older, found version "
                f"{header.get('version')!r:.40}: make it again with `{made_by}`",
            )
        self.facts: dict[str, Any] = header
        #: Stands for everything in the file, since the header has the arrays' checksums.
        self.checksum = hashlib.sha256(data.tobytes()).hexdigest()

    def array(self, name: str) -> Array:
        """Read one array and compare its checksum."""
        values = self._member(f"{name}.npy")
        stated = self.facts.get("sha256")
        if not isinstance(stated, dict) or stated.get(name) != _digest(values):
            raise FileError(
                self.path,
                f"expected the array {name!r} to have the checksum in the header, found "
                f"another: the file was changed; make it again with `{self._made_by}`",
            )
        return values

    def require_lengths(
        self, arrays: Mapping[str, Array], lengths: Mapping[str, int]
    ) -> None:
        """Raise FileError where an array has another number of entries than stated."""
        for name, length in lengths.items():
            if arrays[name].shape != (length,):
                raise FileError(
                    self.path,
                    f"expected {length} entries of {name!r}, found an array of shape "
                    f"{arrays[name].shape}: make it again with `{self._made_by}`",
                )

    def require_integers(self, arrays: Mapping[str, Array]) -> None:
        """Raise FileError where an array holds anything but numbers from 0 to 2^31 - 1."""
        for name, values in arrays.items():
            self.require_numbers(
                name,
                values.dtype.kind in "iu"
                and (not values.size or (values.min() >= 0 and values.max() <= LARGEST)),
                f"whole numbers from 0 to {LARGEST}",
            )

    def require_numbers(self, name: str, fits: object, expected: str) -> None:
        """Raise FileError unless what an array holds fits."""
        if not fits:
            raise FileError(
                self.path,
                f"expected {expected} in the array {name!r}, found others: make it again "
                f"with `{self._made_by}`",
            )

    def number(self, name: str, least: int = 0) -> int:
        """Return a whole number of the header, at most 2^31 - 1, or raise FileError."""
        value = self.fact(name, int)
        if not least <= value <= LARGEST:
            raise FileError(
                self.path,
                f"expected a header with {name!r} from {least} to {LARGEST}, found "
                f"another: make it again with `{self._made_by}`",
            )
        return int(value)

    def fact(self, name: str, expected: type) -> Any:
        """Return a fact of the header, or raise FileError where it is of another type."""
        value = self.facts.get(name)
        if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
            raise FileError(
                self.path,
                f"expected a header with {name!r} as {expected.__name__}, found "
                f"{value!r:.40}: "
                f"make it again with `{self._made_by}`",
            )
        return value

    def _member(self, name: str) -> Array:
        try:
            with zipfile.ZipFile(self.path) as archive:
                if name not in archive.namelist():
                    raise self._foreign()
                member = archive.getinfo(name)
                if name == _HEADER and member.file_size > _LARGEST_HEADER:
                    raise self._foreign()
                # We store; what another program packed may be a bomb.
                if member.compress_type != zipfile.ZIP_STORED:
                    check_zip_size(self.path, archive)
                stream = io.BytesIO(archive.read(name))
                return np.lib.format.read_array(stream, allow_pickle=False)
        except FileError:
            raise
        except OSError as error:
            raise FileError(
                self.path, f"cannot be read ({error.strerror or error})"
            ) from error
        # zipfile, what unpacks beneath it, and numpy raise errors of many kinds.
        except Exception as error:
            raise self._damaged() from error

    def _damaged(self) -> FileError:
        try:
            with self.path.open("rb") as stream:
                start = stream.read(4)
        except (OSError, ValueError):
            start = b""
        if start != b"PK\x03\x04":
            return self._foreign()
        return FileError(
            self.path,
            "expected a whole file, found one that is cut short or damaged: "
            f"copy it again or make it again with `{self._made_by}`",
        )

    def _foreign(self, found: str = "another") -> FileError:
        return FileError(
            self.path, f"expected a file made by `{self._made_by}`, found {found}"
        )


def _digest(values: Array) -> str:
    plain = _little(values)
    total = hashlib.sha256(f"{plain.dtype.str} {plain.shape} ".encode())
    total.update(plain.tobytes())
    return total.hexdigest()


def _little(values: Array) -> Array:
    """Return the array as it is written: contiguous, little-endian."""
    return np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
