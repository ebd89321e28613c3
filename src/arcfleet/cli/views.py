"""The options --plot, --html, --geojson and --gpx, which several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.errors import OptionError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable

    from arcfleet.instance import Instance
    from arcfleet.solution import Solution

VIEWS = ("plot", "html", "geojson", "gpx")


def add_views(parser: ArgumentParser) -> None:
    """Give a command the options."""
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw it (.png, .svg, .pdf)"
    )
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="as a map for the browser, in one file"
    )
    parser.add_argument(
        "--geojson", type=Path, metavar="FILE", help="as lines for map software"
    )
    parser.add_argument(
        "--gpx",
        type=Path,
        metavar="FILE",
        help="as tracks for navigation; a folder gets one file per route",
    )


def check_distinct(options: Namespace, *names: str) -> None:
    """Raise OptionError where two files of a command are the same."""
    seen: dict[Path, str] = {}
    for name in names:
        path = getattr(options, name)
        if path is None:
            continue
        label = f"--{name}" if name in VIEWS or name == "out" else f"the {name}"
        other = seen.setdefault(path.resolve(), label)
        if other != label:
            raise OptionError(
                f"expected different files for {other} and {label}, got {str(path)!r} twice"
            )


def check_views(options: Namespace) -> None:
    """Raise what would prevent writing the files, before the work that leads to them."""
    from arcfleet.report.html_map import check_html
    from arcfleet.solution.geojson import check_geojson
    from arcfleet.solution.gpx import check_gpx

    checks: dict[str, Callable[[Path], None]] = {
        "html": check_html,
        "geojson": check_geojson,
        "gpx": check_gpx,
    }
    if options.plot is not None:
        from arcfleet.report.picture import check_plottable

        checks["plot"] = check_plottable
    for view, check in checks.items():
        path = getattr(options, view)
        if path is not None:
            check(path)


def check_instance(options: Namespace, instance: Instance) -> None:
    """Raise what in the instance would prevent the views, before the work for them."""
    if options.plot is not None or options.html is not None:
        from arcfleet.report.layout import check_drawable

        check_drawable(instance)
    if options.geojson is not None or options.gpx is not None:
        from arcfleet.solution.drive import check_located

        check_located(instance)


def write_views(options: Namespace, instance: Instance, solution: Solution) -> None:
    """Write the files that were asked for."""
    if all(getattr(options, view) is None for view in VIEWS):
        return
    from arcfleet.report.colours import route_colours
    from arcfleet.solution.drive import with_all_paths

    solution = with_all_paths(instance, solution)
    if options.plot is not None:
        from arcfleet.report.plot import plot

        plot(instance, solution, options.plot)
    if options.html is not None:
        from arcfleet.report.html_map import write_html

        write_html(instance, solution, options.html)
    if options.geojson is not None:
        from arcfleet.solution.geojson import write_geojson

        colours = route_colours(solution.num_routes)
        write_geojson(instance, solution, options.geojson, colours)
    if options.gpx is not None:
        from arcfleet.solution.gpx import write_gpx

        write_gpx(instance, solution, options.gpx)
