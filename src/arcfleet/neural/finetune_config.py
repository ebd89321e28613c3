"""Every setting of fine-tuning, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from arcfleet.errors import OptionError
from arcfleet.neural.pretrain_config import (
    Limits,
    PretrainConfig,
    require_choice,
    require_number,
)

Objective = Literal["imitate-best", "samples", "self-critical", "ppo"]
OBJECTIVES: tuple[Objective, ...] = ("imitate-best", "samples", "self-critical", "ppo")

ANCHORED: tuple[Objective, ...] = ("samples", "self-critical")
# Held the greedy gains of `samples` and the variety of its samples (docs/training-log.md).
USUAL_ANCHOR = 0.02

_LIMITS: dict[str, Limits] = {
    "copies": (int, 1, 10**5),
    "best_of": (int, 1, 10**5),
    "rollout_tokens": (int, 1, 10**9),
    "temperature": (float, 1e-3, 10**3),
    "anchor": (float, 0, 10**3),
    "lessons": (int, 1, 10**6),
    "epochs": (int, 1, 10**4),
    "ratio_clip": (float, 1e-6, 1),
    "baseline_steps": (int, 1, 10**9),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneConfig(PretrainConfig):
    """Settings of fine-tuning: those of `PretrainConfig`, some with other values, and more.

    A step draws plans and learns from them, in one update of the weights or several.

    Parameters
    ----------
    objective
        What to learn from sampled plans. "imitate-best" imitates the best plan found so
        far of each instance. The others raise the expected return: "samples" compares
        each plan with the others of its instance, "self-critical" with the greedy plan,
        "ppo", the paper's, single decisions with the greedy plan of a policy that is
        replaced now and then.
    copies
        Plans sampled of each instance.
    best_of
        Plans of which only the best counts for "samples", fewer than `copies`: each plan is
        worth what it adds to the best of so many. 1 for plans that are good in the mean.
    rollout_tokens
        Arcs of all plans that are built side by side: a scale with more arcs has fewer
        instances in a step.
    temperature
        Of the sampling. All but "imitate-best" improve the policy at this temperature,
        so that a low one learns from plans about as good as the greedy one.
    anchor
        What a plan of "samples" or "self-critical" pays for each nat by which its decisions
        have left those of the first model, in the unit of the instance; None for
        USUAL_ANCHOR. Without it reinforcement makes a policy so sure that all its samples
        are the same.
    moments, tokens
        States drawn of each plan, and arcs of all states of an update.
    route_order, directions
        Of the plans that "imitate-best" imitates.
    unbound
        Share of steps of "samples" and "self-critical" whose plans are tours, split by the
        path optimiser, and of lessons of "imitate-best" that show plans as tours; not for
        "ppo".
    lessons
        Updates of a step of "imitate-best".
    epochs
        How often a step of "ppo" goes through its states.
    ratio_clip
        Epsilon of "ppo".
    standardise
        Whether the advantages of a step of "ppo" are brought to mean 0 and deviation 1.
        Not in the paper: sampled rollouts are mostly worse than greedy ones, so without
        it nearly every choice is held to be bad.
    baseline_steps
        Steps of "ppo" between two tests of whether the policy beats the baseline.
    """

    objective: Objective = "samples"
    copies: int = 16
    best_of: int = 1
    rollout_tokens: int = 800_000
    temperature: float = 0.5
    anchor: float | None = None
    lessons: int = 20
    epochs: int = 3
    ratio_clip: float = 0.1
    standardise: bool = False
    baseline_steps: int = 10
    moments: int = 4
    tokens: int = 400_000
    learning_rate: float = 3e-5
    warm_up_steps: int = 5
    weight_decay: float = 0.0
    average_decay: float = 0.99
    validations: int = 4
    log_steps: int = 1

    def __post_init__(self) -> None:
        """Check every setting."""
        # By name: a class with slots is made twice, and super() finds the wrong one.
        PretrainConfig.__post_init__(self)
        for name, limits in _LIMITS.items():
            value = getattr(self, name)
            if name != "anchor" or value is not None:
                require_number(name, value, limits)
        if type(self.standardise) is not bool:
            raise OptionError(
                f"expected standardise to be true or false, got {self.standardise!r:.40}"
            )
        require_choice("objective", self.objective, OBJECTIVES)
        if self.objective == "samples" and self.copies < 2:
            raise OptionError(
                "expected at least 2 copies for the objective samples, which compares "
                f"them, got {self.copies}"
            )
        if self.best_of > 1 and self.objective != "samples":
            raise OptionError(
                f"expected best_of to be 1 for the objective {self.objective}, got "
                f"{self.best_of}: only samples has it"
            )
        if self.best_of > 1 and self.best_of >= self.copies:
            raise OptionError(
                f"expected best_of to be below copies ({self.copies}), got {self.best_of}"
            )
        if self.unbound and self.objective == "ppo":
            raise OptionError(
                f"expected unbound to be 0 for the objective ppo, got {self.unbound}: it "
                "builds plans under the capacity only"
            )
        if self.anchor and self.objective not in ANCHORED:
            raise OptionError(
                f"expected no anchor for the objective {self.objective}, got "
                f"{self.anchor}: only samples and self-critical have one"
            )

    @property
    def cost_per_nat(self) -> float:
        """What leaving the first model costs: the anchor, or what is usual."""
        if self.objective not in ANCHORED:
            return 0.0
        return USUAL_ANCHOR if self.anchor is None else self.anchor

    def instances(self, arcs: int, rows: int, available: int) -> tuple[int, int]:
        """Give the instances of a step, and of an update; the first in whole updates.

        Parameters
        ----------
        arcs
            Of an instance.
        rows
            Plans of an instance that are built side by side.
        available
            Instances of the data set.
        """
        states = self.copies * self.moments
        update = min(available, max(1, self.tokens // (arcs * states)))
        step = min(available, max(1, self.rollout_tokens // (arcs * rows)))
        update = min(update, step)
        return step // update * update, update
