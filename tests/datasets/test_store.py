import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcfleet.datasets import store
from arcfleet.datasets.store import LineFormat, Store, read_records, record_from
from arcfleet.errors import FileError, FormatWarning
from tests.helpers import files_of_at_most


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    name: str
    costs: tuple[int, ...]
    seconds: float = 0.0
    reference: int | None = None
    history: tuple[tuple[float, int], ...] = ()
    settings: dict[str, int | float] | None = None


FORM = LineFormat("test-line-1", Line, "a line of a test")
LINES = [
    Line(name="a", costs=(1, 2), settings={"x": 1, "y": 0.5}),
    Line(name="b", costs=(3,), seconds=2.0, reference=7, history=((0.5, 4), (1.0, 3))),
]


def written(path: Path, identity: dict[str, object] | None = None) -> bytes:
    with Store(path, FORM, identity) as store:
        for line in LINES:
            store.add(line)
    return path.read_bytes()


def test_what_is_added_is_there_again(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    written(path, {"seed": 1})
    assert read_records(path, FORM) == LINES
    with Store(path, FORM, {"seed": 1}) as store:
        assert store.records == LINES
        store.add(LINES[0])
    assert read_records(path, FORM) == [*LINES, LINES[0]]
    assert json.loads(path.read_text().splitlines()[0])["identity"] == {"seed": 1}


def test_every_cut_is_survived(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    data = written(path)
    ends = [number + 1 for number, byte in enumerate(data) if byte == ord("\n")]
    for cut in range(len(data)):
        path.write_bytes(data[:cut])
        whole = max([0, *(end for end in ends if end <= cut)])
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", FormatWarning)
            Store(path, FORM).close()
        assert bool(warned) == (whole > 0 and cut != whole)
        assert path.read_bytes() == data[: whole or ends[0]]


def test_a_damaged_line_is_left_out_with_a_word(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    data = written(path)
    path.write_bytes(data.replace(b'"costs": [1, 2]', b'"costs": [1, 3]'))
    with pytest.warns(FormatWarning, match=r"a\.jsonl:2: dropped a line"):
        assert read_records(path, FORM) == LINES[1:]


def test_files_whose_lines_name_the_format_are_read_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    old = b'{"format": "test-line-1", "name": "a", "costs": [1, 2]}\n'
    path.write_bytes(old)
    with Store(path, FORM) as store:
        store.add(LINES[1])
    first, second = path.read_text().splitlines()
    assert json.loads(first)["format"] == json.loads(second)["format"] == "test-line-1"
    assert [line.name for line in read_records(path, FORM)] == ["a", "b"]
    path.write_bytes(old + old[:30])
    with pytest.warns(FormatWarning, match=r"old\.jsonl:2: dropped"):
        Store(path, FORM).close()
    assert path.read_bytes() == old


def test_older_members_are_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_bytes(b'{"format": "test-line-1", "title": "a", "costs": []}\n')
    form = FORM._replace(upgrade=lambda x: {"name": x["title"], "costs": x["costs"]})
    assert read_records(path, form) == [Line(name="a", costs=())]


@pytest.mark.parametrize(
    "content",
    ["hello", "hello\n", '{"a": 1}', '{"a": 1}\n', "[]\n", "\n", '{"format": "b"}\n'],
)
def test_a_file_of_another_format_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(content)
    with pytest.raises(FileError, match=r"plan\.json:1: expected a line of a test, found"):
        Store(path, FORM)
    assert path.read_text() == content


@pytest.mark.parametrize("other", [{}, {"seed": 1, "new": 2, "old": 3}, {"seed": 1}])
def test_another_run_is_refused(tmp_path: Path, other: dict[str, object]) -> None:
    path = tmp_path / "a.jsonl"
    data = written(path, other)
    with pytest.raises(FileError, match=r"with the same (seed and )?(new|old), found"):
        Store(path, FORM, {"seed": 1, "new": 2})
    assert path.read_bytes() == data


def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    first = Store(tmp_path / "a.jsonl", FORM)
    with pytest.raises(FileError, match="found another process at it"):
        Store(tmp_path / "a.jsonl", FORM)
    first.close()
    Store(tmp_path / "a.jsonl", FORM).close()


def test_who_comes_second_leaves_the_file_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second process looked before the first had made the file."""
    path = tmp_path / "a.jsonl"
    with path.open("a+b") as first:
        store._lock(first, path)  # noqa: SLF001
        monkeypatch.setattr(Path, "exists", lambda *_: False)
        with pytest.raises(FileError, match="found another process at it"):
            Store(path, FORM)
        monkeypatch.undo()
        assert path.exists()


def test_a_file_that_was_removed_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first process ends between the opening and the locking of the second."""
    path = tmp_path / "a.jsonl"
    first, lock = Store(path, FORM), store._lock  # noqa: SLF001

    def late(*arguments: Any) -> None:
        monkeypatch.undo()
        first.remove()
        lock(*arguments)

    monkeypatch.setattr(store, "_lock", late)
    with Store(path, FORM) as second:
        second.add(LINES[0])
    assert read_records(path, FORM) == LINES[:1]


def test_what_a_full_disk_takes_only_in_part_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    with Store(path, FORM) as store:
        store.add(LINES[0])
        whole = path.read_bytes()
        with (
            files_of_at_most(len(whole) + 20),
            pytest.raises(FileError, match="no space left"),
        ):
            store.add(LINES[1])
        assert path.read_bytes() == whole
        with files_of_at_most(len(whole)), pytest.raises(FileError, match="too large"):
            store.add(LINES[1])
        assert path.read_bytes() == whole
        store.add(LINES[1])
    assert read_records(path, FORM) == LINES


def test_nothing_is_left_where_not_even_the_first_line_fits(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    with files_of_at_most(10), pytest.raises(FileError, match="no space left"):
        Store(path, FORM)
    assert not path.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"name": 3},
        {"costs": 3},
        {"costs": [1.5]},
        {"costs": [True]},
        {"reference": "7"},
        {"history": [[1, 2, 3]]},
        {"settings": [1]},
        {"more": 1},
    ],
)
def test_members_of_other_types_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        record_from(Line, {"name": "a", "costs": [1]} | change)
    with pytest.raises(ValueError, match="members name, costs"):
        record_from(Line, {"name": "a"})


@given(st.text(), st.lists(st.integers(-(2**60), 2**60)), st.floats(allow_nan=False))
def test_any_record_survives(name: str, costs: list[int], seconds: float) -> None:
    line = Line(name=name, costs=tuple(costs), seconds=seconds)
    facts = json.loads(json.dumps({"name": name, "costs": costs, "seconds": seconds}))
    assert record_from(Line, facts) == line
