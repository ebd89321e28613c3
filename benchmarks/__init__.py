"""Measurements, one command per table: `python -m benchmarks.NAME`.

Micro benchmarks (`*_speed`, `street_maps`) time one piece of code. Suites of instances are
measured by `arcfleet bench` and, beside other programs, by `side_by_side` and
`maens_reference`; `time_limits` times whole commands; `scale` is about large
instances, `bounds` and `bounds_validity` about lower bounds; `turns_on_maps` and
`drive_area` make the plans of the results page on drivable plans. `neural_gaps` compares
learned models on test sets, `neural_time` a GPU with its cores to the cores alone. Tables
and figures of the paper are made by `arcfleet paper`. Lines of finished measurements are in
`results/`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.bench.machine import commit, machine, shared_folder
from arcfleet.errors import ArcfleetError

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[1]


def shared_dir() -> Path:
    """Return the folder of the public instances, named by ARCFLEET_SHARED."""
    folder = shared_folder()
    if folder is None or not folder.is_dir():
        raise SystemExit(f"no instance collection in {folder}; set ARCFLEET_SHARED")
    return folder


def describe() -> str:
    """Return the processor, the number of cores, the Python and the commit."""
    return f"{machine()}, commit {commit()}"


def run_and_exit(main: Callable[[], int | None]) -> None:
    """Run a benchmark and exit; print what a user can mend as one sentence."""
    try:
        sys.exit(main())
    except ArcfleetError as error:
        sys.exit(f"{Path(sys.argv[0]).stem}: {error}")
