import time
from pathlib import Path

import pytest

from arcfleet import Instance, read
from arcfleet.bench.machine import commit
from arcfleet.bench.run import RUNS, Record, Run, latest, open_runs, run_benchmark
from arcfleet.bench.suite import SuiteInstance
from arcfleet.datasets.store import read_records
from tests.bench.test_summary import record

ROOT = Path(__file__).parents[2]
VILLAGE = ROOT / "examples" / "village.json"
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


def runs_of_a_slow_reader(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *, reading: float, limit: float
) -> list[Record]:
    """Return two runs of an instance that takes some time to read."""
    reads = []

    def slow(path: Path) -> Instance:
        reads.append(path)
        time.sleep(reading)
        return read(path)

    monkeypatch.setattr("arcfleet.bench.run.read", slow)
    source = SuiteInstance(
        set_name="s", name="village", path=VILLAGE, reference=None, proven=False
    )
    with open_runs(folder / "runs.jsonl") as store:
        runs = [Run.of(source, "ruin-recreate", seed, limit, False) for seed in (0, 1)]
        run_benchmark(runs, store)
        assert len(reads) == 1
        return store.records


def test_reading_counts_in_the_limit_of_every_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for run in runs_of_a_slow_reader(monkeypatch, tmp_path, reading=0.3, limit=0.2):
        assert (run.iterations, run.stopped_by, run.error) == (1, "seconds", None)
        assert run.seconds is not None
        assert run.seconds >= 0.3


def test_time_to_verify_and_write_is_kept_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Reading leaves 0.2 of 0.5 s, which the checker is expected to need.
    for run in runs_of_a_slow_reader(monkeypatch, tmp_path, reading=0.3, limit=0.5):
        assert (run.iterations, run.error) == (1, None)


def test_the_commit_can_be_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARCFLEET_COMMIT", raising=False)
    found = commit()
    monkeypatch.setenv("ARCFLEET_COMMIT", "c0ffee")
    assert commit() == "c0ffee" != found
