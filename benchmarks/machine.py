"""Where a measurement was made: printed above every table."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.bench.store import commit, machine
from arcfleet.errors import ArcfleetError

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[1]


def shared_dir() -> Path:
    """Give the folder of the public instances, named by ARCFLEET_SHARED."""
    folder = Path(os.environ.get("ARCFLEET_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        raise SystemExit(f"no instance collection in {folder}; set ARCFLEET_SHARED")
    return folder


def describe() -> str:
    """Name the processor, the number of cores, the Python and the commit."""
    return f"{machine()}, commit {commit()}"


def run_and_exit(main: Callable[[], int | None]) -> None:
    """Run a benchmark and exit; what is wrong with a file or setting is one sentence."""
    try:
        sys.exit(main())
    except ArcfleetError as error:
        sys.exit(f"{Path(sys.argv[0]).stem}: {error}")
