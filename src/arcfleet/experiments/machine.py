"""Where a measurement was made: the machine, the commit, and the checkout itself."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import arcfleet

_ROOT = Path(__file__).parents[3]


def checkout() -> Path | None:
    """Give the root of the repository; None where only a wheel is installed."""
    return _ROOT if (_ROOT / "benchmarks" / "suites").is_dir() else None


def machine() -> str:
    """Name the processor, the number of cores and the Python."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [x for x in cpuinfo.read_text().splitlines() if x.startswith("model name")]
        processor = names[0].split(":")[1].strip() if names else processor
    return f"{processor}, {os.cpu_count()} cores, Python {platform.python_version()}"


def commit() -> str:
    """Name the commit, with -dirty where files differ from it; else the release.

    Where the files were copied without their history, `ARCFLEET_COMMIT` names it.
    """
    told = os.environ.get("ARCFLEET_COMMIT")
    if told:
        return told
    root = checkout()
    if root is None:
        return f"release {arcfleet.__version__}"
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
