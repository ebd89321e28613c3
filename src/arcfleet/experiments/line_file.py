"""A file of JSON lines that can be added to, and resumed after a kill."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NoReturn

from arcfleet._files import check_writable
from arcfleet.errors import FileError, FormatWarning

if TYPE_CHECKING:
    from pathlib import Path


class LineFile:
    """The lines of a file, and the place to add to.

    Each line is written by one call, unbuffered: a kill can cut only the last one. Such a
    half line is dropped with a warning when the file is opened again.

    Parameters
    ----------
    path
        The file; made where it is missing.
    kind
        The format. Every line is a JSON object whose first member names it.
    what
        A line is, for messages: "a run of `arcfleet bench`".

    Raises
    ------
    FileError
        If the file cannot be read, or ends with something else than such a line.
    """

    def __init__(self, path: Path, kind: str, what: str) -> None:
        self.path = path
        self.what = what
        # A last line that starts otherwise is not ours to cut off.
        self._start = f'{{"format": "{kind}", '.encode()
        try:
            data = path.read_bytes() if path.exists() else b""
            *self.lines, self._tail = data.split(b"\n")
        except OSError as error:
            raise FileError(path, f"cannot be read ({error.strerror})") from error
        if self._tail and not (
            self._tail.startswith(self._start) or self._start.startswith(self._tail)
        ):
            self.refuse(len(self.lines) + 1)

    def open(self) -> None:
        """Make it ready to be added to, once all its lines have proved to be right."""
        check_writable(self.path)
        try:
            self._stream = self.path.open("ab", buffering=0)
            if self._tail:
                self._stream.truncate(self._stream.tell() - len(self._tail))
        except OSError as error:
            raise self._not_writable(error) from error
        self.warn_of_half_line("dropped")

    def warn_of_half_line(self, done: str) -> None:
        """Warn of a last line that a kill has cut, and say what was done with it."""
        if self._tail:
            warnings.warn(
                f"{self.path}:{len(self.lines) + 1}: {done} a line that was cut off while "
                "it was written",
                FormatWarning,
                stacklevel=5,
            )

    def add(self, line: bytes) -> None:
        """Append one line, which brings its line end."""
        try:
            written = self._stream.write(line)
        except OSError as error:
            raise self._not_writable(error) from error
        if written != len(line):
            raise FileError(self.path, "could be written only in part; free some space")

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def refuse(self, line: int, cause: Exception | None = None) -> NoReturn:
        """Raise FileError: the line of that number, from 1, is none of ours."""
        raise FileError(
            self.path,
            f"expected {self.what}, found something else; name another file",
            line,
        ) from cause

    def _not_writable(self, error: OSError) -> FileError:
        return FileError(self.path, f"cannot be written ({error.strerror})")
