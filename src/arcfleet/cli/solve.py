"""`arcfleet solve`: plan the routes of an instance."""

from __future__ import annotations

import sys
from argparse import RawDescriptionHelpFormatter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.options import (
    add_json,
    add_model,
    positive_number,
    seconds,
    whole_number,
)
from arcfleet.cli.output import print_json, print_result
from arcfleet.cli.views import (
    VIEWS,
    add_views,
    check_distinct,
    check_instance,
    check_views,
    write_views,
)

if TYPE_CHECKING:
    from argparse import Namespace

    from arcfleet.cli.options import Commands
    from arcfleet.instance import Instance
    from arcfleet.search import Result, Stop

_EXAMPLES = """\
examples:
  arcfleet solve town.dat                           plan with the defaults
  arcfleet solve town.dat --time 10 --threads 2     search for ten seconds
  arcfleet solve town.dat --out plan.json --plot plan.png
  arcfleet solve town.json --html plan.html --gpx plan.gpx
  arcfleet solve town.dat --method ps-ellipse --json
  arcfleet solve town.dat --method daam --model daam.safetensors --device cpu

FILE is an instance: CARPLIB (.dat), MCARP (.txt) or arcfleet's JSON, known by its
contents; example:denver stands for one that comes with arcfleet. Ctrl-C ends the search
and keeps the best plan so far.
"""


def add_parser(commands: Commands) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "solve",
        help="plan the routes of an instance",
        description="Plan the routes of an instance.",
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("instance", type=Path, metavar="FILE", nargs="?")
    parser.add_argument(
        "--method", default="auto", metavar="NAME", help="see `arcfleet methods`"
    )
    add_model(parser)
    parser.add_argument("--start", type=Path, metavar="PLAN", help="go on from this plan")
    parser.add_argument("--time", type=seconds, metavar="S", help="stop after S seconds")
    parser.add_argument(
        "--iterations", type=positive_number, metavar="N", help="stop after N iterations"
    )
    parser.add_argument(
        "--stale",
        type=positive_number,
        metavar="N",
        help="stop after N without a better plan",
    )
    parser.add_argument(
        "--target", type=whole_number, metavar="COST", help="stop at a plan of this cost"
    )
    parser.add_argument(
        "--seed", type=whole_number, default=0, metavar="N", help="default 0"
    )
    parser.add_argument(
        "--threads",
        type=whole_number,
        default=1,
        metavar="N",
        help="default 1; 0: all cores",
    )
    parser.add_argument(
        "--fleet-limit", type=positive_number, metavar="N", help="at most N routes"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write the plan (.json with streets, or text)",
    )
    add_views(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress line")
    add_json(parser)
    parser.set_defaults(run=run, print_help=parser.print_help)


def run(options: Namespace) -> int:
    """Run the command."""
    if options.instance is None:
        options.print_help(sys.stderr)
        return 2
    from arcfleet.cli.progress import progress_line
    from arcfleet.instance.files import read
    from arcfleet.methods import find_method, load_for_method, solve
    from arcfleet.solution.files import read_solution

    _check_outputs(options)
    method = find_method(options.method)
    stop = _stop(options, method.default_stop)
    loaded = load_for_method(method, options.model, options.device)
    instance = read(options.instance)
    check_instance(options, instance)
    if options.fleet_limit is not None:
        instance = replace(instance, fleet_limit=options.fleet_limit)
    start = None if options.start is None else read_solution(options.start, instance)
    with progress_line(stop, hidden=options.quiet) as progress:
        result = solve(
            instance,
            method.name,
            stop=stop,
            seed=options.seed,
            threads=options.threads,
            progress=progress,
            start=start,
            model=loaded,
        )
    if result.stopped_by == "interrupt":
        print("arcfleet: interrupted; this is the best plan so far", file=sys.stderr)
    try:
        _write(options, instance, result)
    finally:
        # Printed even where a file could not be written: the plan is not lost.
        if options.json:
            print_json(result.facts())
        else:
            print_result(result.summary())
    return 0


def _stop(options: Namespace, usual: Stop) -> Stop:
    from arcfleet.search import Stop

    stop = Stop(
        seconds=options.time,
        iterations=options.iterations,
        stale_iterations=options.stale,
        target_cost=options.target,
    )
    # A target alone may never be met: then the method's usual limit ends the run.
    return replace(usual, target_cost=options.target) if stop.is_open else stop


def _check_outputs(options: Namespace) -> None:
    """Find out before the search what would prevent writing after it."""
    from arcfleet._files import check_writable

    check_distinct(options, "instance", "out", *VIEWS)
    if options.out is not None:
        check_writable(options.out)
    check_views(options)


def _write(options: Namespace, instance: Instance, result: Result) -> None:
    if options.out is not None:
        from arcfleet.solution.files import write_solution

        write_solution(instance, result.solution, options.out, seconds=result.seconds)
    write_views(options, instance, result.solution)
