import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from arcfleet import Failure, Instance, Link, Result, Stop, check, read, solve, solve_many
from arcfleet.batch import BatchProgress
from arcfleet.errors import OptionError
from arcfleet.search import ProgressCallback
from arcfleet.workers import TaskFailure, child_seed, run_tasks
from tests.helpers import MIXED, SMALL, VILLAGE

STOP = Stop(iterations=300)


@pytest.mark.parametrize("workers", [1, 2])
def test_order_seeds_and_plans_do_not_depend_on_the_workers(workers: int) -> None:
    given: list[Instance | Path | str] = [VILLAGE, read(SMALL), str(MIXED), read(VILLAGE)]
    outcomes = solve_many(given, stop=STOP, seed=7, workers=workers)
    for position, (source, outcome) in enumerate(zip(given, outcomes, strict=True)):
        instance = source if isinstance(source, Instance) else read(source)
        assert isinstance(outcome, Result)
        expected = solve(instance, stop=STOP, seed=child_seed(7, position))
        assert (outcome.instance.name, outcome.seed) == (instance.name, expected.seed)
        assert outcome.solution == expected.solution
        assert check(instance, outcome.solution).ok
    assert len({child_seed(7, i) for i in range(4)} | {child_seed(8, 0)}) == 5


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bad_instance_is_reported_and_not_fatal(tmp_path: Path, workers: int) -> None:
    bad = tmp_path / "bad.dat"
    bad.write_text("NOMBRE : bad\n")
    trap = Instance(
        name="trap",
        nodes=(1, 2),
        links=(Link(tail=1, head=2, cost=1, demand=1, one_way=True, required=True),),
        capacity=5,
        depot=1,
    )
    seen: list[BatchProgress] = []
    outcomes = solve_many(
        [bad, VILLAGE, trap, tmp_path / "none.dat", SMALL],
        stop=STOP,
        workers=workers,
        progress=seen.append,
    )
    assert [type(x) for x in outcomes] == [Failure, Result, Failure, Failure, Result]
    assert isinstance(outcomes[0], Failure)
    assert outcomes[0].instance == str(bad)
    assert "bad.dat" in outcomes[0].message
    assert isinstance(outcomes[2], Failure)
    assert outcomes[2].instance == "trap"
    assert [p.finished for p in seen] == [1, 2, 3, 4, 5]
    assert {p.total for p in seen} == {5}
    assert all(outcomes[p.position] == p.outcome for p in seen)


def test_nothing_to_solve() -> None:
    assert solve_many([], workers=2) == []


def test_wrong_arguments_are_raised_at_once() -> None:
    with pytest.raises(OptionError, match="workers"):
        solve_many([VILLAGE], workers=0)
    with pytest.raises(OptionError, match="did you mean"):
        solve_many([VILLAGE], "ps-elipse")
    with pytest.raises(OptionError, match="certain to be met"):
        solve_many([VILLAGE], stop=Stop(target_cost=1))
    with pytest.raises(OptionError, match="seed"):
        solve_many([VILLAGE], seed=-1)
    with pytest.raises(OptionError, match="list"):
        solve_many(str(VILLAGE))
    (outcome,) = solve_many([3])  # type: ignore[list-item]
    assert outcome == Failure(
        instance="3", message="expected an Instance or the path of one, got int"
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_interrupt_keeps_what_there_is(workers: int) -> None:
    started = time.perf_counter()

    def interrupt(progress: BatchProgress) -> None:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

    outcomes = solve_many(
        ["none.dat", *[VILLAGE] * 4],
        stop=Stop(seconds=60.0),
        workers=workers,
        progress=lambda p: interrupt(p) if p.finished == 1 else None,
    )
    assert time.perf_counter() - started < 20
    begun = [x for x in outcomes if isinstance(x, Result)]
    assert len(begun) == workers
    assert {x.stopped_by for x in begun} == {"interrupt"}
    assert outcomes[-1] == Failure(
        instance=str(VILLAGE), message="interrupted before it was begun"
    )
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _die_on_three(task: int, progress: ProgressCallback) -> int:
    if task == 3:
        os._exit(9)
    if task == 4:
        raise ValueError("four")
    time.sleep(0.05)
    return 10 * task


def test_a_dying_process_costs_only_its_own_task() -> None:
    outcomes: dict[int, int | TaskFailure] = {}
    run_tasks(_die_on_three, range(6), workers=2, finished=outcomes.__setitem__)
    assert {n: x for n, x in outcomes.items() if n not in (3, 4)} == {
        0: 0,
        1: 10,
        2: 20,
        5: 50,
    }
    crash, error = outcomes[3], outcomes[4]
    assert isinstance(crash, TaskFailure)
    assert "ended by itself" in crash.message
    assert error == TaskFailure(message="unexpected ValueError: four")


def test_a_script_without_guard_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import arcfleet\n"
        f"files = [{str(VILLAGE)!r}] * 2\n"
        "arcfleet.solve_many(files, 'ps', workers=2)\n"
    )
    ran = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1].startswith(
        "arcfleet.errors.OptionError: expected worker processes to start"
    )
