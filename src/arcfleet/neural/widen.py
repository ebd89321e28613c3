"""A trained model that is given more features: what it knows is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from arcfleet.neural.daam import Daam
from arcfleet.neural.daam_config import FEATURES

if TYPE_CHECKING:
    from arcfleet.neural.daam_config import DaamConfig


def can_widen(found: DaamConfig, wanted: DaamConfig) -> bool:
    """Say whether two configs differ by further features of the second alone."""
    more = FEATURES.index(wanted.features) > FEATURES.index(found.features)
    return more and replace(found, features=wanted.features) == wanted


@torch.no_grad()
def widened(model: Daam, config: DaamConfig) -> Daam:
    """Give a model of a config that `can_widen` allows, with the same logits.

    The weights of the new features are 0, from where training goes on.
    """
    with torch.random.fork_rng(devices=[]):
        grown = Daam(config)
    weights = model.state_dict()
    for name, wanted in grown.state_dict().items():
        missing = wanted.shape[-1] - weights[name].shape[-1]
        weights[name] = functional.pad(weights[name], (0, missing))
    grown.load_state_dict(weights)
    return grown
