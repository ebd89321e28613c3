"""What a run starts from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import torch

from arcfleet.errors import OptionError
from arcfleet.neural.checkpoint import load_model, save_model
from arcfleet.neural.model import Daam, DaamConfig
from arcfleet.neural.train.config import PretrainConfig
from arcfleet.neural.train.run import first_model, grown

if TYPE_CHECKING:
    from pathlib import Path

TINY = DaamConfig(width=16, layers=1, heads=2, feed_forward=16, mds_dimensions=4)
DEEPER = replace(TINY, layers=TINY.layers + 1)


@pytest.fixture
def start(tmp_path: Path) -> Path:
    torch.manual_seed(5)
    path = tmp_path / "start.safetensors"
    save_model(Daam(TINY), path, {})
    return path


def test_a_model_with_fewer_layers_is_given_more(start: Path) -> None:
    config = PretrainConfig(model=DEEPER, seed=7, steps=1)
    model = first_model(Daam, config, start)
    assert model.config == DEEPER
    found, _ = load_model(start)
    wanted = grown(found, DEEPER, seed=7).state_dict()
    weights = model.state_dict()
    assert weights.keys() == wanted.keys()
    assert all(torch.equal(weights[name], wanted[name]) for name in wanted)


def test_a_model_with_more_layers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.safetensors"
    save_model(Daam(DEEPER), path, {})
    with pytest.raises(OptionError, match=r"layers=1.*layers=2"):
        first_model(Daam, PretrainConfig(model=TINY, steps=1), path)
