"""Plans as KML 2.2, for Google Earth and the map apps that read it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet._files import check_output, write_text_atomically
from arcfleet.instance.geodesy import simplify_line
from arcfleet.solution.directions import directions
from arcfleet.solution.drive import (
    check_located,
    route_legs,
    start_points,
    stretches,
    with_all_paths,
)
from arcfleet.solution.gpx import xml_text
from arcfleet.solution.words import (
    depot_names,
    depot_nodes,
    facility_name,
    route_figures,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from arcfleet.instance.instance import Coordinate, Instance
    from arcfleet.solution.solution import Solution

SUFFIXES = (".kml",)
_MODES = {True: "work", False: "drive"}
_WIDTHS = {True: 5, False: 2}


def write_kml(
    instance: Instance,
    solution: Solution,
    path: Path | str,
    colours: Sequence[str] | None = None,
    *,
    simplify: float = 0.0,
) -> None:
    """Write a plan as KML: a folder per route, with its lines and its turns.

    Parameters
    ----------
    instance
        The streets; they need coordinates.
    solution
        The plan; street paths are worked out where it has none.
    path
        The file; it is replaced only when the new one is complete.
    colours
        One per route, as in `#0072b2`.
    simplify
        Metres by which a line may leave the streets, for fewer points; 0 keeps all.

    Raises
    ------
    OptionError
        If the suffix is unknown or the instance has no coordinates.
    SolutionError
        If the plan cannot be driven along the streets of the instance.
    FileError
        If the file cannot be written.
    """
    check_kml(Path(path))
    check_located(instance)
    solution = with_all_paths(instance, solution)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<kml xmlns="http://www.opengis.net/kml/2.2"><Document>',
        f"<name>{xml_text(instance.name)}</name>",
        f"<description>{xml_text(instance.notice)}</description>",
        *_styles(solution.num_routes, colours),
        *_places(instance),
    ]
    starts = start_points(instance, solution)
    legs = route_legs(instance, solution)
    cues = directions(instance, solution)
    for index, route in enumerate(solution.routes):
        facts = xml_text(route_figures(instance, route))
        number = solution.numbers[index]
        lines.append(
            f"<Folder><name>Route {number}</name><description>{facts}</description>"
        )
        for serves, points in stretches(route, legs[index], starts[index]):
            lines.append(
                f"<Placemark><name>Route {number}, {_MODES[serves]}</name>"
                f"<styleUrl>#route-{index}-{_MODES[serves]}</styleUrl><LineString>"
                f"<tessellate>1</tessellate><coordinates>"
                f"{' '.join(map(_place, simplify_line(points, simplify)))}"
                "</coordinates></LineString></Placemark>"
            )
        lines.append("<Folder><name>Turns</name><visibility>0</visibility>")
        lines += [
            f"<Placemark><name>{order}</name><visibility>0</visibility>"
            f"<description>{xml_text(str(cue))}</description>"
            f"<Point><coordinates>{_place(cue.place)}</coordinates></Point></Placemark>"
            for order, cue in enumerate(cues[index], start=1)
        ]
        lines.append("</Folder></Folder>")
    write_text_atomically(path, "\n".join([*lines, "</Document></kml>\n"]))


def check_kml(path: Path) -> None:
    """Raise what `write_kml` would raise about its file, before the work for it."""
    check_output(path, SUFFIXES, "a KML file")


def _styles(count: int, colours: Sequence[str] | None) -> Iterator[str]:
    for index in range(count):
        colour = "#0072b2" if colours is None else colours[index]
        red, green, blue = colour[1:3], colour[3:5], colour[5:7]
        for serves, mode in _MODES.items():
            yield (
                f'<Style id="route-{index}-{mode}"><LineStyle>'
                f"<color>ff{blue}{green}{red}</color><width>{_WIDTHS[serves]}</width>"
                "</LineStyle></Style>"
            )


def _places(instance: Instance) -> Iterator[str]:
    places = dict(zip(instance.nodes, instance.coordinates, strict=True))
    names = list(zip(depot_names(instance), depot_nodes(instance), strict=True))
    names += [
        (facility_name(instance, index), facility.node)
        for index, facility in enumerate(instance.facilities)
    ]
    for name, node in names:
        yield (
            f"<Placemark><name>{xml_text(name)}</name><Point><coordinates>"
            f"{_place(places[node])}</coordinates></Point></Placemark>"
        )


def _place(point: Coordinate) -> str:
    return f"{point[0]:.7f},{point[1]:.7f}"
