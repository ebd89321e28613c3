import json
from dataclasses import replace
from pathlib import Path

from arcfleet import METHODS, Facility, Turn, Vehicle, read, write
from tests.cli.running import (
    SMALL,
    VILLAGE,
    arcfleet,
    in_a_new_process,
    one_sentence,
    succeeded,
)
from tests.helpers import star


def test_info_json_has_the_promised_keys() -> None:
    facts = json.loads(arcfleet("info", VILLAGE, "--json").stdout)
    instance = read(VILLAGE)
    assert facts["name"] == "village"
    assert facts["nodes"] == len(instance.nodes)
    assert facts["links"] == len(instance.links)
    assert facts["required"] == len(instance.required)
    assert facts["capacity"] == 1500
    assert facts["depot"] == instance.depot
    assert facts["total_demand"] == instance.total_demand
    assert "capacity      1500" in arcfleet("info", VILLAGE).stdout
    assert (facts["cost_unit"], facts["turn_rules"]) == (None, None)


def test_info_has_the_turn_rules_and_the_unit(tmp_path: Path) -> None:
    file = tmp_path / "scene.json"
    turns = (Turn(0, False, 0, True), Turn(0, True, 0, False, 7))
    scene = replace(read(VILLAGE), turns=turns, u_turns="dead-ends", cost_unit="metres")
    write(scene, file)
    lines = succeeded("info", file).splitlines()
    assert "cost unit     metres" in lines
    expected = "1 forbidden, 1 with a penalty, U-turns at dead ends only"
    assert f"turn rules    {expected}" in lines
    assert json.loads(succeeded("info", file, "--json"))["turn_rules"] == expected


def test_info_has_a_line_for_each_vehicle_type_and_facility(tmp_path: Path) -> None:
    file = tmp_path / "town.json"
    van = Vehicle(name="van", start=1, end=2, capacity=9, count=3, max_route_cost=70)
    truck = Vehicle(name="truck", start=2, capacity=10, fixed_cost=5)
    sites = (Facility(node=3, cost=4, name="Landfill\nEast"), Facility(node=2))
    write(replace(star(1, 2), vehicles=(van, truck), facilities=sites), file)
    lines = succeeded("info", file).splitlines()
    assert lines[-4:] == [
        "vehicle 1     van, depot 1, end 2, capacity 9, at most 3, longest route 70",
        "vehicle 2     truck, depot 2, capacity 10, fixed cost 5",
        "facility 1    Landfill?East, node 3, cost 4",
        "facility 2    node 2, cost 0",
    ]
    facts = json.loads(succeeded("info", file, "--json"))
    assert [one["name"] for one in facts["vehicles"]] == ["van", "truck"]
    assert [one["node"] for one in facts["facilities"]] == [3, 2]
    assert "vehicle_1" not in facts


def test_convert_there_and_back(tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.dat"
    assert succeeded("convert", SMALL, first) == ""
    facts = json.loads(succeeded("convert", first, second, "--json"))
    assert facts == {"file": str(second), "format": "carplib"}
    assert read(first) == read(SMALL)
    assert read(second) == read(SMALL)


def test_convert_writes_the_text_format_that_can_hold_the_instance(tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.txt"
    hauling = replace(star(1, 2), max_route_cost=99, fewest_routes=True)
    write(hauling, first)
    facts = json.loads(succeeded("convert", first, second, "--json"))
    assert facts == {"file": str(second), "format": "mcarptif"}
    assert read(second) == hauling


def test_convert_refuses_what_the_format_cannot_hold(tmp_path: Path) -> None:
    ran = arcfleet("convert", VILLAGE, tmp_path / "village.dat")
    assert "Spanish CARPLIB" in one_sentence(ran)
    assert list(tmp_path.iterdir()) == []


def test_methods_lists_all() -> None:
    names = {m["name"] for m in json.loads(arcfleet("methods", "--json").stdout)["methods"]}
    assert {"ps", "ps-ellipse", "ps-efficiency", "ps-alt1", "ps-alt2"} <= names
    assert all(name in arcfleet("methods").stdout for name in names)


def test_methods_lists_the_parameters_of_one() -> None:
    for method, known in (
        ("ruin-recreate", {"blink_rate": 0.01}),
        ("ps", {"choice": "rules"}),
    ):
        facts = json.loads(succeeded("methods", method, "--json"))
        text = succeeded("methods", method)
        assert facts["parameters"].items() >= known.items()
        for name, default in facts["parameters"].items():
            assert f"\n{name} " in text
            assert f" {default} " in text
    assert "no parameters" in succeeded("methods", "daam")
    assert "did you mean" in one_sentence(arcfleet("methods", "ruin-recreat"))


def test_names_that_stdout_cannot_encode(tmp_path: Path) -> None:
    named = tmp_path / "named.json"
    named.write_text(
        VILLAGE.read_text().replace('"village"', '"Dörf ☃"', 1), encoding="utf-8"
    )
    ran = in_a_new_process("info", named, PYTHONIOENCODING="ascii")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_unknown_example() -> None:
    line = one_sentence(arcfleet("info", "example:dever"))
    assert line == "arcfleet: expected example:denver, got 'example:dever'"


def test_methods_say_whether_they_plan_with_operations() -> None:
    rows = succeeded("methods").splitlines()
    assert any(row.split()[:2] == ["ruin-recreate", "yes"] for row in rows)
    assert any(row.split()[:2] == ["maens", "no"] for row in rows)
    methods = json.loads(succeeded("methods", "--json"))["methods"]
    assert {one["name"]: one["operations"] for one in methods} == {
        name: method.operations for name, method in METHODS.items()
    }
    assert any(row.split()[:3] == ["maens", "no", "yes"] for row in rows)
    assert {one["name"]: one["warm_start"] for one in methods} == {
        name: method.warm_start for name, method in METHODS.items()
    }
