"""The figures of the pages on street maps and scenes: counts, dropped parts, times.

With `--out DIR` it measures only how long reading takes, and writes one JSON line per map
to DIR/reading.jsonl, in place of an earlier one.
"""

from __future__ import annotations

import argparse
import math
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.bench.machine import commit, machine
from arcfleet.report.tables import table
from arcfleet.streets.files import read_map
from arcfleet.streets.simplify import (
    largest_strong_part,
    merge_chains,
    merge_close_junctions,
)
from benchmarks import describe, run_and_exit, shared_dir
from benchmarks.drivable import (
    READING_TIMES,
    ReadingTime,
    add_out_option,
    drivable_report,
    replace_lines,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from arcfleet.streets.street_map import StreetMap

EXTRACTS = {
    "herrenberg-minimal.osm.pbf": "herrenberg",
    "portland-central-filtered.osm.pbf": "portland_or",
    "reno_east3.osm": "reno_nv",
}
CITY = "beijing_5ring"
MERGE_METRES = 15
ROUNDS = 7
SCENE_ROUNDS = 3


def size(street_map: StreetMap) -> tuple[int, int, str]:
    """Count junctions and streets, and sum kilometres."""
    metres = math.fsum(street.metres for street in street_map.streets)
    return len(street_map.junctions), len(street_map.streets), f"{metres / 1000:.1f}"


def largest_weak_part(street_map: StreetMap) -> StreetMap:
    """Keep the largest part that hangs together whatever the direction of its streets."""
    two_way = tuple(replace(street, one_way=False) for street in street_map.streets)
    part, _ = largest_strong_part(replace(street_map, streets=two_way))
    kept = tuple(s for s in street_map.streets if s.tail in part.junctions)
    return replace(part, streets=kept)


def against_collection(extract: StreetMap, city: StreetMap) -> tuple[object, ...]:
    """Compare an extract, merged as the collection is, with the collection's own."""
    merged = merge_chains(extract, across_kinds=True, across_names=True)
    ours, theirs = size(largest_weak_part(merged)), size(city)
    return tuple(cell for pair in zip(ours, theirs, strict=True) for cell in pair)


def dropped(street_map: StreetMap) -> tuple[object, ...]:
    """Count a map and what its largest strong part leaves out."""
    _, left = largest_strong_part(street_map)
    return *size(street_map), left.junctions, left.streets, f"{left.metres / 1000:.1f}"


def least_seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Return the least processor and elapsed time of a call."""
    processor, elapsed = [], []
    for _ in range(ROUNDS):
        started = time.process_time(), time.perf_counter()
        work()
        processor.append(time.process_time() - started[0])
        elapsed.append(time.perf_counter() - started[1])
    return min(processor), min(elapsed)


def scene_seconds(path: Path) -> tuple[str, str]:
    """Least processor and elapsed time of the whole command."""
    processor, elapsed = [], []
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "arcfleet.cli.main", "scene", str(path)]
        command += ["--capacity", "3000", "-o", str(Path(folder) / "scene.json")]
        for _ in range(SCENE_ROUNDS):
            started = children_seconds(), time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            processor.append(children_seconds() - started[0])
            elapsed.append(time.perf_counter() - started[1])
    return f"{min(processor):.1f}", f"{min(elapsed):.1f}"


def children_seconds() -> float:
    """Processor time of all commands that were run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def keep_reading_times(paths: dict[str, Path], folder: Path) -> None:
    """Measure reading, write the lines and print their table."""
    here = {"machine": machine(), "commit": commit()}
    times = []
    for name, path in paths.items():
        processor, elapsed = least_seconds(partial(read_map, path))
        times.append(
            ReadingTime(
                map_name=name,
                rounds=ROUNDS,
                **here,
                processor_seconds=processor,
                elapsed_seconds=elapsed,
            )
        )
    replace_lines(READING_TIMES, folder, times)
    print(drivable_report(READING_TIMES, times).text())


def main(arguments: Sequence[str] | None = None) -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_out_option(parser)
    options = parser.parse_args(arguments)
    maps = shared_dir() / "maps"
    paths = {name: maps / "raw_osm" / name for name in EXTRACTS} | {CITY: maps / CITY}
    if options.out:
        keep_reading_times(paths, options.out)
        return
    read = {name: read_map(path) for name, path in paths.items()}
    city = read[CITY]
    print(describe())
    rows: list[tuple[object, ...]] = [
        (name, *against_collection(read[name], read_map(maps / collected)))
        for name, collected in EXTRACTS.items()
    ]
    header: tuple[str, ...] = ("extract", "junctions", "CSV", "streets", "CSV", "km", "CSV")
    print("\nagainst the collection\n" + table(rows, header))
    rows = [(name, *dropped(street_map)) for name, street_map in read.items()]
    merged = merge_close_junctions(city, MERGE_METRES)
    rows.append((f"{CITY}, merged within {MERGE_METRES} m", *dropped(merged)))
    header = ("map", "junctions", "streets", "km", "dropped", "streets", "km")
    print("\nlargest strong part\n" + table(rows, header))
    work: dict[str, Callable[[], object]] = {
        f"read {name}": partial(read_map, path) for name, path in paths.items()
    }
    merging = partial(merge_close_junctions, city, MERGE_METRES)
    work[f"merge {CITY} within {MERGE_METRES} m"] = merging
    work[f"largest strong part of {CITY}"] = partial(largest_strong_part, city)
    rows = [
        (name, *(f"{1000 * seconds:.0f}" for seconds in least_seconds(call)))
        for name, call in work.items()
    ]
    header = ("what", "processor ms", "elapsed ms")
    print(f"\nbest of {ROUNDS}\n" + table(rows, header))
    rows = [(name, *scene_seconds(path)) for name, path in paths.items()]
    header = ("arcfleet scene MAP --capacity 3000", "processor s", "elapsed s")
    print(f"\nbest of {SCENE_ROUNDS}\n" + table(rows, header))


if __name__ == "__main__":
    run_and_exit(main)
