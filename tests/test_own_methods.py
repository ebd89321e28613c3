"""The seams: methods, stop rules and settings of users."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcfleet import (
    METHODS,
    Failure,
    Incumbent,
    Instance,
    Method,
    OptionError,
    Progress,
    Result,
    RunContext,
    Stop,
    UnsolvableError,
    register_method,
    solve,
    solve_many,
)
from arcfleet.bench.compare import compare
from arcfleet.bench.run import Run, open_runs, run_benchmark
from arcfleet.bench.suite import SuiteInstance
from arcfleet.methods import chosen_settings, find_method, parse_params
from arcfleet.network import Network
from arcfleet.search.maens import MaensSettings
from arcfleet.search.ruin_recreate import RuinRecreateSettings
from arcfleet.search.stop import ANY_NUMBER, iterations_left, stopped_by, time_limit
from tests.helpers import VILLAGE, solved, verified
from tests.own_methods import OrderSettings, after_five, random_orders


@pytest.fixture
def own() -> Iterator[str]:
    register_method(
        "random-orders", default_stop=Stop(iterations=7), settings=OrderSettings
    )(random_orders)
    yield "random-orders"
    del METHODS["random-orders"]


def test_a_registered_method_is_a_method(own: str, village: Instance) -> None:
    result = solved(village, own, seed=3)
    assert (result.method, result.iterations, result.seed) == (own, 7, 3)
    assert result.stopped_by == "iterations"
    assert result.history[-1].cost == result.cost
    assert METHODS[own].summary == "Random orders of the services, cut by Split."
    assert solved(village, METHODS[own], seed=3).solution == result.solution


def test_workers_are_sent_the_method(own: str, village: Instance) -> None:
    alone, beside = (
        verified(
            solve_many(
                [village] * 3, own, stop=after_five, params={"turn": False}, workers=workers
            )
        )
        for workers in (1, 2)
    )
    assert len(alone) == 3
    assert [x.solution for x in alone] == [x.solution for x in beside]
    assert {x.stopped_by for x in beside} == {"stop rule"}


def test_what_cannot_be_sent_to_workers_is_refused_in_one_sentence(
    village: Instance,
) -> None:
    with pytest.raises(OptionError, match="expected the stop rule to be defined at"):
        solve_many([village] * 2, stop=lambda p: p.iterations > 3, workers=2)
    method = Method(name="x", summary="", run=lambda n, c: random_orders(n, c))
    with pytest.raises(OptionError, match="expected the function of the method"):
        solve_many([village] * 2, method, workers=2)
    assert verified(solve_many([village], stop=lambda p: p.iterations > 3))


def test_names_are_taken_once(own: str) -> None:
    register_method(own)(random_orders)  # the same function again: a notebook's cell
    for name in (own, "ruin-recreate"):
        with pytest.raises(OptionError, match=f"{name!r}, which is taken by"):
            register_method(name)(METHODS["maens"].run)
    for name in ("auto", "", "Mine", "a=b", "a,b"):
        with pytest.raises(OptionError, match="expected a method's name"):
            register_method(name)(random_orders)


@dataclass
class Needy:
    number: int


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"settings": int}, "settings of method 'x' as a dataclass with defaults, got"),
        ({"settings": {"turn": True}}, "as a dataclass with defaults, got {'turn'"),
        ({"settings": Needy}, "a default for each setting of .*, got none for 'number'"),
        ({"default_stop": Stop(target_cost=5)}, "a stop rule that is certain to be met"),
        ({"default_stop": after_five}, "default_stop of method 'x' to be a Stop, got"),
        ({"default_stop": 5}, "default_stop of method 'x' to be a Stop, got 5"),
    ],
)
def test_unfit_settings_and_stop_rules_are_refused(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        register_method("x", **arguments)(random_orders)
    assert "x" not in METHODS
    method = Method(name="x", summary="", run=random_orders, settings=Needy(3))
    assert method.settings == Needy(3)


def test_register_method_is_a_decorator(village: Instance) -> None:
    @register_method("decorated", summary="one plan", default_stop=Stop(iterations=1))
    def decorated(network: Network, context: RunContext) -> Result:
        return random_orders(network, context)

    try:
        assert decorated.__name__ == "decorated"
        assert solved(village, "decorated").iterations == 1
    finally:
        del METHODS["decorated"]


def test_removed_and_unknown_names_get_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, message in (
        ("hybrid", r"got 'hybrid': it was removed.*'ruin-recreate'"),
        ("s2v-dqn", r"`import arcfleet\.paper\.methods` first"),
        ("ruin-recreat", "did you mean 'ruin-recreate'"),
    ):
        monkeypatch.delitem(METHODS, name, raising=False)
        with pytest.raises(OptionError, match=message):
            find_method(name)


@pytest.mark.parametrize("method", ["ruin-recreate", "maens", "ps-efficiency"])
def test_any_function_is_a_stop_rule(method: str, village: Instance) -> None:
    result = solved(village, method, stop=lambda p: p.iterations >= 123, seed=1)
    assert (result.iterations, result.stopped_by) == (123, "stop rule")
    again = solved(village, method, stop=lambda p: p.iterations >= 123, seed=1)
    assert again.solution == result.solution
    quiet = solved(village, method, stop=lambda p: p.no_improvement >= 40)
    assert quiet.iterations == quiet.history[-1].iteration + 1 + 40
    late = solved(village, method, stop=lambda p: p.seconds > 0.05)
    assert late.seconds > 0.05
    assert "stopped by stop rule" in late.summary()


def test_a_rule_with_threads_is_asked_between_slices(village: Instance) -> None:
    result = solved(village, stop=lambda p: p.iterations >= 10, threads=2)
    assert result.iterations >= 10


def test_a_rule_that_tells_when_to_ask_is_asked_less(village: Instance) -> None:
    class EveryHundred:
        asked = 0

        def __call__(self, progress: Progress) -> bool:
            self.asked += 1
            return progress.iterations >= 300

        def iterations_left(self, progress: Progress) -> int:
            return 100 - progress.iterations % 100

    rule = EveryHundred()
    seen: list[Progress] = []
    result = solved(village, "ps-efficiency", stop=rule, progress=seen.append)
    assert result.iterations == 300
    assert rule.asked < 20
    assert seen[-1].iterations == 300
    assert seen[-1].no_improvement == 300 - 1 - result.history[-1].iteration


@given(
    limits=st.fixed_dictionaries(
        {},
        optional={
            "seconds": st.floats(0, 5),
            "iterations": st.integers(1, 9),
            "no_improvement": st.integers(1, 9),
            "target_cost": st.integers(0, 9),
        },
    ),
    seconds=st.floats(0, 5),
    iterations=st.integers(1, 9),
    cost=st.none() | st.integers(0, 9),
    quiet=st.integers(0, 9),
)
def test_a_stop_is_met_as_its_limits_are(
    limits: dict[str, Any], seconds: float, iterations: int, cost: int | None, quiet: int
) -> None:
    stop = Stop(**limits)
    progress = Progress(seconds, iterations, cost, min(quiet, iterations))
    measured = ("seconds", "iterations", "no_improvement")
    met = {x for x in measured if x in limits and getattr(progress, x) >= limits[x]}
    if cost is not None and "target_cost" in limits and cost <= limits["target_cost"]:
        met.add("target_cost")
    assert stop(progress) == bool(met)
    assert (stopped_by(stop, progress) in met) == bool(met)
    assert time_limit(stop) == limits.get("seconds")
    left = iterations_left(stop, progress, otherwise=1)
    if not met:
        between, later = (
            Progress(seconds, iterations + more, cost, progress.no_improvement + more)
            for more in (left - 1, left)
        )
        counted = {"iterations", "no_improvement"} & set(limits)
        assert (stop(later) or left == ANY_NUMBER) if counted else left == ANY_NUMBER
        assert not stop(between) or left == ANY_NUMBER


def test_stop_rules_that_are_none_are_refused(village: Instance) -> None:
    for stop in (5, "soon", Stop):
        with pytest.raises(OptionError, match="a Stop or a function of the progress"):
            solve(village, stop=stop)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("ruin-recreate", {"average_removed": 3.0}),
        ("maens", {"population": 4}),
        ("ps-efficiency", {"alpha": 1.0}),
    ],
)
def test_settings_change_the_search(
    method: str, params: dict[str, object], village: Instance
) -> None:
    stop = Stop(iterations=60)
    plain = solved(village, method, stop=stop)
    changed = solved(village, method, stop=stop, params=params)
    assert changed.history[1:] != plain.history[1:] or changed.cost != plain.cost
    as_value = chosen_settings(find_method(method), params)
    again = solved(village, method, stop=stop, params=as_value)
    assert again.solution == changed.solution
    assert verified(solve_many([village], method, stop=stop, params=params, seed=0))


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("maens", {"populaton": 4}, "'maens', got 'populaton': did you mean 'population'"),
        ("maens", {"population": 0}, "population to be a whole number from 1"),
        ("maens", RuinRecreateSettings(), "or a MaensSettings, got RuinRecreateSettings"),
        ("maens", 7, "as a dict or a MaensSettings, got 7"),
        ("ruin-recreate", {"blink_rate": 2}, "blink_rate between 0 and 0.9, got 2"),
        ("ruin-recreate", {"split_rate": True}, "split_rate between 0 and 1, got True"),
        ("ps", {"choice": "rule"}, "expected choice to be one of rules, random_rule"),
        ("ps", {"alpha": -1}, r"expected alpha between 0 and 1e\+06, got -1"),
        ("daam", {"alpha": -1}, "no settings for method 'daam', which has none"),
    ],
)
def test_wrong_settings_are_one_sentence(
    method: str, params: object, message: str, village: Instance
) -> None:
    with pytest.raises(OptionError, match=message):
        solve(village, method, params=params)
    with pytest.raises(OptionError, match=message):
        solve_many([village], method, params=params)


def test_settings_of_the_command_line_are_typed(own: str) -> None:
    assert parse_params("maens", []) == {}
    assert parse_params("maens", ["population=4", "local_search_rate = 0.5"]) == {
        "population": 4,
        "local_search_rate": 0.5,
    }
    (trigger,) = parse_params("ps", ["trigger=nearby"]).values()
    assert trigger == type(METHODS["ps-efficiency"].settings.trigger).nearby
    scanning = find_method("ps")
    assert chosen_settings(scanning, {"trigger": "nearby"}) == chosen_settings(
        scanning, {"trigger": trigger}
    )
    given = ["turn=false", "first=sorted", "repeats=none", "weight=2"]
    assert chosen_settings(METHODS[own], parse_params(own, given)) == OrderSettings(
        turn=False, first="sorted", repeats=None, weight=2.0
    )
    assert parse_params(own, ["repeats=3"]) == {"repeats": 3}
    for method, text, message in (
        ("maens", "population", "as name=value, got 'population'"),
        ("maens", "population=many", "population to be a whole number, got 'many'"),
        ("maens", "popul=3", "did you mean 'population'"),
        ("ps", "trigger=always", "trigger to be one of never, "),
        (own, "turn=maybe", "turn to be true or false, got 'maybe'"),
        (own, "first=last", "first to be one of sorted, random, got 'last'"),
        (own, "weight=much", "weight to be a number, got 'much'"),
        (own, "repeats=often", "repeats to be .*, got 'often'"),
    ):
        with pytest.raises(OptionError, match=message):
            parse_params(method, [text])


def test_every_method_states_settings_that_it_takes(village: Instance) -> None:
    for method in METHODS.values():
        if method.settings is not None and not method.is_learned:
            result = solved(
                village, method, stop=Stop(iterations=1), params=method.settings
            )
            assert result.iterations == 1
    assert METHODS["maens"].settings == MaensSettings()


def test_an_incumbent_keeps_the_best_plan_and_what_interrupts(village: Instance) -> None:
    good = solved(village, "ps").solution
    better = solved(village, stop=Stop(iterations=500)).solution
    network = Network(village)

    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    context = RunContext(method="x", stop=Stop(iterations=99), started=-1e6)
    best = Incumbent(network, context)
    assert best.offer(None)
    with pytest.raises(UnsolvableError, match="in 1 iterations of x"):
        best.result()
    assert best.offer(better)
    assert best.offer(good)
    assert best.progress.no_improvement == 1
    result = best.result()
    assert (result.solution, result.iterations) == (better, 3)
    context = replace(context, progress=interrupt)
    with pytest.raises(KeyboardInterrupt), Incumbent(network, context) as interrupted:
        interrupted.offer(None)
    with Incumbent(network, context) as interrupted:
        interrupted.offer(good)
    assert interrupted.stopped_by == "interrupt"
    assert interrupted.result().solution == good
    with pytest.raises(ValueError, match="mine"), Incumbent(network, context):
        raise ValueError("mine")


def test_a_faulty_method_fails_alone(village: Instance) -> None:
    def faulty(network: Network, context: RunContext) -> Result:
        raise ValueError("no idea")

    method = Method(name="faulty", summary="", run=faulty)
    (outcome,) = solve_many([village], method)
    assert outcome == Failure(instance="village", message="unexpected ValueError: no idea")


def test_a_suite_is_run_by_a_registered_method(own: str, tmp_path: Path) -> None:
    source = SuiteInstance(
        set_name="own", name="village", path=VILLAGE, reference=None, proven=False
    )
    runs = [Run.of(source, own, seed, 0.05, False) for seed in range(3)]
    with open_runs(tmp_path / "runs.jsonl") as store:
        run_benchmark(runs, store, workers=2)
        assert [record.error for record in store.records] == [None] * 3
        assert {record.stopped_by for record in store.records} == {"seconds"}


def test_a_registered_method_is_compared(own: str, village: Instance) -> None:
    entries = compare(village, [METHODS[own], METHODS["ps"]], seconds=0.05)
    assert [(entry.method, entry.ok) for entry in entries] == [(own, True), ("ps", True)]
