from pathlib import Path

import pytest

from arcfleet.bench.machine import commit
from arcfleet.bench.run import RUNS, latest, open_runs
from arcfleet.datasets.store import read_records
from tests.bench.test_summary import record

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "benchmarks" / "results").rglob("*.jsonl"))


def test_a_later_run_replaces_an_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    runs = [record("a", 0, (0.1, 120), (0.5, 100)), record("b", 0, (0.25, 7))]
    with open_runs(path) as store:
        for run in runs:
            store.add(run)
    with open_runs(path) as store:
        assert store.records == runs
        store.add(record("a", 0, (0.1, 99)))
        assert [run.cost for run in latest(store.records).values()] == [99, 7]


@pytest.mark.parametrize(
    "path",
    [x for x in FILES if x.read_bytes().startswith(b'{"format": "arcfleet-run-1"')],
    ids=lambda path: path.parent.name,
)
def test_runs_of_the_repository_stay_readable(path: Path) -> None:
    records = read_records(path, RUNS)
    assert len(records) == path.read_bytes().count(b"\n")
    assert all(run.cost is not None for run in records if run.error is None)


def test_the_commit_can_be_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARCFLEET_COMMIT", raising=False)
    found = commit()
    monkeypatch.setenv("ARCFLEET_COMMIT", "c0ffee")
    assert commit() == "c0ffee" != found
