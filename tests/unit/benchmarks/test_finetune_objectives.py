"""Objectives of fine-tuning side by side."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("torch", reason="needs the extra neural")

from arcfleet.neural.finetune import finetune
from arcfleet.neural.reinforce import Reinforce
from benchmarks import finetune_objectives
from benchmarks.machine import run_and_exit
from tests.neural.labelled_towns import labelled_file
from tests.tiny_model import tiny_model_file

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def arguments(tmp_path: Path) -> list[str | Path]:
    data = labelled_file(tmp_path, "few", count=4)
    model = tiny_model_file(tmp_path)
    files: list[str | Path] = ["--init", model, "--data", data, "--validation", data]
    sizes = ["--steps", "1", "--size", "0.0005", "--device", "cpu"]
    return [*files, *sizes, "--out", tmp_path / "out"]


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["finetune_objectives", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        run_and_exit(finetune_objectives.main)
    if isinstance(ended.value.code, str):
        print(ended.value.code, file=sys.stderr)
        return 1
    assert isinstance(ended.value.code, int)
    return ended.value.code


def cells(text: str) -> list[list[str]]:
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("---"))
    return [line.split() for line in lines[start + 1 :]]


def test_every_objective_has_a_row_and_is_run_once(
    arguments: list[str | Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(monkeypatch, *arguments, "--seeds", "1") == 0
    rows = cells(capsys.readouterr().out)
    names = list(finetune_objectives.COMPARED)
    assert [row[:4] for row in rows] == [
        ["before", "-", "1", "0"],
        *([name, "3e-05", "1", "1"] for name in names),
    ]
    # What is there stays; a second seed of one objective is all that is made.
    made: list[tuple[int, str]] = []

    def note(out: Path, config: Any, **options: Any) -> Any:
        made.append((config.seed, config.objective))
        return finetune(out, config, **options)

    monkeypatch.setattr(finetune_objectives, "finetune", note)
    assert run(monkeypatch, *arguments, "--seeds", "1", "2", "--objectives", "ppo") == 0
    assert made == [(2, "ppo")]
    rows = cells(capsys.readouterr().out)
    assert len(rows) == 1 + len(names)
    lines = (tmp_path / "out" / "objectives.jsonl").read_text().splitlines()
    greedy = [
        line["gaps"]["few"][0]
        for line in map(json.loads, lines)
        if line["objective"] == "ppo"
    ]
    ppo = rows[1 + names.index("ppo")]
    assert ppo[2] == "2"
    assert ppo[4:7] == [f"{sum(greedy) / 2:.2f}:", *(f"{x:.2f}" for x in greedy)]


def test_a_stopped_run_goes_on(
    arguments: list[str | Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learned = 0
    learn = Reinforce.learn

    def counted(self: Reinforce, rate: float) -> None:
        nonlocal learned
        learned += 1
        learn(self, rate)

    def stopped(*given: Any, **options: Any) -> Any:
        return finetune(*given, **options, stop=lambda: learned == 1)

    monkeypatch.setattr(Reinforce, "learn", counted)
    monkeypatch.setattr(finetune_objectives, "finetune", stopped)
    few = (*arguments, "--seeds", "1", "--objectives", "samples", "--steps", "3")
    assert run(monkeypatch, *few) == 1
    output = capsys.readouterr()
    assert "the same command goes on" in output.err
    assert [row[0] for row in cells(output.out)] == ["before"]
    monkeypatch.setattr(finetune_objectives, "finetune", finetune)
    assert run(monkeypatch, *few) == 0
    rows = cells(capsys.readouterr().out)
    assert [(row[0], row[3]) for row in rows] == [("before", "0"), ("samples", "3")]
    assert learned == 3  # the step before the stop was not made again


def test_what_does_not_fit_in_memory_is_left_out(
    arguments: list[str | Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def large(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Reinforce, "learn", large)
    few = ("--seeds", "1", "--objectives", "samples", "imitate-best")
    assert run(monkeypatch, *arguments, *few) == 1
    output = capsys.readouterr()
    assert "samples was left out: expected step 1 to fit" in output.err
    assert [row[0] for row in cells(output.out)] == ["before", "imitate-best"]


def test_lines_of_another_comparison_are_refused(
    arguments: list[str | Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = (*arguments, "--seeds", "1", "--objectives", "imitate-best")
    assert run(monkeypatch, *few) == 0
    lines = tmp_path / "out" / "objectives.jsonl"
    kept = lines.read_bytes()
    for other in (("--size", "0.001"), ("--validation-instances", "2")):
        assert run(monkeypatch, *few, *other) == 1
        assert f"{lines}:1: expected a run of this comparison" in capsys.readouterr().err
    assert lines.read_bytes() == kept


def test_a_wrong_file_is_one_sentence(
    arguments: list[str | Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing = tmp_path / "missing.safetensors"
    assert run(monkeypatch, *arguments, "--init", missing) == 1
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith(f"finetune_objectives: {missing}: ")
