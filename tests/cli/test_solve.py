import json
import shutil
import signal
import time
from pathlib import Path

import pytest

from arcfleet import (
    Stop,
    check,
    evaluate,
    read,
    read_solution,
    solve,
    write,
    write_solution,
)
from tests.cli.running import (
    VILLAGE,
    arcfleet,
    on_a_terminal,
    one_sentence,
    succeeded,
)
from tests.located_instances import cross
from tests.shared_data import shared_dir


def test_solve_prints_a_summary_and_no_progress_in_a_pipe() -> None:
    ran = arcfleet("solve", VILLAGE, "--seed", 3, "--iterations", 50)
    assert ran.returncode == 0
    assert ran.stderr == ""
    assert "instance    village" in ran.stdout
    assert "seed 3" in ran.stdout


def test_solve_json_has_the_promised_keys() -> None:
    ran = arcfleet("solve", VILLAGE, "--json", "--iterations", 20, "--method", "ps-alt1")
    facts = json.loads(ran.stdout)
    keys = {"instance", "method", "seed", "cost", "deadhead", "num_routes", "seconds"}
    assert keys | {"iterations"} <= facts.keys()
    assert (facts["instance"], facts["method"], facts["iterations"]) == (
        "village",
        "ps-alt1",
        20,
    )
    assert sum(route["cost"] for route in facts["routes"]) == facts["cost"]


@pytest.mark.parametrize("name", ["plan.json", "plan.sol"])
def test_solve_writes_a_plan_that_check_accepts(tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    succeeded("solve", VILLAGE, "--iterations", 9, "--out", out)
    instance = read(VILLAGE)
    assert check(instance, read_solution(out, instance)).ok
    assert succeeded("check", VILLAGE, out).startswith("ok: cost ")
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_a_single_route_is_no_plural(tmp_path: Path) -> None:
    instance, town, plan = cross(), tmp_path / "town.json", tmp_path / "plan.json"
    write(instance, town)
    write_solution(instance, evaluate(instance, [[1, 2]]), plan)
    assert succeeded("check", town, plan).startswith("ok: cost 666, 1 route, 666 m")
    shown = succeeded("show", town, plan, "--stops", tmp_path / "stops.csv")
    assert "cost 666, 1 route, 666 m" in shown


def test_check_names_every_fault_and_exits_1(tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    arcfleet("solve", VILLAGE, "--iterations", 9, "--out", out)
    plan = json.loads(out.read_text())
    plan["cost"] += 1
    del plan["routes"][0]
    out.write_text(json.dumps(plan))
    ran = arcfleet("check", VILLAGE, out)
    assert ran.returncode == 1
    assert len(ran.stdout.splitlines()) >= 3
    judged = json.loads(arcfleet("check", VILLAGE, out, "--json").stdout)
    assert judged["ok"] is False
    assert judged["faults"] == ran.stdout.splitlines()


def test_solve_without_a_file_explains_itself() -> None:
    ran = arcfleet("solve")
    assert ran.returncode == 2
    assert "examples:" in ran.stderr
    assert ran.stdout == ""


@pytest.mark.parametrize(
    ("option", "name"),
    [("--out", "no/plan.json"), ("--plot", "no/p.png"), ("--plot", "p.gif")],
)
def test_outputs_are_checked_before_the_search(
    tmp_path: Path, option: str, name: str
) -> None:
    # An instance that is not there would be the next complaint.
    ran = arcfleet("solve", tmp_path / "none.dat", option, tmp_path / name)
    assert Path(name).name in one_sentence(ran)
    assert list(tmp_path.iterdir()) == []


def test_outputs_may_not_overwrite_the_input(tmp_path: Path) -> None:
    own = tmp_path / "own.json"
    shutil.copy(VILLAGE, own)
    before = own.read_bytes()
    assert "different files" in one_sentence(arcfleet("solve", own, "--out", own))
    assert own.read_bytes() == before


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_gives_the_best_so_far(by: signal.Signals) -> None:
    command = ("solve", VILLAGE, "--time", 1000, "--json")
    code, out, shown = on_a_terminal(*command, interrupt_at=b"cost", by=by)
    assert code == 0
    assert json.loads(out)["stopped_by"] == "interrupt"
    assert b"best plan so far" in shown


def test_a_terminal_gets_a_progress_line() -> None:
    # Not a time limit: it counts from the start of the process, which may be delayed.
    code, out, shown = on_a_terminal("solve", VILLAGE, "--iterations", 1_000_000)
    assert code == 0
    assert b"iterations" in shown
    assert b"left" in shown
    assert "instance    village" in out


def test_the_time_limit_is_kept_on_large_instances() -> None:
    instance = read(shared_dir() / "carplib" / "egl-large" / "egl-g2-E.dat")
    before = time.process_time()
    result = solve(instance, stop=Stop(seconds=1.0), threads=2)
    spent = time.process_time() - before
    assert result.stopped_by == "seconds"
    assert result.seconds >= 0.8  # what follows the search is in the limit, too
    # In the time of the processor, which a busy machine does not prolong: 1.1 s a thread.
    assert spent < 2.2


def test_no_improvement_ends_the_search() -> None:
    command = ("solve", VILLAGE, "--time", 1000, "--no-improvement", 50, "--json")
    assert json.loads(succeeded(*command))["stopped_by"] == "no_improvement"


def test_a_target_alone_ends_by_the_limit_of_the_method() -> None:
    facts = json.loads(
        succeeded("solve", VILLAGE, "--method", "ps", "--target", 0, "--json")
    )
    assert facts["stopped_by"] == "iterations"


def test_parameters_of_a_method() -> None:
    command = ("solve", VILLAGE, "--method", "maens", "--iterations", 40, "--json")
    default = json.loads(succeeded(*command))
    small = json.loads(succeeded(*command, "--set", "population=2"))
    assert default["history"] != small["history"]
    for given, message in (
        ("populatoin=2", "did you mean 'population'?"),
        ("population=many", "expected population"),
        ("population", "expected a setting as name=value"),
    ):
        assert message in one_sentence(arcfleet(*command, "--set", given))
    ran = arcfleet("solve", VILLAGE, "--method", "ps", "--set", "population=2")
    assert "expected a setting of method 'ps'" in one_sentence(ran)


def test_districts(tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    common = (VILLAGE, "--iterations", 400, "--districts", 2)
    summary = succeeded("solve", *common, "--workers", 2, "--out", out)
    assert "note        2 districts, joined at cost " in summary
    instance = read(VILLAGE)
    assert check(instance, read_solution(out, instance)).ok
    assert json.loads(succeeded("solve", *common, "--json"))["iterations"] == 400


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--workers", 2), "expected --districts beside --workers"),
        (("--executor", "ray"), "expected --districts beside --executor"),
        (("--districts", 2, "--target", 5), "expected --districts without --target"),
        (("--districts", 2, "--target", 0), "expected --districts without --target"),
        (("--districts", 2, "--bound"), "expected --districts without --bound"),
        (("--districts", 2, "--max-route-cost", 9999), "to cut into districts"),
        (("--districts", 2, "--method", "ps"), "a method that warm-starts"),
        # Before its model is loaded, which takes seconds.
        (("--districts", 2, "--method", "daam", "--model", "none"), "a method that warm-"),
        (("--districts", 99), "expected districts to be a whole number from 1 to"),
    ],
)
def test_what_does_not_go_with_districts(options: tuple[object, ...], message: str) -> None:
    ran = arcfleet("solve", VILLAGE, "--time", 1, *options)
    assert message in one_sentence(ran)
