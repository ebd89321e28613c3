from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from arcfleet import Assignment, Instance, InstanceError, Lock, OptionError
from arcfleet.instance.change import exclude, find_links, fold_name, pin, require
from tests.helpers import make_instance, refused, street
from tests.strategies import instances


@pytest.fixture
def town() -> Instance:
    return make_instance(
        street(1, 2, 10, 3, name="High Street", metres=100),
        street(2, 3, 10, 4, name="high  street", service_cost=30, seconds=5),
        street(3, 1, 20, 5, name="Müllerstraße", service_seconds=9, seconds=3),
        street(3, 4, 8, name="Allée", metres=80, seconds=4),
        street(4, 1, 6, name="High Street"),
    )


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("HIGH STREET", (0, 1)),
        ("mullerstrasse", (2,)),
        ("link:1", (1,)),
        (2, (2,)),
    ],
)
def test_names_match_regardless_of_case_and_accents(
    town: Instance, name: str | int, found: tuple[int, ...]
) -> None:
    assert find_links(town, name) == found


@given(st.text(max_size=8))
@example("\U0001d504")  # a letter of mathematics
def test_a_name_matches_itself_in_any_case(name: str) -> None:
    assert fold_name(name) == fold_name(fold_name(name))
    assert fold_name(f" {name}  ") == fold_name(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Hihg Street", "did you mean 'High Street' or 'high street'?"),
        ("Broadway 77", "check its spelling"),
        ("", "expected the name of a street"),
        ("link:99", "expected a link from 0 to 4 in instance 'town', got 'link:99'"),
        ("link:x", "expected a link from 0 to 4 in instance 'town', got 'link:x'"),
        ("allee", "which is only driven on"),
        (-1, "expected a link from 0 to 4 in instance 'town', got -1"),
    ],
)
def test_unknown_streets_are_named_in_one_sentence(
    town: Instance, name: str | int, message: str
) -> None:
    known = replace(town, links=(*town.links[:1], *town.links[1:]))
    with refused(OptionError, message.partition(" or ")[0].rstrip("?")):
        exclude(known, [name])


def test_streets_without_names_are_known_by_position() -> None:
    with refused(OptionError, "its streets have no names, use positions"):
        exclude(make_instance(street(1, 2, 1, 1)), ["High Street"])


def test_excluded_streets_are_driven_on_only(town: Instance) -> None:
    rich = replace(
        town,
        pins=(Assignment(0, 1), Assignment(2, 2)),
        locks=(Lock(route=3, services=((1, False),)),),
        previous=(Assignment(1, 3), Assignment(2, 1)),
    )
    today = exclude(rich, ["High Street"])
    assert today.required == (2,)
    assert [link.cost for link in today.links] == [link.cost for link in town.links]
    assert today.pins == (Assignment(2, 2),)
    assert today.previous == (Assignment(2, 1),)
    assert today.locks == ()


@given(instances())
def test_excluding_all_leaves_nothing_to_serve(instance: Instance) -> None:
    assert exclude(instance, instance.required).required == ()
    assert exclude(instance, []) == instance


def test_required_streets_cost_as_much_more_than_driving(town: Instance) -> None:
    today = require(town, {"allee": "length", "high street": 7})
    assert today.required == (0, 1, 2, 3, 4)
    added = today.links[3]
    # Service costs 1, 3 and 1 times as much as driving; time is known on one link.
    assert (added.demand, added.service_cost, added.reverse_service_cost) == (80, 13, 13)
    assert added.service_seconds == 12
    assert today.links[4].demand == 7
    assert today.links[:3] == town.links[:3]
    with refused(OptionError, "which is required already"):
        require(town, {"Müllerstrasse": 3})
    with refused(OptionError, "whose length is unknown"):
        require(town, {"High Street": "length"})


def test_pins_hold_all_links_of_a_name(town: Instance) -> None:
    pinned = pin(town, {"High Street": 2})
    assert pinned.pins == (Assignment(0, 2), Assignment(1, 2))
    assert pin(pinned, [("link:0", 2)]).pins == pinned.pins
    with refused(InstanceError, "for route 2 and for route 3"):
        pin(town, [("High Street", 2), ("HIGH STREET", 3)])
    with refused(InstanceError, "expected route between 1"):
        pin(town, {"High Street": 0})


def test_a_new_pin_replaces_that_of_its_street(town: Instance) -> None:
    pinned = pin(town, {"High Street": 2, 2: 1})
    again = pin(pinned, {"link:0": 3})
    assert set(again.pins) == {Assignment(0, 3), Assignment(1, 2), Assignment(2, 1)}


def test_a_single_text_is_one_name(town: Instance) -> None:
    assert exclude(town, "High Street") == exclude(town, ["High Street"])
    assert exclude(town, 2) == exclude(town, [2])


@pytest.mark.parametrize(
    ("change", "wrong", "message"),
    [
        (exclude, [None], "the position of a link, got None"),
        (exclude, None, "expected names of streets as in ['Mill Lane'], got None"),
        (pin, ["High Street"], "as in {'Mill Lane': 2}, got 'High Street'"),
        (pin, "Av", "as in {'Mill Lane': 2}, got 'A'"),
        (pin, 3, "as in {'Mill Lane': 2}, got 3"),
        (require, ["Allée"], "as in {'Mill Lane': 120}, got ['Allée']"),
    ],
)
def test_slips_are_one_sentence(
    town: Instance, change: Any, wrong: object, message: str
) -> None:
    with refused(OptionError, message):
        change(town, wrong)
