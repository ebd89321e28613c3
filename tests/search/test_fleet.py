"""The search over plans of a fleet, against plans found by trying out all of them."""

import csv
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from arcfleet import Instance, Progress, Stop, _core, solve
from arcfleet.errors import InstanceError, UnsolvableError
from arcfleet.instance.diagnose import diagnose
from arcfleet.instance.operations import Assignment, Facility, Lock, Vehicle
from tests.fleet_optimum import Optimum, objective
from tests.helpers import make_instance, refused, solved, star, street
from tests.shared_data import shared_dir
from tests.strategies import connected_instances, turn_rules


@st.composite
def fleets(draw: st.DrawFn, most_tasks: int = 4, shaped: bool = False) -> Instance:
    """Tiny instances with a fleet; most of them have a plan."""
    instance = draw(connected_instances(max_nodes=5, max_extra_links=3))
    kept = instance.required[:most_tasks]
    links = [
        link
        if not link.required or i in kept
        else replace(
            link, required=False, demand=0, service_cost=None, reverse_service_cost=None
        )
        for i, link in enumerate(instance.links)
    ]
    instance = replace(instance, links=tuple(links), route_cost=0)
    if draw(st.integers(0, 3)) == 0:
        instance = draw(turn_rules(instance))
    nodes = st.sampled_from(instance.nodes)
    counts = st.none() | st.integers(1, 3)
    exact = draw(st.integers(0, 4)) == 0
    vehicles = []
    for number in range(draw(st.integers(1, 3))):
        forbidden = draw(st.sets(st.integers(0, len(links) - 1), max_size=2))
        vehicles.append(
            Vehicle(
                name=f"type {number}",
                start=draw(nodes),
                end=draw(st.none() | nodes),
                capacity=draw(st.integers(10, 20))
                if number == 0
                else draw(st.integers(4, 30)),
                count=draw(st.integers(1, 3)) if exact else draw(counts),
                fixed_cost=draw(st.sampled_from([0, 0, 7, 100])),
                max_route_cost=draw(st.none() | st.integers(60, 400)),
                forbidden_links=tuple(sorted(forbidden)) if number else (),
            )
        )
    instance = replace(
        instance,
        depot=vehicles[0].start,
        capacity=max(vehicle.capacity for vehicle in vehicles),
        vehicles=tuple(vehicles),
        facilities=tuple(
            Facility(node=node, cost=draw(st.integers(0, 20)))
            for node in draw(st.lists(nodes, unique=True, max_size=2))
        ),
        empty_at_end=draw(st.booleans()),
        exact_fleet=exact,
        fewest_routes=draw(st.integers(0, 3)) == 0,
    )
    tasks = instance.required
    locks: tuple[Lock, ...] = ()
    if draw(st.integers(0, 4)) == 0:
        locks = (
            Lock(
                route=draw(st.integers(1, 2)),
                services=((tasks[0], False),),
                vehicle=draw(st.integers(0, len(vehicles) - 1)),
            ),
        )
    numbers = sorted({1, 2, 3} - {lock.route for lock in locks})
    pins = [
        Assignment(link, draw(st.sampled_from(numbers)))
        for link in tasks[len(locks) :]
        if draw(st.integers(0, 5)) == 0
    ]
    instance = replace(instance, locks=locks, pins=tuple(pins))
    if shaped:
        which = draw(st.sampled_from(["balance", "compactness", "change_price"]))
        if which == "balance":
            instance = replace(instance, balance=draw(st.sampled_from([0.5, 2.0, 20.0])))
        elif which == "compactness":
            instance = replace(instance, compactness=draw(st.integers(1, 40)))
        else:
            instance = replace(instance, change_price=draw(st.integers(1, 40)))
        if instance.change_price:
            previous = (Assignment(link, draw(st.integers(1, 3))) for link in tasks)
            instance = replace(instance, previous=tuple(previous))
    return instance


def found(instance: Instance, iterations: int, seed: int) -> tuple[int, float] | None:
    try:
        result = solved(instance, stop=Stop(iterations=iterations), seed=seed)
    except UnsolvableError:
        return None
    return objective(instance, result.solution)


def assert_optimal(instance: Instance) -> None:
    """The search finds the optimum, where it need be with more iterations.

    It does not look for routes that are longer than need be, be it for balance.
    """
    assume(not diagnose(instance))
    least = Optimum(instance).find()
    wanted = Optimum(instance, cheapest_routes=True).find()
    for iterations, seed in ((2000, 1), (20_000, 2)):
        best = found(instance, iterations, seed)
        if least is None or wanted is None or best is None:
            if best == least:
                return
            assert least is not None, "a plan where there is none"
            continue
        assert best[0] >= least[0]
        assert best[0] > least[0] or best[1] >= least[1] - 1e-6
        if best[0] == least[0] and best[1] <= wanted[1] + 1e-6:
            return
    raise AssertionError(f"found {best}, while the optimum is {wanted}")


@given(fleets())
def test_small_fleets_are_solved_to_optimality(instance: Instance) -> None:
    assert_optimal(instance)


@given(fleets(most_tasks=3, shaped=True))
def test_prices_on_the_shape_are_solved_to_optimality(instance: Instance) -> None:
    assert_optimal(instance)


def town(**more: Any) -> Instance:
    """A ring of streets with two yards and a landfill: several trips on every route."""
    links = [street(n, n % 24 + 1, 10 + n % 7, 3 + n % 4) for n in range(1, 25)]
    links += [street(n, n + 12, 9) for n in range(1, 13, 3)]
    return make_instance(
        *links,
        capacity=20,
        vehicles=(
            Vehicle(name="north", start=1, capacity=20, max_route_cost=400),
            Vehicle(name="south", start=13, end=7, capacity=15, count=2, fixed_cost=5),
        ),
        facilities=(Facility(node=5, cost=4), Facility(node=19, cost=2)),
        **more,
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_same_seed_same_plan(threads: int) -> None:
    first, second = (
        solved(town(), stop=Stop(iterations=3000), seed=5, threads=threads)
        for _ in range(2)
    )
    assert first.solution == second.solution
    assert any(route.visits for route in first.solution.routes)


def test_large_prices_do_not_hide_small_differences() -> None:
    # A grid that one vehicle serves, so that routes are even; its fixed cost is high.
    across = [street(10 * r + c, 10 * r + c + 1, 1 + c) for r in range(5) for c in range(4)]
    along = [street(10 * r + c, 10 * r + c + 10, 1 + r) for r in range(4) for c in range(5)]
    truck = Vehicle(name="truck", start=22, capacity=40, fixed_cost=2_000_000_000)
    grid = make_instance(
        *(replace(link, required=True, demand=1) for link in across + along),
        depot=22,
        capacity=40,
        vehicles=(truck,),
        fewest_routes=True,
    )
    plain, balanced = (
        solved(replace(grid, balance=balance), stop=Stop(iterations=2000), seed=1)
        for balance in (0.0, 1_000_000.0)
    )
    assert balanced.cost == plain.cost


@pytest.mark.parametrize("limit", [{"capacity": 4}, {"max_route_cost": 48}])
def test_a_high_price_of_balance_does_not_pay_for_loads_too_large(
    limit: dict[str, Any],
) -> None:
    # Two streets to a route, the dearest with the cheapest: all routes cost 48.
    costs = (3, 5, 8, 11, 13, 16, 19, 21)
    even = star(*(2 for _ in costs), cost=lambda node: costs[node - 2], **limit)
    for balance in (100.0, 1e4, 1e6):
        for seed in range(4):
            priced = replace(even, balance=balance)
            plan = solved(priced, stop=Stop(iterations=2000), seed=seed).solution
            assert [route.cost for route in plan.routes] == [48] * 4


def test_a_start_is_improved_and_never_left_for_worse() -> None:
    rough = solved(town(), stop=Stop(iterations=1))
    better = solved(town(), stop=Stop(iterations=3000), start=rough.solution)
    assert better.cost < rough.cost
    again = solved(town(), stop=Stop(iterations=1), start=better.solution)
    assert again.cost <= better.cost


def test_interrupt_keeps_the_best_plan() -> None:
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    result = solved(town(), stop=Stop(seconds=600.0), progress=interrupt)
    assert result.stopped_by == "interrupt"


def test_a_time_limit_ends_the_search() -> None:
    result = solved(town(), stop=Stop(seconds=0.2))
    assert result.stopped_by == "seconds"
    assert result.seconds >= 0.16  # what follows the search is in the limit, too


def test_costs_beyond_the_range_are_refused() -> None:
    far = star(1, 1, cost=lambda node: 2**26, max_route_cost=2**30)
    with pytest.raises(InstanceError, match="coarser unit"):
        solve(far)


def test_a_locked_route_that_breaks_a_rule_is_named() -> None:
    # Each street is within the longest route, both together are not.
    lock = Lock(route=2, services=((0, False), (1, True)))
    with refused(UnsolvableError, "route 2 costs 10, above the longest route 8"):
        solve(star(4, 5, 1, locks=(lock,), max_route_cost=8))


def reference() -> dict[str, tuple[int, int]]:
    """Vehicles and cost of the best plan of the peer, by instance."""
    best: dict[str, tuple[int, int]] = {}
    with (shared_dir() / "carplib" / "mcarptif" / "reference.csv").open() as lines:
        for row in csv.DictReader(lines):
            found = int(row["vehicles"]), int(row["cost"])
            best[row["instance"]] = min(found, best.get(row["instance"], found))
    return best


@pytest.mark.parametrize("name", ["Lpr_IF-a-01", "Lpr_IF-b-02", "Act-IF-a"])
def test_mcarptif_files_are_solved_no_worse_than_by_the_peer(name: str) -> None:
    folder = shared_dir() / "carplib" / "mcarptif"
    if not (folder / "reference.csv").is_file():
        pytest.skip(f"no MCARPTIF files in {folder}")
    result = solved(folder / f"{name}.txt", stop=Stop(iterations=20_000), seed=1)
    assert (len(result.solution.routes), result.cost) <= reference()[name]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"count": None}, "vehicles without count"),
        ({"count": [1, 2]}, "columns of vehicles differ in length"),
        ({"colour": [1]}, "vehicles with a column that is not known"),
    ],
)
def test_the_core_refuses_fields_of_vehicles_that_only_one_side_knows(
    change: dict[str, list[int] | None], words: str
) -> None:
    fields = ("start", "end", "driving", "capacity", "fixed_cost", "count")
    columns: dict[str, list[int] | None] = {x: [1] for x in (*fields, "max_route_cost")}
    known = {name: row for name, row in (columns | change).items() if row is not None}
    others: dict[str, Any] = {
        **dict.fromkeys(("facilities", "numbered_slots", "home"), np.zeros(0, np.int32)),
        **dict.fromkeys(("pin", "locked", "locked_costs"), np.zeros(0, np.int32)),
        **dict.fromkeys(("empty_at_end", "exact_fleet", "fewest_routes"), False),
        **dict.fromkeys(("compactness", "change_price", "balance"), 0),
        "may_serve": np.zeros(0, np.uint8),
    }
    vehicles = {name: np.array(row, np.int32) for name, row in known.items()}
    with pytest.raises(ValueError, match=words):
        _core.FleetRules(vehicles=vehicles, **others)


def test_a_service_beyond_all_limits_is_refused() -> None:
    # Of a street that the turn rules close to who comes from the depot.
    instance = make_instance(
        street(1, 2, 2),
        street(2, 3, 17, 5, one_way=True),
        street(3, 4, 3, 1),
        street(4, 5, 0, 0),
        street(5, 6, 10, 0, reverse_cost=15, service_cost=2**31 - 2),
        street(6, 1, 9, one_way=True),
        street(3, 2, 64),
        street(4, 4, 10),
        u_turns="forbidden",
        facilities=(Facility(node=5, cost=2),),
    )
    with pytest.raises(InstanceError, match="use a coarser unit of cost"):
        solve(instance, stop=Stop(iterations=1))
