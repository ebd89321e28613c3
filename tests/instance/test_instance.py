import dataclasses
import math
import pickle
from typing import Any

import pytest

from arcfleet.errors import InstanceError
from arcfleet.instance.instance import MAX_NODE, MAX_NUMBER, Instance, Link


def make_instance(**changes: Any) -> Instance:
    fields: dict[str, Any] = {
        "name": "tiny",
        "nodes": (1, 2, 3),
        "links": (
            Link(tail=1, head=2, cost=5, required=True, demand=4, name="High Street"),
            Link(tail=2, head=3, cost=6, one_way=True),
            Link(tail=3, head=1, cost=7, reverse_cost=9),
        ),
        "depot": 1,
        "capacity": 10,
    }
    return Instance(**(fields | changes))


def test_link_fills_in_reverse_and_service_costs() -> None:
    link = Link(tail=1, head=2, cost=5, reverse_cost=8, required=True)
    assert (link.service_cost, link.reverse_service_cost) == (5, 8)
    assert Link(tail=1, head=2, cost=5).reverse_cost == 5


def test_given_service_cost_holds_in_both_directions() -> None:
    link = Link(tail=1, head=2, cost=5, reverse_cost=8, required=True, service_cost=20)
    assert link.reverse_service_cost == 20


def test_one_way_link_has_no_reverse_costs() -> None:
    link = Link(tail=1, head=2, cost=5, one_way=True, required=True)
    assert link.reverse_cost is None
    assert link.reverse_service_cost is None


def test_links_that_mean_the_same_are_equal() -> None:
    short = Link(tail=1, head=2, cost=5, required=True)
    long = Link(
        tail=1,
        head=2,
        cost=5,
        reverse_cost=5,
        required=True,
        service_cost=5,
        reverse_service_cost=5,
    )
    assert short == long
    assert hash(short) == hash(long)
    assert short != Link(tail=2, head=1, cost=5, required=True)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cost": -1}, "expected cost between 0 and"),
        ({"cost": MAX_NUMBER + 1}, "expected cost between 0 and"),
        ({"cost": 1.5}, "expected cost to be an integer, got 1.5"),
        ({"cost": True}, "expected cost to be an integer, got True"),
        ({"tail": -1}, "expected tail between 0 and"),
        ({"head": MAX_NODE + 1}, "expected head between 0 and"),
        ({"required": True, "demand": -3}, "expected demand between 0 and"),
        ({"demand": 3}, "expected demand 0 on a link that is not required, got 3"),
        ({"service_cost": 3}, "expected no service_cost on a link that is not required"),
        (
            {"one_way": True, "reverse_cost": 3},
            "expected no reverse_cost on a one-way link",
        ),
        (
            {"one_way": True, "required": True, "reverse_service_cost": 3},
            "expected no reverse_service_cost on a one-way link",
        ),
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
        ({"coordinates": ((0.0, 0.0), (0.0, 1.0), (0, 1))}, "two finite floats.*node 3"),
    ],
)
def test_instance_rejects(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InstanceError, match=message):
        make_instance(**changes)


def test_required_and_total_demand() -> None:
    links = (
        Link(tail=1, head=2, cost=1),
        Link(tail=1, head=2, cost=1, required=True, demand=3),
        Link(tail=2, head=2, cost=1, required=True, demand=4),
    )
    instance = make_instance(links=links)
    assert instance.required == (1, 2)
    assert instance.total_demand == 7


def test_lists_become_tuples() -> None:
    listed = make_instance(
        links=list(make_instance().links), nodes=list(make_instance().nodes)
    )
    assert listed == make_instance()
    assert hash(listed) == hash(make_instance())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": 5}, "name to be a text"),
        ({"comment": None}, "comment to be a text"),
        ({"name": "\ud800"}, "UTF-8"),
        ({"depot": 1.0}, "depot to be an integer"),
        ({"depot": True}, "depot to be an integer"),
        ({"links": (3,)}, "expected links, got 3"),
    ],
)
def test_instance_rejects_wrong_types(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InstanceError, match=message):
        make_instance(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"required": "no"}, "required to be True or False"),
        ({"one_way": 1}, "one_way to be True or False"),
        ({"name": None}, "name to be a text"),
    ],
)
def test_link_rejects_wrong_types(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InstanceError, match=message):
        Link(tail=1, head=2, cost=3, **changes)


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
    link = Link(
        tail=1,
        head=2,
        cost=3,
        reverse_cost=4,
        required=True,
        service_cost=5,
        reverse_service_cost=6,
    )
    assert (link.ends(reverse=False), link.ends(reverse=True)) == ((1, 2), (2, 1))
    costs = [link.step_cost(r, serves=s) for s in (False, True) for r in (False, True)]
    assert costs == [3, 4, 5, 6]
    one_way = Link(tail=1, head=2, cost=3, one_way=True)
    assert one_way.step_cost(True, serves=False) is None
    assert one_way.step_cost(False, serves=True) is None


def test_the_notice_names_the_attribution_once() -> None:
    instance = Instance(name="x", nodes=(1,), links=(), depot=1, capacity=1)
    assert instance.notice == ""
    assert (
        dataclasses.replace(instance, attribution="© us", comment="old").notice
        == "© us; old"
    )
    assert (
        dataclasses.replace(instance, attribution="© us", comment="© us; old").notice
        == "© us; old"
    )
    assert dataclasses.replace(instance, attribution="© us").notice == "© us"
