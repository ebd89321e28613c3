"""Instances, plans and results as HTML for notebooks: a table and a picture.

The picture is inline SVG: it needs neither matplotlib nor any network.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

import numpy as np

from arcfleet._display import notebook_html
from arcfleet.errors import ArcfleetError
from arcfleet.instance.instance import Instance
from arcfleet.report.colours import DEPOT, FACILITY, route_colours
from arcfleet.report.layout import layout, link_shapes, shifted
from arcfleet.search.result import Result
from arcfleet.solution.solution import Solution
from arcfleet.solution.words import (
    depot_names,
    depot_nodes,
    facility_name,
    route_figures,
    route_words,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from arcfleet.report.layout import Places
    from arcfleet.solution.travel import Travel

#: Width of the picture on the screen; the lines are on a finer grid.
_PIXELS = 560
_GRID = 2000
_ASIDE = 12
#: Beyond these, a picture would take too long or fill the notebook's file.
_MOST_LINKS = 5_000
_MOST_PLACELESS_NODES = 400
_MOST_ROUTES = 40
_STREET = "#cfd3d6"
_REQUIRED = "#4a5560"
#: Where the values begin in the lines of `str(instance)` and `result.summary()`.
_NAME = 12
_ROUTE = re.compile(r"route \d| {12}")
_CELL = "text-align:left;padding:1px 12px 1px 0"


@notebook_html.register(Instance)
def instance_html(instance: Instance) -> str:
    """Return an instance as HTML: its properties, and a picture of its streets."""
    return _page(instance, str(instance).splitlines(), None)


@notebook_html.register(Result)
def result_html(result: Result) -> str:
    """Return a result as HTML: its summary, its routes, and a picture of the plan."""
    # The table of routes says what the lines of routes do.
    lines = [line for line in result.summary().splitlines() if not _ROUTE.match(line)]
    return _page(result.instance, lines, result.solution)


def _page(instance: Instance, lines: Sequence[str], solution: Solution | None) -> str:
    rows = ((line[:_NAME].strip(), line[_NAME:]) for line in lines)
    facts = "".join(_row("td", *map(html.escape, row)) for row in rows)
    routes = "" if solution is None else solution_html(solution, instance)
    notice = html.escape(instance.attribution)
    try:
        picture = _picture(instance, solution)
    except Exception as error:  # the table is still worth showing
        picture = f"<small>no picture: {html.escape(f'{error!r:.200}')}</small>"
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start">'
        f"<div><table>{facts}</table>{routes}</div>"
        f"<div>{picture}<div><small>{notice}</small></div></div></div>"
    )


@notebook_html.register(Solution)
def solution_html(solution: Solution, instance: Instance | None = None) -> str:
    """Return a plan as HTML: a row per route, in the colours of the picture."""
    colours = route_colours(solution.num_routes)
    measures = () if solution.travel is None else tuple(solution.travel.texts())
    vehicles = instance is not None and bool(instance.vehicles)
    visited = any(route.visits for route in solution.routes)
    rows = []
    for number, route, colour in zip(
        solution.numbers, solution.routes, colours, strict=True
    ):
        mark = f'<span style="color:{colour}">&#9632; {number}</span>'
        vehicle, load, visits = "", str(route.load), str(len(route.visits))
        if instance is not None and (vehicles or visited):
            vehicle, load, visits = map(html.escape, route_words(instance, route))
            load = load.removeprefix("load ")
        cells = (mark, *([vehicle] if vehicles else []), len(route.services), load)
        cells = (*cells, route.cost, *([visits] if visited else []))
        rows.append(_row("td", *cells, *_travel_cells(route.travel, measures)))
    more = len(rows) - _MOST_ROUTES
    columns = (
        *("route", *(["vehicle"] if vehicles else []), "services", "load", "cost"),
        *(["visits"] if visited else []),
        *measures,
    )
    if more > 0:
        rest = f"and {more} more"
        rows[_MOST_ROUTES:] = [f'<tr><td colspan="{len(columns)}">{rest}</td></tr>']
    head = _row("th", *columns)
    return f"<table>{head}{''.join(rows)}</table>"


def _travel_cells(travel: Travel | None, measures: Iterable[str]) -> list[str]:
    """Return length and time of a route, with their parts without serving."""
    known = {} if travel is None else travel.texts()
    cells = []
    for measure in measures:
        whole, part = known.get(measure, ("-", None))
        cells.append(whole if part is None else f"{whole} ({part} deadhead)")
    return cells


def _row(tag: str, *cells: object) -> str:
    """Return a row of a table; the cells are HTML already."""
    inner = "".join(f'<{tag} style="{_CELL}">{cell}</{tag}>' for cell in cells)
    return f"<tr>{inner}</tr>"


def _picture(instance: Instance, solution: Solution | None) -> str:
    """Return the streets and the plan as SVG; empty where that would be too much."""
    placeless = not instance.coordinates and len(instance.nodes) > _MOST_PLACELESS_NODES
    if placeless or not instance.links or len(instance.links) > _MOST_LINKS:
        return ""
    try:
        places = layout(instance)
    except ArcfleetError:
        return ""  # too long distances, for example: the table is still worth showing
    shapes = link_shapes(instance, places)
    points = np.vstack([places, *shapes])
    low, high = points.min(axis=0), points.max(axis=0)
    scale = _GRID / (float((high - low).max()) or 1.0)

    def on_grid(shape: Places) -> Places:
        # Screens count rows from the top.
        return np.asarray(np.rint((shape - (low[0], high[1])) * (scale, -scale)))

    lines = [_path(on_grid(shape)) for shape in shapes]

    def beside(link: int, reverse: bool) -> str:
        # To the right of the street, so that a service there stays visible.
        shape = shapes[link][::-1] if reverse else shapes[link]
        return _path(on_grid(shifted(shape, _ASIDE / scale)))

    required = {i for i in instance.required if solution is None}
    parts = [
        _stroke((lines[i] for i in range(len(lines)) if i not in required), _STREET, 5),
        _stroke((lines[i] for i in sorted(required)), _REQUIRED, 8),
    ]
    if solution is not None:
        colours = route_colours(solution.num_routes)
        for number, route, colour in zip(
            solution.numbers, solution.routes, colours, strict=True
        ):
            driven = [
                beside(step.link, step.reverse) for step in route.path if not step.serves
            ]
            served = [lines[service.link] for service in route.services]
            travel = "" if route.travel is None else route.travel.brief()
            facts = html.escape(route_figures(instance, route, travel))
            title = f"<title>route {number}: {facts}</title>"
            parts.append(
                f"<g>{title}{_stroke(driven, colour, 5, dashed=True)}"
                f"{_stroke(served, colour, 12)}</g>"
            )

    def place(node: int) -> tuple[int, int]:
        x, y = on_grid(places[[instance.nodes.index(node)]])[0].astype(int)
        return x, y

    for index, facility in enumerate(instance.facilities):
        x, y = place(facility.node)
        parts.append(
            f'<path d="M{x} {y - 30}l30 30l-30 30l-30 -30z" fill="{FACILITY}" '
            'stroke="#fff" stroke-width="6">'
            f"<title>{html.escape(facility_name(instance, index))}</title></path>"
        )
    for name, node in zip(depot_names(instance), depot_nodes(instance), strict=True):
        x, y = place(node)
        parts.append(
            f'<rect x="{x - 22}" y="{y - 22}" width="44" height="44" fill="{DEPOT}" '
            f'stroke="#fff" stroke-width="6"><title>{name.lower()}</title></rect>'
        )
    width, height = (int(side) for side in np.rint((high - low) * scale))
    box = f"-60 -60 {width + 120} {height + 120}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" width="{_PIXELS}" '
        f'style="max-width:100%;max-height:{_PIXELS}px;background:#fff">'
        f"{''.join(parts)}</svg>"
    )


def _path(line: Places) -> str:
    """Return the commands of an SVG path: the first point, then steps."""
    steps = np.diff(line, axis=0).astype(int).tolist()
    x, y = line[0].astype(int).tolist()
    moves = "".join(f"l{dx} {dy}" for dx, dy in steps if dx or dy) or "h0"
    return f"M{x} {y}{moves}"


def _stroke(lines: Iterable[str], colour: str, width: int, *, dashed: bool = False) -> str:
    drawn = "".join(lines)
    if not drawn:
        return ""
    dashes = ' stroke-dasharray="18 12"' if dashed else ' stroke-linecap="round"'
    return (
        f'<path d="{drawn}" fill="none" stroke="{colour}" stroke-width="{width}"{dashes}/>'
    )
