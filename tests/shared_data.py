"""Where public instances and street maps lie; they are not part of the repository."""

import os
from pathlib import Path

import pytest


def shared_dir() -> Path:
    """Return the shared folder, or skip the test where there is none."""
    default = Path(__file__).resolve().parents[1].parent / "shared"
    folder = Path(os.environ.get("ARCFLEET_SHARED", default))
    if not (folder / "carplib" / "best_known.csv").is_file():
        pytest.skip(f"no instance collection in {folder}; set ARCFLEET_SHARED to its place")
    return folder


def maps_dir() -> Path:
    """Return the folder of street maps, or skip the test where there is none."""
    folder = shared_dir() / "maps"
    if not (folder / "SOURCES.csv").is_file():
        pytest.skip(f"no street maps in {folder}; set ARCFLEET_SHARED to what holds them")
    return folder
