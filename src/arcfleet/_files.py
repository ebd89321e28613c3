"""Files: read as text or bytes, and written whole or not at all."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import re
import secrets
import shutil
import tomllib
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from arcfleet.errors import FileError, OptionError

if TYPE_CHECKING:
    import zipfile
    from collections.abc import Callable, Iterator, Sequence

# str.splitlines also splits at form feeds and other characters that may stand in a name.
_LINE_END = re.compile(r"\r\n|\n|\r")
_LINE_END_BYTES = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DIGITS = re.compile(r"[0-9]+")
_QUOTE_LENGTH = 60
_GZIP_MAGIC = b"\x1f\x8b"
_BZIP2_MAGIC = b"BZh"
#: A packed file (gzip, bzip2, zip) may hold so many bytes unpacked, or so many times its
#: size where that is more: street maps shrink to a tenth or a twentieth, bombs to less.
UNPACKED_LIMIT = 128 << 20
UNPACKED_RATIO = 50
_CHUNK = 1 << 20


def read_text(path: Path | str) -> str:
    """Return the file's text, or raise FileError if it has none."""
    return decode_text(path, read_bytes(path))


def read_toml(path: Path | str) -> dict[str, Any]:
    """Return the settings of a TOML file, or raise FileError if it is none."""
    try:
        settings = tomllib.loads(read_text(path))
        _check_integers(path, settings)
    except tomllib.TOMLDecodeError as error:
        raise FileError(path, f"expected a TOML file, found: {error}") from None
    except RecursionError as error:
        raise FileError(
            path, "expected a TOML file, found brackets nested too deeply"
        ) from error
    except ValueError as error:
        # Python refuses numbers of thousands of digits.
        raise FileError(
            path, "expected a TOML file, found a number with too many digits"
        ) from error
    return settings


def _check_integers(path: Path | str, value: object) -> None:
    """Raise FileError for an integer of more than 64 bits, which TOML does not have."""
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            _check_integers(path, one)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise FileError(
            path, "expected whole numbers of 64 bits at most, found a larger one"
        )


def is_file(path: Path) -> bool:
    """Return whether there is such a file; a name that no file can have has none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Return whether there is such a folder, as `is_file` does."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def read_bytes(path: Path | str) -> bytes:
    """Return the file's bytes, or raise FileError if it cannot be read."""
    with reading(path):
        return Path(path).read_bytes()


@contextmanager
def reading(path: Path | str, expected: str = "a file") -> Iterator[None]:
    """Turn what the system raises about a file that is read into a FileError."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileError(path, f"expected {expected}, found nothing of that name") from error
    except IsADirectoryError as error:
        raise FileError(path, f"expected {expected}, found a directory") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(path, f"cannot be read ({reason})") from error


def decode_text(
    path: Path | str, data: bytes, remedy: str = "convert the file to UTF-8"
) -> str:
    """Return the text that the bytes of a file spell, or raise FileError."""
    data = data.removeprefix(_BYTE_ORDER_MARK)
    nul = data.find(b"\0")
    if nul >= 0:
        raise FileError(
            path,
            "expected UTF-8 text, found a NUL byte; this is a binary or UTF-16 file",
            _line_at(data, nul),
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(
            path,
            f"expected UTF-8 text, found the byte 0x{data[error.start]:02x}; {remedy}",
            _line_at(data, error.start),
        ) from error


def parse_json(
    path: Path | str, text: str, form: str = "JSON", **hooks: Callable[..., object]
) -> object:
    """Parse the text of a file of JSON; a mistake is a FileError with its line.

    `form` is the name of what was expected, `hooks` are options of `json.loads`.
    """
    try:
        value: object = json.loads(text, **hooks)  # type: ignore[arg-type]
    except json.JSONDecodeError as error:
        found = quote(text.split("\n")[error.lineno - 1])
        raise FileError(
            path, f"expected {form}, found a mistake ({error.msg}) in {found}", error.lineno
        ) from error
    except RecursionError as error:
        raise FileError(
            path, f"expected {form}, found brackets nested too deeply"
        ) from error
    except ValueError as error:
        # Python refuses numbers of thousands of digits.
        raise FileError(
            path, f"expected {form}, found a number with too many digits"
        ) from error
    return value


def split_lines(text: str) -> list[str]:
    """Split at line ends of any system."""
    return _LINE_END.split(text)


def quote(text: str) -> str:
    """Quote file content in a message: on one line and not too long."""
    text = text.strip()
    if len(text) > _QUOTE_LENGTH:
        text = text[: _QUOTE_LENGTH - 3] + "..."
    return repr(text)


def whole_number(text: str, least: int, most: int) -> int | None:
    """Return the number that `text` spells in ASCII digits; None if not in the range."""
    if not _DIGITS.fullmatch(text):
        return None
    # int() refuses very long strings with an error of its own.
    digits = text.lstrip("0") or "0"
    if len(digits) > len(str(most)):
        return None
    number = int(digits)
    return number if least <= number <= most else None


def signed_number(text: str, least: int, most: int) -> int | None:
    """Return the number that `text` spells, as `whole_number` does, also below 0."""
    if not text.startswith("-"):
        return whole_number(text, max(least, 0), most)
    value = whole_number(text[1:], 0, max(-least, 0))
    return None if value is None or -value > most else -value


def _line_at(data: bytes, position: int) -> int:
    return len(_LINE_END_BYTES.findall(data, 0, position)) + 1


def read_unpacked(path: Path | str) -> bytes:
    """Return the file's bytes, unpacked where its first bytes say that it is packed."""
    data = read_bytes(path)
    return unpack(path, data) if data.startswith((_GZIP_MAGIC, _BZIP2_MAGIC)) else data


def unpack(path: Path | str, data: bytes) -> bytes:
    """Return what gzip or bzip2 has packed in a file or a part of one, or raise FileError.

    More than the limit is refused.
    """
    return b"".join(_unpacked(path, io.BytesIO(data)))


def check_unpacked_size(path: Path | str) -> None:
    """Raise FileError where a packed file is broken or holds more than the limit."""
    with reading(path), Path(path).open("rb") as stream:
        for _ in _unpacked(path, stream):
            pass


def check_zip_size(path: Path | str, archive: zipfile.ZipFile) -> None:
    """Raise FileError where the members of a zip file hold more than the limit."""
    members = archive.infolist()
    most = _most_unpacked(sum(member.compress_size for member in members))
    if sum(member.file_size for member in members) > most:
        raise _too_large(path, most)


def _unpacked(path: Path | str, packed: BinaryIO) -> Iterator[bytes]:
    """Yield what gzip or bzip2 has packed, up to the limit."""
    is_gzip = packed.read(2) == _GZIP_MAGIC
    most = _most_unpacked(packed.seek(0, os.SEEK_END))
    packed.seek(0)
    size = 0
    try:
        with gzip.open(packed) if is_gzip else bz2.open(packed) as stream:
            while part := stream.read(_CHUNK):
                size += len(part)
                if size > most:
                    raise _too_large(path, most)
                yield part
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise FileError(
            path,
            f"expected a whole packed file, found a cut or broken one ({error}); "
            "fetch it again",
        ) from error


def _most_unpacked(packed: int) -> int:
    return max(UNPACKED_LIMIT, UNPACKED_RATIO * packed)


def _too_large(path: Path | str, most: int) -> FileError:
    return FileError(
        path,
        f"expected at most {most >> 20} MiB when unpacked, found more; unpack it "
        "yourself if you trust it, or cut out a smaller area",
    )


def check_writable(path: Path | str) -> None:
    """Raise FileError where writing to `path` would fail; for use before long work.

    A byte is written to a file beside it, which is removed again: a full disk refuses it.
    """
    target = _target(path)
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise FileError(
            path,
            f"expected a directory to write in, but {target.parent} is not; choose another",
        )
    try:
        with _beside(target) as temporary:
            temporary.write_bytes(b"x")
    except (OSError, ValueError) as error:
        raise _not_writable(path, error) from error


def check_output(path: Path, suffixes: Sequence[str], what: str) -> None:
    """Raise OptionError unless the suffix fits, FileError where writing would fail."""
    if path.suffix.lower() not in suffixes:
        known = " or ".join(suffixes)
        raise OptionError(f"expected {what} ending in {known}, got {path.name!r}")
    check_writable(path)


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
        with _beside(target) as temporary:
            # Opened the plain way, so that the file gets the user's usual permissions.
            with temporary.open("xb") as stream:
                stream.write(data)
            if target.exists():
                shutil.copymode(target, temporary)
            temporary.replace(target)
    except (OSError, ValueError) as error:
        raise _not_writable(path, error) from error


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Return the name of a file beside another, which is not there afterwards."""
    temporary = target.with_name(f".arcfleet-{secrets.token_hex(8)}.tmp")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _target(path: Path | str) -> Path:
    """Return the file that would be replaced, or raise FileError if there can be none."""
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
