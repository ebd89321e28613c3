"""What all text readers share: decoding, lines, whole numbers, quotes for messages."""

from __future__ import annotations

import re
from pathlib import Path

from arcfleet.errors import FileError

# str.splitlines also splits at form feeds and other characters that may stand in a name.
_LINE_END = re.compile(r"\r\n|\n|\r")
_LINE_END_BYTES = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DIGITS = re.compile(r"[0-9]+")
_QUOTE_LENGTH = 60


def read_text(path: Path | str) -> str:
    """Return the file's text, or raise FileError if it has none."""
    return decode_text(path, read_bytes(path))


def read_bytes(path: Path | str) -> bytes:
    """Return the file's bytes, or raise FileError if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise FileError(path, "expected a file, found nothing of that name") from error
    except IsADirectoryError as error:
        raise FileError(path, "expected a file, found a directory") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(path, f"cannot be read ({reason})") from error


def decode_text(path: Path | str, data: bytes) -> str:
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
            f"expected UTF-8 text, found the byte 0x{data[error.start]:02x}; "
            "convert the file to UTF-8",
            _line_at(data, error.start),
        ) from error


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


def _line_at(data: bytes, position: int) -> int:
    return len(_LINE_END_BYTES.findall(data, 0, position)) + 1
