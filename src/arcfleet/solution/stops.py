"""The stops of a plan as a table, in CSV or Excel: a row per street that is served."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, cast

from arcfleet._checks import needs
from arcfleet._files import check_output, write_bytes_atomically, write_text_atomically
from arcfleet.instance.own_data import beside
from arcfleet.solution.drive import with_all_paths
from arcfleet.solution.travel import step_seconds, visit_seconds, visit_stops
from arcfleet.solution.words import facility_name, street_name, trip_loads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from arcfleet.instance.instance import Coordinate, Instance, Link
    from arcfleet.solution.solution import Route, Solution

SUFFIXES = (".csv", ".xlsx")

COLUMNS = (
    *("route", "vehicle", "stop", "action", "street", "link", "from_node", "to_node"),
    *("demand", "load", "metres", "total_metres", "start_seconds", "end_seconds"),
    *("from_longitude", "from_latitude", "to_longitude", "to_latitude"),
)
#: A cell: empty where something is unknown.
Cell = int | float | str | bool | None
_EXACT = 10**15 - 1
#: Excel and others take such text for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_stops(instance: Instance, solution: Solution, path: Path | str) -> None:
    """Write a row per service and per visit of a facility, in driving order.

    Where streets have ids, a column `ids` has them, with semicolons between several; where
    they have attributes, each has a column: `own_NAME` if another column has its name.

    Parameters
    ----------
    instance
        The streets.
    solution
        The plan; street paths are worked out where it has none.
    path
        The file: .csv (UTF-8), or .xlsx with the extra `sheets`.

    Raises
    ------
    OptionError
        If the suffix is unknown, or a package for Excel files is missing.
    SolutionError
        If the plan has links that the instance does not have.
    FileError
        If the file cannot be written.
    """
    path = Path(path)
    check_stops(path)
    solution = with_all_paths(instance, solution)
    own = own_columns(instance)
    table: list[list[Cell]] = [[*COLUMNS, *own]]
    for number, route in zip(solution.numbers, solution.routes, strict=True):
        for row in _rows(instance, route, number):
            link = row[COLUMNS.index("link")]
            of_link = {} if link is None else _own_cells(instance.links[cast("int", link)])
            table.append([*row, *(of_link.get(name) for name in own)])
    if path.suffix.lower() == ".csv":
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\r\n")
        writer.writerows([_safe(cell) for cell in row] for row in table)
        # The mark at the start lets spreadsheets recognise UTF-8.
        write_text_atomically(path, "\ufeff" + stream.getvalue())
        return
    write_bytes_atomically(path, _workbook(table))


def own_columns(instance: Instance) -> list[str]:
    """Return the columns of the ids and attributes that streets have, if any."""
    return list(dict.fromkeys(name for link in instance.links for name in _own_cells(link)))


def _own_cells(link: Link) -> dict[str, Cell]:
    one = link.ids[0] if len(link.ids) == 1 else ";".join(map(str, link.ids))
    ids: dict[str, Cell] = {"ids": one} if link.ids else {}
    return ids | beside(link.attributes, (*COLUMNS, "ids"))


def check_stops(path: Path) -> None:
    """Raise what `write_stops` would raise about its file, before the work for it."""
    check_output(path, SUFFIXES, "a table")
    if path.suffix.lower() == ".xlsx":
        with needs("openpyxl", "writing .xlsx", "sheets", " or write .csv"):
            import openpyxl  # noqa: F401


def _rows(instance: Instance, route: Route, number: int) -> Iterator[list[Cell]]:
    vehicle = instance.fleet[route.vehicle].name if instance.vehicles else ""
    places = dict(zip(instance.nodes, instance.coordinates, strict=False))
    times = step_seconds(instance, route.path, None, visit_stops(route))
    pauses = visit_seconds(instance, route)
    loads = trip_loads(instance, route)
    now = None if times is None else 0
    metres: int | None = 0
    load = stop = 0
    visits = list(enumerate(route.visits))
    for position in range(len(route.path) + 1):
        while visits and visits[0][1].steps == position:
            index, visit = visits.pop(0)
            facility = instance.facilities[visit.facility]
            stop += 1
            later = None if now is None else now + pauses[index]
            name = facility_name(instance, visit.facility)
            emptied = loads[index] if index < len(loads) else 0
            start = _at(places.get(facility.node))
            yield [
                *(number, vehicle, stop, "visit", name, None, facility.node, facility.node),
                *(None, emptied, 0, metres, now, later, *start, *start),
            ]
            load, now = 0, later
        if position == len(route.path):
            return
        step = route.path[position]
        link = instance.links[step.link]
        metres = None if metres is None or link.metres is None else metres + link.metres
        later = None if now is None or times is None else now + times[position]
        if step.serves:
            stop, load = stop + 1, load + link.demand
            tail, head = link.ends(step.reverse)
            yield [
                *(number, vehicle, stop, "serve", street_name(link), step.link, tail, head),
                *(link.demand, load, link.metres, metres, now, later),
                *(*_at(places.get(tail)), *_at(places.get(head))),
            ]
        now = later


def _at(place: Coordinate | None) -> tuple[Cell, Cell]:
    return (None, None) if place is None else place


def _safe(cell: Cell) -> Cell:
    """Return a cell that no spreadsheet runs as a formula."""
    if isinstance(cell, str) and cell.startswith(_FORMULA):
        return f"'{cell}"
    return cell


def _workbook(table: list[list[Cell]]) -> bytes:
    from openpyxl import Workbook
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
    from openpyxl.styles import Font

    book = Workbook()
    page = book.active
    page.title = "stops"
    for row in table:
        # Excel keeps 15 digits of a number; ids may have more.
        cells = (str(x) if type(x) is int and abs(x) > _EXACT else x for x in row)
        page.append(
            [ILLEGAL_CHARACTERS_RE.sub("?", x) if isinstance(x, str) else x for x in cells]
        )
    for cell in page[1]:
        cell.font = Font(bold=True)
    for line in page.iter_rows():
        for cell in line:
            if cell.data_type == "f":  # a name such as =A1 is a name
                cell.data_type = "s"
    page.freeze_panes = "A2"
    page.auto_filter.ref = page.dimensions
    page.column_dimensions["E"].width = 32
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()
