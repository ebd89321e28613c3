"""Results on stdout, and the files of a plan: checked before the search, written after."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcfleet.cli.options import number_up_to, option
from arcfleet.errors import ArcfleetError, FileError, OptionError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterator

    from arcfleet.instance import Instance
    from arcfleet.solution import Solution
    from arcfleet.solution.bound import Bound

#: Options for files that show a plan.
EXPORTS = ("plot", "html", "sheets", "geojson", "gpx", "kml", "stops")

#: Those that need coordinates.
_LOCATED = ("sheets", "geojson", "gpx", "kml")


def print_result(text: str) -> None:
    """Print to stdout at once.

    A reader that has gone (`| head`) or a stdout that was closed is no error of ours. A
    full disk is: it raises FileError.
    """
    if sys.stdout is None:  # closed by the caller, as with `>&-`
        return
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _discard_stdout()
    except OSError as error:
        _discard_stdout()
        raise FileError(
            "standard output", f"cannot be written ({error.strerror}); free some space"
        ) from error


def print_json(facts: object) -> None:
    """Print one JSON object on one line."""
    print_result(json.dumps(facts, ensure_ascii=False))


def print_either(options: Namespace, facts: object, text: str) -> None:
    """Print facts as one JSON object where --json was given, else the text."""
    if options.json:
        print_json(facts)
    else:
        print_result(text)


def print_facts(facts: dict[str, object]) -> None:
    """Print a line for each fact."""
    from arcfleet._checks import one_line

    width = max(len(name) for name in facts) + 2
    lines = [
        f"{one_line(name.replace('_', ' ')):{width}}{one_line(_brief(value))}"
        for name, value in facts.items()
    ]
    print_result("\n".join(lines))


def _brief(value: object) -> str:
    """Return a fact in one line; --json has what holds many."""
    if isinstance(value, dict | list):
        return f"{len(value)} {'entry' if len(value) == 1 else 'entries'}, see --json"
    return "none" if value is None else str(value)


def count_of(number: int, what: str) -> str:
    """Return a number of things in words, as in `1 street` or `2 streets`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def note(text: str) -> None:
    """Print a line about the run to stderr."""
    print(f"arcfleet: {text}", file=sys.stderr)


def _discard_stdout() -> None:
    # Python would complain when it flushes stdout at exit, unless that leads nowhere.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# --- Pictures ---------------------------------------------------------------------------


def add_plot(parser: Any) -> None:
    """Add --plot."""
    option(parser, "--plot", "draw a picture (.png, .svg, .pdf)", Path, "FILE")


def check_plot(path: Path | None) -> None:
    """Raise what would prevent a picture, before the work that leads to it."""
    if path is not None:
        from arcfleet.report.picture import check_plottable

        check_plottable(path)


def add_html(parser: Any, text: str) -> None:
    """Add --html with its base map."""
    option(parser, "--html", text, Path, "FILE")
    text = "map below it: a URL with {z}, {x} and {y} of raster tiles, or a .pmtiles file"
    option(parser, "--base-map", text, str, "URL|FILE")
    text = "attribution of the base map (default: the one in the file, else its source)"
    option(parser, "--base-map-credit", text, str, "TEXT", default="")


def base_map_options(options: Namespace) -> dict[str, Any]:
    """Return the base map for `write_html`."""
    return {"base_map": options.base_map, "base_map_credit": options.base_map_credit}


def _check_html(options: Namespace) -> None:
    from arcfleet.report.base_map import check_base_map
    from arcfleet.report.html_map import check_html

    if options.html is not None:
        check_html(options.html)
    elif options.base_map is not None or options.base_map_credit:
        raise OptionError("expected --html with a base map, got none")
    if options.base_map is not None:
        check_base_map(options.base_map)


# --- The files of a plan ----------------------------------------------------------------


def add_plan_files(parser: ArgumentParser, *, out: bool = True) -> None:
    """Add the options for files that show a plan and, unless `out` is False, --out."""
    files = parser.add_argument_group("files")
    if out:
        text = "write the plan (.json with streets, else text)"
        option(files, "--out", text, Path, "FILE")
    add_plot(files)
    add_html(files, "write an interactive map (one HTML file)")
    text = "write a driver's sheet per route, with a map and directions (HTML, PDF)"
    option(files, "--sheets", text, Path, "DIR")
    option(files, "--geojson", "write lines for map software", Path, "FILE")
    text = "write tracks for navigation; into a folder, one file per route"
    option(files, "--gpx", text, Path, "FILE")
    option(files, "--kml", "write lines for Google Earth and map apps", Path, "FILE")
    text = "write a table of the streets in driving order (.csv, .xlsx)"
    option(files, "--stops", text, Path, "FILE")
    text = "let the lines of --gpx and --kml leave the streets by M metres: fewer points"
    metres = number_up_to(1000, "metres")
    option(files, "--simplify", text, metres, "M", default=0.0)


def check_plan_files(options: Namespace, *inputs: str) -> None:
    """Raise what would prevent writing the files; none may be an input or another."""
    from arcfleet._files import check_writable
    from arcfleet.report.sheets import check_sheets
    from arcfleet.solution.geojson import check_geojson
    from arcfleet.solution.gpx import check_gpx
    from arcfleet.solution.kml import check_kml
    from arcfleet.solution.stops import check_stops

    checks = {
        "out": check_writable,
        "out_instance": _check_out_instance,
        "geojson": check_geojson,
        "gpx": check_gpx,
        "kml": check_kml,
        "sheets": check_sheets,
        "stops": check_stops,
        "plot": check_plot,
    }
    seen: dict[Path, str] = {}
    for name in (*inputs, "out", "out_instance", *EXPORTS):
        path: Path | None = getattr(options, name, None)
        if path is None:
            continue
        label = (
            f"the {name.replace('_', ' ')}"
            if name in inputs
            else f"--{name.replace('_', '-')}"
        )
        other = seen.setdefault(path.resolve(), label)
        # Inputs may be the same, as an earlier instance and today's; sheets and tracks may
        # share a folder.
        shared = {other, label} == {"--sheets", "--gpx"}
        if other != label and name not in inputs and not shared:
            raise OptionError(
                f"expected different files for {other} and {label}, got {str(path)!r} twice"
            )
    if getattr(options, "simplify", 0.0) and options.gpx is None and options.kml is None:
        raise OptionError("expected --gpx or --kml with --simplify, got neither")
    for name, check in checks.items():
        path = getattr(options, name, None)
        # The folder of the sheets is made with them, and checked with them.
        if path is not None and not (name == "gpx" and path == options.sheets):
            check(path)
    _check_html(options)


def _check_out_instance(path: Path) -> None:
    from arcfleet._files import check_writable
    from arcfleet.instance.files import format_of

    format_of(path)
    check_writable(path)


def check_holdable_instance(options: Namespace, instance: Instance) -> None:
    """Raise what --out and --out-instance cannot hold, before the search."""
    from arcfleet.instance.files import check_holds
    from arcfleet.solution.files import check_holds_plans

    if options.out is not None:
        check_holds_plans(instance, options.out)
    if getattr(options, "out_instance", None) is not None:
        check_holds(instance, options.out_instance)


def check_drawable_instance(options: Namespace, instance: Instance) -> None:
    """Raise what in the instance would prevent the files, before the search."""
    if options.plot is not None or options.html is not None:
        from arcfleet.report.layout import check_drawable

        check_drawable(instance)
    if any(getattr(options, name, None) is not None for name in _LOCATED):
        from arcfleet.solution.drive import check_located

        check_located(instance)


def write_plan_files(
    options: Namespace,
    instance: Instance,
    solution: Solution,
    *,
    seconds: float | None = None,
    bound: Bound | None = None,
) -> dict[str, Path]:
    """Write the files that were asked for; return those that show the plan.

    The plan comes first, then its instance. Each is tried, whatever became of the others;
    the last failure is raised when the others have been told.
    """
    from arcfleet.instance.files import write
    from arcfleet.solution.files import write_solution

    exports = {name: getattr(options, name) for name in EXPORTS}
    exports = {name: path for name, path in exports.items() if path is not None}
    tries = _Tries()
    if getattr(options, "out", None) is not None:
        with tries.one(options.out):
            write_solution(instance, solution, options.out, seconds=seconds or 0.0)
    if getattr(options, "out_instance", None) is not None:
        with tries.one(options.out_instance):
            write(instance, options.out_instance)
    with tries.one(next(iter(exports.values()), Path())):
        _write_exports(options, instance, solution, exports, tries, bound)
    tries.end()
    return exports


class _Tries:
    """Files that are written one after the other, even where some of them fail."""

    def __init__(self) -> None:
        self.failures: list[ArcfleetError] = []

    @contextmanager
    def one(self, path: Path) -> Iterator[None]:
        """Keep what goes wrong with a file for the end."""
        try:
            yield
        except ArcfleetError as error:
            self.failures.append(error)
        except MemoryError:
            self.failures.append(FileError(path, "cannot be written for want of memory"))
        except Exception as error:
            # A mistake of ours or of a library beneath; the other files are worth having.
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            self.failures.append(FileError(path, f"cannot be written ({reason:.200})"))

    def end(self) -> None:
        """Print all failures but the last, which is raised."""
        for failure in self.failures[:-1]:
            note(f"{failure}")
        if self.failures:
            raise self.failures[-1]


def _write_exports(
    options: Namespace,
    instance: Instance,
    solution: Solution,
    exports: dict[str, Path],
    tries: _Tries,
    bound: Bound | None,
) -> None:
    if not exports:
        return
    from arcfleet.report.colours import route_colours
    from arcfleet.report.html_map import write_html
    from arcfleet.report.plot import plot
    from arcfleet.report.sheets import write_sheets
    from arcfleet.solution.drive import with_all_paths
    from arcfleet.solution.geojson import write_geojson
    from arcfleet.solution.gpx import write_gpx
    from arcfleet.solution.kml import write_kml
    from arcfleet.solution.stops import write_stops

    colours = route_colours(solution.num_routes)
    writers: dict[str, Callable[..., object]] = {
        "plot": plot,
        "html": partial(write_html, **base_map_options(options), bound=bound),
        "geojson": partial(write_geojson, colours=colours),
        "gpx": partial(write_gpx, simplify=options.simplify),
        "kml": partial(write_kml, colours=colours, simplify=options.simplify),
        "sheets": partial(write_sheets, bound=bound),
        "stops": write_stops,
    }
    solution = with_all_paths(instance, solution)
    for name, path in exports.items():
        with tries.one(path):
            writers[name](instance, solution, path)
