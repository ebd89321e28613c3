"""How long a command with a time limit takes, from its start to its end.

    python -m benchmarks.time_limits --out benchmarks/results/limits

runs `arcfleet solve` and others as a user does, on public instances and on scenes of whole
maps, and measures elapsed and CPU time of each process. On a machine that others use, too,
elapsed time is theirs as well: the load is recorded with it. One JSON line per command
replaces that in DIR/limits.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from arcfleet.bench.machine import commit, machine
from arcfleet.datasets.store import LineFormat
from arcfleet.paper.report import Section
from arcfleet.report.tables import table
from benchmarks import describe, run_and_exit, shared_dir
from benchmarks.drivable import Lines, add_out_option, replace_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

ARCFLEET = [sys.executable, "-c", "import sys, arcfleet_command as a; sys.exit(a.main())"]
#: Scenes by name: the map, and further options of `arcfleet scene`.
SCENES = {
    "Liechtenstein": ("liechtenstein", ""),
    "Liechtenstein, shifts": ("liechtenstein", "--cost time --shift 8h"),
    "Liechtenstein, shifts and a landfill": (
        "liechtenstein",
        "--cost time --shift 8h --facility 9.52,47.14=300",
    ),
    "Harrisburg": ("harrisburg_pa", ""),
    "Harrisburg, shifts and a landfill": (
        "harrisburg_pa",
        "--cost time --shift 8h --facility -76.88,40.27=300",
    ),
    "Jinan": ("jinan", ""),
    "Columbus, any turns": ("columbus_oh", "--turns free"),
    "Beijing": ("beijing_5ring", ""),
}
CAPACITY = 20_000
#: Instance, time limit, and what follows in the command.
CASES = (
    *(("egl/egl-s4-A.dat", limit, "") for limit in (0.5, 1, 2)),
    *(("egl-large/egl-g2-E.dat", limit, "") for limit in (0.5, 1, 2)),
    *(("hefei/Hefei-10.txt", limit, "") for limit in (0.5, 1, 2)),
    ("hefei/Hefei-10.txt", 1, "--method maens"),
    ("hefei/Hefei-10.txt", 1, "--method daam"),
    ("hefei/Hefei-10.txt", 4, "--method daam"),
    *(("Liechtenstein", limit, "--out") for limit in (1, 2)),
    ("Liechtenstein", 1, "--out --html --stops"),
    ("Liechtenstein", 2, "--out --html --gpx --kml --geojson --plot"),
    ("Liechtenstein", 10, "--out --html --sheets"),
    ("Liechtenstein", 1, "--method ps --out"),
    ("Liechtenstein, shifts", 1, "--out"),
    ("Liechtenstein, shifts and a landfill", 1, "--out"),
    *(("Harrisburg", limit, "--out") for limit in (1, 5, 10)),
    *(("Harrisburg, shifts and a landfill", limit, "--out") for limit in (5, 10)),
    *(("Jinan", limit, "--out") for limit in (5, 60)),
    *(("Columbus, any turns", limit, "--out") for limit in (5, 60)),
    *(("Beijing", limit, "--out") for limit in (5, 10, 30)),
    ("Beijing", 30, "--out --html --stops"),
)
_ENDINGS = {"out": "json", "stops": "csv", "plot": "png"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedRun:
    """A command with a time limit."""

    instance: str
    time_limit: float  # seconds
    options: str
    machine: str
    commit: str
    tasks: int
    load: float  # mean number of processes that wanted a processor in the minute before
    elapsed: float  # seconds from start to end, the least of all repetitions
    processor_seconds: float  # those of the same repetition
    repetitions: int
    iterations: int | None  # None where it was refused
    said: str  # what it said beside its result

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the command."""
        return self.instance, self.time_limit, self.options


def make_scene(name: str, folder: Path) -> Path:
    """Write a scene as `arcfleet scene` does."""
    which, options = SCENES[name]
    path = folder / f"{name.replace(',', '').replace(' ', '-')}.json"
    if not path.exists():
        words = ["scene", str(shared_dir() / "maps" / which), "-o", str(path)]
        words += ["--capacity", str(CAPACITY), *options.split()]
        subprocess.run([*ARCFLEET, *words], check=True, capture_output=True)
    return path


def run(words: Sequence[str]) -> tuple[float, float, str, str]:
    """Return elapsed time, CPU time, stdout and stderr of a command."""
    before = os.times()
    began = time.perf_counter()
    ran = subprocess.run([*ARCFLEET, *words], capture_output=True, text=True, check=False)
    elapsed = time.perf_counter() - began
    after = os.times()
    spent = after.children_user + after.children_system
    spent -= before.children_user + before.children_system
    return elapsed, spent, ran.stdout, ran.stderr


def measure(
    instance: str, limit: float, options: str, repetitions: int, folder: Path
) -> LimitedRun:
    """Run a command some times, and return the one that ended first."""
    is_scene = instance in SCENES
    path = make_scene(instance, folder) if is_scene else shared_dir() / "carplib" / instance
    words = ["solve", str(path), "--time", f"{limit:g}", "--quiet", "--json", "--seed", "1"]
    for word in options.split():
        words.append(word)
        if word.startswith("--") and word != "--method":
            name = word.removeprefix("--")
            words.append(str(folder / f"plan.{_ENDINGS.get(name, name)}"))
    found = []
    load = os.getloadavg()[0]
    for _ in range(repetitions):
        elapsed, spent, out, err = run(words)
        facts = json.loads(out) if out else {}
        found.append((elapsed, spent, facts.get("iterations"), err.strip()))
    elapsed, spent, iterations, said = min(found, key=lambda x: x[0])
    return LimitedRun(
        instance=Path(instance).stem,
        time_limit=float(limit),
        options=options,
        machine=machine(),
        commit=commit(),
        tasks=number_of_tasks(path),
        load=round(load, 1),
        elapsed=round(elapsed, 3),
        processor_seconds=round(spent, 3),
        repetitions=repetitions,
        iterations=iterations,
        said=said.splitlines()[-1].removeprefix("arcfleet: ") if said else "",
    )


def number_of_tasks(path: Path) -> int:
    """Return the number of tasks of an instance."""
    from arcfleet import read

    return len(read(path).required)


def _section(records: Sequence[LimitedRun]) -> Section:
    header = (
        *("instance", "tasks", "limit", "options", "elapsed", "over", "CPU", "iterations"),
        "load",
    )
    rows = [
        (
            record.instance,
            str(record.tasks),
            f"{record.time_limit:g} s",
            record.options.replace("--", "") or "-",
            f"{record.elapsed:.2f} s",
            f"{100 * (record.elapsed / record.time_limit - 1):+.0f} %",
            f"{record.processor_seconds:.2f} s",
            "refused" if record.iterations is None else str(record.iterations),
            f"{record.load:.1f}",
        )
        for record in records
    ]
    return Section("Elapsed time of `arcfleet solve --time`", header, rows)


def _caption(records: Sequence[LimitedRun]) -> str:
    count = ", ".join(dict.fromkeys(str(record.repetitions) for record in records))
    return (
        "Elapsed and CPU time of the whole process, from the imports of Python to the last "
        f"file; the shortest of {count} repetitions. Load: processes that wanted a "
        "processor before, those of others too; where it is above the number of cores, "
        "elapsed time tells of them. Refused: the command said at once how much time would "
        "be needed. One thread, seed 1."
    )


#: Lines of this benchmark.
LIMITED_RUNS = Lines(
    "limits.jsonl",
    LineFormat("arcfleet-limits-1", LimitedRun, "a run of `benchmarks.time_limits`"),
    _section,
    lambda _: "python -m benchmarks.time_limits --out benchmarks/results/limits",
    _caption,
)


def main() -> None:
    """Measure all commands, or those of some instances, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_out_option(parser)
    parser.add_argument("--instances", nargs="+", metavar="TEXT", help="parts of names")
    parser.add_argument("--repetitions", type=int, default=3, metavar="N")
    options = parser.parse_args()
    print(describe())
    records = []
    with TemporaryDirectory() as name:
        for instance, limit, more in CASES:
            wanted = options.instances
            if wanted and not any(part in instance for part in wanted):
                continue
            record = measure(instance, limit, more, options.repetitions, Path(name))
            records.append(record)
            print(f"{record.instance}, {limit:g} s, {more}: {record.elapsed} s", flush=True)
    section = _section(records)
    print(table(section.rows, section.header))
    if options.out is not None:
        replace_lines(LIMITED_RUNS, options.out, records)


if __name__ == "__main__":
    run_and_exit(main)
