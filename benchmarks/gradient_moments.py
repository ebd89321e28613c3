r"""How many moments of each plan fine-tuning should learn from: precision against time.

    python -m benchmarks.gradient_moments --init MODEL --data train-20.npz --device cpu

Every number of moments gives the same gradient in the mean ("ppo", whose advantages are
brought to deviation 1 here, nearly the same); fewer are faster and less precise. Of each
number some independent gradients are taken at the same weights, each from other instances
and plans. "variance" is the mean squared distance from their mean, over all weights, where
the first number of moments has 1. Twice the instances halve it and take twice the time: so
the least variance x seconds learns most in the same time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from arcfleet.errors import OptionError
from arcfleet.neural.checkpoint import load_model_of
from arcfleet.neural.daam import Daam
from arcfleet.neural.device import choose_device, torch_threads, working_on
from arcfleet.neural.finetune import RUNS
from arcfleet.neural.finetune_config import FinetuneConfig
from arcfleet.neural.labelled_set import open_instances
from arcfleet.neural.training_run import RunFolder
from arcfleet.report.tables import table
from benchmarks.machine import describe, run_and_exit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from arcfleet.neural.finetuning import Finetuning

OBJECTIVES = ("ppo", "samples")


def gradients(run: Finetuning, count: int) -> Iterator[tuple[Tensor, float]]:
    """Give gradients at the weights as they are, and the seconds that each took."""
    found: list[Tensor] = []
    learner = run.learner

    def note(loss: Tensor, rate: float) -> None:
        learner.add(loss)
        weights = learner.master.parameters()
        found.append(torch.cat([w.grad.flatten() for w in weights if w.grad is not None]))
        learner.master.zero_grad()

    learner.update = note  # type: ignore[method-assign]
    for _ in range(count):
        started = time.perf_counter()
        run.learn(0.0)
        gradient = found.pop().cpu()  # waits for the device
        yield gradient, time.perf_counter() - started


def measured(
    options: argparse.Namespace, objective: str, moments: int
) -> tuple[float, float]:
    """Give the variance of a gradient, and its seconds."""
    model, _ = load_model_of(Daam, options.init, "cpu")
    device = choose_device(options.device)
    dimensions = model.config.mds_dimensions
    data = open_instances(options.data, device, mds_dimensions=dimensions)
    if not 1 <= options.instances <= len(data):
        raise OptionError(
            f"expected 1 to {len(data)} instances of each gradient, as many as "
            f"{options.data} has, got {options.instances}"
        )
    arcs = options.instances * data.batch.num_arcs * options.copies
    is_ppo = objective == "ppo"
    config = FinetuneConfig(
        model=model.config,
        objective=objective,  # type: ignore[arg-type]
        copies=options.copies,
        moments=moments,
        temperature=options.temperature,
        standardise=is_ppo,
        epochs=1,  # of the second the weights would be others
        tokens=arcs * moments,
        rollout_tokens=arcs * (moments if is_ppo else 1),
        seed=options.seed,
        baseline_steps=10**9,
        steps=1,
        pictures=0,
    )
    with tempfile.TemporaryDirectory() as path:
        folder = RunFolder(Path(path) / "run", {"config": {}}, resume=False)
        kind = RUNS[config.objective]
        run = kind(config, model.to(device), [data], [], folder, 1, lambda _: None)
        taken = list(gradients(run, options.gradients + 1))[1:]  # the first compiles
    stacked = torch.stack([gradient for gradient, _ in taken]).double()
    variance = (stacked - stacked.mean(0)).square().sum() / (len(taken) - 1)
    return float(variance), sum(seconds for _, seconds in taken) / len(taken)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--init", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--objectives", choices=OBJECTIVES, nargs="+", default=OBJECTIVES)
    parser.add_argument("--moments", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--instances", type=int, default=8, help="of each gradient")
    parser.add_argument("--gradients", type=int, default=24)
    parser.add_argument("--temperature", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if options.gradients < 2:
        raise OptionError(
            f"expected at least 2 gradients, which differ, got {options.gradients}"
        )
    rows = []
    with torch_threads(options.threads), working_on(choose_device(options.device)):
        for objective in options.objectives:
            first = None
            for moments in options.moments:
                variance, seconds = measured(options, objective, moments)
                first = first or (variance, variance * seconds)
                rows.append(
                    (
                        objective,
                        moments,
                        f"{seconds:.3f}",
                        f"{variance / first[0]:.3f}",
                        f"{variance * seconds / first[1]:.3f}",
                    )
                )
    print(describe())
    header = ["objective", "moments", "seconds", "variance", "variance x seconds"]
    print(table(rows, header))


if __name__ == "__main__":
    run_and_exit(main)
