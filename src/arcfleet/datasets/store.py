"""One file of JSON lines for everything that takes long and must survive a kill.

The first line names the format and the identity of the work; every other line is one
record, written by one call and closed by its CRC-32. A kill can therefore cut only the last
line, which is dropped with a warning when the file is opened again. Files written before
there was a first line, where every line names the format, are read and continued as they
are.
"""

from __future__ import annotations

import json
import os
import re
import types
import typing
import warnings
import zlib
from dataclasses import MISSING, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, TypeVar

from arcfleet._files import (
    check_writable,
    read_bytes,
    reading,
    write_bytes_atomically,
)
from arcfleet.errors import FileError, FormatWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from typing import BinaryIO

Record = TypeVar("Record")

_CHECKSUM = b', "crc32": "'
_NOT_OURS = (
    *(ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError),
)
_LARGEST = 2**63 - 1
_FORMAT = re.compile(rb'\{"format": "([a-z0-9-]{1,40})"[,}]')
_LONGEST_NAME = 60


class LineFormat(NamedTuple, Generic[Record]):
    """What the lines of a store hold."""

    name: str  # name of the format, with its version
    # Frozen dataclass of one line, of plain numbers, texts, tuples and dicts.
    record: type[Record]
    what: str  # noun phrase for one line, for messages: "a run of `arcfleet bench`"
    # Function that turns the members of an older line into those of `record`.
    upgrade: Callable[[dict[str, Any]], dict[str, Any]] = lambda facts: facts


class Store(Generic[Record]):
    """A file of records, open for adding.

    `records` holds those that were there and those added since. An existing file must have
    the same identity. FileError is raised if it holds something else, belongs to another
    run, is being written by another process, or cannot be written.
    """

    def __init__(
        self,
        path: Path,
        form: LineFormat[Record],
        identity: Mapping[str, object] | None = None,
    ) -> None:
        self.path = path
        self._form = form
        check_writable(path)
        self._stream, is_new = _open_alone(path)
        try:
            self._stream.seek(0)
            found = _parse(path, self._stream.read(), form, identity)
            self.records = found.records
            self._is_old = found.is_old
            self._stream.truncate(found.length)
            if not found.length:
                header = {"format": form.name, "identity": dict(identity or {})}
                self._write(_checked(header))
        except BaseException as error:
            if is_new and not self._stream.seek(0, os.SEEK_END):
                self.remove()
            self.close()
            if isinstance(error, OSError):
                raise _not_writable(path, error) from error
            raise

    def __enter__(self) -> Store[Record]:
        """Return the store."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self.close()

    def add(self, record: Record) -> None:
        """Append one record."""
        facts = _members_of(record)
        if self._is_old:
            line = json.dumps({"format": self._form.name, **facts}).encode() + b"\n"
        else:
            line = _checked(facts)
        self._write(line)
        self.records.append(record)

    def rewind(self, count: int) -> None:
        """Drop all records but the first so many."""
        self._stream.seek(0)
        lines = self._stream.read().split(b"\n")[: count + (not self._is_old)]
        self._stream.truncate(sum(len(line) + 1 for line in lines))
        del self.records[count:]

    def close(self) -> None:
        """Close the file and release it for other processes."""
        self._stream.close()

    def remove(self) -> None:
        """Delete the file, once its records are kept elsewhere."""
        if os.name == "nt":  # where an open file cannot be deleted
            self.close()
        self.path.unlink(missing_ok=True)
        self.close()

    def _write(self, line: bytes) -> None:
        """Append a line, or take back what of it could be written."""
        before = self._stream.seek(0, os.SEEK_END)
        try:
            written = self._stream.write(line)
        except OSError as error:
            raise _not_writable(self.path, error) from error
        if written != len(line):
            self._stream.truncate(before)
            raise FileError(
                self.path,
                "cannot be written (no space left); free some, the same command goes on "
                "from what is there",
            )


def read_records(path: Path, form: LineFormat[Record]) -> list[Record]:
    """Read the records of a file without touching it."""
    return _parse(path, read_bytes(path), form, None).records


def read_with_identity(
    path: Path, form: LineFormat[Record]
) -> tuple[dict[str, Any], list[Record]]:
    """Read the identity and the records of a file without touching it."""
    found = _parse(path, read_bytes(path), form, None)
    return found.identity, found.records


def format_in(path: Path) -> str | None:
    """Return the name of the format in the first line of a file; None if it has none."""
    with reading(path), path.open("rb") as stream:
        line = stream.readline(_LONGEST_NAME)
    # The first member of the first line, which may be long.
    found = _FORMAT.match(line)
    return found.group(1).decode() if found else None


def write_store(
    path: Path,
    form: LineFormat[Record],
    identity: Mapping[str, object],
    records: Iterable[Record],
) -> None:
    """Write a whole file of records at once, or none."""
    lines = [_checked({"format": form.name, "identity": dict(identity)})]
    lines += [_checked(_members_of(record)) for record in records]
    write_bytes_atomically(path, b"".join(lines))


def _members_of(record: object) -> dict[str, Any]:
    return {x.name: getattr(record, x.name) for x in fields(record)}  # type: ignore[arg-type]


class _Found(NamedTuple, Generic[Record]):
    records: list[Record]
    length: int  # bytes to keep
    identity: dict[str, Any]
    is_old: bool  # whether every line names the format


def _parse(
    path: Path,
    data: bytes,
    form: LineFormat[Record],
    identity: Mapping[str, object] | None,
) -> _Found[Record]:
    start = f'{{"format": "{form.name}", '.encode()
    *lines, tail = data.split(b"\n")
    if not lines:
        if not (tail.startswith(start) or start.startswith(tail)):
            _refuse(path, form, 1)
        return _Found([], 0, {}, False)  # new, or killed while its first line was written
    header = _header(lines[0], form.name)
    if header is not None and identity is not None:
        _require_same(path, form, header, json.loads(json.dumps(identity)))
    if header is None and tail and not (tail.startswith(start) or start.startswith(tail)):
        _refuse(path, form, len(lines) + 1)  # not ours to cut off
    records: list[Record] = []
    damaged = [len(lines) + 1] if tail else []
    for number, line in enumerate(lines, start=1):
        if header is not None and number == 1:
            continue
        try:
            facts = json.loads(line)
            if header is None and facts.pop("format") != form.name:
                raise ValueError("another format")
            if header is not None and not _is_whole(line):
                raise ValueError("damaged")
            facts.pop("crc32", None)
            records.append(record_from(form.record, form.upgrade(facts)))
        except _NOT_OURS as error:
            if header is None:
                _refuse(path, form, number, error)
            damaged.append(number)
    for number in sorted(damaged):
        warnings.warn(
            f"{path}:{number}: dropped a line that was cut off or damaged while it was "
            "written",
            FormatWarning,
            stacklevel=4,
        )
    return _Found(records, len(data) - len(tail), header or {}, header is None)


def _header(line: bytes, name: str) -> dict[str, Any] | None:
    """Return the identity in the first line; None in a file without one."""
    try:
        facts = json.loads(line)
        identity = facts["identity"] if facts["format"] == name else None
    except _NOT_OURS:
        return None
    return identity if isinstance(identity, dict) else None


def _require_same(
    path: Path, form: LineFormat[Any], found: dict[str, Any], expected: dict[str, Any]
) -> None:
    names = [n for n in expected | found if found.get(n) != expected.get(n)]
    if names:
        raise FileError(
            path,
            f"expected {form.what} with the same {' and '.join(names)}, found another run: "
            "delete the file or name another one",
        )


def _refuse(
    path: Path, form: LineFormat[Any], line: int, cause: Exception | None = None
) -> NoReturn:
    raise FileError(
        path, f"expected {form.what}, found something else; name another file", line
    ) from cause


def _checked(facts: Mapping[str, object]) -> bytes:
    """Return a line of JSON with its CRC-32 as the last member."""
    body = json.dumps(facts).encode()
    checksum = f"{zlib.crc32(body):08x}".encode()
    # An empty object has no member to put a comma after.
    return body[:-1] + _CHECKSUM[0 if facts else 2 :] + checksum + b'"}\n'


def _is_whole(line: bytes) -> bool:
    body, mark, checksum = line.rpartition(_CHECKSUM)
    return bool(mark) and checksum == f'{zlib.crc32(body + b"}"):08x}"}}'.encode()


def _open_alone(path: Path) -> tuple[BinaryIO, bool]:
    """Open a file that no other process writes, and return whether it was not there."""
    while True:
        is_new = not path.exists()
        try:
            stream: BinaryIO = path.open("a+b", buffering=0)
        except OSError as error:
            raise _not_writable(path, error) from error
        try:
            _lock(stream, path)
            if _is_at(path, stream):
                return stream, is_new
        except BaseException:
            stream.close()
            raise
        stream.close()  # another process ended and removed it meanwhile


def _is_at(path: Path, stream: BinaryIO) -> bool:
    """Return whether an open file is still the one of that name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(stream.fileno()))
    except FileNotFoundError:
        return False


def _lock(stream: BinaryIO, path: Path) -> None:
    """Keep other processes out until the file is closed, even by a kill."""
    try:
        import fcntl
    except ImportError:  # not on this system
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise FileError(
            path, "expected to write alone, found another process at it: wait for its end"
        ) from error


def _not_writable(path: Path, error: OSError) -> FileError:
    return FileError(
        path, f"cannot be written ({error.strerror}); choose another place or free this one"
    )


def record_from(record: type[Record], facts: Mapping[str, Any]) -> Record:
    """Build a record from the members of a line."""
    hints, required = _members(record)  # type: ignore[arg-type]
    if not required <= facts.keys() <= hints.keys():
        raise ValueError(f"expected the members {', '.join(hints)}")
    return record(**{name: _as(hints[name], value) for name, value in facts.items()})


@lru_cache
def _members(record: type[Any]) -> tuple[dict[str, Any], set[str]]:
    hints = typing.get_type_hints(record)
    members = fields(record)
    required = {x.name for x in members if x.default is x.default_factory is MISSING}
    return {x.name: hints[x.name] for x in members}, required


def _as(hint: Any, value: Any) -> Any:
    """Return a value of JSON as the type that is stated; ValueError where it is none."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        for option in inner:
            try:
                return _as(option, value)
            except ValueError:
                continue
    elif origin is tuple and isinstance(value, list):
        if inner[-1] is not Ellipsis:
            if len(value) == len(inner):
                return tuple(_as(x, y) for x, y in zip(inner, value, strict=True))
        elif inner[0] is not int:
            return tuple(_as(inner[0], x) for x in value)
        elif all(type(x) is int and abs(x) <= _LARGEST for x in value):
            return tuple(value)
    elif hint is Any:
        return value
    elif origin is dict and isinstance(value, dict):
        return {name: _as(inner[1], x) for name, x in value.items()}
    elif type(value) is int and hint in (int, float):
        if abs(value) <= _LARGEST:
            return value
    elif type(value) is hint:
        return value
    raise ValueError(f"expected {hint}, got {value!r:.40}")
