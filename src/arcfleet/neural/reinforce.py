"""REINFORCE on whole plans, compared with each other or with the greedy plan."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from arcfleet.neural.finetuning import Finetuning, scaled
from arcfleet.neural.learning_form import LearningForm
from arcfleet.neural.plans import optimise
from arcfleet.neural.policy_gradient import (
    divergence,
    leave_one_out,
    log_probabilities,
    logits_of,
    reinforce_loss,
)
from arcfleet.neural.shrink import as_instances, shrink
from arcfleet.neural.state import room_of_tours
from arcfleet.neural.trajectories import states_at

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.rollout import Rollout
    from arcfleet.neural.shrink import Rung


class Reinforce(Finetuning):
    """The objectives "samples" and "self-critical".

    Each plan's advantage is that over the mean of the other samples (Kool et al. 2019,
    "Buy 4 REINFORCE samples, get a baseline for free"), what it adds to the best of some
    of them, or that over the greedy plan (Rennie et al. 2017). Gradients come from some
    moments of each plan, which bounds the memory. An anchor holds the policy near the
    first one, whose samples differ from each other.
    """

    works_in_team = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        # Before a run is resumed, so that it is the first model then, too.
        first = copy.deepcopy(self.learner.working).requires_grad_(False).eval()
        self.first = LearningForm(first)

    def learn(self, rate: float) -> None:
        """Sample plans of some instances and raise the chance of the better ones."""
        config = self.config
        number = self.draw_set()
        data = self.sets[number]
        size, part = config.instances(
            data.batch.num_arcs, config.copies, self.available(data)
        )
        _, batch = self.draw_instances(data, size)
        bound = self.draw_bound()
        rollout = self.sampled(self.policy, batch, config.copies, bound=bound)
        costs = rollout_costs(batch, rollout, bound=bound, threads=self.threads)
        self.window.add(0, sampled=costs.mean())
        advantages = self.advantages(batch, costs, bound)
        # Found arc by arc, so once for all moments.
        room = None if bound else room_of_tours(batch, rollout.arcs)
        rungs = self.rungs_of(number)
        moments = max(1, round(config.moments / len(rungs)))
        drawn = [self.draw_choices(rollout.arcs, moments, rung) for rung in rungs]
        for rows in torch.arange(size, device=self.device).view(-1, part):
            some, arcs = batch.select(rows), rollout.arcs[rows]
            room_here = None if room is None else room[rows]
            for place, (when, decisions) in enumerate(drawn, start=1):
                # Of the rung, (batch, copies); each moment stands for all of them.
                count = decisions[rows].repeat_interleave(moments, dim=1)
                worth = advantages[rows].repeat_interleave(moments, dim=1)
                rung = rungs[place - 1]
                loss = self._loss(
                    some, arcs, when[rows], worth, count, rung, not data.full, room_here
                )
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
        count: Tensor,
        rung: Rung | None,
        padded: bool,
        room: Tensor | None,
    ) -> Tensor:
        bound = room is None
        state, choice = states_at(batch, arcs, moments, room)
        if rung is not None:
            alone, rows = as_instances(state)
            small = shrink(batch, alone, rung.length, rows)
            batch, state = small.batch, small.state
            choice = small.slot.gather(1, choice.reshape(-1, 1))
            worth, count = worth.reshape(-1, 1), count.reshape(-1, 1)
        padded = padded or bool(rung)
        logits = logits_of(self.form, batch, state, padded=padded, bound=bound)
        chosen = log_probabilities(logits, choice, self.config.temperature)
        loss = reinforce_loss(chosen, worth * count)
        self.window.add(choice.numel(), loss=loss.detach())
        if self.config.cost_per_nat:
            with torch.no_grad():
                first = logits_of(self.first, batch, state, padded=padded, bound=bound)
            left = (divergence(logits, first) * count).mean()
            self.window.add(0, left=left.detach())
            loss = loss + self.config.cost_per_nat * left
        return loss

    def advantages(self, batch: ArcBatch, costs: Tensor, bound: bool = True) -> Tensor:
        """Say what each sample is worth beside what it is compared with."""
        if self.config.objective == "samples":
            return leave_one_out(costs, self.config.best_of)
        plans = self.greedily(self.policy, batch, bound=bound)
        usual = rollout_costs(batch, plans, bound=bound, threads=self.threads)  # (batch, 1)
        self.window.add(0, greedy=usual.mean())
        return usual - costs


def rollout_costs(
    batch: ArcBatch, rollout: Rollout, *, bound: bool, threads: int = 1
) -> Tensor:
    """Give what plans cost beside services and routes, in the instances' scale.

    Parameters
    ----------
    batch
        The instances.
    rollout
        Their plans.
    bound
        Whether they were built under the capacity; else they are tours, which the path
        optimiser splits first. Fleet limits do not count.
    threads
        Of the path optimiser.

    Returns
    -------
    costs
        (batch, copies).
    """
    if bound:
        return scaled(batch, batch.deadheads(rollout.arcs))
    boundless = replace(batch, fleet_limit=torch.zeros_like(batch.fleet_limit))
    plans = optimise(boundless, rollout, choose_directions=False, threads=threads)
    device = batch.real.device
    costs = torch.from_numpy(plans.costs).to(device)
    routes = torch.from_numpy(plans.starts_route.sum(-1)).to(device)
    services = batch.service_cost.long().gather(1, rollout.arcs.flatten(1))
    fixed = services.view(rollout.arcs.shape).sum(-1) + routes * batch.route_cost[:, None]
    return scaled(batch, costs - fixed)
