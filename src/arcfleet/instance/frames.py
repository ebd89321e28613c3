"""Instances from tables and graphs of other libraries: pandas, geopandas, networkx.

None of them is imported: what is handed over is asked for its rows.
"""

from __future__ import annotations

from dataclasses import fields
from numbers import Integral
from typing import TYPE_CHECKING, Any

from arcfleet._checks import is_empty, name_hint, nearest_name, whole
from arcfleet.errors import InstanceError
from arcfleet.instance.instance import Instance, Link

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_LINK_FIELDS = tuple(field.name for field in fields(Link))
#: Costs and demands, which are whole numbers.
_WHOLE_FIELDS = tuple(x for x in _LINK_FIELDS if x.endswith(("cost", "demand")))


def from_pandas(
    links: Any,
    *,
    depot: Any,
    capacity: int,
    nodes: Any = None,
    id: str | None = None,
    attributes: Sequence[str] = (),
    **more: Any,
) -> Instance:
    """Return the instance of a table of streets, a row each.

    The position of a link in the instance is that of its row, and `Link.ids` has the row's
    id, so that a plan joins back to the table. Rows with a demand above 0 are required
    where there is no column `required`.

    Parameters
    ----------
    links
        DataFrame with the columns `tail`, `head` and `cost`, and any other field of
        `Link`: `demand`, `one_way`, `service_cost`, `name` and so on. Empty cells are
        unknown. A GeoDataFrame's geometry is that of the links; it is converted to degrees.
        Nodes are whole numbers, or texts, which are numbered in their order.
    depot
        Node of the table.
    capacity
        As in `Instance`.
    nodes
        DataFrame of the places of nodes: the nodes in the index or in a column `node`,
        and `longitude` and `latitude`, or `x` and `y`. Without it, places are taken from
        the ends of the geometry where every link has one.
    id
        Column of ids, whole numbers or texts. By default the index gives them, unless its
        labels are neither.
    attributes
        Other columns that links shall keep, as `Link.attributes`; an empty cell is None.
    **more
        Other fields of `Instance`, such as `name` or `fleet_limit`.

    Raises
    ------
    InstanceError
        If a column is missing or a value is none of its kind, with the row.
    """
    if getattr(links, "crs", None) is not None:
        degrees = links.geometry.to_crs(4326)
        links = links.assign(geometry=degrees)  # its column may have another name
    attributes = _listed(attributes)
    _check_ends(links)
    _check_names(links.columns, attributes, "the table of links, as attribute")
    if id is not None:
        _check_names(links.columns, (id,), "the table of links, as id")
    number = _numbers_of_texts(links)
    if number and depot not in number:
        raise InstanceError(f"expected a node of the table as depot, got {depot!r}")
    made = []
    for position, (label, row) in enumerate(zip(links.index, _rows(links), strict=True)):
        where = f"in row {position}"
        if id is not None:
            row["ids"] = _ids_of(row[id])
        elif "ids" not in row:
            row["ids"] = (label,) if _is_label(label) else ()
        if number:
            row |= {"tail": number[row["tail"]], "head": number[row["head"]]}
        made.append(_link(row, where, attributes))
    if nodes is not None:
        more["coordinates"] = _places(nodes, number)
    elif "coordinates" not in more:
        more["coordinates"] = _ends(made)
    depot = number.get(depot, depot)
    return Instance(links=tuple(made), depot=depot, capacity=capacity, **more)


def from_networkx(
    graph: Any,
    *,
    depot: Any,
    capacity: int,
    cost: str = "cost",
    demand: str = "demand",
    id: str | None = None,
    attributes: Sequence[str] = (),
    **more: Any,
) -> Instance:
    """Return the instance of a graph of networkx.

    Edges of an undirected graph are two-way streets, those of a directed one are one-way.
    Attributes of edges are fields of `Link`; edges with a demand above 0 are required
    where they have no `required`. Links are in the order of `graph.edges`.

    Parameters
    ----------
    graph
        Graph, DiGraph, MultiGraph or MultiDiGraph. Nodes that are no whole numbers are
        numbered in their order.
    depot
        Node of the graph.
    capacity
        As in `Instance`.
    cost
        Attribute of edges that is their cost, such as "length"; it is rounded.
    demand
        Attribute of edges that is their demand; edges without it have none.
    id
        Attribute of edges that is their id, or a list of ids, as "osmid" of OSMnx.
    attributes
        Attributes of edges that links shall keep, as `Link.attributes`.
    **more
        Other fields of `Instance`.

    Raises
    ------
    InstanceError
        If an attribute is missing or is none of its kind, with the edge.
    """
    attributes = _listed(attributes)
    names = list(graph.nodes)
    numbered = all(type(whole(node)) is int for node in names)
    number = {node: whole(node) if numbered else i for i, node in enumerate(names)}
    if depot not in number:
        raise InstanceError(f"expected a node of the graph as depot, got {depot!r}")
    found = dict.fromkeys(name for *_, facts in graph.edges(data=True) for name in facts)
    if demand != "demand" and demand not in found:
        raise InstanceError(
            f"expected an attribute {demand!r} for the demand of edges, got none on any: "
            f"{name_hint(demand, list(found)) if found else 'there are no attributes'}"
        )
    links = []
    for tail, head, facts in graph.edges(data=True):
        where = f"on edge {tail!r}-{head!r}"
        row = dict(facts)
        if cost not in facts:
            raise InstanceError(
                f"expected an attribute {cost!r} for the cost of edges, got none {where}: "
                f"{name_hint(cost, list(facts)) if facts else 'there are no attributes'}"
            )
        row |= {"tail": number[tail], "head": number[head], "cost": _rounded(facts[cost])}
        row.setdefault("one_way", graph.is_directed())
        row["demand"] = facts.get(demand)
        if id is not None:
            row["ids"] = _ids_of(facts.get(id))
        links.append(_link(row, where, attributes))
    places = {number[node]: _place(facts) for node, facts in graph.nodes(data=True)}
    if all(place is not None for place in places.values()) and places:
        more.setdefault("coordinates", places)
    nodes = tuple(number.values())
    return Instance(
        nodes=nodes, links=tuple(links), depot=number[depot], capacity=capacity, **more
    )


def _rows(table: Any) -> Iterator[dict[str, Any]]:
    """Return the rows of a data frame as dicts."""
    names = [str(column) for column in table.columns]
    for values in table.itertuples(index=False, name=None):
        yield dict(zip(names, values, strict=True))


def _numbers_of_texts(links: Any) -> dict[Any, int]:
    """Return a number for each node where all nodes are texts; nothing where not."""
    ends = zip(links["tail"], links["head"], strict=True)
    names = dict.fromkeys(node for both in ends for node in both)
    if not all(isinstance(name, str) for name in names):
        return {}
    return {name: position for position, name in enumerate(names)}


def _listed(names: Sequence[str]) -> tuple[str, ...]:
    """Return names; a single one may stand for itself."""
    return (names,) if isinstance(names, str) else tuple(names)


def _check_ends(links: Any) -> None:
    """Raise InstanceError for a table without the columns that every link needs."""
    known = [str(column) for column in links.columns]
    missing = [name for name in ("tail", "head", "cost") if name not in known]
    if not missing:
        return
    near = nearest_name(missing[0], known)
    column = "..." if near is None else repr(near)
    remedy = f"rename a column, as in table.rename(columns={{{column}: {missing[0]!r}}})"
    if near is not None:
        remedy = f"did you mean {near!r}? {remedy}"
    if hasattr(links, "geometry"):
        remedy += ", or make the instance of its lines by make_scene(read_map(table), ...)"
    raise InstanceError(
        f"expected columns {', '.join(map(repr, missing))} in the table of links, got "
        f"{', '.join(map(repr, known))}: {remedy}"
    )


def _check_names(columns: Iterable[Any], wanted: Iterable[str], what: str) -> None:
    known = [str(column) for column in columns]
    for name in wanted:
        if name not in known:
            raise InstanceError(
                f"expected a column {name!r} in {what}, got "
                f"{', '.join(map(repr, known))}: {name_hint(name, known)}"
            )


def _link(row: Mapping[str, Any], where: str, attributes: Sequence[str]) -> Link:
    known = {name: row[name] for name in _LINK_FIELDS if name in row}
    known = {name: value for name, value in known.items() if not is_empty(value)}
    if attributes:
        cells = {name: row.get(name) for name in attributes}
        known["attributes"] = {
            name: None if is_empty(value) else value for name, value in cells.items()
        }
    if "required" not in known:
        known["required"] = bool(known.get("demand", 0) > 0)
    if known["required"] is not False and not whole(known["required"]):
        known["required"] = False
    try:
        return Link(**known)
    except (InstanceError, TypeError, NotImplementedError) as error:
        remedy = ""
        given = [known[name] for name in _WHOLE_FIELDS if name in known]
        if any(isinstance(x, float) and not x.is_integer() for x in given):
            remedy = ": round it or take a smaller unit"
        raise InstanceError(f"{error} ({where}){remedy}") from error


def _ids_of(cell: Any) -> Any:
    """Return the ids of a cell: none of an empty one, several of a list."""
    return () if not isinstance(cell, list | tuple) and is_empty(cell) else cell


def _is_label(label: Any) -> bool:
    """Return whether a label of an index can be an id."""
    return isinstance(label, str | Integral) and label != ""


def _rounded(value: Any) -> Any:
    return round(value) if isinstance(value, float) else value


def _places(nodes: Any, number: dict[Any, int]) -> dict[Any, tuple[Any, Any]]:
    columns = {str(name).lower(): name for name in nodes.columns}
    for east, north in (("longitude", "latitude"), ("lon", "lat"), ("x", "y")):
        if east in columns and north in columns:
            break
    else:
        raise InstanceError(
            "expected columns longitude and latitude, or x and y, in the table of nodes, "
            f"got {', '.join(map(repr, columns))}"
        )
    numbers: Iterable[Any] = nodes[columns["node"]] if "node" in columns else nodes.index
    xs, ys = nodes[columns[east]], nodes[columns[north]]
    places = {}
    for node, x, y in zip(numbers, xs, ys, strict=True):
        own = number.setdefault(node, len(number)) if number else whole(node)
        places[own] = (float(x), float(y))
    return places


def _place(facts: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the place of a node of a graph, as OSMnx and others write it."""
    for east, north in (("x", "y"), ("longitude", "latitude"), ("lon", "lat")):
        if east in facts and north in facts:
            return float(facts[east]), float(facts[north])
    return None


def _ends(links: list[Link]) -> Any:
    """Return places of nodes from the ends of lines; none unless all have one."""
    if not links or not all(link.geometry for link in links):
        return ()
    places: dict[int, tuple[float, float]] = {}
    for link in links:
        places.setdefault(link.tail, link.geometry[0])
        places.setdefault(link.head, link.geometry[-1])
    return places
