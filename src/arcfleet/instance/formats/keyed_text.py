"""Keyed text into records: `KEY : value` lines and `( 1, 2) word 3` link lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arcfleet.errors import FileError
from arcfleet.instance.plain_text import quote, split_lines

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_LINK = re.compile(r"\(([^(),]*),([^(),]*)\)(.*)", re.DOTALL)
# Between the words of a key: UPPER_BOUND is also written UPPER BOUND.
_JOINT = r"(?:_|[ \t]+)"
_RULE = re.compile(r"-{2,}")


@dataclass(frozen=True, slots=True)
class KeyLine:
    """A key with what follows it; the value is empty for the head of a list.

    Parameters
    ----------
    number
        Line number, from 1.
    text
        The line as it stands in the file.
    key
        The key in capitals, with underscores.
    value
        The rest of the line without surrounding space.
    """

    number: int
    text: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class LinkLine:
    """A link: two nodes in brackets, then words and numbers in turn.

    Parameters
    ----------
    number
        Line number, from 1.
    text
        The line as it stands in the file.
    tail, head
        What stands in the brackets.
    rest
        The words and numbers.
    """

    number: int
    text: str
    tail: str
    head: str
    rest: tuple[str, ...]


def scan(path: Path | str, text: str, keys: Iterable[str]) -> list[KeyLine | LinkLine]:
    """Turn the lines of a file into records; a line that is neither raises FileError."""
    # The longest key first, and only whole words, so that no key hides another.
    spellings = (
        re.escape(key).replace("_", _JOINT) for key in sorted(keys, key=len, reverse=True)
    )
    key_line = re.compile(
        rf"({'|'.join(spellings)})(?=[\s:]|$)\s*:?(.*)", re.IGNORECASE | re.DOTALL
    )
    records: list[KeyLine | LinkLine] = []
    for number, line in enumerate(split_lines(text), start=1):
        content = line.strip()
        if not content or _RULE.fullmatch(content):
            continue
        if match := _LINK.fullmatch(content):
            tail, head, rest = match.groups()
            records.append(
                LinkLine(number, line, tail.strip(), head.strip(), tuple(rest.split()))
            )
        elif match := key_line.fullmatch(content):
            key = re.sub(_JOINT, "_", match[1]).upper()
            records.append(KeyLine(number, line, key, match[2].strip()))
        else:
            raise FileError(
                path,
                "expected a known key such as NOMBRE or NAME, or a link such as "
                f"'( 1, 2) cost 3', found {quote(line)}",
                number,
            )
    return records
