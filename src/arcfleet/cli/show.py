"""`arcfleet show`: a plan as a picture, a map for the browser, or tracks to drive."""

from __future__ import annotations

import warnings
from argparse import RawDescriptionHelpFormatter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.options import add_json
from arcfleet.cli.output import print_json, print_result
from arcfleet.cli.views import (
    VIEWS,
    add_views,
    check_distinct,
    check_instance,
    check_views,
    write_views,
)
from arcfleet.errors import FormatWarning, OptionError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from arcfleet.cli.options import Commands
    from arcfleet.solution import Solution

_EXAMPLES = """\
examples:
  arcfleet show town.json plan.json --html plan.html     look at it in a browser
  arcfleet show town.json plan.json --gpx plan.gpx       drive it
  arcfleet show town.json plan.json --gpx tracks/        one file per vehicle
"""


def add_parser(commands: Commands) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "show",
        help="draw a plan, or export it for maps and navigation",
        description="Draw a plan, or export it for maps and navigation.",
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("instance", type=Path, metavar="INSTANCE")
    parser.add_argument("solution", type=Path, metavar="PLAN")
    add_views(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Run the command."""
    from arcfleet.instance.files import read
    from arcfleet.solution.checker import check
    from arcfleet.solution.files import read_solution

    _check_outputs(options)
    instance = read(options.instance)
    check_instance(options, instance)
    solution = read_solution(options.solution, instance)
    faults = check(instance, solution).faults
    if faults:
        solution = _without_paths(solution, faults)
    write_views(options, instance, solution)
    files = {view: path for view in VIEWS if (path := getattr(options, view)) is not None}
    if options.json:
        print_json(
            {
                "instance": instance.name,
                "faults": list(faults),
                "files": {view: str(path) for view, path in files.items()},
            }
        )
        return 0
    for view, path in files.items():
        size = "" if path.is_dir() else f"  {_size(path)}"
        print_result(f"{view:<8} {path}{size}")
    return 0


def _check_outputs(options: Namespace) -> None:
    outputs = [getattr(options, view) for view in VIEWS]
    if all(path is None for path in outputs):
        raise OptionError("expected --plot, --html, --geojson or --gpx, got none of them")
    check_distinct(options, "instance", "solution", *VIEWS)
    check_views(options)


def _without_paths(solution: Solution, faults: Sequence[str]) -> Solution:
    """Warn of a faulty plan, and take its services only."""
    more = f" and {len(faults) - 1} more faults" if len(faults) > 1 else ""
    warnings.warn(
        f"the plan is not right ({faults[0]}{more}); see `arcfleet check`",
        FormatWarning,
        stacklevel=2,
    )
    # Its street paths may be what is wrong; without them they are worked out anew.
    return replace(
        solution, routes=tuple(replace(route, path=()) for route in solution.routes)
    )


def _size(path: Path) -> str:
    size = path.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
