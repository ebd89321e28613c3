import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arcfleet import Stop, check
from arcfleet.errors import FileError
from arcfleet.instance.instance import COST_UNITS, Instance, Link, Turn
from arcfleet.solution import Route, Service, Solution, Travel
from arcfleet.solution.drive import with_all_paths
from arcfleet.solution.files import read_solution, write_solution
from arcfleet.solution.geojson import write_geojson
from arcfleet.solution.gpx import write_gpx
from arcfleet.solution.travel import (
    duration_text,
    length_text,
    route_travel,
    step_costs,
    step_seconds,
    with_travel,
)
from tests.helpers import make_instance, refused, solved, steps, street
from tests.strategies import connected_instances

UNKNOWN: Any = dict.fromkeys(("metres", "seconds", "reverse_seconds", "service_seconds"))


def town(**more: Any) -> Instance:
    """A street to serve, one on the way there, and a U-turn at the end."""
    measured: Any = {"metres": 1100, "seconds": 100, "reverse_seconds": 150}
    return make_instance(
        street(1, 2, 10, metres=850, seconds=61),
        street(2, 3, 20, 3, service_cost=30, service_seconds=4000, **measured),
        **more,
    )


def plan(instance: Instance, path: str = "0 1! -1 -0", cost: int = 70) -> Solution:
    route = Route(services=(Service(1),), load=3, cost=cost, path=steps(path))
    total = Solution(routes=(route,), cost=cost, deadhead=cost - 30, service_cost=30)
    return with_travel(instance, total)


def test_serving_and_deadheading() -> None:
    instance = town()
    solution = plan(instance)
    assert solution.travel == solution.routes[0].travel
    travel = solution.travel
    assert travel is not None
    assert (travel.metres, travel.deadhead_metres, travel.service_metres) == (
        *(3900, 2800, 1100),
    )
    assert (travel.seconds, travel.deadhead_seconds, travel.service_seconds) == (
        *(4272, 272, 4000),
    )
    assert str(solution).splitlines() == [
        "cost 70: 30 serving, 40 deadheading, 3.9 km (2.8 km deadheading), "
        "1 h 11 min (5 min deadheading)",
        "route 1: 1 services, load 3, cost 70, 3.9 km (2.8 km deadheading), "
        "1 h 11 min (5 min deadheading)",
    ]
    assert check(instance, solution).ok


@pytest.mark.parametrize(("unit", "seconds"), [("seconds", 7), ("metres", 0), ("", 0)])
def test_turns_take_time_where_costs_are_seconds(unit: Any, seconds: int) -> None:
    turns = (Turn(0, False, 1, False, 4),)
    instance = town(turns=turns, u_turn_penalty=3, cost_unit=unit)
    solution = plan(instance, cost=77)
    (route,) = solution.routes
    assert step_costs(instance, route.path) == [10, 34, 23, 10]
    times = step_seconds(instance, route.path)
    assert times is not None
    assert sum(times) == 4272 + seconds
    assert route.travel is not None
    # A turn onto a street is no part of serving it.
    assert route.travel.service_seconds == 4000
    assert route.travel.deadhead_seconds == 272 + seconds


def test_what_is_unknown_is_none() -> None:
    instance = town()
    without_path = replace(plan(instance).routes[0], path=())
    assert route_travel(instance, without_path) is None
    links = (replace(instance.links[0], seconds=None, reverse_seconds=None),)
    metres_only = replace(instance, links=(*links, instance.links[1]))
    assert plan(metres_only).travel == Travel(metres=3900, deadhead_metres=2800)
    seconds_only = replace(
        instance, links=(replace(instance.links[0], metres=None), instance.links[1])
    )
    assert plan(seconds_only).travel == Travel(seconds=4272, deadhead_seconds=272)
    classical = make_instance(street(1, 2), street(2, 3, 1, 3))
    solution = plan(classical)
    assert solution.travel is None
    assert with_travel(classical, solution) is solution
    stated = replace(solution, travel=Travel(metres=3))
    assert with_travel(classical, stated) == solution
    empty = Solution(routes=(), cost=0, deadhead=0, service_cost=0)
    assert with_travel(instance, empty).travel is None


def test_for_people() -> None:
    assert [length_text(x) for x in (0, 850, 999.4, 999.6, 12_345)] == [
        *("0 m", "850 m", "999 m", "1.0 km", "12.3 km"),
    ]
    assert [duration_text(x) for x in (0, 40, 59.6, 720, 3570, 3900, 360_000)] == [
        *("0 s", "40 s", "1 min", "12 min", "1 h 00 min", "1 h 05 min", "100 h 00 min"),
    ]
    assert Travel(metres=850).brief() == "850 m"
    assert str(Travel(seconds=3900)) == "1 h 05 min"


def measured_plans() -> st.SearchStrategy[tuple[Instance, Solution]]:
    """Instances with lengths and times, and plans for them."""

    @st.composite
    def draw_one(draw: st.DrawFn) -> tuple[Instance, Solution]:
        bare = draw(connected_instances())
        amount = st.integers(0, 5000)

        def measured(link: Link) -> Link:
            return replace(
                link,
                metres=draw(amount),
                seconds=draw(amount),
                reverse_seconds=None if link.one_way else draw(amount),
                service_seconds=draw(amount) if link.required else None,
            )

        links = tuple(measured(link) for link in bare.links)
        unit = draw(st.sampled_from(COST_UNITS))
        penalty = draw(st.integers(0, 5))
        instance = replace(bare, links=links, cost_unit=unit, u_turn_penalty=penalty)
        result = solved(instance, "ps-efficiency", stop=Stop(iterations=2))
        return instance, result.solution

    return draw_one()


@settings(max_examples=40)
@given(measured_plans())
def test_parts_add_up(measured: tuple[Instance, Solution]) -> None:
    instance, solution = measured
    routes = [route.travel for route in solution.routes]
    total = solution.travel
    if not routes:
        assert total is None
        return
    assert total is not None
    for name, amount in total.facts().items():
        assert amount == sum(travel.facts()[name] for travel in routes if travel)
    served = {s.link for route in solution.routes for s in route.services}
    assert total.service_metres == sum(instance.links[i].metres or 0 for i in served)
    assert total.service_seconds == sum(
        instance.links[i].service_seconds or 0 for i in served
    )
    for route in solution.routes:
        costs = step_costs(instance, route.path)
        assert sum(costs) + instance.route_cost == route.cost
        assert step_seconds(instance, route.path) is not None


@settings(max_examples=20)
@given(measured_plans())
def test_files_hold_lengths_and_times(measured: tuple[Instance, Solution]) -> None:
    instance, solution = measured
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        write_solution(instance, solution, path)
        assert read_solution(path, instance) == solution


def test_versions_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    instance = town()
    solution = plan(instance)
    # Written from a plan that does not state them.
    bare = replace(
        solution, travel=None, routes=(replace(solution.routes[0], travel=None),)
    )
    write_solution(instance, bare, path)
    assert '"version": 2' in path.read_text()
    assert read_solution(path, instance) == solution
    classical = make_instance(street(1, 2, 10), street(2, 3, 20, 3, service_cost=30))
    write_solution(classical, bare, path)
    assert '"version": 1' in path.read_text()
    assert "travel" not in path.read_text()
    # An older plan of an instance that has lengths.
    older = read_solution(path, instance)
    assert older.travel is None
    assert with_all_paths(instance, older) == solution


@pytest.mark.parametrize("name", Travel.__dataclass_fields__)
def test_the_checker_verifies_what_is_stated(name: str) -> None:
    instance = town(u_turn_penalty=3, cost_unit="seconds")
    solution = plan(instance, cost=73)
    (route,) = solution.routes
    assert solution.travel is not None
    assert check(instance, solution).ok
    true = solution.travel.facts()[name]
    wrong = replace(solution.travel, **{name: true + 1})
    assert check(instance, replace(solution, travel=wrong)).faults == (
        f"total {name} is stated as {true + 1}, recomputed it is {true}",
    )
    assert check(
        instance, replace(solution, routes=(replace(route, travel=wrong),))
    ).faults == (f"route 1: {name} is stated as {true + 1}, recomputed it is {true}",)
    # What is not stated cannot be wrong; what cannot be verified is a fault.
    silent = replace(solution, travel=None, routes=(replace(route, travel=None),))
    assert check(instance, silent).ok
    without_path = replace(route, path=(), travel=Travel(**{name: true}))
    assert check(instance, replace(silent, routes=(without_path,))).faults == (
        f"route 1: {name} is stated as {true}, but its links or its path do not say it",
    )
    classical = replace(
        instance, links=tuple(replace(x, **UNKNOWN) for x in instance.links)
    )
    assert len(check(classical, solution).faults) == 8


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"metres": 3900', '"meters": 3900', "found travel.meters; did you mean metres?"),
        ('"metres": 3900', '"metres": 3.5', "at travel.metres, found 3.5"),
        ('"travel": {"metres"', '"travel": 7, "x": {"metres"', "found x"),
    ],
)
def test_mistakes_in_a_file(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "plan.json"
    write_solution(town(), plan(town()), path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with refused(FileError, message):
        read_solution(path, town())


def test_tracks_and_lines(tmp_path: Path) -> None:
    places = ((5.0, 51.0), (5.01, 51.0), (5.02, 51.0))
    instance = town(coordinates=places)
    solution = plan(instance)
    write_gpx(instance, solution, tmp_path / "plan.gpx")
    expected = (
        "<desc>load 3, cost 70, 3.9 km (2.8 km deadheading), "
        "1 h 11 min (5 min deadheading)</desc>"
    )
    assert expected in (tmp_path / "plan.gpx").read_text()
    seconds_only = tuple(replace(link, metres=None) for link in instance.links)
    partly = replace(instance, links=seconds_only)
    write_gpx(partly, plan(partly), tmp_path / "plan.gpx")
    assert "cost 70, 2.81 km, 1 h 11 min (5" in (tmp_path / "plan.gpx").read_text()
    write_geojson(instance, solution, tmp_path / "plan.geojson")
    document = json.loads((tmp_path / "plan.geojson").read_text())
    assert (document["metres"], document["deadhead_seconds"]) == (3900, 272)
    found = [feature["properties"] for feature in document["features"]]
    (route,) = (x for x in found if x["kind"] == "route")
    legs = [x for x in found if x["kind"] == "leg"]
    assert (route["metres"], route["seconds"], route["deadhead_metres"]) == (
        *(3900, 4272, 2800),
    )
    assert [leg["metres"] for leg in legs] == [850, 1100, 1100, 850]
    assert [leg["seconds"] for leg in legs] == [61, 4000, 150, 61]
