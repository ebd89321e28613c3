"""Where a measurement was made: printed above every table."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def shared_dir() -> Path:
    """Give the folder of the public instances, named by ARCFLEET_SHARED."""
    folder = Path(os.environ.get("ARCFLEET_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        raise SystemExit(f"no instance collection in {folder}; set ARCFLEET_SHARED")
    return folder


def describe() -> str:
    """Name the processor, the number of cores, the Python and the commit."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [x for x in cpuinfo.read_text().splitlines() if x.startswith("model name")]
        processor = names[0].split(":")[1].strip() if names else processor
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    ).stdout.strip()
    return (
        f"{processor}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"commit {commit or 'unknown'}"
    )
