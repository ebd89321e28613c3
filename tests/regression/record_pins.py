"""Record the values that `test_pins` compares with: python -m tests.regression.record_pins.

A value is recorded anew only where a change of behaviour is wanted; the commit says why.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tests.regression.pin_adapters import (
    HERE,
    TINY_MODELS,
    ModelKind,
    classical_methods,
    finetune_losses,
    first_logits,
    instance_names,
    pretrain_losses,
    solve_cost,
    table_cells,
)

PINS = HERE / "pins.json"

SEEDS = (1, 2)
#: Where a method is not named, its default stop counts.
ITERATIONS = {"ruin-recreate": 500, "maens": 300, "daam-sample": 8}
LEARNED_METHODS = ("daam", "daam-greedy", "daam-sample", "s2v-dqn", "vrp-dl")
#: Instances for learned methods; every one small.
LEARNED_INSTANCES = (
    "01-small",
    "02-small-mixed",
    "05-graph-two-way",
    "06-graph-one-way",
    "09-graph-by-direction",
    "15-town-36",
)
LOGIT_MODELS: tuple[ModelKind, ...] = ("daam", "s2v-dqn", "vrp-dl")
LOGIT_INSTANCES = ("05-graph-two-way", "06-graph-one-way")

_TRAINING = {
    "steps": 2,
    "log_steps": 1,
    "warm_up_steps": 0,
    "learning_rate": 1e-3,
    "final_rate": 0.5,
    "weight_decay": 0.01,
    "beta1": 0.9,
    "beta2": 0.98,
    "clip_norm": 1.0,
    "ema_decay": 0.9,
    "flip_axes": True,
    "validations": 1,
    "precision": "float32",
    "compile": False,
    "seed": 3,
}
_PRETRAINING = {
    **_TRAINING,
    "label_order": "farthest",
    "tokens": 1000,
    "decision_steps": 4,
}
#: Settings of pre-training by name of the case.
PRETRAINING: dict[str, dict[str, Any]] = {
    "bound": {**_PRETRAINING, "giant_tour_fraction": 0.0},
    "unbound": {**_PRETRAINING, "giant_tour_fraction": 1.0},
}
_FINETUNING = {
    **_TRAINING,
    "samples": 6,
    "decision_steps": 4,
    "tokens": 4000,
    "rollout_tokens": 2000,
    "temperature": 1.0,
    "weight_decay": 0.0,
}
_RLOO = {**_FINETUNING, "kl_coefficient": 0.02, "giant_tour_fraction": 0.0}
_PPO = {**_FINETUNING, "epochs": 2, "ratio_clip": 0.1, "baseline_steps": 10}
#: Settings of fine-tuning by name of the case: of RLOO, or of PPO if there are epochs.
FINETUNING: dict[str, dict[str, Any]] = {
    "samples": {**_RLOO, "best_of_k": 1},
    "samples-best-of-4": {**_RLOO, "best_of_k": 4},
    "samples-unbound": {**_RLOO, "best_of_k": 1, "giant_tour_fraction": 1.0},
    "ppo": {**_PPO, "normalise_advantages": False},
    "ppo-standardised": {**_PPO, "normalise_advantages": True},
}
ROWS = (
    "ps",
    "daam-sl-rl",
    "daam-po",
    "maens=100",
    "daam-directions",
    "daam-views",
    "sample=4",
    "redraw=8",
)


def classical_costs(instance: str) -> dict[str, list[list[int | str]]]:
    """Return cost and hash of the routes by classical method, one pair for each seed."""
    return {
        method: [
            list(solve_cost(instance, method, seed, ITERATIONS.get(method)))
            for seed in SEEDS
        ]
        for method in classical_methods()
    }


def learned_costs(instance: str) -> dict[str, list[int]]:
    """Return costs by learned method, one for each seed."""
    return {
        method: [
            solve_cost(instance, method, seed, ITERATIONS.get(method))[0] for seed in SEEDS
        ]
        for method in LEARNED_METHODS
    }


def arithmetic() -> dict[str, str]:
    """Return what decides how floats are rounded: torch and the processor."""
    import torch

    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return {
        "torch": torch.__version__,
        "vectors": torch.backends.cpu.get_cpu_capability(),
        "processor": names[0] if names else "unknown",
    }


def measure() -> dict[str, Any]:
    """Compute everything that is pinned."""
    return {
        "arithmetic": arithmetic(),
        "classical": {name: classical_costs(name) for name in instance_names()},
        "learned": {name: learned_costs(name) for name in LEARNED_INSTANCES},
        "logits": {
            kind: {name: _rounded(first_logits(kind, name)) for name in LOGIT_INSTANCES}
            for kind in LOGIT_MODELS
        },
        "pretraining": {
            model: {case: pretrain_losses(model, x) for case, x in PRETRAINING.items()}
            for model in TINY_MODELS
        },
        "finetuning": {
            model: {case: finetune_losses(model, x) for case, x in FINETUNING.items()}
            for model in TINY_MODELS
        },
        "table": table_cells(ROWS),
    }


def _rounded(steps: list[list[float | None]]) -> list[list[float | None]]:
    return [[None if x is None else round(x, 6) for x in step] for step in steps]


def _as_text(pins: dict[str, Any]) -> str:
    # One line for each instance, model or set, so that a change shows where it is.
    parts = []
    for section, values in pins.items():
        lines = [f"  {json.dumps(key)}: {json.dumps(x)}" for key, x in values.items()]
        parts.append(f" {json.dumps(section)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> int:
    """Write the file of pins, unless there is one."""
    parser = argparse.ArgumentParser(description="Record the values of the pins.")
    parser.add_argument("--force", action="store_true", help="replace recorded values")
    options = parser.parse_args()
    if PINS.exists() and not options.force:
        print(f"expected no {PINS.name}, found one: --force replaces it", file=sys.stderr)
        return 1
    PINS.write_text(_as_text(measure()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
