"""Runs of pre-training that take milliseconds a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arcfleet.neural.model import DaamConfig
from arcfleet.neural.train.config import PretrainConfig
from arcfleet.neural.train.pretrain import pretrain
from tests.neural.labelled_towns import labelled_file

if TYPE_CHECKING:
    from pathlib import Path

    from arcfleet.neural.train.loop import Trained

TINY = DaamConfig(width=16, layers=1, heads=2, feed_forward=16, mds_dimensions=4)
QUICK = PretrainConfig(
    model=TINY,
    steps=6,
    tokens=400,
    moments=2,
    log_steps=2,
    warm_up_steps=2,
    validations=2,
    pictures=0,
)


def data_folder(folder: Path) -> Path:
    """Write what runs learn from and validate on into a folder."""
    labelled_file(folder, "small", "task20", count=8)
    labelled_file(folder, "mixed", "task30", count=6, one_way=0.3)
    labelled_file(folder, "test", "task20", count=4, seed=1)
    labelled_file(folder, "few", "task20", count=3)
    return folder


def run(folder: Path, out: Path, config: PretrainConfig = QUICK, **options: Any) -> Trained:
    """Pre-train on the data of such a folder."""
    options = {
        "data": [folder / "small.npz", folder / "mixed.npz"],
        "validation": [folder / "test.npz"],
        "device": "cpu",
        **options,
    }
    return pretrain(out, config, **options)
