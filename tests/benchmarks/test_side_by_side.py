import json
from pathlib import Path

import pytest

from arcfleet import solve
from arcfleet.bench.run import Record, gap_percent
from arcfleet.bench.suite import SuiteInstance
from arcfleet.instance import Instance
from arcfleet.search import Result, Stop
from benchmarks import side_by_side
from benchmarks.side_by_side import main, plan_pairs
from benchmarks.side_by_side_report import (
    OURS,
    ReferenceRun,
    better_equal_worse,
    side_by_side_report,
)

ROOT = Path(__file__).parents[2]
OTHER = "PyVRP 1.2.3"


def record(instance: str, method: str, seed: int, cost: int, limit: float = 1.0) -> Record:
    return Record(
        set_name="s",
        instance=instance,
        method=method,
        seed=seed,
        time_limit=limit,
        stop_at_reference=False,
        machine="m",
        commit="c",
        reference=100,
        cost=cost,
        gap_percent=gap_percent(cost, 100),
        seconds=1.0,
        seconds_to_best=0.5,
    )


RECORDS = [
    *(record("a", OTHER, 0, 102), record("a", OURS, 0, 100)),
    *(record("a", OURS, 1, 104), record("a", OTHER, 1, 101)),
    *(record("b", OURS, 0, 100), record("b", OTHER, 0, 100)),
    *(record("d", OURS, 0, 100), record("d", OTHER, 0, 110)),
    # Without a partner, and with another limit: these are not paired.
    *(record("d", OTHER, 1, 1), record("b", OTHER, 0, 200, limit=5.0)),
]


def test_solvers_take_turns_in_being_first() -> None:
    sources = [
        SuiteInstance(set_name="s", name=x, path=Path(x), reference=1, proven=True)
        for x in "ab"
    ]
    runs = plan_pairs(sources, [5, 1, 1], 2, OTHER, stop_at_reference=False)
    keys = [run.key for run in runs]
    assert [key.time_limit for key in keys] == [1.0] * 8 + [5.0] * 8
    assert [key.method for key in keys] == [OURS, OTHER, OTHER, OURS] * 4
    pairs = list(zip(keys[::2], keys[1::2], strict=True))
    assert all((x.instance, x.seed) == (y.instance, y.seed) for x, y in pairs)
    assert len(set(keys)) == 16


def test_instances_are_compared_by_the_runs_that_both_have() -> None:
    # a: 203 against 204; b: equal; d: 110 against 100.
    assert better_equal_worse(RECORDS, "s", 1.0, OTHER) == (1, 1, 1)


def test_the_tables() -> None:
    published = [
        ReferenceRun(solver="H", set_name="s", instance="b", cost=105, seconds=9.0),
        ReferenceRun(solver="H", set_name="s", instance="elsewhere", cost=1, seconds=1.0),
    ]
    measured, references = side_by_side_report(RECORDS, published).sections
    assert measured.rows == [
        ["s", "1", OURS, "3", "4", "0.667", "3 of 4", "1.00", None],
        # a 1.5, b 0, d (10 - 99) / 2
        [
            *("s", "1", OTHER, "3", "5", "-14.333", "2 of 5", "1.00"),
            "1 better, 1 equal, 1 worse",
        ],
        [
            *("s", "5", OTHER, "1", "1", "100.000", "0 of 1", "1.00"),
            "0 better, 0 equal, 0 worse",
        ],
    ]
    assert references.rows == [
        ["s", "1", "H", "5.000", "9.00", "1", OURS, "0.000"],
        ["s", "1", "H", "5.000", "9.00", "1", OTHER, "0.000"],
        ["s", "1", "H", "5.000", "9.00", "5", OTHER, "100.000"],
    ]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "small.dat").write_bytes((ROOT / "tests/data/small.dat").read_bytes())
    (tmp_path / "costs.csv").write_text("name,lower_bound,upper_bound\nsmall,30,30\n")
    path = tmp_path / "tiny.toml"
    path.write_text(
        'folder = "."\nreferences = "costs.csv"\n'
        '[[sets]]\nname = "hand"\nfiles = ["small*"]\n'
    )
    return path


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Another method in the place of PyVRP; gives the seeds that it was run with."""
    seeds: list[int] = []

    def solved(instance: Instance, *, stop: Stop, seed: int) -> Result:
        seeds.append(seed)
        return solve(instance, "ps", stop=stop, seed=seed)

    monkeypatch.setattr(side_by_side, "pyvrp_name", lambda: OTHER)
    monkeypatch.setattr(side_by_side, "solve_by_pyvrp", solved)
    monkeypatch.setattr(side_by_side, "read_reference_runs", list)
    return seeds


def test_the_command_goes_on_where_it_was_cut(
    suite: Path, tmp_path: Path, stand_in: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = [str(suite), "--time", "0.05", "--out", str(out)]
    assert main(command) == 0
    assert main([*command, "--seeds", "2"]) == 0
    assert stand_in == [0, 1]
    _, *lines = (json.loads(x) for x in (out / "runs.jsonl").read_text().splitlines())
    assert [(x["method"], x["seed"]) for x in lines] == [
        *((OURS, 0), (OTHER, 0)),
        *((OTHER, 1), (OURS, 1)),
    ]
    assert all(x["error"] is None and x["cost"] >= 30 for x in lines)
    assert f"| hand | 0.05 | {OTHER} | 1 | 2 |" in (out / "side-by-side.md").read_text()
    assert "Run here, by turns" in capsys.readouterr().out


def test_an_instance_that_cannot_be_read_is_told_and_left_out(
    suite: Path, tmp_path: Path, stand_in: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small2.dat").write_text("nonsense\n")
    assert main([str(suite), "--time", "0.05", "--out", str(tmp_path / "out")]) == 1
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert all("small2" in line for line in told)
    assert stand_in == [0]


def test_without_pyvrp_the_command_says_one_sentence(
    suite: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("benchmarks.pyvrp_solver.find_spec", lambda name: None)
    assert main([str(suite), "--out", str(tmp_path / "out")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("needs pyvrp, which is not installed: pip install pyvrp==0.14.1")
    assert not (tmp_path / "out").exists()
