"""n-step Q-learning (Khalil et al. 2017) on plans that are built side by side."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from arcfleet.neural.env import State, action_mask
from arcfleet.neural.train.loop import TrainingLoop
from arcfleet.neural.train.steps import compiled_by_scale, draw_choices, states_at
from arcfleet.paper.baselines.replay import Replay
from arcfleet.paper.baselines.rollouts import draw_rows, instances_at, sampled_plans
from arcfleet.paper.baselines.s2v_dqn import S2vDqn
from arcfleet.paper.baselines.targets import best_values, n_step_gains

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.train.data import InstanceSet, LabelledSet
    from arcfleet.neural.train.loop import TrainingProgress
    from arcfleet.neural.train.run import RunFolder
    from arcfleet.paper.baselines.config import S2vDqnTraining
    from arcfleet.paper.baselines.s2v_dqn import PreparedGraph


class EpsilonGreedy:
    """A policy that mostly chooses the arc of the largest value, else any.

    Parameters
    ----------
    model
        Gives the values.
    epsilon
        Chance of any arc.
    """

    def __init__(self, model: S2vDqn, epsilon: float) -> None:
        self.model = model
        self.step_numbers = model.step_numbers
        self.epsilon = epsilon

    def prepare(self, batch: ArcBatch) -> PreparedGraph:
        """Work out what stays the same at every step."""
        return self.model.prepare(batch)

    def __call__(self, prepared: PreparedGraph, state: State, allowed: Tensor) -> Tensor:
        """Give the logarithms of the chances, (batch, copies, arcs)."""
        best = self.model(prepared, state, allowed).argmax(-1, keepdim=True)
        chances = self.epsilon * allowed / allowed.sum(-1, keepdim=True)
        largest = torch.zeros_like(chances).scatter(-1, best, 1 - self.epsilon)
        return (chances + largest).log()


class QLearning(TrainingLoop[S2vDqn]):
    """A run of S2V-DQN; `train_baseline` is the usual way.

    Parameters
    ----------
    config, model, data, validation, folder, threads, tell
        As those of `TrainingLoop`.
    """

    def __init__(
        self,
        config: S2vDqnTraining,
        model: S2vDqn,
        data: Sequence[InstanceSet],
        validation: Sequence[LabelledSet],
        folder: RunFolder,
        threads: int,
        tell: Callable[[TrainingProgress], None],
    ) -> None:
        super().__init__(config, model, data, validation, folder, threads, tell)
        self.config = config
        self.target = copy.deepcopy(model).requires_grad_(False).eval()
        self.replays = [
            # At worst every task is a route of its own.
            Replay(config.replay_plans, 2 * int(each.batch.num_tasks.amax()), self.device)
            for each in data
        ]
        target = self.target

        def loss_of(
            batch: ArcBatch,
            state: State,
            choice: Tensor,
            gained: Tensor,
            later: State,
            over: Tensor,
            padded: bool,
        ) -> Tensor:
            with torch.no_grad():
                rest = best_values(target, batch, later, padded)
                wanted = gained + rest.masked_fill(over, 0.0)
            prepared = model.prepare(batch, padded=padded)
            values = model(prepared, state, action_mask(batch, state))
            chosen = values.gather(-1, choice[..., None])[..., 0]
            return functional.smooth_l1_loss(chosen, wanted)

        self._loss_of: Callable[..., Tensor] = loss_of
        if config.compile:
            self._loss_of = compiled_by_scale(loss_of, len(data))

    def learn(self, rate: float) -> None:
        """Build plans of some instances, then learn from choices of these and others."""
        config = self.config
        number = self.draw_set()
        data, replay = self.sets[number], self.replays[number]
        epsilon = config.epsilon(config.progress(self.step, self.seconds))
        count = min(len(data), max(1, config.rollout_tokens // data.batch.num_arcs))
        rows = draw_rows(data, count, self.generator)
        batch = instances_at(data, rows, self.generator, flip=config.flip_axes)
        policy = EpsilonGreedy(self.learner.working, epsilon)
        arcs = sampled_plans(policy, batch, self.generator)  # (batch, 1, steps)
        costs = batch.deadheads(arcs) / batch.scale[:, None]
        self.window.add(0, sampled=costs.mean(), epsilon=epsilon)
        replay.add(rows, arcs[:, 0])
        for _ in range(config.updates):
            self._update(data, replay, rate)

    def _update(self, data: InstanceSet, replay: Replay, rate: float) -> None:
        config = self.config
        count = max(1, config.tokens // (data.batch.num_arcs * config.moments))
        rows, arcs = replay.draw(count, self.generator)
        batch = instances_at(data, rows, self.generator, flip=config.flip_axes)
        arcs = arcs[:, None]  # (plans, 1, steps)
        moments, _ = draw_choices(arcs, config.moments, self.generator)
        state, choice = states_at(batch, arcs, moments)
        gains = n_step_gains(batch, arcs, moments, config.n_steps)
        later, _ = states_at(batch, arcs, gains.later)
        loss = self._loss_of(
            batch, state, choice, gains.gained, later, gains.over, not data.full
        )
        self.learner.update(loss, rate)
        self.window.add(choice.numel(), loss=loss.detach())
        if self.learner.updates % config.target_updates == 0:
            self.target.load_state_dict(self.learner.master.state_dict())

    def extra_tensors(self) -> dict[str, Tensor]:
        """Give what a checkpoint must hold beside the learner, on the CPU."""
        extra = {
            f"target.{name}": tensor.cpu().clone()
            for name, tensor in self.target.state_dict().items()
        }
        for number, replay in enumerate(self.replays):
            extra[f"replay.{number}.rows"] = replay.rows.cpu().clone()
            extra[f"replay.{number}.arcs"] = replay.arcs.cpu().clone()
            extra[f"replay.{number}.added"] = torch.tensor(replay.added)
        return extra

    def restore_extra(self, tensors: dict[str, Tensor]) -> None:
        """Take over what `extra_tensors` gave."""
        names = self.target.state_dict().keys()
        self.target.load_state_dict({name: tensors[f"target.{name}"] for name in names})
        for number, replay in enumerate(self.replays):
            replay.rows.copy_(tensors[f"replay.{number}.rows"])
            replay.arcs.copy_(tensors[f"replay.{number}.arcs"])
            replay.added = int(tensors[f"replay.{number}.added"])
