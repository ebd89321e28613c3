"""`arcfleet check`: have a plan judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.options import add_json
from arcfleet.cli.output import print_json, print_result

if TYPE_CHECKING:
    from argparse import Namespace

    from arcfleet.cli.options import Commands


def add_parser(commands: Commands) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "check",
        help="judge a plan, independently of any solver",
        description="Judge a plan: print ok and its cost, or every fault and exit 1.",
    )
    parser.add_argument("instance", type=Path, metavar="INSTANCE")
    parser.add_argument("solution", type=Path, metavar="SOLUTION")
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Run the command."""
    from arcfleet.instance.files import read
    from arcfleet.solution.checker import check
    from arcfleet.solution.files import read_solution

    instance = read(options.instance)
    solution = read_solution(options.solution, instance)
    report = check(instance, solution)
    if options.json:
        print_json(
            {
                "ok": report.ok,
                "cost": report.cost,
                "deadhead": report.deadhead,
                "num_routes": solution.num_routes,
                "faults": list(report.faults),
            }
        )
    elif report.ok:
        print_result(f"ok: cost {report.cost}, {solution.num_routes} routes")
    else:
        print_result("\n".join(report.faults))
    return 0 if report.ok else 1
