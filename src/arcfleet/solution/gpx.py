"""Plans as GPX 1.1 tracks, which navigation devices and apps follow."""

from __future__ import annotations

import html
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet._files import check_writable, write_text_atomically
from arcfleet.errors import FileError, FormatWarning, OptionError
from arcfleet.instance.geodesy import line_length
from arcfleet.solution.drive import check_located, joined, route_legs, with_all_paths

if TYPE_CHECKING:
    from arcfleet.instance.instance import Coordinate, Instance
    from arcfleet.solution.solution import Solution

SUFFIX = ".gpx"

_NAMESPACE = "http://www.topografix.com/GPX/1/1"
#: What XML cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ONE_FILE = re.compile(r"route-\d+\.gpx")


def write_gpx(instance: Instance, solution: Solution, path: Path | str) -> None:
    """Write one GPX track per route, in driving order from the depot to the depot.

    Parameters
    ----------
    instance
        The streets; they need coordinates.
    solution
        The plan; street paths are worked out where it has none.
    path
        A file for all tracks, or an existing folder for a file per route: route-1.gpx,
        route-2.gpx and so on, with leading zeros where there are ten or more.

    Raises
    ------
    OptionError
        If the suffix is not .gpx or the instance has no coordinates.
    SolutionError
        If the plan cannot be driven along the streets of the instance.
    FileError
        If a file cannot be written.

    Warns
    -----
    FormatWarning
        If the folder holds tracks of an earlier plan that this one does not replace.
    """
    path = Path(path)
    check_gpx(path)
    check_located(instance)
    solution = with_all_paths(instance, solution)
    depot = instance.coordinates[instance.nodes.index(instance.depot)]
    tracks = [
        _track(solution, number, joined(legs, depot))
        for number, legs in enumerate(route_legs(instance, solution), start=1)
    ]
    if not path.is_dir():
        write_text_atomically(path, _document(instance, instance.name, depot, tracks))
        return
    digits = len(str(len(tracks)))
    written = set()
    for number, track in enumerate(tracks, start=1):
        name = f"route-{number:0{digits}}{SUFFIX}"
        title = f"{instance.name}, route {number}"
        write_text_atomically(path / name, _document(instance, title, depot, [track]))
        written.add(name)
    old = sorted(f.name for f in path.iterdir() if _ONE_FILE.fullmatch(f.name))
    left = [name for name in old if name not in written]
    if left:
        warnings.warn(
            f"{path}: {', '.join(left)} belong to an earlier plan; remove them before "
            "anybody drives them",
            FormatWarning,
            stacklevel=2,
        )


def check_gpx(path: Path) -> None:
    """Raise what `write_gpx` would raise about its file, before the work for it."""
    try:
        folder = path.is_dir()
    except (OSError, ValueError) as error:
        raise FileError(path, f"cannot be written ({error}); choose another") from error
    if folder:
        check_writable(path / f"route-1{SUFFIX}")
        return
    if path.suffix.lower() != SUFFIX:
        raise OptionError(
            f"expected a file ending in {SUFFIX}, or an existing folder for one file per "
            f"route, got {path.name!r}"
        )
    check_writable(path)


def _document(instance: Instance, title: str, depot: Coordinate, tracks: list[str]) -> str:
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<gpx version="1.1" creator="arcfleet" xmlns="{_NAMESPACE}">',
            f"<metadata><name>{_text(title)}</name>"
            f"<desc>{_text(instance.notice)}</desc></metadata>",
            f"<wpt {_place(depot)}><name>Depot</name></wpt>",
            *tracks,
            "</gpx>\n",
        ]
    )


def _track(solution: Solution, number: int, points: list[Coordinate]) -> str:
    route = solution.routes[number - 1]
    length = f"{line_length(points) / 1000:.2f} km"
    if route.travel is not None:
        drawn = "" if route.travel.metres is not None else f"{length}, "
        length = f"{drawn}{route.travel}"
    facts = f"load {route.load}, cost {route.cost}, {length}"
    return "\n".join(
        [
            f"<trk><name>Route {number}</name><desc>{facts}</desc>"
            f"<number>{number}</number><trkseg>",
            *(f"<trkpt {_place(point)}/>" for point in points),
            "</trkseg></trk>",
        ]
    )


def _place(point: Coordinate) -> str:
    longitude, latitude = point
    # Seven decimals are a centimetre. The schema wants plain decimals, longitude below 180.
    east = f"{longitude:.7f}"
    if east == "180.0000000":
        east = "-180.0000000"
    return f'lat="{latitude:.7f}" lon="{east}"'


def _text(text: str) -> str:
    return html.escape(_NOT_XML.sub("\ufffd", text), quote=False)
