"""PPO with a self-critical baseline: Algorithm 1 of the paper, with two corrections.

The paper's advantage of a decision compares a sampled rollout with a greedy one of the
baseline, but the sampled one need not start with the decision: here it does. And the
baseline is replaced when a paired t-test on the validation sets says that the policy is
better, where the paper looks at the test set.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from arcfleet.errors import OptionError
from arcfleet.neural.env import State, step
from arcfleet.neural.train.finetune import Finetuning, scaled
from arcfleet.neural.train.steps import (
    LearningForm,
    clipped_loss,
    draw_choices,
    log_probabilities,
    logits_of,
    states_at,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.decoding import FastPolicy
    from arcfleet.neural.train.data import InstanceSet, LabelledSet


#: With fewer pairs the quantile below is not exact, and the test hardly ever decides.
LEAST_PAIRS = 4


# 95 % of the standard normal distribution lie below.
_NORMAL = 1.6448536269514722


class Comparison(NamedTuple):
    """Outcome of a test.

    Parameters
    ----------
    better
        Whether the new costs are lower, by more than chance would make them.
    gain
        Mean of how much lower they are.
    """

    better: bool
    gain: float


def compare_costs(old: Tensor, new: Tensor) -> Comparison:
    """Compare costs of the same instances, both (instances,). Waits for the device."""
    gains = (old - new).double()
    count = len(gains)
    mean, spread = gains.mean().item(), gains.std().item()
    if spread == 0:
        return Comparison(mean > 0, mean)
    statistic = mean / (spread / math.sqrt(count))
    return Comparison(statistic > t_quantile(count - 1), mean)


def t_quantile(freedom: int) -> float:
    """Give what 95 % of Student's t distribution lie below; from 3 degrees of freedom.

    The Cornish-Fisher expansion (Abramowitz and Stegun 26.7.5); at 3 degrees of freedom it
    is 0.05 % too small, from then on ever closer.
    """
    z = _NORMAL
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term / float(freedom) ** power for power, term in enumerate(terms))


class Decisions(NamedTuple):
    """Decisions to learn from; all of shape (batch, copies, ...).

    Parameters
    ----------
    state, choice
        Where plans of the baseline stood, and what they chose.
    old
        Log-probability of the choice under the baseline.
    advantage
        How much cheaper the policy's rollout is that starts with the choice than the
        baseline's greedy one from the same state, in the instance's scale.
    weight
        Decisions of its plan, over the mean of all plans.
    """

    state: State
    choice: Tensor
    old: Tensor
    advantage: Tensor
    weight: Tensor

    def rows(self, rows: Tensor) -> Decisions:
        """Give those of some instances."""
        state = State(*(tensor[rows] for tensor in self.state))
        return Decisions(state, *(tensor[rows] for tensor in self[1:]))


class Proximal(Finetuning):
    """The objective "ppo"."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        baseline = copy.deepcopy(self.learner.working).requires_grad_(False).eval()
        self.baseline = self.fast(baseline)

    @classmethod
    def require_validation(cls, validation: Sequence[LabelledSet]) -> None:
        """Raise OptionError unless there are instances to judge the baseline by."""
        count = sum(len(labelled) for labelled in validation)
        if count < LEAST_PAIRS:
            raise OptionError(
                f"expected at least {LEAST_PAIRS} instances to validate on, which decide "
                f"when ppo replaces its baseline, got {count}: give --validation"
            )

    def learn(self, rate: float) -> None:
        """Collect decisions of the baseline and learn what they were worth."""
        config = self.config
        data = self.sets[self.draw_set()]
        states = config.copies * config.moments
        count, part = config.instances(data.batch.num_arcs, states, len(data))
        _, batch = self.draw_instances(data, count)
        decisions = self.collect(batch, data, part)
        for _ in range(config.epochs):
            order = torch.randperm(count, device=self.device, generator=self.generator)
            for rows in order.view(-1, part):
                state, choice, old, advantage, weight = decisions.rows(rows)
                some = batch.select(rows)
                logits = logits_of(self.form, some, state, padded=not data.full)
                chosen = log_probabilities(logits, choice, config.temperature)
                loss = clipped_loss(chosen, old, advantage, weight, config.ratio_clip)
                self.learner.update(loss, rate)
                self.window.add(choice.numel(), loss=loss.detach())
        if (self.step + 1) % config.baseline_steps == 0:
            self._challenge()

    def collect(self, batch: ArcBatch, data: InstanceSet, part: int) -> Decisions:
        """Draw decisions of the baseline's plans, and say what they were worth."""
        config = self.config
        plans = self.sampled(self.baseline, batch, config.copies)
        moments, count = draw_choices(plans.arcs, config.moments, self.generator)
        state, choice = states_at(batch, plans.arcs, moments)
        advantage = self.advantages(batch, state, choice)
        choices = count.double()
        weight = (choices / choices.mean()).repeat_interleave(config.moments, dim=1)
        old = torch.cat(list(self._old(batch, state, choice, data, part)))
        self.window.add(0, advantage=advantage.mean())
        if config.standardise:
            spread = advantage.std(correction=0).clamp(min=1e-6)
            advantage = (advantage - advantage.mean()) / spread
        return Decisions(state, choice, old, advantage, weight.to(old))

    def advantages(self, batch: ArcBatch, state: State, choice: Tensor) -> Tensor:
        """Compare the policy's rollouts from choices with the baseline's greedy ones."""
        after = step(batch, state, choice)
        own = self.sampled(self.policy, batch, choice.shape[1], first=after)
        driven = torch.cat([choice[..., None], own.arcs], dim=-1)  # it starts with it
        usual = self.greedily(self.baseline, batch, first=state)
        cost = batch.deadheads(driven, before=state.previous)
        usual_cost = batch.deadheads(usual.arcs, before=state.previous)
        return scaled(batch, usual_cost - cost)

    def extra_tensors(self) -> dict[str, Tensor]:
        """Give the baseline's weights."""
        weights = self.baseline.model.state_dict()
        return {f"baseline.{name}": t.cpu().clone() for name, t in weights.items()}

    def restore_extra(self, tensors: dict[str, Tensor]) -> None:
        """Take over the baseline's weights."""
        names = [name for name in tensors if name.startswith("baseline.")]
        self.baseline.model.load_state_dict(
            {name.removeprefix("baseline."): tensors[name] for name in names}
        )

    @torch.no_grad()
    def _old(
        self, batch: ArcBatch, state: State, choice: Tensor, data: InstanceSet, part: int
    ) -> Iterator[Tensor]:
        for rows in torch.arange(len(batch), device=self.device).view(-1, part):
            logits = logits_of(
                LearningForm(self.baseline.model),
                batch.select(rows),
                State(*(tensor[rows] for tensor in state)),
                padded=not data.full,
            )
            yield log_probabilities(logits, choice[rows], self.config.temperature)

    def _challenge(self) -> None:
        """Put the policy in the baseline's place if it is better on the validation sets."""
        old, new = (self._judge(policy) for policy in (self.baseline, self.policy))
        outcome = compare_costs(old, new)
        if outcome.better:
            self.baseline.model.load_state_dict(self.learner.working.state_dict())
        self.folder.log(
            {
                "step": self.step + 1,
                "seconds": round(self.seconds, 3),
                "baseline": {"gain": outcome.gain, "replaced": outcome.better},
            }
        )

    def _judge(self, policy: FastPolicy) -> Tensor:
        costs = []
        for labelled in self.validation:
            plans = self.greedily(policy, labelled.batch)
            costs.append(scaled(labelled.batch, labelled.batch.deadheads(plans.arcs))[:, 0])
        return torch.cat(costs)
