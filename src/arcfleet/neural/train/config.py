"""Settings of training, checked at construction.

The defaults are the values that the shipped model was trained with (`recipe.toml`). A
config is composed of parts, but every setting has a name of its own: run folders and model
files hold them as one flat table, with the sizes of the model in a table `model`.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from arcfleet._checks import nearest_name
from arcfleet.errors import OptionError
from arcfleet.neural.checkpoint import find_model_type, sizes_of
from arcfleet.neural.device import PRECISIONS, Precision
from arcfleet.neural.model import DaamConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LabelOrder = Literal["farthest", "as-labelled"]

LABEL_ORDERS: tuple[LabelOrder, ...] = ("farthest", "as-labelled")

#: Settings that have another name now, by their earlier one.
RENAMED = {
    "anchor": "kl_coefficient",
    "average_decay": "ema_decay",
    "best_of": "best_of_k",
    "copies": "samples",
    "moments": "decision_steps",
    "route_order": "label_order",
    "standardise": "normalise_advantages",
    "unbound": "giant_tour_fraction",
}
#: Settings that runs and recipes begun before them do not have, and what these did.
ADDED = {"muon_factor": 0.0}
#: Settings that are gone, and the value with which runs begun before are still the same.
DROPPED = {"distil_free_turns": False}
#: Settings that are gone, and what to do instead.
REMOVED = {
    "distil_free_turns": "mix data sets with and without turn rules",
    "directions": "label_order as-labelled keeps those of the labels",
    "lessons": "drop it",
    "objective": "fine-tuning is RLOO, `arcfleet paper train` has PPO",
    "pictures": "drop it",
}


def setting(default: Any, least: float | None = None, most: float | None = None) -> Any:
    """Return a field of a config that `check_settings` checks; a flag without limits."""
    return field(default=default, metadata={"least": least, "most": most})


def check_settings(config: Any) -> None:
    """Raise OptionError unless every `setting` has a value in its range."""
    for each in fields(config):
        value = getattr(config, each.name)
        if each.metadata and not (value is None and each.default is None):
            fits, expected = _compared(value, **each.metadata)
            if not fits:
                raise OptionError(
                    f"expected {each.name} to be {expected}, got {value!r:.40}"
                )


def _compared(
    value: Any, least: Any = None, most: Any = None, choices: tuple[str, ...] = ()
) -> tuple[bool, str]:
    """Return whether a value is in its range, and the range in words."""
    if choices:
        return value in choices, f"one of {', '.join(choices)}"
    if least is None:
        return type(value) is bool, "true or false"
    whole = type(least) is int
    fits = type(value) is int or (not whole and type(value) is float)
    noun = "a whole number" if whole else "a number"
    return fits and least <= value <= most, f"{noun} from {least:g} to {most:g}"


def check_training(config: TrainingConfig) -> None:
    """Raise OptionError unless every setting is in its range and the run has an end."""
    check_settings(config)
    if config.run.steps is None and config.run.minutes is None:
        raise OptionError("expected steps or minutes to end after, got neither")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """Settings of a run: its end, its data, its records, its precision.

    Parameters
    ----------
    steps
        Number of training steps. A run ends after `steps` or `minutes`, whichever comes
        first; one of them must be given.
    minutes
        Minutes of training, without the reading of data.
    seed
        Seed of the random number generators.
    weights
        Sampling weight of each data set; uniform if empty.
    validations
        Number of validations, evenly over the run.
    validation_instances
        Largest number of instances of a validation set.
    checkpoint_minutes
        Minutes between checkpoints.
    log_steps
        Steps per line of metrics. Reading the loss makes the host wait for the device.
    precision
        Floating-point type of forward and backward passes. "auto" is bfloat16 on GPUs made
        for it; the weights that are updated are float32 in any case.
    compile
        Compilation of the model by torch.compile, one graph for each shape.
    """

    steps: int | None = setting(None, 1, 10**9)
    minutes: float | None = setting(None, 1e-3, 10**6)
    seed: int = setting(0, 0, 2**63 - 1)
    weights: tuple[float, ...] = ()
    validations: int = setting(8, 0, 10**6)
    validation_instances: int = setting(500, 1, 10**7)
    checkpoint_minutes: float = setting(3.0, 0.0, 10**6)
    log_steps: int = setting(50, 1, 10**9)
    precision: Precision = field(default="auto", metadata={"choices": PRECISIONS})
    compile: bool = setting(False)

    def __post_init__(self) -> None:
        """Check every setting."""
        check_settings(self)
        if not isinstance(self.weights, (list, tuple)):
            raise OptionError(
                f"expected weights to be a list of numbers, got {self.weights!r:.40}"
            )
        for weight in self.weights:
            if not isinstance(weight, (int, float)) or not 0 < weight < math.inf:
                raise OptionError(f"expected weights above 0, got {weight!r:.40}")
        object.__setattr__(self, "weights", tuple(self.weights))

    def fraction(self, step: int, seconds: float) -> float:
        """Return the fraction of the run that is completed, 1 at its end."""
        fractions = [0.0]
        if self.steps is not None:
            fractions.append(step / self.steps)
        if self.minutes is not None:
            fractions.append(seconds / (60 * self.minutes))
        return min(1.0, max(fractions))


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimiserConfig:
    """Settings of the optimiser, of its learning rate, and of the EMA of the weights.

    Parameters
    ----------
    learning_rate
        Learning rate after the warm-up; it decays by a cosine over the run.
    muon_factor
        Learning rate of the matrices within the encoder, which learn by Muon, as a multiple
        of that of all others, which learn by AdamW; 0 for AdamW everywhere.
    warm_up_steps
        Steps of linear warm-up of the learning rate.
    final_rate
        End of the cosine decay, as a fraction of the learning rate.
    weight_decay
        Weight decay of matrices; norms and biases have none.
    beta1
        Decay of AdamW's first moment.
    beta2
        Decay of AdamW's second moment.
    clip_norm
        Largest norm of the gradient.
    ema_decay
        Decay of the EMA of the weights, which is what is validated and kept; 0 for the
        weights as they are.
    """

    learning_rate: float = setting(7e-4, 0.0, 1)
    muon_factor: float = setting(0.0, 0.0, 1000)
    warm_up_steps: int = setting(300, 0, 10**9)
    final_rate: float = setting(0.01, 0.0, 1)
    weight_decay: float = setting(0.01, 0.0, 10)
    beta1: float = setting(0.9, 0.0, 1 - 1e-9)
    beta2: float = setting(0.98, 0.0, 1 - 1e-9)
    clip_norm: float = setting(1.0, 1e-9, 10**9)
    ema_decay: float = setting(0.999, 0.0, 1 - 1e-9)

    def __post_init__(self) -> None:
        """Check every setting."""
        check_settings(self)

    def rate(self, step: int, fraction: float) -> float:
        """Return the learning rate of a step when this fraction of the run is completed."""
        rise = min(1.0, (step + 1) / self.warm_up_steps) if self.warm_up_steps else 1.0
        fall = 0.5 * (1 + math.cos(math.pi * min(1.0, fraction)))
        return self.learning_rate * rise * (self.final_rate + (1 - self.final_rate) * fall)


class TrainingConfig(Protocol):
    """Settings that every kind of training has."""

    @property
    def model(self) -> Any:
        """Sizes of the model; their class says which model it is."""

    @property
    def run(self) -> RunConfig:
        """Settings of the run."""

    @property
    def optimiser(self) -> OptimiserConfig:
        """Settings of the optimiser."""


AnyConfig = TypeVar("AnyConfig", bound=TrainingConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainConfig:
    """Settings of supervised pre-training.

    Parameters
    ----------
    model
        Sizes of the model; their class says which model it is.
    run
        Settings of the run.
    optimiser
        Settings of the optimiser.
    label_order
        Order of the routes of a labelled plan. "farthest" puts those first that reach
        farthest from the depot, and reverses routes at random where that costs nothing;
        "as-labelled" shows the plan as the label has it.
    giant_tour_fraction
        Fraction of steps that train on giant tours, with the capacity mask off.
    flip_axes
        Random signs of the MDS axes as an augmentation.
    decision_steps
        Decision steps sampled of each plan.
    tokens
        Arcs of all states of a step. Larger instances have fewer states.
    """

    model: DaamConfig = field(default_factory=DaamConfig)
    run: RunConfig = field(default_factory=RunConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    label_order: LabelOrder = field(default="farthest", metadata={"choices": LABEL_ORDERS})
    giant_tour_fraction: float = setting(0.4, 0.0, 1)
    flip_axes: bool = setting(True)
    decision_steps: int = setting(8, 1, 10**4)
    tokens: int = setting(250_000, 1, 10**9)

    def __post_init__(self) -> None:
        """Check every setting."""
        check_training(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneConfig:
    """Settings of fine-tuning: REINFORCE with a leave-one-out baseline (RLOO).

    Parameters
    ----------
    model
        Sizes of the model; their class says which model it is.
    run
        Settings of the run.
    optimiser
        Settings of the optimiser.
    samples
        Rollouts sampled of each instance.
    best_of_k
        Number of samples of which only the best counts (max@k), fewer than `samples`; 1
        for the mean of all.
    temperature
        Temperature of the sampled rollouts, and of the policy that is improved.
    kl_coefficient
        Coefficient of the KL penalty towards the initial policy. What a plan pays per nat,
        in mean distances between the arcs of its instance; without it all samples become
        the same plan.
    giant_tour_fraction
        Fraction of steps that train on giant tours, with the capacity mask off; Split cuts
        them into routes.
    flip_axes
        Random signs of the MDS axes as an augmentation.
    decision_steps
        Decision steps sampled of each rollout for the gradient.
    tokens
        Arcs of all states of a length bucket in an update. Larger instances have fewer
        states.
    rollout_tokens
        Arcs of all rollouts of a step. Larger instances have fewer rollouts.
    """

    model: DaamConfig = field(default_factory=DaamConfig)
    run: RunConfig = field(default_factory=lambda: RunConfig(validations=4, log_steps=1))
    optimiser: OptimiserConfig = field(
        default_factory=lambda: OptimiserConfig(
            learning_rate=5e-5, warm_up_steps=5, weight_decay=0.0, ema_decay=0.99
        )
    )
    samples: int = setting(16, 2, 10**5)
    best_of_k: int = setting(1, 1, 10**5)
    temperature: float = setting(0.5, 1e-3, 10**3)
    kl_coefficient: float = setting(0.02, 0.0, 10**3)
    giant_tour_fraction: float = setting(0.4, 0.0, 1)
    flip_axes: bool = setting(True)
    decision_steps: int = setting(12, 1, 10**4)
    tokens: int = setting(1_250_000, 1, 10**9)
    rollout_tokens: int = setting(1_200_000, 1, 10**9)

    def __post_init__(self) -> None:
        """Check every setting."""
        check_training(self)
        if self.best_of_k > 1 and self.best_of_k >= self.samples:
            raise OptionError(
                f"expected best_of_k to be below samples ({self.samples}), got "
                f"{self.best_of_k}"
            )


def settings_of(config: TrainingConfig) -> dict[str, Any]:
    """Return all settings by name as JSON can hold them; the model's sizes in `model`."""
    found: dict[str, Any] = {}
    for name, value in asdict(config).items():  # type: ignore[call-overload]
        found |= value if name in ("run", "optimiser") else {name: value}
    found["model"] = sizes_of(config.model)
    return {**found, "weights": list(config.run.weights)}


def with_added(found: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run with those that have come since and are expected."""
    added = {name: x for name, x in ADDED.items() if name in expected}
    return {**added, **without_dropped(found)}


def without_dropped(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run without those that are gone and made no difference."""
    return {x: y for x, y in found.items() if x not in DROPPED or y != DROPPED[x]}


def config_from(config_class: type[AnyConfig], settings: Mapping[str, Any]) -> AnyConfig:
    """Make a config of settings by name; what is not given has its default.

    Parameters
    ----------
    config_class
        Class of the config.
    settings
        Settings by name, the model's sizes in a table `model`, whose `type` names another
        model than that of the config's default. Those of the parts may also stand in tables
        of their names.

    Raises
    ------
    OptionError
        If a name is unknown or a value wrong.
    """
    members: Any = fields(config_class)  # type: ignore[arg-type]
    own = [each.name for each in members if each.metadata]
    parts = {each.name: each.default_factory() for each in members if each.name not in own}
    model = type(parts.pop("model"))
    given: dict[str, Any] = {}
    for name, value in settings.items():
        given |= value if name in parts and isinstance(value, dict) else {name: value}
    sizes = sizes_from(model, given.pop("model", {}))
    part_of = {each.name: name for name, part in parts.items() for each in fields(part)}
    require_known(given, [*part_of, *own])
    for name in [name for name in given if name in part_of]:
        part = part_of[name]
        parts[part] = replace(parts[part], **{name: given.pop(name)})
    return config_class(**{"model": sizes, **parts, **given})


def changed(config: AnyConfig, **settings: Any) -> AnyConfig:
    """Return a config with some settings changed, by name; `model` takes sizes."""
    sizes = settings.pop("model", config.model)
    given = {**settings_of(config), **settings, "model": sizes_of(sizes)}
    return config_from(type(config), given)


def sizes_from(config_class: Any, settings: object) -> Any:
    """Make the sizes of a model of a table, whose `type` may name another config class."""
    if not isinstance(settings, dict):
        raise OptionError(f"expected model to be a table of sizes, got {settings!r:.40}")
    settings = dict(settings)
    if "type" in settings:
        config_class = find_model_type(str(settings.pop("type"))).config_class
    usual = asdict(config_class())
    require_known(settings, list(usual), "model.")
    for name, value in settings.items():
        wanted = type(usual[name])
        if type(value) is not wanted and not (wanted is float and type(value) is int):
            raise OptionError(
                f"expected model.{name} to be of type {wanted.__name__}, got {value!r:.40}"
            )
    return config_class(**settings)


def _owner(name: str) -> str:
    """Return the command of training that alone has a setting."""
    commands = {"pretrain": PretrainConfig, "finetune": FinetuneConfig}
    found = [x for x in commands if name in {each.name for each in fields(commands[x])}]
    return f"`train {found[0]}`" if len(found) == 1 else "another phase"


def require_known(given: Iterable[str], known: list[str], prefix: str = "") -> None:
    """Raise OptionError with a hint unless all names are known."""
    for name in given:
        if name in known:
            continue
        if RENAMED.get(name) in known:
            raise OptionError(
                f"expected the setting {RENAMED[name]}, got {name}, its earlier name: "
                "rename it"
            )
        if name in RENAMED:
            raise OptionError(
                f"expected a known setting, got {name}, which is a setting of "
                f"{_owner(RENAMED[name])}, named {RENAMED[name]} now: drop it here"
            )
        if name in REMOVED:
            raise OptionError(
                f"expected a known setting, got {name}, which is gone: {REMOVED[name]}"
            )
        near = nearest_name(name, known)
        hint = f"did you mean {prefix}{near}?" if near else "see the documentation"
        raise OptionError(f"expected a known setting, got {prefix}{name}: {hint}")
