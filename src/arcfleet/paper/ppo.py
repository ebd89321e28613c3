"""PPO with a self-critical baseline: Algorithm 1 of the paper, with two corrections.

The paper's advantage of a decision compares a sampled rollout with a greedy one of the
baseline, but the sampled one need not start with the decision: here it does. And the
baseline is replaced when a paired t-test on the validation sets says that the policy is
better, where the paper looks at the test set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import torch

from arcfleet.errors import OptionError
from arcfleet.neural.env import State, step
from arcfleet.neural.model import DaamConfig
from arcfleet.neural.train.config import (
    OptimiserConfig,
    RunConfig,
    check_training,
    setting,
)
from arcfleet.neural.train.finetune import (
    PolicyGradientTrainer,
    batch_sizes,
    deciding,
    scaled,
)
from arcfleet.neural.train.loop import below
from arcfleet.neural.train.run import run_training
from arcfleet.neural.train.steps import (
    LearningForm,
    draw_choices,
    log_probabilities,
    states_at,
)
from arcfleet.paper.gaps import student_quantile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.decoding import FastPolicy
    from arcfleet.neural.train.data import InstanceSet, LabelledSet
    from arcfleet.neural.train.loop import Trained
    from arcfleet.neural.train.run import RunOptions

#: With fewer pairs the test hardly ever decides.
LEAST_PAIRS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PpoConfig:
    """Settings of PPO with a self-critical baseline.

    Learning rate, temperature and clipping are the paper's; it does not state the others.

    Parameters
    ----------
    model
        Sizes of the model; their class says which model it is.
    run
        Settings of the run.
    optimiser
        Settings of the optimiser.
    samples
        Rollouts of the baseline sampled of each instance.
    temperature
        Temperature of the sampled rollouts.
    epochs
        Passes over the states of a step.
    ratio_clip
        Clipping of the probability ratio, epsilon of PPO-clip.
    normalise_advantages
        Normalisation of the advantages of a step to mean 0 and deviation 1. Not in the
        paper: sampled rollouts are mostly worse than greedy ones, so without it nearly
        every choice counts as bad.
    literal_advantages
        Advantages as in Algorithm 1: the policy's rollout starts anew from the state, and
        not with the decision, whose advantage it is then not.
    baseline_steps
        Steps between two tests of whether the policy beats the baseline.
    flip_axes
        Random signs of the MDS axes as an augmentation.
    decision_steps
        Decision steps sampled of each rollout.
    tokens
        Arcs of all states of an update. Larger instances have fewer states.
    rollout_tokens
        Arcs of all rollouts of a step. Larger instances have fewer rollouts.
    """

    model: DaamConfig = field(default_factory=DaamConfig)
    run: RunConfig = field(default_factory=lambda: RunConfig(validations=4, log_steps=1))
    optimiser: OptimiserConfig = field(
        default_factory=lambda: OptimiserConfig(
            learning_rate=1e-4, warm_up_steps=5, weight_decay=0.0, ema_decay=0.99
        )
    )
    samples: int = setting(16, 1, 10**5)
    temperature: float = setting(1.0, 1e-3, 10**3)
    epochs: int = setting(3, 1, 10**4)
    ratio_clip: float = setting(0.1, 1e-6, 1)
    normalise_advantages: bool = setting(False)
    literal_advantages: bool = setting(False)
    baseline_steps: int = setting(10, 1, 10**9)
    flip_axes: bool = setting(True)
    decision_steps: int = setting(4, 1, 10**4)
    tokens: int = setting(400_000, 1, 10**9)
    rollout_tokens: int = setting(800_000, 1, 10**9)

    def __post_init__(self) -> None:
        """Check every setting."""
        check_training(self)


def ppo(
    out: Path | str,
    config: PpoConfig,
    *,
    data: Sequence[Path | str],
    init: Path | str,
    **options: Unpack[RunOptions],
) -> Trained:
    """Train a model further by PPO, as `finetune` does by RLOO.

    The validation sets decide when the policy replaces the baseline, so there must be some.
    """
    return run_training(PpoTrainer, out, config, data=data, init=init, **options)


class Comparison(NamedTuple):
    """Outcome of a paired test."""

    better: bool
    gain: float


def compare_costs(old: Tensor, new: Tensor) -> Comparison:
    """Test costs of the same instances, both (instances,), pair by pair."""
    gains = (old - new).double()
    count = len(gains)
    mean, spread = gains.mean().item(), gains.std().item()
    if spread == 0:
        return Comparison(mean > 0, mean)
    statistic = mean / (spread / math.sqrt(count))
    return Comparison(statistic > student_quantile(count - 1, 0.9), mean)


def clipped_loss(
    log_probability: Tensor, old: Tensor, advantage: Tensor, weight: Tensor, clip: float
) -> Tensor:
    """Compute the loss of PPO-clip (Schulman et al. 2017), as the paper has it."""
    ratio = (log_probability - old).exp()
    bounded = ratio.clamp(1 - clip, 1 + clip)
    return -(weight * torch.minimum(ratio * advantage, bounded * advantage)).mean()


class Decisions(NamedTuple):
    """Decisions to learn from; all of shape (batch, samples, ...)."""

    state: State  # of the baseline's rollouts
    choice: Tensor
    old: Tensor  # log-probability of the choice under the baseline
    # Saving of the policy's rollout that starts with the choice (or, as Algorithm 1 has it,
    # anew) over the baseline's greedy one from the same state, in the instance's scale.
    advantage: Tensor
    weight: Tensor  # number of decisions of the rollout, over the mean of all rollouts

    def rows(self, rows: Tensor) -> Decisions:
        """Return those of some instances."""
        state = State(*(tensor[rows] for tensor in self.state))
        return Decisions(state, *(tensor[rows] for tensor in self[1:]))


class PpoTrainer(PolicyGradientTrainer[PpoConfig]):
    """A run of PPO with a self-critical baseline."""

    phase = "ppo"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.baseline = self.decoding_form(self.reference_form())

    @classmethod
    def require_validation(cls, validation: Sequence[LabelledSet]) -> None:
        """Raise OptionError unless there are enough instances for the paired test."""
        count = sum(len(labelled) for labelled in validation)
        if count < LEAST_PAIRS:
            raise OptionError(
                f"expected at least {LEAST_PAIRS} instances to validate on, which decide "
                f"when PPO replaces its baseline, got {count}: give validation sets"
            )

    def train_step(self, rate: float) -> None:
        """Collect decisions of the baseline and learn from their advantages."""
        config = self.config
        data = self.data[self.draw_set()]
        arcs = config.samples * config.decision_steps * data.batch.num_arcs
        count, part = batch_sizes(
            config, rolled_out=arcs, learned=arcs, available=len(data)
        )
        batch = self.draw_instances(data, count)
        decisions = self.collect(batch, data, part)
        for _ in range(config.epochs):
            order = torch.randperm(count, device=self.device, generator=self.generator)
            for rows in order.view(-1, part):
                state, choice, old, advantage, weight = decisions.rows(rows)
                chosen = self.chosen(batch.select(rows), state, choice, data)
                loss = clipped_loss(chosen, old, advantage, weight, config.ratio_clip)
                self.learner.update(loss, rate)
                self.metrics.add(choice.numel(), loss=loss.detach())
        if (self.step + 1) % config.baseline_steps == 0:
            self._test_baseline()

    def chosen(
        self, batch: ArcBatch, state: State, choice: Tensor, data: InstanceSet
    ) -> Tensor:
        """Compute the policy's log-probability of each choice, (batch, samples).

        Batch norm has its fixed statistics, as in the baseline and in the rollouts: with
        those of the batch a tenth of the ratios would be clipped before the first update.
        """
        with deciding(self.learner.working):
            logits = self.form.logits(batch, state, padded=not data.full)
        return log_probabilities(logits, choice, self.config.temperature)

    def collect(self, batch: ArcBatch, data: InstanceSet, part: int) -> Decisions:
        """Sample decisions of the baseline and compute their advantages."""
        config = self.config
        rollout = self.sample(self.baseline, batch, config.samples)
        drawn, count = draw_choices(rollout.arcs, config.decision_steps, self.generator)
        state, choice = states_at(batch, rollout.arcs, drawn)
        advantage = self.advantages(batch, state, choice)
        weight = (count.double() / count.double().mean()).repeat_interleave(
            config.decision_steps, dim=1
        )
        old = torch.cat(list(self._old(batch, state, choice, data, part)))
        self.metrics.add(0, advantage=advantage.mean())
        if config.normalise_advantages:
            spread = advantage.std(correction=0).clamp(min=1e-6)
            advantage = (advantage - advantage.mean()) / spread
        return Decisions(state, choice, old, advantage, weight.to(old))

    def advantages(self, batch: ArcBatch, state: State, choice: Tensor) -> Tensor:
        """Compare the policy's rollouts from choices with the baseline's greedy ones."""
        literal = self.config.literal_advantages
        first = state if literal else step(batch, state, choice)
        own = self.sample(self.policy, batch, choice.shape[1], initial=first).arcs
        if not literal:
            own = torch.cat([choice[..., None], own], dim=-1)  # it starts with it
        usual = self.greedy(self.baseline, batch, initial=state)
        cost = batch.deadheads(own, before=state.previous)
        usual_cost = batch.deadheads(usual.arcs, before=state.previous)
        return scaled(batch, usual_cost - cost)

    def extra_tensors(self) -> dict[str, Tensor]:
        """Return the baseline's weights."""
        weights = self.baseline.model.state_dict()
        return {f"baseline.{name}": t.cpu().clone() for name, t in weights.items()}

    def restore_extra(self, tensors: dict[str, Tensor]) -> None:
        """Restore the baseline's weights."""
        self.baseline.model.load_state_dict(below(tensors, "baseline."))

    @torch.no_grad()
    def _old(
        self, batch: ArcBatch, state: State, choice: Tensor, data: InstanceSet, part: int
    ) -> Iterator[Tensor]:
        form = LearningForm(self.baseline.model)
        for rows in torch.arange(len(batch), device=self.device).view(-1, part):
            here = State(*(tensor[rows] for tensor in state))
            logits = form.logits(batch.select(rows), here, padded=not data.full)
            yield log_probabilities(logits, choice[rows], self.config.temperature)

    def _test_baseline(self) -> None:
        """Replace the baseline by the policy if that is better on the validation sets."""
        old, new = (self._greedy_costs(policy) for policy in (self.baseline, self.policy))
        better, gain = compare_costs(old, new)
        if better:
            self.baseline.model.load_state_dict(self.learner.working.state_dict())
        values = {"baseline_gain": gain, "baseline_replaced": float(better)}
        self.log(values, self.step + 1)

    def _greedy_costs(self, policy: FastPolicy) -> Tensor:
        costs = []
        for labelled in self.validation:
            arcs = self.greedy(policy, labelled.batch).arcs
            costs.append(scaled(labelled.batch, labelled.batch.deadheads(arcs))[:, 0])
        return torch.cat(costs)
