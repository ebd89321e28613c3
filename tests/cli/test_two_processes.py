"""Two commands at one file: both succeed or one says so, and nothing is lost or half."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from arcfleet.bench.run import RUNS
from arcfleet.datasets.dataset import Dataset
from arcfleet.datasets.labels import open_labels
from arcfleet.datasets.make import make_dataset
from arcfleet.datasets.store import Store, read_records
from tests.cli.running import ARCFLEET, VILLAGE, Ran, arcfleet, one_sentence, succeeded
from tests.helpers import SMALL
from tests.towns import town, write_csv_map

SUITE = 'folder = "{}"\n[[sets]]\nname = "s"\nfiles = ["{}", "{}"]\n'
ROUNDS = 2


def two_at_once(first: Sequence[object], second: Sequence[object]) -> list[Ran]:
    """Run two commands at the same time; each succeeds or fails in one sentence."""
    processes = [
        subprocess.Popen(
            [*ARCFLEET, *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for words in (first, second)
    ]
    outputs = [process.communicate() for process in processes]
    ran = [
        subprocess.CompletedProcess(each.args, each.returncode, *output)
        for each, output in zip(processes, outputs, strict=True)
    ]
    failed = [each for each in ran if each.returncode]
    assert len(failed) < 2, [each.stderr for each in ran]
    for each in failed:
        assert "another process at it: wait for its end" in one_sentence(each)
    assert all(each.stderr == "" for each in ran if each not in failed)
    return ran


def test_two_plans_to_one_file(tmp_path: Path) -> None:
    files = {"out": tmp_path / "plan.json", "html": tmp_path / "map.html"}
    words = [x for name, path in files.items() for x in (f"--{name}", path)]
    commands = [
        ["solve", VILLAGE, "--iterations", 5, "--seed", seed, "--json", *words]
        for seed in (1, 2)
    ]
    for _ in range(ROUNDS):
        ran = two_at_once(*commands)
        assert [each.returncode for each in ran] == [0, 0]
        succeeded("check", VILLAGE, files["out"])
        found = json.loads(files["out"].read_text())["cost"]
        assert found in [json.loads(each.stdout)["cost"] for each in ran]
        assert files["html"].read_text().rstrip().endswith("</html>")
        assert sorted(tmp_path.iterdir()) == sorted(files.values())


def test_two_benches_at_one_file(tmp_path: Path) -> None:
    suite, out = tmp_path / "s.toml", tmp_path / "runs.jsonl"
    (tmp_path / SMALL.name).write_bytes(SMALL.read_bytes())
    (tmp_path / VILLAGE.name).write_bytes(VILLAGE.read_bytes())
    suite.write_text(SUITE.format(tmp_path, SMALL.name, VILLAGE.name))
    command: list[object] = ["bench", suite, "--time", 0.05, "--seeds", 3, "--out", out]
    for _ in range(ROUNDS):
        out.unlink(missing_ok=True)
        two_at_once(command, command)
        records = read_records(out, RUNS)
        assert len({record.key for record in records}) == len(records) == 6


def test_two_data_sets_to_one_file(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    usual, out = tmp_path / "usual.npz", tmp_path / "data.npz"
    streets = write_csv_map(town(6, blocks=30), tmp_path_factory.mktemp("maps") / "town")
    make: list[object] = ["dataset", "make", "task20", "--count", 40]
    make += ["--maps", streets, "-o"]
    label: list[object] = ["dataset", "label", usual, "--iterations", 20, "-o"]
    succeeded(*make, usual, "--quiet")
    labels = tmp_path / "usual.labels.npz"
    succeeded(*label, labels, "--quiet")
    for command, expected in ((make, usual), (label, labels)):
        for _ in range(ROUNDS):
            out.unlink(missing_ok=True)
            two_at_once([*command, out, "--quiet"], [*command, out, "--quiet"])
            assert out.read_bytes() == expected.read_bytes()
            assert sorted(tmp_path.iterdir()) == sorted({out, usual, labels})
    assert len(open_labels(out, Dataset.open(usual))) == 40


def test_who_comes_second_leaves_the_streets_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second command starts while the first one makes its chunks."""
    out = tmp_path / "data.npz"
    words = ("dataset", "make", "task20", "--count", 3, "-o", out, "--quiet")
    add, second = Store.add, []

    def and_start_another(store: Store[Any], record: Any) -> None:
        monkeypatch.undo()
        before = sorted(tmp_path.iterdir())
        second.append(one_sentence(arcfleet(*words)))
        assert sorted(tmp_path.iterdir()) == before
        add(store, record)

    monkeypatch.setattr(Store, "add", and_start_another)
    assert len(make_dataset(out, "task20", count=3)) == 3
    assert "another process at it: wait for its end" in second[0]
    assert list(tmp_path.iterdir()) == [out]
