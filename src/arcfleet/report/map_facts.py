"""What the map in the browser draws: streets, routes and changes as numbers and names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from arcfleet.instance.change import not_required
from arcfleet.instance.geodesy import line_length
from arcfleet.instance.turns import TurnCosts
from arcfleet.report.colours import DEPOT, numbered_colours
from arcfleet.report.layout import layout, link_shapes, longitude_scale
from arcfleet.solution.drive import joined, on_globe, route_legs, start_points
from arcfleet.solution.match import match_links
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
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from arcfleet.instance.instance import Instance, Link
    from arcfleet.instance.turns import Direction
    from arcfleet.report.layout import Places
    from arcfleet.solution.diff import Diff, Moved
    from arcfleet.solution.solution import Route, Solution

#: Points are written on a grid of so many steps along the longer side: 5 cm in 10 km.
_GRID = 200_000


def plan_facts(instance: Instance, solution: Solution) -> dict[str, object]:
    """Return the page's data for a plan whose paths are known."""
    streets = _Streets.of(instance, instance.links)
    plain = [(position, False) for position in range(len(instance.links))]
    numbers = solution.numbers
    return streets.facts() | _plan(streets.place, instance, solution, plain, numbers)


def diff_facts(
    instance: Instance, before: Solution, after: Solution, found: Diff, source: Instance
) -> dict[str, object]:
    """Return the page's data for two plans whose paths are known, and their differences.

    The page has one list of streets: those of the later instance, then those of the
    earlier one, `source`, that are not among them as they were.
    """
    now = [(position, False) for position in range(len(instance.links))]
    earlier, gone = _found_again(source, instance)
    together, nodes = _both(instance, source, gone)
    streets = _Streets.of(together, (*instance.links, *gone))
    numbers = [*after.numbers, *(route.number for route in found.routes)]
    return {
        **streets.facts(),
        **_plan(streets.place, instance, after, now, numbers),
        "before": _plan(
            lambda node: streets.place(nodes[node]), source, before, earlier, numbers
        ),
        "changes": {
            "streets": found.streets,
            **{
                name: _grouped(getattr(found, name), [link for link, _ in earlier])
                for name in ("moved", "removed", "added")
            },
        },
    }


def _found_again(
    source: Instance, instance: Instance
) -> tuple[list[Direction], list[Link]]:
    """Return for each earlier link the page's, and links that the page needs as well."""
    matches = match_links(source, instance)
    earlier: list[Direction] = []
    gone: list[Link] = []
    for position, link in enumerate(source.links):
        found, swapped = matches.get(position, (-1, False))
        if found >= 0 and _looks_alike(link, instance.links[found], swapped=swapped):
            earlier.append((found, swapped))
        else:
            earlier.append((len(instance.links) + len(gone), False))
            gone.append(link)
    return earlier, gone


def _looks_alike(old: Link, new: Link, *, swapped: bool) -> bool:
    line = old.geometry[::-1] if swapped else old.geometry
    seen = (old.name, old.one_way, old.required, old.demand)
    return line == new.geometry and seen == (
        *(new.name, new.one_way, new.required, new.demand),
    )


def _both(
    instance: Instance, source: Instance, gone: Sequence[Link]
) -> tuple[Instance, dict[int, int]]:
    """Return an instance to lay out with the streets of both, and the earlier nodes in it.

    A node of the earlier instance that lies elsewhere than the later one of its number is
    a node of its own.
    """
    places = dict(zip(instance.nodes, instance.coordinates, strict=False))
    old_places = dict(zip(source.nodes, source.coordinates, strict=False))
    free = max(*instance.nodes, *source.nodes) + 1
    known = set(instance.nodes)
    renamed: dict[int, int] = {}
    for node in source.nodes:
        there, here = old_places.get(node), places.get(node)
        is_same = node not in known or there is None or here is None or there == here
        renamed[node] = node if is_same else free + len(renamed)
    nodes = tuple(dict.fromkeys([*instance.nodes, *renamed.values()]))
    places = {renamed[node]: place for node, place in old_places.items()} | places
    located = len(places) == len(nodes)
    drawn = (
        not_required(replace(x, tail=renamed[x.tail], head=renamed[x.head])) for x in gone
    )
    links = (*instance.links, *drawn)
    together = replace(
        instance,
        nodes=nodes,
        coordinates=tuple(places[node] for node in nodes) if located else (),
        links=links if located else tuple(replace(x, geometry=()) for x in links),
    )
    return together, renamed


@dataclass(frozen=True, slots=True)
class _Streets:
    """Streets on the grid of the page."""

    instance: Instance
    links: Sequence[Link]
    places: Places
    shapes: list[Places]
    corner: Places
    extent: float

    @classmethod
    def of(cls, instance: Instance, links: Sequence[Link]) -> _Streets:
        places = layout(instance)
        shapes = link_shapes(instance, places)
        points = np.vstack([places, *shapes])
        corner = np.array([points[:, 0].min(), points[:, 1].max()])
        extent = float(np.ptp(points, axis=0).max()) or 1.0
        return cls(instance, links, places, shapes, corner, extent)

    def on_grid(self, shape: Places) -> NDArray[np.int64]:
        # Screens count rows from the top.
        grid = np.rint((shape - self.corner) * (1, -1) * _GRID / self.extent)
        return np.asarray(grid, dtype=np.int64)

    def place(self, node: int) -> list[int]:
        at = self.places[[self.instance.nodes.index(node)]]
        grid: list[int] = self.on_grid(at)[0].tolist()
        return grid

    def facts(self) -> dict[str, object]:
        names: dict[str, int] = {}
        links = []
        for link, shape in zip(self.links, self.shapes, strict=True):
            number = names.setdefault(street_name(link), len(names))
            line = self.on_grid(shape)
            line[1:] = np.diff(line, axis=0)  # steps are shorter to write than places
            flags = link.one_way + 2 * link.required + 4 * bool(link.name)
            links.append([number, flags, link.demand, *line.ravel().tolist()])
        return {
            "name": self.instance.name,
            "comment": self.instance.notice,
            "depotColour": DEPOT,
            "names": list(names),
            "links": links,
            **self._on_globe(),
        }

    def _on_globe(self) -> dict[str, object]:
        if not on_globe(self.instance):
            return {"metresPerUnit": None, "globe": None}
        latitudes = [latitude for _, latitude in self.instance.coordinates]
        middle = (min(latitudes) + max(latitudes)) / 2
        degree = line_length([(0.0, middle - 0.005), (0.0, middle + 0.005)]) * 100
        scale = longitude_scale(self.instance)
        return {
            "metresPerUnit": degree * self.extent / _GRID,
            # Where x and y are 0, and how many degrees they count.
            "globe": {
                "longitude": self.corner[0] / scale,
                "latitude": float(self.corner[1]),
                "perX": self.extent / _GRID / scale,
                "perY": self.extent / _GRID,
            },
        }


def _plan(
    place: Callable[[int], list[int]],
    instance: Instance,
    solution: Solution,
    drawn: Sequence[Direction],
    numbers: Iterable[int],
) -> dict[str, object]:
    """Return depots, facilities and routes; `drawn` are the page's links and directions."""
    colours = numbered_colours(numbers)
    dark_colours = numbered_colours(colours, ground="dark")
    lengths = _lengths(instance, solution)
    turns = TurnCosts(instance)
    return {
        "cost": solution.cost,
        "deadhead": solution.deadhead,
        "visitCost": solution.visit_cost,
        "shape": list(shape_texts(known_shape(instance, solution)).values()),
        "depots": [
            {
                "name": name,
                "place": place(node),
                "vehicles": depot_vehicles(instance, node),
            }
            for name, node in zip(depot_names(instance), depot_nodes(instance), strict=True)
        ],
        "facilities": [
            {
                "name": facility_name(instance, index),
                "place": place(facility.node),
                "cost": facility.cost,
            }
            for index, facility in enumerate(instance.facilities)
        ],
        "routes": [
            {
                "number": number,
                "colour": colours[number],
                "darkColour": dark_colours[number],
                "vehicle": instance.vehicles[route.vehicle].name
                if instance.vehicles
                else None,
                "capacity": instance.fleet[route.vehicle].capacity,
                "load": route.load,
                "cost": route.cost,
                "metres": metres,
                **_travel(route),
                "steps": _steps(route, drawn),
                "costs": step_costs(instance, route.path, turns, visit_stops(route)),
                "times": step_seconds(instance, route.path, turns, visit_stops(route)),
                "visits": _visits(instance, route),
            }
            for number, route, metres in zip(
                solution.numbers, solution.routes, lengths, strict=True
            )
        ],
    }


def _steps(route: Route, drawn: Sequence[Direction]) -> list[int]:
    """Return four times the link, two if it is driven in reverse, one if it is served."""
    codes = []
    for step in route.path:
        link, swapped = drawn[step.link]
        codes.append(4 * link + 2 * (step.reverse != swapped) + step.serves)
    return codes


def _lengths(instance: Instance, solution: Solution) -> list[int | None]:
    """Return metres of the streets where they are known, else of the drawn lines."""
    lengths = [None if r.travel is None else r.travel.metres for r in solution.routes]
    if not on_globe(instance) or None not in lengths:
        return lengths
    legs_of_routes = route_legs(instance, solution)
    return [
        round(line_length(joined(legs, start))) if known is None else known
        for known, legs, start in zip(
            lengths, legs_of_routes, start_points(instance, solution), strict=True
        )
    ]


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


def _travel(route: Route) -> dict[str, int | None]:
    travel = Travel() if route.travel is None else route.travel
    return {
        "deadheadMetres": travel.deadhead_metres,
        "seconds": travel.seconds,
        "deadheadSeconds": travel.deadhead_seconds,
    }


def _grouped(moved: Iterable[Moved], earlier: Sequence[int]) -> list[dict[str, object]]:
    """Return the changes by street name and routes, with the page's links of each plan."""
    groups: dict[tuple[str, int | None, int | None], list[Moved]] = {}
    for one in moved:
        groups.setdefault((one.name, one.before, one.after), []).append(one)
    return [
        {
            "name": name or "unnamed street",
            "before": before,
            "after": after,
            "linksBefore": [earlier[x] for x in _known(one.old_link for one in group)],
            "linksAfter": list(_known(one.link for one in group)),
        }
        for (name, before, after), group in groups.items()
    ]


def _known(positions: Iterable[int | None]) -> Iterator[int]:
    return (position for position in positions if position is not None)
