"""Variance of the gradient of fine-tuning, by how decisions of its rollouts are sampled.

    python -m benchmarks.gradient_variance DATA.npz ... --decisions 4 12 --seeds 0 1 2

Of each instance rollouts are sampled as in fine-tuning, and the gradient of all of their
decisions is computed; then that of some decisions of each rollout, sampled evenly and by
importance. A second moment of 1 is that of all decisions: what is above it comes from
sampling decisions, and as many times more instances would be needed to make up for it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from arcfleet.neural.batch import as_instances, present_arcs, round_length, shrink
from arcfleet.neural.checkpoint import SHIPPED_MODEL, load_model
from arcfleet.neural.decoding import decoding_model, sample
from arcfleet.neural.env import State
from arcfleet.neural.train.config import FinetuneConfig, RunConfig
from arcfleet.neural.train.data import open_instances
from arcfleet.neural.train.steps import (
    Decisions,
    LearningForm,
    draw_choices,
    draw_decisions,
    leave_one_out,
    log_probabilities,
    num_choices,
    reinforce_loss,
    states_at,
)
from arcfleet.report.tables import table
from benchmarks import run_and_exit

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch

# States of one pass: longer ones are few, so that their arcs fit the memory of a CPU.
_STATES = 96


def gradient(
    model: Any,
    batch: ArcBatch,
    arcs: Tensor,
    advantage: Tensor,
    decisions: Decisions,
    temperature: float,
) -> Tensor:
    """Compute the gradient of one instance from sampled decisions, as one vector."""
    form, weights = LearningForm(model), list(model.parameters())
    plans = arcs[0, decisions.rollout[0]][None]  # (1, decisions, steps)
    state, choice = states_at(batch, plans, decisions.step[..., None])
    alone, _ = as_instances(state)
    worth = (advantage.gather(1, decisions.rollout) * decisions.weight)[0]
    total = [torch.zeros_like(weight) for weight in weights]
    # Short states together, as in the length buckets of training.
    for rows in torch.split(alone.unserved.sum(-1)[:, 0].argsort(), _STATES):
        some = State(*(part[rows] for part in alone))
        length = round_length(int(present_arcs(some).sum(1).amax()))
        small = shrink(batch, some, length, torch.zeros_like(rows))
        logits = form.logits(small.batch, small.state, padded=True)
        slot = small.slot.gather(1, choice[0, rows, None])
        chosen = log_probabilities(logits, slot, temperature)
        loss = reinforce_loss(chosen, worth[rows, None]) * len(rows) / choice.numel()
        for sums, part in zip(total, torch.autograd.grad(loss, weights), strict=True):
            sums += part
    return torch.cat([part.flatten() for part in total])


def every_decision(arcs: Tensor) -> Decisions:
    """Return all decisions of the rollouts of one instance."""
    count = num_choices(arcs)[0]
    known = torch.arange(arcs.shape[2]) < count[:, None]
    rollout, step = known.nonzero(as_tuple=True)
    weight = torch.full((1, len(step)), len(step) / len(count))
    return Decisions(rollout[None], step[None], weight)


def evenly(arcs: Tensor, each: int, generator: torch.Generator) -> Decisions:
    """Sample so many decisions of each rollout evenly."""
    drawn, count = draw_choices(arcs, each, generator)
    rollout = torch.arange(arcs.shape[1]).repeat_interleave(each)
    weight = count.repeat_interleave(each, dim=1).float()
    return Decisions(rollout[None], drawn.flatten(1), weight)


def second_moments(path: Path, args: argparse.Namespace, seed: int) -> dict[str, float]:
    """Return mean squared norms of gradients, as parts of that of all decisions."""
    config = FinetuneConfig(run=RunConfig(steps=1))
    model = load_model(args.model)[0]
    policy = decoding_model(model)
    whole = open_instances(path, "cpu").batch
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randperm(len(whole), generator=generator)[: args.instances]
    sums: dict[str, float] = {}
    for row in rows:
        batch = whole.select(row[None])
        found = sample(
            policy,
            batch,
            config.samples,
            generator=generator,
            temperature=config.temperature,
            score_norms=True,
        )
        costs = batch.deadheads(found.arcs) / batch.scale[:, None]
        advantage = leave_one_out(costs)  # (1, samples)
        assert found.score_norm is not None
        ways = {"all": every_decision(found.arcs)}
        for each in args.decisions:
            ways[f"even {each}"] = evenly(found.arcs, each, generator)
            where = torch.rand(1, dtype=torch.float64, generator=generator)
            ways[f"importance {each}"] = draw_decisions(
                found.arcs, advantage, found.score_norm, each * config.samples, where
            )
        for name, decisions in ways.items():
            vector = gradient(
                model, batch, found.arcs, advantage, decisions, config.temperature
            )
            sums[name] = sums.get(name, 0.0) + float(vector.square().sum())
    return {name: value / sums["all"] for name, value in sums.items()}


def main() -> None:
    """Parse the command line and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("data", type=Path, nargs="+", help="data sets")
    parser.add_argument("--model", type=Path, default=SHIPPED_MODEL)
    parser.add_argument("--decisions", type=int, nargs="+", default=[4, 12])
    parser.add_argument("--instances", type=int, default=6)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[tuple[str, ...]] = []
    for path in args.data:
        found = [second_moments(path, args, seed) for seed in args.seeds]
        for name in found[0]:
            values = [each[name] for each in found]
            cells = [f"{x:.2f}" for x in values]
            rows.append((path.stem, name, f"{np.mean(values):.2f}", *cells))
    header = ["set", "decisions of a rollout", "mean", *(f"seed {x}" for x in args.seeds)]
    print(table(rows, header))


if __name__ == "__main__":
    run_and_exit(main)
