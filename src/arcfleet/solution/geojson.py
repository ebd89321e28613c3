"""Plans as GeoJSON (RFC 7946), for geographic information systems and web maps.

A plan becomes a FeatureCollection: the depot as a point; per route the line of its whole
drive; and per link driven along its line, with the mode "serve" or "deadhead". The
property `kind` tells them apart: "depot", "route", "leg".
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet._files import check_output, write_text_atomically
from arcfleet.instance.geodesy import line_length
from arcfleet.solution.drive import Leg, check_located, joined, route_legs, with_all_paths
from arcfleet.solution.travel import step_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.instance.instance import Coordinate, Instance
    from arcfleet.solution.solution import Solution

SUFFIXES = (".geojson", ".json")

_Feature = dict[str, object]


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
    depot = instance.coordinates[instance.nodes.index(instance.depot)]
    features = [
        _feature(
            {"type": "Point", "coordinates": depot},
            {"kind": "depot", "name": "Depot", "node": instance.depot},
        )
    ]
    for number, legs in enumerate(route_legs(instance, solution), start=1):
        style: _Feature = {} if colours is None else {"stroke": colours[number - 1]}
        features.append(_route(solution, number, joined(legs, depot), style))
        features += _legs(instance, number, legs, style)
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


def check_geojson(path: Path) -> None:
    """Raise what `write_geojson` would raise about its file, before the work for it."""
    check_output(path, SUFFIXES, "a GeoJSON file")


def _route(
    solution: Solution, number: int, points: list[Coordinate], style: _Feature
) -> _Feature:
    route = solution.routes[number - 1]
    return _line(
        points,
        {
            "kind": "route",
            "name": f"Route {number}",
            "route": number,
            "services": len(route.services),
            "load": route.load,
            "cost": route.cost,
            "metres": round(line_length(points), 1),
            **({} if route.travel is None else route.travel.facts()),
            **style,
        },
    )


def _legs(
    instance: Instance, number: int, legs: Sequence[Leg], style: _Feature
) -> list[_Feature]:
    features = []
    load = order = 0
    times = step_seconds(instance, [leg.step for leg in legs])
    for position, leg in enumerate(legs, start=1):
        link = instance.links[leg.step.link]
        serves = leg.step.serves
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
                    "link": leg.step.link,
                    "reverse": leg.step.reverse,
                    "demand": link.demand if serves else 0,
                    "load": load,
                    "metres": (
                        round(line_length(leg.points), 1)
                        if link.metres is None
                        else link.metres
                    ),
                    **({} if times is None else {"seconds": times[position - 1]}),
                    **style,
                },
            )
        )
    return features


def _line(points: Sequence[Coordinate], properties: _Feature) -> _Feature:
    return _feature({"type": "LineString", "coordinates": points}, properties)


def _feature(geometry: _Feature, properties: _Feature) -> _Feature:
    return {"type": "Feature", "geometry": geometry, "properties": properties}
