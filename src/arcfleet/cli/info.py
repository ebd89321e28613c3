"""`arcfleet info`: say what an instance holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.options import add_json, print_json

if TYPE_CHECKING:
    from argparse import Namespace

    from arcfleet.cli.options import Commands


def add_parser(commands: Commands) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "info",
        help="say what an instance holds",
        description="Say what an instance holds, and what makes it unsolvable, if so.",
    )
    parser.add_argument("instance", type=Path, metavar="INSTANCE")
    add_json(parser)
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw it (.png, .svg, .pdf)"
    )
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Run the command."""
    from arcfleet.instance.diagnose import diagnose
    from arcfleet.instance.files import read

    instance = read(options.instance)
    problems = diagnose(instance)
    facts: dict[str, object] = {
        "name": instance.name,
        "nodes": len(instance.nodes),
        "links": len(instance.links),
        "required": len(instance.required),
        "one_way": sum(link.one_way for link in instance.links),
        "capacity": instance.capacity,
        "depot": instance.depot,
        "total_demand": instance.total_demand,
        "least_routes": -(-instance.total_demand // instance.capacity),
        "fleet_limit": instance.fleet_limit,
        "route_cost": instance.route_cost,
    }
    if options.json:
        print_json(facts | {"problems": [p.message for p in problems]})
    else:
        for key, value in facts.items():
            shown = "none" if value is None else value
            print(f"{key.replace('_', ' '):14}{shown}")
        for problem in problems:
            print(f"{'problem':14}{problem.message}")
    if options.plot is not None:
        from arcfleet.report.plot import plot

        plot(instance, None, options.plot)
    return 0
