"""One layer of the attention encoder (Kool et al. 2019)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from arcfleet.neural.norms import make_norm

try:
    from arcfleet.neural import feed_forward_kernels as learning
    from arcfleet.neural import layer_kernels as kernels
    from arcfleet.neural import short_attention as short
except ImportError:  # not every torch brings Triton; the general kernels do the same
    kernels = learning = short = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from torch import Tensor

    from arcfleet.neural.norms import NormName


class EncoderLayer(nn.Module):
    """Attention of all arcs to all, then a feed-forward net; skip and norm after each.

    Parameters
    ----------
    width, heads, feed_forward
        Its sizes.
    norm
        One of `NORMS`.
    """

    def __init__(self, width: int, heads: int, feed_forward: int, norm: NormName) -> None:
        super().__init__()
        self.heads = heads
        self.norm = norm
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.attention_norm = make_norm(norm, width)
        self.widen = nn.Linear(width, feed_forward)
        self.narrow = nn.Linear(feed_forward, width)
        self.feed_forward_norm = make_norm(norm, width)

    def forward(self, hidden: Tensor, real: Tensor | None) -> Tensor:
        """Give new embeddings, (rows, arcs, width).

        Parameters
        ----------
        hidden
            The embeddings, (rows, arcs, width).
        real
            Which arcs may be looked at, (rows, arcs), or None for all; the depot, arc 0, is
            always one of them.
        """
        mixed = self._attend(self.query_key_value(hidden), real)
        widen = self.widen.weight, self.widen.bias
        narrow = self.narrow.weight, self.narrow.bias
        ours, compiling = self._fits_kernels(hidden), torch.compiler.is_compiling()
        if ours and not compiling and not torch.is_grad_enabled():
            return kernels.after_attention(
                hidden,
                mixed,
                self.out.weight,
                _of_norm(self.attention_norm),
                widen,
                narrow,
                _of_norm(self.feed_forward_norm),
            )
        change = self.out(mixed)
        if ours and not compiling:  # torch.compile makes one of its own
            hidden = kernels.add_and_norm(hidden, change, *_of_norm(self.attention_norm))
        else:
            hidden = self.attention_norm(hidden + change, real)
        if ours:
            return learning.feed_forward(
                hidden, widen, narrow, _of_norm(self.feed_forward_norm)
            )
        # In place it would be a change of a view, whose gradient is copied several times.
        wide = functional.relu(self.widen(hidden), inplace=not torch.is_grad_enabled())
        change = self.narrow(wide)
        result: Tensor = self.feed_forward_norm(hidden + change, real)
        return result

    def _fits_kernels(self, hidden: Tensor) -> bool:
        """Say whether the kernels of ours can be used."""
        return (
            hidden.is_cuda
            and kernels is not None
            and self.norm == "rms"
            and kernels.fits(hidden, self.widen.out_features)
            and self.out.weight.dtype == hidden.dtype
        )

    def _attend(self, joined: Tensor, real: Tensor | None) -> Tensor:
        # joined: (rows, arcs, 3 width)
        if joined.is_cuda and short is not None and short.fits(joined, self.heads):
            attended: Tensor = short.short_attention(joined, real, self.heads)
            return attended
        parts = joined.view(*joined.shape[:-1], 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        # each: (rows, heads, arcs, width / heads)
        mask = None
        if real is not None:
            # The fused kernels take numbers, not truth values.
            mask = torch.zeros(real.shape, dtype=joined.dtype, device=real.device)
            mask = mask.masked_fill(~real, -math.inf)[:, None, None]
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return mixed.transpose(1, 2).flatten(2)


def _of_norm(norm: nn.Module) -> tuple[Tensor, float]:
    """Give the weight and the epsilon of a root-mean-square norm."""
    inner: Any = norm.norm
    return inner.weight, inner.eps
