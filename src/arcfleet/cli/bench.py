"""`arcfleet bench`: methods measured over a suite of instances."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.options import (
    Command,
    add_executor,
    add_shard,
    add_shared,
    names,
    option,
    positive_number,
    seconds,
)
from arcfleet.cli.output import check_plot, note, print_either
from arcfleet.cli.progress import count_progress
from arcfleet.errors import OptionError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from arcfleet.bench.run import Record
    from arcfleet.bench.summary import SummaryRow


def _options(parser: ArgumentParser) -> None:
    text = "suite: gdb, val, egl, quick or another name, or the path of a .toml file"
    parser.add_argument("suite", metavar="SUITE", help=text)
    text = "JSON lines of the runs; finished runs in it are reused"
    option(parser, "--out", text, Path, "FILE", required=True)
    text = "methods to measure, see `arcfleet methods`"
    option(parser, "--methods", text, str, "NAME[,NAME]", default="auto")
    text = "time limits of a run in seconds, from reading its instance to its line in FILE"
    option(parser, "--time", text, seconds, "S", nargs="+", default=[1.0])
    text = "number of seeds, from 0 to N-1"
    option(parser, "--seeds", text, positive_number, "N", default=1)
    add_shard(parser, "make a part of the runs")
    add_executor(parser, "number of runs at a time, at most one per idle core")
    text = "end a run at the reference cost if that is proven optimal"
    option(parser, "--stop-at-reference", text)
    text = "draw anytime curves into PREFIX-anytime.png"
    option(parser, "--plot", text, str, "PREFIX")
    text = "compute a lower bound of each instance first, in at most S seconds"
    option(parser, "--bound", text, seconds, "S")
    add_shared(parser, "model", "device", "quiet", "json")


def _run(options: Namespace) -> int:
    from arcfleet.bench.run import (
        latest,
        open_runs,
        part_of,
        plan_runs,
        run_benchmark,
        runs_left,
    )
    from arcfleet.bench.suite import read_suite
    from arcfleet.bench.summary import summarise
    from arcfleet.bounds.run import require_highs
    from arcfleet.methods import find_method, load_for_methods
    from arcfleet.workers import check_workers

    check_workers(options.workers, options.executor, name="--workers")
    picture = _picture(options)
    if options.bound is not None:
        require_highs()
    methods = [find_method(name) for name in names(options.methods)]
    load_for_methods(methods, options.model, options.device)  # or raise what is wrong
    suite = read_suite(options.suite)
    runs = plan_runs(
        suite,
        [method.name for method in methods],
        options.time,
        options.seeds,
        stop_at_reference=options.stop_at_reference,
    )
    identity = None
    if options.shard is not None:
        runs, identity = part_of(runs, options.shard, suite.name)
    with open_runs(options.out, identity) as store:
        left = runs_left(runs, store)
        # Runs differ in length: even one of no time takes some.
        weights = {run.key: run.key.time_limit + 0.01 for run in left}
        ended: list[float] = []
        with count_progress("runs", hidden=options.quiet) as told:

            def finished(record: Record | None) -> None:
                if record is not None:
                    ended.append(weights[record.key])
                if told is not None:
                    done = len(runs) - len(left) + len(ended)
                    told(done, len(runs), sum(ended) / max(sum(weights.values()), 0.01))

            finished(None)
            run_benchmark(
                left,
                store,
                workers=options.workers and min(options.workers, max(len(left), 1)),
                executor=options.executor,
                finished=finished,
                model=options.model,
                device=options.device,
                bound_seconds=options.bound,
            )
        found = latest(store.records)
    records = [found[run.key] for run in runs if run.key in found]
    valid = [record for record in records if record.error is None]
    rows = summarise(valid)
    if picture is not None and valid:
        from arcfleet.bench.summary import anytime_curves
        from arcfleet.report.charts import plot_anytime

        plot_anytime(anytime_curves(valid), picture)
    facts = {"suite": suite.name, "rows": [asdict(row) for row in rows]}
    title = f"suite {suite.name}" + (f": {suite.summary}" if suite.summary else "")
    print_either(options, facts, _text(title, valid, rows))
    return _report_missing(records, len(runs), options.out)


def _picture(options: Namespace) -> Path | None:
    """Return the picture to draw; raise what would prevent it, before the runs."""
    if options.plot is None:
        return None
    picture = Path(f"{options.plot}-anytime.png")
    check_plot(picture)
    if picture.resolve() == options.out.resolve():
        raise OptionError(f"expected --out and --plot to differ, got {picture} for both")
    return picture


def _text(title: str, records: Sequence[Record], rows: Sequence[SummaryRow]) -> str:
    from arcfleet.report.tables import table

    def number(value: float | None, digits: int) -> str | None:
        return None if value is None else f"{value:.{digits}f}"

    places = dict.fromkeys(f"{r.machine}, commit {r.commit}" for r in records)
    has_bound = any(row.bound_gap_percent is not None for row in rows)
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
            *(
                (number(row.bound_gap_percent, 3), number(row.proven_percent, 0))
                if has_bound
                else ()
            ),
        )
        for row in rows
    ]
    header = (
        *("set", "method", "limit s", "runs", "gap %", "mean s", "to best s"),
        *("reached %", "to reach s"),
        *(("above bound %", "proven %") if has_bound else ()),
    )
    return "\n".join([title, *places, table(cells, header)])


def _report_missing(records: Sequence[Record], planned: int, out: Path) -> int:
    """Report what is missing on stderr, and return the exit code."""
    failed = [record for record in records if record.error is not None]
    for record in failed:
        key = record.key
        note(
            f"{key.set_name} {key.instance}, {key.method}, seed {key.seed}, "
            f"{key.time_limit:g} s: {record.error}"
        )
    if len(records) < planned:
        note(
            f"interrupted, {planned - len(records)} of {planned} runs are left; "
            f"the same command resumes from {out}"
        )
    return 1 if failed or len(records) < planned else 0


BENCH = Command(
    name="bench",
    summary="measure gaps and times of methods over a suite of instances",
    options=_options,
    run=_run,
    epilog="""\
examples:
  arcfleet bench quick --out out/quick.jsonl
  arcfleet bench egl --methods ruin-recreate,ps-ellipse --time 0.5 5 --seeds 3 \\
      --workers 2 --out out/egl.jsonl --plot out/egl
  arcfleet bench egl --seeds 10 --shard 3/10 --out parts/3.jsonl
  arcfleet merge egl.jsonl parts/*.jsonl

Public instances are read from the folder carplib below $ARCFLEET_SHARED. The same command
resumes after Ctrl-C or a kill; runs that FILE had before get no bound. FILE does not record
the model: use another FILE for another --model or --device.
""",
)
