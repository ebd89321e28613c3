from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcfleet import (
    Instance,
    Link,
    Lock,
    OptionError,
    Route,
    Service,
    Solution,
    SolutionError,
    Stop,
    UnsolvableError,
    check,
    exclude,
    keep,
    lock,
    pin,
    repair,
    solve,
    write_solution,
)
from arcfleet.solution.match import match_links
from tests.helpers import NO_ROUTES, make_instance, refused, star, street
from tests.strategies import connected_instances


def planned(instance: Instance) -> Solution:
    return solve(instance, "ps", stop=Stop(iterations=1)).solution


def numbers_of(solution: Solution) -> dict[int, int]:
    """Number of the route of each link."""
    return {
        service.link: number
        for number, route in zip(solution.numbers, solution.routes, strict=True)
        for service in route.services
    }


@given(connected_instances(), st.data())
def test_a_plan_of_some_streets_becomes_one_of_others(
    instance: Instance, data: st.DataObject
) -> None:
    instance = replace(instance, fleet_limit=None)
    parts = (
        st.sets(st.sampled_from(instance.required)) if instance.required else st.just(())
    )
    gone, new = data.draw(parts), data.draw(parts)
    before, today = exclude(instance, new), exclude(instance, gone)
    plan = planned(before)
    if set(before.required) and not set(before.required) & set(today.required):
        return  # a plan of other streets
    repaired = repair(today, plan)
    assert repaired.ok
    assert check(today, repaired.solution).faults == ()
    assert repaired.dropped == len(set(before.required) - set(today.required))
    assert set(repaired.inserted) == set(today.required) - set(before.required)
    assert repaired.moved == ()
    old, now = numbers_of(plan), numbers_of(repaired.solution)
    assert all(old[link] == number for link, number in now.items() if link in old)


@given(connected_instances())
def test_a_plan_that_fits_is_left_as_it_is(instance: Instance) -> None:
    plan = planned(replace(instance, fleet_limit=None))
    repaired = repair(replace(instance, fleet_limit=None), plan)
    assert repaired.solution is plan
    assert (str(repaired), repaired.notes) == ("nothing changed", ())


@given(connected_instances(), st.integers(1, 12))
def test_a_smaller_capacity_moves_streets(instance: Instance, capacity: int) -> None:
    plan = planned(replace(instance, fleet_limit=None))
    most = max((link.demand for link in instance.links), default=0)
    today = replace(instance, fleet_limit=None, capacity=max(capacity, most, 1))
    repaired = repair(today, plan)
    assert repaired.ok
    assert check(today, repaired.solution).faults == ()


@given(connected_instances(), st.integers(1, 60))
def test_the_longest_route_is_kept_to(instance: Instance, slack: int) -> None:
    instance = replace(instance, fleet_limit=None)
    plan = planned(instance)
    alone = [
        repair(exclude(instance, set(instance.required) - {link}), plan).solution.cost
        for link in instance.required
    ]
    longest = max(alone, default=0) + slack
    repaired = repair(replace(instance, max_route_cost=longest), plan)
    assert repaired.ok
    assert all(r.cost - instance.route_cost <= longest for r in repaired.solution.routes)


def test_what_changed_is_said_in_one_line() -> None:
    town = star(3, 3, 3, 3, capacity=6)
    plan = planned(exclude(town, [3]))
    today = exclude(town, [0])
    repaired = repair(today, plan)
    expected = "dropped 1 street, inserted 1 street, recomputed the totals"
    assert str(repaired) == expected
    assert repaired.notes == (f"repaired the plan to start from: {expected}",)


def test_a_direction_that_is_closed_today_is_turned_round() -> None:
    ring = make_instance(street(1, 2, 1, 1), street(2, 3, 1, 1), street(3, 1, 1, 1))
    route = Route(
        services=(Service(2, True), Service(1, True), Service(0, True)), load=3, cost=3
    )
    plan = Solution(routes=(route,), cost=3, deadhead=0, service_cost=3)
    one_way = Link(tail=2, head=3, cost=1, one_way=True, required=True, demand=1)
    today = replace(ring, links=(ring.links[0], one_way, ring.links[2]))
    repaired = repair(today, plan)
    assert repaired.turned == (1,)
    assert check(today, repaired.solution).ok
    assert "turned 1 street round" in str(repaired)


def test_wrong_totals_are_recomputed() -> None:
    town = star(3, 3)
    plan = replace(planned(town), cost=1)
    repaired = repair(town, plan)
    assert str(repaired) == "recomputed the totals"
    assert check(town, repaired.solution).ok


def test_a_street_served_twice_is_served_once() -> None:
    town = star(3, 3)
    plan = planned(town)
    route = replace(plan.routes[0], services=(*plan.routes[0].services, Service(0)))
    repaired = repair(town, replace(plan, routes=(route,)))
    assert repaired.ok
    assert repaired.dropped == 1


def test_a_fleet_without_slack_is_named() -> None:
    town = star(5, 5, 5, capacity=5)
    plan = planned(town)
    repaired = repair(replace(town, fleet_limit=2), plan)
    assert not repaired.ok
    assert len(repaired.unplaced) == 1
    assert repaired.reason == "1 street fits on no route that may take them"


def test_an_excess_of_routes_is_dissolved() -> None:
    town = star(2, 2, 2)
    alone = tuple(
        Route(services=(Service(link),), load=2, cost=2 * (link + 2)) for link in range(3)
    )
    plan = Solution(routes=alone, cost=18, deadhead=9, service_cost=9)
    repaired = repair(replace(town, fleet_limit=1), plan)
    assert repaired.ok
    assert repaired.solution.num_routes == 1
    assert len(repaired.moved) == 2


def test_an_exact_fleet_is_filled() -> None:
    town = star(2, 2, 2)
    plan = planned(town)
    assert plan.num_routes == 1
    today = replace(town, fleet_limit=3, exact_fleet=True)
    assert repair(today, plan).solution.num_routes == 3


def test_pins_and_locks_are_obeyed() -> None:
    town = star(4, 4, 4, 4, capacity=8)
    plan = planned(town)
    numbers = numbers_of(plan)
    fixed = plan.numbers[0]
    mover = next(link for link in town.required if numbers[link] != fixed)
    today = pin(lock(town, plan, [fixed]), {mover: 3})
    repaired = repair(today, plan)
    assert repaired.ok
    now = numbers_of(repaired.solution)
    assert now[mover] == 3
    kept = dict(zip(repaired.solution.numbers, repaired.solution.routes, strict=True))
    assert kept[fixed].services == plan.routes[0].services


def test_streets_make_way_for_one_that_is_pinned() -> None:
    town = star(4, 4, 4, 4, capacity=8)
    plan = planned(town)
    numbers = numbers_of(plan)
    mover = next(link for link in town.required if numbers[link] != 1)
    repaired = repair(pin(town, {mover: 1}), plan)
    assert repaired.ok
    assert numbers_of(repaired.solution)[mover] == 1
    assert check(town, repaired.solution).ok


def test_pinned_streets_that_moved_are_counted() -> None:
    town = star(4, 4, 4, 4, capacity=8)
    plan = planned(town)
    mover = next(link for link in town.required if numbers_of(plan)[link] != 1)
    repaired = repair(pin(town, {mover: 1}), plan)
    assert repaired.pinned == (mover,)
    assert len(repaired.moved) == 1
    assert str(repaired) == (
        "moved 1 pinned street, moved 1 street to keep to the limits, recomputed the totals"
    )


def test_a_lock_that_cannot_be_driven_is_a_fault() -> None:
    town = star(4, 4, 4, capacity=8)
    everything = Lock(route=1, services=((0, False), (1, False), (2, False)))
    repaired = repair(replace(town, locks=(everything,)), planned(town))
    assert not repaired.ok
    assert (
        repaired.reason == "vehicle 'vehicle' cannot reach or carry all of locked route 1"
    )


def test_solve_says_why_a_lock_does_not_fit_any_more() -> None:
    town = star(4, 4, 4, capacity=8)
    plan = planned(town)
    full = next(n for n, x in zip(plan.numbers, plan.routes, strict=True) if x.load == 8)
    message = f"expected locked route {full} to fit its vehicle, got demands of 8 together"
    with refused(UnsolvableError, message):
        solve(replace(town, capacity=7), start=plan, lock=[full])


# --- Plans of other instances -------------------------------------------------------------


def renamed(instance: Instance, order: list[int]) -> Instance:
    """The same streets in another order, every second one the other way round."""
    links = []
    for position, index in enumerate(order):
        link = instance.links[index]
        if position % 2 and not link.one_way:
            link = replace(
                link,
                tail=link.head,
                head=link.tail,
                geometry=link.geometry[::-1],
                cost=link.reverse_cost or 0,
                reverse_cost=link.cost,
                service_cost=link.reverse_service_cost,
                reverse_service_cost=link.service_cost,
                seconds=None,
                reverse_seconds=None,
            )
        links.append(link)
    return replace(instance, links=tuple(links), turns=())


@given(connected_instances(), st.data())
def test_streets_are_found_again_in_another_order(
    instance: Instance, data: st.DataObject
) -> None:
    instance = replace(instance, fleet_limit=None, turns=(), u_turns="allowed")
    order = data.draw(st.permutations(range(len(instance.links))))
    today = renamed(instance, order)
    plan = planned(instance)
    repaired = repair(today, plan, instance)
    assert repaired.ok
    assert repaired.dropped == 0
    assert repaired.inserted == ()
    matches = match_links(instance, today)
    assert sorted(new for new, _ in matches.values()) == list(range(len(order)))
    ends = [
        {instance.links[old].tail, instance.links[old].head}
        == {today.links[new].tail, today.links[new].head}
        for old, (new, _) in matches.items()
    ]
    assert all(ends)


def test_parallel_streets_are_told_apart_by_name_and_line() -> None:
    north, south = (
        ((0.0, 0.0), (0.5, 1.0), (1.0, 0.0)),
        ((0.0, 0.0), (0.5, -1.0), (1.0, 0.0)),
    )
    old = make_instance(
        street(1, 2, 1, 1, geometry=north),
        street(1, 2, 1, 1, geometry=south),
        street(1, 2, 1, 1, name="Quai"),
    )
    new = replace(old, links=(old.links[2], old.links[1], old.links[0]))
    assert match_links(old, new) == {0: (2, False), 1: (1, False), 2: (0, False)}


def test_junctions_with_new_numbers_are_found_by_their_places(village: Instance) -> None:
    # A map that is read anew may number its junctions in another order.
    numbers = dict(zip(village.nodes, reversed(village.nodes), strict=True))
    today = replace(
        village,
        nodes=tuple(numbers[node] for node in village.nodes),
        links=tuple(
            replace(link, tail=numbers[link.tail], head=numbers[link.head])
            for link in village.links
        ),
        depot=numbers[village.depot],
    )
    same = {position: (position, False) for position in range(len(village.links))}
    assert match_links(village, today) == same
    plan = planned(village)
    repaired = repair(today, plan, village)
    assert (repaired.ok, repaired.dropped, repaired.inserted) == (True, 0, ())
    assert numbers_of(repaired.solution) == numbers_of(plan)
    # A junction that moved a little is the same; one elsewhere is not.
    places = village.coordinates
    near = replace(village, coordinates=tuple((x + 1e-4, y) for x, y in places))
    assert match_links(village, near) == same
    far = replace(village, coordinates=tuple((x + 1, y) for x, y in places))
    assert match_links(village, far) == {}


def test_equal_streets_match_that_of_their_position() -> None:
    old = make_instance(street(1, 2, 1, 1), street(1, 2, 1), street(2, 3, 1, 1))
    matches = match_links(old, exclude(old, [0]))
    assert matches == {0: (0, False), 1: (1, False), 2: (2, False)}


def test_a_plan_of_another_town_is_one_sentence(village: Instance) -> None:
    plan = planned(village)
    with refused(SolutionError, "expected a plan of instance 'star', with links from 0 to"):
        repair(star(1, 1), plan)
    moved = replace(village, links=village.links[1:])
    with refused(SolutionError, "(--old-instance), or start without it"):
        repair(moved, plan)
    other = make_instance(street(901, 902, 1, 1), street(902, 1, 1, 1), street(1, 901))
    with refused(SolutionError, "all of streets that it does not require"):
        repair(other, plan, village)
    with refused(SolutionError, "all of streets that it does not require"):
        repair(exclude(village, village.required), plan)


def test_a_plan_without_routes_is_filled() -> None:
    town = star(2, 2)
    repaired = repair(town, NO_ROUTES)
    assert repaired.ok
    assert repaired.inserted == (0, 1)


def test_solve_repairs_and_says_so(village: Instance) -> None:
    plan = planned(village)
    today = exclude(village, ["Mill Lane"])
    stop = Stop(iterations=20)
    result = solve(today, start=plan, stop=stop)
    assert check(today, result.solution).ok
    assert result.notes[0].startswith("repaired the plan to start from: dropped ")
    assert "note        repaired" in result.summary()
    assert result.to_dict()["notes"] == list(result.notes)
    again = solve(today, start=result.solution, stop=stop)
    assert again.notes == ()
    assert "notes" not in again.to_dict()


def test_solve_searches_without_a_plan_that_cannot_be_repaired() -> None:
    town = star(5, 5, 4, 4, 1, 1, capacity=10, fleet_limit=2)
    # 5 + 4 and 5 + 4 leave no slack of 2; the search finds 5 + 5 and 4 + 4 + 2.
    start = Solution(
        routes=(
            Route(services=(Service(0), Service(2)), load=9, cost=12),
            Route(services=(Service(1), Service(3)), load=9, cost=16),
        ),
        cost=28,
        deadhead=14,
        service_cost=14,
    )
    two = replace(town.links[4], demand=2)
    town = replace(town, links=(*town.links[:4], two))
    result = solve(town, start=start, stop=Stop(iterations=500))
    assert check(town, result.solution).ok
    assert result.notes == (
        "searched without the plan to start from: 1 street fits on no route that may take "
        "them",
    )


@pytest.mark.parametrize("field", ["previous", "locks"])
def test_keep_and_lock_of_solve_are_those_of_the_functions(
    village: Instance, field: str
) -> None:
    plan = planned(village)
    result = solve(village, start=plan, keep=50, lock=[1], stop=Stop(iterations=1))
    changed = keep(lock(village, plan, [1]), plan, 50)
    assert getattr(result.instance, field) == getattr(changed, field)
    assert result.instance.change_price == 50


def test_solve_starts_from_the_file_of_a_plan(village: Instance, tmp_path: Path) -> None:
    plan = planned(village)
    path = tmp_path / "plan.json"
    write_solution(village, plan, path)
    stop = Stop(iterations=5)
    read, given = (solve(village, start=x, lock=[1], stop=stop) for x in (path, plan))
    assert read.solution == given.solution
    assert repair(village, str(path)).ok


def test_slips_in_the_start_are_one_sentence(village: Instance) -> None:
    result = solve(village, "ps", stop=Stop(iterations=1))
    wrong: Any = result
    with refused(OptionError, "got Result: take its solution"):
        solve(village, start=wrong)
    for wrong in (3, "3", [True]):
        message = f"expected numbers of routes to lock as in [3], got {wrong!r}"
        with refused(OptionError, message):
            solve(village, start=result.solution, lock=wrong)
