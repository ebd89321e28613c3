"""`arcfleet bench`: measure methods over a suite of instances."""

from __future__ import annotations

import sys
from argparse import RawDescriptionHelpFormatter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.options import add_json, add_model, positive_number, seconds
from arcfleet.cli.output import print_json, print_result

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from arcfleet.bench.store import Record
    from arcfleet.bench.summary import SummaryRow
    from arcfleet.cli.options import Commands

_EXAMPLES = """\
examples:
  arcfleet bench quick --out out/quick.jsonl
  arcfleet bench egl --methods ruin-recreate,ps-ellipse --time 0.5 5 --seeds 3 \\
      --workers 2 --out out/egl.jsonl --plot out/egl

SUITE is the name of a file in benchmarks/suites or the path of such a .toml file. Public
instances are looked for in the folder carplib below ARCFLEET_SHARED. Runs that FILE holds
already are not made again, so the same command goes on after Ctrl-C or a kill. FILE does
not name the model: use another FILE for another --model or --device.
"""


def add_parser(commands: Commands) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "bench",
        help="measure methods over a suite of instances",
        description="Run methods over a suite, judge every plan, print gaps and times.",
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("suite", metavar="SUITE")
    parser.add_argument(
        "--methods", default="auto", metavar="A,B", help="see `arcfleet methods`"
    )
    add_model(parser)
    parser.add_argument(
        "--time",
        type=seconds,
        nargs="+",
        default=[1.0],
        metavar="S",
        help="time limits of a run in seconds; default 1",
    )
    parser.add_argument(
        "--seeds", type=positive_number, default=1, metavar="N", help="0 to N-1; default 1"
    )
    parser.add_argument(
        "--workers",
        type=positive_number,
        default=1,
        metavar="N",
        help="runs at a time, at most one per idle core; default 1",
    )
    parser.add_argument(
        "--stop-at-reference",
        action="store_true",
        help="end a run at the reference cost where that is proven optimal",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="runs, one JSON line each"
    )
    parser.add_argument(
        "--plot", metavar="PREFIX", help="draw anytime curves into PREFIX-anytime.png"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Run the command."""
    from arcfleet._checks import check_whole_number
    from arcfleet.batch import MOST_WORKERS
    from arcfleet.bench.run import plan_runs, run_benchmark, runs_left
    from arcfleet.bench.store import RecordFile
    from arcfleet.bench.suite import read_suite
    from arcfleet.bench.summary import summarise
    from arcfleet.cli.progress import benchmark_bar
    from arcfleet.methods import find_method, load_for_methods

    check_whole_number("--workers", options.workers, 1, MOST_WORKERS)
    picture = _picture(options)
    methods = [find_method(name.strip()) for name in options.methods.split(",")]
    load_for_methods(methods, options.model, options.device)  # or say what is wrong
    suite = read_suite(options.suite)
    runs = plan_runs(
        suite,
        [method.name for method in methods],
        options.time,
        options.seeds,
        stop_at_reference=options.stop_at_reference,
    )
    file = RecordFile(options.out)
    try:
        left = runs_left(runs, file)
        with benchmark_bar(left, kept=len(runs) - len(left), hidden=options.quiet) as bar:
            run_benchmark(
                left,
                file,
                workers=min(options.workers, max(len(left), 1)),
                finished=bar,
                model=options.model,
                device=options.device,
            )
    finally:
        file.close()
    records = [file.records[run.key] for run in runs if run.key in file.records]
    valid = [record for record in records if record.error is None]
    rows = summarise(valid)
    if picture is not None and valid:
        from arcfleet.bench.summary import anytime_curves
        from arcfleet.report.charts import plot_anytime

        plot_anytime(anytime_curves(valid), picture)
    if options.json:
        print_json({"suite": suite.name, "rows": [asdict(row) for row in rows]})
    else:
        title = f"suite {suite.name}" + (f": {suite.summary}" if suite.summary else "")
        print_result(_text(title, valid, rows))
    return _report_missing(records, len(runs), options.out)


def _picture(options: Namespace) -> Path | None:
    """Find out before the runs what would prevent the picture after them."""
    if options.plot is None:
        return None
    from arcfleet.errors import OptionError
    from arcfleet.report.picture import check_plottable

    picture = Path(f"{options.plot}-anytime.png")
    check_plottable(picture)
    if picture.resolve() == options.out.resolve():
        raise OptionError(f"expected --out and --plot to differ, got {picture} for both")
    return picture


def _text(title: str, records: Sequence[Record], rows: Sequence[SummaryRow]) -> str:
    from arcfleet.report.tables import table

    def number(value: float | None, digits: int) -> str | None:
        return None if value is None else f"{value:.{digits}f}"

    places = dict.fromkeys(f"{r.machine}, commit {r.commit}" for r in records)
    cells = [
        (
            row.set_name,
            row.method,
            f"{row.time_limit:g}",
            row.runs,
            number(row.gap_percent, 3),
            number(row.seconds, 2),
            number(row.seconds_to_best, 2),
            number(row.reached_percent, 0),
            number(row.seconds_to_reference, 2),
        )
        for row in rows
    ]
    header = (
        *("set", "method", "limit s", "runs", "gap %", "mean s", "to best s"),
        *("reached %", "to reach s"),
    )
    return "\n".join([title, *places, table(cells, header)])


def _report_missing(records: Sequence[Record], planned: int, out: Path) -> int:
    """Say on stderr what is missing, and give the exit code."""
    failed = [record for record in records if record.error is not None]
    for record in failed:
        key = record.key
        print(
            f"arcfleet: {key.set_name} {key.instance}, {key.method}, seed {key.seed}, "
            f"{key.time_limit:g} s: {record.error}",
            file=sys.stderr,
        )
    if len(records) < planned:
        print(
            f"arcfleet: interrupted, {planned - len(records)} of {planned} runs are left; "
            f"the same command goes on with {out}",
            file=sys.stderr,
        )
    return 1 if failed or len(records) < planned else 0
