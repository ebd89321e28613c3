"""`arcfleet experiment`: the experiments that compare methods, each by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arcfleet.cli import experiment_learned

if TYPE_CHECKING:
    from arcfleet.cli.options import Commands

_EXPERIMENTS = (experiment_learned,)


def add_parser(commands: Commands) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "experiment",
        help="compare methods on test sets, table by table",
        description="Run an experiment and print its tables.",
    )
    names = parser.add_subparsers(dest="experiment", metavar="NAME", required=True)
    for experiment in _EXPERIMENTS:
        experiment.add_parser(names)
