import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arcfleet.errors import FileError
from arcfleet.instance.files import read, write
from arcfleet.instance.instance import Instance
from arcfleet.instance.operations import Assignment, Facility, Lock
from tests.helpers import make_instance, refused, street

SMALLEST = """{"format": "arcfleet-instance", "version": 1, "name": "x", "nodes": [1, 2],
"links": [{"tail": 1, "head": 2, "cost": 3}], "depot": 1, "capacity": 4}"""


def parse(tmp_path: Path, text: str) -> Instance:
    file = tmp_path / "file.dat"
    file.write_text(text)
    return read(file)


def test_members_with_defaults_may_be_left_out(tmp_path: Path) -> None:
    assert parse(tmp_path, SMALLEST) == make_instance(street(1, 2, 3), name="x", capacity=4)


def test_equal_service_cost_in_unequal_directions_survives(tmp_path: Path) -> None:
    # Left out, the reverse service cost would become the reverse cost.
    link = street(1, 2, 3, 0, reverse_cost=5, service_cost=3)
    instance = make_instance(link, name="", fleet_limit=3)
    assert link.reverse_service_cost == 3
    write(instance, tmp_path / "x.json")
    assert read(tmp_path / "x.json") == instance
    assert json.loads((tmp_path / "x.json").read_text("utf-8"))["fleet_limit"] == 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"cost": 3', '"cost": "3"', "an integer from 0 to 2147483647 at links[0].cost"),
        ('"cost": 3', '"cost": true', "at links[0].cost, found true"),
        ('"cost": 3', '"cost": 3.0', "at links[0].cost, found 3.0"),
        ('"cost": 3', '"cost": NaN', "at links[0].cost, found NaN"),
        ('"cost": 3', '"cost": -1', "at links[0].cost, found -1"),
        ('"cost": 3', '"cost": 2147483648', "at links[0].cost, found 2147483648"),
        ('"cost": 3', f'"cost": {"1" * 5000}', "too many digits"),
        ('"cost": 3', f'"cost": {"1" * 4000}', "at links[0].cost, found a huge number"),
        ('"cost": 3', '"cost": null', "at links[0].cost, found null"),
        ('"cost": 3', '"cots": 3', "found links[0].cots; did you mean cost?"),
        ('"cost": 3', '"cost": 3, "cost": 4', "found links[0].cost twice"),
        (', "cost": 3', "", "expected links[0].cost, found no such key"),
        ('"cost": 3', '"cost": 3, "demand": 1', "links[0]"),
        ('"cost": 3', '"cost": 3, "geometry": [[1, 2], [3]]', "at links[0].geometry[1]"),
        ('"cost": 3', '"cost": 3, "geometry": [[1, 1e999], [3, 4]]', "geometry[0][1]"),
        *(
            ('"cost": 3', f'"cost": 3, {new}', message)
            for new, message in (
                ('"ids": 7', "an array at links[0].ids, found 7"),
                ('"ids": [[7]]', "or a string at links[0].ids[0], found an array of 1"),
                ('"ids": [true]', "or a string at links[0].ids[0], found true"),
                ('"ids": [1.0]', "or a string at links[0].ids[0], found 1.0"),
                ('"ids": [""]', "a text that is not empty, got '' on link 1-2, links[0]"),
                ('"ids": ["\\ud800"]', "UTF-8 can hold, got '\\ud800' on link 1-2"),
                (f'"ids": [{10**4000}]', "got a huge number on link 1-2, links[0]"),
                ('"attributes": [1]', "an object at links[0].attributes, found an array"),
                ('"attributes": {"a": {}}', "null at links[0].attributes.a, found an ob"),
                ('"attributes": {"a": NaN}', "null at links[0].attributes.a, found NaN"),
                ('"attributes": {"a": 1e999}', "attribute 'a' to be a text, a finite num"),
                ('"attributes": {"a": 1, "a": 2}', "found links[0].attributes.a twice"),
                ('"attributes": {"": 1}', "names of attributes as texts that are not"),
                ('"attributes": {"\\ud800": 1}', "the name of an attribute to be a text"),
            )
        ),
        ("[1, 2]", "[1, 2, 2]", "node 2 twice"),
        ("[1, 2]", "[1, true]", "at nodes[1], found true"),
        ("[1, 2]", '"12"', "an array at nodes"),
        ('{"tail"', '7, {"tail"', "an object at links[0], found 7"),
        ('"depot": 1', '"depot": 9', "known node as depot"),
        ('"name": "x"', '"name": null', "a string at name, found null"),
        ('"version": 1', '"version": 6, "news": 0', "found 6; update arcfleet"),
        ('"version": 1', '"version": "1"', "at version, found '1'"),
        ('"version": 1, ', "", "expected version, found no such key"),
        ("arcfleet-instance", "arcfleet-solution", "found 'arcfleet-solution'"),
        ('"capacity": 4', f'"capacity": 4, "{"k" * 300}": 4', f"found '{'k' * 57}...'"),
        ('"capacity": 4', '"capacity": 4, "a\\nb": 4', "found 'a\\nb'"),
        *(
            ('"capacity": 4', f'"capacity": 4, {new}', message)
            for new, message in (
                ('"turns": {}', "an array at turns, found an object"),
                ('"turns": [0, 0, 0, 1]', "an array of integers at turns[0], found 0"),
                ('"turns": [[0, 0, 0]]', "a turn as [link in, reverse in, link out, "),
                ('"turns": [[0, 0, 0, 2]]', "1 for reverse or 0 at turns[0][3], found 2"),
                ('"turns": [[0, 0, 0, "1"]]', "at turns[0][3], found '1'"),
                ('"turns": [[0, 0, 0, 1, -4]]', "at turns[0][4], found -4"),
                ('"turns": [[0, 0, 7, 1]]', "a link from 0 to 0, got 7 in turn 0"),
                ('"turns": [[0, 0, 0, 1], [0, 0, 0, 1]]', "every turn once"),
                ('"u_turns": "never"', "at u_turns, found 'never'"),
                ('"u_turn_penalty": -1', "at u_turn_penalty, found -1"),
                ('"cost_unit": "miles"', "at cost_unit, found 'miles'"),
            )
        ),
    ],
)
def test_mistake_is_an_error_with_its_place(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in SMALLEST
    with refused(FileError, message):
        parse(tmp_path, SMALLEST.replace(old, new, 1))


def test_ids_and_attributes_come_back_as_they_were(tmp_path: Path) -> None:
    own = {"surface": "gravel", "lanes": 2, "width": 2.5, "lit": True, "owner": None}
    link = street(1, 2, 3, ids=(7, "7", "B-3"), attributes=own)
    write(make_instance(link), tmp_path / "x.json")
    (again,) = read(tmp_path / "x.json").links
    assert again == link
    assert [type(each) for each in again.ids] == [int, str, str]
    assert dict(again.attributes) == own


def test_syntax_error_has_its_line(tmp_path: Path) -> None:
    with refused(FileError, "Expecting", 2):
        parse(tmp_path, SMALLEST.replace('"cost": 3', '"cost": '))


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, "[]", "{}", "{"])
def test_other_json_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(FileError):
        parse(tmp_path, text)


@pytest.mark.parametrize(
    ("comment", "has_coordinates", "attribution"),
    [
        ("Streets: City of Ulm, CC BY 4.0", True, "Streets: City of Ulm, CC BY 4.0"),
        ("\nCity of Ulm, CC BY\nwidened by hand", True, "City of Ulm, CC BY"),
        ("drawn by hand\n© City of Ulm", True, "drawn by hand\n© City of Ulm"),
        ("275 (cota superior)\n© us", False, "© us"),
        ("275 (cota superior)", False, ""),
    ],
)
def test_files_from_before_the_field_give_the_attribution_of_their_comment(
    tmp_path: Path, comment: str, has_coordinates: bool, attribution: str
) -> None:
    members = json.loads(SMALLEST) | {"comment": comment}
    if has_coordinates:
        members["coordinates"] = [[0.5, 1.5], [2.5, 1.5]]
    file = tmp_path / "old.json"
    file.write_text(json.dumps(members), encoding="utf-8")
    instance = read(file)
    assert (instance.comment, instance.attribution) == (comment, attribution)
    write(instance, file)
    assert "attribution" not in file.read_text(encoding="utf-8")
    assert read(file) == instance
    without = replace(instance, attribution="")
    write(without, file)
    assert read(file) == without


OPERATIONS = """{"format": "arcfleet-instance", "version": 3, "name": "x", "nodes": [-1, 2],
"links": [{"tail": -1, "head": 2, "cost": 3, "required": true}],
"vehicles": [{"name": "van", "start": 2, "capacity": 4}, {"name": "truck", "start": -1,
"end": 2, "capacity": 7, "count": 2, "forbidden_links": [0]}],
"facilities": [{"node": 2, "cost": 5}], "pins": [[0, 3]], "previous": [[0, 2]],
"locks": [{"route": 3, "services": [{"link": 0, "reverse": true}]}], "balance": 2}"""


def test_operations_are_read(tmp_path: Path) -> None:
    instance = parse(tmp_path, OPERATIONS)
    assert (instance.depot, instance.capacity) == (2, 7)  # of the vehicle types
    assert instance.fleet[1].end == 2
    assert instance.facilities == (Facility(node=2, cost=5),)
    assert instance.pins == (Assignment(0, 3),)
    assert instance.previous == (Assignment(0, 2),)
    assert instance.locks == (Lock(route=3, services=((0, True),)),)
    assert instance.balance == 2.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"start": 2', '"start": 7', "expected a known node as depot, got 7"),
        ('"start": 2', '"strat": 2', "found vehicles[0].strat; did you mean start?"),
        ('"capacity": 4', '"capacity": 0', "at vehicles[0].capacity, found 0"),
        ('"count": 2', '"count": 0', "at vehicles[1].count, found 0"),
        ('"forbidden_links": [0]', '"forbidden_links": [1]', "a link from 0 to 0, got 1"),
        ('"forbidden_links": [0]', '"forbidden_links": 0', "vehicles[1].forbidden_links"),
        ('"van"', '"a\\nb"', "to be one line of text, got 'a\\nb', vehicles[0]"),
        ('"node": 2', '"node": 3', "known node as facility, got 3"),
        ('"cost": 5', '"cost": -5', "at facilities[0].cost, found -5"),
        ('"pins": [[0, 3]]', '"pins": [[0]]', "[link, route] with routes counted from 1"),
        ('"pins": [[0, 3]]', '"pins": [[0, 0]]', "at pins[0], found"),
        ('"pins": [[0, 3]]', '"pins": [[0, 2]]', "pinned to route 2 and locked in route 3"),
        ('"previous": [[0, 2]]', '"previous": [[9, 2]]', "a link from 0 to 0, got 9"),
        ('"reverse": true', '"reverse": 1', "at locks[0].services[0].reverse, found 1"),
        ('[{"link": 0, "reverse": true}]', "[]", "got none, locks[0]"),
        ('"balance": 2', '"balance": -2', "balance between 0 and 1e+06, got -2.0"),
        ('"balance": 2', '"balance": "2"', "a number at balance, found '2'"),
        ('"balance": 2', '"capacity": 9', "expected capacity 7 beside vehicle types"),
        ('"balance": 2', '"empty_at_end": 0', "true or false at empty_at_end, found 0"),
        ('"balance": 2', '"exact_fleet": true', "a count of every vehicle type"),
    ],
)
def test_mistake_in_operations_is_an_error_with_its_place(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in OPERATIONS
    with refused(FileError, message):
        parse(tmp_path, OPERATIONS.replace(old, new, 1))


@pytest.mark.parametrize(
    ("changes", "version"),
    [
        ({}, 1),
        ({"cost_unit": "metres"}, 2),
        ({"max_route_cost": 5}, 3),
        ({"empty_at_end": False}, 3),
        ({"facilities": (Facility(node=1),)}, 3),
        ({"pins": (Assignment(0, 1),)}, 3),
        ({"change_price": 1, "u_turns": "forbidden"}, 3),
        ({"nodes": (-4, 1, 2)}, 3),
        ({"nodes": (0, 1, 2)}, 1),
        *(
            ({"links": (street(1, 2, 3, 1, **{field: value}),)}, version)
            for field, value, version in (
                ("metres", 9, 2),
                ("seconds", 9, 2),
                ("reverse_seconds", 9, 2),
                ("service_seconds", 9, 2),
                ("kind", "residential", 4),
                ("ways", (7,), 4),
                ("speed_kmh", 30.0, 4),
                ("reverse_speed_kmh", 30.0, 4),
            )
        ),
    ],
)
def test_oldest_version_that_holds_the_instance_is_written(
    tmp_path: Path, changes: dict[str, Any], version: int
) -> None:
    instance = replace(make_instance(street(1, 2, 3, 1)), **changes)
    write(instance, tmp_path / "x.json")
    assert json.loads((tmp_path / "x.json").read_text("utf-8"))["version"] == version
    assert read(tmp_path / "x.json") == instance


@pytest.mark.parametrize("half", ["\\ud800", "\\udbff", "\\udc00", "\\udfff"])
def test_halves_of_characters_are_refused(tmp_path: Path, half: str) -> None:
    file = tmp_path / "x.json"
    write(make_instance(street(1, 2, 3, 1)), file)
    file.write_text(file.read_text("utf-8").replace('"town"', f'"{half}"'), "utf-8")
    with refused(FileError, "expected a string that UTF-8 can hold at name, found"):
        read(file)
    for whole in ("\ud7ff", "\ue000"):
        file.write_text(file.read_text("utf-8").replace(half, whole), "utf-8")
        assert read(file).name == whole
        file.write_text(file.read_text("utf-8").replace(whole, half), "utf-8")


def test_letters_stay_letters(tmp_path: Path) -> None:
    instance = make_instance(street(1, 2, 3, 1, name="Größe, Łódź"))
    write(instance, tmp_path / "x.json")
    assert "Größe, Łódź" in (tmp_path / "x.json").read_text("utf-8")
    assert read(tmp_path / "x.json") == instance


def test_zeros_may_be_written_out(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    instance = make_instance(street(1, 2, 0, 0))
    write(instance, file)
    document = json.loads(file.read_text("utf-8"))
    zeros = ("route_cost", "u_turn_penalty", "compactness", "change_price", "balance")
    document |= {"version": 3} | dict.fromkeys(zeros, 0)
    document["locks"] = [
        {"route": 1, "services": [{"link": 0, "reverse": False}], "vehicle": 0}
    ]
    document["facilities"] = [{"node": 1, "cost": 0}]
    file.write_text(json.dumps(document), "utf-8")
    assert read(file) == replace(
        instance,
        locks=(Lock(route=1, services=((0, False),)),),
        facilities=(Facility(node=1),),
    )
    file.write_text(json.dumps(document | {"upper_bound": 0, "stated_vehicles": 0}))
    assert (read(file).upper_bound, read(file).stated_vehicles) == (0, 0)
