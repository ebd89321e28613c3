"""Instances and plans of a step of training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from arcfleet.neural.batch import flip_axes
from arcfleet.neural.decoding import sample
from arcfleet.neural.kernels.cuda_graph import fastest_wrap

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.decoding import Policy
    from arcfleet.neural.train.data import InstanceSet


def draw_rows(data: InstanceSet, count: int, generator: Generator) -> Tensor:
    """Draw instances, each at most once."""
    device = data.batch.real.device
    return torch.randperm(len(data), device=device, generator=generator)[:count]


def instances_at(
    data: InstanceSet, rows: Tensor, generator: Generator, *, flip: bool
) -> ArcBatch:
    """Give some instances, their MDS axes flipped at random if wanted."""
    batch = data.batch.select(rows)
    return flip_axes(batch, generator) if flip else batch


def sampled_plans(policy: Policy, batch: ArcBatch, generator: Generator) -> Tensor:
    """Draw one plan of each instance, (batch, 1, steps)."""
    device = batch.real.device
    rollout = sample(
        policy,
        batch,
        1,
        generator=generator,
        # On a GPU all at once: every part is a shape to record.
        chunk=None if device.type == "cpu" else len(batch),
        wrap=fastest_wrap(device),
    )
    return rollout.arcs
