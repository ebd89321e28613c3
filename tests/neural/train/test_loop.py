"""The loop: stopped, killed, resumed and lengthened runs, and runs that find no memory."""

import json
import math
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from arcfleet.datasets.store import Store
from arcfleet.errors import ArcfleetError, FileError, OptionError
from arcfleet.neural.checkpoint import load_model
from arcfleet.neural.device import OutOfMemoryError
from arcfleet.neural.train import loop as training_loop
from arcfleet.neural.train import pretrain as pretrain_module
from arcfleet.neural.train import run as run_module
from arcfleet.neural.train.config import changed
from arcfleet.neural.train.loop import Learner
from arcfleet.neural.train.pretrain import PretrainTrainer
from arcfleet.neural.train.run import RunFolder
from arcfleet.neural.train.steps import imitation_loss
from tests.neural.train.quick import (
    QUICK,
    TINY,
    TINY_PUBLISHED,
    assert_resumes,
    assert_same,
    die_at,
    metrics,
    out_of_memory,
    run,
    stop_at,
)

# A checkpoint after every step, and validations at steps that have one.
KILLED = changed(QUICK, steps=3, log_steps=1, validations=1, checkpoint_minutes=0.0)


@pytest.mark.parametrize(
    "settings",
    [{"model": TINY}, {"model": TINY_PUBLISHED}, {"model": TINY, "muon_factor": 3.0}],
    ids=["daam", "published", "muon"],
)
def test_resumed_run_comes_to_the_same_weights(
    folder: Path, tmp_path: Path, settings: dict[str, Any]
) -> None:
    train = partial(run, folder, config=changed(QUICK, log_steps=1, **settings))
    assert_resumes(train, tmp_path, 6)
    # A finished run has nothing left to do.
    assert train(tmp_path / "part", resume=True).steps == 6


def test_a_run_that_ended_can_be_lengthened(folder: Path, tmp_path: Path) -> None:
    short, long = changed(QUICK, log_steps=1), changed(QUICK, log_steps=1, steps=10)
    out = tmp_path / "run"
    run(folder, out, short)
    kept = load_file(out / "checkpoint.safetensors")
    # As it was: nothing is trained, validated or written again.
    before = (out / "metrics.jsonl").read_text()
    run(folder, out, short, resume=True)
    assert (out / "metrics.jsonl").read_text() == before
    rest = run(folder, out, long, resume=True)
    assert (rest.finished, rest.steps) == (True, 10)
    losses = [line for line in metrics(out) if "loss" in line]
    assert [line["step"] for line in losses] == list(range(1, 11))
    # From where it stood on the rate is that of the longer run.
    for number, line in enumerate(losses):
        config = short if number < 6 else long
        rate = config.optimiser.rate(number + 1, config.run.fraction(number, 0.0))
        assert line["learning_rate"] == pytest.approx(rate)
    assert losses[6]["learning_rate"] > 4 * losses[5]["learning_rate"]
    assert [line["step"] for line in metrics(out) if "gaps" in line] == [3, 6, 10]
    _, facts = load_model(rest.model_file)
    assert facts["config"]["steps"] == 10  # type: ignore[index]
    assert facts["earlier_ends"] == [{"steps": 6, "minutes": None}]
    weights = "ema.encoder.0.widen.weight"
    assert not torch.equal(
        kept[weights], load_file(out / "checkpoint.safetensors")[weights]
    )
    # The end is kept with the run, and an end before where it stands is none.
    assert run(folder, out, long, resume=True).steps == 10
    with pytest.raises(OptionError, match=r"beyond the 10 steps and .* got 8 steps"):
        run(folder, out, changed(long, steps=8), resume=True)
    assert json.loads((out / "config.json").read_text())["config"]["steps"] == 10


def test_a_stopped_run_can_be_lengthened(folder: Path, tmp_path: Path) -> None:
    config = changed(QUICK, log_steps=1)
    part = run(folder, tmp_path / "run", config, progress=stop_at(4))
    assert part.steps == 4
    rest = run(folder, tmp_path / "run", changed(config, steps=9), resume=True)
    assert (rest.finished, rest.steps) == (True, 9)
    gaps = [line["step"] for line in metrics(tmp_path / "run") if "gaps" in line]
    assert gaps == [3, 5, 9]  # half of the run is over at another step now


def test_killed_run_goes_on_from_its_last_checkpoint(folder: Path, tmp_path: Path) -> None:
    config = changed(QUICK, log_steps=1, checkpoint_minutes=0)  # one after every step
    whole = run(folder, tmp_path / "whole", config)
    with pytest.raises(SystemError):
        run(folder, tmp_path / "part", config, progress=die_at(5))
    with (tmp_path / "part" / "metrics.jsonl").open("a") as stream:
        stream.write('{"step": 7, "lo')  # the kill came in the middle of a line
    rest = run(folder, tmp_path / "part", config, resume=True)
    assert_same(whole.model_file, rest.model_file)
    steps = [line["step"] for line in metrics(tmp_path / "part") if "loss" in line]
    assert steps == [1, 2, 3, 4, 5, 6]


def test_killed_before_the_first_checkpoint(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemError):
        run(folder, tmp_path / "part", progress=die_at(2))
    rest = run(folder, tmp_path / "part", resume=True)
    assert rest.steps == 6
    assert_same(run(folder, tmp_path / "whole").model_file, rest.model_file)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_run_and_are_put_back(
    folder: Path, tmp_path: Path, number: signal.Signals
) -> None:
    before = signal.getsignal(number)

    stop = stop_at(2, number)
    result = run(folder, tmp_path / "run", changed(QUICK, steps=10**6), progress=stop)
    assert not result.finished
    assert result.steps == 2
    assert signal.getsignal(number) is before
    assert (tmp_path / "run" / "checkpoint.safetensors").exists()


@pytest.mark.parametrize("norm", ["rms", "batch"])
def test_bfloat16_keeps_float32_masters(folder: Path, tmp_path: Path, norm: Any) -> None:
    sizes = replace(TINY_PUBLISHED, norm=norm)
    config = changed(QUICK, precision="bfloat16", model=sizes)
    config = changed(config, learning_rate=1e-5)  # updates that bfloat16 would lose
    result = run(folder, tmp_path / "run", config)
    tensors = load_file(tmp_path / "run" / "checkpoint.safetensors")
    weights = tensors["model.encoder.0.widen.weight"]
    assert weights.dtype == torch.float32
    first = run(folder, tmp_path / "one", changed(config, steps=1))
    before = load_file(tmp_path / "one" / "checkpoint.safetensors")
    moved = weights - before["model.encoder.0.widen.weight"]
    assert 0 < moved.abs().max() < 1e-4
    assert math.isfinite(result.gaps["test"].greedy)
    assert first.steps == 1


def test_minutes_end_a_run(folder: Path, tmp_path: Path) -> None:
    config = changed(QUICK, steps=None, minutes=0.01, validations=0)
    result = run(folder, tmp_path / "run", config)
    assert result.finished
    assert result.seconds >= 0.6
    assert result.steps >= 1


@pytest.mark.parametrize(("log_steps", "found_at"), [(2, 2), (50, 6)])
def test_no_number_ends_a_run(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    log_steps: int,
    found_at: int,
) -> None:
    def broken(*_: object, **__: object) -> torch.Tensor:
        return torch.tensor(math.nan, requires_grad=True)

    monkeypatch.setattr(pretrain_module, "imitation_loss", broken)
    config = changed(QUICK, log_steps=log_steps, validations=0)
    with pytest.raises(ArcfleetError, match=f"finite loss, got nan by step {found_at}:"):
        run(folder, tmp_path / "run", config)
    assert not (tmp_path / "run" / "model.safetensors").exists()
    assert not (tmp_path / "run" / "checkpoint.safetensors").exists()


def test_weights_choose_the_data_set(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def note(self: PretrainTrainer, _: float) -> None:
        seen.append(self.data[self.draw_set()].name)

    monkeypatch.setattr(PretrainTrainer, "train_step", note)
    config = changed(QUICK, steps=60, weights=(1.0, 5.0), validations=0)
    run(folder, tmp_path / "run", config)
    assert 40 <= seen.count("mixed") <= 58


def test_damaged_checkpoint(folder: Path, tmp_path: Path) -> None:
    run(folder, tmp_path / "a", progress=stop_at(2))
    file = tmp_path / "a" / "checkpoint.safetensors"
    whole = file.read_bytes()
    for length in (0, 5, 100, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(FileError, match="expected a checkpoint of version 1"):
            run(folder, tmp_path / "a", resume=True)
    file.write_bytes(whole)
    assert run(folder, tmp_path / "a", resume=True).finished


class Killed(BaseException):
    """As good as a kill: nothing is written any more."""


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
    patch.setattr(Store, "add", dying(Store.add, lambda *_: "line"))
    return made


def killed_everywhere(
    train: Callable[..., object], out: Path, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> Iterator[Path]:
    """Train in out/whole, then yield folders where it was killed at each of its writes."""
    with monkeypatch.context() as patch:
        writes = killed_at(0, after=after, patch=patch)
        train(out / "whole")
    assert {"config.json", "checkpoint.safetensors", "model.safetensors"} < {*writes}
    # Before the first write there is nothing to resume.
    for write in range(1 if after else 2, len(writes) + 1):
        with monkeypatch.context() as patch:
            killed_at(write, after=after, patch=patch)
            with pytest.raises(Killed):
                train(out / str(write))
        yield out / str(write)


def without_clock(out: Path) -> list[dict[str, Any]]:
    """Return the metrics, but for what depends on the machine's pace."""
    return [
        {k: v for k, v in line.items() if k != "states_per_second"} for line in metrics(out)
    ]


@pytest.mark.parametrize(("validates", "after"), [(False, False), (True, True)])
def test_a_run_killed_at_any_write(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    validates: bool,
    after: bool,
) -> None:
    options: dict[str, Any] = {"data": [folder / "few.npz"], "validation": []}
    if validates:
        options["validation"] = [folder / "few.npz"]
    train: Any = partial(run, folder, config=KILLED, **options)
    whole = tmp_path / "whole"
    for out in killed_everywhere(train, tmp_path, monkeypatch, after=after):
        assert train(out, resume=True).finished
        for name in ("checkpoint.safetensors", "model.safetensors"):
            assert_same(whole / name, out / name)
        _, facts = load_model(out / "model.safetensors")
        assert (facts["steps"], facts["finished"]) == (3, True)
        assert without_clock(out) == without_clock(whole), out


def test_a_stopped_run_that_validated_first(folder: Path, tmp_path: Path) -> None:
    """A validation before a checkpoint of the same step stays in the metrics."""
    out = RunFolder(tmp_path / "run", {"config": {}}, resume=False)
    out.log(0, 0.0, gaps={})
    out.save({}, {"step": 0})
    out.log(0, 0.0, gaps={"lost": {"greedy": 1.0}})
    with pytest.raises(FileError, match="expected to write alone"):
        RunFolder(tmp_path / "run", {"config": {}}, resume=True).load()
    out.close()
    again = RunFolder(tmp_path / "run", {"config": {}}, resume=True)
    assert again.load() == ({}, {"step": 0})
    again.close()
    assert metrics(tmp_path / "run") == [{"step": 0}]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (MemoryError, ""),
        (RuntimeError, "DefaultCPUAllocator: can't allocate memory: you tried to allocate"),
        (RuntimeError, "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"),
        (torch.OutOfMemoryError, "CUDA out of memory."),
    ],
)
def test_too_little_memory_for_a_step(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
    text: str,
) -> None:
    loss = imitation_loss
    calls = 0

    def large(*arguments: Any, **options: Any) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise error(text)
        return loss(*arguments, **options)

    monkeypatch.setattr(pretrain_module, "imitation_loss", large)
    message = (
        f"expected step 3 to fit in the memory of device 'cpu', found too little for "
        f"tokens {QUICK.tokens}: start a run with fewer in another folder"
    )
    with pytest.raises(OutOfMemoryError) as without:
        run(folder, tmp_path / "run", changed(QUICK, validations=0))
    assert str(without.value) == message
    # A checkpoint after every step: what was learned until then is named.
    calls = 0
    always = changed(QUICK, validations=0, checkpoint_minutes=1e-9)
    with pytest.raises(OutOfMemoryError) as kept_some:
        run(folder, tmp_path / "again", always)
    model = tmp_path / "again" / "model.safetensors"
    assert str(kept_some.value) == f"{message}; the model of the last checkpoint is {model}"
    load_model(model)


def test_too_little_memory_for_a_validation(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_loop, "validate", out_of_memory)
    out = tmp_path / "run"
    config = changed(QUICK, validations=1)
    with pytest.raises(
        OutOfMemoryError, match=r"the plans of .* fewer validation_instances"
    ):
        run(folder, out, config)
    # At the end all steps were kept before it, so that only the validation is made anew.
    monkeypatch.undo()
    monkeypatch.setattr(PretrainTrainer, "train_step", out_of_memory)
    result = run(folder, out, config, resume=True)
    assert result.finished
    assert result.steps == QUICK.run.steps
    assert result.gaps


def test_too_little_memory_for_a_checkpoint(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(folder, tmp_path / "run")
    monkeypatch.setattr(Learner, "restore", out_of_memory)
    with pytest.raises(OutOfMemoryError, match="too little to resume: use another device"):
        run(folder, tmp_path / "run", resume=True)


def test_a_precision_that_the_device_has_not_leaves_no_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OptionError("expected another precision")

    monkeypatch.setattr(run_module, "working_type", refuse)
    with pytest.raises(OptionError, match="expected another precision"):
        run(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_other_mistakes_are_not_taken_for_too_little_memory(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> torch.Tensor:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(pretrain_module, "imitation_loss", broken)
    with pytest.raises(RuntimeError, match="a mistake"):
        run(folder, tmp_path / "run", changed(QUICK, validations=0))
