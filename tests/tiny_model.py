"""Models small enough for tests, with weights drawn at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def tiny_model_file(folder: Path, kind: str = "daam") -> Path:
    """Write a model of a kind; torch is imported only here."""
    import torch

    from arcfleet.neural.checkpoint import KINDS, Model, save_model
    from arcfleet.neural.model import DaamConfig
    from arcfleet.paper.baselines.s2v_dqn import S2vDqnConfig
    from arcfleet.paper.baselines.vrp_dl import VrpDlConfig

    sizes = {
        "daam": DaamConfig(width=16, layers=1, heads=2, feed_forward=16),
        "s2v-dqn": S2vDqnConfig(width=16, layers=2, heads=2),
        "vrp-dl": VrpDlConfig(width=16),
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model: Model = KINDS[kind].model(sizes[kind])
    if kind == "daam":
        with torch.no_grad():
            # At first every arc looks at all alike, so they hardly differ and rounding
            # would decide. So that near ones count more:
            model.get_parameter("attend_edge").fill_(-30.0)
    path = folder / ("tiny.safetensors" if kind == "daam" else f"tiny-{kind}.safetensors")
    save_model(model, path, {"trained_on": "nothing"})
    return path
