"""The kinds of models: what a model file may hold, by the name that it gives."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from arcfleet.neural.baselines.s2v_dqn import S2vDqn, S2vDqnConfig
from arcfleet.neural.baselines.vrp_dl import VrpDl, VrpDlConfig
from arcfleet.neural.daam import Daam
from arcfleet.neural.daam_config import DaamConfig

Model = Daam | S2vDqn | VrpDl
ModelConfig = DaamConfig | S2vDqnConfig | VrpDlConfig
AnyModel = TypeVar("AnyModel", Daam, S2vDqn, VrpDl)


class Kind(NamedTuple):
    """A kind of model, and the class of its sizes."""

    model: type[Any]
    config: type[ModelConfig]


KINDS: dict[str, Kind] = {
    "daam": Kind(Daam, DaamConfig),
    "s2v-dqn": Kind(S2vDqn, S2vDqnConfig),
    "vrp-dl": Kind(VrpDl, VrpDlConfig),
}


def kind_of(model: type[Model]) -> str:
    """Give the name of a class of models."""
    return next(name for name, kind in KINDS.items() if kind.model is model)
