"""The paper's models and methods, entered into the tables of the package.

Importing `arcfleet.paper` does it. No module of the package but the command line imports
the paper, so that everything else works without this folder.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from arcfleet.methods import METHODS
from arcfleet.neural.checkpoint import register_model

_WEIGHTS = Path(__file__).parent / "weights"

register_model("daam-paper", "arcfleet.paper.model:PublishedDaam", serves="daam")
register_model(
    "s2v-dqn",
    "arcfleet.paper.baselines.s2v_dqn:S2vDqn",
    weights=_WEIGHTS / "s2v-dqn.safetensors",
)
register_model(
    "vrp-dl",
    "arcfleet.paper.baselines.vrp_dl:VrpDl",
    weights=_WEIGHTS / "vrp-dl.safetensors",
)

#: The learned baselines of the paper.
BASELINES = (
    replace(
        METHODS["daam-greedy"],
        name="s2v-dqn",
        summary="learned baseline: the best value at each step (Khalil et al., with GAT)",
        kind="s2v-dqn",
    ),
    replace(
        METHODS["daam-greedy"],
        name="vrp-dl",
        summary="learned baseline: a recurrent decoder that points (Nazari et al.)",
        kind="vrp-dl",
    ),
)
METHODS.update((method.name, method) for method in BASELINES)
