"""`arcfleet info`: say what an instance holds."""

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
    from arcfleet._checks import one_line
    from arcfleet.instance.diagnose import diagnose
    from arcfleet.instance.files import read

    if options.plot is not None:
        from arcfleet.report.picture import check_plottable
        from arcfleet.report.plot import plot

        check_plottable(options.plot)
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
        "least_routes": max(
            -(-instance.total_demand // instance.capacity), int(bool(instance.required))
        ),
        "fleet_limit": instance.fleet_limit,
        "route_cost": instance.route_cost,
    }
    if options.plot is not None:
        plot(instance, None, options.plot)
    if options.json:
        print_json(facts | {"problems": [p.message for p in problems]})
        return 0
    lines = [
        f"{key.replace('_', ' '):14}{one_line('none' if value is None else str(value))}"
        for key, value in facts.items()
    ]
    lines += [f"{'problem':14}{problem.message}" for problem in problems]
    print_result("\n".join(lines))
    return 0
