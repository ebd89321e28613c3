"""The figures of the pages on street maps and scenes: counts, dropped parts, times."""

from __future__ import annotations

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

from arcfleet.report.tables import table
from arcfleet.streets.files import read_map
from arcfleet.streets.simplify import (
    largest_strong_part,
    merge_chains,
    merge_close_junctions,
)
from benchmarks import describe, run_and_exit, shared_dir

if TYPE_CHECKING:
    from collections.abc import Callable

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


def milliseconds(work: Callable[[], object]) -> tuple[str, str]:
    """Least processor and elapsed time of a call."""
    processor, elapsed = [], []
    for _ in range(ROUNDS):
        started = time.process_time(), time.perf_counter()
        work()
        processor.append(time.process_time() - started[0])
        elapsed.append(time.perf_counter() - started[1])
    return f"{1000 * min(processor):.0f}", f"{1000 * min(elapsed):.0f}"


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


def main() -> None:
    """Print all tables."""
    maps = shared_dir() / "maps"
    paths = {name: maps / "raw_osm" / name for name in EXTRACTS} | {CITY: maps / CITY}
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
    rows = [(name, *milliseconds(call)) for name, call in work.items()]
    header = ("what", "processor ms", "elapsed ms")
    print(f"\nbest of {ROUNDS}\n" + table(rows, header))
    rows = [(name, *scene_seconds(path)) for name, path in paths.items()]
    header = ("arcfleet scene MAP --capacity 3000", "processor s", "elapsed s")
    print(f"\nbest of {SCENE_ROUNDS}\n" + table(rows, header))


if __name__ == "__main__":
    run_and_exit(main)
