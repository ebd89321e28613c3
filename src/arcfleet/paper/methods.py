"""The paper's models and methods, entered into the tables of the package.

Importing `arcfleet.paper` does it. No module of the package but the command line imports
the paper, so that everything else works without this folder.
"""

from __future__ import annotations

from pathlib import Path

from arcfleet.methods import register_method, run_learned
from arcfleet.neural.checkpoint import register_model
from arcfleet.search.stop import Stop

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
BASELINES = {
    "s2v-dqn": "learned baseline: the best value at each step (Khalil et al., with GAT)",
    "vrp-dl": "learned baseline: a recurrent decoder that points (Nazari et al.)",
}
for _name, _summary in BASELINES.items():
    register_method(
        _name, summary=_summary, default_stop=Stop(iterations=1), model_type=_name
    )(run_learned)
