from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from arcfleet import check
from arcfleet.cli.main import main
from arcfleet.datasets import make
from arcfleet.datasets.dataset import Dataset
from arcfleet.datasets.labels import open_labels
from tests.integration.test_cli import ARCFLEET, arcfleet, on_terminal
from tests.towns import town, write_csv_map

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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
    ran = arcfleet(
        *("dataset", "make", "task20", "--count", 30, "--split", "test"),
        *("--maps", streets, "--seed", 3, "-o", file),
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == f"{file}: 30 instances of task20-test\n"
    ran = arcfleet("dataset", "label", file, "--iterations", 20)
    assert (ran.returncode, ran.stderr) == (0, "")
    dataset = Dataset.open(file)
    labels = open_labels(tmp_path / "a.labels.npz", dataset)
    assert f"30 labels, mean cost {labels.cost.mean():.1f}" in ran.stdout
    assert all(check(dataset[n], labels[n]).ok for n in range(30))

    picture = tmp_path / "a.png"
    ran = arcfleet("dataset", "info", file, file, "--plot", picture)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [line for line in ran.stdout.splitlines() if line.startswith("required")] == [
        "required links    20 / 20.0 / 20  20 / 20.0 / 20"
    ]
    assert ["split", "test", "test"] in [line.split() for line in ran.stdout.splitlines()]
    assert ["seed", "3", "3"] in [line.split() for line in ran.stdout.splitlines()]
    assert ran.stdout.endswith(f"a: streets of town ({dataset.credit})\n")
    assert "OpenStreetMap" in dataset.credit


def test_info_json_agrees_with_the_instances(streets: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    arcfleet(*("dataset", "make", "task30", "--count", 20, "--maps", streets, "-o", file))
    ran = arcfleet("dataset", "info", file, "--json")
    (facts,) = json.loads(ran.stdout)["datasets"]
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
    ran = arcfleet(*command("broken.npz"), "--workers", 2)
    assert (ran.returncode, ran.stderr) == (0, "")
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
    code, out, shown = on_terminal(
        *("dataset", "make", "task20", "--count", 2000, "--maps", streets),
        *("-o", tmp_path / "a.npz"),
    )
    assert (code, out) == (0, f"{tmp_path / 'a.npz'}: 2000 instances of task20-train\n")
    assert b"2000 of 2000 instances" in shown
    assert b" per s" in shown


def test_ctrl_c_says_that_nothing_is_lost(
    streets: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(make, "make_dataset", interrupted)
    command = ["dataset", "make", "task20", "--count", "1", "-o", str(tmp_path / "a.npz")]
    assert main(command) == 1
    said = capsys.readouterr().err
    assert said == "arcfleet: interrupted; the same command goes on from here\n"


def test_errors_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def error(*command: object) -> str:
        assert main(["dataset", *map(str, command)]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        (line,) = err.splitlines()
        return line

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
    making_again = ["dataset", *map(str, making)]
    for usage in (
        ["dataset"],
        [*making_again, "--count", "0"],
        [*making_again, "--merge", "-1"],
        [*making_again, "--merge", "nan"],
    ):
        with pytest.raises(SystemExit, match="2"):
            main(usage)
