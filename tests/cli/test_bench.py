import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from arcfleet import check
from arcfleet.bench import run as benchmark
from tests.cli.running import (
    ARCFLEET,
    ROOT,
    arcfleet,
    on_a_terminal,
    one_sentence,
    succeeded,
)
from tests.tiny_model import tiny_model_file


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for file in ("tests/data/small.dat", "tests/data/small_mixed.txt"):
        (tmp_path / Path(file).name).write_bytes((ROOT / file).read_bytes())
    (tmp_path / "village.json").write_bytes((ROOT / "examples/village.json").read_bytes())
    (tmp_path / "costs.csv").write_text(
        "name,lower_bound,upper_bound\nsmall,30,30\nsmall_mixed,,48\nvillage,,20000\n"
    )
    path = tmp_path / "tiny.toml"
    path.write_text(
        'folder = "."\nreferences = "costs.csv"\n'
        '[[sets]]\nname = "hand"\nfiles = ["small*"]\n'
        '[[sets]]\nname = "village"\nfiles = ["village.json"]\n'
    )
    return path


def lines(path: Path) -> list[dict[str, object]]:
    _, *records = (json.loads(line) for line in path.read_text().splitlines())
    return records


def test_bench_runs_resumes_and_draws(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs.jsonl"
    command = ["bench", suite, "--methods", "auto,ps", "--time", 0.05, "--seeds", 2]
    ran = arcfleet(
        *command, "--workers", 2, "--out", out, "--plot", tmp_path / "p", "--json"
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / "p-anytime.png").read_bytes().startswith(b"\x89PNG")
    runs = lines(out)
    assert len(runs) == 3 * 2 * 2
    for run in runs:
        assert run["gap_percent"] == pytest.approx(
            100 * (run["cost"] / run["reference"] - 1),  # type: ignore[operator]
            abs=1e-6,
        )
    rows = json.loads(ran.stdout)["rows"]
    assert [(r["set_name"], r["method"], r["runs"]) for r in rows] == [
        ("hand", "ruin-recreate", 4),
        ("hand", "ps", 4),
        ("village", "ruin-recreate", 2),
        ("village", "ps", 2),
    ]
    hand = [r for r in runs if (r["set_name"], r["method"]) == ("hand", "ps")]
    gaps = [r["gap_percent"] for r in hand]
    assert rows[1]["gap_percent"] == pytest.approx(sum(gaps) / 4)  # type: ignore[arg-type]

    data = out.read_bytes()
    again = arcfleet(*command, "--out", out)
    assert again.returncode == 0
    assert out.read_bytes() == data
    assert "reached %" in again.stdout

    out.write_bytes(data[:-40])
    resumed = arcfleet(*command, "--out", out)
    assert resumed.returncode == 0
    assert "dropped a line" in resumed.stderr
    assert out.read_bytes().startswith(data[: data[:-1].rindex(b"\n") + 1])
    assert len(lines(out)) == len(runs)


def test_stop_at_reference_only_where_it_is_proven(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs.jsonl"
    ran = arcfleet("bench", suite, "--time", 0.2, "--stop-at-reference", "--out", out)
    assert ran.returncode == 0
    stopped = {run["instance"]: run["stopped_by"] for run in lines(out)}
    assert stopped == {
        "small": "target_cost",
        "small_mixed": "seconds",
        "village": "seconds",
    }


def test_a_bad_instance_is_an_error_line_and_tried_again(
    suite: Path, tmp_path: Path
) -> None:
    good = (tmp_path / "small.dat").read_bytes()
    (tmp_path / "small.dat").write_text("NOMBRE : small\n")
    out = tmp_path / "runs.jsonl"
    ran = arcfleet("bench", suite, "--time", 0.05, "--out", out)
    assert ran.returncode == 1
    (line,) = ran.stderr.splitlines()
    assert line.startswith("arcfleet: hand small, ruin-recreate, seed 0, 0.05 s: ")
    assert [run["error"] is None for run in lines(out)] == [False, True, True]
    (tmp_path / "small.dat").write_bytes(good)
    assert arcfleet("bench", suite, "--time", 0.05, "--out", out).returncode == 0
    assert len(lines(out)) == 4


def test_a_faulty_plan_is_an_error_line(
    suite: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        benchmark, "check", lambda i, plan: check(i, replace(plan, cost=plan.cost - 1))
    )
    out = tmp_path / "runs.jsonl"
    ran = arcfleet("bench", suite, "--time", 0.05, "--out", out)
    assert ran.returncode == 1
    assert all(str(run["error"]).startswith("faulty plan: ") for run in lines(out))
    assert "faulty plan" in ran.stderr


def test_a_terminal_gets_a_bar_with_rate_and_time_left(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs.jsonl"
    code, text, shown = on_a_terminal("bench", suite, "--time", 0.4, "--out", out)
    assert code == 0
    assert text.startswith("suite tiny")
    assert b"3 of 3 runs, " in shown
    assert b"per s" in shown
    assert b"left" in shown


def test_bad_input_is_one_sentence(suite: Path, tmp_path: Path) -> None:
    out = ["--time", 0.05, "--out", tmp_path / "runs.jsonl"]
    assert "suite" in one_sentence(arcfleet("bench", "nothing-like-it", *out))
    assert "file" in one_sentence(arcfleet("bench", tmp_path / "no.toml", *out))
    assert "method" in one_sentence(arcfleet("bench", suite, "--methods", "magic", *out))
    assert "workers" in one_sentence(arcfleet("bench", suite, "--workers", 9999, *out))
    assert "found something else" in one_sentence(arcfleet("bench", suite, "--out", suite))
    same = ["--out", tmp_path / "a-anytime.png", "--plot", tmp_path / "a"]
    assert "differ" in one_sentence(arcfleet("bench", suite, *same))
    nowhere = tmp_path / "no" / "runs.jsonl"
    assert "directory" in one_sentence(arcfleet("bench", suite, "--out", nowhere))


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("workers", [1, 2])
def test_interrupt_keeps_the_runs_and_says_how_to_go_on(
    suite: Path, tmp_path: Path, workers: int, by: signal.Signals
) -> None:
    out = tmp_path / "runs.jsonl"
    command = ["bench", str(suite), "--time", "0.05", "60", "--workers", str(workers)]
    process = subprocess.Popen(
        [*ARCFLEET, *command, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not (out.exists() and out.read_bytes().count(b"\n") == 4):
        time.sleep(0.05)
    time.sleep(0.2)
    # As a terminal and a service manager do: to the workers as well.
    os.killpg(process.pid, by)
    stdout, stderr = process.communicate()
    assert process.returncode == 1
    assert "village" in stdout
    assert stderr.splitlines() == [
        f"arcfleet: interrupted, 3 of 6 runs are left; the same command resumes from {out}"
    ]
    assert len(lines(out)) == 3


def test_bench_takes_a_model_for_learned_methods(suite: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    model = tiny_model_file(tmp_path)
    out = tmp_path / "runs.jsonl"
    # Long enough for a learned plan: without one there would be a warning.
    command = ["bench", suite, "--time", 1, "--out", out, "--model", model]
    line = one_sentence(arcfleet(*command, "--methods", "ps"))
    assert line.startswith("arcfleet: expected model for learned methods only")
    assert not out.exists()
    succeeded(*command, "--methods", "ps,daam-greedy", "--device", "cpu", "--quiet")
    assert len(lines(out)) == 3 * 2


def test_bench_compares_plans_with_a_lower_bound(suite: Path, tmp_path: Path) -> None:
    pytest.importorskip("highspy", reason="lower bounds need the extra `bounds`")
    out = tmp_path / "runs.jsonl"
    text = succeeded("bench", suite, "--time", 0.05, "--bound", 10, "--out", out)
    assert "above bound %" in text
    runs = lines(out)
    assert all(run["bound"] <= run["cost"] for run in runs)  # type: ignore[operator]
    again = succeeded("bench", suite, "--time", 0.05, "--out", out, "--json")
    for row in json.loads(again)["rows"]:
        assert row["bound_gap_percent"] >= 0
        assert 0 <= row["proven_percent"] <= 100
