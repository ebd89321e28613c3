from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from arcfleet import Instance, Service, Solution, Stop, check, evaluate
from arcfleet.errors import OptionError, SolutionError
from tests.hauling_plans import hauling_plan, hauling_town
from tests.helpers import make_instance, solved, street
from tests.located_instances import located_plans


def services(plan: Solution) -> list[list[Service]]:
    return [list(route.services) for route in plan.routes]


@given(located_plans())
def test_a_plan_is_found_again_from_its_services(
    drawn: tuple[Instance, Solution],
) -> None:
    instance, plan = drawn
    again = evaluate(instance, services(plan))
    assert check(instance, again).ok
    assert (again.cost, again.deadhead) == (plan.cost, plan.deadhead)
    assert services(again) == services(plan)


@given(located_plans())
def test_open_directions_are_the_cheapest(drawn: tuple[Instance, Solution]) -> None:
    instance, plan = drawn
    order = [[service.link for service in route] for route in services(plan)]
    chosen = evaluate(instance, order)
    assert check(instance, chosen).ok
    assert chosen.cost <= plan.cost
    # Turning any one of them round does not pay.
    for number, route in enumerate(chosen.routes):
        for place, service in enumerate(route.services):
            if instance.links[service.link].one_way:
                continue
            turned = services(chosen)
            turned[number][place] = replace(service, reverse=not service.reverse)
            assert evaluate(instance, turned).cost >= chosen.cost


def test_vehicles_and_facilities(village: Instance) -> None:
    town = hauling_town(village)
    plan = hauling_plan(town, (1, 2, 3))
    again = evaluate(town, services(plan), vehicles=[r.vehicle for r in plan.routes])
    assert check(town, again).ok
    assert again.cost <= plan.cost
    assert all(route.visits for route in again.routes)


def test_a_plan_that_breaks_rules_has_a_cost(village: Instance) -> None:
    plan = solved(village, stop=Stop(iterations=50)).solution
    everything = [link for route in services(plan) for link in route]
    one = evaluate(village, [everything])
    assert one.num_routes == 1
    assert any("capacity" in fault for fault in check(village, one).faults)
    none = evaluate(village, [])
    assert (none.cost, none.num_routes) == (0, 0)


def test_links_may_be_numbers_of_numpy(village: Instance) -> None:
    plan = solved(village, stop=Stop(iterations=50)).solution
    order = [np.array([s.link for s in route]) for route in services(plan)]
    assert evaluate(village, order).num_routes == plan.num_routes


@pytest.mark.parametrize(
    ("routes", "more", "message"),
    [
        ([[99]], {}, "links from 0 to 2, got 99"),
        ([["a"]], {}, "links from 0 to 2, got 'a'"),
        ([[2]], {}, "expected required links"),
        ([[(1, True)]], {}, "in reverse"),
        ([[0]], {"vehicles": [1]}, "vehicle types from 0 to 0, got 1"),
        ([[0]], {"vehicles": []}, "each of 1 routes, got 0"),
    ],
)
def test_what_is_no_order_of_services(
    routes: list[list[object]], more: dict[str, list[int]], message: str
) -> None:
    instance = make_instance(
        street(1, 2, 3, 1), street(2, 1, 3, 1, one_way=True), street(1, 2, 5)
    )
    with pytest.raises(OptionError, match=message):
        evaluate(instance, routes, **more)  # type: ignore[arg-type]


def test_no_way() -> None:
    instance = make_instance(street(1, 2, 3, 1), street(2, 3, 3, 1, one_way=True))
    with pytest.raises(SolutionError, match="can reach and carry"):
        evaluate(instance, [[0, 1]])
