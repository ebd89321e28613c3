"""The replay buffer of S2V-DQN: whole plans, from which single choices are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Generator, Tensor


class Replay:
    """The last plans of the instances of one data set, on its device.

    A plan says all about every moment of it, so a choice needs no state of its own.

    Parameters
    ----------
    capacity
        Plans to hold; the oldest go first.
    steps
        The most that a plan may have.
    device
        Where to hold them.
    """

    def __init__(self, capacity: int, steps: int, device: torch.device) -> None:
        self.rows = torch.zeros(capacity, dtype=torch.int32, device=device)
        self.arcs = torch.zeros((capacity, steps), dtype=torch.int32, device=device)
        self.added = 0  # plans that were ever added

    def add(self, rows: Tensor, arcs: Tensor) -> None:
        """Keep plans.

        Parameters
        ----------
        rows
            Of their instances, (plans,).
        arcs
            (plans, steps), as in a rollout.
        """
        capacity, steps = self.arcs.shape
        rows, arcs = rows[-capacity:], arcs[-capacity:]
        first = self.added % capacity
        places = (torch.arange(len(rows), device=rows.device) + first) % capacity
        self.rows[places] = rows.to(self.rows.dtype)
        wide = functional.pad(arcs, (0, steps - arcs.shape[1]))
        self.arcs[places] = wide.to(self.arcs.dtype)
        self.added += len(rows)

    def draw(self, count: int, generator: Generator) -> tuple[Tensor, Tensor]:
        """Draw plans: rows of their instances, (count,), and arcs, (count, steps)."""
        filled = min(self.added, len(self.rows))
        places = torch.randint(
            filled, (count,), device=self.rows.device, generator=generator
        )
        return self.rows[places].long(), self.arcs[places].long()
