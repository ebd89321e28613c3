"""The checker follows every turn of a plan."""

from dataclasses import replace

import pytest

from arcfleet import Instance, Turn
from arcfleet.solution.checker import check
from arcfleet.solution.solution import Route, Service, Solution
from tests.helpers import make_instance, steps, street

#   1 --0-- 2 --1-- 3      Three streets that meet at 2, and one-way streets 3 > 4 > 1.
#           |       |3
#   2: 2-5, a dead end     4: 4 > 1
TOWN = make_instance(
    street(1, 2, 4, 1),
    street(2, 3, 5),
    street(2, 5, 3, 1),
    street(3, 4, 2, one_way=True),
    street(4, 1, 6, one_way=True),
)
AT_DEAD_ENDS = replace(TOWN, u_turns="dead-ends", u_turn_penalty=10)


def plan(cost: int, path: str, services: tuple[Service, ...] = ()) -> Solution:
    """One route that serves links 0 and 2, unless told otherwise."""
    services = services or (Service(0), Service(2))
    serving = 7
    route = Route(services=services, load=2, cost=cost, path=steps(path))
    return Solution(
        routes=(route,), cost=cost, deadhead=cost - serving, service_cost=serving
    )


@pytest.mark.parametrize(
    ("instance", "cost", "path"),
    [
        (TOWN, 14, "0! 2! -2 -0"),
        (AT_DEAD_ENDS, 24, "0! 2! -2 -0"),  # a U-turn at the dead end, node 5
        # A penalty of a turn counts, also between a service and a deadhead.
        (replace(TOWN, turns=(Turn(2, True, 0, True, 8),)), 22, "0! 2! -2 -0"),
        # A forbidden turn is driven round: by 3 and 4, or through a U-turn at 1.
        (replace(TOWN, turns=(Turn(2, True, 0, True),)), 23, "0! 2! -2 1 3 4"),
        # None is taken where the route leaves the depot or comes home.
        (replace(TOWN, turns=(Turn(0, True, 0, False),)), 14, "0! 2! -2 -0"),
    ],
)
def test_good_plans(instance: Instance, cost: int, path: str) -> None:
    good = plan(cost, path)
    assert check(instance, good).faults == ()
    bare = replace(good, routes=(replace(good.routes[0], path=()),))
    assert check(instance, bare).faults == ()


@pytest.mark.parametrize(
    ("instance", "cost", "path", "faults"),
    [
        (
            replace(TOWN, turns=(Turn(2, True, 0, True),)),
            23,
            "0! 2! -2 -0",
            [
                "route 1: step 4 of the path turns at node 2 from link 2 (2-5) onto "
                "link 0 (1-2), which is forbidden"
            ],
        ),
        (
            replace(AT_DEAD_ENDS, turns=(Turn(2, False, 2, True, 0),)),
            14,
            "0 -0 0! 2! -2 -0",
            [
                "route 1: step 2 of the path turns at node 2 from link 0 (1-2) onto "
                "link 0 (1-2) by a U-turn, which is forbidden",
                # Node 1 is a dead end: link 4 only leads there.
            ],
        ),
        (
            AT_DEAD_ENDS,
            14,  # without the penalty of the U-turn
            "0! 2! -2 -0",
            [
                "route 1: cost is stated as 14, recomputed it is 24",
                "route 1: the path costs 24, but the stated cost is 14",
                "total cost is stated as 14, recomputed it is 24",
                "total deadhead is stated as 7, recomputed it is 17",
            ],
        ),
        (
            AT_DEAD_ENDS,
            24,
            "0! 1 -1 2! -2 -0",
            ["route 1: step 3 of the path turns at node 3"],
        ),
    ],
)
def test_faults_of_turns(
    instance: Instance, cost: int, path: str, faults: list[str]
) -> None:
    found = check(instance, plan(cost, path)).faults
    assert len(found) == len(faults)
    for fault, expected in zip(found, faults, strict=True):
        assert fault.startswith(expected)


def test_no_way_by_the_turn_rules() -> None:
    closed = replace(TOWN, u_turns="forbidden")
    faults = check(closed, plan(14, "")).faults
    assert faults[0] == "route 1: there is no way from node 5 to 1 by the turn rules"
    assert len(faults) == 1  # costs are undefined, so nothing is stated wrong


def test_one_way_in_reverse_beside_turn_rules_is_one_fault() -> None:
    wrong = plan(14, "", (Service(0), Service(2), Service(3, reverse=True)))
    faults = check(replace(AT_DEAD_ENDS), wrong).faults
    assert any("serves one-way link 3 (3>4) in reverse" in fault for fault in faults)
    assert any("is not required" in fault for fault in faults)
