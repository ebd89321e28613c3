import signal
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arcfleet import Stop, __version__, check, solve
from arcfleet.datasets import labels as label
from arcfleet.datasets.array_file import write_array_file
from arcfleet.datasets.dataset import Dataset
from arcfleet.datasets.labels import label_dataset, open_labels
from arcfleet.datasets.make import make_dataset
from arcfleet.errors import FileError, FormatWarning, OptionError
from arcfleet.network import Network
from arcfleet.search.result import Result
from arcfleet.search.ruin_recreate import ruin_recreate
from arcfleet.workers import child_seed
from tests.datasets.stopping import stop_at
from tests.towns import town, write_csv_map


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("data")
    streets = write_csv_map(town(5, one_way=0.3), folder / "town")
    return make_dataset(folder / "a.npz", "task20", count=40, maps=[streets], mixed=True)


@pytest.mark.parametrize("method", ["ruin-recreate", "maens"])
def test_every_label_is_a_valid_plan(dataset: Dataset, tmp_path: Path, method: str) -> None:
    labels = label_dataset(dataset, tmp_path / "l.npz", method=method, iterations=20)
    assert len(labels) == 40
    for index, instance in enumerate(dataset):
        solution = labels[index]
        report = check(instance, solution)
        assert report.ok, report.faults
        assert report.cost == labels.cost[index]
        services, route_starts = labels.plan(index)
        assert len(services) == route_starts[-1] == 20
        assert len(route_starts) == solution.num_routes + 1
    assert labels[-1] == labels[39]
    with pytest.raises(IndexError):
        labels[40]


def test_each_instance_is_solved_with_its_child_seed(
    dataset: Dataset, tmp_path: Path
) -> None:
    labels = label_dataset(dataset, tmp_path / "l.npz", iterations=30, seed=11)
    for index in (0, 1, 17, 39):
        expected = solve(
            dataset[index], stop=Stop(iterations=30), seed=child_seed(11, index)
        )
        assert labels[index] == expected.solution


def test_labels_do_not_depend_on_the_workers_but_on_the_seed(
    dataset: Dataset, tmp_path: Path
) -> None:
    files = [tmp_path / f"{name}.npz" for name in "abc"]
    for file, workers, seed in zip(files, (1, 2, 1), (3, 3, 4), strict=True):
        label_dataset(dataset, file, iterations=50, seed=seed, workers=workers)
    first, second, other_seed = (file.read_bytes() for file in files)
    assert first == second
    assert first != other_seed
    assert sorted(tmp_path.iterdir()) == files


def test_the_header_says_how_they_were_made(dataset: Dataset) -> None:
    labels = label_dataset(dataset, iterations=5, seed=9)
    assert labels.path == dataset.path.with_name("a.labels.npz")
    facts = labels.facts
    assert (facts["method"], facts["iterations"], facts["seed"]) == ("ruin-recreate", 5, 9)
    assert facts["dataset_sha256"] == dataset.checksum
    assert facts["arcfleet_version"] == __version__
    assert facts["settings"]["average_removed"] > 0
    before = labels.path.stat().st_mtime_ns
    label_dataset(dataset, iterations=5, seed=9)
    assert labels.path.stat().st_mtime_ns == before
    with pytest.raises(FileError, match="made with seed 1, found one with 9"):
        label_dataset(dataset, iterations=5, seed=1)


def test_a_log_cut_anywhere_is_continued(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label, "_CHUNK", 8)
    whole = tmp_path / "whole.npz"
    label_dataset(dataset, whole, iterations=2)
    file = tmp_path / "a.npz"
    log = tmp_path / "a.npz.log"

    with pytest.raises(KeyboardInterrupt):
        label_dataset(dataset, file, iterations=2, progress=stop_at(32))
    data = log.read_bytes()
    ends = {number + 1 for number, byte in enumerate(data) if byte == ord("\n")}
    first_record = min(ends)
    cuts = [0, 1, first_record - 1, first_record, first_record + 5, len(data)]
    for end in [*cuts, *range(first_record + 40, len(data), 257)]:
        file.unlink(missing_ok=True)
        log.write_bytes(data[:end])
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", FormatWarning)
            label_dataset(dataset, file, iterations=2)
        assert bool(warned) == (end > first_record and end not in ends)
        assert file.read_bytes() == whole.read_bytes()
        assert not log.exists()


def test_ctrl_c_records_no_unfinished_search(dataset: Dataset, tmp_path: Path) -> None:
    file = tmp_path / "a.npz"

    def interrupt(done: int, total: int) -> None:
        if done == 16:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        label_dataset(dataset, file, iterations=300, progress=interrupt)
    assert not file.exists()
    label_dataset(dataset, file, iterations=300)
    whole = tmp_path / "whole.npz"
    label_dataset(dataset, whole, iterations=300)
    assert file.read_bytes() == whole.read_bytes()


def test_a_search_cut_short_is_not_recorded(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def cut_short(network: Network, *options: Any) -> Result:
        calls.append(network.instance.name)
        result = ruin_recreate(network, *options)
        return replace(result, stopped_by="interrupt") if len(calls) == 20 else result

    file = tmp_path / "a.npz"
    monkeypatch.setattr(label, "ruin_recreate", cut_short)
    with pytest.raises(KeyboardInterrupt):
        label_dataset(dataset, file, iterations=2)
    left: list[int] = []
    label_dataset(
        dataset, file, iterations=2, progress=lambda done, total: left.append(done)
    )
    assert left == [16, 32, 40]


def test_logs_of_others_are_left_alone(dataset: Dataset, tmp_path: Path) -> None:
    file, log = tmp_path / "a.npz", tmp_path / "a.npz.log"
    log.write_text("my notes\n")
    with pytest.raises(FileError, match="labels in the making, found something"):
        label_dataset(dataset, file, iterations=2)
    assert log.read_text() == "my notes\n"
    log.unlink()

    with pytest.raises(KeyboardInterrupt):
        label_dataset(dataset, file, iterations=2, progress=stop_at(1))
    with pytest.raises(FileError, match="with the same iterations and seed, found another"):
        label_dataset(dataset, file, iterations=3, seed=1)


@pytest.mark.parametrize(
    ("method", "iterations", "size"),
    [("ruin-recreate", 5_000, 16), ("ruin-recreate", 10**9, 1), ("maens", 1, 1)],
)
def test_slow_searches_are_recorded_sooner(method: str, iterations: int, size: int) -> None:
    assert label.chunk_size(method, iterations) == size


def test_labels_of_another_data_set_are_refused(dataset: Dataset, tmp_path: Path) -> None:
    streets = write_csv_map(town(5), tmp_path / "town")
    other = make_dataset(tmp_path / "other.npz", "task20", count=40, maps=[streets])
    labels = label_dataset(dataset, tmp_path / "l.npz", iterations=2)
    with pytest.raises(FileError, match="found those of another data set"):
        open_labels(labels.path, other)
    with pytest.raises(FileError, match="made by `arcfleet dataset label`, found one of"):
        open_labels(other.path, other)


def test_a_plan_that_costs_otherwise_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    labels = label_dataset(dataset, tmp_path / "l.npz", iterations=2)
    facts = {k: v for k, v in labels.facts.items() if k not in ("format", "version")}
    for name, value in (("cost", 1), ("services", 200)):
        arrays = {key: values.copy() for key, values in labels.arrays.items()}
        arrays[name][0] = value
        write_array_file(tmp_path / "x.npz", "arcfleet-labels", 1, facts, arrays)
        with pytest.raises(FileError, match="plan of the stated cost for instance 0"):
            open_labels(tmp_path / "x.npz", dataset)[0]


def test_arguments_are_checked(dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="expected a method among ruin-recreate, maens"):
        label_dataset(dataset, method="ps", iterations=1)
    with pytest.raises(OptionError, match="iterations"):
        label_dataset(dataset, tmp_path / "x.npz", iterations=0)
