from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings

from arcfleet.errors import OptionError, SolutionError
from arcfleet.instance.geodesy import line_length
from arcfleet.instance.instance import Instance
from arcfleet.solution.drive import (
    check_located,
    check_paths,
    joined,
    on_globe,
    route_legs,
    with_all_paths,
)
from arcfleet.solution.solution import Route, Service, Solution
from tests.helpers import make_instance, steps, street
from tests.located_instances import located_plans

INSTANCE = make_instance(
    street(1, 2, 5, 1),
    street(2, 3, 4, one_way=True),
    street(3, 1, 7),
    name="triangle",
    coordinates=((5.0, 51.0), (5.01, 51.0), (5.01, 51.01)),
)


def plan(path: str) -> Solution:
    route = Route(services=(Service(0),), load=1, cost=16, path=steps(path))
    return Solution(routes=(route,), cost=16, deadhead=11, service_cost=5)


@settings(max_examples=50)
@given(located_plans())
def test_routes_are_driven_without_a_gap(drawn: tuple[Instance, Solution]) -> None:
    instance, solution = drawn
    places = dict(zip(instance.nodes, instance.coordinates, strict=True))
    depot = places[instance.depot]
    solution = with_all_paths(instance, solution)
    for route, legs in zip(solution.routes, route_legs(instance, solution), strict=True):
        assert legs[0].points[0] == legs[-1].points[-1] == depot
        assert all(a.points[-1] == b.points[0] for a, b in pairwise(legs))
        for leg, step in zip(legs, route.path, strict=True):
            link = instance.links[step.link]
            assert not (step.reverse and link.one_way)
            line = leg.points[::-1] if step.reverse else leg.points
            assert (line[0], line[-1]) == (places[link.tail], places[link.head])
            assert set(link.geometry) <= set(line)
        whole = joined(legs, depot)
        assert whole[0] == whole[-1] == depot
        assert sum(line_length(leg.points) for leg in legs) == pytest.approx(
            line_length(whole)
        )


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("0! 2", r"from node 2, got link 2 \(3-1\)"),
        ("0!", "ends at the depot 1, got one that ends at node 2"),
        ("0! 9", "links from 0 to 2, got link 9"),
        ("-2 -1 -0!", r"got link 1 \(2>3\) in reverse on route 1"),
    ],
)
def test_paths_that_nobody_can_drive(path: str, message: str) -> None:
    with pytest.raises(SolutionError, match=message):
        check_paths(INSTANCE, plan(path))


def test_places_are_needed_and_must_be_degrees() -> None:
    check_located(INSTANCE)
    nowhere = replace(INSTANCE, coordinates=())
    with pytest.raises(OptionError, match="got none in instance 'triangle'"):
        check_located(nowhere)
    assert not on_globe(nowhere)
    plane = replace(INSTANCE, coordinates=((500.0, 0.0), (501.0, 0.0), (501.0, 1.0)))
    with pytest.raises(OptionError, match="project them to WGS 84"):
        check_located(plane)


def test_services_that_no_street_connects() -> None:
    trap = replace(INSTANCE, links=(street(1, 2, 5, 1, one_way=True),))
    with pytest.raises(SolutionError, match="found no way between two of them"):
        with_all_paths(trap, plan(""))


def test_route_that_stays_at_the_depot_still_is_a_line() -> None:
    assert joined([], (5.0, 51.0)) == [(5.0, 51.0), (5.0, 51.0)]
