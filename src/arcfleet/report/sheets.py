"""Driver's sheets: one document per route, with a map and directions on every page.

Here is what stands on a sheet; `sheet_html` and `sheet_pdf` set it on paper.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet._files import write_bytes_atomically, write_text_atomically
from arcfleet.errors import FormatWarning
from arcfleet.report.colours import route_colours
from arcfleet.solution.directions import directions
from arcfleet.solution.drive import check_located, route_legs, with_all_paths
from arcfleet.solution.gpx import SUFFIX
from arcfleet.solution.route_files import (
    check_folder,
    make_folder,
    route_stems,
    warn_of_earlier,
)
from arcfleet.solution.travel import length_text
from arcfleet.solution.words import depot_nodes, facility_name, route_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.instance.instance import Coordinate, Instance
    from arcfleet.solution.bound import Bound
    from arcfleet.solution.directions import Instruction
    from arcfleet.solution.drive import Leg
    from arcfleet.solution.solution import Solution

#: Lines of directions on a page, which leaves a third of it to the map.
LINES_PER_PAGE = 24
#: Width and height of the map in millimetres.
MAP_SIZE = (186.0, 84.0)
_MAP_BORDER = 6.0
_LABEL_DISTANCE = 4.8
#: Points so close to the one before are left out; the thinnest line is 0.7 wide.
_PEN = 0.2

#: A point of the map, in millimetres from its top left corner.
Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetMap:
    """The map of one page, in millimetres: the streets around, and what is driven.

    Parameters
    ----------
    streets
        Lines of the streets of the instance.
    route
        Lines of the route on other pages.
    drive, work
        Lines of this page without and with service.
    arrows
        Place and bearing in degrees of arrows along this page's lines.
    labels
        Place and number of some lines of directions, where they start.
    depots, facilities
        Their places.
    """

    streets: list[list[Point]]
    route: list[list[Point]]
    drive: list[list[Point]]
    work: list[list[Point]]
    arrows: list[tuple[Point, float]]
    labels: list[tuple[Point, str]]
    depots: list[Point]
    facilities: list[tuple[Point, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetPage:
    """One page: its map and its lines of directions, numbered."""

    map: SheetMap
    lines: list[tuple[int, Instruction]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The sheet of one route.

    Parameters
    ----------
    title
        Route and instance.
    facts
        Vehicle, load, length and time of the route, in words, and the gap of the plan.
    track
        Name of the route's GPX file; the QR code holds it.
    notice
        Comment and attribution of the instance.
    colour, pale
        Colour of the route, and of its part on other pages.
    timed
        Whether times are known.
    pages
        The pages.
    """

    title: str
    facts: list[str]
    track: str
    notice: str
    colour: str
    pale: str
    timed: bool
    pages: list[SheetPage]


def write_sheets(
    instance: Instance,
    solution: Solution,
    folder: Path | str,
    *,
    bound: Bound | None = None,
) -> None:
    """Write a driver's sheet per route: route-01.html and route-01.pdf, and so on.

    Parameters
    ----------
    instance
        The streets; they need coordinates.
    solution
        The plan; street paths are worked out where it has none.
    folder
        Folder of the files; made if it does not exist.
    bound
        Lower bound, which tells how far the plan can be from the best possible one.

    Raises
    ------
    OptionError
        If the instance has no coordinates.
    SolutionError
        If the plan cannot be driven along the streets of the instance.
    FileError
        If a file cannot be written.

    Warns
    -----
    FormatWarning
        If the folder holds sheets of an earlier plan that this one does not replace, or
        the packages for PDF files and QR codes are missing.
    """
    from arcfleet.report.sheet_html import sheet_html

    folder = Path(folder)
    check_sheets(folder)
    sheets = make_sheets(instance, solution, bound)
    make_folder(folder)
    written = set()
    for sheet in sheets:
        stem = Path(sheet.track).stem
        write_text_atomically(folder / f"{stem}.html", sheet_html(sheet))
        written.add(f"{stem}.html")
        if has_pdf():
            from arcfleet.report.sheet_pdf import sheet_pdf

            write_bytes_atomically(folder / f"{stem}.pdf", sheet_pdf(sheet))
            written.add(f"{stem}.pdf")
    if not has_pdf():
        warnings.warn(
            "sheets were written as HTML without QR codes, not as PDF; for both run: "
            "pip install 'arcfleet[sheets]'",
            FormatWarning,
            stacklevel=2,
        )
    warn_of_earlier(folder, written, ".html", ".pdf")


def check_sheets(folder: Path) -> None:
    """Raise what `write_sheets` would raise about its folder, before the work for it."""
    check_folder(folder, "sheets")


def has_pdf() -> bool:
    """Return whether the packages of the extra `sheets` are installed."""
    return all(find_spec(name) is not None for name in ("reportlab", "segno"))


def make_sheets(
    instance: Instance, solution: Solution, bound: Bound | None = None
) -> list[Sheet]:
    """Return what stands on the sheet of each route."""
    check_located(instance)
    solution = with_all_paths(instance, solution)
    stems = route_stems(solution)
    lines = directions(instance, solution)
    legs = route_legs(instance, solution)
    drawn = _StreetLines(instance)
    gap = [] if bound is None else [f"plan {bound.gap_text(solution.cost)}"]
    return [
        Sheet(
            title=f"Route {number} · {instance.name}",
            facts=[*_facts(instance, solution, index, lines[index]), *gap],
            track=f"{stems[index]}{SUFFIX}",
            notice=instance.notice,
            colour=colour,
            pale=_pale(colour),
            timed=lines[index][-1].total_seconds is not None,
            pages=_pages(instance, drawn, lines[index], legs[index]),
        )
        for index, (number, colour) in enumerate(
            zip(solution.numbers, route_colours(solution.num_routes), strict=True)
        )
    ]


def clock(seconds: int | None) -> str:
    """Return a time since the start of the route, as in `1:05`; empty if unknown."""
    if seconds is None:
        return ""
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours}:{minutes:02}"


def icon_angle(line: Instruction) -> float | None:
    """Return the angle of the arrow beside a line, clockwise from up; None for no arrow."""
    angles = {"straight on": 0, "left": -90, "right": 90, "turn round": 180}
    angles |= {"sharp left": -140, "sharp right": 140}
    return angles.get(line.turn)


def _facts(
    instance: Instance, solution: Solution, index: int, lines: list[Instruction]
) -> list[str]:
    route = solution.routes[index]
    vehicle, load, visits = route_words(instance, route)
    capacity = instance.fleet[route.vehicle].capacity
    streets = "street" if len(route.services) == 1 else "streets"
    end = lines[-1]
    working = sum(line.metres for line in lines if line.action == "serve")
    parts = [
        vehicle,
        f"{len(route.services)} {streets} to serve",
        f"{load}, capacity {capacity}" if route.visits else f"{load} of {capacity}",
        f"{length_text(end.total_metres)}, {length_text(working)} of it working",
        "" if end.total_seconds is None else f"{clock(end.total_seconds)} h",
        visits,
    ]
    return [part for part in parts if part]


def _pages(
    instance: Instance, drawn: _StreetLines, lines: list[Instruction], legs: list[Leg]
) -> list[SheetPage]:
    numbered = list(enumerate(lines, start=1))
    count = max(1, math.ceil(len(lines) / LINES_PER_PAGE))
    # Pages of equal length, up to a line: none has a single line.
    cuts = [len(lines) * page // count for page in range(count + 1)]
    parts = [numbered[first:last] for first, last in pairwise(cuts)]
    return [
        SheetPage(map=_page_map(instance, drawn, part, legs), lines=part) for part in parts
    ]


class _StreetLines:
    """The lines of all streets, and boxes around them, for cutting maps out of them."""

    def __init__(self, instance: Instance) -> None:
        places = dict(zip(instance.nodes, instance.coordinates, strict=True))
        self.lines = [
            link.geometry or (places[link.tail], places[link.head])
            for link in instance.links
        ]
        self.boxes = [_box(line) for line in self.lines]
        self.places = places

    def within(self, box: tuple[float, ...]) -> list[Sequence[Coordinate]]:
        west, south, east, north = box
        return [
            line
            for line, (w, s, e, n) in zip(self.lines, self.boxes, strict=True)
            if w <= east and e >= west and s <= north and n >= south
        ]


def _box(points: Sequence[Coordinate]) -> tuple[float, float, float, float]:
    longitudes, latitudes = zip(*points, strict=True)
    return min(longitudes), min(latitudes), max(longitudes), max(latitudes)


def _page_map(
    instance: Instance,
    drawn: _StreetLines,
    lines: list[tuple[int, Instruction]],
    legs: list[Leg],
) -> SheetMap:
    first, last = lines[0][1].first, lines[-1][1].last
    here = legs[first:last]
    points = [point for leg in here for point in leg.points]
    points += [line.place for _, line in lines]
    west, south, east, north = _box(points)
    width, height = MAP_SIZE
    shrink = math.cos(math.radians((south + north) / 2))
    # A map of at least 100 m, so that a short route is not a blot.
    span_x = max((east - west) * shrink, 0.001)
    span_y = max(north - south, 0.001)
    inner_x, inner_y = width - 2 * _MAP_BORDER, height - 2 * _MAP_BORDER
    scale = min(inner_x / span_x, inner_y / span_y)
    middle_x, middle_y = (west + east) / 2, (south + north) / 2

    def at(point: Coordinate) -> Point:
        x = width / 2 + (point[0] - middle_x) * shrink * scale
        y = height / 2 - (point[1] - middle_y) * scale
        return round(x, 2), round(y, 2)

    half_x, half_y = width / 2 / scale / shrink, height / 2 / scale
    frame = (
        *(middle_x - half_x, middle_y - half_y),
        *(middle_x + half_x, middle_y + half_y),
    )

    def placed(chosen: Sequence[Leg]) -> list[list[Point]]:
        return [_thinned([at(point) for point in leg.points]) for leg in chosen]

    def visible(node: int) -> bool:
        x, y = drawn.places[node]
        return frame[0] <= x <= frame[2] and frame[1] <= y <= frame[3]

    working = [leg for leg in here if leg.step.serves]
    depots = [at(drawn.places[node]) for node in depot_nodes(instance) if visible(node)]
    return SheetMap(
        streets=[_thinned([at(point) for point in line]) for line in drawn.within(frame)],
        route=[line for line in placed([*legs[:first], *legs[last:]]) if _is_on_map(line)],
        drive=placed([leg for leg in here if not leg.step.serves]),
        work=placed(working),
        arrows=[arrow for line in placed(here) for arrow in _arrow(line)],
        labels=_labels([(at(x.place), str(number)) for number, x in lines], depots),
        depots=depots,
        facilities=[
            (at(drawn.places[facility.node]), facility_name(instance, index))
            for index, facility in enumerate(instance.facilities)
            if visible(facility.node)
        ],
    )


def _thinned(line: list[Point]) -> list[Point]:
    """Return a line without points that a pen would not show: maps are most of a sheet."""
    kept = line[:1]
    for x, y in line[1:-1]:
        if abs(x - kept[-1][0]) > _PEN or abs(y - kept[-1][1]) > _PEN:
            kept.append((x, y))
    return [*kept, *line[1:][-1:]]


def _is_on_map(line: list[Point]) -> bool:
    """Return whether the box of a line touches the map."""
    west, north, east, south = _box(line)
    return east >= 0 and south >= 0 and west <= MAP_SIZE[0] and north <= MAP_SIZE[1]


def _labels(wanted: list[tuple[Point, str]], taken: list[Point]) -> list[tuple[Point, str]]:
    """Return the labels that overlap neither an earlier one nor what is taken."""
    found: list[tuple[Point, str]] = []
    for place, text in wanted:
        others = [*taken, *(other for other, _ in found)]
        if all(math.dist(place, other) >= _LABEL_DISTANCE for other in others):
            found.append((place, text))
    return found


def _pale(colour: str) -> str:
    """Return a colour half-way to white."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{(part + 255) // 2:02x}" for part in parts)


def _arrow(line: list[Point]) -> list[tuple[Point, float]]:
    """Return an arrow at the middle of a line that is long enough for one."""
    pieces = list(pairwise(line))
    lengths = [math.dist(start, end) for start, end in pieces]
    left = sum(lengths) / 2
    if left < 2.5:
        return []
    for ((x, y), (next_x, next_y)), length in zip(pieces, lengths, strict=True):
        if left <= length:
            share = left / length
            place = x + share * (next_x - x), y + share * (next_y - y)
            bearing = math.degrees(math.atan2(next_x - x, y - next_y))
            return [((round(place[0], 2), round(place[1], 2)), round(bearing, 1))]
        left -= length
    return []
