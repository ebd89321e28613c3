"""A graph attention layer (Velickovic et al. 2018) over the arc graph."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor


class GraphAttention(nn.Module):
    """Every arc gathers from all arcs, the more the better they match; ways count, too.

    The same scores as DaAM's layer has.

    Parameters
    ----------
    width, heads
        Its sizes.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.mix = nn.Linear(width, width, bias=False)
        self.attend_to = nn.Parameter(torch.empty(heads, width // heads))
        self.attend_from = nn.Parameter(torch.empty(heads, width // heads))
        self.attend_edge = nn.Parameter(torch.zeros(heads))
        nn.init.xavier_uniform_(self.attend_to)
        nn.init.xavier_uniform_(self.attend_from)

    def forward(self, hidden: Tensor, incoming: Tensor, real: Tensor | None) -> Tensor:
        """Give what each arc gathers, (batch, copies, arcs, width).

        Parameters
        ----------
        hidden
            Embeddings, (batch, copies, arcs, width).
        incoming
            As `ArcBatch.incoming`, (batch, 1, arcs, arcs).
        real
            (batch, 1, arcs), or None where nothing is padded.
        """
        parts = self.mix(hidden).unflatten(-1, (self.heads, -1)).transpose(2, 3)
        # parts: (batch, copies, heads, arcs, width / heads)
        attend = torch.stack([self.attend_to, self.attend_from])
        mixed_by = self.mix.weight.view(self.heads, -1, hidden.shape[-1])
        # attend . (mix h) = (attend mix) . h: one thin product for both ends of all heads.
        both = torch.einsum("shw,hwi->shi", attend, mixed_by).flatten(0, 1)
        scores = functional.linear(hidden, both).mT  # (batch, copies, 2 heads, arcs)
        to = scores[:, :, : self.heads, :, None]
        source = scores[:, :, self.heads :, None]
        if real is not None:
            source = source.masked_fill(~real[:, :, None, None], -math.inf)
        edge = self.attend_edge[:, None, None]
        score = torch.addcmul(to + source, incoming[:, :, None], edge)
        score = functional.leaky_relu(score, 0.2)
        mixed: Tensor = score.softmax(-1) @ parts
        return mixed.transpose(2, 3).flatten(-2)
