"""Cities that are planned in areas: above a number of tasks, which the tests lower."""

from dataclasses import replace
from itertools import pairwise

import pytest

from arcfleet import Instance, Stop, Turn, check, solve
from arcfleet.errors import InstanceError
from arcfleet.network import Network
from arcfleet.solution.shape import shape
from arcfleet.streets.scene import SceneRules, cut_scene
from tests.helpers import make_instance, solved, street
from tests.towns import town


@pytest.fixture(autouse=True)
def _small_areas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arcfleet.search.ruin_recreate.AREAS_FROM", 60)
    monkeypatch.setattr("arcfleet.search.ruin_recreate.AREA_TASKS", 40)


@pytest.fixture(scope="module")
def city() -> Instance:
    """With one-way streets and turn rules, as real ones have."""
    return cut_scene(town(1, one_way=0.3), SceneRules(capacity=5000)).instance


def grid(size: int, **more: object) -> Instance:
    nodes = [[1 + size * y + x for x in range(size)] for y in range(size)]
    pairs = [pair for row in (*nodes, *zip(*nodes, strict=True)) for pair in pairwise(row)]
    links = [
        street(*pair, cost=10 + i % 7, demand=1 + i % 3) for i, pair in enumerate(pairs)
    ]
    return make_instance(*links, **{"capacity": 30, **more})


def test_areas_find_plans_as_good_as_those_of_the_whole(
    city: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arcfleet.search.ruin_recreate.AREA_TASKS", 200)
    stop = Stop(iterations=200_000)
    in_areas = solved(city, stop=stop, seed=1)
    monkeypatch.setattr("arcfleet.search.ruin_recreate.AREAS_FROM", 10**6)
    whole = solved(city, stop=stop, seed=1)
    assert in_areas.cost != whole.cost  # it was another search
    assert in_areas.cost < 1.03 * whole.cost


def test_same_seed_same_plan_with_any_number_of_threads(city: Instance) -> None:
    one, two, other = (
        solved(city, stop=Stop(iterations=6000), seed=seed, threads=threads)
        for seed, threads in [(3, 1), (3, 2), (4, 1)]
    )
    assert one.solution == two.solution
    assert one.iterations == two.iterations == 6000
    assert other.solution != one.solution


def test_a_start_is_never_made_worse(city: Instance) -> None:
    first = solved(city, stop=Stop(iterations=3000), seed=1)
    again = solved(city, stop=Stop(iterations=3000), seed=2, start=first.solution)
    assert again.cost < first.cost
    at_once = solved(city, stop=Stop(iterations=1), seed=2, start=again.solution)
    assert at_once.cost <= again.cost


def test_a_start_is_kept_where_the_search_ends_while_it_is_hot(city: Instance) -> None:
    first = solved(city, stop=Stop(iterations=100_000), seed=1)
    for seed in range(4):
        stop = Stop(iterations=40)
        again = solved(city, stop=stop, seed=seed, start=first.solution)
        assert again.cost <= first.cost


@pytest.mark.parametrize("threads", [1, 2])
def test_no_improvement_does_not_depend_on_the_clock(
    city: Instance, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = []
    for slices in (0.04, 0.002, 5.0):
        monkeypatch.setattr("arcfleet.search.run._SLICE_SECONDS", slices)
        stop = Stop(no_improvement=500)
        result = solved(city, stop=stop, seed=5, threads=threads)
        assert result.stopped_by == "no_improvement"
        plans.append((result.iterations, result.solution))
    assert plans[0] == plans[1] == plans[2]


@pytest.mark.parametrize("turns", ["allowed", "dead-ends"])
def test_a_fleet_limit_is_kept(turns: str) -> None:
    free = grid(9, u_turns=turns)
    least = -(-sum(link.demand for link in free.links) // free.capacity)
    limited = replace(free, fleet_limit=least + 1)
    result = solved(limited, stop=Stop(iterations=60_000), seed=1)
    assert result.solution.num_routes <= least + 1


def test_one_route_is_one_area() -> None:
    alone = grid(8, capacity=10**6)
    result = solved(alone, stop=Stop(iterations=5000), seed=1)
    assert result.solution.num_routes == 1


def test_routes_that_are_too_long_for_an_area_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arcfleet.search.ruin_recreate.MAX_TERMINALS", 200)
    with pytest.raises(InstanceError, match=r"at most 20 streets, found 112 tasks"):
        solve(grid(8, capacity=10**6), stop=Stop(iterations=1))


def test_costs_of_all_routes_may_exceed_what_one_may_cost() -> None:
    dear = grid(9, capacity=6)
    links = [
        replace(x, cost=x.cost * 2**16, reverse_cost=x.cost * 2**16) for x in dear.links
    ]
    dear = replace(
        dear,
        links=tuple(
            replace(x, service_cost=x.cost, reverse_service_cost=x.cost) for x in links
        ),
    )
    result = solved(dear, stop=Stop(iterations=2000), seed=1)
    assert result.cost > 2**29 / 4
    with pytest.raises(InstanceError, match="coarser unit"):
        solve(replace(dear, capacity=10**6), stop=Stop(iterations=1))


def test_the_best_plan_so_far_is_there_at_any_time(city: Instance) -> None:
    seen = []

    def stop_early(progress: object) -> bool:
        seen.append(progress.solution)  # type: ignore[attr-defined]
        return len(seen) == 3

    result = solve(city, stop=stop_early, seed=1)
    assert all(check(city, plan).ok for plan in seen)
    assert result.solution == seen[-1]
    assert [step.cost for step in result.history] == sorted(
        (step.cost for step in result.history), reverse=True
    )


def test_the_shape_of_a_plan_needs_no_matrix(
    city: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = solved(city, stop=Stop(iterations=500), seed=1)
    whole = shape(city, result.solution, Network(city))
    monkeypatch.setattr("arcfleet.solution.shape.IN_PARTS_FROM", 60)
    other = replace(city, name="other")  # shapes of one instance are kept
    in_parts = shape(other, result.solution, Network(city, in_parts=True))
    assert in_parts.longest == whole.longest
    # The nearest street may lie across the border of an area both times.
    assert abs(in_parts.interleaving - whole.interleaving) < 0.05
    assert shape(replace(city, name="third"), result.solution) == in_parts


def test_the_sum_of_all_areas_may_exceed_32_bits() -> None:
    city = grid(15, capacity=4)
    dear = [x.cost * 2**17 for x in city.links]
    city = replace(
        city,
        links=tuple(
            replace(
                x, cost=c, reverse_cost=c, service_cost=c, reverse_service_cost=c, demand=1
            )
            for x, c in zip(city.links, dear, strict=True)
        ),
    )
    one, two = (
        solved(city, stop=Stop(iterations=8000), seed=1, threads=threads)
        for threads in (1, 2)
    )
    assert one.cost > 2**32
    assert one.solution == two.solution
    costs = [step.cost for step in one.history]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > costs[-1] == one.cost
    again = solved(city, stop=Stop(iterations=500), seed=2, start=one.solution)
    assert 2**32 < again.cost <= one.cost


def test_streets_that_can_be_served_one_way_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The turn rules close all ways to their other ends; within every area, too."""
    city = grid(9)
    closed = range(3, len(city.links), 5)
    ways = [
        (number, reverse, link.tail if reverse else link.head)
        for number, link in enumerate(city.links)
        for reverse in (False, True)
    ]
    rules = tuple(
        Turn(number, reverse, link, True, None)
        for link in closed
        for number, reverse, node in ways
        if node == city.links[link].head
    )
    city = replace(city, turns=rules, depot=1)
    assert Network(city).core.closed_cost > 0
    one, two = (
        solved(city, stop=Stop(iterations=6000), seed=3, threads=threads)
        for threads in (1, 2)
    )
    assert one.solution == two.solution
    served = {x.link: x.reverse for route in one.solution.routes for x in route.services}
    assert not any(served[link] for link in closed)
    assert any(served.values())
    again = solved(city, stop=Stop(iterations=3000), seed=4, start=one.solution)
    assert again.cost <= one.cost
    longer = solved(city, stop=Stop(iterations=60_000), seed=3)
    monkeypatch.setattr("arcfleet.search.ruin_recreate.AREAS_FROM", 10**6)
    whole = solved(city, stop=Stop(iterations=60_000), seed=3)
    assert longer.cost < 1.03 * whole.cost


@pytest.mark.parametrize("turns", ["allowed", "dead-ends"])
def test_first_plans_of_too_many_routes_settle_within_the_fleet_limit(turns: str) -> None:
    free = grid(9, u_turns=turns)
    least = -(-sum(link.demand for link in free.links) // free.capacity)
    first = solved(free, stop=Stop(iterations=1), seed=1).solution
    assert first.num_routes > least + 1
    tight = replace(free, fleet_limit=least)
    one, two = (
        solved(tight, stop=Stop(iterations=60_000), seed=1, threads=threads)
        for threads in (1, 2)
    )
    assert one.solution.num_routes == least
    assert one.solution == two.solution
    again = solved(tight, stop=Stop(iterations=2000), seed=2, start=one.solution)
    assert again.cost <= one.cost
    wide = replace(free, fleet_limit=first.num_routes)
    begun = solved(wide, stop=Stop(iterations=2000), seed=2, start=first)
    assert begun.cost <= first.cost
