from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from arcfleet.errors import FileError, FormatWarning, OptionError
from arcfleet.experiments.contenders import plan_contenders
from arcfleet.experiments.table_rows import RowFile, RowKey, TableRow

if TYPE_CHECKING:
    from pathlib import Path

ROW = TableRow(
    key=RowKey(
        set_name="task20-test",
        data_sha256="d",
        labels_sha256="l",
        count=3,
        method="sample",
        settings=(("samples", 32), ("seed", 0), ("temperature", 0.5)),
        model_sha256="m",
    ),
    machine="here",
    device="cpu",
    commit="c",
    seconds_per_instance=0.25,
    judged=2,
    costs=(110, 100, 60),
    references=(100, 100, 50),
)


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "table.jsonl"
    file = RowFile(path)
    other = replace(ROW, key=replace(ROW.key, method="ps", settings=(), model_sha256=None))
    for row in (ROW, other):
        file.add(row)
    file.close()
    again = RowFile(path)
    again.close()
    assert list(again.rows.values()) == [ROW, other]
    facts = json.loads(path.read_text().splitlines()[0])
    assert facts["settings"] == {"samples": 32, "seed": 0, "temperature": 0.5}
    assert facts["gap_percent"] == pytest.approx(10)


def test_a_line_that_was_cut_off_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "table.jsonl"
    file = RowFile(path)
    file.add(ROW)
    file.close()
    whole = path.read_bytes()
    for end in (1, 20, len(whole) - 1):
        path.write_bytes(whole + whole[:end])
        with pytest.warns(FormatWarning, match=r"table\.jsonl:2: dropped"):
            RowFile(path).close()
        assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"count": 3', '"count": 2'),
        ('"judged": 2', '"judged": "2"'),
        ("[110, 100", "[110.5, 100"),
        ("table-row-1", "table-row-2"),
        ('"commit": "c", ', ""),
    ],
)
def test_other_lines_are_refused(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "table.jsonl"
    file = RowFile(path)
    file.add(ROW)
    file.close()
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(FileError, match=r"table\.jsonl:1: expected a row of"):
        RowFile(path)
    assert path.read_text() == text.replace(old, new)


def test_contenders() -> None:
    contenders = plan_contenders(
        ["greedy", "sample", "ps", "ps-alt1", "ps"],
        samples=8,
        temperatures=[1, 0.5, 1],
        scanning_plans=20,
        iterations={"maens": 700},
        search_count=5,
        seed=3,
    )
    assert [contender.label for contender in contenders] == [
        "greedy",
        "sample 8, temperature 1",
        "sample 8, temperature 0.5",
        "ps, 5 plans",
        "ps-alt1, 20 plans",
        "maens, 700 iterations",
    ]
    assert [contender.count for contender in contenders] == [None] * 5 + [5]
    assert [contender.is_learned for contender in contenders] == [True] * 3 + [False] * 3
    with pytest.raises(OptionError, match="got 'magic'"):
        plan_contenders(["magic"])
    with pytest.raises(OptionError, match="at least one method"):
        plan_contenders([])
