"""Street maps from the graphs that the OSMnx library makes."""

from __future__ import annotations

from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING, Any

from arcfleet._files import quote
from arcfleet.errors import MapError
from arcfleet.instance.geodesy import line_lengths
from arcfleet.streets.osm_tags import joined_names, main_kind
from arcfleet.streets.speeds import LimitReader, value_of_maxspeed
from arcfleet.streets.street_map import OSM_ATTRIBUTION, Street, StreetMap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from arcfleet.instance.instance import Coordinate

#: A directed edge, and whether it is one-way even where it has a reverse.
_Edge = tuple[Street, bool]


def from_osmnx(
    graph: Any, *, name: str = "", attribution: str = OSM_ATTRIBUTION
) -> StreetMap:
    """Read a directed multigraph as OSMnx makes it, simplified or not.

    An edge whose attribute `oneway` is True is a one-way street. Of the others, an edge and
    its reverse along the same points are one two-way street; one without a reverse may be
    driven in its own direction only, as the graph has it.

    Parameters
    ----------
    graph
        A networkx.MultiDiGraph in degrees: nodes with x and y; edges with, all optional,
        length, oneway, highway, name, maxspeed, osmid and geometry. Of several values of
        `highway` the most important counts, of `maxspeed` the least; several names are
        joined.
    name
        Name of the map.
    attribution
        Attribution of the data.
    """
    if not (graph.is_directed() and graph.is_multigraph()):
        raise MapError(
            "expected a networkx.MultiDiGraph as OSMnx makes it, "
            f"got a {type(graph).__name__}"
        )
    system = graph.graph.get("crs")
    if system is not None and "4326" not in str(system) and "CRS84" not in str(system):
        raise MapError(
            f"expected longitude and latitude in degrees, got a graph in {system}; "
            "project it to EPSG:4326"
        )
    junctions = {_number(node): _place(node, data) for node, data in graph.nodes(data=True)}
    edges = _read_edges(graph, junctions)
    if not edges:
        raise MapError("expected at least one street, got a graph without edges")
    return StreetMap(
        name=name,
        junctions=junctions,
        streets=_pair_directions(edges),
        attribution=attribution,
    )


def _number(node: Any) -> int:
    try:
        return int(node) if isinstance(node, str) else index(node)
    except (TypeError, ValueError) as error:
        raise MapError(
            f"expected whole numbers as nodes of the graph, got {node!r}"
        ) from error


def _place(node: object, data: dict[str, Any]) -> Coordinate:
    try:
        return float(data["x"]), float(data["y"])
    except (KeyError, TypeError, ValueError) as error:
        raise MapError(
            f"expected longitude x and latitude y on every node, got none on {node!r}"
        ) from error


def _read_edges(graph: Any, junctions: dict[int, Coordinate]) -> list[_Edge]:
    """Return every edge as a one-way street, and whether it stays one."""
    ends: list[tuple[int, int]] = []
    attributes: list[dict[str, Any]] = []
    lines: list[tuple[Coordinate, ...]] = []
    for tail, head, data in graph.edges(data=True):
        ends.append((_number(tail), _number(head)))
        attributes.append(data)
        lines.append(_line(data, *ends[-1], junctions))
    edges = []
    limits = LimitReader()
    for (tail, head), data, line, drawn in zip(
        ends, attributes, lines, line_lengths(lines), strict=True
    ):
        name = joined_names(data.get("name"))
        speed = value_of_maxspeed(data.get("maxspeed"))
        limit, _ = limits.limits({} if speed is None else {"maxspeed": speed, "name": name})
        street = Street(
            tail=tail,
            head=head,
            metres=_length(data, tail, head, drawn),
            one_way=True,
            kind=main_kind(data.get("highway")),
            name=name,
            geometry=line if len(line) > 2 else (),
            limit=limit,
            reverse_limit=limit,
            ways=_ways(data.get("osmid"), drawn),
        )
        # OSMnx writes True or False; after a way through a file they may be texts.
        edges.append((street, str(data.get("oneway")).lower() in {"true", "yes", "1"}))
    limits.warn("OSMnx graph")
    return edges


def _ways(value: object, metres: float) -> tuple[tuple[int, float], ...]:
    """Return the ways of an edge; of several, whose lengths are unknown, equal parts."""
    numbers = value if isinstance(value, list | tuple) else [value]
    known = [one for one in numbers if isinstance(one, int) and not isinstance(one, bool)]
    return tuple((one, metres / len(known)) for one in dict.fromkeys(known))


def _length(data: dict[str, Any], tail: int, head: int, drawn: float) -> float:
    length = data.get("length", drawn)
    try:
        return float(length)
    except (TypeError, ValueError) as error:
        raise MapError(
            f"expected the length of edge {tail}-{head} in metres, got {length!r}"
        ) from error


def _line(
    data: dict[str, Any], tail: int, head: int, junctions: dict[int, Coordinate]
) -> tuple[Coordinate, ...]:
    geometry = data.get("geometry")
    points: list[Coordinate] = []
    if geometry is not None:
        try:
            points = [(float(point[0]), float(point[1])) for point in geometry.coords]
        # shapely's shapes of many parts have no coords, and say so as not implemented.
        except (AttributeError, NotImplementedError, TypeError, ValueError) as error:
            raise MapError(
                f"expected the geometry of edge {tail}-{head} as a shapely LineString, "
                f"got {quote(str(geometry))}: load a graph from a file by OSMnx"
            ) from error
    return junctions[tail], *points[1:-1], junctions[head]


def _pair_directions(edges: Iterable[_Edge]) -> tuple[Street, ...]:
    """Make one two-way street of each edge and its reverse."""
    streets: list[Street] = []
    # What still waits for its reverse: positions in `streets` by ends and inner points.
    waiting: dict[tuple[int, int, tuple[Coordinate, ...]], list[int]] = {}
    for street, fixed in edges:
        inner = street.geometry[1:-1]
        reverses = waiting.get((street.head, street.tail, inner[::-1]))
        if reverses and not fixed:
            # Of parallel streets drawn alike, those of the same length belong together.
            differences = [abs(streets[other].metres - street.metres) for other in reverses]
            position = reverses.pop(differences.index(min(differences)))
            streets[position] = replace(
                streets[position], one_way=False, reverse_limit=street.limit
            )
            continue
        if not fixed:
            waiting.setdefault((street.tail, street.head, inner), []).append(len(streets))
        streets.append(street)
    return tuple(streets)
