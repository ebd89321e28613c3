from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from arcfleet.errors import FileError, FormatWarning
from arcfleet.paper.series import RunFile, join, read_chunks, store_path
from tests.unit.experiments.some_series import chunk

if TYPE_CHECKING:
    from pathlib import Path

CHUNK = chunk(
    "sample=32@0.5", [110, 100, 60], model="m", samples=32, seed=0, temperature=0.5
)


def written(path: Path) -> bytes:
    file = RunFile(path)
    file.add(CHUNK)
    file.close()
    return path.read_bytes()


def test_round_trip(tmp_path: Path) -> None:
    path = store_path(tmp_path, "runs")
    other = chunk("ps", [1], first=7)
    written(path)
    file = RunFile(path)
    file.add(other)
    file.close()
    again = RunFile(path)
    again.close()
    assert again.chunks == [CHUNK, other]
    assert read_chunks([tmp_path], "runs") == [CHUNK, other]
    facts = json.loads(path.read_text().splitlines()[0])
    assert facts["settings"] == {"samples": 32, "seed": 0, "temperature": 0.5}
    with pytest.raises(FileError, match=r"generalise\.jsonl, found none"):
        read_chunks([tmp_path], "generalise")


def test_a_line_that_was_cut_off_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    whole = written(path)
    for end in (1, 20, len(whole) - 1):
        path.write_bytes(whole + whole[:end])
        with pytest.warns(FormatWarning, match=r"runs\.jsonl:2: left out"):
            assert read_chunks([tmp_path], "runs") == [CHUNK]
        with pytest.warns(FormatWarning, match=r"runs\.jsonl:2: dropped"):
            RunFile(path).close()
        assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"first": 0', '"first": -1'),
        ('"judged": 1', '"judged": "1"'),
        ("[110, 100", "[110.5, 100"),
        ("[110, 100, 60]", "[]"),
        ("series-1", "series-2"),
        ('"commit": "c0ffee", ', ""),
        ('"parallel": 1', '"parallel": 0'),
    ],
)
def test_other_lines_are_refused(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "runs.jsonl"
    text = written(path).decode()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(FileError, match=r"runs\.jsonl:1: expected a chunk of"):
        RunFile(path)
    with pytest.raises(FileError, match=r"runs\.jsonl:1: expected a chunk of"):
        read_chunks([tmp_path], "runs")


def test_missing_stretches(tmp_path: Path) -> None:
    file = RunFile(tmp_path / "runs.jsonl")
    key = chunk("maens", [9], seed=0).key
    assert file.missing(key, 4) == [range(4)]
    for first, count in ((2, 3), (8, 2), (4, 2)):
        file.add(chunk("maens", [9] * count, first=first, seed=0))
    file.add(chunk("maens", [9] * 20, seed=1))  # of another series
    assert file.missing(key, 12) == [range(2), range(6, 8), range(10, 12)]
    assert file.missing(key, 9) == [range(2), range(6, 8)]
    assert file.missing(key, 1) == [range(1)]
    file.add(chunk("maens", [9] * 8, seed=0))
    assert file.missing(key, 10) == []
    file.close()


def test_joining_several_machines() -> None:
    here = chunk("ps", [5, 6], first=2, seconds=4.0, parallel=2)
    there = chunk("ps", [1, 2, 9], machine="there", seconds=6.0)
    (joined,) = join([here, there])
    assert joined.positions.tolist() == [0, 1, 2, 3]
    assert joined.costs.tolist() == [1, 2, 5, 6]  # of two costs the first
    assert joined.seconds == pytest.approx(10 / 5)
    assert joined.seconds_at_once == pytest.approx(8 / 5)
    assert joined.parallel == 2
    # The name of a set is no part of what it is.
    assert len(join([here, chunk("ps", [1], place="town", label="another name")])) == 1
    assert len(join([here, chunk("ps", [1], device="H200")])) == 2
