"""The time limit of a command: from its start to the last file written."""

from __future__ import annotations

import os
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.output import EXPORTS
from arcfleet.errors import FormatWarning

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from arcfleet.search.stop import Stop, StopSince

_IMPORTED = time.perf_counter()

#: How long it takes to write a file, in times of reading the instance: both look at every
#: street, on the same machine under the same load. Measured on 1,800 to 6,000 streets, and
#: a third more.
_WRITING = {
    "out": 0.3,
    "out_instance": 1.0,
    "plot": 6.0,
    "html": 1.5,
    "geojson": 4.0,
    "gpx": 2.5,
    "kml": 2.0,
    "stops": 1.2,
    "sheets": 75.0,
}
#: What is printed, and the end of the process, likewise; and whatever the instance is.
_ENDING = 0.5
_ENDING_SECONDS = 0.04


def process_start() -> float:
    """Return the `time.perf_counter()` of the start of this process.

    Where the system does not say when that was, it is that of the import of the command.
    """
    try:
        # After the name in brackets, which may hold anything.
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        return _IMPORTED
    now = time.perf_counter()
    return min(now - age, _IMPORTED) if age >= 0 else _IMPORTED


@dataclass(slots=True)
class TimeLimit:
    """The time that a command has, and what it keeps of it for writing its files.

    Parameters
    ----------
    options
        Options of the command; `started` is when its time began.
    seconds
        Time limit; None if there is none.
    """

    options: Namespace
    seconds: float | None
    reading_seconds: float = 0.0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Measure how long the instance takes to read."""
        began = time.perf_counter()
        yield
        self.reading_seconds += time.perf_counter() - began

    @property
    def spent(self) -> float:
        """Time since the command began."""
        started: float = self.options.started
        return time.perf_counter() - started

    @property
    def reserve(self) -> float:
        """Time to keep for the files, and for the end of the process."""
        asked = [x for x in _WRITING if getattr(self.options, x, None) is not None]
        times = sum(_WRITING[name] for name in asked) + _ENDING
        return times * self.reading_seconds + _ENDING_SECONDS

    def stop(self, stop: Stop) -> StopSince:
        """Return a stop rule with the time of the command, less what its files take."""
        from arcfleet.search.stop import StopSince

        limits = {field.name: getattr(stop, field.name) for field in fields(stop)}
        started: float = self.options.started
        return StopSince(**limits, started=started, reserve=self.reserved())

    def reserved(self) -> float:
        """Return the time to keep for the files; warn where no other is left."""
        if self.seconds is None:
            return 0.0
        files = any(getattr(self.options, name, None) is not None for name in EXPORTS)
        late = self.spent + self.reserve > self.seconds
        if files and late and self.reserve > 0.1 * self.seconds:
            warnings.warn(
                f"writing the files takes about {self.reserve:.1f} s of the "
                f"{self.seconds:g} s of --time: the search makes a first plan only, and "
                f"the command ends after about {self.spent + self.reserve:.1f} s; give it "
                "more time or ask for fewer files",
                FormatWarning,
                stacklevel=2,
            )
        return self.reserve
