"""`arcfleet methods`: list the ways of solving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arcfleet.cli.options import add_json
from arcfleet.cli.output import print_json, print_result

if TYPE_CHECKING:
    from argparse import Namespace

    from arcfleet.cli.options import Commands


def add_parser(commands: Commands) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "methods",
        help="list the methods",
        description="List the methods that `arcfleet solve --method` knows.",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Run the command."""
    from arcfleet.methods import DEFAULT_METHOD, METHODS
    from arcfleet.report.tables import table

    if options.json:
        print_json(
            {
                "default": DEFAULT_METHOD,
                "methods": [
                    {"name": m.name, "summary": m.summary} for m in METHODS.values()
                ],
            }
        )
        return 0
    rows = [
        (method.name, method.summary + (" [default]" if name == DEFAULT_METHOD else ""))
        for name, method in METHODS.items()
    ]
    print_result(table(rows, ("method", "what it does")))
    return 0
