"""Ruin and recreate beside PyVRP: same instances, seeds and seconds, one thread, by turns.

`python -m benchmarks.side_by_side egl --time 0.5 5 --seeds 3 --out out/side-by-side` adds
one JSON line per run to DIR/runs.jsonl, as `arcfleet bench` writes it, and goes on after a
kill. All runs of the file, and those of other programs on the same instances as published
in reference_runs.csv, make the tables of DIR/side-by-side.md.
"""

from __future__ import annotations

import argparse
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet import check, read, solve
from arcfleet.bench.machine import commit, machine
from arcfleet.bench.run import Run, latest, open_runs, record_of, runs_left
from arcfleet.bench.suite import read_suite
from arcfleet.cli.options import positive_number, seconds
from arcfleet.errors import ArcfleetError, SolutionError
from arcfleet.paper.report import make_folder, write_report
from arcfleet.search import Stop
from benchmarks.pyvrp_solver import pyvrp_name, solve_by_pyvrp
from benchmarks.side_by_side_report import OURS, read_reference_runs, side_by_side_report

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from arcfleet.bench.run import Record
    from arcfleet.bench.suite import SuiteInstance
    from arcfleet.instance import Instance
    from arcfleet.search import Result

#: In the folder of `--out`.
RUNS = "runs.jsonl"


def plan_pairs(
    sources: Iterable[SuiteInstance],
    time_limits: Iterable[float],
    seeds: int,
    other: str,
    *,
    stop_at_reference: bool,
) -> list[Run]:
    """List both solvers' runs in pairs, each first in every other pair."""
    pairs = [
        (source, seed, limit)
        for limit in sorted({float(limit) for limit in time_limits})
        for source in sources
        for seed in range(seeds)
    ]
    return [
        Run.of(source, method, seed, limit, stop_at_reference)
        for number, (source, seed, limit) in enumerate(pairs)
        for method in ((OURS, other) if number % 2 == 0 else (other, OURS))
    ]


def make_run(run: Run, here: tuple[str, str]) -> Record:
    """Solve and verify; whatever a user can mend becomes a record with an error."""
    try:
        result = _solve(run)
    except ArcfleetError as error:
        return record_of(run, here, error=str(error))
    if result.stopped_by == "interrupt":
        raise KeyboardInterrupt
    # The history is left out: it would make the file ten times as long.
    return record_of(run, here, result, history=False)


def _solve(run: Run) -> Result:
    """Return a result that the checker approves of, or raise ArcfleetError."""
    key, source = run.key, run.source
    instance = _read(source.path)
    at_reference = key.stop_at_reference and source.proven
    stop = Stop(
        seconds=key.time_limit, target_cost=source.reference if at_reference else None
    )
    if key.method == OURS:
        result = solve(instance, OURS, stop=stop, seed=key.seed)
    else:
        result = solve_by_pyvrp(instance, stop=stop, seed=key.seed)
    report = check(instance, result.solution)
    if not report.ok:
        raise SolutionError(f"faulty plan: {report.faults[0]}")
    return result


@cache
def _read(path: Path) -> Instance:
    return read(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the runs that are missing, then write and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.side_by_side",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "suites", nargs="+", metavar="SUITE", help="of benchmarks/suites, or a .toml file"
    )
    parser.add_argument(
        "--time",
        type=seconds,
        nargs="+",
        default=[0.5],
        metavar="S",
        help="time limits of a run in seconds; default 0.5",
    )
    parser.add_argument(
        "--seeds", type=positive_number, default=1, metavar="N", help="0 to N-1; default 1"
    )
    parser.add_argument(
        "--stop-at-reference",
        action="store_true",
        help="end a run at the reference cost where that is proven optimal",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="for runs and tables"
    )
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except ArcfleetError as error:
        print(f"side_by_side: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(
            "side_by_side: interrupted; the same command goes on with "
            f"{options.out / RUNS}",
            file=sys.stderr,
        )
    return 1


def _run(options: argparse.Namespace) -> int:
    other = pyvrp_name()
    runs = plan_pairs(
        [x for name in dict.fromkeys(options.suites) for x in read_suite(name).instances],
        options.time,
        options.seeds,
        other,
        stop_at_reference=options.stop_at_reference,
    )
    make_folder(options.out)
    with open_runs(options.out / RUNS) as store:
        left = runs_left(runs, store)
        here = (machine(), commit())
        for number, run in enumerate(left, start=1):
            store.add(make_run(run, here))
            if sys.stderr.isatty():
                print(f"\r{number} of {len(left)} runs", end="", file=sys.stderr)
        records = latest(store.records)
    # Runs of earlier commands, too, where they end by the same rule.
    finished = [
        record
        for record in records.values()
        if record.error is None and record.stop_at_reference == options.stop_at_reference
    ]
    report = side_by_side_report(finished, read_reference_runs())
    write_report(report, options.out, figures=False)
    print(report.text())
    print(f"\n{report.caption}")
    failed = [records[run.key] for run in runs]
    failed = [record for record in failed if record.error is not None]
    for record in failed:
        key = record.key
        print(
            f"side_by_side: {key.set_name} {key.instance}, {key.method}, seed {key.seed}, "
            f"{key.time_limit:g} s: {record.error}",
            file=sys.stderr,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
