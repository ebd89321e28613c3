from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from arcfleet.bench import store as machine
from arcfleet.bench.store import RecordFile
from arcfleet.errors import FileError, FormatWarning
from tests.unit.experiments.test_summary import record

if TYPE_CHECKING:
    from pathlib import Path


def test_round_trip_and_replacement(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    file = RecordFile(path)
    runs = [record("a", 0, (0.1, 120), (0.5, 100)), record("b", 0, (0.25, 7))]
    for run in runs:
        file.add(run)
    file.close()
    again = RecordFile(path)
    assert list(again.records.values()) == runs
    again.add(record("a", 0, (0.1, 99)))
    again.close()
    last = RecordFile(path)
    assert [r.cost for r in last.finished()] == [99, 7]
    last.close()


def test_every_cut_of_the_last_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    file = RecordFile(path)
    file.add(record("a", 0, (0.1, 120)))
    whole = path.read_bytes()
    file.add(record("b", 0, (0.1, 120)))
    file.close()
    data = path.read_bytes()
    for end in range(len(whole) + 1, len(data)):
        path.write_bytes(data[:end])
        with pytest.warns(FormatWarning, match=r"runs\.jsonl:2: dropped"):
            RecordFile(path).close()
        assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "content", ["hello", "hello\n", '{"a": 1}', '{"a": 1}\n', "[]\n", "\n"]
)
def test_a_file_of_another_kind_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(content)
    with pytest.raises(FileError, match=r"plan\.json:1: expected a run"):
        RecordFile(path)
    assert path.read_text() == content


def test_the_commit_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARCFLEET_COMMIT", raising=False)
    found = machine.commit()
    monkeypatch.setenv("ARCFLEET_COMMIT", "c0ffee")
    assert machine.commit() == "c0ffee" != found
