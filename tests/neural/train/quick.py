"""Runs of training that take milliseconds a step."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from arcfleet.datasets.store import read_records
from arcfleet.neural.checkpoint import load_model
from arcfleet.neural.decoding import sample
from arcfleet.neural.model import DaamConfig
from arcfleet.neural.plans import split_plans
from arcfleet.neural.train.config import FinetuneConfig, PretrainConfig, config_from
from arcfleet.neural.train.data import open_instances
from arcfleet.neural.train.finetune import finetune
from arcfleet.neural.train.loop import Trained, TrainingProgress
from arcfleet.neural.train.pretrain import pretrain
from arcfleet.neural.train.run import METRICS
from arcfleet.paper.model import PublishedDaamConfig

TINY = DaamConfig(width=16, layers=1, heads=2, feed_forward=16, mds_dimensions=4)
#: Keeps served arcs in sight; without graph attention it learns in a few steps.
TINY_PUBLISHED = PublishedDaamConfig(
    width=16,
    layers=1,
    heads=2,
    feed_forward=16,
    mds_dimensions=4,
    inputs="mds",
    norm="rms",
)
_SIZES = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 16, "mds_dimensions": 4}
QUICK = config_from(
    PretrainConfig,
    {
        **{"model": _SIZES, "steps": 6, "tokens": 400, "decision_steps": 2},
        **{"log_steps": 2, "warm_up_steps": 2, "validations": 2},
        "giant_tour_fraction": 0,
    },
)
TUNING = config_from(
    FinetuneConfig,
    {
        **{"model": {"type": "daam-paper", **_SIZES, "inputs": "mds", "norm": "rms"}},
        **{"steps": 4, "temperature": 1.0, "learning_rate": 1e-4, "tokens": 2000},
        **{"rollout_tokens": 1000, "samples": 3, "decision_steps": 2},
        **{"validations": 2, "giant_tour_fraction": 0},
    },
)


def run(folder: Path, out: Path, config: PretrainConfig = QUICK, **options: Any) -> Trained:
    """Pre-train on the data of the folder."""
    options = {
        "data": [folder / "small.npz", folder / "mixed.npz"],
        "validation": [folder / "test.npz"],
        "device": "cpu",
        **options,
    }
    return pretrain(out, config, **options)


def tune(
    folder: Path,
    out: Path,
    config: Any = TUNING,
    train: Callable[..., Trained] = finetune,
    **options: Any,
) -> Trained:
    """Fine-tune on the data of the folder, from its weak model of the config's type."""
    hidden = isinstance(config.model, DaamConfig)
    options = {
        "init": folder / ("weak-daam.safetensors" if hidden else "weak.safetensors"),
        "data": [folder / "small.npz", folder / "unlabelled.npz"],
        "validation": [folder / "small.npz"],
        "device": "cpu",
        **options,
    }
    return train(out, config, **options)


def metrics(out: Path) -> list[dict[str, Any]]:
    """Read the metrics of a run."""
    lines = read_records(out / "metrics.jsonl", METRICS)
    return [
        {"step": line.step, **line.values, **({"gaps": line.gaps} if line.gaps else {})}
        for line in lines
    ]


def stop_at(
    step: int, number: signal.Signals = signal.SIGTERM, activity: str = "training"
) -> Callable[[TrainingProgress], None]:
    """Return a callback that sends a signal to this process after so many steps."""

    def progress(told: TrainingProgress) -> None:
        if told.activity == activity and told.step == step:
            os.kill(os.getpid(), number)

    return progress


def die_at(step: int, activity: str = "") -> Callable[[TrainingProgress], None]:
    """Return a callback that ends a run so that nothing is saved, as a kill does."""

    def progress(told: TrainingProgress) -> None:
        if told.step == step and told.activity.startswith(activity):
            raise SystemError

    return progress


def out_of_memory(*_: object, **__: object) -> Any:
    """Raise what torch raises where a GPU has too little memory."""
    raise torch.OutOfMemoryError("CUDA out of memory.")


def assert_resumes(
    train: Callable[..., Trained], out: Path, steps: int, keys: str = ""
) -> tuple[Trained, list[dict[str, Any]]]:
    """Assert that a run stopped after 3 steps ends as one that was not; return the latter.

    The checkpoint, the model and the named metrics must be the same.
    """
    whole = train(out / "whole")
    part = train(out / "part", progress=stop_at(3))
    assert (part.finished, part.steps) == (False, 3)
    assert load_model(part.model_file)[1]["finished"] is False
    rest = train(out / "part", resume=True)
    assert (rest.finished, rest.steps) == (True, steps)
    assert rest.gaps == whole.gaps
    for name in ("checkpoint.safetensors", "model.safetensors"):
        assert_same(out / "whole" / name, out / "part" / name)
    lines = metrics(out / "whole")
    for both in zip(lines, metrics(out / "part"), strict=True):
        for key in ("step", "loss", "gaps", *keys.split()):
            assert both[0].get(key) == both[1].get(key)
    return whole, lines


def assert_same(one: Path, other: Path) -> None:
    """Assert that two files hold the same tensors, bit by bit."""
    expected, found = load_file(one), load_file(other)
    assert expected.keys() == found.keys()
    for name in expected:
        assert torch.equal(expected[name], found[name]), name


def expected_cost(folder: Path, model_file: Path, *, capacity_mask: bool = True) -> float:
    """Return the mean cost of sampled plans, which reinforcement is to lower."""
    batch = open_instances(folder / "small.npz", "cpu", mds_dimensions=4).batch
    model: Any = load_model(model_file)[0]
    generator = torch.Generator().manual_seed(0)
    rollout = sample(model, batch, 16, generator=generator, capacity_mask=capacity_mask)
    if capacity_mask:
        return float((batch.deadheads(rollout.arcs) / batch.scale[:, None]).mean())
    costs = split_plans(batch, rollout, choose_directions=False).costs
    return float((costs / batch.scale[:, None].numpy()).mean())
