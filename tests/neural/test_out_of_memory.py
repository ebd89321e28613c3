"""Training runs whose device has too little memory, or not the precision asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from arcfleet.errors import OptionError
from arcfleet.neural.checkpoint import load_model
from arcfleet.neural.device import OutOfMemoryError
from arcfleet.neural.train import loop as training_loop
from arcfleet.neural.train import pretrain as pretrain_module
from arcfleet.neural.train import run as training_start
from arcfleet.neural.train.loop import Learner
from tests.neural.quick_pretraining import QUICK, data_folder, run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data_folder(tmp_path_factory.mktemp("data"))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (MemoryError, ""),
        (RuntimeError, "DefaultCPUAllocator: can't allocate memory: you tried to allocate"),
        (
            RuntimeError,
            "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling",
        ),
        (torch.OutOfMemoryError, "CUDA out of memory."),
    ],
)
def test_too_little_memory_for_a_step(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[Exception],
    text: str,
) -> None:
    loss = pretrain_module.imitation_loss
    calls = 0

    def large(*arguments: Any) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise kind(text)
        return loss(*arguments)

    monkeypatch.setattr(pretrain_module, "imitation_loss", large)
    message = (
        f"expected step 3 to fit in the memory of device 'cpu', found too little for "
        f"tokens {QUICK.tokens}: start a run with fewer in another folder"
    )
    with pytest.raises(OutOfMemoryError) as without:
        run(folder, tmp_path / "run", replace(QUICK, validations=0))
    assert str(without.value) == message
    # A checkpoint after every step: what was learned until then is named.
    calls = 0
    always = replace(QUICK, validations=0, checkpoint_minutes=1e-9)
    with pytest.raises(OutOfMemoryError) as kept_some:
        run(folder, tmp_path / "again", always)
    model = tmp_path / "again" / "model.safetensors"
    assert str(kept_some.value) == f"{message}; the model of the last checkpoint is {model}"
    load_model(model)


def test_too_little_memory_for_a_validation(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def large(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(training_loop, "validate", large)
    out = tmp_path / "run"
    config = replace(QUICK, validations=1)
    with pytest.raises(
        OutOfMemoryError, match=r"the plans of .* fewer validation_instances"
    ):
        run(folder, out, config)
    # At the end all steps were kept before it, so that only the validation is made anew.
    monkeypatch.undo()
    monkeypatch.setattr(pretrain_module.Pretraining, "learn", large)
    result = run(folder, out, config, resume=True)
    assert result.finished
    assert result.steps == QUICK.steps
    assert result.gaps


def test_too_little_memory_for_a_checkpoint(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(folder, tmp_path / "run")

    def large(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(Learner, "restore", large)
    with pytest.raises(OutOfMemoryError, match="too little to resume: use another device"):
        run(folder, tmp_path / "run", resume=True)


def test_a_precision_that_the_device_has_not_leaves_no_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OptionError("expected another precision")

    monkeypatch.setattr(training_start, "working_type", refuse)
    with pytest.raises(OptionError, match="expected another precision"):
        run(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_other_mistakes_are_not_taken_for_too_little_memory(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> torch.Tensor:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(pretrain_module, "imitation_loss", broken)
    with pytest.raises(RuntimeError, match="a mistake"):
        run(folder, tmp_path / "run", replace(QUICK, validations=0))
