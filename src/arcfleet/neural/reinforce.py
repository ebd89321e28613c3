"""REINFORCE on whole plans, compared with each other or with the greedy plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from arcfleet.neural.finetuning import Finetuning, scaled
from arcfleet.neural.policy_gradient import (
    leave_one_out,
    log_probabilities,
    reinforce_loss,
)
from arcfleet.neural.state import State
from arcfleet.neural.training_loop import compiled_by_scale
from arcfleet.neural.trajectories import num_choices, states_at

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch


class Reinforce(Finetuning):
    """The objectives "samples" and "self-critical".

    Each plan's advantage is that over the mean of the other samples (Kool et al. 2019,
    "Buy 4 REINFORCE samples, get a baseline for free") or over the greedy plan (Rennie
    et al. 2017). Gradients come from some moments of each plan, which bounds the memory.
    """

    works_in_team = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        model = self.learner.working

        def loss_of(
            batch: ArcBatch, state: State, choice: Tensor, worth: Tensor, padded: bool
        ) -> Tensor:
            chosen = log_probabilities(model, batch, state, choice, padded)
            return reinforce_loss(chosen, worth)

        if self.config.compile:
            loss_of = compiled_by_scale(loss_of, len(self.sets))
        self._loss_of = loss_of

    def learn(self, rate: float) -> None:
        """Sample plans of some instances and raise the chance of the better ones."""
        config = self.config
        data = self.sets[self.draw_set()]
        count, part = config.instances(
            data.batch.num_arcs, config.copies, self.available(data)
        )
        _, batch = self.draw_instances(data, count)
        rollout = self.sampled(self.policy, batch, config.copies)
        costs = scaled(batch, batch.deadheads(rollout.arcs))  # (batch, copies)
        worth = self.advantages(batch, costs) * num_choices(rollout.arcs)
        moments = self.draw_choices(rollout.arcs)
        state, choice = states_at(batch, rollout.arcs, moments)
        worth = worth.repeat_interleave(config.moments, dim=1)  # (batch, copies * moments)
        self.window.add(0, sampled=costs.mean())
        for rows in torch.arange(count, device=self.device).view(-1, part):
            loss = self._loss_of(
                batch.select(rows),
                State(*(tensor[rows] for tensor in state)),
                choice[rows],
                worth[rows],
                not data.full,
            )
            self.learner.update(loss, rate)
            self.window.add(choice[rows].numel(), loss=loss.detach())

    def advantages(self, batch: ArcBatch, costs: Tensor) -> Tensor:
        """Say how much cheaper each sample is than what it is compared with."""
        if self.config.objective == "samples":
            return leave_one_out(costs)
        plans = self.greedily(self.policy, batch)
        usual = scaled(batch, batch.deadheads(plans.arcs))  # (batch, 1)
        self.window.add(0, greedy=usual.mean())
        return usual - costs
