import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from arcfleet.errors import SolutionError
from arcfleet.instance.instance import CostUnit, Instance, Link
from arcfleet.solution import FacilityVisit
from arcfleet.solution.drive import check_links, check_paths
from arcfleet.solution.geojson import write_geojson
from arcfleet.solution.gpx import write_gpx
from arcfleet.solution.solution import Solution
from arcfleet.solution.travel import route_travel, with_travel
from arcfleet.solution.words import depot_names, depot_nodes, street_name, trip_loads
from tests.hauling_plans import hauling_plan, hauling_town

GPX = "{http://www.topografix.com/GPX/1/1}"


@pytest.fixture(scope="module")
def town(village: Instance) -> Instance:
    return hauling_town(village)


@pytest.fixture(scope="module")
def plan(town: Instance) -> Solution:
    return hauling_plan(town, (2, 5, 11))


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"name": "Mill Lane", "kind": "service"}, "Mill Lane"),
        ({}, "unnamed street"),
        ({"kind": "residential"}, "unnamed street"),
        ({"kind": "primary_link"}, "unnamed ramp"),
        ({"kind": "service"}, "unnamed service road"),
        ({"kind": "track"}, "unnamed track"),
        ({"kind": "service", "tail": 2}, "street 2-1"),
    ],
)
def test_streets_without_a_name_are_known_by_their_kind(
    facts: dict[str, Any], words: str
) -> None:
    assert street_name(Link(**{"tail": 176085815, "head": 1, "cost": 1} | facts)) == words


def test_trips_carry_no_more_than_the_vehicle(town: Instance, plan: Solution) -> None:
    for route in plan.routes:
        loads = trip_loads(town, route)
        assert sum(loads) == route.load
        assert max(loads) <= town.fleet[route.vehicle].capacity
        assert len(loads) == len(route.visits)
        # Without the last visit the last trip ends at the depot.
        assert trip_loads(town, replace(route, visits=route.visits[:-1])) == loads
    assert trip_loads(town, replace(plan.routes[0], services=(), visits=())) == [0]


def test_paths_start_and_end_at_the_depots_of_the_vehicle(
    town: Instance, plan: Solution
) -> None:
    check_paths(town, plan)
    swapped = replace(plan, routes=(replace(plan.routes[0], vehicle=1), *plan.routes[1:]))
    with pytest.raises(SolutionError, match=r"goes on from node .* on route 2"):
        check_paths(town, swapped)
    unknown = replace(plan, routes=(replace(plan.routes[0], vehicle=2),))
    with pytest.raises(SolutionError, match="vehicle types from 0 to 1, got vehicle type"):
        check_links(town, unknown)
    twice = replace(plan, routes=(plan.routes[0], plan.routes[0]))
    with pytest.raises(SolutionError, match="number of its own for every route, got 2, 2"):
        check_links(town, twice)


@pytest.mark.parametrize(
    ("visit", "message"),
    [
        (FacilityVisit(facility=0, services=1, steps=0), "leads to the facility at node"),
        (FacilityVisit(facility=0, services=1, steps=9999), "visits after 0 to"),
        (FacilityVisit(facility=2, services=1, steps=0), "facilities from 0 to 1, got"),
    ],
)
def test_visits_that_nobody_can_make(
    town: Instance, plan: Solution, visit: FacilityVisit, message: str
) -> None:
    wrong = replace(plan, routes=(replace(plan.routes[0], visits=(visit,)),))
    with pytest.raises(SolutionError, match=message):
        check_paths(town, wrong)


def test_a_visit_takes_time_where_costs_are_seconds(town: Instance, plan: Solution) -> None:
    def timed(unit: CostUnit) -> Instance:
        links = tuple(replace(link, seconds=link.cost, metres=1) for link in town.links)
        return replace(town, links=links, cost_unit=unit)

    in_metres = with_travel(timed("metres"), plan)
    in_seconds = with_travel(timed("seconds"), plan)
    for before, after, route in zip(
        in_metres.routes, in_seconds.routes, plan.routes, strict=True
    ):
        visiting = sum(town.facilities[visit.facility].cost for visit in route.visits)
        assert visiting > 0
        assert before.travel is not None
        assert after.travel is not None
        assert after.travel.seconds == (before.travel.seconds or 0) + visiting
        assert after.travel.deadhead_seconds == (
            (before.travel.deadhead_seconds or 0) + visiting
        )
        assert after.travel.service_seconds == before.travel.service_seconds
        assert after.travel.metres == before.travel.metres


def test_no_turn_is_taken_at_a_facility(town: Instance, plan: Solution) -> None:
    links = tuple(replace(link, seconds=0) for link in town.links)
    ruled = replace(town, links=links, cost_unit="seconds", u_turn_penalty=1)
    route = plan.routes[0]
    # Everywhere a visit could be, the vehicle would turn round for free.
    stops = tuple(
        FacilityVisit(facility=1, services=0, steps=i) for i in range(len(route.path))
    )
    travel = route_travel(ruled, replace(route, visits=stops))
    assert travel is not None
    assert travel.seconds == 120 * len(stops)
    nowhere = replace(route, visits=(FacilityVisit(facility=1, services=0),))
    assert route_travel(ruled, nowhere) is None


def test_geojson_has_depots_facilities_visits_and_trips(
    town: Instance, plan: Solution, tmp_path: Path
) -> None:
    path = tmp_path / "plan.geojson"
    write_geojson(town, plan, path)
    features = [x["properties"] for x in json.loads(path.read_text())["features"]]
    by_kind: dict[str, list[dict[str, object]]] = {}
    for item in features:
        by_kind.setdefault(str(item["kind"]), []).append(item)
    assert [x["name"] for x in by_kind["depot"]] == ["Depot 1", "Depot 2", "Depot 3"]
    assert [x["node"] for x in by_kind["depot"]] == depot_nodes(town)
    assert by_kind["depot"][1]["vehicles"] == ["south van"]
    assert [x["name"] for x in by_kind["facility"]] == ["Landfill <East>", "Facility 2"]
    assert [x["route"] for x in by_kind["route"]] == [2, 5, 11]
    assert [x["name"] for x in by_kind["route"]] == ["Route 2", "Route 5", "Route 11"]
    assert [x["vehicle"] for x in by_kind["route"]] == [
        town.fleet[route.vehicle].name for route in plan.routes
    ]
    for route, facts in zip(plan.routes, by_kind["route"], strict=True):
        loads = trip_loads(town, route)
        assert facts["trips"] == loads
        visits = [x for x in by_kind["visit"] if x["route"] == facts["route"]]
        assert facts["visits"] == len(visits) == len(route.visits)
        assert [x["load"] for x in visits] == loads
        legs = [x for x in by_kind["leg"] if x["route"] == facts["route"]]
        for visit in visits:
            step = int(str(visit["step"]))
            assert legs[step - 1]["load"] == visit["load"]
            if step < len(legs):
                assert legs[step]["load"] == legs[step]["demand"]
                assert legs[step]["trip"] == int(str(visit["visit"])) + 1


def places_of(root: ET.Element) -> list[ET.Element]:
    """Waypoints of depots and visits, not of turns."""
    points = root.findall(f"{GPX}wpt")
    return [point for point in points if point.findtext(f"{GPX}type") != "turn"]


def test_gpx_has_a_waypoint_for_each_visit(
    town: Instance, plan: Solution, tmp_path: Path
) -> None:
    path = tmp_path / "plan.gpx"
    write_gpx(town, plan, path)
    root = ET.parse(path).getroot()
    points = places_of(root)
    names = [point.findtext(f"{GPX}name") or "" for point in points]
    assert names[:3] == depot_names(town)
    assert len(names) == 3 + sum(len(route.visits) for route in plan.routes)
    assert all(name.startswith("Route ") for name in names[3:])
    assert any("visit 2: Landfill <East>" in x or "Facility 2" in x for x in names)
    tracks = root.findall(f"{GPX}trk")
    assert [x.findtext(f"{GPX}number") for x in tracks] == ["2", "5", "11"]
    assert (tracks[0].findtext(f"{GPX}desc") or "").startswith("north & truck, load ")

    folder = tmp_path / "tracks"
    folder.mkdir()
    write_gpx(town, plan, folder)
    assert sorted(x.name for x in folder.iterdir()) == [
        *("route-02.gpx", "route-05.gpx", "route-11.gpx")
    ]
    own = places_of(ET.parse(folder / "route-05.gpx").getroot())
    assert len(own) == 2 + len(plan.routes[1].visits)


def test_the_plan_in_words(plan: Solution) -> None:
    lines = str(plan).splitlines()
    assert f", {plan.visit_cost} at facilities" in lines[0]
    assert lines[1].startswith("route 2: vehicle type 1, ")
    assert lines[3].startswith("route 11: ")
    assert f", {len(plan.routes[0].visits)} facility visits" in lines[1]
