"""Lower bounds: never above a plan, the same for a seed, ended by every stop rule."""

import csv
import importlib.util
import itertools
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from arcfleet import (
    Bound,
    Facility,
    Instance,
    OptionError,
    Progress,
    Stop,
    UnsolvableError,
    Vehicle,
    bound,
    check,
    diagnose,
    read,
    solve,
)
from arcfleet.solution.bound import Bound as BoundValue
from benchmarks.bounds_validity import least_cost, random_instance
from tests.fleet_optimum import Optimum
from tests.fleet_strategies import fleet_instances
from tests.helpers import SMALL, VILLAGE, make_instance, refused, star, street
from tests.shared_data import shared_dir
from tests.strategies import connected_instances, turn_rules

pytest.importorskip("highspy", reason="lower bounds need the extra `bounds`")

from arcfleet.bounds.cutting_planes import CuttingPlanes
from arcfleet.bounds.program import TripProgram
from arcfleet.bounds.relaxation import UNITS, Relaxation
from arcfleet.bounds.trips import Prices, Trips

FEW = Stop(iterations=30)


# --- Never above a plan -----------------------------------------------------------------


def test_no_bound_of_small_instances_is_above_the_best_plan() -> None:
    equal = 0
    for seed in range(300):
        instance = random_instance(seed)
        best = least_cost(instance)
        found = bound(instance, stop=FEW).value
        assert found <= best, seed
        equal += found == best
    assert equal > 285


def test_the_best_of_all_plans_is_that_of_another_brute_force() -> None:
    for seed in range(60):
        instance = random_instance(seed)
        if len(instance.required) < 5:
            other = Optimum(instance).find()
            assert other is not None
            assert other[1] == least_cost(instance)


@settings(max_examples=40)
@given(connected_instances(max_nodes=5, max_extra_links=2), st.data())
def test_it_holds_with_turn_rules(instance: Instance, data: st.DataObject) -> None:
    instance = data.draw(turn_rules(instance))
    assume(len(instance.required) < 5)
    assume(not diagnose(instance))
    best = Optimum(instance).find()
    assume(best is not None)
    assert best is not None
    assert bound(instance, stop=FEW).value <= best[1]


@settings(max_examples=60)
@given(fleet_instances())
def test_it_holds_with_depots_vehicles_and_facilities(instance: Instance) -> None:
    assume(len(instance.required) < 5)
    assume(not diagnose(instance))
    best = Optimum(instance).find()
    assume(best is not None)
    assert best is not None
    assert bound(instance, stop=FEW).value <= best[1]


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.data())
def test_any_duals_prove_a_bound_in_exact_arithmetic(
    seed: int, data: st.DataObject
) -> None:
    instance = random_instance(seed)
    relaxation = Relaxation(instance)
    separator = relaxation.separator
    separator.find_first()
    starts, columns = relaxation.expand(
        separator.row_starts(0), separator.row_pairs(0).astype(np.int64)
    )
    least = separator.row_least(0)
    numbers = st.floats(-50, 50)
    rows = len(least)
    duals = data.draw(st.lists(numbers, min_size=rows, max_size=rows))
    nodes = len(instance.nodes)
    potentials = data.draw(st.lists(numbers, min_size=nodes, max_size=nodes))
    proven = relaxation.exact_bound(
        np.array(duals), np.array(potentials), (starts, columns, least)
    )
    assert proven <= least_cost(instance)


def test_any_prices_of_trips_prove_a_bound_in_exact_arithmetic() -> None:
    proofs = paying = equal = 0
    for seed in range(300):
        instance = random_instance(seed)
        relaxation = Relaxation(instance)
        if not Trips.fit(relaxation):
            continue
        trips = Trips(relaxation)
        draw = np.random.default_rng(seed)
        most = int(relaxation.cost.max(initial=0)) + 1
        columns = np.append(relaxation.cost[: relaxation.num_driven] * UNITS, 0)
        columns = np.resize(columns, len(relaxation.cost))
        columns[relaxation.num_driven :] = 0
        if draw.random() < 0.5:
            columns[: relaxation.num_driven] //= draw.integers(1, 3, relaxation.num_driven)
        columns[trips.shares] = draw.integers(
            -most * UNITS, most * UNITS, len(trips.shares)
        )
        services = draw.integers(0, 4 * most * UNITS, trips.num_served)
        for values in (services, services // 4, services // 16):
            prices = Prices(np.append(columns, values), len(columns))
            found, worth = trips.find(prices)
            assert all(prices.reduced_cost(trip) < 0 for trip in found)
            paying += bool(found)
            if worth is None:
                continue
            nodes = np.zeros(len(instance.nodes))
            none = np.zeros(0, dtype=np.int64)
            no_cuts = (np.zeros(1, dtype=np.int64), none, none)
            proven = relaxation.exact_bound(np.zeros(0), nodes, no_cuts, worth)
            best = least_cost(instance)
            assert proven <= best, seed
            proofs += 1
            equal += proven == best
    assert proofs > 300
    assert paying > 100
    assert equal > 10


def test_no_bound_of_the_collection_is_above_a_known_plan() -> None:
    folder = shared_dir() / "carplib"
    with (folder / "best_known.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    gaps = []
    for row in rows[::12]:
        (file,) = (folder / row["set"]).glob(f"{row['name']}.*")
        found = bound(file, stop=Stop(iterations=12)).value
        assert found <= int(row["upper_bound"]), row["name"]
        gaps.append(int(row["upper_bound"]) / found)
    assert np.median(gaps) < 1.01


@pytest.mark.parametrize(
    ("name", "least", "best"),
    [
        ("gdb/gdb8.dat", 344, 348),
        ("val/val1A.dat", 173, 173),
        ("C/C01.dat", 4080, 4150),
        ("egl/egl-e1-A.dat", 3527, 3548),
        ("mval/mval4D.txt", 746, 750),
        ("val/val2C.dat", 457, 457),  # 455 without trips
    ],
)
def test_the_bound_is_as_high_as_it_was(name: str, least: int, best: int) -> None:
    found = bound(shared_dir() / "carplib" / name, stop=Stop(iterations=60))
    assert least <= found.value <= best


# --- What it is made of -----------------------------------------------------------------


def test_a_star_is_a_tree_whose_streets_are_driven_back() -> None:
    # Each dead end is served and driven back; trips pay for it, whatever they are.
    assert bound(star(2, 3, 4)).value == 2 * (2 + 3 + 4)


def test_capacity_cuts_count_the_trips() -> None:
    # A long road to one town: no two of its streets fit on a trip.
    road = street(1, 2, 100)
    town = (street(2, 3, 1, 6), street(3, 4, 1, 6), street(4, 2, 1, 6))
    instance = make_instance(road, *town, capacity=10)
    found = bound(instance)
    assert least_cost(instance) == 607
    assert found.value >= 606
    assert bound(replace(instance, capacity=12)).value == 405


def test_trips_prove_what_no_border_does() -> None:
    # The same: three crossings of the road are 606, and trips serve whole streets.
    road = street(1, 2, 100)
    town = (street(2, 3, 1, 6), street(3, 4, 1, 6), street(4, 2, 1, 6))
    assert bound(make_instance(road, *town, capacity=10)).value == 607


def test_streets_without_demand_are_served_in_passing() -> None:
    # 1-2 is served on the way to 2-3 and driven on the way back.
    on_the_way = street(1, 2, 5, 0)
    instance = make_instance(on_the_way, street(2, 3, 7, 4))
    assert bound(instance).value == least_cost(instance)


def test_large_instances_have_no_trips() -> None:
    small = make_instance(street(1, 2, 5, 3), capacity=9)
    assert Trips.fit(Relaxation(small))
    fine = make_instance(street(1, 2, 5, 99_991), street(1, 2, 5, 3), capacity=10**6)
    assert not Trips.fit(Relaxation(fine))
    many = make_instance(*(street(1, 2, 5, 1) for _ in range(257)), capacity=9)
    assert not Trips.fit(Relaxation(many))
    assert bound(fine, stop=FEW).value <= least_cost(fine)


def test_trips_of_a_program_are_added_once() -> None:
    import highspy

    relaxation = Relaxation(read(SMALL))
    trips = Trips(relaxation)
    program = TripProgram(highspy, relaxation, trips)
    assert program.add_trips(trips.single()) == 0
    assert program.solve(60)
    prices = program.prices()
    found = trips.find_some(prices)
    assert program.add_trips(found, prices) > 0
    assert program.add_trips(found, prices) == 0


def test_route_costs_count_for_the_least_number_of_routes() -> None:
    instance = star(6, 6, 6, route_cost=50)
    assert bound(instance).value == bound(replace(instance, route_cost=0)).value + 150


def test_services_may_differ_by_direction() -> None:
    link = street(1, 2, 5, 3, service_cost=9, reverse_service_cost=2)
    instance = make_instance(link, street(1, 2, 7))
    assert bound(instance).value == least_cost(instance) == 7


def test_an_instance_without_work_costs_nothing() -> None:
    assert bound(make_instance(street(1, 2, 3))).value == 0


def test_facilities_are_paid_for() -> None:
    instance = star(6, 6, 6, facilities=(Facility(node=2, cost=100),))
    free = star(6, 6, 6, facilities=(Facility(node=2),))
    assert bound(instance).value == bound(free).value + 300


def test_the_minimum_odd_cut_is_found() -> None:
    """Of all odd sets: one is found if, and only if, one is violated."""
    for seed in range(150):
        instance = random_instance(seed)
        relaxation = Relaxation(instance)
        draw = np.random.default_rng(seed)
        deadheads = draw.choice([0.0, 0.2, 0.3, 0.5, 1.0], len(relaxation.pair_columns))
        nodes = len(instance.nodes)
        violated = False
        for size in range(1, nodes):
            for chosen in itertools.combinations(range(nodes), size):
                inside = np.zeros(nodes, dtype=bool)
                inside[list(chosen)] = True
                ends = inside[relaxation.pair_ends]
                driven = deadheads[ends[:, 0] != ends[:, 1]].sum()
                is_odd = relaxation.node_links[inside].sum() % 2
                violated |= bool(is_odd) and driven < 0.99
        assert (relaxation.separator.find_odd(deadheads, 50) > 0) == violated, seed


def test_cuts_of_the_pool_are_violated_by_what_found_them() -> None:
    instance = read(SMALL)
    relaxation = Relaxation(instance)
    nothing = np.zeros(len(relaxation.pair_columns))
    separator = relaxation.separator
    assert separator.find_by_growth(nothing, 1, 20, False, 50) > 0
    assert separator.violations(nothing).min() >= 1
    # The same sets are not found twice.
    known = separator.num_rows
    again = separator.find_by_growth(nothing, 1, 20, False, 50)
    assert separator.num_rows == known + again


# --- How it ends ------------------------------------------------------------------------


def test_the_same_seed_and_iterations_give_the_same_bound(village: Instance) -> None:
    first, second = (bound(village, stop=Stop(iterations=6), seed=3) for _ in range(2))
    assert replace(first, seconds=0.0) == replace(second, seconds=0.0)
    assert first.iterations <= 6


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (Stop(iterations=1), "iterations"),
        (Stop(target_cost=1, iterations=9), "target_cost"),
        (Stop(seconds=0), "seconds"),
        (Stop(seconds=60), "no more cuts"),
    ],
)
def test_every_stop_rule_ends_it(stop: Stop, reason: str, village: Instance) -> None:
    found = bound(village, stop=stop)
    assert found.stopped_by == reason
    assert found.value >= 0


def test_without_improvement_it_ends() -> None:
    file = shared_dir() / "carplib" / "val" / "val1A.dat"
    found = bound(file, stop=Stop(no_improvement=1, iterations=60))
    assert found.stopped_by == "no_improvement"


def test_ctrl_c_keeps_the_bound_so_far() -> None:
    file = shared_dir() / "carplib" / "egl" / "egl-s4-C.dat"

    def interrupt(progress: Bound) -> None:
        if progress.value > 20_000:
            raise KeyboardInterrupt

    found = bound(file, stop=Stop(seconds=60), progress=interrupt)
    assert found.stopped_by == "interrupt"
    assert 20_000 < found.value <= 20_461
    assert threading.active_count() == 1


def test_an_error_of_the_progress_callback_ends_it() -> None:
    file = shared_dir() / "carplib" / "egl" / "egl-s4-C.dat"

    def fail(progress: Bound) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bound(file, progress=fail)
    assert threading.active_count() == 1


def test_an_error_on_the_thread_is_raised(
    village: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(CuttingPlanes, "rounds", fail)
    with pytest.raises(ZeroDivisionError):
        bound(village)


def test_what_is_wrong_is_said(village: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    with refused(OptionError, "expected either seconds or stop, got both"):
        bound(village, stop=FEW, seconds=1)
    with refused(OptionError, "expected stop to be a Stop"):
        bound(village, stop=len)  # type: ignore[arg-type]
    with refused(UnsolvableError, "expected demands of at most the capacity"):
        bound(star(99))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with refused(OptionError, 'pip install "arcfleet[bounds]"'):
        bound(village)
    with refused(OptionError, 'pip install "arcfleet[bounds]"'):
        solve(village, bound=True)


# --- The value --------------------------------------------------------------------------


def value(bound_value: int, **more: Any) -> Bound:
    return BoundValue(
        instance=star(1), value=bound_value, seconds=1.0, iterations=2, **more
    )


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (1000, "proven to be the best possible"),
        (1001, "at most 0.1 % above the best possible"),
        (1013, "at most 1.3 % above the best possible"),
        (1500, "at most 50.0 % above the best possible"),
    ],
)
def test_the_gap_is_rounded_up(cost: int, text: str) -> None:
    assert value(1000).gap_text(cost) == text
    assert value(999).gap_text(1013) == "at most 1.5 % above the best possible"
    assert value(100_000).gap_text(100_012) == "at most 0.02 % above the best possible"


def test_a_bound_of_nothing_proves_no_gap() -> None:
    assert "no statement" in value(0).gap_text(5)
    assert value(0).to_dict(5)["gap_percent"] is None
    assert value(0).gap_percent(0) == 0.0


def test_rules_that_it_leaves_out_are_named() -> None:
    plain = star(1, 2)
    assert bound(plain).ignored == ()
    vehicles = (
        Vehicle(name="a", start=1, capacity=10, max_route_cost=99),
        Vehicle(name="b", start=2, capacity=5, count=3, fixed_cost=1),
    )
    instance = replace(plain, vehicles=vehicles, u_turns="dead-ends")
    found = bound(instance)
    for words in ("turn rules", "the length of routes", "numbers of vehicles"):
        assert words in found.ignored
    assert "the bound holds with them" in found.summary()


# --- Beside a search --------------------------------------------------------------------


def test_a_search_ends_where_its_plan_meets_the_bound(village: Instance) -> None:
    best = bound(village).value
    result = solve(village, bound=True, stop=Stop(seconds=60), seed=1)
    assert check(village, result.solution).ok
    assert result.bound is not None
    if result.cost == best:
        assert result.stopped_by == "bound"
        assert "proven to be the best possible" in str(result)
    facts = result.to_dict()["bound"]
    assert facts["value"] == result.bound.value <= result.cost
    assert facts["proven_optimal"] == (result.cost == result.bound.value)


def test_a_proven_plan_ends_the_search_early() -> None:
    file = shared_dir() / "carplib" / "gdb" / "gdb1.dat"
    result = solve(file, bound=True, stop=Stop(iterations=10**9), seed=1)
    assert (result.cost, result.stopped_by) == (316, "bound")


def test_a_stop_rule_of_your_own_goes_with_a_bound(village: Instance) -> None:
    seen = []

    def told(progress: Any) -> None:
        seen.append(progress.bound)

    # Progress is reported once a slice of the clock, which may take 3,000 iterations.
    def enough(progress: Progress) -> bool:
        return progress.iterations >= 3000 and bool(seen)

    result = solve(village, stop=enough, bound=True, progress=told, seed=2)
    assert result.stopped_by == "stop rule"
    assert result.bound is not None
    alone = solve(village, stop=lambda x: x.iterations >= result.iterations, seed=2)
    assert alone.cost == result.cost
    assert all(each is None or each <= result.cost for each in seen)


def test_the_path_of_an_instance_will_do() -> None:
    assert bound(VILLAGE).value == bound(Path(VILLAGE)).value
