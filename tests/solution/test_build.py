"""Routes built from services alone, with everything that operations ask for."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from arcfleet import Facility, Instance, Service, Vehicle, check, exclude, repair
from arcfleet.instance.diagnose import diagnose
from arcfleet.solution.build import Builder
from arcfleet.solution.ways import NO_WAY
from tests.helpers import NO_ROUTES, make_instance, street
from tests.strategies import connected_instances


@st.composite
def operated(draw: st.DrawFn) -> Instance:
    """A solvable instance with facilities, vehicle types and links closed to some."""
    instance = draw(connected_instances())
    nodes = st.sampled_from(instance.nodes)
    most = max((link.demand for link in instance.links), default=0)
    facilities = draw(st.lists(nodes, max_size=3, unique=True))
    idle = [i for i, link in enumerate(instance.links) if not link.required]
    closed = st.sets(st.sampled_from(idle), max_size=2) if idle else st.just(set())
    vehicles = tuple(
        Vehicle(
            name=f"type {number}",
            start=draw(nodes),
            end=draw(st.none() | nodes),
            capacity=draw(st.integers(max(most, 1), max(most, 1) + 10)),
            fixed_cost=draw(st.integers(0, 5)),
            max_route_cost=draw(st.none() | st.integers(100, 400)),
            forbidden_links=tuple(draw(closed)) if number else (),
        )
        for number in range(draw(st.integers(1, 2)))
    )
    return replace(
        instance,
        vehicles=vehicles,
        depot=vehicles[0].start,
        capacity=max(vehicle.capacity for vehicle in vehicles),
        route_cost=0,
        fleet_limit=None,
        facilities=tuple(
            Facility(node=n, cost=draw(st.integers(0, 9))) for n in facilities
        ),
        empty_at_end=draw(st.booleans()),
    )


@given(operated(), st.data())
def test_repaired_plans_obey_all_that_operations_ask_for(
    instance: Instance, data: st.DataObject
) -> None:
    assume(not diagnose(instance))
    full = repair(instance, NO_ROUTES)
    assume(full.ok)  # a longest route may leave no way to serve a street
    assert check(instance, full.solution).faults == ()
    if not instance.required:
        return
    gone = data.draw(st.sets(st.sampled_from(instance.required)))
    if gone != set(instance.required):
        today = exclude(instance, gone)
        repaired = repair(today, full.solution)
        assert repaired.ok
        assert check(today, repaired.solution).faults == ()
        again = repair(instance, repaired.solution)
        assert again.ok
        assert check(instance, again.solution).faults == ()


def test_visits_are_where_they_cost_least() -> None:
    # A line of streets with facilities at node 3 and, dearer, at the depot.
    links = [street(n, n + 1, 10, 4) for n in range(1, 5)]
    town = make_instance(*links, capacity=8)
    town = replace(town, facilities=(Facility(node=1, cost=50), Facility(node=3, cost=1)))
    builder = Builder(town)
    services = [Service(n) for n in range(4)]
    tour = builder.tour(0, services)
    assert tour.visits == ((1, 2), (1, 4))
    assert tour.cost == 40 + 2 + 40
    early = builder.tour(0, services[:2])
    assert early.visits == ((1, 2),)
    free = Builder(replace(town, empty_at_end=False))
    assert free.tour(0, services).visits == ((1, 2),)
    assert free.tour(0, services[:2]).visits == ()
    on_the_way = replace(free.instance, facilities=(Facility(node=free.instance.depot),))
    assert Builder(on_the_way).tour(0, services[:2]).visits == ()
    assert builder.tour(0, [Service(0), Service(0, True)]).cost < NO_WAY
    small = Builder(replace(town, capacity=3))
    assert small.tour(0, services).cost == NO_WAY


@pytest.mark.parametrize("empty_at_end", [False, True])
def test_a_way_that_only_a_visit_opens_is_followed_by_others(empty_at_end: bool) -> None:
    # 1 - 2 - 3 and 2 - 4: nobody turns round, but no turn is taken at the
    # facilities, which are at 3, 4 and the depot.
    town = make_instance(
        street(1, 2, 10, 1),
        street(2, 3, 4, 1),
        street(2, 4, 5, 1),
        capacity=9,
        u_turns="forbidden",
        facilities=tuple(Facility(node=node, cost=node) for node in (1, 3, 4)),
        empty_at_end=empty_at_end,
    )
    tour = Builder(town).tour(0, [Service(1), Service(2), Service(0, reverse=True)])
    assert tour.visits == ((1, 1), (2, 2), *([(0, 3)] if empty_at_end else []))
    assert tour.cost == (10 + 4 + 3) + (4 + 5 + 4) + (5 + 10) + (1 if empty_at_end else 0)
    assert check(town, repair(town, NO_ROUTES).solution).faults == ()
