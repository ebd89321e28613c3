"""`arcfleet experiment table|runtime|pareto|generalise`: methods on test sets."""

from __future__ import annotations

import sys
from argparse import RawDescriptionHelpFormatter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.experiment_options import (
    add_report_options,
    add_run_options,
    check_run_options,
    finish,
    plan_progress,
)
from arcfleet.cli.options import positive_number

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from arcfleet.cli.options import Commands
    from arcfleet.paper.measure import Measurement
    from arcfleet.paper.rows import ModelFiles
    from arcfleet.paper.series import Series

_SEARCH_COUNT = 500
_RUNTIME_COUNT = 100

_DEFAULT_ROWS = "default: all but daam-directions whose models are there"

_ROWS_HELP = """\
rows: NAME, NAME=NUMBER (plans, iterations or samples), sample=NUMBER@TEMPERATURE,
      redraw likewise
  ps ps-ellipse ps-efficiency ps-alt1 ps-alt2            path scanning
  s2v-dqn vrp-dl daam-sl daam-sl-rl daam-po              learned, as in the paper
  daam-directions daam-views sample redraw hybrid        learned, ours
  maens ruin-recreate                                    searches
"""

_TABLE = f"""\
examples:
  arcfleet experiment table task20-test.npz task100-test.npz --workers 8 --out results \\
      --rows ps,ps-ellipse,daam-sl-rl,daam-po,maens=5000,ruin-recreate,sample=32,hybrid
  arcfleet experiment table task*-test.npz --rows daam-sl,daam-sl-rl,daam-po \\
      --model daam-sl=sl.safetensors --model daam=rl.safetensors --device cuda \\
      --no-figures --out gpu
  arcfleet experiment report table results gpu --out joined

{_ROWS_HELP}
Labels beside a set, or of a smaller set that is its beginning (--labelled), count among
the best known. Gaps are taken on instances that both rows have.
"""


def add_parsers(names: Commands) -> None:
    """Describe the experiments."""
    table = _add(names, "table", "the paper's table: costs and gaps of all rows", _TABLE)
    _add_rows(table, _DEFAULT_ROWS)
    _add_counts(table, search_count=_SEARCH_COUNT)
    table.set_defaults(run=run_methods)

    runtime = _add(names, "runtime", "time of one instance and of many at once", _ROWS_HELP)
    _add_rows(runtime, _DEFAULT_ROWS)
    _add_counts(runtime, count=_RUNTIME_COUNT, search_count=_RUNTIME_COUNT)
    runtime.set_defaults(run=run_methods)

    pareto = _add(
        names, "pareto", "gap against time at one scale: which method when", _ROWS_HELP
    )
    _add_rows(pareto, _DEFAULT_ROWS)
    _add_counts(pareto, search_count=_SEARCH_COUNT)
    pareto.add_argument("--scale", metavar="TASK", help="as in task60; default the largest")
    pareto.set_defaults(run=run_methods)

    generalise = _add(
        names,
        "generalise",
        "models on scales and cities they were not trained on",
        "--model NAME=FILE names each model by what it was trained on; without one, the "
        "model\nthat comes with arcfleet. Every set needs labels.\n",
    )
    _add_rows(generalise, "how models decode; default daam-po")
    _add_counts(generalise)
    generalise.add_argument(
        "--seen", default="", metavar="MAP,...", help="maps that models were trained on"
    )
    generalise.set_defaults(run=run_generalise)


def _add(names: Commands, name: str, text: str, epilog: str) -> ArgumentParser:
    parser: ArgumentParser = names.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=epilog,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("sets", type=Path, nargs="+", metavar="SET")
    parser.add_argument(
        "--labelled",
        type=Path,
        nargs="+",
        default=[],
        metavar="SET",
        help="smaller labelled sets, each the beginning of a SET",
    )
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="[NAME[@TASK]=]FILE",
        help="model of rows (daam, daam-sl, s2v-dqn, vrp-dl), of one scale with @task50; "
        "may be repeated; default: what comes with arcfleet",
    )
    add_run_options(parser)
    add_report_options(parser)
    return parser


def _add_rows(parser: ArgumentParser, text: str) -> None:
    parser.add_argument("--rows", metavar="A,B", help=text)
    parser.add_argument(
        "--temperature",
        type=float,
        metavar="T",
        help="of sample and redraw, where they say none",
    )


def _add_counts(
    parser: ArgumentParser, count: int | None = None, search_count: int | None = None
) -> None:
    usual = "all" if count is None else str(count)
    parser.add_argument(
        "--count",
        type=positive_number,
        default=count,
        metavar="N",
        help=f"take only the first N instances of each set; default {usual}",
    )
    if search_count is None:
        parser.set_defaults(search_count=None)
    else:
        parser.add_argument(
            "--search-count",
            type=positive_number,
            default=search_count,
            metavar="N",
            help=f"the same for maens, ruin-recreate and hybrid; default {search_count}",
        )


def run_methods(options: Namespace) -> int:
    """Run `table`, `runtime` or `pareto`."""
    from arcfleet.paper.measure import plan_measurements
    from arcfleet.paper.reports import report_of
    from arcfleet.paper.rows import MODELS, parse_models, parse_rows
    from arcfleet.paper.sets import open_test_sets

    models = parse_models(options.model, options.device, names=MODELS)
    test_sets = open_test_sets(options.sets, options.labelled)
    if options.rows is None:
        texts = _rows_with_models(models, [test_set.scale for test_set in test_sets])
    else:
        texts = options.rows.split(",")
    rows = parse_rows(texts, seed=options.seed, temperature=options.temperature)
    measurements = [
        measurement
        for alone in ((False, True) if options.experiment == "runtime" else (False,))
        for measurement in plan_measurements(
            test_sets,
            rows,
            models,
            count=options.count,
            search_count=options.search_count,
            alone=alone,
        )
    ]
    check_run_options(options)
    series = measured_series(options, measurements, models)
    scale = options.scale if options.experiment == "pareto" else None
    finish(options, report_of(options.experiment, series, scale=scale))
    return 0


def _rows_with_models(models: ModelFiles, scales: Sequence[str]) -> list[str]:
    """Give the default rows whose models are there, and name the others."""
    from arcfleet.paper.rows import ROW_TYPES, TABLE_ROWS

    there = [x for x in TABLE_ROWS if all(models.has(ROW_TYPES[x], s) for s in scales)]
    left = [name for name in TABLE_ROWS if name not in there]
    if left:
        print(f"left out, without a model: {', '.join(left)}", file=sys.stderr, flush=True)
    return there


def run_generalise(options: Namespace) -> int:
    """Run `generalise`."""
    from arcfleet.paper.generalise import require_places
    from arcfleet.paper.measure import plan_measurements
    from arcfleet.paper.reports import report_of
    from arcfleet.paper.rows import parse_models, parse_rows, with_model
    from arcfleet.paper.sets import open_test_sets, require_labels

    texts = ("daam-po",) if options.rows is None else tuple(options.rows.split(","))
    decodings = parse_rows(texts, seed=options.seed, temperature=options.temperature)
    models = parse_models(options.model, options.device)
    names = list(dict.fromkeys(name for name, _ in models.given)) or ["daam"]
    alone = len(decodings) == 1
    rows = [with_model(row, name, alone=alone) for name in names for row in decodings]
    test_sets = open_test_sets(options.sets, options.labelled)
    seen = tuple(name.strip() for name in options.seen.split(",") if name.strip())
    require_places(seen, [test_set.place for test_set in test_sets])
    require_labels(test_sets)
    measurements = plan_measurements(test_sets, rows, models, count=options.count)
    check_run_options(options)
    series = measured_series(options, measurements, models)
    finish(options, report_of("generalise", series, seen=seen))
    return 0


def measured_series(
    options: Namespace, measurements: Sequence[Measurement], models: ModelFiles
) -> list[Series]:
    """Make what the folder lacks and give all series that were asked for."""
    from arcfleet.paper.measure import measure
    from arcfleet.paper.reports import STORES
    from arcfleet.paper.rows import LABELS
    from arcfleet.paper.series import RunFile, join, store_path

    file = RunFile(store_path(options.out, STORES[options.experiment]))

    def finished(measurement: Measurement) -> None:
        if not options.quiet:
            key = measurement.key
            alone = ", one at a time" if key.alone else ""
            print(
                f"{key.set_name}, {key.label}{alone}: {measurement.count} instances",
                file=sys.stderr,
                flush=True,
            )

    try:
        with plan_progress(hidden=options.quiet) as progress:
            measure(
                measurements,
                file,
                models,
                workers=options.workers,
                batch_size=options.batch,
                judge=options.judge,
                progress=progress,
                finished=finished,
            )
    finally:
        file.close()
    # Names for people are those of this call, not of the one that filled the file.
    asked = {measurement.key: measurement.key for measurement in measurements}
    labels = {
        (x.test_set.dataset.checksum, x.test_set.labels.checksum)
        for x in measurements
        if x.test_set.labels is not None
    }
    return [
        replace(series, key=asked.get(series.key, series.key))
        for series in join(file.chunks)
        if series.key in asked
        or (
            series.key.row == LABELS
            and (series.key.data_sha256, series.key.source_sha256) in labels
        )
    ]
