"""Labels as they come: an append-only file that loses at most what was being written.

The first line is JSON and says what is being labelled and how. Then come records, each
written by one call: a mark, the length and the CRC-32 of what follows, and the labels of
some instances in a row as 32- and 64-bit integers.
"""

from __future__ import annotations

import json
import struct
import warnings
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from arcfleet._files import check_writable
from arcfleet.errors import FileError, FormatWarning

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

_FORMAT = "arcfleet-label-log-1"
_MARK = b"LBL1"
_HEAD = struct.Struct("<4sII")  # mark, length, CRC-32


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelChunk:
    """Plans of some instances in a row.

    Parameters
    ----------
    first
        Position of the first instance.
    cost
        Total cost of each plan.
    num_routes
        Number of routes of each plan.
    route_length
        Number of services of each route, plan after plan.
    services
        Twice the position of the link, plus one if it is served from head to tail;
        route after route.
    """

    first: int
    cost: NDArray[np.int64]
    num_routes: NDArray[np.int32]
    route_length: NDArray[np.int32]
    services: NDArray[np.int32]

    def encode(self) -> bytes:
        """Give its bytes."""
        sizes = [len(self.cost), len(self.route_length), len(self.services)]
        return b"".join(
            [
                np.array([self.first, *sizes], dtype="<i8").tobytes(),
                self.cost.astype("<i8").tobytes(),
                self.num_routes.astype("<i4").tobytes(),
                self.route_length.astype("<i4").tobytes(),
                self.services.astype("<i4").tobytes(),
            ]
        )

    @classmethod
    def decode(cls, data: bytes) -> LabelChunk:
        """Read what `encode` gave; ValueError where it is something else."""
        if len(data) < 32:
            raise ValueError("too short for a chunk of labels")
        first, plans, routes, services = np.frombuffer(data[:32], "<i8").tolist()
        length = 32 + 12 * plans + 4 * routes + 4 * services
        if min(first, plans, routes, services) < 0 or len(data) != length:
            raise ValueError("not as long as it says")
        numbers = np.frombuffer(data[32 + 8 * plans :], "<i4")
        chunk = cls(
            first=first,
            cost=np.frombuffer(data[32 : 32 + 8 * plans], "<i8"),
            num_routes=numbers[:plans],
            route_length=numbers[plans : plans + routes],
            services=numbers[plans + routes :],
        )
        if chunk.num_routes.sum() != routes or chunk.route_length.sum() != services:
            raise ValueError("its counts do not fit together")
        return chunk


class LabelLog:
    """The file, open for adding; what it held is in `chunks`, by the first instance.

    Parameters
    ----------
    path
        The file; made where it is missing.
    facts
        What is being labelled and how; an existing file must have the same.

    Raises
    ------
    FileError
        If it is something else, of another run, or being written by another process.
    """

    def __init__(self, path: Path, facts: Mapping[str, object]) -> None:
        self.path = path
        self.chunks: dict[int, LabelChunk] = {}
        check_writable(path)
        header = json.dumps({"format": _FORMAT, **facts}).encode() + b"\n"
        try:
            self._stream = path.open("a+b", buffering=0)
        except OSError as error:
            raise FileError(path, f"cannot be written ({error.strerror})") from error
        try:
            _lock(self._stream, path)
            self._resume(header)
        except BaseException as error:
            self._stream.close()
            if isinstance(error, OSError):
                raise FileError(path, f"cannot be read ({error.strerror})") from error
            raise

    def add(self, chunk: LabelChunk) -> None:
        """Append one chunk."""
        payload = chunk.encode()
        self._write(_HEAD.pack(_MARK, len(payload), zlib.crc32(payload)) + payload)
        self.chunks[chunk.first] = chunk

    def close(self) -> None:
        """Close the file and let others have it."""
        self._stream.close()

    def remove(self) -> None:
        """Delete the file, once its labels are kept elsewhere."""
        self.path.unlink(missing_ok=True)
        self._stream.close()

    def _write(self, data: bytes) -> None:
        try:
            written = self._stream.write(data)
        except OSError as error:
            raise FileError(self.path, f"cannot be written ({error.strerror})") from error
        if written != len(data):
            raise FileError(self.path, "could be written only in part; free some space")

    def _resume(self, header: bytes) -> None:
        """Read what is there and drop what was cut off; a new file gets its first line."""
        self._stream.seek(0)
        data = self._stream.read()
        if len(data) < len(header) and header.startswith(data):
            self._stream.truncate(0)  # killed while it wrote the first line
            self._write(header)
            return
        line, _, rest = data.partition(b"\n")
        self._check_header(line, json.loads(header))
        offset = 0
        while (record := _record(rest, offset)) is not None:
            chunk, offset = record
            self.chunks[chunk.first] = chunk
        if offset < len(rest):
            # The labels lost here are made again, and come out the same.
            self._stream.truncate(len(line) + 1 + offset)
            warnings.warn(
                f"{self.path}: dropped the last {len(rest) - offset} bytes, which were cut "
                "off or damaged while they were written",
                FormatWarning,
                stacklevel=4,
            )

    def _check_header(self, line: bytes, expected: dict[str, Any]) -> None:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or found.get("format") != _FORMAT:
            raise FileError(
                self.path,
                "expected labels in the making, found something else: move it away",
            )
        if found != expected:
            names = expected | found  # what one of them lacks differs too
            differing = [n for n in names if found.get(n) != expected.get(n)]
            raise FileError(
                self.path,
                f"expected labels in the making with the same {' and '.join(differing)}, "
                "found those of another run: delete it or name another file",
            )


def _record(data: bytes, offset: int) -> tuple[LabelChunk, int] | None:
    """Read the record at an offset and tell where it ends; None where there is none."""
    if offset + _HEAD.size > len(data):
        return None
    mark, length, checksum = _HEAD.unpack_from(data, offset)
    end = offset + _HEAD.size + length
    payload = data[offset + _HEAD.size : end]
    if mark != _MARK or end > len(data) or zlib.crc32(payload) != checksum:
        return None
    try:
        return LabelChunk.decode(payload), end
    except ValueError:
        return None


def _lock(stream: Any, path: Path) -> None:
    """Keep other processes out until the file is closed, even by a kill."""
    try:
        import fcntl
    except ImportError:  # not on this system
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise FileError(
            path, "expected to label alone, found another process at it: wait for its end"
        ) from error
