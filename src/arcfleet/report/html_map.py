"""A plan as one HTML file: a map to move, routes to switch, the order of work to play.

The file opens from the disk without any network. Its page lies in `page/`; here the plan
is turned into the data that the page draws.
"""

from __future__ import annotations

import html
import json
import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from arcfleet._files import check_output, write_text_atomically
from arcfleet.instance.geodesy import line_length
from arcfleet.instance.turns import TurnCosts
from arcfleet.report.colours import DEPOT, route_colours
from arcfleet.report.layout import layout, link_shapes
from arcfleet.solution.drive import (
    check_paths,
    joined,
    on_globe,
    route_legs,
    start_points,
    with_all_paths,
)
from arcfleet.solution.travel import (
    Travel,
    step_costs,
    step_seconds,
    visit_seconds,
    visit_stops,
)
from arcfleet.solution.words import (
    depot_names,
    depot_nodes,
    depot_vehicles,
    facility_name,
    known_shape,
    shape_texts,
    street_name,
    trip_loads,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from arcfleet.instance.instance import Instance
    from arcfleet.report.layout import Places
    from arcfleet.solution.solution import Route, Solution

SUFFIXES = (".html", ".htm")

#: Points are written on a grid of so many steps along the longer side: 5 cm in 10 km.
_GRID = 200_000
_SCRIPTS = ("plan.js", "view.js", "draw.js", "hover.js", "panel.js", "play.js", "start.js")


def write_html(instance: Instance, solution: Solution, path: Path | str) -> None:
    """Write a plan as a map that any browser shows.

    Parameters
    ----------
    instance
        The streets; without coordinates their places are worked out from the costs.
    solution
        The plan; street paths are worked out where it has none.
    path
        The file; it is replaced only when the new one is complete.

    Raises
    ------
    OptionError
        If the suffix is unknown.
    InstanceError
        If the instance is too large to be laid out without coordinates.
    SolutionError
        If the plan cannot be driven along the streets of the instance.
    FileError
        If the file cannot be written.
    """
    check_html(Path(path))
    solution = with_all_paths(instance, solution)
    check_paths(instance, solution)
    write_text_atomically(path, _page(instance.name, _facts(instance, solution)))


def check_html(path: Path) -> None:
    """Raise what `write_html` would raise about its file, before the work for it."""
    check_output(path, SUFFIXES, "an HTML file")


def _page(name: str, facts: dict[str, object]) -> str:
    folder = resources.files("arcfleet.report") / "page"

    def asset(file: str) -> str:
        return (folder / file).read_text(encoding="utf-8")

    data = json.dumps(facts, ensure_ascii=False, separators=(",", ":"))
    parts = {
        "title": html.escape(f"{name}: plan"),
        "style": asset("page.css"),
        "script": "\n".join(asset(file) for file in _SCRIPTS),
        # Without "<" no street name can end the element that holds the data.
        "plan": data.replace("<", "\\u003c"),
    }
    # In one pass, so that nothing in the data is taken for a placeholder.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], asset("page.html"))


def _facts(instance: Instance, solution: Solution) -> dict[str, object]:
    places = layout(instance)
    shapes = link_shapes(instance, places)
    points = np.vstack([places, *shapes])
    corner = np.array([points[:, 0].min(), points[:, 1].max()])
    extent = float(np.ptp(points, axis=0).max()) or 1.0

    def on_grid(shape: Places) -> NDArray[np.int64]:
        # Screens count rows from the top.
        grid = np.rint((shape - corner) * (1, -1) * _GRID / extent)
        return np.asarray(grid, dtype=np.int64)

    names: dict[str, int] = {}
    links = []
    for link, shape in zip(instance.links, shapes, strict=True):
        number = names.setdefault(street_name(link), len(names))
        line = on_grid(shape)
        line[1:] = np.diff(line, axis=0)  # steps are shorter to write than places
        flags = link.one_way + 2 * link.required
        links.append([number, flags, link.demand, *line.ravel().tolist()])
    # Lengths of the streets where they are known, else of the drawn lines.
    lengths = [None if r.travel is None else r.travel.metres for r in solution.routes]
    metres_per_unit = None
    if on_globe(instance):
        starts = start_points(instance, solution)
        legs_of_routes = route_legs(instance, solution)
        lengths = [
            round(line_length(joined(legs, start))) if known is None else known
            for known, legs, start in zip(lengths, legs_of_routes, starts, strict=True)
        ]
        latitudes = [latitude for _, latitude in instance.coordinates]
        middle = (min(latitudes) + max(latitudes)) / 2
        degree = line_length([(0.0, middle - 0.005), (0.0, middle + 0.005)]) * 100
        metres_per_unit = degree * extent / _GRID

    def place(node: int) -> list[int]:
        grid: list[int] = on_grid(places[[instance.nodes.index(node)]])[0].tolist()
        return grid

    colours = route_colours(solution.num_routes)
    turns = TurnCosts(instance)
    fleet = instance.fleet
    return {
        "name": instance.name,
        "comment": instance.notice,
        "cost": solution.cost,
        "deadhead": solution.deadhead,
        "visitCost": solution.visit_cost,
        "shape": _shape_lines(instance, solution),
        "metresPerUnit": metres_per_unit,
        "depots": [
            {
                "name": name,
                "place": place(node),
                "vehicles": depot_vehicles(instance, node),
            }
            for name, node in zip(depot_names(instance), depot_nodes(instance), strict=True)
        ],
        "depotColour": DEPOT,
        "facilities": [
            {
                "name": facility_name(instance, index),
                "place": place(facility.node),
                "cost": facility.cost,
            }
            for index, facility in enumerate(instance.facilities)
        ],
        "names": list(names),
        "links": links,
        "routes": [
            {
                "number": solution.numbers[index],
                "colour": colours[index],
                "vehicle": instance.vehicles[route.vehicle].name
                if instance.vehicles
                else None,
                "capacity": fleet[route.vehicle].capacity,
                "load": route.load,
                "cost": route.cost,
                "metres": lengths[index],
                **_travel(route),
                "steps": [4 * x.link + 2 * x.reverse + x.serves for x in route.path],
                "costs": step_costs(instance, route.path, turns, visit_stops(route)),
                "times": step_seconds(instance, route.path, turns, visit_stops(route)),
                "visits": _visits(instance, route),
            }
            for index, route in enumerate(solution.routes)
        ],
    }


def _visits(instance: Instance, route: Route) -> list[list[int | None]]:
    """Return per visit: steps before it, facility, load, cost, seconds."""
    visits = zip(
        route.visits,
        trip_loads(instance, route),
        visit_seconds(instance, route),
        strict=False,
    )
    return [
        [v.steps, v.facility, load, instance.facilities[v.facility].cost, seconds]
        for v, load, seconds in visits
    ]


def _shape_lines(instance: Instance, solution: Solution) -> list[str]:
    return list(shape_texts(known_shape(instance, solution)).values())


def _travel(route: Route) -> dict[str, int | None]:
    travel = Travel() if route.travel is None else route.travel
    return {
        "deadheadMetres": travel.deadhead_metres,
        "seconds": travel.seconds,
        "deadheadSeconds": travel.deadhead_seconds,
    }
