"""Benchmarks of operations: quick runs, and the page that is made of their lines."""

from pathlib import Path

import pytest

from benchmarks import mcarptif, next_day, shape
from benchmarks.mcarptif import MCARPTIF_RUNS, Run
from tests.shared_data import maps_dir, shared_dir
from tools.docs.results_pages import operations


def run_of(instance: str, seed: int, routes: int, cost: int, share: float | None) -> Run:
    return Run(
        instance=instance,
        share=share,
        limit_seconds=1.0,
        seed=seed,
        machine="a machine",
        commit="abc",
        tasks=50,
        routes=routes,
        visits=9,
        cost=cost,
        cpu_seconds=0.9,
        iterations=100,
        peer_method="tabu-search",
        peer_vehicles=2,
        peer_cost=1000,
        peer_seconds=10.0,
    )


def test_the_table_compares_the_worst_seed_with_the_peer() -> None:
    runs = [
        run_of("a", 1, 2, 990, 0.1),
        run_of("a", 2, 2, 1000, 0.1),
        run_of("b", 1, 1, 1200, 0.1),
        run_of("b", 2, 3, 900, 0.1),
        run_of("a", 1, 2, 980, None),
    ]
    sections = MCARPTIF_RUNS.section(runs)
    assert isinstance(sections, list)
    tenth, longer = sections
    assert tenth.title == (
        "In 0.1 of the CPU time of the peer: worst seed ahead 0, equal 1, behind 1"
    )
    assert longer.title.startswith("In 1 seconds: worst seed ahead 1")
    peer = ["50", "2", "1,000", "10"]
    assert tenth.rows == [
        ["a", *peer, "2", "995", "-1.00 %", "0", "0.90"],
        ["b", *peer, "1 to 3", "1,050", "1 fewer", "1 more", "0.90"],
    ]
    assert "--shares 0.1 --seconds 1 --seeds 1 2" in MCARPTIF_RUNS.command(runs)


def test_the_fastest_of_the_best_rows_is_the_peer() -> None:
    shared_dir()
    peer = mcarptif.best_rows()["Lpr_IF-a-01"]
    assert peer[1:] == (1, 13589, 0.02)
    keys = mcarptif.keys_of(["Lpr_IF-a-01", "Act-a"], [0.1], [5.0], [1])
    assert keys == [
        ("Lpr_IF-a-01", 0.1, 0.002, 1),
        ("Lpr_IF-a-01", None, 5.0, 1),
        ("Act-a", None, 5.0, 1),
    ]


def test_quick_runs_make_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shared_dir()
    maps_dir()
    files = ["--files", "Lpr_IF-a-01", "--shares", "0.1", "--seconds", "--seeds", "1"]
    mcarptif.main([*files, "--out", str(tmp_path / "mcarptif")])
    shape.main(["--quick", "--out", str(tmp_path / "shape")])
    next_day.main(["--quick", "--out", str(tmp_path / "next-day")])
    assert "Reno without two streets" in capsys.readouterr().out
    page = operations(tmp_path, tmp_path / "figures")
    assert "| Lpr_IF-a-01 | 52 | 1 | 13,589 |" in page
    assert "![Balance and compactness](shape.svg)" in page
    assert (tmp_path / "figures" / "shape.svg").exists()
    assert "| fresh plan |" in page
