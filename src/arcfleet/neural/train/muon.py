"""Muon: momentum whose matrices are made orthogonal before they are a step.

Jordan et al. 2024, https://kellerjordan.github.io/posts/muon; the step has the size of
AdamW's, as in Liu et al. 2025, https://arxiv.org/abs/2502.16982, so that both share a
learning rate. Matrices of one shape are made orthogonal together: a model has few shapes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor, nn

MOMENTUM = 0.95
#: Root mean square of a step of AdamW, about.
_STEP = 0.2
#: Coefficients of the Newton-Schulz iteration, by Jordan.
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ITERATIONS = 5


def hidden_matrices(model: nn.Module) -> dict[Tensor, int]:
    """Return the weights of the linear layers within the encoder of a model.

    The values are the number of matrices that a weight holds, one below the other: that of
    queries, keys and values holds three.
    """
    encoder = getattr(model, "encoder", None)
    if encoder is None:
        return {}
    return {
        layer.weight: 3 if name.endswith("query_key_value") else 1
        for name, layer in encoder.named_modules()
        if isinstance(layer, torch.nn.Linear)
    }


class Muon(torch.optim.Optimizer):
    """Momentum with orthogonal steps, for matrices.

    Parameters
    ----------
    matrices
        Weights, and the number of matrices that each holds, one below the other.
    weight_decay
        Weight decay.
    """

    def __init__(self, matrices: Mapping[Tensor, int], weight_decay: float) -> None:
        super().__init__(list(matrices), {"lr": 0.0, "weight_decay": weight_decay})
        self._parts = dict(matrices)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Make one step down the gradients."""
        for group in self.param_groups:
            weights = [x for x in group["params"] if x.grad is not None]
            gradients = [x.grad for x in weights]
            kept = [self._momentum(x) for x in weights]
            torch._foreach_lerp_(kept, gradients, 1 - MOMENTUM)
            steps = [g.lerp(m, MOMENTUM) for g, m in zip(gradients, kept, strict=True)]
            torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
            kinds = [(x.shape, self._parts[x]) for x in weights]
            for kind in dict.fromkeys(kinds):
                (rows, columns), parts = kind
                at = [i for i, each in enumerate(kinds) if each == kind]
                stack = torch.stack([steps[i] for i in at])  # (weights, rows, columns)
                stack = orthogonal(stack.view(-1, rows // parts, columns))
                scale = _STEP * math.sqrt(max(rows // parts, columns))
                down = list(stack.view(len(at), rows, columns))
                alpha = -group["lr"] * scale
                torch._foreach_add_([weights[i] for i in at], down, alpha=alpha)

    def _momentum(self, weight: Tensor) -> Tensor:
        state = self.state[weight]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(weight)
        found: Tensor = state["momentum"]
        return found


def orthogonal(matrices: Tensor) -> Tensor:
    """Return matrices near the orthogonal ones nearest to each, (count, rows, columns)."""
    tall = matrices.shape[1] > matrices.shape[2]
    dtype = torch.bfloat16 if matrices.is_cuda else matrices.dtype
    x = (matrices.mT if tall else matrices).to(dtype)
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(_ITERATIONS):
        gram = x @ x.mT
        x = _A * x + (_B * gram + _C * (gram @ gram)) @ x
    found: Tensor = (x.mT if tall else x).to(matrices.dtype)
    return found
