import csv
from dataclasses import replace
from pathlib import Path

import openpyxl
import pytest
from hypothesis import given, settings

from arcfleet import check, evaluate
from arcfleet.errors import OptionError
from arcfleet.instance.instance import Instance
from arcfleet.solution.solution import Solution
from arcfleet.solution.stops import COLUMNS, write_stops
from tests.hauling_plans import hauling_plan, hauling_town
from tests.located_instances import cross, located_plans


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


@settings(max_examples=30)
@given(drawn=located_plans())
def test_every_service_is_a_row(
    drawn: tuple[Instance, Solution], tmp_path_factory: pytest.TempPathFactory
) -> None:
    instance, solution = drawn
    path = tmp_path_factory.mktemp("stops") / "stops.csv"
    write_stops(instance, solution, path)
    rows = iter(rows_of(path))
    for number, route in zip(solution.numbers, solution.routes, strict=True):
        load = 0
        for order, service in enumerate(route.services, start=1):
            link = instance.links[service.link]
            row = next(rows)
            load += link.demand
            assert (int(row["route"]), int(row["stop"])) == (number, order)
            assert int(row["link"]) == service.link
            ends = int(row["from_node"]), int(row["to_node"])
            assert ends == link.ends(service.reverse)
            assert int(row["load"]) == load
            place = instance.coordinates[instance.nodes.index(ends[0])]
            assert (float(row["from_longitude"]), float(row["from_latitude"])) == place
    assert next(rows, None) is None


def test_metres_times_and_places(tmp_path: Path) -> None:
    instance = cross()
    plan = evaluate(instance, [[1, 2]])
    assert not check(instance, plan).faults
    write_stops(instance, plan, tmp_path / "stops.csv")
    names = COLUMNS[COLUMNS.index("demand") :]
    rows = [[float(row[name]) for name in names] for row in rows_of(tmp_path / "stops.csv")]
    # Along Main to the crossing, work to the dead end, back, work along Side.
    assert rows == [
        [4, 4, 111, 222, 10, 20, 5.0, 51.001, 5.0, 51.002],
        [5, 9, 111, 444, 30, 40, 5.0, 51.001, 5.002, 51.001],
    ]


def test_the_load_starts_again_after_a_visit(village: Instance, tmp_path: Path) -> None:
    town = hauling_town(village)
    write_stops(town, hauling_plan(town, (2, 5, 11)), tmp_path / "stops.csv")
    load, route = 0, ""
    for row in rows_of(tmp_path / "stops.csv"):
        load = load if row["route"] == route else 0
        route = row["route"]
        if row["action"] == "visit":
            assert int(row["load"]) == load
            load = 0
        else:
            load += int(row["demand"])
            assert int(row["load"]) == load


def test_visits_are_rows(village: Instance, tmp_path: Path) -> None:
    town = hauling_town(village)
    plan = hauling_plan(town, (2, 5, 11))
    path = tmp_path / "stops.csv"
    write_stops(town, plan, path)
    rows = rows_of(path)
    visits = [row for row in rows if row["action"] == "visit"]
    assert len(visits) == sum(len(route.visits) for route in plan.routes) > 0
    for number, route in zip(plan.numbers, plan.routes, strict=True):
        own = [row for row in rows if int(row["route"]) == number]
        assert len(own) == len(route.services) + len(route.visits)
        emptied = sum(int(row["load"]) for row in own if row["action"] == "visit")
        rest = int(own[-1]["load"]) if own[-1]["action"] == "serve" else 0
        assert emptied + rest == route.load


def test_excel_has_the_same_rows(
    tmp_path: Path, village: Instance, village_plan: Solution
) -> None:
    first = village.links[village_plan.routes[0].services[0].link]
    links = tuple(
        replace(link, name="=1+1\x07") if link is first else link for link in village.links
    )
    instance = replace(village, links=links)
    write_stops(instance, village_plan, tmp_path / "stops.csv")
    write_stops(instance, village_plan, tmp_path / "stops.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "stops.xlsx").active
    assert sheet is not None
    head, *rows = list(sheet.values)
    assert head == COLUMNS
    plain = rows_of(tmp_path / "stops.csv")
    assert len(rows) == len(plain)
    # Neither program takes the name of a street for a formula.
    assert rows[0][4] == "=1+1?"
    assert sheet["E2"].data_type == "s"
    assert plain[0]["street"].startswith("'=1+1")
    for row, other in zip(rows[1:], plain[1:], strict=True):
        shown = ["" if cell is None else str(cell) for cell in row]
        assert shown == list(other.values())


def test_suffix(tmp_path: Path, village: Instance, village_plan: Solution) -> None:
    with pytest.raises(OptionError, match=r"a table ending in \.csv or \.xlsx"):
        write_stops(village, village_plan, tmp_path / "stops.ods")
