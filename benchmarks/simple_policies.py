"""Gaps of random plans and of the nearest arc at each step: what a learner must beat.

    python -m benchmarks.simple_policies validation.npz ...

Each data set has its labels beside it. Both policies decide as the learned ones do: arc by
arc, under the capacity; they go home only when nothing else is allowed, the random one also
by chance.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from arcfleet.neural.decode import greedy, sample
from arcfleet.neural.labelled_set import open_labelled
from arcfleet.neural.plans import as_decoded
from arcfleet.report.tables import table
from benchmarks.machine import describe, run_and_exit

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.labelled_set import LabelledSet
    from arcfleet.neural.rollout import Rollout
    from arcfleet.neural.state import State


class Nearest:
    """The arc with the shortest way to it; home as the last resort."""

    def prepare(self, batch: ArcBatch) -> Tensor:
        """Give the ways into each arc, (batch, arcs, arcs); those home are very long."""
        ways = batch.incoming()
        ways[:, 0] = 1e6
        return ways

    def __call__(self, prepared: Tensor, state: State, allowed: Tensor) -> Tensor:
        """Give minus the ways from the previous arc, (batch, copies, arcs)."""
        columns = state.previous[:, None].expand(-1, prepared.shape[1], -1)
        ways = prepared.gather(2, columns).mT  # (batch, copies, arcs)
        return (-ways).masked_fill(~allowed, -torch.inf)


class Random:
    """Any arc that is allowed."""

    def prepare(self, batch: ArcBatch) -> ArcBatch:
        """There is nothing to work out."""
        return batch

    def __call__(self, prepared: ArcBatch, state: State, allowed: Tensor) -> Tensor:
        """Give the same to all that is allowed, (batch, copies, arcs)."""
        return torch.zeros(allowed.shape).masked_fill(~allowed, -torch.inf)


def gap(labelled: LabelledSet, rollout: Rollout) -> str:
    """Mean gap of total cost to the labels, in percent."""
    costs = torch.as_tensor(as_decoded(labelled.batch, rollout).costs[:, 0]).double()
    return f"{100 * (costs / labelled.plans.cost - 1).mean().item():.2f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", type=Path, nargs="+", metavar="FILE")
    rows = []
    for path in parser.parse_args().sets:
        labelled = open_labelled(path, "cpu")
        generator = torch.Generator().manual_seed(0)
        drawn = sample(Random(), labelled.batch, 1, generator=generator)
        nearest = greedy(Nearest(), labelled.batch)
        rows.append((labelled.name, gap(labelled, drawn), gap(labelled, nearest)))
    print(describe())
    print("mean gap in percent to the labels")
    print(table(rows, ("set", "random", "nearest arc")))


if __name__ == "__main__":
    run_and_exit(main)
