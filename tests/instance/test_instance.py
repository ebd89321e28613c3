import dataclasses
import json
import math
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from shapely import LineString

from arcfleet import Assignment, Facility, Stop, Turn, Vehicle, read
from arcfleet.errors import InstanceError
from arcfleet.instance.instance import MAX_NODE, MAX_NUMBER, MIN_NODE, Instance, Link
from tests.helpers import refused, solved, street


def make_instance(**changes: Any) -> Instance:
    fields: dict[str, Any] = {
        "name": "tiny",
        "nodes": (1, 2, 3),
        "links": (
            street(1, 2, 5, 4, name="High Street"),
            street(2, 3, 6, one_way=True),
            street(3, 1, 7, reverse_cost=9),
        ),
        "depot": 1,
        "capacity": 10,
    }
    return Instance(**(fields | changes))


def test_link_fills_in_reverse_and_service_costs() -> None:
    link = street(1, 2, 5, 0, reverse_cost=8)
    assert (link.service_cost, link.reverse_service_cost) == (5, 8)
    assert street(1, 2, 5).reverse_cost == 5
    # A given service cost holds in both directions; a one-way link has but one.
    assert street(1, 2, 5, 0, reverse_cost=8, service_cost=20).reverse_service_cost == 20
    one_way = street(1, 2, 5, 0, one_way=True)
    assert (one_way.reverse_cost, one_way.reverse_service_cost) == (None, None)


def test_links_that_mean_the_same_are_equal() -> None:
    short = street(1, 2, 5, 0)
    long = street(1, 2, 5, 0, reverse_cost=5, service_cost=5, reverse_service_cost=5)
    assert short == long
    assert hash(short) == hash(long)
    assert short != street(2, 1, 5, 0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cost": -1}, "expected cost between 0 and"),
        ({"cost": MAX_NUMBER + 1}, "expected cost between 0 and"),
        ({"cost": 1.5}, "expected cost to be an integer, got 1.5"),
        ({"cost": True}, "expected cost to be an integer, got True"),
        ({"tail": MIN_NODE - 1}, "expected tail between -9223372036854775807"),
        ({"head": MAX_NODE + 1}, "expected head between -9223372036854775807 and"),
        ({"required": True, "demand": -3}, "expected demand between 0 and"),
        ({"demand": 3}, "expected demand 0 on a link that is not required, got 3"),
        ({"service_cost": 3}, "expected no service_cost on a link that is not required"),
        ({"one_way": True, "reverse_cost": 3}, "no reverse_cost on a one-way link"),
        (
            {"one_way": True, "required": True, "reverse_service_cost": 3},
            "expected no reverse_service_cost on a one-way link",
        ),
        ({"required": "no"}, "required to be True or False"),
        ({"one_way": 1}, "one_way to be True or False"),
        ({"name": None}, "name to be a text"),
        ({"geometry": ((1.0, 2.0),)}, "at least its two end points, got 1 point"),
        ({"geometry": ((1.0, 2.0), (1.0, math.nan))}, "two finite floats"),
    ],
)
def test_link_rejects(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InstanceError, match=message):
        Link(**({"tail": 1, "head": 2, "cost": 5} | fields))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": (1, 2, 2, 3)}, "expected every node once, got node 2 twice"),
        ({"nodes": (1, 2)}, r"got node 3 on link 1 \(2>3\) in instance 'tiny'"),
        ({"depot": 4}, "expected a known node as depot, got 4"),
        ({"capacity": 0}, "expected capacity between 1 and"),
        ({"route_cost": -1}, "expected route_cost between 0 and"),
        ({"fleet_limit": 0}, "expected fleet_limit between 1 and"),
        ({"stated_vehicles": -1}, "expected stated_vehicles between 0 and"),
        ({"upper_bound": "12"}, "expected upper_bound to be an integer, got '12'"),
        ({"coordinates": ((0.0, 0.0),)}, "coordinates for all 3 nodes or for none, got 1"),
        *(
            ({"coordinates": ((0.0, 0.0), (0.0, 1.0), last)}, "two finite floats.*node 3")
            for last in ((0.0, "1"), (0.0, math.nan), (0.0,), (0.0, True), 5, None)
        ),
        ({"name": 5}, "name to be a text"),
        ({"comment": None}, "comment to be a text"),
        ({"name": "\ud800"}, "UTF-8"),
        ({"depot": 1.5}, "depot to be an integer"),
        ({"depot": True}, "depot to be an integer"),
        ({"links": (3,)}, "expected links, got 3"),
        ({"vehicles": None}, r"vehicles as a tuple, got None in .*: give \(\) for none"),
    ],
)
def test_instance_rejects(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InstanceError, match=message):
        make_instance(**changes)


def test_required_and_total_demand() -> None:
    instance = make_instance(links=(street(1, 2), street(1, 2, 1, 3), street(2, 2, 1, 4)))
    assert instance.required == (1, 2)
    assert instance.total_demand == 7


def test_lists_become_tuples() -> None:
    listed = make_instance(
        links=list(make_instance().links), nodes=list(make_instance().nodes)
    )
    assert listed == make_instance()
    assert hash(listed) == hash(make_instance())


def test_describe_link_tells_direction_and_street() -> None:
    instance = make_instance()
    assert instance.describe_link(0) == "link 0 (1-2, High Street)"
    assert instance.describe_link(1) == "link 1 (2>3)"


def test_instance_is_a_value() -> None:
    instance = make_instance()
    assert instance == make_instance()
    assert instance != make_instance(capacity=11)
    assert hash(instance) == hash(make_instance())
    assert pickle.loads(pickle.dumps(instance)) == instance


def test_instance_and_link_are_frozen() -> None:
    instance = make_instance()
    with pytest.raises(dataclasses.FrozenInstanceError):
        instance.capacity = 3  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        instance.links[0].cost = 3  # type: ignore[misc]


def test_replace_checks_again() -> None:
    with pytest.raises(InstanceError, match="capacity"):
        dataclasses.replace(make_instance(), capacity=-1)
    assert dataclasses.replace(make_instance(), capacity=7).capacity == 7


def test_ends_and_costs_follow_the_direction() -> None:
    link = street(1, 2, 3, 0, reverse_cost=4, service_cost=5, reverse_service_cost=6)
    assert (link.ends(reverse=False), link.ends(reverse=True)) == ((1, 2), (2, 1))
    costs = [link.step_cost(r, serves=s) for s in (False, True) for r in (False, True)]
    assert costs == [3, 4, 5, 6]
    one_way = street(1, 2, 3, one_way=True)
    assert one_way.step_cost(True, serves=False) is None
    assert one_way.step_cost(False, serves=True) is None


def test_the_notice_names_the_attribution_once() -> None:
    assert make_instance().notice == ""
    assert make_instance(attribution="© us").notice == "© us"
    for comment in ("old", "© us; old"):
        assert make_instance(attribution="© us", comment=comment).notice == "© us; old"


def test_a_long_name_does_not_fill_the_message(small: Instance) -> None:
    with pytest.raises(InstanceError) as raised:
        dataclasses.replace(small, name="x" * 10_000, depot=-99)
    assert len(str(raised.value)) < 300


def test_numbers_of_numpy_and_points_of_any_kind_are_taken() -> None:
    numbers: list[Any] = [np.int64(0), np.int64(1), np.int32(2), np.bool_(True)]
    none, one, two, yes = numbers
    shapes: dict[str, Any] = {
        "list": [[8, 48], [8.5, 48]],
        "line": LineString([(8.5, 48, 200), (9, 48, 210)]),
        "ways": np.array([7, 8]),
    }
    given: dict[str, Any] = {
        "links": [
            street(one, two, np.float64(3), one, geometry=shapes["list"]),  # type: ignore[arg-type]
            street(two, 3, 4, geometry=shapes["line"]),
            Link(tail=3, head=one, cost=two, ways=shapes["ways"]),
        ],
        "coordinates": {1: (8, 48), 2: [8.5, 48], 3: np.array([9, 48])},
        "vehicles": [Vehicle(name="van", start=one, capacity=two, count=two)],
        "facilities": [Facility(node=two, cost=one)],
        "pins": [Assignment(none, one)],
        "turns": [Turn(none, False, one, False, two)],
        "empty_at_end": yes,
    }
    instance = Instance(depot=one, capacity=two, **given)
    assert instance == read_again(instance)
    assert instance.links[1].geometry == ((8.5, 48.0), (9.0, 48.0))
    assert type(instance.vehicles[0].start) is type(instance.facilities[0].cost) is int
    assert Stop(iterations=two) == Stop(iterations=2)
    assert solved(instance, stop=Stop(iterations=5), seed=one).seed == 1


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        (np.array([4, 5]), (4, 5)),
        ("B-3", ("B-3",)),
        (np.int64(7), (7,)),
        ([7.0, "a"], (7, "a")),
        ([], ()),
    ],
)
def test_ids_of_any_kind_are_plain(given: Any, ids: tuple[object, ...]) -> None:
    half: Any = np.float32(0.5)
    link = Link(tail=1, head=2, cost=3, ids=given, attributes={"a": half})
    assert link.ids == ids
    assert [type(one) for one in link.ids] == [type(one) for one in ids]
    assert type(link.attributes["a"]) is float
    assert hash(link) == hash(dataclasses.replace(link))
    assert pickle.loads(pickle.dumps(link)) == link


@pytest.mark.parametrize(
    "fields",
    [
        {"ids": [True]},
        {"ids": [None]},
        {"ids": [1.5]},
        {"ids": [""]},
        {"ids": [2**63]},
        {"ids": [10**5000]},
        {"attributes": [("a", 1)]},
        {"attributes": {1: 1}},
        {"attributes": {"a": math.nan}},
        {"attributes": {"a": [1]}},
        {"attributes": {"a": 10**5000}},
    ],
)
def test_ids_and_attributes_that_are_none_are_refused(fields: dict[str, Any]) -> None:
    with refused(InstanceError, "on link 1-2"):
        Link(tail=1, head=2, cost=3, **fields)


def read_again(instance: Instance) -> Instance:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.json"
        path.write_text(json.dumps(instance.to_dict()), encoding="utf-8")
        return read(path)
