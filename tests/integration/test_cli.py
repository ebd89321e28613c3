from __future__ import annotations

import json
import os
import pty
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from arcfleet import check, read, read_solution
from arcfleet.cli.main import main
from tests.shared_data import shared_dir

ROOT = Path(__file__).parents[2]
VILLAGE = ROOT / "examples" / "village.json"
ARCFLEET = [sys.executable, "-m", "arcfleet.cli.main"]


def arcfleet(
    *arguments: object, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ARCFLEET, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        timeout=120,
    )


def one_sentence(ran: subprocess.CompletedProcess[str]) -> str:
    """The error of a failed run: exit code 1, one line on stderr, nothing on stdout."""
    assert ran.returncode == 1, ran.stderr
    assert ran.stdout == ""
    (line,) = ran.stderr.splitlines()
    assert line.startswith("arcfleet: ")
    return line


def test_solve_prints_a_summary_and_no_progress_in_a_pipe() -> None:
    ran = arcfleet("solve", VILLAGE, "--seed", 3)
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
    assert arcfleet("solve", VILLAGE, "--iterations", 9, "--out", out).returncode == 0
    instance = read(VILLAGE)
    assert check(instance, read_solution(out, instance)).ok
    ran = arcfleet("check", VILLAGE, out)
    assert ran.returncode == 0
    assert ran.stdout.startswith("ok: cost ")
    assert [p.name for p in tmp_path.iterdir()] == [name]


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


def test_info_json_has_the_promised_keys() -> None:
    facts = json.loads(arcfleet("info", VILLAGE, "--json").stdout)
    instance = read(VILLAGE)
    assert facts["name"] == "village"
    assert facts["nodes"] == len(instance.nodes)
    assert facts["links"] == len(instance.links)
    assert facts["required"] == len(instance.required)
    assert facts["capacity"] == 1500
    assert facts["depot"] == instance.depot
    assert facts["total_demand"] == instance.total_demand
    assert "capacity      1500" in arcfleet("info", VILLAGE).stdout


def test_convert_there_and_back(tmp_path: Path) -> None:
    small = ROOT / "tests" / "data" / "small.dat"
    assert arcfleet("convert", small, tmp_path / "a.json").returncode == 0
    assert arcfleet("convert", tmp_path / "a.json", tmp_path / "b.dat").returncode == 0
    assert read(tmp_path / "a.json") == read(small)
    assert read(tmp_path / "b.dat") == read(small)


def test_convert_refuses_what_the_format_cannot_hold(tmp_path: Path) -> None:
    ran = arcfleet("convert", VILLAGE, tmp_path / "village.dat")
    assert "Spanish CARPLIB" in one_sentence(ran)
    assert list(tmp_path.iterdir()) == []


def test_methods_lists_all() -> None:
    names = {m["name"] for m in json.loads(arcfleet("methods", "--json").stdout)["methods"]}
    assert {"ps", "ps-ellipse", "ps-efficiency", "ps-alt1", "ps-alt2"} <= names
    assert all(name in arcfleet("methods").stdout for name in names)


def test_solve_without_a_file_explains_itself() -> None:
    ran = arcfleet("solve")
    assert ran.returncode == 2
    assert "examples:" in ran.stderr
    assert ran.stdout == ""


def test_wrong_usage_exits_2() -> None:
    assert arcfleet().returncode == 2
    assert arcfleet("solve", VILLAGE, "--time", "soon").returncode == 2
    assert arcfleet("solve", VILLAGE, "--threads", "-1").returncode == 2
    assert arcfleet("fly").returncode == 2


def test_bad_input_is_one_sentence(tmp_path: Path) -> None:
    missing = tmp_path / "missing.dat"
    assert str(missing) in one_sentence(arcfleet("solve", missing))
    bad = tmp_path / "bad.dat"
    text = (ROOT / "tests" / "data" / "small.dat").read_text()
    bad.write_text(text.replace("coste", "preis", 1))
    assert f"{bad}:" in one_sentence(arcfleet("info", bad))
    assert "did you mean" in one_sentence(arcfleet("solve", VILLAGE, "--method", "ps-alt3"))
    assert "found a directory" in one_sentence(arcfleet("solve", tmp_path))


@pytest.mark.parametrize(
    ("option", "name"),
    [("--out", "no/plan.json"), ("--plot", "no/p.png"), ("--plot", "p.gif")],
)
def test_outputs_are_checked_before_the_search(
    tmp_path: Path, option: str, name: str
) -> None:
    started = time.perf_counter()
    ran = arcfleet("solve", VILLAGE, "--time", 60, option, tmp_path / name)
    one_sentence(ran)
    assert time.perf_counter() - started < 30
    assert list(tmp_path.iterdir()) == []


def test_plots(tmp_path: Path) -> None:
    for arguments in (("solve", "--iterations", 5), ("info",)):
        picture = tmp_path / f"{arguments[0]}.png"
        ran = arcfleet(arguments[0], VILLAGE, *arguments[1:], "--plot", picture)
        assert ran.returncode == 0, ran.stderr
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_ctrl_c_gives_the_best_so_far() -> None:
    process = subprocess.Popen(
        [*ARCFLEET, "solve", str(VILLAGE), "--time", "100", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert json.loads(out)["stopped_by"] == "interrupt"
    assert "best plan so far" in err


def on_terminal(*arguments: object) -> tuple[int, str, bytes]:
    """Run with stderr on a terminal: exit code, stdout and what the terminal was sent."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*ARCFLEET, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(theirs)
    shown = b""
    while select.select([ours], [], [], 20)[0]:
        try:
            chunk = os.read(ours, 4096)
        except OSError:  # Linux says so when the other end is closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(ours)
    out, _ = process.communicate(timeout=30)
    return process.returncode, out, shown


def test_a_terminal_gets_a_progress_line() -> None:
    code, out, shown = on_terminal("solve", VILLAGE, "--time", 1)
    assert code == 0
    assert b"iterations" in shown
    assert b"left" in shown
    assert "instance    village" in out


@pytest.mark.parametrize("closing", ["| true", ">&-"])
def test_a_closed_stdout_costs_neither_the_plan_nor_the_verdict(
    tmp_path: Path, closing: str
) -> None:
    out = tmp_path / "plan.json"
    solve = f"solve {VILLAGE} --iterations 9 --out {out}"
    for command, code in ((solve, 0), (f"check {VILLAGE} {out}", 1)):
        ran = subprocess.run(
            [
                "bash",
                "-c",
                f"{' '.join(ARCFLEET)} {command} {closing}; exit ${{PIPESTATUS[0]}}",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (code, "")
        plan = json.loads(out.read_text())
        out.write_text(json.dumps(plan | {"cost": 1}))


def test_a_full_disk_under_stdout_is_one_sentence(tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [*ARCFLEET, "solve", str(VILLAGE), "--iterations", "9", "--out", str(out)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ran.returncode == 1
    assert ran.stderr.startswith("arcfleet: standard output: ")
    assert len(ran.stderr.splitlines()) == 1
    assert out.exists()


def test_outputs_may_not_overwrite_the_input(tmp_path: Path) -> None:
    own = tmp_path / "own.json"
    shutil.copy(VILLAGE, own)
    before = own.read_bytes()
    assert "different files" in one_sentence(arcfleet("solve", own, "--out", own))
    assert own.read_bytes() == before


def test_names_that_stdout_cannot_encode(tmp_path: Path) -> None:
    named = tmp_path / "named.json"
    named.write_text(
        VILLAGE.read_text().replace('"village"', '"Dörf ☃"', 1), encoding="utf-8"
    )
    ran = subprocess.run(
        [*ARCFLEET, "info", str(named)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_time_limit_is_kept_on_large_instances() -> None:
    instance = read(shared_dir() / "carplib" / "egl-large" / "egl-g2-E.dat")
    from arcfleet import Stop, solve

    result = solve(instance, stop=Stop(seconds=1.0), threads=2)
    assert result.stopped_by == "seconds"
    assert result.seconds < 1.1


def test_the_console_script_is_installed() -> None:
    script = shutil.which("arcfleet", path=str(Path(sys.executable).parent))
    assert script is not None
    ran = subprocess.run([script, "--version"], capture_output=True, text=True, check=False)
    assert ran.stdout.startswith("arcfleet ")


def test_the_steps_of_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = _demo_steps()
    assert [step[0] for step in steps] == ["info", "compare", "check"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    for step in steps:
        if "--time" in step:
            step[step.index("--time") + 1] = "0.05"
        assert main(step) == 0, capsys.readouterr().err
    assert capsys.readouterr().out.splitlines()[-1].startswith("ok: cost ")
    plan = tmp_path / "out" / "denver-plan.json"
    instance = read("example:denver")
    assert check(instance, read_solution(plan, instance)).ok
    assert plan.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert "OpenStreetMap" in plan.with_suffix(".html").read_text(encoding="utf-8")


def _demo_steps() -> list[list[str]]:
    """The commands of `make demo`, each without the name of the program."""
    rules = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    (demo,) = [rule for rule in rules.split("\n\n") if "\ndemo: " in rule]
    program = "\t$(BIN)/arcfleet "
    lines = demo.splitlines()
    return [shlex.split(line.removeprefix(program)) for line in lines if program in line]


def test_unknown_example() -> None:
    line = one_sentence(arcfleet("info", "example:dever"))
    assert line == "arcfleet: expected example:denver, got 'example:dever'"


@pytest.mark.parametrize(("given", "kept"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_of_torch_do_not_spin_unless_asked_to(
    given: str | None, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "to be restored")
    if given is None:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    else:
        monkeypatch.setenv("OMP_WAIT_POLICY", given)
    assert main(["methods"]) == 0
    assert os.environ["OMP_WAIT_POLICY"] == kept
