import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from arcfleet import check
from arcfleet.datasets import make
from arcfleet.datasets.dataset import Dataset
from arcfleet.datasets.labels import open_labels
from tests.cli.running import (
    ARCFLEET,
    arcfleet,
    on_a_terminal,
    one_sentence,
    succeeded,
)
from tests.towns import town, write_csv_map


@pytest.fixture(scope="module")
def streets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_csv_map(town(6, blocks=30), tmp_path_factory.mktemp("maps") / "town")


def kill_once(command: list[object], kept: Callable[[], int]) -> None:
    """Start a command and kill it by SIGKILL as soon as it has kept more of its work."""
    before = kept()
    process = subprocess.Popen(
        [*ARCFLEET, *map(str, command)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while process.poll() is None and kept() <= before:
        time.sleep(0.005)
    ended = process.poll() is not None
    if not ended:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not ended, "it ended before it could be killed"
    assert kept() > before


def count_records(log: Path) -> int:
    """Count the whole records of a store, without its first line."""
    return max(0, log.read_bytes().count(b"\n") - 1) if log.exists() else 0


def test_make_label_and_info(streets: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    made = succeeded(
        *("dataset", "make", "task20", "--count", 30, "--split", "test"),
        *("--maps", streets, "--seed", 3, "-o", file),
    )
    assert made == f"{file}: 30 instances of task20-test\n"
    labelled = succeeded("dataset", "label", file, "--iterations", 20)
    dataset = Dataset.open(file)
    labels = open_labels(tmp_path / "a.labels.npz", dataset)
    assert f"30 labels, mean cost {labels.cost.mean():.1f}" in labelled
    assert all(check(dataset[n], labels[n]).ok for n in range(30))

    # Again: the files are there, and are only opened.
    again = succeeded("dataset", "label", file, "--iterations", 20, "--json")
    assert json.loads(again) == {
        "file": str(labels.path),
        "labels": 30,
        "mean_cost": labels.cost.mean(),
    }

    picture = tmp_path / "a.png"
    text = succeeded("dataset", "info", file, file, "--plot", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [line for line in text.splitlines() if line.startswith("required")] == [
        "required links    20 / 20.0 / 20  20 / 20.0 / 20"
    ]
    assert ["split", "test", "test"] in [line.split() for line in text.splitlines()]
    assert ["seed", "3", "3"] in [line.split() for line in text.splitlines()]
    assert text.endswith(f"a: streets of town ({dataset.attribution})\n")
    assert "OpenStreetMap" in dataset.attribution


def test_info_json_agrees_with_the_instances(streets: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    arcfleet(*("dataset", "make", "task30", "--count", 20, "--maps", streets, "-o", file))
    (facts,) = json.loads(succeeded("dataset", "info", file, "--json"))["datasets"]
    instances = list(Dataset.open(file))
    links = [link for instance in instances for link in instance.links]
    nodes = sum(len(instance.nodes) for instance in instances)
    assert facts["header"]["task_set"] == "task30"
    assert facts["mean_length"] == pytest.approx(sum(k.cost for k in links) / len(links))
    assert facts["mean_degree"] == pytest.approx(2 * len(links) / nodes)
    assert sum(facts["degrees"]) == pytest.approx(1)
    least = [-(-instance.total_demand // 100) for instance in instances]
    assert facts["routes"] == {
        "least": min(least),
        "mean": pytest.approx(sum(least) / 20),
        "most": max(least),
    }


def test_make_goes_on_after_kill_9(streets: Path, tmp_path: Path) -> None:
    def command(name: str) -> list[object]:
        return [
            *("dataset", "make", "task100", "--count", 6000, "--maps", streets),
            *("-o", tmp_path / name),
        ]

    log = tmp_path / "broken.npz.log"
    kill_once(command("broken.npz"), lambda: count_records(log))
    assert not (tmp_path / "broken.npz").exists()
    assert 0 < count_records(log) < 12
    succeeded(*command("broken.npz"), "--workers", 2)
    arcfleet(*command("whole.npz"))
    assert (tmp_path / "broken.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert {f.name for f in tmp_path.iterdir()} == {"broken.npz", "whole.npz"}


def test_label_goes_on_after_kill_9(streets: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    making = ("dataset", "make", "task20", "--count", 300, "--maps", streets, "-o", file)
    assert arcfleet(*making).returncode == 0

    def command(name: str) -> list[object]:
        return ["dataset", "label", file, "--iterations", 3000, "-o", tmp_path / name]

    log = tmp_path / "broken.npz.log"
    for _ in range(2):
        kill_once([*command("broken.npz"), "--workers", 2], lambda: count_records(log))
    assert 2 <= count_records(log) < 19
    ran = arcfleet(*command("broken.npz"))
    assert ran.returncode == 0
    arcfleet(*command("whole.npz"))
    assert (tmp_path / "broken.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert not (tmp_path / "broken.npz.log").exists()


def test_progress_is_shown_on_a_terminal(streets: Path, tmp_path: Path) -> None:
    code, out, shown = on_a_terminal(
        *("dataset", "make", "task20", "--count", 2000, "--maps", streets),
        *("-o", tmp_path / "a.npz"),
    )
    assert (code, out) == (0, f"{tmp_path / 'a.npz'}: 2000 instances of task20-train\n")
    assert b"2000 of 2000 instances" in shown
    assert b" per s" in shown


def test_ctrl_c_says_that_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(make, "make_dataset", interrupted)
    ran = arcfleet("dataset", "make", "task20", "--count", 1, "-o", tmp_path / "a.npz")
    assert one_sentence(ran) == "arcfleet: interrupted; the same command resumes from here"


def test_errors_are_one_sentence(tmp_path: Path) -> None:
    def error(*command: object) -> str:
        return one_sentence(arcfleet("dataset", *command))

    file = tmp_path / "a.npz"
    making = ("make", "task20", "--count", 1, "-o", file)
    wrong = error("make", "task21", "--count", 1, "-o", file)
    assert "did you mean 'task20'?" in wrong
    assert "no/map" in error(*making, "--maps", "no/map")
    assert "create it first" in error(*making[:-1], tmp_path / "no" / "a.npz")
    file.write_bytes(b"PK\x03\x04 and no more")
    for command in (
        ("info", file),
        ("label", file, "--iterations", 1),
        ("info", file, "--plot", tmp_path / "a.png"),
    ):
        assert "cut short or damaged" in error(*command)
    assert "picture file" in error("info", file, "--plot", tmp_path / "a.txt")
    for usage in (
        (),
        (*making, "--count", "0"),
        (*making, "--merge", "-1"),
        (*making, "--merge", "nan"),
    ):
        assert arcfleet("dataset", *usage).returncode == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_labelling_ended_by_sigterm_resumes(tmp_path: Path, workers: int) -> None:
    data, labels = tmp_path / "a.npz", tmp_path / "a.labels.npz"
    succeeded("dataset", "make", "task20", "--count", 200, "-o", data)
    log = labels.with_name("a.labels.npz.log")
    command = ["dataset", "label", data, "--iterations", 20_000, "--workers", workers]
    process = subprocess.Popen(
        [*ARCFLEET, *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while count_records(log) < 1:
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGTERM)  # as a service manager does
    stdout, stderr = process.communicate()
    assert (process.returncode, stdout) == (1, "")
    assert stderr.splitlines() == [
        "arcfleet: interrupted; the same command resumes from here"
    ]
    assert count_records(log) >= 1
    assert not labels.exists()
