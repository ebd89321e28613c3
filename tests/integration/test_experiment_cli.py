from __future__ import annotations

import csv
import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from arcfleet.cli.main import main
from arcfleet.datasets import Dataset, open_labels
from arcfleet.experiments import learned_table
from arcfleet.methods import solve
from arcfleet.search.stop import Stop
from arcfleet.workers import child_seed
from tests.neural.labelled_towns import labelled_file
from tests.tiny_model import tiny_model_file

if TYPE_CHECKING:
    from pathlib import Path

QUICK = ("--scanning-plans", 10, "--samples", 2, "--judge", 3, "--device", "cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("experiment")
    tiny_model_file(folder)
    labelled_file(folder, "task20-test", count=6)
    labelled_file(folder, "task30-test", "task30", count=4)
    return folder


def experiment(folder: Path, *arguments: object) -> int:
    # In this process: importing torch anew for each call would take seconds.
    sets = [folder / "task20-test.npz", folder / "task30-test.npz"]
    every = ["experiment", "learned", *sets, "--model", folder / "tiny.safetensors"]
    return main([str(argument) for argument in (*every, *QUICK, *arguments)])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_table_and_its_resumption(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "table.jsonl"
    command = ("--out", out, "--temperature", 1, 0.5)
    more = ("--ruin-recreate", 30, "--maens", 20, "--search-count", 2)
    assert experiment(folder, *command, *more) == 0
    shown = capsys.readouterr()
    rows = lines(out)
    assert len(rows) == 2 * (5 + 5 + 2)
    assert len(shown.err.splitlines()) == len(rows)

    dataset = Dataset.open(folder / "task20-test.npz")
    labels = open_labels(folder / "task20-test.labels.npz", dataset)
    by_method = {row["method"]: row for row in rows if row["set"] == "task20-test"}
    for row in by_method.values():
        assert row["references"] == labels.cost[: row["count"]].tolist()
        gaps = 100 * (np.array(row["costs"]) / row["references"] - 1)
        assert row["gap_percent"] == pytest.approx(gaps.mean())
        assert row["mean_cost"] == pytest.approx(np.mean(row["costs"]))
        assert row["seconds_per_instance"] > 0
        assert row["judged"] == min(3, row["count"])
    assert by_method["maens"]["count"] == 2
    assert by_method["ps"]["count"] == 6
    assert (by_method["ps"]["model_sha256"], by_method["greedy"]["device"]) == (None, "cpu")
    alone = solve(dataset[4], "ps-alt1", stop=Stop(iterations=10), seed=child_seed(0, 4))
    assert by_method["ps-alt1"]["costs"][4] == alone.cost

    sections = shown.out.split("\n\n")
    assert "task20-test" in sections[1]
    assert "n=6" in sections[1]
    assert "(n=2)" in sections[1]
    assert "sample 2, temperature 0.5" in sections[1]
    markdown = out.with_suffix(".md").read_text()
    gap = f"{by_method['recipe']['gap_percent']:.2f}"
    assert f"| recipe | {gap} ± " in markdown
    with out.with_suffix(".csv").open() as stream:
        table = list(csv.DictReader(stream))
    assert [float(row["mean_cost"]) for row in table] == pytest.approx(
        [row["mean_cost"] for row in rows]
    )

    # Again: nothing is made, the tables are the same.
    data = out.read_bytes()
    assert experiment(folder, *command, *more) == 0
    again = capsys.readouterr()
    assert (again.out, again.err) == (shown.out, "")
    assert out.read_bytes() == data
    # Other settings, another count: only these rows are made.
    changed = ("--temperature", 1, 0.7, "--count", 6, "--json")
    assert experiment(folder, "--out", out, *changed) == 0
    facts = json.loads(capsys.readouterr().out)["rows"]
    assert len(facts) == 2 * 10
    assert [row["settings"].get("temperature") for row in lines(out)[len(rows) :]] == [
        0.7,
        0.7,
    ]


def test_a_kill_costs_one_row(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "table.jsonl"
    assert experiment(folder, "--out", out, "--methods", "greedy,ps", "--quiet") == 0
    whole = out.read_bytes()
    out.write_bytes(whole[:-30])
    capsys.readouterr()
    assert experiment(folder, "--out", out, "--methods", "greedy,ps") == 0
    shown = capsys.readouterr()
    assert "dropped a line" in shown.err
    assert sum("above the labels" in line for line in shown.err.splitlines()) == 1
    again = lines(out)
    for row, before in zip(again, whole.splitlines(), strict=True):
        assert row["costs"] == json.loads(before)["costs"]


def test_another_model_makes_learned_rows_anew(folder: Path, tmp_path: Path) -> None:
    from arcfleet.neural.checkpoint import load_model, save_model

    out = tmp_path / "table.jsonl"
    methods = ("--out", out, "--methods", "greedy,ps", "--quiet")
    assert experiment(folder, *methods) == 0
    model, _ = load_model(folder / "tiny.safetensors")
    save_model(model, tmp_path / "other.safetensors", {"another": True})
    assert experiment(folder, *methods, "--model", tmp_path / "other.safetensors") == 0
    methods_made = [row["method"] for row in lines(out)]
    assert methods_made == ["greedy", "ps"] * 2 + ["greedy"] * 2


def test_searches_over_processes_need_no_model(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "table.jsonl"
    rules = ("--methods", "ps-ellipse", "--scanning-plans", "5", "--quiet")
    command = ["experiment", "learned", str(folder / "task20-test.npz"), *rules]
    assert main([*command, "--workers", "2", "--out", str(out)]) == 0
    alone = tmp_path / "alone.jsonl"
    assert main([*command, "--out", str(alone)]) == 0
    assert lines(out)[0]["costs"] == lines(alone)[0]["costs"]


def test_a_faulty_plan_ends_it(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "table.jsonl"
    right = learned_table._decode  # noqa: SLF001

    def cheaper(*arguments: Any) -> Any:
        outcome = right(*arguments)
        return outcome._replace(costs=(*outcome.costs[:-1], outcome.costs[-1] - 1))

    monkeypatch.setattr(learned_table, "_decode", cheaper)
    assert experiment(folder, "--out", out, "--methods", "greedy", "--quiet") == 1
    error = capsys.readouterr().err
    assert "instance 5 of task20-test by greedy, found a fault: expected cost" in error
    assert out.read_bytes() == b""


def test_wrong_usage(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ("--out", tmp_path / "table.jsonl")

    def error(*arguments: object) -> str:
        assert experiment(folder, *arguments) == 1
        (line,) = capsys.readouterr().err.splitlines()
        return line

    assert "methods among greedy" in error(*out, "--methods", "magic")
    assert "as in table.jsonl" in error("--out", tmp_path / "table.csv")
    assert "model file" in error(*out, "--model", folder / "task20-test.npz")
    assert "CUDA devices" in error(*out, "--device", "cuda:4000")
    assert "--model and --device" in error(*out, "--methods", "ps")
    assert "--search-count" in error(*out, "--search-count", 3)
    bare = tmp_path / "bare.npz"
    shutil.copy(folder / "task20-test.npz", bare)
    assert main(["experiment", "learned", str(bare), *map(str, out)]) == 1
    assert "bare.labels.npz" in capsys.readouterr().err
    twice = [str(folder / "task20-test.npz")] * 2
    assert main(["experiment", "learned", *twice, *map(str, out)]) == 1
    assert "different names" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["experiment", "nothing-like-it"])
