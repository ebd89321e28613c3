from typing import Any

import pytest

from arcfleet import (
    Assignment,
    Instance,
    InstanceError,
    OptionError,
    Solution,
    Stop,
    check,
    edit,
    exclude,
    lock,
    pin,
    solve,
)
from arcfleet.instance.change import find_links
from tests.helpers import refused
from tests.solution.test_repair import numbers_of


@pytest.fixture(scope="module")
def plan(village: Instance) -> Solution:
    return solve(village, stop=Stop(iterations=200)).solution


def test_a_moved_street_is_on_its_new_route_and_others_stay(
    village: Instance, plan: Solution
) -> None:
    before = numbers_of(plan)
    street = village.required[0]
    target = next(number for number in plan.numbers if number != before[street])
    edited = edit(village, plan, move={street: target})
    assert edited.plain_instance == village
    assert edited.free == tuple(sorted({before[street], target}))
    assert {one.route for one in edited.instance.locks} == {*plan.numbers} - {*edited.free}
    assert edited.repaired.ok
    assert numbers_of(edited.solution)[street] == target
    assert check(edited.instance, edited.solution).faults == ()


def test_a_search_after_an_edit_moves_no_street_that_need_not_move(
    village: Instance, plan: Solution
) -> None:
    before = numbers_of(plan)
    street = village.required[0]
    loads = {n: x.load for n, x in zip(plan.numbers, plan.routes, strict=True)}
    del loads[before[street]]
    number = min(loads, key=loads.__getitem__)

    def moved(**options: Any) -> set[int]:
        edited = edit(village, plan, move={street: number}, **options)
        stop = Stop(iterations=2000)
        found = solve(edited.instance, start=edited.solution, stop=stop).solution
        assert check(edited.plain_instance, found).faults == ()
        after = numbers_of(found)
        return {link for link in after if after[link] != before[link]}

    assert moved() == {street}
    # Where cost may decide, more streets move.
    assert len(moved(price=1)) > 1
    assert moved(price=1) == moved(free=[before[street]])


def test_streets_are_removed_and_added(village: Instance, plan: Solution) -> None:
    removed = edit(village, plan, remove=["Mill Lane"])
    links = set(find_links(village, "Mill Lane"))
    assert removed.repaired.dropped == len(links)
    assert set(removed.plain_instance.required) == {*village.required} - links
    assert removed.free == tuple(sorted({numbers_of(plan)[link] for link in links}))
    added = edit(removed.plain_instance, removed.solution, add={"mill lane": 5})
    lane = find_links(removed.plain_instance, "Mill Lane", required=False)
    assert links <= set(lane)
    assert added.repaired.inserted == lane
    assert added.free == removed.solution.numbers
    assert check(added.instance, added.solution).faults == ()
    only = edit(removed.plain_instance, removed.solution, add={"mill lane": 5}, free=[1])
    assert only.free == (1,)


def test_wrong_edits_are_one_sentence(village: Instance, plan: Solution) -> None:
    with refused(OptionError, "expected streets to move, remove or add"):
        edit(village, plan)
    with refused(OptionError, "expected the number of a route to free, got 99"):
        edit(village, plan, free=[99])
    with refused(OptionError, "expected the number of a route to pin a street to, got 99"):
        edit(village, plan, move={"Mill Lane": 99})
    with refused(OptionError, "did you mean 'Mill Lane'"):
        edit(village, plan, remove=["Mil Lane"])
    with refused(InstanceError, "for route 1 and for route 2"):
        edit(village, plan, move=[("Mill Lane", 1), ("mill lane", 2)])
    gone = exclude(village, ["Mill Lane"])
    with refused(OptionError, "which is only driven on"):
        edit(gone, plan, move={"Mill Lane": 1})


def test_a_move_replaces_a_stored_pin(village: Instance, plan: Solution) -> None:
    before = numbers_of(plan)
    street, other = village.required[:2]
    target = next(number for number in plan.numbers if number != before[street])
    stored = pin(village, {street: before[street], other: before[other]})
    edited = edit(stored, plan, move={street: target})
    assert set(edited.plain_instance.pins) == {
        Assignment(street, target),
        Assignment(other, before[other]),
    }
    assert check(edited.plain_instance, edited.solution).faults == ()


def test_edits_unlock_the_routes_that_they_change(
    village: Instance, plan: Solution
) -> None:
    stored = lock(village, plan, plan.numbers)
    street = village.required[0]
    source = numbers_of(plan)[street]
    target = next(number for number in plan.numbers if number != source)
    moved = edit(stored, plan, move={street: target})
    freed = edit(stored, plan, free=[target])
    for edited, free in ((moved, {source, target}), (freed, {target})):
        locked = {one.route for one in edited.plain_instance.locks}
        assert locked == {*plan.numbers} - free
        assert edited.free == tuple(sorted(free))
        assert check(edited.plain_instance, edited.solution).faults == ()
    assert numbers_of(moved.solution)[street] == target


def test_added_streets_leave_locked_routes_alone(village: Instance, plan: Solution) -> None:
    removed = edit(village, plan, remove=["Mill Lane"])
    today, start = removed.plain_instance, removed.solution
    added = edit(lock(today, start, [1]), start, add={"Mill Lane": 5})
    assert added.free == tuple(number for number in start.numbers if number != 1)
    assert [one.route for one in added.plain_instance.locks] == [1]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"move": ["Mill Lane"]}, "as in {'Mill Lane': 2}, got 'Mill Lane'"),
        ({"free": 3}, "expected numbers of routes to free as in [3], got 3"),
        ({"add": ["Mill Lane"]}, "as in {'Mill Lane': 120}, got ['Mill Lane']"),
    ],
)
def test_slips_are_one_sentence(
    village: Instance, plan: Solution, wrong: dict[str, Any], message: str
) -> None:
    with refused(OptionError, message):
        edit(village, plan, **wrong)
