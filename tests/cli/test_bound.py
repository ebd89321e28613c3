import json
from pathlib import Path

import pytest

from tests.cli.running import VILLAGE, arcfleet, on_a_terminal, one_sentence, succeeded
from tests.located_instances import cross
from tests.shared_data import shared_dir

pytest.importorskip("highspy", reason="lower bounds need the extra `bounds`")

from arcfleet import write


def test_the_bound_of_a_file_and_the_gap_of_its_plan(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    succeeded("solve", VILLAGE, "--iterations", 500, "--out", plan)
    text = succeeded("bound", VILLAGE, "--plan", plan)
    assert "no plan costs less" in text
    assert "gap         " in text
    facts = json.loads(succeeded("bound", VILLAGE, "--plan", plan, "--json"))
    assert facts["bound"] <= facts["cost"]
    assert facts["proven_optimal"] == (facts["bound"] == facts["cost"])
    alone = json.loads(succeeded("bound", VILLAGE, "--json", "--iterations", 1))
    assert (alone["iterations"], alone["stopped_by"]) == (1, "iterations")


def test_a_faulty_plan_is_refused(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    succeeded("solve", VILLAGE, "--iterations", 5, "--out", plan)
    facts = json.loads(plan.read_text())
    facts["routes"].pop()
    plan.write_text(json.dumps(facts))
    assert "arcfleet check" in one_sentence(arcfleet("bound", VILLAGE, "--plan", plan))


def test_solve_reports_the_gap_everywhere(tmp_path: Path) -> None:
    file = tmp_path / "cross.json"
    write(cross(), file)
    page, sheets = tmp_path / "map.html", tmp_path / "sheets"
    words = ("--bound", "--html", page, "--sheets", sheets, "--seed", 1)
    ran = arcfleet("solve", file, "--time", 20, *words)
    assert ran.returncode == 0
    (line,) = [x for x in ran.stdout.splitlines() if x.startswith("bound ")]
    gap = line.partition(": ")[2]
    assert "possible" in gap
    assert f'"gap":"{gap}"' in page.read_text("utf-8")
    assert f"plan {gap}" in (sheets / "route-01.html").read_text("utf-8")


def test_a_terminal_shows_the_bound_and_ctrl_c_keeps_it() -> None:
    file = shared_dir() / "carplib" / "egl" / "egl-s4-C.dat"
    code, out, shown = on_a_terminal("bound", file, "--time", 60, interrupt_at=b"bound 20")
    assert code == 0
    assert b"interrupted; this is the bound so far" in shown
    assert "stopped by interrupt" in out
