import signal
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arcfleet import (
    Instance,
    InstanceError,
    OptionError,
    Progress,
    Result,
    RunContext,
    Stop,
    UnsolvableError,
    check,
    read,
    solve_districts,
)
from arcfleet.districts import _Work
from arcfleet.methods import METHODS
from arcfleet.network import Network
from arcfleet.network.districts import cut_into_districts
from tests.helpers import VILLAGE, make_instance, refused, solved, star, street
from tests.strategies import instances


def grid(side: int, **more: object) -> Instance:
    """A square of two-way streets, each of demand 1, with the depot in a corner."""
    links = []
    for x in range(side):
        for y in range(side):
            node = x * side + y + 1
            if y + 1 < side:
                links.append(street(node, node + 1, 10 + (x + y) % 3, 1))
            if x + 1 < side:
                links.append(street(node, node + side, 10 + (x * y) % 4, 1))
    return make_instance(*links, name="grid", **more)


TOWN = grid(12)  # 264 tasks, 27 routes


def in_districts(instance: Instance, districts: int, **options: object) -> Result:
    result = solve_districts(instance, districts, **options)  # type: ignore[arg-type]
    assert result.instance == instance
    report = check(instance, result.solution)
    assert report.faults == ()
    assert result.cost == report.cost == result.history[-1].cost
    return result


@given(instance=instances(), data=st.data())
@settings(deadline=None)
def test_every_task_is_in_one_district(instance: Instance, data: st.DataObject) -> None:
    tasks = list(instance.required)
    number = data.draw(st.integers(1, max(1, len(tasks))))
    try:
        parts = cut_into_districts(instance, number)
    except InstanceError:
        # Ways of more than 2^29 - 1 are refused whatever it is that measures them.
        with refused(InstanceError, "use a coarser unit of cost"):
            Network(instance)
        return
    assert len(parts) == number
    assert all(parts) or not tasks
    assert sorted(link for part in parts for link in part) == tasks


@pytest.mark.parametrize("districts", [2, 3, 5, 8])
def test_districts_are_alike_in_demand_and_compact(districts: int) -> None:
    parts = cut_into_districts(TOWN, districts)
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 3
    # Streets share a node with others of their district, but for a few at the borders.
    alone = 0
    for part in parts:
        ends = [{TOWN.links[x].tail, TOWN.links[x].head} for x in part]
        alone += sum(sum(bool(a & b) for b in ends) == 1 for a in ends)
    assert alone <= len(parts)


def test_demand_counts_where_streets_differ() -> None:
    heavy = [street(n, n + 1, 1, 9 if n < 4 else 1) for n in range(1, 31)]
    parts = cut_into_districts(make_instance(*heavy), 2)
    loads = sorted(sum(heavy[x].demand for x in part) for part in parts)
    assert loads == [27, 27]


def test_the_same_seed_gives_the_same_plan_whatever_the_workers() -> None:
    stop = Stop(iterations=6000)
    plans = [
        in_districts(TOWN, 4, stop=stop, seed=3, workers=workers)
        for workers in (1, 2, None)
    ]
    assert plans[0].solution == plans[1].solution == plans[2].solution
    assert plans[0].iterations == 6000
    assert plans[0].stopped_by == "iterations"
    other = in_districts(TOWN, 4, stop=stop, seed=4)
    assert other.solution != plans[0].solution


def test_the_whole_is_improved_across_borders() -> None:
    result = in_districts(TOWN, 4, stop=Stop(iterations=20_000))
    joined = result.history[0].cost
    assert result.cost < joined
    assert f"4 districts, joined at cost {joined}" in result.notes
    seconds = [one.seconds for one in result.history]
    iterations = [one.iteration for one in result.history]
    assert seconds == sorted(seconds)
    assert iterations == sorted(iterations)
    assert result.solution.numbers == tuple(range(1, result.solution.num_routes + 1))


def test_one_way_streets_and_turn_rules() -> None:
    village = read(VILLAGE)
    for instance in (village, replace(village, u_turns="dead-ends")):
        in_districts(instance, 3, stop=Stop(iterations=500))


def test_a_time_limit_and_an_iteration_each() -> None:
    result = in_districts(TOWN, 2, seconds=1)
    assert result.stopped_by == "seconds"
    assert result.seconds > 0.5
    assert in_districts(TOWN, 2, stop=Stop(iterations=1)).iterations >= 2
    assert len(in_districts(TOWN, 2, stop=Stop(iterations=10)).notes) == 1


def test_districts_that_had_hardly_begun_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arcfleet.districts.BEGUN", 1e9)  # iterations of each task
    notes = in_districts(TOWN, 2, seconds=1).notes
    assert any(note.startswith("2 of 2 districts had hardly begun") for note in notes)


def test_the_fleet_limit_is_that_of_the_whole() -> None:
    for limit in (28, 30):
        result = in_districts(
            replace(TOWN, fleet_limit=limit), 2, stop=Stop(iterations=4000)
        )
        assert result.solution.num_routes <= limit
    tight = replace(TOWN, fleet_limit=27)
    with refused(OptionError, "expected a fleet limit of at least"):
        solve_districts(tight, 12, stop=Stop(iterations=10))


def test_progress_counts_districts_and_then_iterations() -> None:
    seen: list[Progress] = []
    result = in_districts(TOWN, 3, stop=Stop(iterations=3000), progress=seen.append)
    districts = [x.districts for x in seen if x.districts is not None]
    assert districts == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert seen[-1].districts is None
    assert seen[-1].iterations == result.iterations


def test_what_is_refused() -> None:
    stop = Stop(iterations=10)
    with refused(OptionError, "expected districts"):
        solve_districts(TOWN, 0, stop=stop)
    with refused(OptionError, "expected districts"):
        solve_districts(TOWN, 265, stop=stop)
    with refused(OptionError, "longest route"):
        solve_districts(replace(TOWN, max_route_cost=1000), 2, stop=stop)
    with refused(OptionError, "warm-starts"):
        solve_districts(TOWN, 2, "ps", stop=stop)
    with refused(OptionError, "limit of seconds or iterations"):
        solve_districts(TOWN, 2, stop=Stop(no_improvement=5))
    with refused(OptionError, "number of workers"):
        solve_districts(TOWN, 2, seconds=1, executor="ray")
    with refused(OptionError, "threads"):
        solve_districts(TOWN, 2, stop=stop, threads=-1)
    far = star(4, 4, 4, 20)
    with pytest.raises(UnsolvableError):
        solve_districts(far, 2, stop=stop)
    # Two vehicles hold the demand of a district, but not its streets.
    unpackable = star(4, 4, 4, 4, 4, 4, 4, 4, 4, 4, fleet_limit=4)
    with pytest.raises((UnsolvableError, OptionError)):
        solve_districts(unpackable, 2, stop=stop)


def interrupt(progress: Progress) -> None:
    """As Ctrl-C once the first district is finished."""
    if progress.districts is not None and progress.districts[0] == 1:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_while_districts_are_solved(workers: int) -> None:
    stop = Stop(iterations=40_000)
    result = in_districts(TOWN, 4, stop=stop, workers=workers, progress=interrupt)
    assert result.stopped_by == "interrupt"
    assert result.iterations < 40_000


def test_ctrl_c_while_the_whole_is_improved() -> None:
    def told(progress: Progress) -> None:
        if progress.cost is not None:
            raise KeyboardInterrupt

    result = in_districts(TOWN, 4, stop=Stop(iterations=400_000), progress=told)
    assert result.stopped_by == "interrupt"
    assert result.iterations < 400_000
    assert result.cost <= result.history[0].cost


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_when_the_last_district_is_finished(workers: int) -> None:
    def told(progress: Progress) -> None:
        if progress.districts == (4, 4):
            signal.raise_signal(signal.SIGINT)

    stop = Stop(iterations=4000)
    result = in_districts(TOWN, 4, stop=stop, workers=workers, progress=told)
    assert result.stopped_by == "interrupt"
    assert result.iterations == 2000


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_while_workers_end_loses_nothing(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = ProcessPoolExecutor.shutdown
    joined = _Work.joined

    def interrupted(function: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            signal.raise_signal(signal.SIGINT)
            return function(*arguments, **options)

        return call

    if workers == 2:
        monkeypatch.setattr(ProcessPoolExecutor, "shutdown", interrupted(ended))
    else:
        monkeypatch.setattr(_Work, "joined", interrupted(joined))
    result = in_districts(TOWN, 4, stop=Stop(iterations=4000), workers=workers)
    assert result.stopped_by == "interrupt"
    assert result.iterations == 2000


@pytest.mark.parametrize("workers", [1, 2])
def test_a_callback_that_fails_loses_nothing(workers: int) -> None:
    def told(progress: Progress) -> None:
        if progress.districts == (1, 4):
            raise ValueError("mine")

    stop = Stop(iterations=40_000)
    with pytest.warns(RuntimeWarning, match=r"ValueError\('mine'\)"):
        result = in_districts(TOWN, 4, stop=stop, workers=workers, progress=told)
    assert result.stopped_by == "error"
    assert result.iterations < 40_000


def test_streets_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arcfleet.methods.require_solvable", None)
    in_districts(TOWN, 4, stop=Stop(iterations=100))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_time_limit_too_short_for_all_districts_is_refused(workers: int) -> None:
    with refused(OptionError, "for the 264 tasks of instance 'grid'") as error:
        solve_districts(TOWN, 4, seconds=1e-6, workers=workers)
    assert "give it more time or more workers" in str(error.value)


def test_no_processes_are_started_for_a_short_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProcessPoolExecutor, "submit", None)
    notes = in_districts(TOWN, 2, seconds=1, workers=2).notes
    assert "solved one after the other: for less than 5 s no processes start" in notes


def test_a_pause_of_the_machine_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is over before the first district ends, but the others take no time."""
    require_time = _Work._require_time  # noqa: SLF001
    monkeypatch.setattr(_Work, "_require_time", lambda work, _: require_time(work, 0.0))
    assert in_districts(TOWN, 4, seconds=1e-6).stopped_by == "seconds"


def test_a_method_must_be_one_that_workers_can_import() -> None:
    def local_run(network: Network, context: RunContext) -> Result:
        raise NotImplementedError

    local = replace(METHODS["ruin-recreate"], run=local_run)
    with refused(OptionError, "top level of a module"):
        solve_districts(TOWN, 2, local, stop=Stop(iterations=10), workers=2)


def test_nothing_to_serve() -> None:
    assert in_districts(make_instance(street(1, 2)), 1, stop=Stop(iterations=5)).cost == 0


def test_streets_far_away_that_nobody_serves_do_not_matter() -> None:
    """The way from one to the other is longer than any may be."""
    far = [street(1, 1000 + n, 2**28 + 10) for n in range(2)]
    instance = make_instance(*TOWN.links, *far)
    for alone in (far[:1], far):
        assert solved(make_instance(*TOWN.links, *alone), stop=Stop(iterations=10)).cost
    in_districts(instance, 4, stop=Stop(iterations=100))


def test_an_error_of_a_district_keeps_its_kind() -> None:
    dear = (replace(x, cost=2**23, reverse_cost=2**23) for x in TOWN.links)
    links = (replace(x, service_cost=x.cost, reverse_service_cost=x.cost) for x in dear)
    with refused(InstanceError, "use a coarser unit of cost") as error:
        solve_districts(make_instance(*links), 3, stop=Stop(iterations=10))
    assert "fewer districts" not in str(error.value)
