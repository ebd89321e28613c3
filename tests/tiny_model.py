"""A model small enough for tests, with weights drawn at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def tiny_model_file(folder: Path) -> Path:
    """Write the model; torch is imported only here."""
    import torch

    from arcfleet.neural.checkpoint import save_model
    from arcfleet.neural.daam import Daam, DaamConfig

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = Daam(DaamConfig(width=16, layers=1, heads=2, feed_forward=16))
    with torch.no_grad():
        # At first every arc looks at all alike, so they hardly differ and rounding would
        # decide. So that near ones count more:
        model.attend_edge.fill_(-30.0)
    path = folder / "tiny.safetensors"
    save_model(model, path, {"trained_on": "nothing"})
    return path
