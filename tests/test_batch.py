import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from arcfleet import Failure, Instance, Result, Stop, read, solve_many
from arcfleet.batch import BatchProgress
from arcfleet.errors import OptionError
from arcfleet.search import ProgressCallback
from arcfleet.workers import TaskFailure, child_seed, run_tasks
from tests.helpers import MIXED, SMALL, VILLAGE, make_instance, solved, street, verified

STOP = Stop(iterations=300)


@pytest.mark.parametrize("workers", [1, 2])
def test_order_seeds_and_plans_do_not_depend_on_the_workers(workers: int) -> None:
    given: list[Instance | Path | str] = [VILLAGE, read(SMALL), str(MIXED), read(VILLAGE)]
    outcomes = verified(solve_many(given, stop=STOP, seed=7, workers=workers))
    for position, (source, outcome) in enumerate(zip(given, outcomes, strict=True)):
        instance = source if isinstance(source, Instance) else read(source)
        expected = solved(instance, stop=STOP, seed=child_seed(7, position))
        assert (outcome.instance.name, outcome.seed) == (instance.name, expected.seed)
        assert outcome.solution == expected.solution
    assert len({child_seed(7, i) for i in range(4)} | {child_seed(8, 0)}) == 5


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bad_instance_is_reported_and_not_fatal(tmp_path: Path, workers: int) -> None:
    bad = tmp_path / "bad.dat"
    bad.write_text("NOMBRE : bad\n")
    trap = make_instance(street(1, 2, demand=1, one_way=True), name="trap")
    seen: list[BatchProgress] = []
    outcomes = solve_many(
        [bad, VILLAGE, trap, tmp_path / "none.dat", SMALL],
        stop=STOP,
        workers=workers,
        progress=seen.append,
    )
    assert [type(x) for x in outcomes] == [Failure, Result, Failure, Failure, Result]
    verified(x for x in outcomes if isinstance(x, Result))
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
    wrong: dict[str, Any]
    for wrong, message in (
        ({"workers": 0}, "workers"),
        ({"method": "ps-elipse"}, "did you mean"),
        ({"stop": Stop(target_cost=1)}, "certain to be met"),
        ({"seed": -1}, "seed"),
    ):
        with pytest.raises(OptionError, match=message):
            solve_many([VILLAGE], **wrong)
    with pytest.raises(OptionError, match="list"):
        solve_many(str(VILLAGE))
    (outcome,) = solve_many([3])  # type: ignore[list-item]
    assert outcome == Failure(
        instance="3", message="expected an Instance or the path of one, got int"
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_interrupt_keeps_what_there_is(workers: int) -> None:
    timer = threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT))
    outcomes = solve_many(
        ["none.dat", *[VILLAGE] * 4],
        stop=Stop(seconds=600.0),
        workers=workers,
        progress=lambda p: timer.start() if p.finished == 1 else None,
    )
    begun = verified(x for x in outcomes if isinstance(x, Result))
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
    crash, error = outcomes.pop(3), outcomes.pop(4)
    assert outcomes == {n: 10 * n for n in (0, 1, 2, 5)}
    assert isinstance(crash, TaskFailure)
    assert "ended by itself" in crash.message
    assert error == TaskFailure(message="unexpected ValueError: four")


def _die_later(task: int, progress: ProgressCallback) -> int:
    if task == 1:
        time.sleep(0.5)  # until the other worker is idle
        os._exit(9)
    return task


def test_a_process_that_dies_beside_an_idle_one_is_reported() -> None:
    """From Python 3.12 on, the pool would wait for the end of the idle one for ever."""
    outcomes: dict[int, int | TaskFailure] = {}
    run_tasks(_die_later, range(2), workers=2, finished=outcomes.__setitem__)
    assert outcomes[0] == 0
    assert isinstance(outcomes[1], TaskFailure)


def test_a_script_without_guard_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import arcfleet\n"
        f"files = [{str(VILLAGE)!r}] * 2\n"
        "arcfleet.solve_many(files, 'ps', workers=2)\n"
    )
    ran = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1].startswith(
        "arcfleet.errors.OptionError: expected worker processes to start"
    )


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="only Linux lists processes")
def test_workers_end_with_a_parent_that_was_terminated(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import arcfleet\n"
        "if __name__ == '__main__':\n"
        f"    files = [{str(VILLAGE)!r}] * 3\n"
        "    arcfleet.solve_many(files, 'ps', workers=2)\n"
        "    print('begun', flush=True)\n"
        "    arcfleet.solve_many(files, seconds=600, workers=2, progress=print)\n"
    )
    with subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.5)
        process.terminate()
        assert process.wait() == -signal.SIGTERM
        # The pipe closes when the last of them has ended.
        assert process.stdout.read() == ""
