"""The norms that an encoder layer may use; padding never counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

NormName = Literal["rms", "layer", "instance", "batch"]
NORMS: tuple[NormName, ...] = ("rms", "layer", "instance", "batch")


def at_least_single(values: Tensor) -> Tensor:
    """Give the same in float32, or in float64 where it is."""
    return values if values.dtype == torch.float64 else values.float()


def make_norm(name: NormName, width: int) -> nn.Module:
    """Make a norm that takes (rows, arcs, width) and which arcs are real, or None."""
    if name == "rms":
        return ArcWiseNorm(nn.RMSNorm(width, eps=1e-6))
    if name == "layer":
        return ArcWiseNorm(nn.LayerNorm(width))
    if name == "instance":
        return InstanceNorm(width)
    return BatchNorm(width)


class ArcWiseNorm(nn.Module):
    """A norm over the width of each arc alone."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, hidden: Tensor, real: Tensor | None) -> Tensor:
        """Normalise (rows, arcs, width)."""
        result: Tensor = self.norm(hidden)
        return result


class InstanceNorm(nn.Module):
    """Each channel over the arcs of one row."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, hidden: Tensor, real: Tensor | None) -> Tensor:
        """Normalise (rows, arcs, width)."""
        mean, variance = _moments(hidden, real, (1,))
        return _normalise(hidden, mean, variance, self.weight, self.bias)


class BatchNorm(nn.Module):
    """Each channel over all arcs of the batch; fixed statistics outside training."""

    mean: Tensor
    variance: Tensor

    def __init__(self, width: int, momentum: float = 0.1) -> None:
        super().__init__()
        self.momentum = momentum
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> BatchNorm:
        # bfloat16 would lose most of the small steps by which the statistics move.
        before = self.mean, self.variance
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if self.mean.dtype.itemsize < 4:
            self.mean, self.variance = (
                kept.to(self.mean.device, torch.float32) for kept in before
            )
        return self

    def forward(self, hidden: Tensor, real: Tensor | None) -> Tensor:
        """Normalise (rows, arcs, width)."""
        mean, variance = self.mean, self.variance
        if self.training:
            mean, variance = _moments(hidden, real, (0, 1))
            with torch.no_grad():
                self.mean.lerp_(mean.view(-1).to(self.mean.dtype), self.momentum)
                self.variance.lerp_(
                    variance.view(-1).to(self.variance.dtype), self.momentum
                )
        return _normalise(hidden, mean, variance, self.weight, self.bias)


def _moments(
    hidden: Tensor, real: Tensor | None, dims: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    # bfloat16 loses the mean of many arcs.
    wide = at_least_single(hidden)
    weight = torch.ones_like(wide[..., :1]) if real is None else real[..., None].to(wide)
    count = weight.sum(dims, keepdim=True)
    mean = (wide * weight).sum(dims, keepdim=True) / count
    variance = ((wide - mean).square() * weight).sum(dims, keepdim=True) / count
    return mean, variance


def _normalise(
    hidden: Tensor, mean: Tensor, variance: Tensor, weight: Tensor, bias: Tensor
) -> Tensor:
    wide = at_least_single(hidden)
    scaled = (wide - mean) * torch.rsqrt(variance + 1e-5)
    return (scaled * weight + bias).to(hidden.dtype)
