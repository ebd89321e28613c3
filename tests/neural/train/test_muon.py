"""Muon: its steps are orthogonal, the matrices of a layer count as they should."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from arcfleet.errors import OptionError  # noqa: E402
from arcfleet.neural.model import Daam, DaamConfig  # noqa: E402
from arcfleet.neural.train.config import OptimiserConfig  # noqa: E402
from arcfleet.neural.train.loop import Learner  # noqa: E402
from arcfleet.neural.train.muon import Muon, hidden_matrices, orthogonal  # noqa: E402


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 32, 8), (2, 8, 32), (1, 1, 4)])
def test_singular_values_come_near_one(shape: tuple[int, int, int]) -> None:
    torch.manual_seed(len(shape) + shape[1])
    matrices = torch.randn(shape, dtype=torch.float64)
    found = orthogonal(1e-3 * matrices)
    values = torch.linalg.svdvals(found)
    assert values.min() > 0.3
    assert values.max() < 1.3
    # The same singular vectors: what is left of them is a positive matrix.
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    inner = left.mT @ found @ right.mT
    off = inner - torch.diag_embed(inner.diagonal(dim1=1, dim2=2))
    assert off.abs().max() < 1e-6
    assert (inner.diagonal(dim1=1, dim2=2) > 0).all()


def test_a_step_is_as_large_as_one_of_adamw_and_parts_are_apart() -> None:
    torch.manual_seed(1)
    start = torch.randn(24, 8)
    gradient = torch.randn(24, 8)
    gradient[8:16] *= 1e-4  # the keys learn as fast as queries and values
    weight = torch.nn.Parameter(start.clone())
    optimiser = Muon({weight: 3}, weight_decay=0.5)
    optimiser.param_groups[0]["lr"] = 0.1
    weight.grad = gradient
    optimiser.step()
    step = weight.detach() - (1 - 0.1 * 0.5) * start
    for part, of in zip(step.view(3, 8, 8), gradient.view(3, 8, 8), strict=True):
        assert part.square().mean().sqrt().item() == pytest.approx(0.02, rel=0.2)
        scaled = -part / (0.1 * 0.2 * math.sqrt(8))
        assert torch.allclose(scaled, orthogonal(of[None])[0], atol=1e-4)


def test_hidden_matrices_are_those_of_the_layers() -> None:
    model = Daam(DaamConfig(width=8, layers=2, heads=2, feed_forward=24))
    names: dict[Any, str] = {x: name for name, x in model.named_parameters()}
    found = {names[weight]: parts for weight, parts in hidden_matrices(model).items()}
    layer = {"query_key_value": 3, "out": 1, "widen": 1, "narrow": 1}
    assert found == {
        f"encoder.{i}.{name}.weight": parts
        for i in range(2)
        for name, parts in layer.items()
    }


def test_a_model_without_an_encoder_is_refused() -> None:
    config = OptimiserConfig(muon_factor=3.0)
    with pytest.raises(OptionError, match="for a model without an encoder, got 3"):
        Learner(torch.nn.Linear(3, 3), config, torch.float32)
