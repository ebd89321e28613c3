"""Runs that are killed at any of their writes end as those that nobody disturbed."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors.torch import load_file

from arcfleet.errors import FileError
from arcfleet.neural.checkpoint import load_model
from arcfleet.neural.train.run import RunFolder
from arcfleet.paper.curriculum import curriculum_from, run_curriculum
from tests.neural.quick_pretraining import QUICK, TINY, data_folder, run

if TYPE_CHECKING:
    from collections.abc import Callable

# A checkpoint after every step, and validations at steps that have one.
CONFIG = replace(QUICK, steps=4, log_steps=1, checkpoint_minutes=0.0)
STAGE: dict[str, Any] = {"name": "a", "data": ["small.npz"], "phases": ["pretrain"]}
CURRICULUM: dict[str, Any] = {
    "model": asdict(TINY),
    "settings": {"steps": 2, "tokens": 400, "moments": 2},
    "stage": [STAGE, {**STAGE, "name": "b"}],
}


class Killed(BaseException):
    """As good as a kill: nothing is written any more."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data_folder(tmp_path_factory.mktemp("data"))


def killed_at(write: int, *, after: bool, patch: pytest.MonkeyPatch) -> list[str]:
    """Let the process die before or after one of its writes; give the list of all."""
    made: list[str] = []

    def dying(really: Callable[..., Any], name: Callable[..., str]) -> Callable[..., Any]:
        def do(*arguments: Any) -> Any:
            made.append(name(*arguments))
            if len(made) == write and not after:
                raise Killed
            result = really(*arguments)
            if len(made) == write:
                raise Killed
            return result

        return do

    replaced = dying(Path.replace, lambda _, target: Path(target).name)
    patch.setattr(Path, "replace", replaced)
    patch.setattr(RunFolder, "log", dying(RunFolder.log, lambda *_: "metrics"))
    return made


def without_clock(out: Path) -> list[dict[str, Any]]:
    """Give the metrics, but for what depends on the machine's pace."""
    clock = ("seconds", "states_per_second")
    lines = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    return [{k: v for k, v in line.items() if k not in clock} for line in lines]


def assert_same(one: Path, other: Path) -> None:
    expected, found = load_file(one), load_file(other)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[key], found[key]) for key in expected)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("validates", [False, True])
def test_a_run_killed_at_any_write(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    validates: bool,
    after: bool,
) -> None:
    options: dict[str, Any] = {} if validates else {"validation": []}
    whole = tmp_path / "whole"
    with monkeypatch.context() as patch:
        writes = killed_at(0, after=after, patch=patch)
        run(folder, whole, CONFIG, **options)
    assert {"config.json", "checkpoint.safetensors", "model.safetensors"} < {*writes}
    # Before the first write there is nothing to resume.
    for write in range(1 if after else 2, len(writes) + 1):
        out = tmp_path / str(write)
        with monkeypatch.context() as patch:
            killed_at(write, after=after, patch=patch)
            with pytest.raises(Killed):
                run(folder, out, CONFIG, **options)
        assert run(folder, out, CONFIG, resume=True, **options).finished
        for name in ("checkpoint.safetensors", "model.safetensors"):
            assert_same(whole / name, out / name)
        _, facts = load_model(out / "model.safetensors")
        assert (facts["steps"], facts["finished"]) == (4, True)
        assert without_clock(out) == without_clock(whole), write


@pytest.mark.parametrize("after", [False, True])
def test_a_curriculum_killed_at_any_write(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    plan = curriculum_from(CURRICULUM, folder)
    whole = tmp_path / "whole"
    with monkeypatch.context() as patch:
        writes = killed_at(0, after=after, patch=patch)
        run_curriculum(whole, plan, device="cpu")
    for write in range(1 if after else 2, len(writes) + 1):
        out = tmp_path / str(write)
        with monkeypatch.context() as patch:
            killed_at(write, after=after, patch=patch)
            with pytest.raises(Killed):
                run_curriculum(out, plan, device="cpu")
        outcome = run_curriculum(out, plan, device="cpu", resume=True)
        assert outcome.stopped_in is None
        assert_same(whole / "model.safetensors", outcome.model_file)


def test_a_stopped_run_that_validated_first(folder: Path, tmp_path: Path) -> None:
    """A validation before a checkpoint of the same step stays in the metrics."""
    out = RunFolder(tmp_path / "run", {"config": {}}, resume=False)
    out.log({"step": 0, "gaps": {}})
    out.save({}, {"step": 0})
    out.log({"step": 0, "gaps": {"lost": 1}})
    again = RunFolder(tmp_path / "run", {"config": {}}, resume=True)
    assert again.load() == ({}, {"step": 0})
    assert without_clock(tmp_path / "run") == [{"step": 0, "gaps": {}}]


def test_nothing_takes_the_place_of_a_model(folder: Path, tmp_path: Path) -> None:
    """Runs and curricula do not share a folder, with one another or with a model."""
    plan = curriculum_from(CURRICULUM, folder)
    for name in ("run", "curriculum", "bare"):
        (tmp_path / name).mkdir()
    run(folder, tmp_path / "run", CONFIG)
    run_curriculum(tmp_path / "curriculum", plan, device="cpu")
    bare = tmp_path / "bare" / "model.safetensors"
    bare.write_bytes(b"precious")
    for name, found in {"curriculum": "a curriculum", "bare": "a model"}.items():
        before = (tmp_path / name / "model.safetensors").read_bytes()
        with pytest.raises(FileError, match=f"found {found} in it: name another folder"):
            run(folder, tmp_path / name, CONFIG)
        assert (tmp_path / name / "model.safetensors").read_bytes() == before
    for name, found in {"run": "a run", "bare": "a model"}.items():
        before = (tmp_path / name / "model.safetensors").read_bytes()
        with pytest.raises(FileError, match=f"found {found} in it: name another folder"):
            run_curriculum(tmp_path / name, plan, device="cpu")
        assert (tmp_path / name / "model.safetensors").read_bytes() == before
