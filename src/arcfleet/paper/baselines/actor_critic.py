"""REINFORCE with a critic (Nazari et al. 2018): one plan of each instance, one update."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from arcfleet.neural.env import action_mask, reset
from arcfleet.neural.train.loop import TrainingLoop
from arcfleet.neural.train.steps import (
    compiled_by_scale,
    draw_choices,
    num_choices,
    reinforce_loss,
    states_at,
)
from arcfleet.paper.baselines.rollouts import draw_rows, instances_at, sampled_plans
from arcfleet.paper.baselines.vrp_dl import VrpDl

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.train.data import InstanceSet, LabelledSet
    from arcfleet.neural.train.loop import TrainingProgress
    from arcfleet.neural.train.run import RunFolder
    from arcfleet.paper.baselines.config import VrpDlTraining
    from arcfleet.paper.baselines.vrp_dl import PreparedElements


class ActorCritic(TrainingLoop[VrpDl]):
    """A run of VRP-DL; `train_baseline` is the usual way.

    The decoder runs along whole plans; gradients of the two attentions come from some
    moments of each, which bounds the memory.

    Parameters
    ----------
    config, model, data, validation, folder, threads, tell
        As those of `TrainingLoop`.
    """

    def __init__(
        self,
        config: VrpDlTraining,
        model: VrpDl,
        data: Sequence[InstanceSet],
        validation: Sequence[LabelledSet],
        folder: RunFolder,
        threads: int,
        tell: Callable[[TrainingProgress], None],
    ) -> None:
        super().__init__(config, model, data, validation, folder, threads, tell)
        self.config = config
        self.model = model
        self._point: Callable[..., Tensor] = model
        if config.compile:
            # Not the decoder: an LSTM over whole plans is one fast kernel already.
            self._point = compiled_by_scale(model, 2 * len(data))

    def learn(self, rate: float) -> None:
        """Build plans of some instances and raise the chance of those better than hoped."""
        config, model = self.config, self.model
        data = self.sets[self.draw_set()]
        arcs_of_plan = data.batch.num_arcs * config.moments
        count = min(len(data), max(1, config.tokens // arcs_of_plan))
        rows = draw_rows(data, count, self.generator)
        batch = instances_at(data, rows, self.generator, flip=config.flip_axes)
        arcs = sampled_plans(model, batch, self.generator)  # (batch, 1, steps)
        costs = batch.deadheads(arcs) / batch.scale[:, None]  # (batch, 1)

        prepared = model.prepare(batch, padded=not data.full)
        hoped = model.critic(batch, self._first_chances(prepared, batch))  # (batch, 1)
        tasks = batch.num_tasks[:, None]
        # By tasks, so that large instances count no more than small ones.
        critic_loss = ((hoped - costs) / tasks).square().mean()
        worth = (hoped.detach() - costs) * num_choices(arcs)
        actor_loss = reinforce_loss(self._chosen(prepared, batch, arcs), worth)
        loss = actor_loss + config.critic_weight * critic_loss
        self.learner.update(loss, rate)
        self.window.add(
            count * config.moments,
            loss=loss.detach(),
            critic_loss=critic_loss.detach(),
            sampled=costs.mean(),
        )

    def _chosen(self, prepared: PreparedElements, batch: ArcBatch, arcs: Tensor) -> Tensor:
        """Give the log-probabilities of some choices of the plans, (batch, moments)."""
        moments, _ = draw_choices(arcs, self.config.moments, self.generator)
        state, choice = states_at(batch, arcs, moments)
        outputs = self.model.remember_all(prepared, arcs[:, 0])  # (batch, steps, width)
        wide = moments[:, 0, :, None].expand(-1, -1, outputs.shape[-1])
        remembered = prepared._replace(memory=outputs.gather(1, wide))
        logits = self._point(remembered, state, action_mask(batch, state))
        return logits.log_softmax(-1).gather(-1, choice[..., None])[..., 0]

    @torch.no_grad()
    def _first_chances(self, prepared: PreparedElements, batch: ArcBatch) -> Tensor:
        """Give the probability of each arc to be the first, (batch, arcs)."""
        state = reset(batch)
        remembered = self.model.remember(prepared, state)
        logits = self._point(remembered, state, action_mask(batch, state))
        return logits.softmax(-1)[:, 0]
