from dataclasses import replace

import pytest
from hypothesis import given, settings

from arcfleet import Stop, evaluate
from arcfleet.errors import OptionError
from arcfleet.instance.instance import Instance, Link
from arcfleet.solution.directions import Instruction, directions
from arcfleet.solution.drive import with_all_paths
from arcfleet.solution.solution import Solution
from tests.directions_follower import Follower, Line
from tests.helpers import solved
from tests.located_instances import cross, located_plans


def follow(instance: Instance, start: int, lines: list[Instruction]) -> Follower:
    driver = Follower(instance, start)
    for line in lines:
        if line.action in ("visit", "return"):
            driver.stop()
            continue
        serves = line.action == "serve"
        driver.follow(Line(line.manoeuvre, line.street, serves, line.metres))
    return driver


def assert_followed(instance: Instance, solution: Solution) -> None:
    """Following the lines gives the path of every route, and their sums its totals."""
    plan = with_all_paths(instance, solution)
    for route, lines in zip(plan.routes, directions(instance, solution), strict=True):
        driver = follow(instance, instance.fleet[route.vehicle].start, lines)
        assert driver.path == [(s.link, s.reverse, s.serves) for s in route.path]
        assert lines[-1].action == "return"
        assert lines[-1].total_metres == sum(line.metres for line in lines)
        if route.travel is not None:
            assert lines[-1].total_seconds == route.travel.seconds
        served = sum(instance.links[s.link].demand for s in route.services)
        assert sum(x.load for x in lines if x.action in ("visit", "return")) == served


@settings(max_examples=100)
@given(located_plans())
def test_lines_lead_along_the_path(drawn: tuple[Instance, Solution]) -> None:
    assert_followed(*drawn)


@settings(max_examples=60)
@given(located_plans())
def test_lines_lead_along_the_path_where_many_streets_share_a_name(
    drawn: tuple[Instance, Solution],
) -> None:
    instance, solution = drawn
    names = ("Ring", "Ring", "Alley")
    links = (replace(x, name=names[i % 3]) for i, x in enumerate(instance.links))
    assert_followed(replace(instance, links=tuple(links)), solution)


def test_village(village: Instance, village_plan: Solution) -> None:
    assert_followed(village, village_plan)


def test_what_the_lines_say() -> None:
    instance = cross()
    plan = solved(instance, "ruin-recreate", stop=Stop(iterations=50)).solution
    (lines,) = directions(instance, plan)
    texts = [str(line) for line in lines]
    assert texts[0] == "Leave to the north: Main, drive 111 m"
    assert texts[-1] == "End of the route: Depot"
    assert any(text.startswith("Turn round at the dead end: ") for text in texts)
    turns = {line.turn for line in lines}
    assert "turn round" in turns
    assert {"left", "right"} & turns
    assert lines[-1].load == 9


def test_a_turn_where_streets_lead_on_is_at_no_dead_end() -> None:
    town = cross()
    main, work, side = town.links
    links = (replace(work, tail=1, head=2), replace(main, tail=2, head=3), side)
    instance = replace(town, links=links, u_turns="allowed")
    (lines,) = directions(instance, evaluate(instance, [[0, 2]]))
    assert "Turn round at the dead end: Side, drive 111 m" in map(str, lines)
    (lines,) = directions(instance, evaluate(instance, [[0]]))
    assert [str(line) for line in lines] == [
        "Leave to the north: Main, work 111 m",
        "Turn round: Main, drive 111 m",
        "End of the route: Depot",
    ]


def test_streets_of_a_name_are_counted_clockwise_at_the_depot() -> None:
    town = cross()
    main, work, _ = town.links
    places = ((5.0, 51.0), (5.0, 51.001), (5.0003, 51.001), (5.002, 51.001))
    links = (main, replace(work, tail=1, head=3), replace(main, tail=2, head=4))
    instance = replace(town, links=links, coordinates=places)
    (lines,) = directions(instance, evaluate(instance, [[1]]))
    assert (
        str(lines[0]) == "Leave to the north, the second of 2 clockwise: Main, work 111 m"
    )
    assert_followed(instance, evaluate(instance, [[1]]))


def test_pieces_of_a_street_are_one_line() -> None:
    places = [(5.0 + i / 1000, 51.0) for i in range(5)]
    links = tuple(
        Link(tail=i, head=i + 1, cost=70, name="Long", required=True, demand=1, metres=70)
        for i in range(1, 5)
    )
    instance = Instance(
        name="row",
        nodes=(1, 2, 3, 4, 5),
        links=links,
        depot=1,
        capacity=4,
        coordinates=tuple(places),
    )
    plan = solved(instance, "ruin-recreate", stop=Stop(iterations=50)).solution
    (lines,) = directions(instance, plan)
    assert sum(line.metres for line in lines) == 560
    assert len(lines) == 3
    assert [line.turn for line in lines[:2]] == ["east", "turn round"]
    assert_followed(instance, plan)


def test_without_places(village: Instance, village_plan: Solution) -> None:
    with pytest.raises(OptionError, match="expected coordinates to write directions"):
        directions(replace(village, coordinates=()), village_plan)
