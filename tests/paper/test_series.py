import json
from pathlib import Path

import pytest

from arcfleet.datasets.store import Store
from arcfleet.errors import FileError
from arcfleet.paper.series import COSTS, join, missing, read_series
from tests.paper.some_series import line

LINE = line("sample=32@0.5", [110, 100, 60], model="m", samples=32, seed=0, temperature=0.5)
OLD = {
    **{"format": "arcfleet-series-1", "data_sha256": "d", "row": "redraw"},
    **{"settings": {"samples": 32, "seed": 0}, "source_sha256": "m", "device": "cpu"},
    **{"alone": False, "set_name": "s", "scale": "task20", "place": "p"},
    **{"label": "DaAM (best of 32, routes redrawn)", "first": 0, "seconds": 2},
    **{"parallel": 1, "judged": 1, "machine": "m", "commit": "c", "costs": [110, 100]},
}


def test_round_trip(tmp_path: Path) -> None:
    other = line("ps", [1], first=7)
    with Store(tmp_path / "runs.jsonl", COSTS) as store:
        store.add(LINE)
        store.add(other)
    with Store(tmp_path / "runs.jsonl", COSTS) as store:
        assert store.records == [LINE, other]
    first, second = read_series([tmp_path], "runs")
    assert first.costs == {0: 110, 1: 100, 2: 60}
    assert second.costs == {7: 1}
    with pytest.raises(FileError, match=r"generalise\.jsonl, found none"):
        read_series([tmp_path], "generalise")


def test_lines_of_old_have_the_names_of_today(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(OLD) + "\n")
    (found,) = read_series([tmp_path], "runs")
    assert (found.row, found.label) == ("daam-sample=32", "DaAM (best of 32, neural LNS)")
    assert found.of.verified == 1


@pytest.mark.parametrize(
    "change",
    [
        {"first": -1},
        {"judged": "1"},
        {"costs": [110.5]},
        {"costs": []},
        {"format": "arcfleet-series-2"},
        {"commit": None},
        {"parallel": 0},
        {"more": 1},
    ],
)
def test_other_lines_are_refused(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(OLD | change) + "\n")
    for read in (lambda: Store(path, COSTS), lambda: read_series([tmp_path], "runs")):
        with pytest.raises(FileError, match=r"runs\.jsonl:1: expected costs of"):
            read()


def test_missing_stretches() -> None:
    key = line("maens", [9], seed=0).key
    assert missing([], key, 4) == [range(4)]
    found = [
        line("maens", [9] * count, first=first, seed=0)
        for first, count in ((2, 3), (8, 2), (4, 2))
    ]
    found.append(line("maens", [9] * 20, seed=1))  # of another series
    assert missing(found, key, 12) == [range(2), range(6, 8), range(10, 12)]
    assert missing(found, key, 9) == [range(2), range(6, 8)]
    assert missing(found, key, 1) == [range(1)]
    assert missing([*found, line("maens", [9] * 8, seed=0)], key, 10) == []


def test_joining_several_machines() -> None:
    here = line("ps", [5, 6], first=2, seconds=4.0, parallel=2)
    there = line("ps", [1, 2, 9], machine="there", seconds=6.0)
    (joined,) = join([here, there])
    assert joined.costs == {0: 1, 1: 2, 2: 5, 3: 6}  # of two costs the first
    assert list(joined.costs) == [0, 1, 2, 3]
    assert joined.seconds == pytest.approx(10 / 5)
    assert joined.seconds_at_once == pytest.approx(8 / 5)
    assert joined.parallel == 2
    # The name of a set is no part of what it is.
    assert len(join([here, line("ps", [1], place="town", label="another name")])) == 1
    assert len(join([here, line("ps", [1], device="H200")])) == 2
