"""`arcfleet experiment`: the paper's tables and figures and our own, each by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arcfleet.cli import (
    experiment_all,
    experiment_report,
    experiment_scenes,
    experiment_series,
    experiment_training,
)

if TYPE_CHECKING:
    from arcfleet.cli.options import Commands

_EXPERIMENTS = (
    experiment_series,
    experiment_training,
    experiment_scenes,
    experiment_report,
    experiment_all,
)


def add_parser(commands: Commands) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "experiment",
        help="compare methods on test sets: tables and figures",
        description=(
            "Run an experiment and report it as Markdown, CSV, LaTeX and figures. All go "
            "on where they were stopped."
        ),
    )
    names = parser.add_subparsers(dest="experiment", metavar="NAME", required=True)
    for experiment in _EXPERIMENTS:
        experiment.add_parsers(names)
