"""Benchmarks of lower bounds: quick runs, and the page that is made of their lines."""

from pathlib import Path

import pytest

from benchmarks import bounds, bounds_validity
from tests.shared_data import shared_dir
from tools.docs import results_pages

pytest.importorskip("highspy", reason="lower bounds need the extra `bounds`")


def test_a_set_is_measured_once_and_its_page_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared_dir()
    folder = tmp_path / "bounds"
    words = ["--sets", "kshs", "--seconds", "20", "--out", str(folder)]
    assert bounds.main(words) == 0
    lines = (folder / "bounds.jsonl").read_text()
    assert bounds.main(words) == 0
    assert (folder / "bounds.jsonl").read_text() == lines
    assert "Gap of the best known cost to the bound" in capsys.readouterr().out
    page = results_pages.bounds(tmp_path)
    assert page.startswith("# Lower bounds\n")
    assert "| kshs | 6 |" in " ".join(page.split())


def test_random_instances_are_compared_with_brute_force(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert bounds_validity.main(["--count", "15", "--seed", "4"]) == 0
    assert "15 of 15 instances have a plan" in capsys.readouterr().out
