"""`arcfleet experiment report`: tables and figures from the files of runs alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.experiment_options import add_report_options, check_figures, finish

if TYPE_CHECKING:
    from argparse import Namespace

    from arcfleet.cli.options import Commands

_NAMES = ("table", "runtime", "pareto", "generalise", "ablation")


def add_parsers(names: Commands) -> None:
    """Describe the command."""
    parser = names.add_parser(
        "report",
        help="report runs again, or those of several machines together",
        description=(
            "Report an experiment from the folders of its runs, perhaps of several "
            "machines; neither test sets nor models are needed."
        ),
    )
    parser.add_argument("name", choices=_NAMES, metavar="NAME", help=", ".join(_NAMES))
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--scale", metavar="TASK", help="of pareto; default the largest")
    parser.add_argument(
        "--seen", default="", metavar="MAP,...", help="of generalise: maps of the training"
    )
    add_report_options(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Run the command."""
    from arcfleet.paper.report import make_folder
    from arcfleet.paper.reports import read_series, report_of

    series = read_series(options.folders, options.name)
    make_folder(options.out)
    check_figures(options)
    seen = tuple(name.strip() for name in options.seen.split(",") if name.strip())
    finish(options, report_of(options.name, series, scale=options.scale, seen=seen))
    return 0
