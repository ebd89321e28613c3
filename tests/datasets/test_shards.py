from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcfleet.datasets.shards import Merged, PartForm, Shard, identity_of, merge
from arcfleet.datasets.store import LineFormat, Store
from arcfleet.errors import FileError, OptionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    tasks: tuple[int, ...]
    note: str = ""


FORM = PartForm(
    LineFormat("test-done-1", Done, "a line of a test"),
    lambda x: x.tasks,
    lambda x: x.tasks,
    "tasks",
)


def write(path: Path, shard: str, tasks: int, *lines: Done, **common: object) -> Path:
    with Store(path, FORM.form, identity_of(Shard.parse(shard), tasks, common)) as store:
        for line in lines:
            store.add(line)
    return path


@given(st.integers(0, 200), st.integers(1, 40))
def test_parts_have_every_task_once_in_order_and_are_equal_in_size(
    count: int, of: int
) -> None:
    parts = [Shard(number, of).tasks(range(count)) for number in range(1, of + 1)]
    assert sorted(task for part in parts for task in part) == list(range(count))
    assert all(part == sorted(part) for part in parts)
    sizes = {len(part) for part in parts}
    assert max(sizes) - min(sizes) <= 1


def test_parts_are_the_same_everywhere() -> None:
    """Pinned: parts of one command may be made years and machines apart."""
    assert Shard(1, 3).tasks(range(12)) == PINNED
    assert str(Shard.parse("03/10")) == "3/10"


PINNED = [2, 3, 4, 6]


def test_no_part_has_all_of_one_method() -> None:
    runs = [(town, method) for town in range(50) for method in ("slow", "fast")]
    for number in (1, 2):
        part = Shard(number, 2).tasks(runs)
        assert 15 < sum(method == "slow" for _, method in part) < 35


@pytest.mark.parametrize(
    "text", ["", "3", "0/3", "4/3", "-1/3", "1/0", "1 /3", "a/b", "1/3/5", "1/99999999"]
)
def test_what_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="as in 3/10, got"):
        Shard.parse(text)


def test_parts_are_merged_in_order_and_the_later_line_of_a_task_counts(
    tmp_path: Path,
) -> None:
    parts = [
        write(tmp_path / "b", "2/2", 2, Done(tasks=(1,)), Done(tasks=(2,)), seed=7),
        write(
            tmp_path / "a", "1/2", 1, Done(tasks=(0,), note="x"), Done(tasks=(0,)), seed=7
        ),
    ]
    lines = [Done(tasks=(0,)), Done(tasks=(1,)), Done(tasks=(2,))]
    assert merge(parts, FORM) == Merged({"seed": 7}, lines)
    assert merge(parts, FORM._replace(has_identity=False)) == Merged({}, lines)


def test_what_is_missing_or_doubled_is_refused(tmp_path: Path) -> None:
    first = write(tmp_path / "1", "1/3", 1, Done(tasks=(0,)), seed=7)
    second = write(tmp_path / "2", "2/3", 1, Done(tasks=(1,)), seed=7)
    third = write(tmp_path / "3", "3/3", 1, Done(tasks=(2,)), seed=7)
    assert len(merge([first, second, third], FORM).records) == 3
    with pytest.raises(FileError, match="from 1/3 to 3/3, found none for 1/3, 3/3: run"):
        merge([second], FORM)
    with pytest.raises(FileError, match=r"each part once, found 1/3 in .*1, too"):
        merge([first, second, third, first], FORM)
    copy = write(tmp_path / "copy", "1/3", 1, Done(tasks=(0,)), seed=7)
    with pytest.raises(FileError, match="copy: expected each part once"):
        merge([first, second, third, copy], FORM)
    for path, message, tasks, lines in (
        ("few", "expected 2 tasks in part 3/3, found 1: run its", 2, [Done(tasks=(2,))]),
        ("many", "expected 1 tasks in part 3/3, found 2", 1, [Done(tasks=(2, 3))]),
        ("double", r"found one that .*1 has, too", 1, [Done(tasks=(0,))]),
    ):
        bad = write(tmp_path / path, "3/3", tasks, *lines, seed=7)
        with pytest.raises(FileError, match=message):
            merge([first, second, bad], FORM)


def test_parts_of_several_works_are_refused(tmp_path: Path) -> None:
    first = write(tmp_path / "1", "1/2", 1, Done(tasks=(0,)), seed=7, stop_rule=None)
    for name, shard, seed, message in (
        ("a", "2/2", 8, r"the same seed as in .*1, found another: merge the parts"),
        ("b", "2/3", 7, "the same number of parts as in"),
        ("c", "2/3", 8, "the same seed and number of parts as in"),
    ):
        other = write(
            tmp_path / name, shard, 1, Done(tasks=(1,)), seed=seed, stop_rule=None
        )
        with pytest.raises(FileError, match=message):
            merge([first, other], FORM)
    whole = tmp_path / "whole"
    with Store(whole, FORM.form, {"seed": 7}) as store:
        store.add(Done(tasks=(1,)))
    with pytest.raises(FileError, match="whole: expected a part made with --shard"):
        merge([first, whole], FORM)
