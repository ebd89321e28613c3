"""`arcfleet paper train`: the paper's model by the paper's recipe, and its baselines.

One command makes the data sets, labels them by MAENS up to Task40, pre-trains there, and
goes on by PPO scale after scale (`paper.toml`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from arcfleet.errors import OptionError
from arcfleet.neural.train.recipe import PHASES, Phase, RecipeConfig, train_recipe
from arcfleet.paper.baselines.train import (
    ON_CPU,
    ActorCriticTrainer,
    QLearningTrainer,
    S2vDqnTraining,
    VrpDlTraining,
)
from arcfleet.paper.ppo import PpoConfig, PpoTrainer

if TYPE_CHECKING:
    from collections.abc import Callable

    from arcfleet.neural.train.loop import TrainingProgress
    from arcfleet.neural.train.recipe import RecipeOutcome

PaperModel = Literal["daam", "s2v-dqn", "vrp-dl"]

#: Kinds of training of the paper's recipes.
PAPER_PHASES: dict[str, Phase] = {
    **PHASES,
    "ppo": Phase(PpoConfig, PpoTrainer),
    "s2v-dqn": Phase(S2vDqnTraining, QLearningTrainer, ON_CPU["s2v-dqn"]),
    "vrp-dl": Phase(VrpDlTraining, ActorCriticTrainer, ON_CPU["vrp-dl"]),
}

_HERE = Path(__file__).parent

#: Recipe of each model.
RECIPES: dict[PaperModel, Path] = {
    "daam": _HERE / "paper.toml",
    "s2v-dqn": _HERE / "baselines" / "s2v-dqn.toml",
    "vrp-dl": _HERE / "baselines" / "vrp-dl.toml",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Inputs of `arcfleet paper train`.

    Parameters
    ----------
    model
        Model to train, unless a recipe is given.
    recipe
        Files and limits.
    """

    model: PaperModel = field(default="daam", metadata={"positional": True})
    recipe: RecipeConfig

    def __post_init__(self) -> None:
        """Check the name of the model."""
        if self.model not in get_args(PaperModel):
            raise OptionError(
                f"expected model to be one of {', '.join(get_args(PaperModel))}, got "
                f"{self.model!r:.40}"
            )


def run(
    config: Config, progress: Callable[[TrainingProgress], None] | None = None
) -> RecipeOutcome:
    """Train a model of the paper."""
    shipped = RECIPES[config.model]
    return train_recipe(
        config.recipe, shipped=shipped, phases=PAPER_PHASES, progress=progress
    )
