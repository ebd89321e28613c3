from __future__ import annotations

import json
import math
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors.torch import load_file

from arcfleet.errors import (
    ArcfleetError,
    FileError,
    OptionError,
)
from arcfleet.neural.checkpoint import load_model, save_model
from arcfleet.neural.decoding import greedy
from arcfleet.neural.model import SERVED, Daam, DaamConfig, Served
from arcfleet.neural.plans import as_decoded
from arcfleet.neural.train import pictures as plan_pictures
from arcfleet.neural.train import pretrain as pretrain_module
from arcfleet.neural.train.config import PretrainConfig, config_from
from arcfleet.neural.train.data import open_labelled
from arcfleet.neural.train.loop import validate
from arcfleet.neural.train.pictures import draw_examples
from tests.neural.quick_pretraining import QUICK, TINY, data_folder, run

if TYPE_CHECKING:
    from pathlib import Path

    from arcfleet.neural.batch import Bucket
    from arcfleet.neural.train.loop import TrainingProgress
    from arcfleet.neural.train.steps import LearningForm, Lesson
    from arcfleet.report.plot import ScenePlans


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data_folder(tmp_path_factory.mktemp("data"))


def metrics(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def stop_at(step: int) -> Any:
    """Send SIGTERM to this process when so many steps are made."""

    def progress(told: TrainingProgress) -> None:
        if told.doing == "training" and told.step == step:
            os.kill(os.getpid(), signal.SIGTERM)

    return progress


def test_a_run_leaves_a_model_with_its_history(folder: Path, tmp_path: Path) -> None:
    told: list[TrainingProgress] = []
    result = run(folder, tmp_path / "run", progress=told.append)
    assert result.finished
    assert result.steps == 6
    model, facts = load_model(result.model_file)
    assert model.config == TINY
    assert facts["steps"] == 6
    assert facts["finished"] is True
    assert facts["device"] == "cpu"
    assert facts["config"]["seed"] == 0  # type: ignore[index]
    assert [each["file"] for each in facts["data"]] == [  # type: ignore[attr-defined]
        "small.npz",
        "mixed.npz",
    ]
    lines = metrics(tmp_path / "run")
    losses = [line for line in lines if "loss" in line]
    assert [line["step"] for line in losses] == [2, 4, 6]
    assert all(math.isfinite(line["loss"]) and line["loss"] > 0 for line in losses)
    assert all(line["states_per_second"] > 0 for line in losses)
    gaps = [line for line in lines if "gaps" in line]
    assert [line["step"] for line in gaps] == [3, 6]
    last = gaps[-1]["gaps"]["test"]
    assert result.gaps["test"]._asdict() == last
    assert -1 < last["optimised"] <= last["greedy"]
    assert (tmp_path / "run" / "config.json").exists()
    assert told[0].doing == "preparing small.npz"
    assert told[-1].gaps.keys() == {"test"}


def test_a_label_that_costs_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labelled = open_labelled(folder / "test.npz", "cpu", mds_dimensions=4, examples=1)
    example = labelled.examples[0]
    free = replace(
        labelled,
        examples=(example._replace(label=replace(example.label, cost=0)),),
        plans=replace(labelled.plans, cost=torch.zeros_like(labelled.plans.cost)),
    )
    gaps, plans = validate(Daam(TINY), free)
    assert gaps.greedy == pytest.approx(100 * plans.costs.mean())
    drawn: list[ScenePlans] = []
    monkeypatch.setattr(plan_pictures, "draw_scenes", lambda rows, _: drawn.extend(rows))
    draw_examples(tmp_path / "plans" / "a.png", [(free, plans)])
    titles = [title for title, _ in drawn[0].plans]
    assert titles == ["label, cost 0", f"greedy, cost {plans.costs[0, 0]}"]


def test_the_gap_is_that_of_the_models_plans(folder: Path, tmp_path: Path) -> None:
    result = run(folder, tmp_path / "run")
    model, _ = load_model(result.model_file)
    test = open_labelled(folder / "test.npz", "cpu", mds_dimensions=4)
    costs = as_decoded(test.batch, greedy(model, test.batch)).costs[:, 0]
    ratios = [c / label for c, label in zip(costs, test.plans.cost.tolist(), strict=True)]
    expected = 100 * (sum(ratios) / len(ratios) - 1)
    assert result.gaps["test"].greedy == pytest.approx(expected)


@pytest.mark.parametrize("served", SERVED)
def test_resumed_run_comes_to_the_same_weights(
    folder: Path, tmp_path: Path, served: Served
) -> None:
    config = replace(QUICK, log_steps=1, model=replace(TINY, served=served))
    whole = run(folder, tmp_path / "whole", config)
    part = run(folder, tmp_path / "part", config, progress=stop_at(3))
    assert (part.finished, part.steps) == (False, 3)
    assert load_model(part.model_file)[1]["finished"] is False
    rest = run(folder, tmp_path / "part", config, resume=True)
    assert (rest.finished, rest.steps) == (True, 6)
    one, other = (
        load_file(tmp_path / n / "checkpoint.safetensors") for n in ("whole", "part")
    )
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name
    for first, second in zip(
        load_model(whole.model_file)[0].parameters(),
        load_model(rest.model_file)[0].parameters(),
        strict=True,
    ):
        assert torch.equal(first, second)
    for both in zip(metrics(tmp_path / "whole"), metrics(tmp_path / "part"), strict=True):
        assert both[0]["step"] == both[1]["step"]
        assert both[0].get("loss") == both[1].get("loss")
        assert both[0].get("gaps") == both[1].get("gaps")
    assert rest.gaps == whole.gaps
    # A finished run has nothing left to do.
    assert run(folder, tmp_path / "part", config, resume=True).steps == 6


def test_a_run_that_ended_can_be_lengthened(folder: Path, tmp_path: Path) -> None:
    short, long = replace(QUICK, log_steps=1), replace(QUICK, log_steps=1, steps=10)
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
        rate = config.rate(number + 1, config.progress(number, 0.0))
        assert line["learning_rate"] == pytest.approx(rate)
    assert losses[6]["learning_rate"] > 4 * losses[5]["learning_rate"]
    assert [line["step"] for line in metrics(out) if "gaps" in line] == [3, 6, 10]
    _, facts = load_model(rest.model_file)
    assert facts["config"]["steps"] == 10  # type: ignore[index]
    assert facts["earlier_ends"] == [{"steps": 6, "minutes": None}]
    weights = "average.encoder.0.widen.weight"
    assert not torch.equal(
        kept[weights], load_file(out / "checkpoint.safetensors")[weights]
    )
    # The end is kept with the run, and an end before where it stands is none.
    assert run(folder, out, long, resume=True).steps == 10
    with pytest.raises(OptionError, match=r"beyond the 10 steps and .* got 8 steps"):
        run(folder, out, replace(long, steps=8), resume=True)
    assert json.loads((out / "config.json").read_text())["config"]["steps"] == 10


def test_a_stopped_run_can_be_lengthened(folder: Path, tmp_path: Path) -> None:
    config = replace(QUICK, log_steps=1)
    part = run(folder, tmp_path / "run", config, progress=stop_at(4))
    assert part.steps == 4
    rest = run(folder, tmp_path / "run", replace(config, steps=9), resume=True)
    assert (rest.finished, rest.steps) == (True, 9)
    gaps = [line["step"] for line in metrics(tmp_path / "run") if "gaps" in line]
    assert gaps == [3, 5, 9]  # half of the run is over at another step now


def test_killed_run_goes_on_from_its_last_checkpoint(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(QUICK, log_steps=1, checkpoint_minutes=0)  # one after every step
    whole = run(folder, tmp_path / "whole", config)

    def die(told: TrainingProgress) -> None:
        if told.step == 5:
            raise SystemError  # as good as a kill: nothing is saved any more

    with pytest.raises(SystemError):
        run(folder, tmp_path / "part", config, progress=die)
    with (tmp_path / "part" / "metrics.jsonl").open("a") as stream:
        stream.write('{"step": 7, "lo')  # the kill came in the middle of a line
    rest = run(folder, tmp_path / "part", config, resume=True)
    one, other = (load_file(r.model_file) for r in (whole, rest))
    assert all(torch.equal(one[name], other[name]) for name in one)
    steps = [line["step"] for line in metrics(tmp_path / "part") if "loss" in line]
    assert steps == [1, 2, 3, 4, 5, 6]


def test_killed_before_the_first_checkpoint(folder: Path, tmp_path: Path) -> None:
    def die(told: TrainingProgress) -> None:
        if told.step == 2:
            raise SystemError

    with pytest.raises(SystemError):
        run(folder, tmp_path / "part", progress=die)
    rest = run(folder, tmp_path / "part", resume=True)
    assert rest.steps == 6
    one, other = (load_file(r.model_file) for r in (run(folder, tmp_path / "whole"), rest))
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_run_and_are_put_back(
    folder: Path, tmp_path: Path, number: signal.Signals
) -> None:
    before = signal.getsignal(number)

    def progress(told: TrainingProgress) -> None:
        if told.step == 2:
            os.kill(os.getpid(), number)

    result = run(folder, tmp_path / "run", replace(QUICK, steps=10**6), progress=progress)
    assert not result.finished
    assert result.steps == 2
    assert signal.getsignal(number) is before
    assert (tmp_path / "run" / "checkpoint.safetensors").exists()


def test_overfitting_a_few_plans(folder: Path, tmp_path: Path) -> None:
    """The loss falls, and greedy plans come near to the cost of the labels."""
    config = PretrainConfig(
        # Without the graph attention, which takes many more steps to tell arcs apart.
        model=DaamConfig(width=32, layers=2, heads=4, feed_forward=64, inputs="mds"),
        steps=600,
        tokens=41 * 24,
        moments=8,
        directions="as-labelled",
        flip_axes=False,
        learning_rate=3e-3,
        warm_up_steps=20,
        average_decay=0.9,
        log_steps=20,
        pictures=0,
    )
    files = {"data": [folder / "few.npz"], "validation": [folder / "few.npz"]}
    result = run(folder, tmp_path / "run", config, **files)
    losses = [line["loss"] for line in metrics(tmp_path / "run") if "loss" in line]
    assert losses[-1] < 0.2 * losses[0]
    untrained = run(folder, tmp_path / "none", replace(config, steps=1), **files)
    assert result.gaps["few"].optimised < 5
    assert result.gaps["few"].greedy < 0.5 * untrained.gaps["few"].greedy


@pytest.mark.parametrize("norm", ["rms", "batch"])
def test_bfloat16_keeps_float32_masters(folder: Path, tmp_path: Path, norm: Any) -> None:
    config = replace(QUICK, precision="bfloat16", model=replace(TINY, norm=norm))
    config = replace(config, learning_rate=1e-5)  # updates that bfloat16 would lose
    result = run(folder, tmp_path / "run", config)
    tensors = load_file(tmp_path / "run" / "checkpoint.safetensors")
    weights = tensors["model.encoder.0.widen.weight"]
    assert weights.dtype == torch.float32
    first = run(folder, tmp_path / "one", replace(config, steps=1))
    before = load_file(tmp_path / "one" / "checkpoint.safetensors")
    moved = weights - before["model.encoder.0.widen.weight"]
    assert 0 < moved.abs().max() < 1e-4
    assert math.isfinite(result.gaps["test"].greedy)
    assert first.steps == 1


def test_same_seed_same_weights(folder: Path, tmp_path: Path) -> None:
    one, same, other = (
        load_file(run(folder, tmp_path / name, replace(QUICK, seed=seed)).model_file)
        for name, seed in (("a", 0), ("b", 0), ("c", 1))
    )
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_starting_from_a_model(folder: Path, tmp_path: Path) -> None:
    start = tmp_path / "start.safetensors"
    torch.manual_seed(5)
    save_model(Daam(TINY), start, {})
    still = replace(QUICK, learning_rate=0.0, weight_decay=0.0)
    result = run(folder, tmp_path / "run", still, init=start)
    kept, first = load_file(result.model_file), load_file(start)
    assert all(torch.allclose(kept[name], first[name]) for name in first)
    wide = replace(QUICK, model=replace(TINY, mds_dimensions=8))
    with pytest.raises(OptionError, match=r"mds_dimensions=8.*mds_dimensions=4"):
        run(folder, tmp_path / "other", wide, init=start)


def test_minutes_end_a_run(folder: Path, tmp_path: Path) -> None:
    config = replace(QUICK, steps=None, minutes=0.01, validations=0)
    result = run(folder, tmp_path / "run", config)
    assert result.finished
    assert result.seconds >= 0.6
    assert result.steps > 1


@pytest.mark.parametrize(("log_steps", "found_at"), [(2, 2), (50, 6)])
def test_no_number_ends_a_run(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    log_steps: int,
    found_at: int,
) -> None:
    def broken(*_: object) -> torch.Tensor:
        return torch.tensor(math.nan, requires_grad=True)

    monkeypatch.setattr(pretrain_module, "imitation_loss", broken)
    config = replace(QUICK, log_steps=log_steps, validations=0)
    with pytest.raises(ArcfleetError, match=f"finite loss, got nan by step {found_at}:"):
        run(folder, tmp_path / "run", config)
    assert not (tmp_path / "run" / "model.safetensors").exists()
    assert not (tmp_path / "run" / "checkpoint.safetensors").exists()


def test_weights_choose_the_data_set(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    draw = pretrain_module.Pretraining.draw

    def note(
        self: pretrain_module.Pretraining, number: int, bucket: Bucket | None
    ) -> Lesson:
        seen.append(self.data[number].name)
        return draw(self, number, bucket)

    monkeypatch.setattr(pretrain_module.Pretraining, "draw", note)
    run(folder, tmp_path / "run", replace(QUICK, steps=60, weights=(1.0, 5.0)))
    assert 40 <= seen.count("mixed") <= 58


@pytest.mark.parametrize(("unbound", "least", "most"), [(0.0, 60, 60), (0.5, 15, 45)])
def test_some_steps_ignore_the_capacity(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    unbound: float,
    least: int,
    most: int,
) -> None:
    seen: list[bool] = []
    loss = pretrain_module.imitation_loss

    def note(model: LearningForm, lesson: Lesson, padded: bool) -> torch.Tensor:
        seen.append(lesson.capacity_mask)
        return loss(model, lesson, padded)

    monkeypatch.setattr(pretrain_module, "imitation_loss", note)
    run(folder, tmp_path / "run", replace(QUICK, steps=60, unbound=unbound))
    assert len(seen) == 60
    assert least <= seen.count(True) <= most


def test_wrong_arguments(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="at least one data set to train on, got none"):
        run(folder, tmp_path / "a", data=[])
    with pytest.raises(OptionError, match=r"small\.npz twice"):
        run(folder, tmp_path / "a", data=[folder / "small.npz"] * 2)
    with pytest.raises(OptionError, match=r"different names, got small\.npz from two"):
        run(folder, tmp_path / "a", data=[folder / "small.npz", tmp_path / "small.npz"])
    with pytest.raises(OptionError, match="a weight for each of 2 data sets, got 1"):
        run(folder, tmp_path / "a", replace(QUICK, weights=(1.0,)))
    with pytest.raises(FileError, match="expected a run to resume, found none"):
        run(folder, tmp_path / "a", resume=True)
    with pytest.raises(FileError, match=r"none\.npz"):
        run(folder, tmp_path / "a", data=[folder / "none.npz"])
    run(folder, tmp_path / "a")
    with pytest.raises(FileError, match=r"expected a folder without a run.*--resume"):
        run(folder, tmp_path / "a")
    with pytest.raises(FileError, match="resumed with the same seed"):
        run(folder, tmp_path / "a", replace(QUICK, seed=1), resume=True)
    with pytest.raises(FileError, match="resumed with the same data"):
        run(folder, tmp_path / "a", data=[folder / "small.npz"], resume=True)


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


def test_settings_by_name() -> None:
    config = config_from({"steps": 5, "model": {"width": 64}, "weights": [1, 2.5]})
    assert config == PretrainConfig(steps=5, model=DaamConfig(width=64), weights=(1.0, 2.5))
    assert config_from(json.loads(json.dumps(config.as_facts()))) == config
    for settings, message in (
        ({"stepz": 5}, "got stepz: did you mean steps"),
        ({"model": {"widht": 5}}, r"did you mean model\.width"),
        ({}, "expected steps or minutes"),
        ({"steps": 0}, "steps to be a whole number from 1 to 1e.09, got 0"),
        ({"steps": 2.5}, "steps to be a whole number"),
        ({"steps": 1, "learning_rate": "high"}, "learning_rate to be a number"),
        ({"steps": 1, "compile": 1}, "compile to be true or false"),
        ({"steps": 1, "route_order": "best"}, "one of farthest, nearest"),
        ({"steps": 1, "model": {"width": "wide"}}, r"model\.width to be of type int"),
        ({"steps": 1, "model": {"width": 30}}, "width that heads divides"),
        ({"steps": 1, "weights": [0]}, "weights above 0"),
        ({"steps": 1, "weights": 3}, "weights to be a list"),
        ({"steps": 1, "minutes": math.nan}, "minutes to be a number"),
    ):
        with pytest.raises(OptionError, match=message):
            config_from(settings)


def test_learning_rate_rises_and_falls() -> None:
    config = PretrainConfig(steps=100, warm_up_steps=10, learning_rate=1.0, final_rate=0.1)
    rates = [config.rate(step, config.progress(step, 0.0)) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == rates[9]
    assert rates[9:] == sorted(rates[9:], reverse=True)
    assert config.rate(100, 1.0) == pytest.approx(0.1)
    timed = PretrainConfig(steps=100, minutes=1.0)
    assert timed.progress(10, 30.0) == 0.5
    assert timed.progress(90, 30.0) == 0.9


# torch looks at gradients of what passes from part to part, and warns itself.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
@pytest.mark.parametrize("served", SERVED)
def test_compiled_run_makes_few_graphs(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: Served
) -> None:
    """Every further graph, or break in one, would cost a GPU much of its speed."""
    from torch._dynamo import reset
    from torch._dynamo.utils import counters

    compile_ = torch.compile

    def traced(function: Any, **options: Any) -> Any:
        return compile_(function, backend="eager", **options)  # tracing alone is quick

    monkeypatch.setattr(torch, "compile", traced)
    config = replace(QUICK, steps=30, model=replace(TINY, layers=2, served=served))
    plain = run(folder, tmp_path / "plain", config)
    reset()
    counters.clear()
    graphs = run(folder, tmp_path / "graphs", replace(config, compile=True))
    # Of each scale, or length of states: up to the encoder, its layers, and the pointer.
    assert counters["stats"]["unique_graphs"] == 6
    assert not counters["graph_break"]
    one, other = (load_file(result.model_file) for result in (plain, graphs))
    assert all(torch.equal(one[name], other[name]) for name in one)
