from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcfleet import Assignment, Facility, Instance, Lock, Stop, Vehicle, solve
from arcfleet.errors import OptionError, UnsolvableError
from arcfleet.search.path_scanning import PATH_SCANNING_VARIANTS
from tests.fleet_strategies import fleet_instances
from tests.helpers import make_instance, refused, solved, star, street

VARIANTS = sorted(PATH_SCANNING_VARIANTS)
FEW = Stop(iterations=5)


def two_towns(**more: object) -> Instance:
    """Two stars of streets far apart, with a depot in the middle of each."""
    here = [street(1, n, 5, 2) for n in range(2, 7)]
    there = [street(11, n, 5, 2) for n in range(12, 17)]
    types = (
        Vehicle(name="here", start=1, capacity=10),
        Vehicle(name="there", start=11, capacity=10),
    )
    return make_instance(*here, *there, street(1, 11, 100), vehicles=types, **more)


@pytest.mark.parametrize("method", VARIANTS)
def test_every_variant_with_every_rule(method: str) -> None:
    instance = replace(
        two_towns(),
        facilities=(Facility(node=2, cost=3), Facility(node=13)),
        pins=(Assignment(3, 7),),
        locks=(Lock(route=2, services=((0, False), (1, True))),),
        previous=(Assignment(5, 7),),
        change_price=4,
        compactness=2,
        balance=0.5,
    )
    result = solved(instance, method, stop=FEW, seed=1)
    assert {2, 7} <= set(result.solution.numbers)


@given(
    fleet_instances(max_nodes=9, max_extra_links=9),
    st.sampled_from([*VARIANTS, "ruin-recreate"]),
    st.integers(0, 9),
)
def test_plans_keep_all_rules(instance: Instance, method: str, seed: int) -> None:
    with suppress(UnsolvableError):
        solved(instance, method, stop=Stop(iterations=3), seed=seed)


def test_every_depot_works_near_it() -> None:
    result = solved(two_towns(), "ps", stop=FEW)
    assert result.cost == 2 * 5 * 10
    assert sorted(route.vehicle for route in result.solution.routes) == [0, 1]


def test_the_cheaper_type_is_taken() -> None:
    types = (
        Vehicle(name="dear", start=1, capacity=10, fixed_cost=50),
        Vehicle(name="cheap", start=1, capacity=5, fixed_cost=1),
    )
    result = solved(star(*[1] * 10, vehicles=types), "ps", stop=FEW)
    assert [route.vehicle for route in result.solution.routes] == [1, 1]
    fewest = star(*[1] * 10, vehicles=types, fewest_routes=True)
    assert len(solved(fewest, "ps", stop=FEW).solution.routes) == 1


def test_few_vehicles_first_serve_what_others_cannot() -> None:
    # The narrow vehicle may go everywhere, but there is only one.
    narrow = range(3, 8)
    types = (
        Vehicle(name="narrow", start=1, capacity=5, count=1),
        Vehicle(name="wide", start=1, capacity=5, forbidden_links=tuple(narrow)),
    )
    result = solved(star(*[1] * 8, capacity=5, vehicles=types), "ps", stop=FEW)
    by_type = {route.vehicle: route for route in result.solution.routes}
    assert {each.link for each in by_type[0].services} == set(narrow)


@pytest.mark.parametrize("routes", [1, 2, 3, 6])
def test_an_exact_fleet_shares_the_work(routes: int) -> None:
    instance = star(*[1] * 6, cost=lambda _: 4, fleet_limit=routes, exact_fleet=True)
    result = solved(instance, "ps", stop=FEW)
    assert [len(route.services) for route in result.solution.routes] == (
        [6 // routes] * routes
    )


def test_trips_by_way_of_facilities() -> None:
    instance = star(*[5] * 6, facilities=(Facility(node=1, cost=1),))
    result = solved(instance, "ps", stop=FEW)
    (route,) = result.solution.routes
    assert [visit.services for visit in route.visits] == [2, 4, 6]
    short = replace(instance, max_route_cost=40)
    assert len(solved(short, "ps", stop=FEW).solution.routes) > 1


def test_threads_change_nothing() -> None:
    instance = replace(two_towns(), facilities=(Facility(node=4, cost=1),))
    stop = Stop(iterations=40)
    plans = [
        solved(instance, "ps-random-rule", stop=stop, seed=3, threads=threads).solution
        for threads in (1, 2)
    ]
    assert plans[0] == plans[1]


def test_more_plans_are_no_worse() -> None:
    instance = replace(two_towns(), facilities=(Facility(node=3),), fewest_routes=True)
    costs = [
        solved(instance, "ps-random-arc", stop=Stop(iterations=n)).cost for n in (1, 5, 50)
    ]
    assert costs == sorted(costs, reverse=True)
    assert solved(instance, stop=Stop(iterations=500)).cost <= costs[-1]


def test_no_plan_within_the_fleet() -> None:
    # Two vehicles hold it all, but not by going to the nearest street first.
    links = [street(n, n + 1, 1, demand) for n, demand in enumerate((4, 4, 3, 3, 6), 1)]
    instance = make_instance(*links, fleet_limit=2, max_route_cost=99)
    with refused(UnsolvableError, "found no plan that keeps all rules (a longest route)"):
        solve(instance, "ps", stop=FEW)
    assert len(solved(instance, stop=Stop(iterations=200)).solution.routes) == 2


def test_a_warm_start_is_refused() -> None:
    plan = solved(two_towns(), "ps", stop=FEW).solution
    with refused(OptionError, "use 'ruin-recreate' or give no start"):
        solve(two_towns(), "ps", stop=FEW, start=plan)
