"""The examples of the written pages, found and run.

A fenced block of `sh` or `python` is an example. It runs unless the line before it is a
comment `<!-- not run: WHY -->`. Of `sh` blocks the lines that start with `arcfleet` run.
Time limits are shortened, so that the examples can say what a user would.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_BLOCK = re.compile(
    r"(?P<comment><!-- not run: [^\n]+ -->\n)?"
    r"^```(?P<language>sh|python)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_SECONDS = "0.2"


@dataclass(frozen=True, slots=True)
class Example:
    """A block of a page.

    Parameters
    ----------
    language
        "sh" or "python".
    text
        The block as it stands.
    line
        Line number of its first line.
    runs
        Whether it is to be run.
    """

    language: str
    text: str
    line: int
    runs: bool


def examples(page: Path) -> list[Example]:
    """Return the examples of a page in order."""
    text = page.read_text("utf-8")
    return [
        Example(
            match["language"],
            match["text"],
            text.count("\n", 0, match.start("text")) + 1,
            match["comment"] is None,
        )
        for match in _BLOCK.finditer(text)
    ]


def commands(example: Example) -> list[list[str]]:
    """Return the arguments of each `arcfleet` command of a block, time limits shortened."""
    joined = example.text.replace("\\\n", " ")
    found = []
    for line in joined.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["arcfleet"]:
            found.append(_shortened(words[1:]))
    return found


def program(example: Example) -> str:
    """Return a Python block with its time limits shortened."""
    return re.sub(r"seconds=[\d.]+", f"seconds={_SECONDS}", example.text)


def _shortened(words: list[str]) -> list[str]:
    return [
        _SECONDS if before == "--time" else word
        for before, word in zip(["", *words], words, strict=False)
    ]
