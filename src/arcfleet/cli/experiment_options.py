"""Options that experiments share, their progress, and the writing of their reports."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.options import add_json, positive_number, whole_number
from arcfleet.cli.output import print_json, print_result
from arcfleet.cli.progress import count_progress

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterator

    from arcfleet.paper.report import Report


def add_report_options(parser: ArgumentParser) -> None:
    """Describe where a report goes and what it holds."""
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="for the JSON lines of runs and the report; what is there is not made again",
    )
    parser.add_argument(
        "--no-figures",
        action="store_true",
        help="no figures, which need matplotlib; `report` draws them from the folder",
    )
    add_json(parser)


def add_run_options(parser: ArgumentParser) -> None:
    """Describe how an experiment is run."""
    parser.add_argument(
        "--device",
        default="auto",
        metavar="NAME",
        help="where models work: auto (default), cpu, cuda, cuda:1",
    )
    parser.add_argument(
        "--seed", type=whole_number, default=0, metavar="N", help="default 0"
    )
    parser.add_argument(
        "--workers",
        type=positive_number,
        default=1,
        metavar="N",
        help="processes of searches, threads of models on a CPU; default 1",
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
        help="plans of each row and set that the checker judges; default 50",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")


def check_run_options(options: Namespace) -> None:
    """Raise what is wrong before the work begins."""
    from arcfleet._checks import check_whole_number
    from arcfleet.batch import MOST_WORKERS
    from arcfleet.paper.report import make_folder

    check_whole_number("--workers", options.workers, 1, MOST_WORKERS)
    check_whole_number("--seed", options.seed, 0, 2**64 - 1)
    make_folder(options.out)
    check_figures(options)


def check_figures(options: Namespace) -> None:
    """Raise OptionError where figures are wanted and cannot be drawn."""
    if not options.no_figures:
        from arcfleet.report.picture import check_plottable

        check_plottable(options.out / "figure.png")


def finish(options: Namespace, report: Report) -> None:
    """Write a report and print its tables."""
    from arcfleet.paper.report import write_report

    files = write_report(report, options.out, figures=not options.no_figures)
    if options.json:
        print_json({"records": report.records, "files": [str(path) for path in files]})
        return
    print_result(report.text())
    print_result(f"\n{report.caption}\n\n{', '.join(path.name for path in files)}")


@contextmanager
def plan_progress(*, hidden: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Show how many plans are made and the time left: a bar, or a line each minute."""
    with count_progress("plans", hidden=hidden, lines=True) as progress:
        yield progress
