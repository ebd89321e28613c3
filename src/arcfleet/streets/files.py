"""Read a street map from any file that is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arcfleet.errors import FileError
from arcfleet.streets.csv_map import csv_pair, read_csv_map

if TYPE_CHECKING:
    from pathlib import Path

    from arcfleet.streets.street_map import StreetMap


def read_map(path: Path | str, *, name: str | None = None) -> StreetMap:
    """Read a street map."""
    if csv_pair(path) is not None:
        return read_csv_map(path, name=name)
    raise FileError(path, "expected a street map, found none of a known kind")
