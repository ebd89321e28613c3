"""Every setting of fine-tuning, checked."""

from __future__ import annotations

import difflib
import math
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from arcfleet.errors import OptionError
from arcfleet.neural.checkpoint import find_model_type, sizes_of
from arcfleet.neural.model import DaamConfig
from arcfleet.neural.train.steps import DIRECTIONS, ROUTE_ORDERS, Directions, RouteOrder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


Precision = Literal["auto", "float32", "bfloat16"]

PRECISIONS: tuple[Precision, ...] = ("auto", "float32", "bfloat16")


# Kind, least and most of a number; a float may be whole, a whole number not a fraction.
Limits = tuple[type, float, float]

Config = TypeVar("Config", bound="PretrainConfig")


_LIMITS: dict[str, Limits] = {
    "steps": (int, 1, 10**9),
    "minutes": (float, 1e-3, 10**6),
    "unbound": (float, 0, 1),
    "moments": (int, 1, 10**4),
    "tokens": (int, 1, 10**9),
    "learning_rate": (float, 0, 1),
    "warm_up_steps": (int, 0, 10**9),
    "final_rate": (float, 0, 1),
    "weight_decay": (float, 0, 10),
    "beta1": (float, 0, 1 - 1e-9),
    "beta2": (float, 0, 1 - 1e-9),
    "clip_norm": (float, 1e-9, 10**9),
    "average_decay": (float, 0, 1 - 1e-9),
    "validations": (int, 0, 10**6),
    "validation_instances": (int, 1, 10**7),
    "pictures": (int, 0, 100),
    "checkpoint_minutes": (float, 0, 10**6),
    "log_steps": (int, 1, 10**9),
    "seed": (int, 0, 2**63 - 1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainConfig:
    """Settings of supervised pre-training.

    Parameters
    ----------
    model
        Sizes of the model.
    steps, minutes
        When to end: whichever comes first; at least one must be given. Reading the data
        does not count.
    route_order, directions
        Of the labelled plans, as `imitation.sequences` takes them.
    unbound
        Share of the steps that show plans as one tour without returns, which decoding
        without the capacity goes by.
    flip_axes
        Whether the MDS axes, whose signs mean nothing, are flipped at random.
    moments
        Of each plan drawn for a step.
    tokens
        Arcs of all states of a step: a scale with more arcs has fewer states.
    weights
        How often each data set is drawn, by number; all alike if empty.
    learning_rate, warm_up_steps, final_rate
        The rate grows linearly over the first steps, then follows a cosine down to
        `final_rate` of itself.
    weight_decay, beta1, beta2, clip_norm
        Of AdamW, and the largest norm of a gradient.
    average_decay
        Of the moving average of the weights, which is what is validated and kept; 0 for
        the weights as they are.
    validations, validation_instances
        How often to validate, evenly over the run, and on how many instances of a set.
    pictures
        Instances whose plans are drawn at each validation, over all sets, though at least
        one of each; 0 for no picture.
    checkpoint_minutes
        Time between checkpoints.
    log_steps
        Steps per line of metrics; reading the loss makes the host wait for the device.
    precision
        "bfloat16" works with bfloat16 copies of the float32 weights; "auto" does so on
        CUDA only.
    compile
        Whether to use torch.compile, one graph for each scale.
    seed
        Of all random choices.
    """

    model: DaamConfig = field(default_factory=DaamConfig)
    steps: int | None = None
    minutes: float | None = None
    route_order: RouteOrder = "farthest"
    directions: Directions = "random"
    unbound: float = 0.0
    flip_axes: bool = True
    moments: int = 8
    tokens: int = 200_000
    weights: tuple[float, ...] = ()
    learning_rate: float = 7e-4
    warm_up_steps: int = 300
    final_rate: float = 0.01
    weight_decay: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.98
    clip_norm: float = 1.0
    average_decay: float = 0.999
    validations: int = 8
    validation_instances: int = 500
    pictures: int = 3
    checkpoint_minutes: float = 3.0
    log_steps: int = 50
    precision: Precision = "auto"
    compile: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """Check every setting."""
        for name, limits in _LIMITS.items():
            if getattr(self, name) is not None or name not in ("steps", "minutes"):
                require_number(name, getattr(self, name), limits)
        if self.steps is None and self.minutes is None:
            raise OptionError("expected steps or minutes to end after, got neither")
        for name in ("flip_axes", "compile"):
            if type(getattr(self, name)) is not bool:
                raise OptionError(
                    f"expected {name} to be true or false, got {getattr(self, name)!r:.40}"
                )
        require_choice("route_order", self.route_order, ROUTE_ORDERS)
        require_choice("directions", self.directions, DIRECTIONS)
        require_choice("precision", self.precision, PRECISIONS)
        for weight in self.weights:
            if not isinstance(weight, (int, float)) or not 0 < weight < math.inf:
                raise OptionError(f"expected weights above 0, got {weight!r:.40}")

    def as_facts(self) -> dict[str, Any]:
        """Give the settings as JSON can hold them."""
        return {
            **asdict(self),
            "model": sizes_of(self.model),
            "weights": list(self.weights),
        }

    def examples(self, sets: int) -> int:
        """Give the instances to draw of each of so many sets."""
        return math.ceil(self.pictures / max(1, sets))

    def rate(self, step: int, progress: float) -> float:
        """Give the learning rate of a step when this share of the run is over."""
        rise = min(1.0, (step + 1) / self.warm_up_steps) if self.warm_up_steps else 1.0
        fall = 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
        return self.learning_rate * rise * (self.final_rate + (1 - self.final_rate) * fall)

    def progress(self, step: int, seconds: float) -> float:
        """Give the share of the run that is over, 1 at its end."""
        shares = [0.0]
        if self.steps is not None:
            shares.append(step / self.steps)
        if self.minutes is not None:
            shares.append(seconds / (60 * self.minutes))
        return min(1.0, max(shares))


def require_number(name: str, value: object, limits: Limits) -> None:
    """Raise OptionError unless a setting is a number within its limits."""
    kind, least, most = limits
    whole = kind is int and type(value) is int
    if (whole or (kind is float and type(value) in (int, float))) and (
        least <= value <= most  # type: ignore[operator]
    ):
        return
    what = "a whole number" if kind is int else "a number"
    raise OptionError(
        f"expected {name} to be {what} from {least:g} to {most:g}, got {value!r:.40}"
    )


def require_choice(name: str, value: object, known: tuple[str, ...]) -> None:
    """Raise OptionError unless a setting is one of the known words."""
    if value not in known:
        raise OptionError(
            f"expected {name} to be one of {', '.join(known)}, got {value!r:.40}"
        )


def config_from(settings: Mapping[str, Any]) -> PretrainConfig:
    """Make a config of settings by name, those of the model in a mapping of their own.

    Raises
    ------
    OptionError
        If a name is unknown or a value of the wrong kind.
    """
    return config_of(PretrainConfig, settings)


def config_of(kind: type[Config], settings: Mapping[str, Any]) -> Config:
    """Make a config of any kind as `config_from` does."""
    given = dict(settings)
    require_known(given, [f.name for f in fields(kind)])
    sizes = given.pop("model", {})
    if not isinstance(sizes, dict):
        raise OptionError(f"expected model to be a table of sizes, got {sizes!r:.40}")
    # Each kind of training says by the usual sizes which kind of model it is for.
    of_model: Any = kind.__dataclass_fields__["model"].default_factory
    sizes = dict(sizes)
    if "type" in sizes:
        of_model = find_model_type(str(sizes.pop("type"))).config_class
    require_known(sizes, [f.name for f in fields(of_model)], "model.")
    usual = asdict(of_model())
    for name, value in sizes.items():
        wanted = type(usual[name])
        if type(value) is not wanted and not (wanted is float and type(value) is int):
            raise OptionError(
                f"expected model.{name} to be of type {wanted.__name__}, got {value!r:.40}"
            )
    weights = given.pop("weights", ())
    if not isinstance(weights, (list, tuple)):
        raise OptionError(f"expected weights to be a list of numbers, got {weights!r:.40}")
    return kind(**given, weights=tuple(weights), model=of_model(**sizes))


def require_known(given: Iterable[str], known: list[str], prefix: str = "") -> None:
    """Raise OptionError with a hint unless all names are known."""
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {prefix}{near[0]}?" if near else "see the documentation"
            raise OptionError(f"expected a known setting, got {prefix}{name}: {hint}")


Objective = Literal["imitate-best", "samples", "self-critical", "ppo"]

OBJECTIVES: tuple[Objective, ...] = ("imitate-best", "samples", "self-critical", "ppo")


ANCHORED: tuple[Objective, ...] = ("samples", "self-critical")

# Held the greedy gains of `samples` and the variety of its samples (docs/training-log.md).
USUAL_ANCHOR = 0.02


_FINETUNE_LIMITS: dict[str, Limits] = {
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
        for name, limits in _FINETUNE_LIMITS.items():
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
