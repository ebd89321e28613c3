"""Every setting of the training of the baselines, checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from arcfleet.errors import OptionError
from arcfleet.neural.train.config import Limits, Precision, PretrainConfig, require_number
from arcfleet.paper.baselines.s2v_dqn import S2vDqnConfig
from arcfleet.paper.baselines.vrp_dl import VrpDlConfig

_LIMITS: dict[str, Limits] = {
    "rollout_tokens": (int, 1, 10**9),
    "n_steps": (int, 1, 10**6),
    "updates": (int, 1, 10**6),
    "replay_plans": (int, 1, 10**8),
    "target_updates": (int, 1, 10**9),
    "epsilon_start": (float, 0, 1),
    "epsilon_end": (float, 0, 1),
    "epsilon_share": (float, 0, 1),
    "critic_weight": (float, 0, 10**6),
}


# Settings of labelled plans, which the baselines do without.
_UNUSED = ("route_order", "directions")


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineConfig(PretrainConfig):
    """What the trainings of all baselines share: settings of `PretrainConfig`.

    They learn from plans of their own, so `route_order` and `directions` mean nothing
    here, and in float32.
    """

    precision: Precision = "float32"
    weight_decay: float = 0.0
    warm_up_steps: int = 20
    average_decay: float = 0.99
    validations: int = 4
    log_steps: int = 10

    def __post_init__(self) -> None:
        """Check every setting."""
        # By name: a class with slots is made twice, and super() finds the wrong one.
        PretrainConfig.__post_init__(self)
        for name, limits in _LIMITS.items():
            if hasattr(self, name):
                require_number(name, getattr(self, name), limits)
        settings = BaselineConfig.__dataclass_fields__
        for name in (*_UNUSED, "precision"):
            if getattr(self, name) != settings[name].default:
                raise OptionError(
                    f"expected no setting {name} in the training of a baseline, got "
                    f"{getattr(self, name)!r:.40}: leave it out"
                )

    def as_facts(self) -> dict[str, Any]:
        """Give the settings as JSON can hold them."""
        facts = PretrainConfig.as_facts(self)
        return {name: value for name, value in facts.items() if name not in _UNUSED}


@dataclass(frozen=True, slots=True, kw_only=True)
class S2vDqnTraining(BaselineConfig):
    """Settings of S2V-DQN.

    A step builds plans, keeps them in the replay buffer, and makes some updates with
    choices drawn from the buffer.

    Parameters
    ----------
    rollout_tokens
        Arcs of all plans that are built side by side in a step: a scale with more arcs
        has fewer plans.
    updates
        Of the weights, in a step.
    moments, tokens
        Choices drawn of each plan, and arcs of all choices of an update.
    n_steps
        Choices whose driving costs are summed before the target network says the rest.
    replay_plans
        Plans that the replay buffer of a data set holds.
    target_updates
        Updates after which the target network is replaced.
    epsilon_start, epsilon_end, epsilon_share
        Chance of a random choice: it falls evenly from the first to the second over this
        share of the run.
    """

    model: S2vDqnConfig = field(default_factory=S2vDqnConfig)  # type: ignore[assignment]
    rollout_tokens: int = 400_000
    updates: int = 32
    moments: int = 4
    tokens: int = 200_000
    n_steps: int = 5
    replay_plans: int = 20_000
    target_updates: int = 100
    epsilon_start: float = 1.0
    epsilon_end: float = 0.05
    epsilon_share: float = 0.5
    learning_rate: float = 1e-3

    def epsilon(self, share: float) -> float:
        """Give the chance of a random choice when this share of the run is over."""
        fallen = min(1.0, share / self.epsilon_share) if self.epsilon_share else 1.0
        return self.epsilon_start + (self.epsilon_end - self.epsilon_start) * fallen


@dataclass(frozen=True, slots=True, kw_only=True)
class VrpDlTraining(BaselineConfig):
    """Settings of VRP-DL.

    A step builds one plan of each of some instances, and makes one update.

    Parameters
    ----------
    moments, tokens
        Choices of each plan that the gradient comes from, and arcs of all of them: a
        scale with more arcs has fewer plans.
    critic_weight
        Of the critic's loss beside the actor's.
    """

    model: VrpDlConfig = field(default_factory=VrpDlConfig)  # type: ignore[assignment]
    moments: int = 16
    tokens: int = 4_000_000
    critic_weight: float = 1.0
    learning_rate: float = 1e-3
