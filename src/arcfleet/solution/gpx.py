"""Plans as GPX 1.1 tracks, which navigation devices and apps follow.

A track has a segment for every stretch of work and of driving; a waypoint of the type
`turn` stands where a line of directions starts.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet._files import check_writable, write_text_atomically
from arcfleet.errors import FileError, OptionError
from arcfleet.instance.geodesy import line_length, simplify_line
from arcfleet.solution.directions import directions
from arcfleet.solution.drive import (
    check_located,
    joined,
    route_legs,
    start_points,
    stretches,
    with_all_paths,
)
from arcfleet.solution.route_files import (
    check_folder,
    make_folder,
    route_stems,
    warn_of_earlier,
)
from arcfleet.solution.words import (
    depot_names,
    depot_nodes,
    facility_name,
    route_figures,
    trip_loads,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from arcfleet.instance.instance import Coordinate, Instance
    from arcfleet.solution.directions import Instruction
    from arcfleet.solution.drive import Leg
    from arcfleet.solution.solution import Route, Solution

SUFFIX = ".gpx"

_NAMESPACE = "http://www.topografix.com/GPX/1/1"
#: Of the element that tells work from driving.
_OWN_NAMESPACE = "urn:arcfleet:track:1"
#: What XML cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_gpx(
    instance: Instance, solution: Solution, path: Path | str, *, simplify: float = 0.0
) -> None:
    """Write one GPX track per route, in driving order from depot to depot.

    Every stretch of work and of driving is a segment of the track. Depots, visits of
    facilities and the starts of the lines of directions are waypoints.

    Parameters
    ----------
    instance
        The streets; they need coordinates.
    solution
        The plan; street paths are worked out where it has none.
    path
        A file for all tracks, or a folder for a file per route: route-01.gpx,
        route-02.gpx and so on by the routes' numbers. A name without suffix is a folder,
        made if it does not exist.
    simplify
        Metres by which a track may leave the streets, for fewer points; 0 keeps all.

    Raises
    ------
    OptionError
        If the suffix of a file is not .gpx or the instance has no coordinates.
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
    starts = start_points(instance, solution)
    legs = route_legs(instance, solution)
    cues = directions(instance, solution)
    tracks, turns = [], []
    for index, (number, route) in enumerate(
        zip(solution.numbers, solution.routes, strict=True)
    ):
        track = _track(instance, route, number, legs[index], starts[index], simplify)
        tracks.append(track)
        turns.append(_visits(instance, number, route) + _turns(number, cues[index]))
    if not _is_folder(path):
        points = _depots(instance, depot_nodes(instance))
        points += [point for points in turns for point in points]
        document = _document(instance, instance.name, points, tracks)
        write_text_atomically(path, document)
        return
    make_folder(path)
    names = [f"{stem}{SUFFIX}" for stem in route_stems(solution)]
    for index, name in enumerate(names):
        title = f"{instance.name}, route {solution.numbers[index]}"
        vehicle = instance.fleet[solution.routes[index].vehicle]
        points = _depots(instance, [vehicle.start, vehicle.end]) + turns[index]
        document = _document(instance, title, points, [tracks[index]])
        write_text_atomically(path / name, document)
    warn_of_earlier(path, names, SUFFIX)


def check_gpx(path: Path) -> None:
    """Raise what `write_gpx` would raise about its file, before the work for it."""
    if _is_folder(path):
        check_folder(path, "tracks")
        return
    if path.suffix.lower() != SUFFIX:
        raise OptionError(
            f"expected a file ending in {SUFFIX}, or a folder for one file per route, got "
            f"{path.name!r}"
        )
    check_writable(path)


def _is_folder(path: Path) -> bool:
    """Return whether each route gets a file of its own, in this folder."""
    try:
        return path.is_dir() or not path.suffix
    except (OSError, ValueError) as error:
        raise FileError(path, f"cannot be written ({error}); choose another") from error


def _document(instance: Instance, title: str, points: list[str], tracks: list[str]) -> str:
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<gpx version="1.1" creator="arcfleet" xmlns="{_NAMESPACE}">',
            f"<metadata><name>{xml_text(title)}</name>"
            f"<desc>{xml_text(instance.notice)}</desc></metadata>",
            *points,
            *tracks,
            "</gpx>\n",
        ]
    )


def _depots(instance: Instance, nodes: Iterable[int | None]) -> list[str]:
    """Return waypoints for the depots at some nodes."""
    places = dict(zip(instance.nodes, instance.coordinates, strict=True))
    names = zip(depot_names(instance), depot_nodes(instance), strict=True)
    wanted = set(nodes)
    return [
        f"<wpt {_place(places[node])}><name>{name}</name></wpt>"
        for name, node in names
        if node in wanted
    ]


def _visits(instance: Instance, number: int, route: Route) -> list[str]:
    """Return a waypoint for each visit of a facility, in driving order."""
    places = dict(zip(instance.nodes, instance.coordinates, strict=True))
    loads = trip_loads(instance, route)
    points = []
    for order, visit in enumerate(route.visits, start=1):
        facility = instance.facilities[visit.facility]
        name = xml_text(facility_name(instance, visit.facility))
        facts = (
            f"after {visit.services} services, load {loads[order - 1]}, "
            f"cost {facility.cost}"
        )
        points.append(
            f"<wpt {_place(places[facility.node])}>"
            f"<name>Route {number}, visit {order}: {name}</name><desc>{facts}</desc></wpt>"
        )
    return points


def _turns(number: int, cues: list[Instruction]) -> list[str]:
    """Return a waypoint where each line of directions starts; visits have their own."""
    return [
        f"<wpt {_place(cue.place)}><name>{xml_text(cue.manoeuvre)}</name>"
        f"<desc>{xml_text(f'Route {number}, line {order}: {cue}')}</desc>"
        "<type>turn</type></wpt>"
        for order, cue in enumerate(cues, start=1)
        if cue.action in ("serve", "drive")
    ]


def _track(
    instance: Instance,
    route: Route,
    number: int,
    legs: list[Leg],
    start: Coordinate,
    simplify: float,
) -> str:
    length = f"{line_length(joined(legs, start)) / 1000:.2f} km"
    if route.travel is not None:
        drawn = "" if route.travel.metres is not None else f"{length}, "
        length = f"{drawn}{route.travel}"
    facts = xml_text(route_figures(instance, route, length))
    lines = [
        f"<trk><name>Route {number}</name><desc>{facts}</desc><number>{number}</number>"
    ]
    for serves, points in stretches(route, legs, start):
        lines.append("<trkseg>")
        lines += [f"<trkpt {_place(x)}/>" for x in simplify_line(points, simplify)]
        mode = "serve" if serves else "deadhead"
        lines.append(
            f'<extensions><mode xmlns="{_OWN_NAMESPACE}">{mode}</mode></extensions>'
            "</trkseg>"
        )
    return "\n".join([*lines, "</trk>"])


def _place(point: Coordinate) -> str:
    longitude, latitude = point
    # Seven decimals are a centimetre. The schema wants plain decimals, longitude below 180.
    east = f"{longitude:.7f}"
    if east == "180.0000000":
        east = "-180.0000000"
    return f'lat="{latitude:.7f}" lon="{east}"'


def xml_text(text: str) -> str:
    """Return text as XML holds it."""
    return html.escape(_NOT_XML.sub("\ufffd", text), quote=False)
