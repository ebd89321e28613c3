from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arcfleet import FileError, MapError, OptionError, Vehicle, check, repair
from arcfleet.instance.diagnose import diagnose
from arcfleet.instance.instance import Coordinate
from arcfleet.streets.area import Circle
from arcfleet.streets.fleet import (
    SceneOperations,
    ScenePlace,
    SceneVehicle,
    parse_shift,
    read_vehicles,
)
from arcfleet.streets.scene import Scene, SceneRules, cut_scene, make_scene
from arcfleet.streets.street_map import Street
from arcfleet.streets.turns import FREE_TURNS, TurnPolicy
from tests.helpers import NO_ROUTES, refused
from tests.streets.test_scene import STEP, grid


def at(column: int, row: int) -> Coordinate:
    """A place beside a junction of the grid."""
    return 5.0 + STEP * column + STEP / 10, STEP * row


def make_rules(**options: Any) -> SceneRules:
    return SceneRules(capacity=500, turns=FREE_TURNS, **options)


def test_places_are_at_the_nearest_junctions() -> None:
    operations = SceneOperations(
        depots=(at(4, 3),), facilities=(ScenePlace(place=at(0, 3), cost=7),), shift="2 km"
    )
    scene = cut_scene(grid(), make_rules(depot=at(1, 0), operations=operations))
    instance = scene.instance
    assert [(x.name, x.start, x.max_route_cost) for x in instance.fleet] == [
        ("depot 1", 1, 2000),
        ("depot 2", 34, 2000),
    ]
    assert [(x.node, x.cost) for x in instance.facilities] == [(30, 7)]
    assert all(0 < metres < 20 for metres in scene.place_metres.values())
    assert len(scene.place_metres) == 2
    repaired = repair(instance, NO_ROUTES)
    assert repaired.ok
    assert check(instance, repaired.solution).faults == ()


def test_vehicles_have_depots_capacities_and_streets_they_may_not_use() -> None:
    vehicles = (
        SceneVehicle(name="large", count=2, shift=5000, forbidden_names=("2 avenue",)),
        SceneVehicle(name="small", capacity=120, depot=at(4, 3), end=at(0, 0)),
        SceneVehicle(name="tall", fixed_cost=3, forbidden_kinds=("Residential",)),
    )
    operations = SceneOperations(vehicles=vehicles, exact_fleet=False, shift=9000)
    instance = make_scene(grid(), make_rules(depot=at(1, 0), operations=operations))
    large, small, tall = instance.vehicles
    assert (large.start, large.capacity, large.count) == (1, 500, 2)
    assert large.max_route_cost == 5000
    assert {instance.links[x].name for x in large.forbidden_links} == {"2 Avenue"}
    assert (small.start, small.end, small.capacity) == (34, 0, 120)
    assert small.max_route_cost == 9000
    assert len(tall.forbidden_links) == sum("Street" in x.name for x in instance.links)
    assert (instance.depot, instance.capacity, instance.max_route_cost) == (1, 500, None)


@pytest.mark.parametrize("turns", [FREE_TURNS, TurnPolicy()])
def test_forbidden_streets_are_not_served_for_that_reason(turns: TurnPolicy) -> None:
    # A dead end, 3-103-203, at the end of which 203 is reached by a forbidden street only.
    town = grid()
    more = {103: (5.0, 0.004), 203: (5.0, 0.005)}
    dead_end = (
        Street(tail=30, head=103, metres=100.0, kind="track", name="Forest Way"),
        Street(tail=103, head=203, metres=100.0, kind="path", name="Far Way"),
    )
    streets = (*town.streets, *dead_end)
    town = replace(town, junctions={**town.junctions, **more}, streets=streets)
    vehicles = (
        SceneVehicle(name="a", forbidden_kinds=("track",)),
        SceneVehicle(name="b", forbidden_names=("Forest Way",)),
    )
    operations = SceneOperations(vehicles=vehicles)
    rules = replace(make_rules(depot=at(1, 0), operations=operations), turns=turns)
    scene = cut_scene(town, rules)
    assert [(one.street.name, one.reason) for one in scene.unserved] == [
        ("Forest Way", "forbidden to every vehicle type"),
        ("Far Way", "streets forbidden to the vehicle types leave no way there or back"),
    ]
    (warning,) = scene.warnings
    assert "NOT in the instance, because no vehicle type may drive there" in warning
    assert len(scene.instance.required) == len(streets) - 2
    assert diagnose(scene.instance) == ()


def test_a_scene_that_is_forbidden_as_a_whole_is_refused() -> None:
    vehicle = SceneVehicle(name="a", forbidden_kinds=("primary", "residential"))
    with refused(MapError, "found none among 31: forbidden to every vehicle type"):
        cut_scene(grid(), make_rules(operations=SceneOperations(vehicles=(vehicle,))))


def test_forbidden_kinds_and_names_that_the_scene_lacks_are_warned_of() -> None:
    vehicle = SceneVehicle(
        name="a", forbidden_kinds=("residental", "path"), forbidden_names=("2nd Avenue",)
    )
    rules = make_rules(operations=SceneOperations(vehicles=(vehicle,)))
    scene = cut_scene(grid(), rules)
    assert scene.warnings == (
        "vehicle 'a' may not use streets of kind 'residental', of which the scene has "
        "none: did you mean 'residential'?",
        "vehicle 'a' may not use streets of kind 'path', of which the scene has none: "
        "there are primary, residential",
        "vehicle 'a' may not use streets named '2nd Avenue', of which the scene has none: "
        "did you mean '2 Avenue'?",
    )
    assert scene.instance.vehicles[0].forbidden_links == ()


def test_a_vehicle_that_cannot_leave_its_depot_is_warned_of() -> None:
    vehicles = (
        SceneVehicle(name="a"),
        SceneVehicle(name="b", forbidden_kinds=("primary", "residential")),
    )
    rules = make_rules(depot=at(1, 0), operations=SceneOperations(vehicles=vehicles))
    assert cut_scene(grid(), rules).warnings == (
        "vehicle 'b' cannot leave depot 1, because all links that lead out of it are "
        "forbidden to it",
    )


def test_places_far_from_every_junction_are_warned_of() -> None:
    operations = SceneOperations(
        depots=((5.0, -0.004),), facilities=(ScenePlace(place=(5.0, 0.006), name="tip"),)
    )
    scene = cut_scene(grid(), make_rules(depot=(4.996, 0.0), operations=operations))
    assert scene.warnings == (
        "the depot at 4.996,0 is 445 m from the nearest junction that it can be at, 0: "
        "check the place, and whether the map has its street",
        "the depot at 5,-0.004 is 442 m from the nearest junction that it can be at, 0: "
        "check the place, and whether the map has its street",
        "the facility at 5,0.006 is 332 m from the nearest junction that it can be at, 30: "
        "check the place, and whether the map has its street",
    )


def test_a_shift_that_streets_do_not_fit_is_warned_of_or_refused() -> None:
    # One street from the depot and back is 222 m, the farthest is 14 blocks of 111 m.
    def make(shift: str) -> Scene:
        operations = SceneOperations(shift=shift)
        return cut_scene(grid(), make_rules(depot=at(0, 0), operations=operations))

    assert make("1.7km").warnings == ()
    scene = make("1km")
    (warning,) = scene.warnings
    (problem,) = diagnose(scene.instance)
    assert warning == f"no plan can exist: {problem.message}"
    assert "longest route (1000 metres), got up to 1554 for the way to link" in warning
    assert warning.endswith("(raise it to 1554 or do not require these 12 links)")
    with refused(MapError, "expected a longest route that some street fits into, got"):
        make("100m")


def test_many_trips_to_a_facility_are_no_routes() -> None:
    operations = SceneOperations(facilities=(ScenePlace(place=at(0, 3)),), shift=3000)
    rules = replace(make_rules(operations=operations), capacity=15)
    assert "takes at least 230 trips of capacity 15" in cut_scene(grid(), rules).warnings[0]


def test_a_margin_keeps_the_ways_to_far_places() -> None:
    operations = SceneOperations(facilities=(ScenePlace(place=at(7, 7)),))
    area = Circle(longitude=5.0, latitude=0.0, metres=250)
    rules = make_rules(area=area, margin=1, depot=at(0, 0), operations=operations)
    instance = cut_scene(grid(8, 8), rules).instance
    assert instance.facilities[0].node == 77
    assert 77 in instance.nodes
    assert len(instance.nodes) < 64
    assert repair(instance, NO_ROUTES).ok


def test_limits_and_prices_are_those_of_the_instance() -> None:
    operations = SceneOperations(
        fleet_limit=9, exact_fleet=True, fewest_routes=True, balance=0.5, compactness=4
    )
    instance = make_scene(grid(), make_rules(operations=operations))
    assert instance.vehicles == ()
    assert instance.fleet[0] == Vehicle(
        name="vehicle", start=instance.depot, capacity=500, count=9
    )
    assert (instance.exact_fleet, instance.fewest_routes) == (True, True)
    assert (instance.balance, instance.compactness) == (0.5, 4)


@pytest.mark.parametrize(
    ("shift", "cost", "value"),
    [
        (70, "length", 70),
        ("40 km", "length", 40_000),
        ("8 h", "time", 28_800),
        ("7.5h", "time", 27_000),
        ("450min", "time", 27_000),
        (None, "time", None),
    ],
)
def test_shifts_have_units(shift: int | str | None, cost: str, value: int | None) -> None:
    assert parse_shift(shift, cost) == value


@pytest.mark.parametrize(
    ("shift", "message"),
    [
        ("8h", "where costs are metres: make the scene with cost='time' (--cost time)"),
        ("long", "expected the longest route as a number"),
        ("8 parsecs", "expected the longest route as a number"),
        (0, "expected the longest route to be a whole number from 1"),
    ],
)
def test_wrong_shifts_are_one_sentence(shift: int | str, message: str) -> None:
    with refused(OptionError, message):
        make_rules(operations=SceneOperations(shift=shift))


def test_a_length_is_no_shift_in_seconds() -> None:
    with refused(OptionError, "make the scene with cost='length' (--cost length)"):
        parse_shift("10km", "time")


def test_what_does_not_fit_the_map_is_one_sentence() -> None:
    def make(**options: Any) -> None:
        operations = SceneOperations(**options)
        make_scene(grid(), make_rules(operations=operations))

    with refused(MapError, "expected facilities at different junctions"):
        twice = ScenePlace(place=at(0, 0)), ScenePlace(place=(5.0, 0.0))
        make(facilities=twice)
    with refused(MapError, "expected a depot or facility within 2,000 m"):
        make(facilities=(ScenePlace(place=(9.0, 9.0)),))
    with refused(OptionError, "give the depot of each vehicle type"):
        make(depots=(at(0, 0),), vehicles=(SceneVehicle(name="a"),))
    with refused(OptionError, "give the count of each vehicle type"):
        make(depots=(at(0, 0),), fleet_limit=3)
    with refused(OptionError, "tuple of ScenePlace(place=(longitude, latitude)), got (("):
        make(facilities=(at(0, 0),))
    with refused(OptionError, "expected depots as a tuple of (longitude, latitude), got ("):
        make(depots=at(0, 0))
    with refused(OptionError, "expected vehicles as a tuple of SceneVehicle(name='van')"):
        make(vehicles=SceneVehicle(name="a"))
    with refused(OptionError, "expected operations to be SceneOperations"):
        make_rules(operations=3)


def test_vehicles_are_read_from_toml(tmp_path: Path) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text(
        '[[vehicle]]\nname = "large"\nshift = "8 h"\ndepot = [5, 0.1]\n'
        '[[vehicle]]\nname = "small"\ncapacity = 9\nforbidden_kinds = ["primary"]\n'
    )
    assert read_vehicles(path) == (
        SceneVehicle(name="large", shift="8 h", depot=(5.0, 0.1)),
        SceneVehicle(name="small", capacity=9, forbidden_kinds=("primary",)),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected tables [[vehicle]]"),
        ("[vehicle]\nname = 'a'", "expected tables [[vehicle]]"),
        ("[[vehicle]]\ncapacity = 3", "expected a name for each vehicle"),
        ("[[vehicle]]\nname = 'a'\ncapcity = 3", "did you mean 'capacity'?"),
        (
            "[[vehicle]]\nname = 'a'\ncapacity = 'x'",
            "of vehicle 'a' to be a whole",
        ),
        (
            "[[vehicle]]\nname = 'a'\ncapacity = -3",
            "expected capacity of vehicle 'a' to be a whole number of at least 1, got -3",
        ),
        (
            "[[vehicle]]\nname = 'a'\ncount = 0",
            "expected count of vehicle 'a' to be a whole number of at least 1, got 0",
        ),
        (
            "[[vehicle]]\nname = 'a'\nfixed_cost = -1",
            "expected fixed_cost of vehicle 'a' to be a whole number of at least 0, got -1",
        ),
        ("[[vehicle]]\nname = 'a'\ndepot = [1]", "as [longitude, latitude], got [1]"),
        ("[[vehicle]]\nname = 'a'\nshift = 2.5", "as a number or '8 h', got 2.5"),
        ("[[vehicle]]\nname = 'a'\nforbidden_kinds = 'b'", "as a list of texts"),
    ],
)
def test_wrong_vehicle_files_are_one_sentence(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    with refused(FileError, message):
        read_vehicles(path)
