from pathlib import Path

import pytest

from arcfleet.instance.instance import Instance
from arcfleet.report.plot import plot
from arcfleet.search.result import Result
from arcfleet.solution.solution import Solution
from arcfleet.solution.words import known_shape
from tests.hauling_plans import hauling_plan, hauling_town


@pytest.fixture(scope="module")
def town(village: Instance) -> Instance:
    return hauling_town(village)


@pytest.fixture(scope="module")
def plan(town: Instance) -> Solution:
    return hauling_plan(town, (2, 5, 11))


@pytest.fixture(scope="module")
def result(town: Instance, plan: Solution) -> Result:
    return Result(
        instance=town,
        method="by-hand",
        seed=0,
        threads=1,
        solution=plan,
        seconds=0.0,
        iterations=0,
        stopped_by="iterations",
        history=(),
        shape=known_shape(town, plan),
    )


def test_a_summary_has_vehicles_visits_and_the_shape(result: Result) -> None:
    lines = {line[:12].strip(): line[12:] for line in result.summary().splitlines()}
    assert lines["visits"] == "15 of facilities, cost 1590"
    assert lines["routes"] == "3: 2 north & truck, 1 south van"
    assert lines["balance"].startswith("longest route ")
    assert lines["interleave"].endswith(
        "of the streets are nearest to one of another route"
    )
    assert lines["route 2"].startswith("north & truck, load 1194 (595 + 599), cost 5221, ")
    assert "1 visit of Landfill <East>, 1 of Facility 2" in lines["route 2"]
    assert "route 11" in lines


def test_facts_have_numbers_vehicles_trips_and_visits(result: Result) -> None:
    facts = result.to_dict()
    assert facts["visit_cost"] == 1590
    assert set(facts["shape"]) >= {"ratio", "interleaving"}
    first = facts["routes"][0]
    assert (first["number"], first["vehicle"]) == (2, "north & truck")
    assert first["trips"] == [595, 599]
    assert [facility for facility, _ in first["visits"]] == [0, 1]


def test_a_notebook_shows_vehicles_depots_and_facilities(result: Result) -> None:
    shown = result._repr_html_()
    assert shown is not None
    assert "north &amp; truck" in shown
    assert "1194 (595 + 599)" in shown
    assert "Landfill &lt;East&gt;</title></path>" in shown
    assert shown.count("<title>depot ") == 3
    assert "&#9632; 11" in shown


@pytest.mark.parametrize("with_plan", [True, False])
def test_a_picture_has_depots_facilities_and_numbers(
    town: Instance, plan: Solution, with_plan: bool, tmp_path: Path
) -> None:
    picture = tmp_path / "plan.svg"
    plot(town, plan if with_plan else None, picture)
    text = picture.read_text("utf-8")
    assert "facility: Landfill &lt;East&gt;" in text
    assert ("route 11: north &amp; truck, load 6104 in 11 trips" in text) == with_plan


def test_an_instance_in_words(town: Instance) -> None:
    lines = str(town).splitlines()
    assert lines[1] == "nodes       48, depots 1, 25, 2"
    assert "vehicle     north & truck, capacity 600, fixed cost 50" in lines
    assert "facilities  Landfill <East>, node 17" in lines
    assert "capacity    600, so at least 14 trips" in lines
