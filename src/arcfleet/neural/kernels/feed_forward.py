"""The feed-forward half of an encoder layer that learns, in Triton, with gradients.

With embeddings of some hundred numbers it waits for memory, not for arithmetic. Forward it
is two products of torch and the sum with its norm in one pass; backward one kernel does all
but the gradients of the two matrices, which are products over all arcs.
"""

# Triton reads the source of its kernels and knows no types of ours.
# mypy: ignore-errors
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from arcfleet.neural.device import working_on
from arcfleet.neural.kernels.layer import CHUNK, sum_and_norm

#: Best of a few on an H200: arcs of a tile, warps, stages.
_SHAPE = (64, 4, 2)


@triton.jit
def _backward_kernel(
    widen,
    narrow,
    norm,
    hidden,
    change,
    spread,
    d_result,
    d_hidden,
    d_spread,
    d_total,
    d_vectors,
    tokens,
    eps,
    width: tl.constexpr,
    wide: tl.constexpr,
    tile: tl.constexpr,
    chunk: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64) * tile + tl.arange(0, tile)
    here = (token < tokens)[:, None]
    d = tl.arange(0, width)
    c = tl.arange(0, chunk)
    place = token[:, None] * width + d[None, :]
    kind = d_hidden.dtype.element_ty
    # The part of this tile in the gradients of the norm's weight and of both biases.
    vectors = d_vectors + tl.program_id(0).to(tl.int64) * (2 * width + wide)
    summed = tl.load(hidden + place, mask=here, other=0.0).to(tl.float32)
    summed += tl.load(change + place, mask=here, other=0.0).to(tl.float32)
    pull = tl.load(d_result + place, mask=here, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(summed * summed, 1) / width + eps)[:, None]
    plain = summed * scale
    tl.store(vectors + d, tl.sum(pull * plain, 0))
    pull = pull * tl.load(norm + d).to(tl.float32)
    along = (tl.sum(pull * plain, 1) / width)[:, None]
    moved = scale * (pull - plain * along)
    tl.store(vectors + width + d, tl.sum(moved, 0))
    narrowed = moved.to(kind)
    tl.store(d_total + place, narrowed, mask=here)
    for first in range(0, wide, chunk):
        columns = tl.load(narrow + d[:, None] * wide + (first + c)[None, :])
        wide_place = token[:, None] * wide + (first + c)[None, :]
        active = tl.load(spread + wide_place, mask=here, other=0.0) > 0
        pulled = tl.where(active, tl.dot(narrowed, columns), 0.0)
        tl.store(vectors + 2 * width + first + c, tl.sum(pulled, 0))
        small = pulled.to(kind)
        tl.store(d_spread + wide_place, small, mask=here)
        rows = tl.load(widen + (first + c)[:, None] * width + d[None, :])
        moved = tl.dot(small, rows, moved)
    tl.store(d_hidden + place, moved.to(kind), mask=here)


def feed_forward(
    hidden: Tensor,
    widen: tuple[Tensor, Tensor],
    narrow: tuple[Tensor, Tensor],
    norm: tuple[Tensor, float],
) -> Tensor:
    """Give the root-mean-square norm of embeddings and what the net makes of them.

    Parameters
    ----------
    hidden
        (rows, arcs, width).
    widen, narrow
        Weights and biases of the net.
    norm
        Weight and epsilon of the norm.
    """
    return _feed_forward(hidden, *widen, *narrow, *norm)[0]


@torch.library.custom_op("arcfleet::feed_forward", mutates_args=())
def _feed_forward(
    hidden: Tensor,
    widen: Tensor,
    widen_bias: Tensor,
    narrow: Tensor,
    narrow_bias: Tensor,
    norm: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    width = hidden.shape[-1]
    hidden = hidden.contiguous()
    # torch has no public name for a product that is cut at 0 in the same pass.
    activated = torch._addmm_activation  # noqa: SLF001
    spread = activated(widen_bias, hidden.view(-1, width), widen.t())
    change = torch.addmm(narrow_bias, spread, narrow.t()).view(hidden.shape)
    return sum_and_norm(hidden, change, norm, eps), spread, change


@_feed_forward.register_fake
def _(hidden, widen, widen_bias, narrow, narrow_bias, norm, eps):
    spread = hidden.new_empty(hidden.numel() // hidden.shape[-1], len(widen))
    return hidden.new_empty(hidden.shape), spread, hidden.new_empty(hidden.shape)


@torch.library.custom_op("arcfleet::feed_forward_backward", mutates_args=())
def _feed_forward_backward(
    hidden: Tensor,
    widen: Tensor,
    narrow: Tensor,
    norm: Tensor,
    spread: Tensor,
    change: Tensor,
    d_result: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    wide, width = widen.shape
    tokens = hidden.numel() // width
    hidden = hidden.contiguous()
    d_hidden, d_total = torch.empty_like(hidden), torch.empty_like(hidden)
    d_spread = torch.empty_like(spread)
    tile, warps, stages = _SHAPE
    programs = triton.cdiv(tokens, tile)
    d_vectors = torch.empty(
        (programs, 2 * width + wide), dtype=torch.float32, device=hidden.device
    )
    with working_on(hidden.device):
        _backward_kernel[(programs,)](
            widen,
            narrow,
            norm,
            hidden,
            change,
            spread,
            d_result.contiguous(),
            d_hidden,
            d_spread,
            d_total,
            d_vectors,
            tokens,
            eps,
            width,
            wide,
            tile,
            CHUNK,
            num_warps=warps,
            num_stages=stages,
        )
    d_widen = d_spread.t() @ hidden.view(-1, width)
    d_narrow = d_total.view(-1, width).t() @ spread
    vectors = d_vectors.sum(0).to(hidden.dtype)
    d_norm, d_narrow_bias, d_widen_bias = vectors.split([width, width, wide])
    # What an operator gives must not share memory.
    return (
        d_hidden,
        d_widen,
        d_widen_bias.clone(),
        d_narrow,
        d_narrow_bias.clone(),
        d_norm.clone(),
    )


@_feed_forward_backward.register_fake
def _(hidden, widen, narrow, norm, spread, change, d_result, eps):
    wide, width = widen.shape
    return (
        hidden.new_empty(hidden.shape),
        widen.new_empty(wide, width),
        widen.new_empty(wide),
        narrow.new_empty(width, wide),
        narrow.new_empty(width),
        norm.new_empty(width),
    )


def _keep(ctx, inputs, output):
    hidden, widen, _, narrow, _, norm, eps = inputs
    _, spread, change = output
    ctx.save_for_backward(hidden, widen, narrow, norm, spread, change)
    ctx.eps = eps
    # Nobody asks for the gradients of what is only kept; zeros for them take time.
    ctx.set_materialize_grads(False)


def _pull_back(ctx, d_result, *_):
    return *_feed_forward_backward(*ctx.saved_tensors, d_result, ctx.eps), None


_feed_forward.register_autograd(_pull_back, setup_context=_keep)
