"""What a file format is: how to recognise, read and write it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from arcfleet.instance.instance import Instance


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A file format of instances, one entry of `FORMATS`.

    Parameters
    ----------
    name
        Name of the format, as given to `write`.
    suffixes
        Suffixes that choose the format when an instance is written, with the dot. Of
        formats with the same one, the first that can hold the instance is chosen.
    recognise
        Returns whether a text is in this format. It must not raise.
    read
        Returns the instance that a text holds. The path is for messages; a mistake is a
        FileError with its line.
    write
        Returns the text of an instance; None for a format that is only read. What the
        format cannot hold is an InstanceError, what it loses a FormatWarning.
    holds
        Returns whether the format can hold an instance.
    """

    name: str
    suffixes: tuple[str, ...] = ()
    recognise: Callable[[str], bool]
    read: Callable[[Path | str, str], Instance]
    write: Callable[[Path | str, Instance], str] | None = None
    holds: Callable[[Instance], bool] = lambda _: True
