r"""States that DaAM learns from per second in pre-training, and what a step's time goes to.

    python -m benchmarks.training_speed --device cuda --compile --tokens 250000 1000000

A model of the default sizes and random weights, on synthetic streets. Two floors: the
multiply-adds of a step over the rate of a large matrix product, and the bytes that its
matrix products and attentions must read and write over the rate of a large copy, as if all
else were free. Parts of a step are also timed alone: drawing states, forward, backward. The
rest is what the whole takes beyond them, the optimiser above all; where the parts overlap
in the whole it may be below 0.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from arcfleet.datasets import label_dataset, make_dataset
from arcfleet.neural.device import choose_device, working_on
from arcfleet.neural.model import Daam, DaamConfig
from arcfleet.neural.train.config import PretrainConfig, config_from, settings_of
from arcfleet.neural.train.data import open_labelled
from arcfleet.neural.train.pretrain import PretrainTrainer, plans_of_step
from arcfleet.neural.train.run import RunFolder
from arcfleet.neural.train.steps import imitation_loss
from arcfleet.report.tables import table
from benchmarks import run_and_exit
from benchmarks.neural_speed import introduce, multiply_adds, seconds

if TYPE_CHECKING:
    from arcfleet.neural.train.data import LabelledSet

INSTANCES = 500
RATE = 1e-5  # so small that the loss stays a number however long it is timed


def least_bytes(config: DaamConfig, arcs: int, size: int) -> int:
    """Count what a state's layers must read and write, in numbers of so many bytes.

    Forward each product reads its input and writes its output; backward it reads both
    again and writes a gradient of the input, and the weights' gradient reads them once
    more. Attention reads three tensors and writes one, backward twice as many.
    """
    width, wide = config.width, config.feed_forward
    products = (width + 3 * width) + (width + width) + 2 * (width + wide)
    attention = 4 * width
    return config.layers * arcs * 3 * (products + attention) * size


def copy_rate(device: torch.device) -> float:
    """Measure the bytes per second of a large copy, read and written."""
    source = torch.zeros(2**28 if device.type == "cuda" else 2**24, device=device)
    target = torch.empty_like(source)
    taken = seconds(lambda: target.copy_(source), device, rounds=5)
    return 2 * source.numel() * source.element_size() / taken


def measure(
    labelled: LabelledSet, config: PretrainConfig, rates: tuple[float, float], steps: int
) -> tuple[str, ...]:
    """Return one row of the table."""
    device, arcs = labelled.batch.real.device, labelled.batch.num_arcs
    torch.manual_seed(0)
    model = Daam(config.model).to(device)
    with tempfile.TemporaryDirectory() as folder:
        files = RunFolder(
            Path(folder) / "run", {"config": settings_of(config)}, resume=False
        )
        run = PretrainTrainer(config, model, [labelled], [], files)
    bucket = run.draw_bucket(0)
    minibatch = run.draw(0, bucket)
    padded = bucket is not None or not labelled.full

    def loss() -> torch.Tensor:
        return imitation_loss(run.form, minibatch, padded)

    def several() -> None:
        for _ in range(steps):
            run.train_step(RATE)

    def there_and_back() -> None:
        loss().backward()  # type: ignore[no-untyped-call]
        run.learner.working.zero_grad()

    whole = seconds(several, device, rounds=3) / steps
    drawing = seconds(lambda: run.draw(0, bucket), device, rounds=5)
    forward = seconds(loss, device, rounds=5)
    both = seconds(there_and_back, device, rounds=5)
    states = plans_of_step(config, arcs) * config.decision_steps
    size = next(run.learner.working.parameters()).element_size()
    sums = states * 3 * multiply_adds(config.model, arcs) / rates[0]
    moved = states * least_bytes(config.model, arcs, size) / rates[1]
    parts = (drawing, forward, both - forward, whole - drawing - both)
    return (
        labelled.name,
        f"{config.tokens:,}",
        f"{states / whole:,.1f}",  # a busy CPU makes but a few
        f"{1e3 * whole:.2f}",
        *(f"{1e3 * part:.2f}" for part in parts),
        f"{1e3 * sums:.2f}",
        f"{1e3 * moved:.2f}",
    )


def main() -> None:
    """Print one table for the given device."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--scales", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--tokens", type=int, nargs="+", default=[250_000])
    parser.add_argument("--steps", type=int, default=20, help="timed together, thrice")
    parser.add_argument("--instances", type=int, default=INSTANCES)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    device = choose_device(options.device)
    with working_on(device):
        run(device, options)


def run(device: torch.device, options: argparse.Namespace) -> None:
    """Measure all and print it."""
    rates = introduce(device, compiled=options.compile), copy_rate(device)
    print(f"copy: {rates[1] / 1e12:,.3f} TB/s")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for scale in options.scales:
            path = Path(folder) / f"Task{scale}.npz"
            data = make_dataset(path, f"task{scale}", count=options.instances, seed=1)
            label_dataset(data, iterations=100)
            model = DaamConfig()
            labelled = open_labelled(path, device, mds_dimensions=model.mds_dimensions)
            for tokens in options.tokens:
                settings = {"steps": 1, "tokens": tokens, "compile": options.compile}
                config = config_from(PretrainConfig, settings)
                rows.append(measure(labelled, config, rates, options.steps))
                print(*rows[-1], flush=True)
    columns = ("set", "tokens", "states/s", "step ms", "draw", "forward", "backward")
    print(table(rows, (*columns, "rest", "multiply-adds", "bytes")))


if __name__ == "__main__":
    run_and_exit(main)
