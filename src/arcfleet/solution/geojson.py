"""Plans as GeoJSON (RFC 7946), for geographic information systems and web maps.

A plan becomes a FeatureCollection: depots and facilities as points; per route the line of
its whole drive; per link driven along its line, with the mode "serve" or "deadhead"; a
point per visit of a facility, and one where each line of directions starts. The property
`kind` tells them apart: "depot", "facility", "route", "leg", "visit", "turn".
"""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from arcfleet._display import as_geodataframe
from arcfleet._files import check_output, write_text_atomically
from arcfleet.errors import OptionError
from arcfleet.instance.geodesy import line_length
from arcfleet.instance.own_data import beside
from arcfleet.solution.directions import directions
from arcfleet.solution.drive import (
    Leg,
    check_located,
    joined,
    route_legs,
    start_points,
    with_all_paths,
)
from arcfleet.solution.solution import Solution
from arcfleet.solution.travel import step_seconds, visit_stops
from arcfleet.solution.words import (
    depot_names,
    depot_nodes,
    depot_vehicles,
    facility_name,
    route_facts,
    trip_loads,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from arcfleet.instance.instance import Coordinate, Instance, Link
    from arcfleet.solution.directions import Instruction
    from arcfleet.solution.solution import Route

SUFFIXES = (".geojson", ".json")

_Feature = dict[str, object]
#: Properties of a leg; an attribute of a street with one of these names becomes `own_…`.
_LEG_FACTS = frozenset(
    (
        *("kind", "route", "step", "mode", "order", "street", "highway", "ways", "ids"),
        *("speed_kmh", "link", "reverse", "demand", "load", "trip", "metres", "seconds"),
        *("stroke", "geometry"),
    )
)


def write_geojson(
    instance: Instance,
    solution: Solution,
    path: Path | str,
    colours: Sequence[str] | None = None,
) -> None:
    """Write a plan as GeoJSON.

    Parameters
    ----------
    instance
        The streets; they need coordinates.
    solution
        The plan; street paths are worked out where it has none.
    path
        The file; it is replaced only when the new one is complete.
    colours
        One per route, written as `stroke`, which map viewers know.

    Raises
    ------
    OptionError
        If the suffix is unknown or the instance has no coordinates.
    SolutionError
        If the plan cannot be driven along the streets of the instance.
    FileError
        If the file cannot be written.
    """
    check_geojson(Path(path))
    check_located(instance)
    solution = with_all_paths(instance, solution)
    features = _places(instance)
    starts = start_points(instance, solution)
    cues = directions(instance, solution)
    for index, legs in enumerate(route_legs(instance, solution)):
        style: _Feature = {} if colours is None else {"stroke": colours[index]}
        points = joined(legs, starts[index])
        features.append(_route(instance, solution, index, points, style))
        number, route = solution.numbers[index], solution.routes[index]
        features += _legs(instance, number, route, legs, style)
        features += _visits(instance, number, route)
        features += _turns(number, cues[index])
    # One feature a line: the file can be read and compared by people, too.
    lines = ",\n".join(json.dumps(feature, ensure_ascii=False) for feature in features)
    head = json.dumps(
        {
            "type": "FeatureCollection",
            "name": instance.name,
            "comment": instance.comment,
            "attribution": instance.attribution,
            "cost": solution.cost,
            **({} if solution.travel is None else solution.travel.facts()),
        },
        ensure_ascii=False,
    )
    write_text_atomically(path, f'{head[:-1]}, "features": [\n{lines}\n]}}\n')


@as_geodataframe.register(Solution)
def legs_table(solution: Solution, instance: Instance) -> Any:
    """Return the legs of a plan as a GeoDataFrame; see `Solution.to_geodataframe`."""
    try:
        import geopandas
    except ImportError as error:
        raise OptionError(
            "to_geodataframe needs geopandas, which is not installed: install geopandas, "
            "or write a file with write_geojson"
        ) from error
    check_located(instance)
    solution = with_all_paths(instance, solution)
    routes = zip(
        solution.numbers, solution.routes, route_legs(instance, solution), strict=True
    )
    legs = [
        x for number, route, legs in routes for x in _legs(instance, number, route, legs)
    ]
    columns = list(dict.fromkeys(name for leg in legs for name in leg["properties"]))
    return geopandas.GeoDataFrame.from_features(
        legs, crs="EPSG:4326", columns=["geometry", *(columns or ["route", "step"])]
    )


def check_geojson(path: Path) -> None:
    """Raise what `write_geojson` would raise about its file, before the work for it."""
    check_output(path, SUFFIXES, "a GeoJSON file")


def _places(instance: Instance) -> list[_Feature]:
    """Return the depots and the facilities."""
    features = []
    for name, node in zip(depot_names(instance), depot_nodes(instance), strict=True):
        facts: _Feature = {"kind": "depot", "name": name, "node": node}
        if instance.vehicles:
            facts["vehicles"] = depot_vehicles(instance, node)
        features.append(_point(instance, node, facts))
    for index, facility in enumerate(instance.facilities):
        facts = {
            "kind": "facility",
            "name": facility_name(instance, index),
            "facility": index,
            "node": facility.node,
            "cost": facility.cost,
        }
        features.append(_point(instance, facility.node, facts))
    return features


def _visits(instance: Instance, number: int, route: Route) -> list[_Feature]:
    loads = trip_loads(instance, route)
    return [
        _point(
            instance,
            instance.facilities[visit.facility].node,
            {
                "kind": "visit",
                "name": facility_name(instance, visit.facility),
                "route": number,
                "visit": order,
                "facility": visit.facility,
                "services": visit.services,
                "step": visit.steps,
                "load": loads[order - 1],
                "cost": instance.facilities[visit.facility].cost,
            },
        )
        for order, visit in enumerate(route.visits, start=1)
    ]


def _turns(number: int, cues: list[Instruction]) -> list[_Feature]:
    return [
        _feature(
            {"type": "Point", "coordinates": cue.place},
            {
                "kind": "turn",
                "name": cue.manoeuvre,
                "route": number,
                "line": order,
                "street": cue.street,
                "mode": "serve" if cue.action == "serve" else "deadhead",
                "metres": cue.metres,
                "step": cue.first + 1,
                "text": str(cue),
            },
        )
        for order, cue in enumerate(cues, start=1)
        if cue.action in ("serve", "drive")
    ]


def _point(instance: Instance, node: int, properties: _Feature) -> _Feature:
    place = instance.coordinates[instance.nodes.index(node)]
    return _feature({"type": "Point", "coordinates": place}, properties)


def _route(
    instance: Instance,
    solution: Solution,
    index: int,
    points: list[Coordinate],
    style: _Feature,
) -> _Feature:
    route, number = solution.routes[index], solution.numbers[index]
    own = route_facts(instance, solution, index)
    own.pop("number", None)  # it is given as `route`
    if instance.facilities:
        own["visits"] = len(route.visits)  # each is a point of its own
    return _line(
        points,
        {
            "kind": "route",
            "name": f"Route {number}",
            "route": number,
            "services": len(route.services),
            "load": route.load,
            "cost": route.cost,
            **own,
            "metres": round(line_length(points), 1),
            **({} if route.travel is None else route.travel.facts()),
            **style,
        },
    )


def _legs(
    instance: Instance,
    number: int,
    route: Route,
    legs: Sequence[Leg],
    style: Mapping[str, object] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    features = []
    load = order = 0
    trip = 1
    stops = visit_stops(route)
    times = step_seconds(instance, route.path, None, stops)
    for position, leg in enumerate(legs, start=1):
        link = instance.links[leg.step.link]
        serves = leg.step.serves
        if position - 1 in stops:
            load, trip = 0, trip + 1
        order += serves
        load += link.demand if serves else 0
        features.append(
            _line(
                leg.points,
                {
                    "kind": "leg",
                    "route": number,
                    "step": position,
                    "mode": "serve" if serves else "deadhead",
                    "order": order if serves else None,
                    "street": link.name,
                    **_street_facts(link, reverse=leg.step.reverse),
                    "link": leg.step.link,
                    "reverse": leg.step.reverse,
                    "demand": link.demand if serves else 0,
                    "load": load,
                    **({"trip": trip} if instance.facilities else {}),
                    "metres": (
                        round(line_length(leg.points), 1)
                        if link.metres is None
                        else link.metres
                    ),
                    **({} if times is None else {"seconds": times[position - 1]}),
                    **style,
                    **beside(link.attributes, _LEG_FACTS),
                },
            )
        )
    return features


def _street_facts(link: Link, *, reverse: bool) -> _Feature:
    """Return what is known of the street beside its name."""
    speed = link.reverse_speed_kmh if reverse else link.speed_kmh
    facts: _Feature = {"highway": link.kind, "ways": link.ways, "ids": link.ids}
    facts["speed_kmh"] = speed
    return {name: value for name, value in facts.items() if value}


def _line(points: Sequence[Coordinate], properties: _Feature) -> _Feature:
    return _feature({"type": "LineString", "coordinates": points}, properties)


def _feature(geometry: _Feature, properties: _Feature) -> _Feature:
    return {"type": "Feature", "geometry": geometry, "properties": properties}
