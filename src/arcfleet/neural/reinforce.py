"""REINFORCE on whole plans, compared with each other or with the greedy plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from arcfleet.neural.finetuning import Finetuning, scaled
from arcfleet.neural.policy_gradient import (
    leave_one_out,
    log_probabilities,
    reinforce_loss,
)
from arcfleet.neural.shrink import as_instances, shrink
from arcfleet.neural.trajectories import states_at

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.shrink import Rung


class Reinforce(Finetuning):
    """The objectives "samples" and "self-critical".

    Each plan's advantage is that over the mean of the other samples (Kool et al. 2019,
    "Buy 4 REINFORCE samples, get a baseline for free") or over the greedy plan (Rennie
    et al. 2017). Gradients come from some moments of each plan, which bounds the memory.
    """

    works_in_team = True

    def learn(self, rate: float) -> None:
        """Sample plans of some instances and raise the chance of the better ones."""
        config = self.config
        number = self.draw_set()
        data = self.sets[number]
        count, part = config.instances(
            data.batch.num_arcs, config.copies, self.available(data)
        )
        _, batch = self.draw_instances(data, count)
        rollout = self.sampled(self.policy, batch, config.copies)
        costs = scaled(batch, batch.deadheads(rollout.arcs))  # (batch, copies)
        self.window.add(0, sampled=costs.mean())
        advantages = self.advantages(batch, costs)
        rungs = self.rungs_of(number)
        moments = max(1, round(config.moments / len(rungs)))
        drawn = [self.draw_choices(rollout.arcs, moments, rung) for rung in rungs]
        for rows in torch.arange(count, device=self.device).view(-1, part):
            some, arcs = batch.select(rows), rollout.arcs[rows]
            for place, (when, decisions) in enumerate(drawn, start=1):
                worth = advantages[rows] * decisions[rows]  # (batch, copies)
                worth = worth.repeat_interleave(moments, dim=1)
                rung = rungs[place - 1]
                loss = self._loss(some, arcs, when[rows], worth, rung, not data.full)
                # The sum over all rungs has the gradient of whole plans.
                if place < len(rungs):
                    self.learner.add(loss)
                else:
                    self.learner.update(loss, rate)

    def _loss(
        self,
        batch: ArcBatch,
        arcs: Tensor,
        moments: Tensor,
        worth: Tensor,
        rung: Rung | None,
        padded: bool,
    ) -> Tensor:
        state, choice = states_at(batch, arcs, moments)
        if rung is not None:
            alone, rows = as_instances(state)
            small = shrink(batch, alone, rung.length, rows)
            batch, state = small.batch, small.state
            choice = small.slot.gather(1, choice.reshape(-1, 1))
            worth = worth.reshape(-1, 1)
        chosen = log_probabilities(
            self.form,
            batch,
            state,
            choice,
            padded=padded or bool(rung),
            temperature=self.config.temperature,
        )
        loss = reinforce_loss(chosen, worth)
        self.window.add(choice.numel(), loss=loss.detach())
        return loss

    def advantages(self, batch: ArcBatch, costs: Tensor) -> Tensor:
        """Say how much cheaper each sample is than what it is compared with."""
        if self.config.objective == "samples":
            return leave_one_out(costs)
        plans = self.greedily(self.policy, batch)
        usual = scaled(batch, batch.deadheads(plans.arcs))  # (batch, 1)
        self.window.add(0, greedy=usual.mean())
        return usual - costs
