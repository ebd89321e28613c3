from dataclasses import replace
from pathlib import Path

from arcfleet import (
    Instance,
    OptionError,
    SolutionError,
    Stop,
    diff,
    exclude,
    solve,
    write_solution,
)
from arcfleet.solution.diff import Moved
from tests.helpers import make_instance, refused, street
from tests.solution.test_keep import plan, route


def test_streets_are_moved_removed_and_added() -> None:
    town = make_instance(
        street(1, 2, 10, 3, name="High Street", metres=1200, seconds=60),
        street(2, 3, 10, 3, name="Mill Lane", metres=300, seconds=60),
        street(3, 1, 10, 3, name="", metres=10, seconds=60),
        street(1, 4, 10, 3, name="Mill Lane", metres=400, seconds=60),
    )
    before, after = plan(route(0, 1), route(2)), plan(route(1), route(2, 3, number=5))
    found = diff(town, before, replace(after, cost=-3))
    assert found.moved == (Moved(2, "", 2, 5, 2),)
    assert found.removed == (Moved(0, "High Street", 1, None, 0),)
    assert found.added == (Moved(3, "Mill Lane", None, 5),)
    assert found.streets == 2
    text = str(found)
    assert text.startswith("cost      0 -> -3 (-3)\nmoved     1 of 2 streets\n")
    assert "          without a name, 1 street: 2 -> 5\n" in text
    assert "          High Street, 1 street: was on route 1\n" in text
    assert "          Mill Lane, 1 street: on route 5\n" in text
    assert "distance" in text
    facts = found.facts()
    moved = {"link": 2, "name": "", "before": 2, "after": 5, "old_link": 2}
    assert facts["moved"] == (moved,)
    assert [one.number for one in found.routes] == [1, 2, 5]
    assert found.routes[1].after is None


def test_a_plan_does_not_differ_from_itself(village: Instance) -> None:
    solution = solve(village, "ps", stop=Stop(iterations=1)).solution
    found = diff(village, solution, solution)
    assert (found.moved, found.removed, found.added) == ((), (), ())
    assert all(one.before == one.after for one in found.routes)


def test_plans_of_two_instances_are_compared(village: Instance) -> None:
    solution = solve(village, "ps", stop=Stop(iterations=1)).solution
    today = exclude(village, ["Mill Lane"])
    later = solve(today, start=solution, stop=Stop(iterations=1)).solution
    found = diff(today, solution, later, village)
    assert {one.name for one in found.removed} == {"Mill Lane"}
    shuffled = replace(village, links=village.links[::-1])
    with refused(SolutionError, "(--old-instance)"):
        diff(shuffled, solution, solution)


def test_paths_stand_for_plans(village: Instance, tmp_path: Path) -> None:
    plan = solve(village, "ps", stop=Stop(iterations=1)).solution
    path = tmp_path / "plan.json"
    write_solution(village, plan, path)
    assert diff(village, str(path), plan) == diff(village, plan, path)
    with refused(OptionError, "expected a Solution or the path of one, got NoneType"):
        diff(village, plan, None)  # type: ignore[arg-type]


def test_plans_of_two_towns_are_not_compared(village: Instance) -> None:
    plan = solve(village, stop=Stop(iterations=20)).solution
    elsewhere = replace(
        village, coordinates=tuple((x + 1, y) for x, y in village.coordinates)
    )
    streets = len(village.required)
    with refused(
        SolutionError,
        f"expected plans with streets in common, got 0 of {streets} streets of the earlier "
        "plan in instance",
    ):
        diff(village, plan, plan, elsewhere)
    # Two days of one town need not have one.
    first, rest = plan.routes[0], plan.routes[1:]
    monday = replace(plan, routes=(first,))
    tuesday = replace(plan, routes=rest)
    assert diff(village, monday, tuesday).streets == 0
