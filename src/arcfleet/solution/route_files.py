"""A folder with a file per route: route-01.gpx, route-01.html and so on."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

from arcfleet._files import check_writable
from arcfleet.errors import FileError, FormatWarning

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from arcfleet.solution.solution import Solution


def route_stems(solution: Solution) -> list[str]:
    """Return the name of each route's files without suffix: route-01 and so on."""
    digits = max(2, len(str(max(solution.numbers, default=0))))
    return [f"route-{number:0{digits}}" for number in solution.numbers]


def check_folder(folder: Path, what: str) -> None:
    """Raise what would prevent making the folder or writing into it."""
    if not folder.exists():
        check_writable(folder)  # it can be made beside others
    elif folder.is_dir():
        check_writable(folder / "route-01")
    else:
        raise FileError(folder, f"expected a folder for the {what}, found a file")


def make_folder(folder: Path) -> None:
    """Make the folder where there is none."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise FileError(folder, f"cannot be made ({error.strerror})") from error


def warn_of_earlier(folder: Path, written: Collection[str], *suffixes: str) -> None:
    """Warn of files of routes that are not among those written."""
    name = re.compile(rf"route-\d+(?:{'|'.join(map(re.escape, suffixes))})")
    found = sorted(x.name for x in folder.iterdir() if name.fullmatch(x.name))
    left = [x for x in found if x not in written]
    if left:
        warnings.warn(
            f"{folder}: {', '.join(left)} belong to an earlier plan; remove them before "
            "anybody drives them",
            FormatWarning,
            stacklevel=3,
        )
