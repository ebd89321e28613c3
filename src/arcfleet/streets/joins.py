"""Own data joined in: rows of a table find their streets by way, name or place."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from arcfleet._checks import name_hint, needs
from arcfleet._files import quote
from arcfleet.errors import FileError, OptionError
from arcfleet.instance.change import fold_name
from arcfleet.instance.geodesy import is_on_earth, metres_from
from arcfleet.instance.instance import MAX_NUMBER, Coordinate
from arcfleet.streets.osm_tags import OSM_COLUMNS, WAY_COLUMNS, way_number
from arcfleet.streets.street_names import StreetNames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from arcfleet.streets.street_map import StreetMap
    from arcfleet.streets.tables import Row, Table

#: How rows find their streets.
Join = Literal["way", "name", "place"]
JOINS: tuple[Join, ...] = get_args(Join)
#: What a table is for.
Role = Literal["demand", "serve", "exclude"]

#: A point farther than this from every street is matched to none, in metres.
USUAL_SNAP = 100.0
#: Streets of one name with a gap of as many metres are more than one street.
FAR_APART = 2000.0
_NAME_COLUMNS = (
    *("name", "street", "street_name", "address", "addr:street"),
    *("strasse", "adresse", "rue", "calle", "via"),
)
_LON_COLUMNS = ("lon", "longitude", "lng", "long", "x")
_LAT_COLUMNS = ("lat", "latitude", "y")
_DEMAND_COLUMNS = ("demand", "amount", "quantity", "count")
#: Why a row on a street outside the area finds none.
OUTSIDE = "outside the area"
_WHOLE = re.compile(r"\+?([0-9]{1,12})(?:[.,]0*)?")
_METRES_PER_DEGREE = 111_195.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmatched:
    """A row that found no street.

    Parameters
    ----------
    row
        Number of the row in its file.
    value
        What was looked for.
    demand
        Demand of the row; None if it has none.
    reason
        Why there is no street.
    suggestion
        What might be meant; "" if nothing is near.
    """

    row: int
    value: str
    demand: int | None
    reason: str
    suggestion: str = ""

    def __str__(self) -> str:
        """Return the row, its value and the reason in one line."""
        near = f" (suggestion: {self.suggestion})" if self.suggestion else ""
        return f"row {self.row}, {quote(self.value)}: {self.reason}{near}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedTable:
    """The streets that the rows of a table found, and the rows that found none.

    Parameters
    ----------
    role
        What the table is for.
    file
        Name of the file.
    join
        How rows found their streets.
    columns
        Columns they found them by; empty for the shapes of the file.
    demand_column
        Column of the demand; None where every row counts 1.
    other_columns
        Columns of whole numbers that could be meant where every row counts 1.
    rows
        Number of rows.
    demands
        Demand of every street that has a row, by its position.
    unmatched
        Rows that found no street.
    scattered
        Names of streets far apart, as in several towns, which share the demand.
    """

    role: Role
    file: str
    join: Join
    columns: tuple[str, ...]
    demand_column: str | None
    other_columns: tuple[str, ...]
    rows: int
    demands: Mapping[int, int]
    unmatched: tuple[Unmatched, ...]
    scattered: tuple[str, ...] = ()

    @property
    def matched(self) -> int:
        """Number of rows that found a street."""
        return self.rows - len(self.unmatched)


class _Target(NamedTuple):
    """The streets of a row, or why there are none."""

    positions: tuple[int, ...] = ()
    reason: str = ""
    suggestion: str = ""
    way: int | None = None  # the way that was looked for


class _Wanted(NamedTuple):
    """What a row looks for: its text for messages, and its streets."""

    text: str
    target: _Target


def join_table(
    table: Table,
    street_map: StreetMap,
    *,
    role: Role,
    barred: Sequence[str],
    seen: Sequence[bool] | None = None,
    join: Join | None = None,
    column: str | None = None,
    snap: float = USUAL_SNAP,
) -> JoinedTable:
    """Return the streets that the rows of a table find, with their demands.

    A demand for several streets is shared by their lengths, in whole numbers whose sum is
    the demand.

    Parameters
    ----------
    table
        The rows.
    street_map
        The streets.
    role
        What the table is for.
    barred
        For every street why its rows are unmatched; "" for streets that rows may find.
    seen
        Whether places see a street, or pass over it to the next; all by default.
    join
        How rows find their streets; None recognises it by the columns and shapes.
    column
        Column of the demand; None recognises it by its name.
    snap
        Largest distance of a place from its street in metres.

    Raises
    ------
    FileError
        If the columns do not fit, a demand is no whole number, or no row finds a street.
    """
    if not table.rows:
        raise FileError(table.name, "expected at least one row, found none")
    named = {_folded(one): one for one in table.columns}
    chosen = _recognise(table, named, join)
    columns = _columns_of(table, named, chosen)
    finder: Callable[[Row], _Wanted]
    if chosen == "way":
        finder = _by_way(street_map, columns[0])
    elif chosen == "name":
        finder = _by_name(street_map, columns[0])
    else:
        finder = _by_place(table, street_map, columns, seen, snap)
    demand_column = _demand_column(table, named, column) if role == "demand" else None
    # Rows of the same streets are shared together: a count of 1 would always go to the
    # longest of them.
    totals: dict[_Target, int] = {}
    unmatched: list[Unmatched] = []
    for row in table.rows:
        text, target = finder(row)
        demand: int | None = 1
        if demand_column is not None:
            demand = _demand(table, row, demand_column)
        target = _allowed(target, barred)
        if demand is None and target.positions:
            target = _Target(reason=f"no demand in column {demand_column}")
        if not target.positions or demand is None:
            unmatched.append(
                Unmatched(
                    row=row.number,
                    value=text,
                    demand=demand if role == "demand" else None,
                    reason=target.reason,
                    suggestion=target.suggestion,
                )
            )
            continue
        totals[target] = totals.get(target, 0) + demand
    demands: dict[int, int] = {}
    for target, demand in totals.items():
        metres = [_metres(street_map, one, target.way) for one in target.positions]
        for position, share in zip(target.positions, shared(demand, metres), strict=True):
            demands[position] = demands.get(position, 0) + share
    _check_found(table, demands, unmatched)
    return JoinedTable(
        role=role,
        file=table.name,
        join=chosen,
        columns=columns,
        demand_column=demand_column,
        other_columns=(
            _number_columns(table, named)
            if role == "demand" and demand_column is None
            else ()
        ),
        rows=len(table.rows),
        demands=demands,
        unmatched=tuple(unmatched),
        scattered=tuple(_scattered(street_map, totals) if chosen == "name" else ()),
    )


def shared(amount: int, weights: Sequence[float]) -> list[int]:
    """Share an amount by weights, in whole numbers whose sum it is (largest remainder)."""
    exact = [Fraction(weight) for weight in weights]
    total = sum(exact)
    if not total:
        exact, total = [Fraction(1)] * len(exact), Fraction(len(exact))
    quotas = [amount * weight / total for weight in exact]
    shares = [math.floor(quota) for quota in quotas]
    # Of equal remainders the first comes first.
    order = sorted(range(len(quotas)), key=lambda i: (shares[i] - quotas[i], i))
    for index in order[: amount - sum(shares)]:
        shares[index] += 1
    return shares


def _scattered(street_map: StreetMap, targets: Iterable[_Target]) -> Iterator[str]:
    """Yield the names whose streets are in groups that are far apart."""
    for target in targets:
        streets = [street_map.streets[position] for position in target.positions]
        waiting = {end for street in streets for end in (street.tail, street.head)}
        group = [waiting.pop()]
        for end in group:  # it grows meanwhile
            rest = list(waiting)
            if rest:
                places = [street_map.junctions[one] for one in rest]
                distances = metres_from(street_map.junctions[end], places)
                near = list(compress(rest, (distances < FAR_APART).tolist()))
                waiting.difference_update(near)
                group += near
        if waiting:
            yield streets[0].name


def unmatched_csv(tables: Iterable[JoinedTable]) -> str:
    """Return the rows that found no street as CSV, with reasons and suggestions."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("file", "row", "value", "demand", "reason", "suggestion"))
    for table in tables:
        for one in table.unmatched:
            demand = "" if one.demand is None else one.demand
            writer.writerow(
                (table.file, one.row, one.value, demand, one.reason, one.suggestion)
            )
    return text.getvalue()


def _metres(street_map: StreetMap, position: int, way: int | None) -> float:
    """Return the length of a street, or of the part of it that a way is, to a millimetre.

    What lengths differ by in computing must not decide which of two equals gets more.
    """
    street = street_map.streets[position]
    if way is None:
        return round(street.metres, 3)
    return round(math.fsum(metres for number, metres in street.ways if number == way), 3)


def _allowed(target: _Target, barred: Sequence[str]) -> _Target:
    """Return the streets of a row that it may find."""
    if not target.positions:
        return target
    kept = tuple(one for one in target.positions if not barred[one])
    if not kept:
        return _Target(reason=barred[target.positions[0]])
    return target._replace(positions=kept)


def _check_found(
    table: Table, demands: Mapping[int, int], unmatched: Sequence[Unmatched]
) -> None:
    if not demands:
        raise FileError(
            table.name,
            f"expected rows on streets of the map, found none among {len(table.rows)}: "
            f"{unmatched[0]}",
        )
    total = sum(demands.values())
    if total > MAX_NUMBER:
        raise FileError(
            table.name,
            f"expected a total demand of at most {MAX_NUMBER}, found {total}; use a larger "
            "unit",
        )


# --- Which columns ----------------------------------------------------------------------


def _folded(column: str) -> str:
    """Return the name of a column without case, accents, spaces and the like."""
    return re.sub(r"[\s_:.-]", "", fold_name(column))


def _first(named: Mapping[str, str], known: Iterable[str]) -> str | None:
    return next((named[one] for one in map(_folded, known) if one in named), None)


def _recognise(table: Table, named: Mapping[str, str], join: Join | None) -> Join:
    """Return how rows find their streets: the first join that the table allows."""
    if join is not None:
        if join not in JOINS:
            raise OptionError(f"expected a join among {', '.join(JOINS)}, got {join!r}")
        return join
    if _first(named, WAY_COLUMNS):
        return "way"
    if _place_columns(named) or any(_is_place(row) for row in table.rows):
        return "place"
    if _first(named, OSM_COLUMNS):
        return "way"
    if _first(named, _NAME_COLUMNS):
        return "name"
    raise FileError(
        table.name,
        "expected a column way, street or name, columns lon and lat, or points, found only "
        f"{quote(', '.join(table.columns))}; rename a column",
    )


def _columns_of(table: Table, named: Mapping[str, str], join: Join) -> tuple[str, ...]:
    """Return the columns that rows find their streets by; none for their shapes."""
    if join == "place":
        places = _place_columns(named)
        if places or any(_is_place(row) for row in table.rows):
            return places
        wanted = "points, or columns lon and lat,"
    else:
        known = (*WAY_COLUMNS, *OSM_COLUMNS) if join == "way" else _NAME_COLUMNS
        column = _first(named, known)
        if column is not None:
            return (column,)
        wanted = f"a column {' or '.join(known[:3])}"
    raise FileError(
        table.name,
        f"expected {wanted} to join by {join}, found only "
        f"{quote(', '.join(table.columns))}; rename a column",
    )


def _place_columns(named: Mapping[str, str]) -> tuple[str, ...]:
    pair = _first(named, _LON_COLUMNS), _first(named, _LAT_COLUMNS)
    return tuple(one for one in pair if one) if all(pair) else ()


def _is_place(row: Row) -> bool:
    """Return whether a row has a point or an area; a line is no place."""
    shape = row.shape
    return shape is not None and not shape.is_empty and "Line" not in shape.geom_type


def _demand_column(
    table: Table, named: Mapping[str, str], column: str | None
) -> str | None:
    if column is None:
        return _first(named, _DEMAND_COLUMNS)
    found = _first(named, [column])
    if found is None:
        hint = name_hint(column, table.columns)
        raise FileError(
            table.name, f"expected a column {quote(column)}, found none: {hint}"
        )
    return found


def _number_columns(table: Table, named: Mapping[str, str]) -> tuple[str, ...]:
    """Return columns of whole numbers that are neither places nor numbers of things.

    Some cells may be empty.
    """
    known = (
        *(*_LON_COLUMNS, *_LAT_COLUMNS, *WAY_COLUMNS, *OSM_COLUMNS, "id", "fid", "nr"),
        *("number", "housenumber", "addr:housenumber", "hausnummer", "postcode", "plz"),
    )
    passed = {*map(_folded, known)}
    found = []
    for folded, column in named.items():
        cells = [row.values.get(column) for row in table.rows]
        filled = [cell for cell in cells if cell is not None]
        if folded not in passed and filled and None not in map(_whole, filled):
            found.append(column)
    return tuple(found)


# --- Demands ----------------------------------------------------------------------------


def _whole(value: Any) -> int | None:
    """Return the whole number of a cell; None if it is none."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    found = _WHOLE.fullmatch(str(value).strip())
    return None if found is None else int(found[1])


def _demand(table: Table, row: Row, column: str) -> int | None:
    value = row.values.get(column)
    if value is None:
        return None
    demand = _whole(value)
    if demand is None or demand > MAX_NUMBER:
        raise FileError(
            table.name,
            f"expected whole numbers from 0 to {MAX_NUMBER} in column {quote(column)}, "
            f"found {quote(str(value))}; use a smaller unit where there are fractions, as "
            "kilograms for tonnes",
            row.number,
        )
    return demand


# --- The joins --------------------------------------------------------------------------


def _by_way(street_map: StreetMap, column: str) -> Callable[[Row], _Wanted]:
    pieces: dict[int, list[int]] = {}
    for position, street in enumerate(street_map.streets):
        for way in dict.fromkeys(way for way, _ in street.ways):
            pieces.setdefault(way, []).append(position)

    def find(row: Row) -> _Wanted:
        value = row.values.get(column)
        text = "" if value is None else str(value)
        number = way_number(value)
        if not text:
            return _Wanted(text, _Target(reason=f"no way in column {column}"))
        if number is None:
            return _Wanted(text, _Target(reason="no number of a way"))
        if not pieces:
            return _Wanted(text, _Target(reason="the map has no way numbers"))
        if number not in pieces:
            return _Wanted(text, _Target(reason="no such way on the map"))
        return _Wanted(text, _Target(tuple(pieces[number]), way=number))

    return find


def _by_name(street_map: StreetMap, column: str) -> Callable[[Row], _Wanted]:
    names = StreetNames(street_map.streets)
    known: dict[str, _Target] = {}

    def find(row: Row) -> _Wanted:
        value = row.values.get(column)
        text = "" if value is None else str(value).strip()
        if not text:
            return _Wanted(text, _Target(reason=f"no name in column {column}"))
        if text not in known:
            found = names.find(text)
            if found.positions:
                known[text] = _Target(found.positions)
            elif found.is_ambiguous:
                known[text] = _Target((), "several streets fit this name", _or(found[2]))
            else:
                known[text] = _Target((), "no street of this name", _or(found[2]))
        return _Wanted(text, known[text])

    return find


def _or(names: Sequence[str]) -> str:
    return " or ".join(names)


def _by_place(
    table: Table,
    street_map: StreetMap,
    columns: Sequence[str],
    seen: Sequence[bool] | None,
    snap: float,
) -> Callable[[Row], _Wanted]:
    places = {row.number: _place_of(row, columns) for row in table.rows}
    found = [place for place in places.values() if isinstance(place, tuple)]
    _check_order(table, street_map, found)
    nearest = dict(zip(found, _nearest(street_map, found, seen), strict=True))

    def find(row: Row) -> _Wanted:
        place = places[row.number]
        if isinstance(place, str):
            text = ",".join(str(row.values.get(one) or "") for one in columns)
            return _Wanted(text, _Target(reason=place))
        position, metres = nearest[place]
        text = f"{place[0]:.6f},{place[1]:.6f}"
        if position is None or metres > snap:
            far = f"no street within {snap:g} m"
            if position is None:
                return _Wanted(text, _Target(reason=far))
            name = street_map.streets[position].name or "the nearest street"
            return _Wanted(text, _Target((), far, f"{name} is {metres:,.0f} m away"))
        return _Wanted(text, _Target((position,)))

    return find


def _place_of(row: Row, columns: Sequence[str]) -> Coordinate | str:
    """Return the place of a row, or why it has none."""
    if columns:
        cells = [row.values.get(one) for one in columns]
        if None in cells:
            return f"no place in columns {' and '.join(columns)}"
        try:
            longitude, latitude = (float(str(cell).replace(",", ".")) for cell in cells)
        except ValueError:
            return f"no degrees in columns {' and '.join(columns)}"
        if not is_on_earth(longitude, latitude):
            return f"no degrees in columns {' and '.join(columns)}"
        return longitude, latitude
    if row.shape is None or row.shape.is_empty:
        return "no place"
    if not _is_place(row):
        return "a line is no place"
    # The centre of a bent area may lie outside it; that of a point is the point.
    centre = row.shape.centroid
    return float(centre.x), float(centre.y)


def _check_order(table: Table, street_map: StreetMap, places: Sequence[Coordinate]) -> None:
    """Raise FileError where all places are off the map, and on it in the other order."""
    if not places:
        return
    ends = np.array(list(street_map.junctions.values()))
    low, high = ends.min(axis=0) - 0.01, ends.max(axis=0) + 0.01
    points = np.array(places)

    def on_map(points: np.ndarray[Any, Any]) -> int:
        return int(((low <= points) & (points <= high)).all(axis=1).sum())

    if on_map(points) == 0 and on_map(points[:, ::-1]) > 0:
        longitude, latitude = places[0]
        raise FileError(
            table.name,
            f"expected places as LON,LAT, found {longitude:g},{latitude:g}, which looks "
            "like LAT,LON; swap the two columns",
        )


def _nearest(
    street_map: StreetMap, places: Sequence[Coordinate], seen: Sequence[bool] | None
) -> list[tuple[int | None, float]]:
    """Return for each place the nearest street that it sees, and how far away it is."""
    with needs("shapely", "finding the nearest street", "maps"):
        import shapely
    everything = range(len(street_map.streets))
    positions = list(everything if seen is None else compress(everything, seen))
    if not positions or not places:
        return [(None, math.inf)] * len(places)
    middle = float(np.mean([latitude for _, latitude in street_map.junctions.values()]))
    # On a plane that touches the earth in the middle of the map.
    scale = np.array([math.cos(math.radians(middle)), 1.0]) * _METRES_PER_DEGREE
    lines = [
        shapely.LineString(np.array(street_map.points(street_map.streets[i])) * scale)
        for i in positions
    ]
    tree = shapely.STRtree(lines)
    points = shapely.points(np.array(places) * scale)
    pairs, metres = tree.query_nearest(points, return_distance=True, all_matches=True)
    best: list[tuple[int | None, float]] = [(None, math.inf)] * len(places)
    for place, line, distance in zip(*pairs.tolist(), metres.tolist(), strict=True):
        position = positions[line]
        known = best[place][0]
        # Of equally near streets, the first of the map.
        if known is None or position < known:
            best[place] = (position, distance)
    return best
