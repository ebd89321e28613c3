"""The time limit of a command holds from its start to the last file written."""

import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

import pytest

from arcfleet.cli.time_limit import TimeLimit, process_start
from arcfleet.errors import FormatWarning
from tests.cli.running import VILLAGE, arcfleet, in_a_new_process

AGE = """
import time
time.sleep(0.3)
from arcfleet.cli.time_limit import process_start
print(time.perf_counter() - process_start())
"""


def options(**files: Path) -> Namespace:
    return Namespace(started=time.perf_counter(), **files)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux says it")
def test_the_clock_starts_with_the_process() -> None:
    before = time.perf_counter()
    ran = subprocess.run(
        [sys.executable, "-c", AGE], capture_output=True, text=True, check=True
    )
    elapsed = time.perf_counter() - before
    # The system counts in hundredths of a second.
    assert 0.3 < float(ran.stdout) < elapsed + 0.02


def test_elsewhere_the_clock_starts_with_the_import(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = process_start()
    monkeypatch.setattr(Path, "read_text", lambda *_: "no numbers")
    assert real <= process_start() <= time.perf_counter()


def test_files_have_their_share_of_the_time(tmp_path: Path) -> None:
    bare, plan, sheets = (
        TimeLimit(options(**files), 10.0, reading_seconds=0.1)
        for files in ({}, {"out": tmp_path}, {"out": tmp_path, "sheets": tmp_path})
    )
    assert 0 < bare.reserved() < plan.reserved() < sheets.reserved()
    assert TimeLimit(options(out=tmp_path), None, reading_seconds=0.1).reserved() == 0


def test_files_that_take_too_long_are_told_of_before_the_search(tmp_path: Path) -> None:
    clock = TimeLimit(options(sheets=tmp_path), 1.0, reading_seconds=0.1)
    with pytest.warns(FormatWarning, match=r"writing the files takes about 7\.\d s of the"):
        clock.reserved()


def test_a_plan_is_made_even_where_the_time_is_up_before_the_search(tmp_path: Path) -> None:
    ran = in_a_new_process("solve", VILLAGE, "--time", 0.001, "--out", tmp_path / "a.json")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert " 1 iterations, stopped by seconds" in ran.stdout
    assert arcfleet("check", VILLAGE, tmp_path / "a.json").returncode == 0


def test_every_method_of_a_comparison_has_the_same_time() -> None:
    ran = arcfleet("compare", VILLAGE, "--methods", "ps,ruin-recreate", "--time", 0.0)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.count(" ok") == 2
