"""Instances that DaAM decodes per second, with random weights or a model's, and the floor.

The floor is the multiply-adds of the model over the rate of a large matrix product on the
same device. Shares are of a greedy decoding with Split, each part timed alone.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from arcfleet.datasets import make_dataset
from arcfleet.neural.batch import batch_from_arrays
from arcfleet.neural.checkpoint import load_model
from arcfleet.neural.decoding import FastPolicy, decoding_model, greedy, sample
from arcfleet.neural.device import choose_device, has_bfloat16, working_on
from arcfleet.neural.env import action_mask, reset, step
from arcfleet.neural.kernels.cuda_graph import Recorder, fastest_wrap
from arcfleet.neural.model import AttentionModel, Daam, DaamConfig
from arcfleet.neural.plans import as_decoded, split_plans
from arcfleet.paper.strategies import paper_beams
from arcfleet.report.tables import table
from benchmarks import describe, run_and_exit

if TYPE_CHECKING:
    from collections.abc import Callable

    from arcfleet.datasets import Dataset
    from arcfleet.neural.batch import ArcBatch

SCALES = (20, 50, 100)
DISTINCT = 500  # instances cut for each scale; larger batches repeat them
SAMPLES = 32


def multiply_adds(config: DaamConfig, arcs: int) -> int:
    """Count those of one step of one plan; sums over the width alone are left out."""
    width = config.width
    first = 2 * arcs * width + arcs * arcs * width  # changing features, then the GAT's mix
    projections = arcs * width * (4 * width + 2 * config.feed_forward)
    attention = 2 * arcs * arcs * width
    pointer = 2 * width * width + width * width + arcs * width
    return first + config.layers * (projections + attention) + pointer


def matrix_rate(device: torch.device, dtype: torch.dtype) -> float:
    """Measure the multiply-adds per second of a large matrix product."""
    size = 8192 if device.type == "cuda" else 2048
    factor = torch.randn(size, size, device=device, dtype=dtype)
    return size**3 / seconds(lambda: factor @ factor, device, rounds=5)


def introduce(device: torch.device, *, compiled: bool) -> float:
    """Print what is measured on; give its multiply-adds per second."""
    dtype = torch.bfloat16 if has_bfloat16(device) else torch.float32
    rate = matrix_rate(device, dtype)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(describe())
    print(
        f"{name}, torch {torch.__version__}, {torch.get_num_threads()} threads, "
        f"{'compiled' if compiled else 'eager'}; matrix product in {dtype}: "
        f"{rate / 1e12:,.3f} T multiply-adds/s"
    )
    return rate


def seconds(call: Callable[[], object], device: torch.device, rounds: int) -> float:
    """Return the median time of a call, after one that warms up."""
    call()
    times = []
    for _ in range(rounds):
        _wait(device)
        started = time.perf_counter()
        call()
        _wait(device)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def shares(policy: FastPolicy, batch: ArcBatch, steps: int, threads: int) -> list[float]:
    """Time the parts of a greedy decoding: encoder, pointer, state and Split.

    On a GPU each part is recorded and replayed, as `greedy` runs them.
    """
    device = batch.real.device

    def timed(part: Callable[[], object]) -> float:
        if device.type == "cuda":
            part = Recorder(device).record(part).replay
        return seconds(part, device, 5)

    with torch.no_grad():
        prepared = policy.prepare(batch)
        state = reset(batch)
        allowed = action_mask(batch, state)
        embedding = policy.encode(prepared, state)
        chosen = policy(prepared, state, allowed).argmax(-1)
        encoder = timed(lambda: policy.encode(prepared, state))
        pointer = timed(lambda: policy.point(embedding, prepared, state, allowed))
        moving = timed(lambda: action_mask(batch, step(batch, state, chosen)))
    rollout = greedy(policy, batch, wrap=fastest_wrap(device))
    optimiser = seconds(
        lambda: split_plans(batch, rollout, choose_directions=True, threads=threads),
        device,
        3,
    )
    return [steps * encoder, steps * pointer, steps * moving, optimiser]


def chosen_model(options: argparse.Namespace, device: torch.device) -> AttentionModel:
    """Load the model, or make one of random weights, which takes more steps for a plan."""
    if options.model is not None:
        model = load_model(options.model, device, serves="daam")[0]
        assert isinstance(model, AttentionModel)
        return model
    torch.manual_seed(0)
    return Daam(DaamConfig()).to(device).eval()


def measure(
    scale: int, size: int, batch: ArcBatch, options: argparse.Namespace, rate: float
) -> tuple[str, ...]:
    """Return one row of the table."""
    device = batch.real.device
    model = chosen_model(options, device)
    policy = FastPolicy(decoding_model(model), compiled=options.compile)
    wrap = fastest_wrap(device)
    steps = greedy(policy, batch, wrap=wrap).arcs.shape[-1]
    rounds = options.rounds
    fast = seconds(lambda: greedy(policy, batch, wrap=wrap), device, rounds)
    recipe = seconds(
        lambda: paper_beams(policy, batch, threads=options.threads, wrap=wrap),
        device,
        rounds,
    )

    def sampled() -> None:
        generator = torch.Generator().manual_seed(1)
        plans = sample(policy, batch, SAMPLES, generator=generator, wrap=wrap)
        split_plans(batch, plans, choose_directions=True, threads=options.threads)

    many = ""
    if size * SAMPLES <= options.most_rows:
        many = f"{size / seconds(sampled, device, 1):,.1f}"
    floor = size * steps * multiply_adds(model.config, batch.num_arcs) / rate
    parts = shares(policy, batch, steps, options.threads)
    return (
        f"Task{scale}",
        f"{size:,}",
        f"{size / fast:,.1f}",
        f"{size / recipe:,.1f}",
        many,
        f"{size / floor:,.1f}",
        f"{floor / fast:.2f}",
        " ".join(f"{part / sum(parts):.0%}" for part in parts),
    )


def compare_quality(batch: ArcBatch, options: argparse.Namespace) -> str:
    """Compare the greedy costs of the fast way with those of plain float32."""
    model = chosen_model(options, batch.real.device)
    policy = FastPolicy(decoding_model(model), compiled=options.compile)
    wrap = fastest_wrap(batch.real.device)
    fast = as_decoded(batch, greedy(policy, batch, wrap=wrap))
    plain = as_decoded(batch, greedy(model, batch))
    change = fast.costs.mean() / plain.costs.mean() - 1
    same = (fast.costs == plain.costs).mean()
    return f"mean cost {change:+.4%} of float32 eager, the same cost on {same:.0%}"


def measure_preparation(data: Dataset, device: torch.device, count: int) -> str:
    """Time how instances become tensors, shortest paths and MDS included."""
    indices = np.arange(count) % len(data)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    _wait(device)
    started = time.perf_counter()
    batch = batch_from_arrays(data.padded(indices), device=device)
    _wait(device)
    taken = time.perf_counter() - started
    memory = ""
    if device.type == "cuda":
        memory = f", at most {torch.cuda.max_memory_allocated(device) / 2**30:.1f} GiB"
    return f"{len(batch):,} instances of {data.name} prepared in {taken:.1f} s{memory}"


def main() -> None:
    """Print one table for the given device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--model", type=Path, metavar="FILE")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 100, 1000])
    parser.add_argument("--scales", type=int, nargs="+", default=SCALES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--prepare", type=int, default=1000, metavar="N")
    parser.add_argument("--most-rows", type=int, default=200_000, help="for sampling")
    options = parser.parse_args()
    device = choose_device(options.device)
    with working_on(device):
        run(device, options)


def run(device: torch.device, options: argparse.Namespace) -> None:
    """Measure all and print it."""
    rate = introduce(device, compiled=options.compile)
    rows = []
    quality = []
    with tempfile.TemporaryDirectory() as folder:
        for scale in options.scales:
            path = Path(folder) / f"task{scale}.npz"
            data = make_dataset(path, f"task{scale}", count=DISTINCT, seed=1)
            if scale == max(options.scales):
                print(measure_preparation(data, device, options.prepare), flush=True)
            prepared = batch_from_arrays(data.padded(range(DISTINCT)), device=device)
            if device.type == "cuda":  # on a CPU both are the same
                quality.append(f"Task{scale}: {compare_quality(prepared, options)}")
            for size in options.sizes:
                repeated = torch.arange(size, device=device) % DISTINCT
                rows.append(measure(scale, size, prepared.select(repeated), options, rate))
                print(*rows[-1], flush=True)
    print(
        table(
            rows,
            (
                "set",
                "batch",
                "greedy 1/s",
                "beam 2+2, DP 1/s",
                f"sample {SAMPLES}, DP 1/s",
                "floor 1/s",
                "greedy / floor",
                "encoder, pointer, state, DP",
            ),
        )
    )
    print("\n".join(quality))


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    run_and_exit(main)
