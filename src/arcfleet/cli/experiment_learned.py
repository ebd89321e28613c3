"""`arcfleet experiment learned`: the learned solver against searches on test sets."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError, RawDescriptionHelpFormatter
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.options import add_json, add_model, positive_number, whole_number
from arcfleet.cli.output import print_json, print_result

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from arcfleet.cli.options import Commands
    from arcfleet.experiments.learned_table import Cell
    from arcfleet.experiments.table_rows import TableRow
    from arcfleet.neural.solver import LoadedModel

_EXAMPLES = """\
examples:
  arcfleet experiment learned task20-test.npz task100-test.npz --out table.jsonl
  arcfleet experiment learned task*-test.npz --model run/model.safetensors \\
      --device cuda --temperature 1 0.5 --ruin-recreate 5000 --search-count 100 \\
      --workers 8 --out table.jsonl

The labels of each test set are its reference plans; they are looked for beside it. Rows
that FILE holds already are not made again, so the same command goes on after Ctrl-C or a
kill. The tables go to stdout, and beside FILE as Markdown (.md) and CSV (.csv).
"""


def add_parser(commands: Commands) -> None:
    """Describe the experiment."""
    parser = commands.add_parser(
        "learned",
        help="the learned solver against path scanning and searches",
        description=(
            "Solve test sets by a model and by searches; compare with the labels of the "
            "same instances."
        ),
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("sets", type=Path, nargs="+", metavar="SET")
    add_model(parser)
    parser.add_argument(
        "--methods",
        metavar="A,B",
        help=(
            "default: greedy,greedy-optimised,recipe,sample (of the model) and "
            "ps,ps-ellipse,ps-efficiency,ps-alt1,ps-alt2"
        ),
    )
    parser.add_argument(
        "--samples",
        type=positive_number,
        default=32,
        metavar="K",
        help="plans that `sample` draws of each instance; default 32",
    )
    parser.add_argument(
        "--temperature",
        type=_temperature,
        nargs="+",
        default=[1.0],
        metavar="T",
        help="of `sample`, one row for each; default 1",
    )
    parser.add_argument(
        "--scanning-plans",
        type=positive_number,
        metavar="N",
        help="plans of each path scanning but ps; default 1000",
    )
    for name in ("ruin-recreate", "maens"):
        parser.add_argument(
            f"--{name}",
            type=positive_number,
            metavar="N",
            help=f"also {name} with so many iterations",
        )
    parser.add_argument(
        "--count",
        type=positive_number,
        metavar="N",
        help="take only the first N instances of each set",
    )
    parser.add_argument(
        "--search-count",
        type=positive_number,
        metavar="N",
        help="the same for ruin-recreate and maens only",
    )
    parser.add_argument(
        "--seed", type=whole_number, default=0, metavar="N", help="default 0"
    )
    parser.add_argument(
        "--workers",
        type=positive_number,
        default=1,
        metavar="N",
        help="processes, or threads of the path optimiser; default 1",
    )
    parser.add_argument(
        "--batch",
        type=positive_number,
        metavar="N",
        help="instances decoded at a time; default 1024 on a GPU, else 64",
    )
    parser.add_argument(
        "--judge",
        type=positive_number,
        default=50,
        metavar="N",
        help="plans of each row that the checker judges; default 50",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="rows, one JSON line each"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    add_json(parser)
    parser.set_defaults(run=run)


def _temperature(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 1e6:
        raise ArgumentTypeError(f"expected a temperature above 0, got {text[:40]!r}")
    return value


def run(options: Namespace) -> int:
    """Run the experiment."""
    from arcfleet.batch import MOST_WORKERS
    from arcfleet.cli.count_bar import count_bar
    from arcfleet.experiments import learned_report, learned_table
    from arcfleet.experiments.contenders import DECODINGS, SCANNING, plan_contenders
    from arcfleet.experiments.table_rows import RowFile
    from arcfleet.instance.atomic import check_writable, write_text_atomically
    from arcfleet.search.stop import check_whole_number

    check_whole_number("--workers", options.workers, 1, MOST_WORKERS)
    check_whole_number("--seed", options.seed, 0, 2**64 - 1)
    methods = (*DECODINGS, *SCANNING)
    if options.methods is not None:
        methods = tuple(name.strip() for name in options.methods.split(","))
    contenders = plan_contenders(
        methods,
        samples=options.samples,
        temperatures=options.temperature,
        scanning_plans=options.scanning_plans,
        iterations={
            name: number
            for name, number in (
                ("ruin-recreate", options.ruin_recreate),
                ("maens", options.maens),
            )
            if number is not None
        },
        search_count=options.search_count,
        seed=options.seed,
    )
    is_learned = any(contender.is_learned for contender in contenders)
    _refuse_idle_options(options, is_learned=is_learned)
    markdown, table = _beside(options.out)
    for path in (markdown, table):
        check_writable(path)
    files = learned_table.open_test_sets(options.sets)
    checksum, loaded = None, None
    if is_learned:
        checksum, loaded = _load(options)
    cells = learned_table.plan_cells(
        files, contenders, model_sha256=checksum, count=options.count
    )
    rows = RowFile(options.out)
    try:
        left = learned_table.cells_left(cells, rows)

        def finished(cell: Cell, row: TableRow) -> None:
            if not options.quiet:
                print(_line(cell, row), file=sys.stderr, flush=True)

        with count_bar("plans", hidden=options.quiet or not left) as bar:
            learned_table.fill_table(
                left,
                rows,
                loaded=loaded,
                workers=options.workers,
                batch_size=options.batch,
                judge=options.judge,
                progress=bar,
                finished=finished,
            )
    finally:
        rows.close()
    made = [rows.rows[cell.key] for cell in cells]
    tables = learned_report.sections(cells, made)
    write_text_atomically(markdown, learned_report.as_markdown(tables, made))
    write_text_atomically(table, learned_report.as_csv(cells, made))
    if options.json:
        print_json({"rows": _facts(cells, made)})
    else:
        print_result(learned_report.as_text(tables))
    return 0


def _refuse_idle_options(options: Namespace, *, is_learned: bool) -> None:
    """Raise OptionError for an option that would change nothing."""
    from arcfleet.errors import OptionError

    if not is_learned and (options.model is not None or options.device != "auto"):
        raise OptionError(
            "expected --model and --device with a method of the model only, got one "
            f"with --methods {options.methods}: leave it out or add greedy"
        )
    if options.search_count is not None and not (options.ruin_recreate or options.maens):
        raise OptionError(
            "expected --search-count with --ruin-recreate or --maens, got it alone: use "
            "--count to limit all methods"
        )


def _beside(out: Path) -> tuple[Path, Path]:
    """Name the Markdown and CSV files, which must not be the file of rows itself."""
    from arcfleet.errors import OptionError

    if out.suffix in (".md", ".csv"):
        raise OptionError(
            f"expected --out to name the file of rows, as in table.jsonl, got {out}: the "
            "tables go beside it as .md and .csv"
        )
    return out.with_suffix(".md"), out.with_suffix(".csv")


def _load(options: Namespace) -> tuple[str, LoadedModel]:
    from arcfleet.neural.packages import require_packages

    require_packages("decoding with a model")
    from arcfleet.experiments.learned_table import file_checksum
    from arcfleet.neural.shipped import model_path
    from arcfleet.neural.solver import load_for_solving

    path = model_path(options.model)
    loaded = load_for_solving(path, options.device)
    return file_checksum(path), loaded


def _line(cell: Cell, row: TableRow) -> str:
    from arcfleet.experiments.learned_report import gap_text, milliseconds_text

    return (
        f"{row.key.set_name}, {cell.contender.label}: {gap_text(row)} % above the labels, "
        f"{milliseconds_text(row)} ms per instance, {row.key.count} instances"
    )


def _facts(cells: Sequence[Cell], rows: Sequence[TableRow]) -> list[dict[str, object]]:
    from dataclasses import asdict

    return [
        {
            "set": row.key.set_name,
            "method": row.key.method,
            "label": cell.contender.label,
            "settings": dict(row.key.settings),
            "instances": row.key.count,
            **asdict(row.gaps),
            "seconds_per_instance": row.seconds_per_instance,
            "judged": row.judged,
            "device": row.device,
        }
        for cell, row in zip(cells, rows, strict=True)
    ]
