"""Vehicles, facilities, pins and locks are checked where they are made."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from arcfleet.errors import InstanceError
from arcfleet.instance.instance import MAX_NUMBER
from arcfleet.instance.operations import Assignment, Facility, Lock, Vehicle
from tests.helpers import make_instance, refused, street

#: Links 0 and 1 are required, link 2 is not.
TOWN = make_instance(street(1, 2, 1, 1), street(2, 3, 1, 1), street(3, 1))
VAN: dict[str, Any] = {"name": "van", "start": 1, "capacity": 5}
NUMBERS = [("capacity", 1), ("fixed_cost", 0), ("count", 1), ("max_route_cost", 1)]


@pytest.mark.parametrize(("field", "least"), NUMBERS)
def test_numbers_of_a_vehicle(field: str, least: int) -> None:
    for right in (least, MAX_NUMBER):
        assert getattr(Vehicle(**{**VAN, field: right}), field) == right
    for wrong in (least - 1, MAX_NUMBER + 1):
        between = f"expected {field} between {least} and {MAX_NUMBER}, got {wrong} on veh"
        with refused(InstanceError, between):
            Vehicle(**{**VAN, field: wrong})
    for other in (True, 1.5, "3"):
        with refused(InstanceError, f"expected {field} to be an integer, got {other!r}"):
            Vehicle(**{**VAN, field: other})


@pytest.mark.parametrize("name", ["", "two\nlines", 7, None])
def test_name_of_a_vehicle(name: Any) -> None:
    with refused(InstanceError, "expected the name of a vehicle to be one line of text"):
        Vehicle(**{**VAN, "name": name})


def test_links_forbidden_to_a_vehicle() -> None:
    listed: Any = [0, 2]
    assert Vehicle(**VAN, forbidden_links=listed).forbidden_links == (0, 2)
    with refused(InstanceError, "expected forbidden link between 0 and"):
        Vehicle(**VAN, forbidden_links=(-1,))
    with refused(InstanceError, "expected every forbidden link once, got one twice on veh"):
        Vehicle(**VAN, forbidden_links=(1, 1))


def test_a_vehicle_ends_where_it_starts_unless_told() -> None:
    assert Vehicle(**VAN).depots == (1, 1)
    assert Vehicle(**VAN, end=3).depots == (1, 3)


def test_a_vehicle_in_words() -> None:
    assert Vehicle(**VAN).describe() == "van, capacity 5"
    told = Vehicle(
        **VAN, count=3, fixed_cost=7, max_route_cost=90, forbidden_links=(0, 1)
    ).describe()
    assert told.startswith("van, capacity 5, at most 3, fixed cost 7, ")
    assert told.endswith(" 90, 2 links forbidden")


def test_a_facility() -> None:
    assert Facility(node=1) == Facility(node=1, cost=0, name="")
    with refused(InstanceError, "expected cost between 0 and"):
        Facility(node=1, cost=-1)
    nameless: Any = 7
    with refused(
        InstanceError, "expected name to be a text, got 7 on the facility at node"
    ):
        Facility(node=1, name=nameless)


def test_an_assignment() -> None:
    assert Assignment(0, 1).route == 1
    with refused(InstanceError, "expected link between 0 and"):
        Assignment(-1, 1)
    with refused(InstanceError, "expected route between 1 and"):
        Assignment(0, 0)


def test_a_lock() -> None:
    listed: Any = [[0, False], [1, True]]
    assert Lock(route=1, services=listed).services == ((0, False), (1, True))
    assert Lock(route=1, services=((0, False),)).vehicle == 0
    counted: Any = {"route": np.int64(2), "vehicle": np.int32(1)}
    kept = Lock(**counted, services=((0, False),))
    assert [(type(x), x) for x in (kept.route, kept.vehicle)] == [(int, 2), (int, 1)]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"route": 0}, "expected route between 1 and"),
        ({"vehicle": -1}, "expected vehicle between 0 and"),
        ({"services": ()}, "expected services of locked route 1, got none"),
        ({"services": ((-1, False),)}, "expected link between 0 and"),
        (
            {"services": ((0, 1),)},
            "expected reverse to be True or False, got 1 of a locked",
        ),
    ]
    for change, message in wrong:
        with refused(InstanceError, message):
            Lock(**{"route": 1, "services": ((0, False),), **change})


def lock(route: int, *links: int, vehicle: int = 0) -> Lock:
    return Lock(
        route=route, services=tuple((link, False) for link in links), vehicle=vehicle
    )


RIGHT: list[dict[str, Any]] = [
    {"vehicles": (Vehicle(**VAN, forbidden_links=(2,)), Vehicle(**{**VAN, "name": "b"}))},
    {"facilities": (Facility(node=1), Facility(node=3))},
    {"exact_fleet": True, "fleet_limit": 2},
    {"locks": (lock(1, 0), lock(2, 1)), "pins": (Assignment(0, 1), Assignment(1, 2))},
    {"locks": (lock(1, 0),), "pins": (Assignment(1, 2),)},
    {"locks": (lock(1, 0),), "previous": (Assignment(0, 2), Assignment(1, 1))},
]
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"vehicles": (Vehicle(**VAN),) * 2}, "a name of its own for every vehicle type, got"),
    (
        {"vehicles": (Vehicle(**{**VAN, "start": 9}),), "depot": 9},
        "got 9",
    ),
    (
        {"vehicles": (Vehicle(**VAN, end=9),)},
        "a known node as depot of vehicle 'van', got 9",
    ),
    (
        {"vehicles": (Vehicle(**VAN, forbidden_links=(3,)),)},
        "expected a link from 0 to 2, got 3 forbidden to vehicle 'van'",
    ),
    ({"facilities": (Facility(node=9),)}, "expected a known node as facility, got 9"),
    ({"facilities": (Facility(node=1),) * 2}, "expected one facility per node, got two"),
    ({"exact_fleet": True}, "a count of every vehicle type where the fleet is exact"),
    (
        {
            "exact_fleet": True,
            "vehicles": (Vehicle(**VAN, count=1), Vehicle(**{**VAN, "name": "b"})),
        },
        "a count of every vehicle type where the fleet is exact",
    ),
    ({"locks": (lock(1, 0, vehicle=1),)}, "expected a vehicle type from 0 to 0, got 1 of"),
    (
        {"locks": (lock(1, 2),)},
        "expected a required link, got link 2 (3-1) in locked route 1",
    ),
    ({"locks": (lock(1, 3),)}, "expected a link from 0 to 2, got 3 in locked route 1"),
    (
        {"locks": (lock(1, 0), lock(2, 1, 0))},
        "every link in one locked route, got link 0 (1-2) in route 1 and in route 2",
    ),
    ({"locks": (lock(1, 0), lock(1, 1))}, "every locked route once, got one twice"),
    ({"pins": (Assignment(2, 1),)}, "expected a required link, got link 2 (3-1) in pins"),
    ({"previous": (Assignment(3, 1),)}, "a link from 0 to 2, got 3 in previous"),
    (
        {"pins": (Assignment(0, 1), Assignment(0, 2))},
        "every link once in pins, got link 0 (1-2) for route 1 and for route 2",
    ),
    (
        {"previous": (Assignment(0, 1), Assignment(0, 2))},
        "every link once in previous, got link 0 (1-2) for route 1 and for route 2",
    ),
    (
        {"locks": (lock(1, 0),), "pins": (Assignment(0, 2),)},
        "link 0 (1-2) pinned to route 2 and locked in route 1",
    ),
    (
        {"locks": (lock(1, 0),), "pins": (Assignment(1, 1),)},
        "link 1 (2-3) pinned to route 1, which is locked without it",
    ),
]


@pytest.mark.parametrize("change", RIGHT)
def test_what_fits_the_instance(change: dict[str, Any]) -> None:
    fitted = replace(TOWN, **{"capacity": 5, **change})
    assert all(getattr(fitted, field) == value for field, value in change.items())


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_what_does_not_fit_the_instance(change: dict[str, Any], message: str) -> None:
    with refused(InstanceError, message):
        replace(TOWN, **{"capacity": 5, **change})
