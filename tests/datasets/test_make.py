import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arcfleet.datasets import make
from arcfleet.datasets.dataset import Dataset
from arcfleet.datasets.make import make_dataset
from arcfleet.errors import (
    ArcfleetError,
    FileError,
    FormatWarning,
    MapError,
    OptionError,
)
from arcfleet.instance.diagnose import diagnose
from arcfleet.streets import StreetMap, tasks
from arcfleet.streets.street_arrays import Split
from tests.datasets.stopping import stop_at
from tests.shared_data import maps_dir
from tests.towns import town, write_csv_map


@pytest.fixture(scope="module")
def streets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("maps")
    return write_csv_map(town(4, one_way=0.4, blocks=40), folder / "town")


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "_CHUNK", 20)


def test_the_same_arguments_give_the_same_bytes(
    streets: Path, tmp_path: Path, small_chunks: None
) -> None:
    files = [tmp_path / f"{name}.npz" for name in "abc"]
    for file, workers, seed in zip(files, (1, 2, 1), (7, 7, 8), strict=True):
        found = make_dataset(
            file, "task20", count=50, maps=[streets], seed=seed, workers=workers
        )
        assert len(found) == 50
    first, second, other_seed = (file.read_bytes() for file in files)
    assert first == second
    assert first != other_seed
    drawn = {(instance.links, instance.depot) for instance in found}
    assert len(drawn) == 50, "no chunk repeats another"
    assert sorted(tmp_path.iterdir()) == files


def test_turn_rules_belong_to_the_arguments(
    streets: Path, tmp_path: Path, small_chunks: None
) -> None:
    files = [tmp_path / f"{name}.npz" for name in "ab"]
    for file, workers in zip(files, (1, 2), strict=True):
        options: Any = {"maps": [streets], "mixed": True, "turn_rules": True}
        found = make_dataset(file, "varied30", count=30, workers=workers, **options)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert found.facts["turn_rules"] is True
    assert all(instance.has_turn_rules for instance in found)
    assert any(instance.turns for instance in found)
    free = make_dataset(tmp_path / "c.npz", "varied30", count=30, maps=[streets])
    assert not any(instance.has_turn_rules for instance in free)
    with pytest.raises(FileError, match="made with turn_rules True, found one with None"):
        make_dataset(
            tmp_path / "c.npz", "varied30", count=30, maps=[streets], turn_rules=True
        )


def test_a_shorter_set_is_the_start_of_a_longer_one(streets: Path, tmp_path: Path) -> None:
    short, long = (
        make_dataset(tmp_path / f"{n}.npz", "task30", count=n, maps=[streets])
        for n in (5, 9)
    )
    assert list(short) == long[:5]


def test_a_file_made_again_is_cut_from_its_own_streets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make, "SYNTHETIC_TOWNS", 2)
    here, there = tmp_path / "a.npz", tmp_path / "b.npz"
    make_dataset(here, "task20", count=3, seed=1001)
    here.unlink()
    again = make_dataset(here, "task20", count=3, seed=1002)
    assert list(again) == list(make_dataset(there, "task20", count=3, seed=1002))


def test_the_header_says_where_it_comes_from(streets: Path, tmp_path: Path) -> None:
    found = make_dataset(
        tmp_path / "a.npz", "task20", count=3, split="test", maps=[streets], mixed=True
    )
    assert found.name == "task20-test"
    assert found.facts["maps"] == ["town"]
    assert "OpenStreetMap" in found.facts["credit"]
    assert found[0].attribution == found.facts["credit"]
    assert any(link.one_way for instance in found for link in instance.links)
    assert all(diagnose(instance) == () for instance in found)


def places(dataset: Dataset) -> set[tuple[float, float]]:
    return {point for instance in dataset for point in instance.coordinates}


def test_splits_share_no_junction(streets: Path, tmp_path: Path) -> None:
    splits: tuple[Split, ...] = ("train", "validation", "test")
    sets = [
        make_dataset(
            tmp_path / f"{split}.npz", "task20", count=40, split=split, maps=[streets]
        )
        for split in splits
    ]
    seen = [places(dataset) for dataset in sets]
    assert len(set.union(*seen)) == sum(len(each) for each in seen)


def shifted(street_map: StreetMap, east: float) -> StreetMap:
    return replace(
        street_map,
        junctions={n: (x + east, y) for n, (x, y) in street_map.junctions.items()},
        streets=tuple(replace(street, geometry=()) for street in street_map.streets),
    )


def test_maps_that_overlap_are_refused(tmp_path: Path) -> None:
    first = town(4, blocks=30)
    longitudes = [x for x, _ in first.junctions.values()]
    width = max(longitudes) - min(longitudes)
    here, near, far = (
        write_csv_map(shifted(first, share * width), tmp_path / name)
        for name, share in (("here", 0.0), ("near", 0.9), ("far", 1.1))
    )
    file = tmp_path / "a.npz"
    for other in (near, here):
        with pytest.raises(MapError, match=f"boxes around {here} and {other} overlap"):
            make_dataset(file, "task20", count=5, maps=[here, other])
    assert make_dataset(file, "task20", count=5, maps=[here, far]).facts["maps"] == [
        *("here", "far")
    ]


def test_splits_of_beijing_lie_in_bands_of_longitude(tmp_path: Path) -> None:
    beijing = maps_dir() / "beijing_5ring"
    east = -180.0
    for split in ("train", "test"):
        found = make_dataset(
            tmp_path / f"{split}.npz",
            "task100",
            count=60,
            split=split,
            maps=[beijing],
        )
        longitude = found.arrays["longitude"]
        assert east < longitude.min()
        east = float(longitude.max())


def test_without_maps_each_split_has_its_own_towns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make, "SYNTHETIC_TOWNS", 2)
    train, test = (
        make_dataset(tmp_path / f"{split}.npz", "task40", count=30, split=split)
        for split in ("train", "test")
    )
    assert not places(train) & places(test)
    assert train.facts["credit"] == ""


def test_a_broken_run_is_continued(
    streets: Path, tmp_path: Path, small_chunks: None
) -> None:
    whole, broken = tmp_path / "whole.npz", tmp_path / "broken.npz"
    make_dataset(whole, "task20", count=70, maps=[streets])
    with pytest.raises(KeyboardInterrupt):
        make_dataset(broken, "task20", count=70, maps=[streets], progress=stop_at(40))
    assert not broken.exists()
    again: list[int] = []
    make_dataset(
        broken, "task20", count=70, maps=[streets], progress=lambda n, _: again.append(n)
    )
    assert again == [40, 60, 70]
    assert broken.read_bytes() == whole.read_bytes()
    assert sorted(tmp_path.iterdir()) == [broken, whole]


def test_ctrl_c_ends_a_chunk_and_keeps_the_others(
    streets: Path, tmp_path: Path, small_chunks: None
) -> None:
    file = tmp_path / "a.npz"

    def interrupt(done: int, total: int) -> None:
        if done == 20:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        make_dataset(file, "task20", count=200, maps=[streets], progress=interrupt)
    assert not file.exists()
    assert (tmp_path / "a.npz.log").read_bytes().count(b"\n") >= 2
    assert len(make_dataset(file, "task20", count=200, maps=[streets])) == 200


def test_other_arguments_do_not_mix(
    streets: Path, tmp_path: Path, small_chunks: None
) -> None:
    file = tmp_path / "a.npz"

    with pytest.raises(KeyboardInterrupt):
        make_dataset(file, "task20", count=60, maps=[streets], progress=stop_at(1))
    with pytest.raises(FileError, match="with the same seed, found another run"):
        make_dataset(file, "task20", count=60, seed=1, maps=[streets])
    kept = (tmp_path / "a.npz.log").read_bytes()
    made = make_dataset(file, "task20", count=60, maps=[streets])
    log = tmp_path / "a.npz.log"
    log.write_bytes(kept)  # as a kill at the very end leaves it
    before = file.stat().st_mtime_ns
    again = make_dataset(file, "task20", count=60, maps=[streets])
    assert (again.checksum, file.stat().st_mtime_ns) == (made.checksum, before)
    assert not log.exists()
    with pytest.raises(FileError, match="made with count 61, found one with 60"):
        make_dataset(file, "task20", count=61, maps=[streets])


def keep_two_chunks(file: Path, streets: Path) -> Path:
    with pytest.raises(KeyboardInterrupt):
        make_dataset(file, "task20", count=60, maps=[streets], progress=stop_at(40))
    return file.with_name(f"{file.name}.log")


@pytest.mark.parametrize("place", [0.2, 0.9])
def test_a_damaged_chunk_is_made_again(
    streets: Path, tmp_path: Path, small_chunks: None, place: float
) -> None:
    whole, file = tmp_path / "whole.npz", tmp_path / "a.npz"
    make_dataset(whole, "task20", count=60, maps=[streets])
    log = keep_two_chunks(file, streets)
    *lines, second = log.read_bytes().splitlines(keepends=True)
    damaged = bytearray(second)
    damaged[int(place * len(damaged))] ^= 1
    log.write_bytes(b"".join([*lines, damaged]))
    done: list[int] = []
    with pytest.warns(FormatWarning, match=r"a\.npz\.log:3: dropped a line"):
        make_dataset(
            file, "task20", count=60, maps=[streets], progress=lambda n, _: done.append(n)
        )
    assert done == [20, 40, 60]
    assert file.read_bytes() == whole.read_bytes()
    assert not log.exists()


def test_a_finished_file_minds_no_chunks_of_others(
    streets: Path, tmp_path: Path, small_chunks: None
) -> None:
    file = tmp_path / "a.npz"
    log = keep_two_chunks(file, streets)
    aside = log.rename(tmp_path / "aside")
    made = make_dataset(file, "task20", count=70, maps=[streets])
    aside.rename(log)
    found = make_dataset(file, "task20", count=70, maps=[streets])
    assert found.checksum == made.checksum
    assert log.exists(), "they may be wanted still"


def test_a_run_that_fails_at_once_leaves_nothing(
    streets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_MOST_DRAWS", 0)
    with pytest.raises(MapError, match="found none in 0 draws"):
        make_dataset(tmp_path / "a.npz", "task20", count=5, maps=[streets])
    assert [*tmp_path.iterdir()] == []


def test_merging_nothing_and_merging_what_lies_together(tmp_path: Path) -> None:
    first = town(4, blocks=30)
    # Every street gets ends of its own, at the places where junctions were.
    ends = [end for street in first.streets for end in (street.tail, street.head)]
    apart = replace(
        first,
        junctions={n: first.junctions[end] for n, end in enumerate(ends)},
        streets=tuple(
            replace(street, tail=2 * n, head=2 * n + 1)
            for n, street in enumerate(first.streets)
        ),
    )
    streets = write_csv_map(apart, tmp_path / "apart")
    file = tmp_path / "a.npz"
    with pytest.raises(MapError, match="connected streets"):
        make_dataset(file, "task20", count=2, maps=[streets], merge_metres=None)
    found = make_dataset(file, "task20", count=2, maps=[streets], merge_metres=0)
    assert found.facts["merge_metres"] == 0
    for wrong in (-1.0, float("nan"), float("inf"), "15"):
        with pytest.raises(OptionError, match="merge_metres to be a distance of at least"):
            make_dataset(file, "task20", count=2, merge_metres=wrong)  # type: ignore[arg-type]


def test_arguments_are_checked_before_any_work(tmp_path: Path) -> None:
    tiny = write_csv_map(town(0, blocks=5), tmp_path.parent / "tiny")
    wrong: list[tuple[type[ArcfleetError], str, str, dict[str, Any]]] = [
        (OptionError, "count to be a whole number from 1", "a.npz", {"count": 0}),
        (OptionError, "expected a split among", "a.npz", {"split": "all"}),
        (OptionError, r"ending in \.npz, got 'x\.foo'", "x.foo", {}),
        (FileError, "expected an existing directory", "no/a.npz", {}),
        (MapError, "use a larger map or a smaller Task set", "a.npz", {"maps": [tiny]}),
    ]
    for error, message, name, options in wrong:
        with pytest.raises(error, match=message):
            make_dataset(tmp_path / name, "task100", **({"count": 1} | options))
    assert list(tmp_path.iterdir()) == []
