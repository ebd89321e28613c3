"""Where a measurement was made: printed above every table."""

from __future__ import annotations

import os
from pathlib import Path

from arcfleet.experiments.machine import commit, machine

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
