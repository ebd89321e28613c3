"""A trained model that is given more features or layers: what it knows is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from arcfleet.neural.daam import Daam
from arcfleet.neural.daam_config import FEATURES

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.daam_config import DaamConfig

# What a layer adds to the embeddings of the arcs; with zeros here it adds nothing.
_ADDS = ("out.weight", "narrow.weight", "narrow.bias")


def can_grow(found: DaamConfig, wanted: DaamConfig) -> bool:
    """Say whether two configs differ by further features or layers of the second alone."""
    features = FEATURES.index(wanted.features) - FEATURES.index(found.features)
    layers = wanted.layers - found.layers
    grown = replace(found, features=wanted.features, layers=wanted.layers)
    return grown == wanted and min(features, layers) >= 0 and features + layers > 0


@torch.no_grad()
def grown(model: Daam, config: DaamConfig, seed: int) -> Daam:
    """Give a model of a config that `can_grow` allows, with the same logits.

    They are the same up to the small number that norms add to what they divide by. Weights
    of new features are 0, and so are those by which new layers, the last ones, add to what
    they get; their other weights are drawn by the seed. Training goes on there.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        larger = Daam(config)
    weights = larger.state_dict()
    for name, known in model.state_dict().items():
        missing = weights[name].shape[-1] - known.shape[-1]
        weights[name] = functional.pad(known, (0, missing)) if missing else known.clone()
    for layer in range(model.config.layers, config.layers):
        for name in _ADDS:
            weights[f"encoder.{layer}.{name}"].zero_()
    if config.layers > model.config.layers:
        _move_scale(weights, model.config.layers - 1, config.layers - 1)
    larger.load_state_dict(weights)
    return larger


def _move_scale(weights: dict[str, Tensor], first: int, last: int) -> None:
    """Let the norm at the end of one layer be plain, and that of another do its work.

    A norm of what has been normalised plainly changes nothing.
    """
    scaled, plain = (f"encoder.{layer}.feed_forward_norm." for layer in (first, last))
    for name in [name for name in weights if name.startswith(scaled)]:
        other = plain + name.removeprefix(scaled)
        weights[name], weights[other] = weights[other].clone(), weights[name]
