"""What a training run starts from, and what it asks of its settings first."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from arcfleet.errors import OptionError
from arcfleet.neural.checkpoint import load_model_of
from arcfleet.neural.daam import Daam
from arcfleet.neural.device import working_type
from arcfleet.neural.grow import can_grow, grown
from arcfleet.neural.team import Team

if TYPE_CHECKING:
    from arcfleet.neural.kinds import AnyModel
    from arcfleet.neural.pretrain_config import PretrainConfig


def first_model(
    kind: type[AnyModel], config: PretrainConfig, init: Path | str | None
) -> AnyModel:
    """Give the weights to start from: those of a file, else random ones.

    Raises
    ------
    OptionError
        If the model of the file has other sizes than the config, fewer features or layers
        of DaAM excepted.
    """
    if init is not None:
        model, _ = load_model_of(kind, init, "cpu")
        wanted: Any = config.model
        if isinstance(model, Daam) and can_grow(model.config, wanted):
            return grown(model, wanted, config.seed)
        if model.config != config.model:
            raise OptionError(
                f"expected the model to start from to have the sizes {config.model}, "
                f"found {model.config} in {init}: give its sizes, or start from nothing"
            )
        return model
    # The start depends on the seed alone, and the caller's generator is left as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        sizes: Any = config.model
        return kind(sizes)


def require_weights(config: PretrainConfig, count: int) -> None:
    """Raise OptionError unless every data set has a weight, or none has."""
    if config.weights and len(config.weights) != count:
        raise OptionError(
            f"expected a weight for each of {count} data sets, got "
            f"{len(config.weights)} weights"
        )


def require_teamwork(config: PretrainConfig) -> None:
    """Raise OptionError where several processes cannot train such a model together."""
    size = Team.of_environment().size
    if size > 1 and config.model.norm == "batch":
        raise OptionError(
            f"expected another norm than batch for {size} processes, each of which would "
            "take the statistics of its own part: choose rms, or start one process"
        )


def require_precision(config: PretrainConfig, device: torch.device) -> None:
    """Raise OptionError where the device cannot work in the precision asked for."""
    working_type(config.precision, device)


def checksum(path: Path | str) -> str:
    """Give the SHA-256 of a file, which tells models apart."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
