"""Write a file whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

from arcfleet.errors import FileError


def check_writable(path: Path | str) -> None:
    """Raise FileError where writing to `path` would fail; for use before long work."""
    target = _target(path)
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise FileError(
            path,
            f"expected a directory to write in, but {target.parent} is not; choose another",
        )


def write_text_atomically(path: Path | str, text: str) -> None:
    """Write `text` as UTF-8, as `write_bytes_atomically` does."""
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        bad = text[error.start : error.start + 1]
        raise FileError(
            path, f"expected text that UTF-8 can hold, found {bad!r}"
        ) from error
    write_bytes_atomically(path, data)


def write_bytes_atomically(path: Path | str, data: bytes) -> None:
    """Write `data` to a file beside `path`, then put it in the place of `path`.

    A reader sees the old file or the new one; a failed write leaves neither a half
    file nor a temporary one behind.
    """
    target = _target(path)
    try:
        temporary = target.with_name(f".arcfleet-{secrets.token_hex(8)}.tmp")
        try:
            # Opened the plain way, so that the file gets the user's usual permissions.
            with temporary.open("xb") as stream:
                stream.write(data)
            if target.exists():
                shutil.copymode(target, temporary)
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        raise _not_writable(path, error) from error


def _target(path: Path | str) -> Path:
    """Give the file that would be replaced, or raise FileError where there can be none."""
    try:
        # A link to a file stays a link: what it points to is replaced.
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            raise FileError(
                path, "expected a file to write to, found a directory or device"
            )
        if not target.parent.is_dir():
            raise FileError(
                path, f"expected an existing directory {target.parent}; create it first"
            )
    except (OSError, ValueError) as error:
        raise _not_writable(path, error) from error
    return target


def _not_writable(path: Path | str, error: Exception) -> FileError:
    reason = getattr(error, "strerror", None) or str(error)
    return FileError(
        path, f"cannot be written ({reason}); choose another place or free this one"
    )
