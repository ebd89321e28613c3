"""Lower bounds of the public instances, beside the best known costs and published bounds.

    python -m benchmarks.bounds --out benchmarks/results/bounds

computes the bound of every instance of the collection and of a scene of about 1,000
streets, each on one core, set by set, and adds a JSON line for each to DIR/bounds.jsonl;
finished ones are reused. It ends with an error where a bound is above a known plan.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import TYPE_CHECKING

from arcfleet import Circle, Stop, make_scene, read, read_map, solve
from arcfleet.bounds.cutting_planes import FAMILIES, CuttingPlanes
from arcfleet.cli.options import seconds as seconds_option
from arcfleet.datasets.store import LineFormat
from arcfleet.paper.report import Section
from benchmarks import run_and_exit, shared_dir
from benchmarks.drivable import (
    Lines,
    add_out_option,
    drivable_report,
    make_missing,
    verified,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.instance import Instance

#: Time limit of each instance of a set, in seconds.
LIMITS = {
    **dict.fromkeys(("gdb", "kshs", "mval", "C", "D", "E", "F"), 6.0),
    "val": 60.0,
    "egl": 10.0,
    "scene": 30.0,
    "egl-large": 20.0,
    "hefei": 30.0,
}
SEED = 0
#: The scene: part of Bangor, Maine, with its turn rules.
SCENE = "bangor"
_SCENE_AREA = Circle(longitude=-68.775, latitude=44.805, metres=2100.0)
_SCENE_CAPACITY = 10_000
#: How long the plan that the scene's bound is compared with was searched for.
_SCENE_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundLine:
    """The bound of an instance."""

    set_name: str
    instance: str
    time_limit: float
    seed: int
    machine: str
    commit: str
    streets: int  # required ones
    best_known: int
    published: int | None  # lower bound that the collection states
    linear: int  # bound of the linear program
    bound: int
    seconds: float
    processor_seconds: float
    iterations: int
    cuts: dict[str, int]
    steps: dict[str, float]  # seconds of each step

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the line."""
        return self.set_name, self.instance, self.time_limit, self.seed

    @property
    def gap_percent(self) -> float:
        """Gap of the best known cost to the bound."""
        return 100 * (self.best_known / self.bound - 1)


@cache
def best_known() -> dict[tuple[str, str], tuple[int, int | None]]:
    """Return cost and published lower bound of each instance, by set and name."""
    path = shared_dir() / "carplib" / "best_known.csv"
    with path.open(encoding="utf-8", newline="") as lines:
        return {
            (row["set"], row["name"]): (
                int(row["upper_bound"]),
                int(row["lower_bound"]) if row["lower_bound"] else None,
            )
            for row in csv.DictReader(lines)
        }


def find_instance(set_name: str, name: str) -> tuple[Instance, int, int | None]:
    """Return an instance, its best known cost and the published lower bound."""
    if set_name == "scene":
        streets = read_map(shared_dir() / "maps" / "bangor_me")
        scene = make_scene(streets, area=_SCENE_AREA, capacity=_SCENE_CAPACITY)
        plan = verified(solve(scene, stop=Stop(seconds=_SCENE_SECONDS), seed=1))
        return scene, plan.cost, None
    (path,) = (shared_dir() / "carplib" / set_name).glob(f"{name}.*")
    return read(path), *best_known()[set_name, name]


def make_line(
    set_name: str, name: str, time_limit: float, seed: int, **here: str
) -> BoundLine:
    """Compute a bound on this thread."""
    instance, best, published = find_instance(set_name, name)
    began, used = time.perf_counter(), time.process_time()
    planes = CuttingPlanes(instance, seed)
    for _ in planes.rounds(lambda: time_limit - (time.perf_counter() - began)):
        if planes.value >= best:  # proven; nothing is above it
            break
    return BoundLine(
        set_name=set_name,
        instance=name,
        time_limit=time_limit,
        seed=seed,
        **here,
        streets=len(instance.required),
        best_known=best,
        published=published,
        linear=planes.linear_value,
        bound=planes.value,
        seconds=round(time.perf_counter() - began, 3),
        processor_seconds=round(time.process_time() - used, 3),
        iterations=planes.iterations,
        cuts=planes.cuts,
        steps={step: round(spent, 3) for step, spent in planes.seconds.items()},
    )


def _by_set(lines: Sequence[BoundLine]) -> dict[str, list[BoundLine]]:
    groups: dict[str, list[BoundLine]] = defaultdict(list)
    for line in lines:
        groups[line.set_name].append(line)
    return groups


def _sections(lines: Sequence[BoundLine]) -> list[Section]:
    groups = _by_set(lines)
    return [
        _means(groups),
        _published(lines),
        _costs(groups),
        *([_each(groups["hefei"] + groups.get("scene", []))] if "hefei" in groups else []),
    ]


def _means(groups: dict[str, list[BoundLine]]) -> Section:
    rows: list[list[str | None]] = []
    for name, lines in groups.items():
        known = [line for line in lines if line.published is not None]
        theirs = [100 * (x.best_known / (x.published or 1) - 1) for x in known]
        rows.append(
            [
                name,
                str(len(lines)),
                f"{fmean(x.gap_percent for x in lines):.3f}",
                f"{max(x.gap_percent for x in lines):.2f}",
                f"{fmean(100 * (x.best_known / x.linear - 1) for x in lines):.3f}",
                f"{fmean(theirs):.3f} ({len(known)})" if known else None,
                str(sum(x.bound == x.best_known for x in lines)),
                f"{fmean(x.seconds for x in lines):.1f}",
                f"{max(x.seconds for x in lines):.1f}",
                f"{max(x.time_limit for x in lines):g}",
                f"{fmean(x.processor_seconds for x in lines):.1f}",
            ]
        )
    header = [
        *("set", "instances", "mean gap %", "largest", "linear program alone"),
        *(
            "published bounds (known)",
            "proven optimal",
            "mean s",
            "most",
            "limit s",
            "mean CPU s",
        ),
    ]
    return Section("Gap of the best known cost to the bound", header, rows)


def _published(lines: Sequence[BoundLine]) -> Section:
    """Return the instances whose published bound ours raises or a known plan refutes."""
    rows: list[list[str | None]] = [
        [
            x.instance,
            str(x.best_known),
            None if x.published is None else str(x.published),
            str(x.bound),
            "refuted by a plan" if (x.published or 0) > x.best_known else "raised",
        ]
        for x in lines
        if (x.published is not None and not x.bound <= x.published <= x.best_known)
        or x.instance in ("val4D", "val5D", "val9D", "val10D")
    ]
    header = ["instance", "best known", "published", "our bound", ""]
    for row in rows:
        if row[2] is None:
            row[4] = "the one that circulated was refuted"
    return Section("Published bounds that change", header, rows)


def _costs(groups: dict[str, list[BoundLine]]) -> Section:
    steps = list(
        dict.fromkeys(step for x in groups.values() for y in x for step in y.steps)
    )
    rows: list[list[str | None]] = []
    for name, lines in groups.items():
        spent: dict[str, float] = {}
        cuts: Counter[str] = Counter()
        for line in lines:
            for step, seconds in line.steps.items():
                spent[step] = spent.get(step, 0.0) + seconds
            cuts.update(line.cuts)
        total = sum(spent.values()) or 1.0
        shares = [f"{100 * spent.get(step, 0.0) / total:.0f}" for step in steps]
        counts = [f"{cuts[family] / len(lines):.0f}" for family in FAMILIES]
        rows.append([name, *counts, *shares])
    header = ["set", *(f"{x} cuts" for x in FAMILIES), *(f"{x} %" for x in steps)]
    return Section("Cuts per instance, and what takes the time", header, rows)


def _each(lines: Sequence[BoundLine]) -> Section:
    rows: list[list[str | None]] = [
        [
            x.instance,
            str(x.streets),
            str(x.best_known),
            str(x.bound),
            f"{x.gap_percent:.2f}",
            f"{x.seconds:.0f}",
            f"{x.processor_seconds:.0f}",
        ]
        for x in lines
    ]
    header = ["instance", "streets", "best known", "bound", "gap %", "s", "CPU s"]
    return Section("Large instances", header, rows)


def _caption(lines: Sequence[BoundLine]) -> str:
    return (
        "Gap: best known cost over the bound, less one. Published bounds: mean gap of "
        "those that the collection states, and how many. Proven optimal: bound and best "
        "known cost are equal; there the computation ends. One core each; seconds without "
        "reading the file, CPU time beside them where others had a part of the "
        "core. The scene is a part of Bangor, Maine; its best known cost is "
        f"that of ruin and recreate after {_SCENE_SECONDS:g} s with turn rules, which the "
        f"bound leaves out. Seed {SEED}."
    )


def _command(lines: Sequence[BoundLine]) -> str:
    return "python -m benchmarks.bounds --out benchmarks/results/bounds"


BOUND_LINES = Lines(
    "bounds.jsonl",
    LineFormat("arcfleet-bound-1", BoundLine, "a line of `bounds`"),
    _sections,
    _command,
    _caption,
)


def keys_of(sets: Sequence[str], limit: float | None) -> list[tuple[str, str, float, int]]:
    """Return the bounds to compute, set by set."""
    keys = []
    for set_name in sets:
        names = [name for group, name in best_known() if group == set_name]
        if set_name == "scene":
            names = [SCENE]
        for name in names:
            keys.append((set_name, name, limit or LIMITS[set_name], SEED))
            if name == "Hefei-10" and limit is None:
                keys[-1] = (set_name, name, 180.0, SEED)
    return keys


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute the bounds that are missing and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", choices=LIMITS, default=list(LIMITS))
    text = "time limit of every instance (default: by its set, see LIMITS)"
    parser.add_argument("--seconds", type=seconds_option, help=text)
    add_out_option(parser)
    options = parser.parse_args(arguments)
    keys = keys_of(options.sets, options.seconds)
    lines = make_missing(BOUND_LINES, options.out, keys, make_line)
    print(drivable_report(BOUND_LINES, lines).text())
    wrong = [line.instance for line in lines if line.bound > line.best_known]
    if wrong:
        print(f"above a known plan: {', '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    run_and_exit(main)
