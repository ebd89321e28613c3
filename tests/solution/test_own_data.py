"""Ids and attributes of streets survive into plans and every file of them."""

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import openpyxl
import pandas
import pytest
from hypothesis import given, settings

import arcfleet
from arcfleet.errors import FileError, OptionError
from arcfleet.instance.own_data import beside
from arcfleet.solution.stops import COLUMNS
from tests.helpers import make_instance, refused, solved, street
from tests.located_instances import cross, located_plans

OWN: dict[str, Any] = {"surface": "gravel", "route": 7}


def owned(ids: tuple[Any, ...] = (17, "B-3")) -> arcfleet.Instance:
    """Return a crossing whose last street has ids and attributes."""
    instance = cross()
    *others, last = instance.links
    return replace(instance, links=(*others, replace(last, ids=ids, attributes=OWN)))


@settings(max_examples=30)
@given(drawn=located_plans())
def test_what_streets_have_is_in_all_files(
    drawn: tuple[arcfleet.Instance, arcfleet.Solution],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    instance, plan = drawn
    folder = tmp_path_factory.mktemp("own")
    arcfleet.write(instance, folder / "own.json")
    again = arcfleet.read(folder / "own.json")
    assert again == instance
    arcfleet.write_solution(instance, plan, folder / "plan.json")
    assert arcfleet.read_solution(folder / "plan.json", again) == plan
    served = [
        instance.links[service.link] for route in plan.routes for service in route.services
    ]
    document = json.loads((folder / "plan.json").read_text("utf-8"))
    services = [service for route in document["routes"] for service in route["services"]]
    assert [service.get("ids", []) for service in services] == [
        list(link.ids) for link in served
    ]
    arcfleet.write_geojson(instance, plan, folder / "plan.geojson")
    features = json.loads((folder / "plan.geojson").read_text("utf-8"))["features"]
    legs = [x["properties"] for x in features if x["properties"]["kind"] == "leg"]
    table = plan.to_geodataframe(instance)
    assert len(table) == len(legs)
    for leg, (_, row) in zip(legs, table.iterrows(), strict=True):
        link = instance.links[leg["link"]]
        assert leg.get("ids", []) == list(link.ids)
        assert (row["link"], row["mode"]) == (leg["link"], leg["mode"])
        if link.ids:
            assert tuple(row["ids"]) == link.ids
        # Their names are those of the table, or begin with own_.
        for name, value in beside(link.attributes, set()).items():
            assert value in (leg.get(name), leg.get(f"own_{name}"))
    arcfleet.write_stops(instance, plan, folder / "stops.csv")
    with (folder / "stops.csv").open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row, link in zip(rows, served, strict=True):
        found = (row.get("ids") or "").removeprefix("'")
        assert found == ";".join(map(str, link.ids))


def test_a_name_that_a_table_has_itself_becomes_own(tmp_path: Path) -> None:
    instance = owned()
    plan = arcfleet.evaluate(instance, [[1, 2]])
    assert beside({"route": 1, "own_route": 2, "own_car": 3}, {"route"}) == {
        "own_route": 1,
        "own_own_route": 2,
        "own_car": 3,
    }
    table = plan.to_geodataframe(instance)
    assert isinstance(table, geopandas.GeoDataFrame)
    assert table.crs.to_epsg() == 4326
    last = table[table["link"] == 2].iloc[0]
    assert (last["ids"], last["own_route"], last["surface"]) == ((17, "B-3"), 7, "gravel")
    assert last["route"] == 1
    for name in ("stops.csv", "stops.xlsx"):
        arcfleet.write_stops(instance, plan, tmp_path / name)
    sheet = openpyxl.load_workbook(tmp_path / "stops.xlsx").active
    assert sheet is not None
    head, *rows = list(sheet.values)
    assert head == (*COLUMNS, "ids", "surface", "own_route")
    assert rows[-1][-3:] == ("17;B-3", "gravel", 7)
    frame = pandas.read_csv(tmp_path / "stops.csv")
    assert list(frame.columns) == list(head)


def test_ids_of_any_size_are_exact_in_tables(tmp_path: Path) -> None:
    instance = owned((-(2**62) - 1,))
    plan = arcfleet.evaluate(instance, [[1, 2]])
    for name in ("stops.csv", "stops.xlsx"):
        arcfleet.write_stops(instance, plan, tmp_path / name)
    assert (
        list(pandas.read_csv(tmp_path / "stops.csv", dtype={"ids": "Int64"})["ids"])[-1]
        == -(2**62) - 1
    )
    sheet = openpyxl.load_workbook(tmp_path / "stops.xlsx").active
    assert sheet is not None
    assert list(sheet.values)[-1][-3] == str(-(2**62) - 1)


def test_a_plan_of_streets_with_other_ids_is_refused(tmp_path: Path) -> None:
    instance = owned()
    plan = arcfleet.evaluate(instance, [[1, 2]])
    arcfleet.write_solution(instance, plan, tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text("utf-8"))["version"] == 5
    with refused(FileError, "those of link 2 of instance"):
        arcfleet.read_solution(tmp_path / "plan.json", owned((18,)))
    # Files without ids are read as before.
    arcfleet.write_solution(cross(), plan, tmp_path / "older.json")
    assert json.loads((tmp_path / "older.json").read_text("utf-8"))["version"] < 5
    assert arcfleet.read_solution(tmp_path / "older.json", instance) == plan


def test_changes_of_an_instance_keep_them() -> None:
    instance = owned()
    for changed in (
        arcfleet.exclude(instance, [2]),
        arcfleet.require(arcfleet.exclude(instance, [2]), {2: 3}),
        arcfleet.pin(instance, {2: 1}),
    ):
        assert changed.links[2].ids == (17, "B-3")
        assert changed.links[2].attributes == OWN


def test_values_become_plain_dicts(tmp_path: Path) -> None:
    instance = owned()
    result = solved(instance, "ps")
    for document in (
        instance.to_dict(),
        result.to_dict(),
        result.solution.to_dict(),
        result.solution.to_dict(instance),
    ):
        assert json.loads(json.dumps(document)) == document
    (tmp_path / "x.json").write_text(json.dumps(instance.to_dict()), encoding="utf-8")
    assert arcfleet.read(tmp_path / "x.json") == instance
    for plan in (result.solution.to_dict(), result.solution.to_dict(instance)):
        (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        assert arcfleet.read_solution(tmp_path / "plan.json", instance) == result.solution
    ids = [ids for route in result.to_dict()["routes"] for ids in route["ids"]]
    assert [17, "B-3"] in ids
    assert "ids" not in solved(cross(), "ps").to_dict()["routes"][0]


def test_without_geopandas_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "geopandas", None)
    instance = owned()
    with refused(OptionError, "install geopandas, or write a file with write_geojson"):
        arcfleet.evaluate(instance, [[1, 2]]).to_geodataframe(instance)


def test_a_plan_without_streets_or_places() -> None:
    empty = replace(cross(), links=tuple(arcfleet.exclude(cross(), [1, 2]).links))
    plan = arcfleet.evaluate(empty, [])
    assert len(plan.to_geodataframe(empty)) == 0
    placeless = make_instance(street(1, 2, 3, 1))
    with refused(OptionError, "coordinates"):
        solved(placeless, "ps").solution.to_geodataframe(placeless)


def test_a_street_is_named_by_its_id() -> None:
    instance = owned()
    for name in ("id:17", "ID: B-3"):
        assert arcfleet.exclude(instance, name) == arcfleet.exclude(instance, 2)
    assert arcfleet.pin(instance, {"id:B-3": 1}) == arcfleet.pin(instance, {np.int64(2): 1})
    with refused(OptionError, "expected the id of a street in instance"):
        arcfleet.exclude(instance, "id:18")
