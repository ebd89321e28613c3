import re
from dataclasses import replace
from typing import Any

import pytest

from arcfleet.instance.instance import Instance
from arcfleet.solution.checker import check
from arcfleet.solution.solution import Route, Service, Solution, Step
from tests.helpers import NO_ROUTES, make_instance, steps, street

#   1 ==0== 2 --1-> 3      0: two-way, 4 forward, 6 back; serving 10 and 12; demand 3
#   ^       |       |      1: one-way 2>3, cost 5, serving 7, demand 2
#   |       2       3      2: two-way 2-4, cost 3, not required
#   +--4--- 4 ======+      3: two-way 3-4, cost 2, serving 9, demand 4
#                          4: one-way 4>1, cost 1, not required
INSTANCE = make_instance(
    street(1, 2, 4, 3, reverse_cost=6, service_cost=10, reverse_service_cost=12),
    street(2, 3, 5, 2, one_way=True, service_cost=7),
    street(2, 4, 3),
    street(3, 4, 2, 4, service_cost=9),
    street(4, 1, 1, one_way=True),
    street(5, 2, 8, one_way=True),
    capacity=6,
    route_cost=100,
    fleet_limit=2,
)
# Serves 0 forward (10) and 1 (7), drives 3 (2) and 4 (1) home: 20 and the fixed 100.
FIRST = Route(services=(Service(0), Service(1)), load=5, cost=120, path=steps("0! 1! 3 4"))
# Drives 0 and 2 (7) to 4, serves 3 in reverse (9), drives 3 and 4 (3) home.
SECOND = Route(
    services=(Service(3, reverse=True),), load=4, cost=119, path=steps("0 2 -3! 3 4")
)
GOOD = Solution(routes=(FIRST, SECOND), cost=239, deadhead=13, service_cost=26)


def with_second(**changes: Any) -> Solution:
    return replace(GOOD, routes=(FIRST, replace(SECOND, **changes)))


def expect(solution: Solution, *patterns: str, instance: Instance = INSTANCE) -> None:
    """Exactly these faults, in any order."""
    faults = list(check(instance, solution).faults)
    for pattern in patterns:
        found = [fault for fault in faults if re.search(pattern, fault)]
        assert len(found) == 1, f"{pattern!r} in {faults}"
        faults.remove(found[0])
    assert faults == []


def test_good_plan_with_and_without_paths() -> None:
    bare = tuple(replace(route, path=()) for route in GOOD.routes)
    for plan in (GOOD, replace(GOOD, routes=bare)):
        report = check(INSTANCE, plan)
        assert report.ok
        assert report.faults == ()
        assert (report.cost, report.deadhead, report.service_cost) == (239, 13, 26)


def backwards_plan() -> Solution:
    """Drive 0 to serve it in reverse (12); reach 3 through 2 and 3, and 1 through 2."""
    turned = (Service(0, reverse=True),)
    first = Route(services=turned, load=3, cost=116, path=steps("0 -0!"))
    path = steps("0 2 -3 3! -2 1! 3 4")
    second = Route(services=(Service(3), Service(1)), load=6, cost=131, path=path)
    return Solution(routes=(first, second), cost=247, deadhead=19, service_cost=28)


def test_good_plan_in_reverse_whose_vehicle_is_full() -> None:
    expect(backwards_plan())
    expect(
        backwards_plan(),
        r"^route 2: expected a load of at most the capacity \(5\), got 6$",
        instance=replace(INSTANCE, capacity=5),
    )


def test_empty_plan_is_right_only_where_nothing_is_required() -> None:
    assert check(replace(INSTANCE, links=INSTANCE.links[4:]), NO_ROUTES).ok
    expect(NO_ROUTES, "link 0 .* never", "link 1 .* never", "link 3 .* never")
    first = Solution(routes=(FIRST,), cost=120, deadhead=3, service_cost=17)
    expect(first, r"^link 3 \(3-4\) is never served$")


def test_repeated_link_names_its_routes() -> None:
    # Serving 3 on the first way home as well costs 7 more and overloads nothing else.
    services = (*FIRST.services, Service(3))
    again = Route(services=services, load=9, cost=127, path=steps("0! 1! 3! 4"))
    plan = Solution(routes=(again, SECOND), cost=246, deadhead=11, service_cost=35)
    expect(
        plan,
        r"^link 3 \(3-4\) is served 2 times, on routes 1, 2$",
        r"^route 1: expected a load of at most the capacity \(6\), got 9$",
    )


def test_service_of_a_link_that_is_not_required() -> None:
    extra = replace(SECOND, services=(Service(2), *SECOND.services), path=())
    plan = replace(GOOD, routes=(FIRST, extra), deadhead=10)
    expect(plan, r"^route 2: serves link 2 \(2-4\), which is not required$")
    report = check(INSTANCE, plan)
    assert (report.cost, report.deadhead, report.service_cost) == (None, 10, None)


@pytest.mark.parametrize("garbage", [6, -1, 10**30, True, None, "3", 3.0, [3]])
def test_service_of_a_link_that_does_not_exist(garbage: Any) -> None:
    plan = with_second(services=(Service(garbage), *SECOND.services), path=())
    expect(plan, rf"^route 2: serves link {re.escape(repr(garbage))}, which does not exist")
    report = check(INSTANCE, plan)
    assert (report.cost, report.deadhead, report.service_cost) == (None, None, None)


def test_one_way_link_served_in_reverse() -> None:
    wrong = Route(services=(Service(0), Service(1, reverse=True)), load=5, cost=0)
    expect(
        replace(GOOD, routes=(wrong, SECOND), deadhead=19),
        r"^route 1: serves one-way link 1 \(2>3\) in reverse$",
    )


def test_unreachable_deadhead() -> None:
    links = tuple(link for i, link in enumerate(INSTANCE.links) if i not in (2, 4))
    instance = replace(INSTANCE, links=links)
    # Without links 2 and 4 there is no way from 3 and 4 back to 2 and 1.
    first = Route(services=(Service(0), Service(1)), load=5, cost=120)
    second = Route(services=(Service(2),), load=4, cost=119)
    plan = Solution(routes=(first, second), cost=239, deadhead=13, service_cost=26)
    expect(
        plan,
        "^route 1: there is no way from node 3 to 1$",
        "^route 2: there is no way from node 4 to 1$",
        instance=instance,
    )
    report = check(instance, plan)
    assert (report.cost, report.deadhead, report.service_cost) == (None, None, 26)
    # Beside an unknown link.
    instance = replace(INSTANCE, links=INSTANCE.links[:2])
    route = Route(services=(Service(77), Service(0), Service(1)), load=0, cost=0)
    expect(
        replace(NO_ROUTES, routes=(route,)),
        "link 77, which does not exist",
        "no way from node 3 to 1",
        instance=instance,
    )


@pytest.mark.parametrize("route_number", [1, 2])
def test_stated_load(route_number: int) -> None:
    routes = list(GOOD.routes)
    right = routes[route_number - 1].load
    routes[route_number - 1] = replace(routes[route_number - 1], load=right + 1)
    expect(
        replace(GOOD, routes=tuple(routes)),
        rf"^route {route_number}: load is stated as {right + 1}, recomputed it is {right}$",
    )


def test_stated_route_cost() -> None:
    expect(
        with_second(cost=118),
        "^route 2: cost is stated as 118, recomputed it is 119$",
        "^route 2: the path costs 119, but the stated cost is 118$",
    )


@pytest.mark.parametrize(
    ("field", "name", "right"),
    [
        ("cost", "total cost", 239),
        ("deadhead", "total deadhead", 13),
        ("service_cost", "total service cost", 26),
    ],
)
@pytest.mark.parametrize("wrong", [0, None, float("nan")])
def test_stated_totals(field: str, name: str, right: int, wrong: Any) -> None:
    plan = replace(GOOD, **{field: wrong})
    expect(plan, f"^{name} is stated as {wrong}, recomputed it is {right}$")


def test_too_many_routes_and_an_empty_one() -> None:
    expect(GOOD, "^expected at most 1 routes", instance=replace(INSTANCE, fleet_limit=1))
    empty = replace(GOOD, routes=(*GOOD.routes, Route(services=(), load=0, cost=0)))
    free = replace(INSTANCE, fleet_limit=None)
    expect(empty, "^route 3: serves nothing$", instance=free)


@pytest.mark.parametrize(
    ("path", "fault", "cost"),
    [
        (
            "2 -3! 3 4",
            r"step 1 of the path takes link 2 .* from node 2, but .* at node 1 \(the depot",
            115,
        ),
        ("0 2 -3! 3", "^route 2: the path ends at node 4, not at depot 1$", 118),
        (
            "0 -3! 3 4",
            "step 2 of the path takes link 3 .* from node 4, but the vehicle is at node 2$",
            116,
        ),
        ("-4 -3! 3 4", r"step 1 of the path drives one-way link 4 \(4>1\) in rev", None),
        # There and back along 2 before going home costs 6.
        ("0 2 -3! 3 -2 2 4", "the path costs 125, but the stated cost is 119", None),
        (
            "0 2 -3 3! 4",
            "serve .* service 1 is link 3 forward on the path, link 3 in reverse as",
            None,
        ),
        ("0 2 -3 3 4", "does not serve .* 0 services on the path, 1 stated", 112),
    ],
)
def test_paths_that_are_wrong(path: str, fault: str, cost: int | None) -> None:
    faults = [fault] if cost is None else [fault, f"the path costs {cost}"]
    expect(with_second(path=steps(path)), *faults)


def test_path_along_a_link_that_does_not_exist() -> None:
    path = (SECOND.path[0], Step(-7, False, False), *SECOND.path[2:])
    expect(
        with_second(path=path), "step 2 of the path drives along link -7, which does not"
    )


def test_every_fault_is_named() -> None:
    plan = Solution(
        routes=(
            Route(services=(Service(0), Service(0, reverse=True)), load=1, cost=2),
            Route(services=(Service(1, reverse=True), Service(99)), load=5, cost=5),
            Route(services=(), load=3, cost=0, path=steps("4")),
        ),
        cost=1,
        deadhead=2,
        service_cost=3,
    )
    expect(
        plan,
        "^link 3 .* is never served",
        "^link 0 .* is served 2 times, on routes 1, 1",
        "^expected at most 2 routes",
        "^route 1: load is stated as 1, recomputed it is 6",
        "^route 1: cost is stated as 2, recomputed it is 122",
        "^route 2: serves one-way link 1 .* in reverse",
        "^route 2: serves link 99, which does not exist",
        "^route 3: serves nothing",
        "^route 3: load is stated as 3, recomputed it is 0",
        "^route 3: step 1 of the path takes link 4 .* from node 4",
        "^route 3: the path costs 1, but the stated cost is 0",
    )
