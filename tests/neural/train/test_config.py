import json
import math

import pytest

from arcfleet.errors import OptionError
from arcfleet.neural.model import DaamConfig
from arcfleet.neural.train.config import (
    RENAMED,
    FinetuneConfig,
    OptimiserConfig,
    PretrainConfig,
    RunConfig,
    changed,
    config_from,
    settings_of,
)
from arcfleet.neural.train.finetune import batch_sizes


def test_settings_by_name() -> None:
    settings = {"steps": 5, "model": {"width": 64}, "weights": [1, 2.5]}
    config = config_from(PretrainConfig, settings)
    run = RunConfig(steps=5, weights=(1.0, 2.5))
    assert config == PretrainConfig(run=run, model=DaamConfig(width=64))
    assert (
        config_from(PretrainConfig, json.loads(json.dumps(settings_of(config)))) == config
    )
    tables = {"run": {"steps": 5, "weights": [1, 2.5]}, "model": {"width": 64}}
    assert config_from(PretrainConfig, tables) == config
    assert changed(config, steps=6, tokens=7).tokens == 7
    # Of a part only what is named changes: the others are those of this training.
    tuned = config_from(FinetuneConfig, {"steps": 1, "learning_rate": 0.5})
    assert tuned.optimiser == OptimiserConfig(
        learning_rate=0.5, warm_up_steps=5, weight_decay=0.0, ema_decay=0.99
    )
    assert (tuned.samples, tuned.temperature, tuned.kl_coefficient) == (16, 0.5, 0.02)


def test_another_model_is_named_by_its_type() -> None:
    sizes = {"type": "daam-paper", "width": 64, "inputs": "gat"}
    config = config_from(PretrainConfig, {"steps": 1, "model": sizes})
    assert type(config.model).__name__ == "PublishedDaamConfig"
    assert settings_of(config)["model"]["type"] == "daam-paper"
    assert config_from(PretrainConfig, settings_of(config)) == config


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stepz": 5}, "got stepz: did you mean steps"),
        ({"model": {"widht": 5}}, r"did you mean model\.width"),
        ({"steps": None}, "expected steps or minutes"),
        ({"steps": 0}, "steps to be a whole number from 1 to 1e.09, got 0"),
        ({"steps": 2.5}, "steps to be a whole number"),
        ({"learning_rate": "high"}, "learning_rate to be a number"),
        ({"learning_rate": 2}, "learning_rate to be a number from 0 to 1"),
        ({"compile": 1}, "compile to be true or false"),
        ({"precision": "half"}, "precision to be one of auto, float32, bfloat16"),
        ({"model": {"width": "wide"}}, r"model\.width to be of type int"),
        ({"model": {"width": 30}}, "width that heads divides"),
        ({"model": 3}, "model to be a table of sizes, got 3"),
        ({"weights": [0]}, "weights above 0"),
        ({"weights": 3}, "weights to be a list"),
        ({"minutes": math.nan}, "minutes to be a number"),
        ({"samples": 1}, "samples to be a whole number from 2 to"),
        ({"temperature": 0}, "temperature to be a number from"),
        ({"samples": 4, "best_of_k": 4}, r"best_of_k to be below samples \(4\), got 4"),
        ({"kl_coefficient": -1}, "kl_coefficient to be a number from 0"),
        ({"label_order": "farthest"}, "got label_order"),
        ({"copies": 3}, "the setting samples, got copies, its earlier name: rename it"),
        ({"objective": "ppo"}, "got objective, which is gone: .*`arcfleet paper train`"),
    ],
)
def test_wrong_settings(settings: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        config_from(FinetuneConfig, {"steps": 1, **settings})


def test_every_earlier_name_is_gone() -> None:
    known = {*settings_of(config_from(PretrainConfig, {"steps": 1}))}
    known |= {*settings_of(config_from(FinetuneConfig, {"steps": 1}))}
    known.add("normalise_advantages")
    assert not known & RENAMED.keys()
    assert {*RENAMED.values()} <= known


def test_learning_rate_rises_and_falls() -> None:
    run = RunConfig(steps=100)
    optimiser = OptimiserConfig(warm_up_steps=10, learning_rate=1.0, final_rate=0.1)
    rates = [optimiser.rate(step, run.fraction(step, 0.0)) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == rates[9]
    assert rates[9:] == sorted(rates[9:], reverse=True)
    assert optimiser.rate(100, 1.0) == pytest.approx(0.1)
    timed = RunConfig(steps=100, minutes=1.0)
    assert timed.fraction(10, 30.0) == 0.5
    assert timed.fraction(90, 30.0) == 0.9


def test_a_step_holds_whole_updates() -> None:
    sizes = {"samples": 4, "decision_steps": 2, "tokens": 41 * 8 * 3}
    config = config_from(
        FinetuneConfig, {"steps": 1, **sizes, "rollout_tokens": 41 * 4 * 8}
    )
    one = {"rolled_out": 41 * 4, "learned": 41 * 8}
    assert batch_sizes(config, **one, available=100) == (6, 3)
    assert batch_sizes(config, **one, available=2) == (2, 2)
    # Served arcs are left out, so that more instances fit into an update.
    assert batch_sizes(config, rolled_out=41 * 4, learned=41 * 3, available=100) == (8, 8)
    assert batch_sizes(config, rolled_out=10**8, learned=10**8, available=100) == (1, 1)
