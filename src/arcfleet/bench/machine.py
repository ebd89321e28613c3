"""Where and by what a measurement was made."""

from __future__ import annotations

import os
import platform
import subprocess
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from arcfleet._version import __version__
from arcfleet.errors import FormatWarning

if TYPE_CHECKING:
    from collections.abc import Iterable

_ROOT = Path(__file__).parents[3]


def checkout() -> Path | None:
    """Return the root of the repository; None where only a wheel is installed."""
    return _ROOT if (_ROOT / "benchmarks").is_dir() and (_ROOT / "cpp").is_dir() else None


def shared_folder() -> Path | None:
    """Return the folder of public data: ARCFLEET_SHARED, or `shared` beside a checkout."""
    root = checkout()
    default = "" if root is None else str(root.parent / "shared")
    folder = os.environ.get("ARCFLEET_SHARED", default)
    return Path(folder) if folder else None


def machine() -> str:
    """Return the processor, the number of cores and the version of Python."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [x for x in cpuinfo.read_text().splitlines() if x.startswith("model name")]
        processor = names[0].split(":")[1].strip() if names else processor
    return f"{processor}, {os.cpu_count()} cores, Python {platform.python_version()}"


def commit() -> str:
    """Return the commit, with -dirty where files differ from it; else the release.

    Where the files were copied without their history, `ARCFLEET_COMMIT` names it.
    """
    stated = os.environ.get("ARCFLEET_COMMIT")
    if stated:
        return stated
    root = checkout()
    if root is None:
        return f"release {__version__}"
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            capture_output=True,
            text=True,
            check=False,
            cwd=root,
        ).stdout.strip()
    except OSError:  # no git here
        described = ""
    return described or "unknown"


class _Made(Protocol):
    @property
    def machine(self) -> str: ...
    @property
    def commit(self) -> str: ...


def warn_of_reused(path: Path, records: Iterable[_Made], what: str) -> None:
    """Warn of records of another commit or machine, which may not compare with new ones."""
    here = (machine(), commit())
    others = [x for x in records if (x.machine, x.commit) != here]
    if others:
        warnings.warn(
            f"{path}: reuses {len(others)} {what} made elsewhere (commit "
            f"{others[0].commit}, {others[0].machine}), this is commit {here[1]}, "
            f"{here[0]}; name another file to make them anew",
            FormatWarning,
            stacklevel=3,
        )
