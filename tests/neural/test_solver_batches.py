"""Many instances by a learned method: batches, order, failures, Ctrl-C."""

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from arcfleet import Failure, Instance, Result, Stop, check, read, solve, solve_many
from arcfleet.batch import BatchProgress
from arcfleet.errors import FileError, OptionError
from arcfleet.network import Network
from arcfleet.neural import solver, windows
from arcfleet.neural.decoding_run import DecodingRun
from arcfleet.neural.solver import start_run
from arcfleet.neural.strategies import method_strategies
from arcfleet.workers import child_seed
from tests.helpers import MIXED, SMALL, VILLAGE, make_instance, star, street

# Whether a short limit leaves time for a learned plan is the machine's business; the tests
# of the warning ask for it.
pytestmark = pytest.mark.filterwarnings(
    "default::arcfleet.errors.WithoutLearnedPlanWarning"
)

IDLE = make_instance(street(1, 2, 3), name="idle")
TRAP = make_instance(street(1, 2, 1, 1, one_way=True), name="trap")
STOPS = {
    "daam": Stop(iterations=1),
    "daam-greedy": Stop(iterations=1),
    "daam-sample": Stop(iterations=7),
}


@pytest.mark.parametrize("method", method_strategies())
def test_outcomes_are_in_order_and_as_alone(
    method: str, model: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.dat"
    bad.write_text("NOMBRE : bad\n")
    given: list[Instance | Path | str] = [VILLAGE, bad, SMALL, TRAP, IDLE, str(MIXED)]
    given += [read(SMALL)]
    seen: list[BatchProgress] = []
    outcomes = solve_many(
        given, method, stop=STOPS[method], seed=7, model=model, progress=seen.append
    )
    kinds = [Result, Failure, Result, Failure, Result, Result, Result]
    assert [type(outcome) for outcome in outcomes] == kinds
    assert isinstance(outcomes[1], Failure)
    assert "bad.dat" in outcomes[1].message
    assert isinstance(outcomes[3], Failure)
    assert outcomes[3].instance == "trap"
    assert [p.finished for p in seen] == list(range(1, len(given) + 1))
    assert all(outcomes[p.position] == p.outcome for p in seen)
    for position, (source, outcome) in enumerate(zip(given, outcomes, strict=True)):
        if not isinstance(outcome, Result):
            continue
        instance = source if isinstance(source, Instance) else read(source)
        assert (outcome.instance.name, outcome.method) == (instance.name, method)
        assert check(instance, outcome.solution).ok
        seed = child_seed(7, position)
        if method != "daam-sample":
            alone = solve(instance, method, stop=STOPS[method], seed=seed, model=model)
            assert (outcome.seed, outcome.cost) == (seed, alone.cost)
            assert outcome.iterations == alone.iterations
        elif instance.required:
            assert outcome.iterations == 7


def test_batches_hold_instances_of_similar_size() -> None:
    village, small = Network(read(VILLAGE)), Network(read(SMALL))
    idle = Network(IDLE)
    networks = [village, small, idle, village, small, village]
    batches = list(solver._batches(list(enumerate(networks))))  # noqa: SLF001
    numbers = [[number for number, _ in batch] for batch in batches]
    assert numbers == [[2], [1, 4], [0, 3, 5]]


def test_large_instances_stand_alone_and_do_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(windows, "MOST_TASKS_AT_ONCE", 20)
    given = [read(SMALL), read(VILLAGE), read(SMALL), read(VILLAGE), IDLE]
    drawn: list[int] = []

    def draw() -> Iterator[tuple[int, Instance]]:
        for number, instance in enumerate(given):
            drawn.append(number)
            yield number, instance

    groups = solver._groups(draw(), lambda *_: None)  # noqa: SLF001
    seen = [([number for number, _ in group], len(drawn)) for group in groups]
    assert seen == [([1], 2), ([3], 4), ([4], 5), ([0, 2], 5)]


def test_instances_held_at_a_time_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    small, village = read(SMALL), read(VILLAGE)
    given = [small, small, village, small, small, small]
    terminals = len(Network(small).terminal_nodes)
    for name, most in (("_MOST_HELD", 2), ("_MOST_HELD_SQUARES", 2 * terminals**2)):
        with monkeypatch.context() as patch:
            patch.setattr(solver, name, most)
            groups = solver._groups(enumerate(given), lambda *_: None)  # noqa: SLF001
            numbers = [[number for number, _ in group] for group in groups]
        pairs = [[0, 1], [2, 3], [4, 5]]
        assert numbers == (pairs if name == "_MOST_HELD" else [[0, 1], [2], [3, 4], [5]])


def test_no_plan_within_the_fleet_is_a_failure(model: Path) -> None:
    tight = star(4, 4, 4, 4, 4)
    for method in method_strategies():
        outcomes = solve_many(
            [replace(tight, fleet_limit=2), tight, replace(tight, fleet_limit=3)],
            method,
            stop=STOPS[method],
            model=model,
        )
        first, *others = outcomes
        assert isinstance(first, Failure)
        assert "at most 2 routes" in first.message
        assert all(isinstance(outcome, Result) for outcome in others)


def test_targets_end_the_work_on_single_instances(model: Path) -> None:
    given = [read(SMALL), read(VILLAGE), replace(read(VILLAGE), name="other")]
    stop = Stop(iterations=12, target_cost=1000)
    outcomes = solve_many(given, "daam-sample", stop=stop, model=model)
    reasons = [x.stopped_by for x in outcomes if isinstance(x, Result)]
    assert reasons == ["target_cost", "iterations", "iterations"]


def test_seconds_are_those_of_the_batch(model: Path) -> None:
    village = read(VILLAGE)
    outcomes = solve_many(
        [village] * 3, "daam-greedy", model=model, progress=lambda _: time.sleep(0.01)
    )
    # Reporting one of them takes time, but not the others' time.
    assert len({x.seconds for x in outcomes if isinstance(x, Result)}) == 1


def test_interrupt_keeps_what_there_is(model: Path) -> None:
    def interrupt(progress: BatchProgress) -> None:
        if progress.finished == 1:
            threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()

    outcomes = solve_many(
        ["none.dat", SMALL, VILLAGE],
        "daam-sample",
        stop=Stop(seconds=60.0),
        model=model,
        progress=interrupt,
    )
    failure, begun, later = outcomes
    assert isinstance(failure, Failure)
    assert isinstance(begun, Result)
    assert begun.stopped_by == "interrupt"
    assert later == Failure(
        instance=str(VILLAGE), message="interrupted before it was begun"
    )
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (MemoryError, ""),
        (RuntimeError, "DefaultCPUAllocator: can't allocate memory: you tried to allocate"),
        (torch.OutOfMemoryError, "CUDA out of memory."),
    ],
)
@pytest.mark.parametrize("most", [0, 1, 2])
def test_batches_too_large_for_the_memory_are_halved(
    error: type[Exception],
    text: str,
    most: int,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []

    def start(networks: Sequence[Network], *rest: Any) -> Any:
        sizes.append(len(networks))
        if len(networks) > most:
            raise error(text)
        return start_run(networks, *rest)

    monkeypatch.setattr(solver, "start_run", start)
    outcomes = solve_many([read(SMALL)] * 5, "daam-greedy", model=model)
    assert max(sizes[1:]) <= 3
    if most:
        assert all(isinstance(outcome, Result) for outcome in outcomes)
    else:
        assert {x.message for x in outcomes if isinstance(x, Failure)} == {
            "expected the instance to fit in the memory of device 'cpu', found too "
            "little: use another device or split it into smaller areas"
        }
        assert len(outcomes) == 5


def test_a_mistake_in_one_batch_does_not_lose_the_others(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(networks: Sequence[Network], *rest: Any) -> Any:
        if len(networks) == 2:
            raise RuntimeError("oh")
        return start_run(networks, *rest)

    monkeypatch.setattr(solver, "start_run", start)
    given = [SMALL, VILLAGE, SMALL]
    first, second, third = solve_many(given, "daam", model=model)
    assert isinstance(second, Result)
    assert isinstance(first, Failure)
    assert first.message == "unexpected RuntimeError: oh"
    assert isinstance(third, Failure)


@pytest.mark.parametrize("method", method_strategies())
def test_an_interrupt_ends_the_decoding_at_once(
    method: str, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []

    def greedy(self: object) -> None:
        steps.append(0)
        signal.raise_signal(signal.SIGINT)
        steps.append(1)

    monkeypatch.setattr(DecodingRun, "greedy", greedy)
    monkeypatch.setattr(DecodingRun, "augmented_greedy", greedy)
    first, second, other = solve_many([SMALL, SMALL, VILLAGE], method, model=model)
    assert steps == [0]
    for outcome in (first, second):
        assert outcome == Failure(
            instance=str(SMALL), message="interrupted before there was a plan"
        )
    assert isinstance(other, Failure)
    assert other.message == "interrupted before it was begun"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_while_reporting_loses_no_plan(model: Path) -> None:
    def interrupt(progress: BatchProgress) -> None:
        if progress.finished == 1:
            signal.raise_signal(signal.SIGINT)

    outcomes = solve_many([SMALL] * 3, "daam-greedy", model=model, progress=interrupt)
    assert all(isinstance(outcome, Result) for outcome in outcomes)


def test_wrong_arguments_are_raised_at_once(model: Path) -> None:
    with pytest.raises(OptionError, match="model for a learned method only"):
        solve_many([SMALL], "ps", model=model)
    with pytest.raises(FileError, match="another kind of file"):
        solve_many([SMALL], "daam", model=SMALL)
    with pytest.raises(OptionError, match="device"):
        solve_many([SMALL], "daam", model=model, device="gpu")
    assert solve_many([], "daam", model=model) == []
