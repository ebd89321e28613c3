"""What follows the attention of an encoder layer, in Triton: in one pass through memory.

With embeddings of some hundred numbers a layer waits for memory, not for arithmetic: torch
writes and reads them a dozen times. `after_attention` does all of it at once, for plans
that are only built. `add_and_norm` and `feed_forward_kernels` are what a layer that learns
can have: the hidden layer must be kept for the gradients anyway.
"""

# Triton reads the source of its kernels and knows no types of ours.
# mypy: ignore-errors
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from arcfleet.neural.device import working_on

#: Hidden numbers that a kernel takes at a time.
CHUNK = 64

#: Best of a few on an H200: arcs of a tile, warps, stages.
_AFTER_SHAPE = (64, 4, 3)

#: Arcs of a tile and warps.
_NORM_SHAPE = (64, 8)

# Programs of the backward pass, each of which sums the weight's gradient of its tiles.
_PROGRAMS = 1024


def fits(hidden: Tensor, feed_forward: int) -> bool:
    """Say whether embeddings, (rows, arcs, width), and such a layer can be handled.

    In single precision Triton would round more than torch does.
    """
    return (
        hidden.dtype == torch.bfloat16
        and hidden.shape[-1] in (32, 64, 128)
        and feed_forward % CHUNK == 0
    )


@triton.jit
def _after_kernel(
    hidden,
    mixed,
    out_weight,
    first_norm,
    widen,
    widen_bias,
    narrow,
    narrow_bias,
    second_norm,
    result,
    tokens,
    first_eps,
    second_eps,
    width: tl.constexpr,
    spread: tl.constexpr,
    tile: tl.constexpr,
    chunk: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64) * tile + tl.arange(0, tile)
    here = (token < tokens)[:, None]
    d = tl.arange(0, width)
    place = token[:, None] * width + d[None, :]
    square = d[:, None] * width + d[None, :]
    kind = result.dtype.element_ty
    attended = tl.dot(
        tl.load(mixed + place, mask=here, other=0.0),
        tl.trans(tl.load(out_weight + square)),
    )
    total = tl.load(hidden + place, mask=here, other=0.0).to(tl.float32) + attended
    scale = tl.rsqrt(tl.sum(total * total, 1) / width + first_eps)
    # Rounded, as torch keeps it.
    middle = (total * scale[:, None] * tl.load(first_norm + d).to(tl.float32)).to(kind)
    narrowed = tl.zeros((tile, width), tl.float32)
    c = tl.arange(0, chunk)
    for first in range(0, spread, chunk):
        rows = tl.load(widen + (first + c)[:, None] * width + d[None, :])
        bias = tl.load(widen_bias + first + c).to(tl.float32)
        wide = tl.maximum(tl.dot(middle, tl.trans(rows)) + bias[None, :], 0.0)
        columns = tl.load(narrow + d[:, None] * spread + (first + c)[None, :])
        narrowed = tl.dot(wide.to(kind), tl.trans(columns), narrowed)
    total = middle.to(tl.float32) + narrowed + tl.load(narrow_bias + d).to(tl.float32)
    scale = tl.rsqrt(tl.sum(total * total, 1) / width + second_eps)
    normed = total * scale[:, None] * tl.load(second_norm + d).to(tl.float32)
    tl.store(result + place, normed.to(kind), mask=here)


@triton.jit
def _norm_kernel(
    hidden,
    change,
    weight,
    result,
    tokens,
    eps,
    width: tl.constexpr,
    tile: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64) * tile + tl.arange(0, tile)
    here = (token < tokens)[:, None]
    d = tl.arange(0, width)
    place = token[:, None] * width + d[None, :]
    total = tl.load(hidden + place, mask=here, other=0.0).to(tl.float32)
    total += tl.load(change + place, mask=here, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(total * total, 1) / width + eps)
    normed = total * scale[:, None] * tl.load(weight + d).to(tl.float32)
    tl.store(result + place, normed.to(result.dtype.element_ty), mask=here)


@triton.jit
def _norm_backward_kernel(
    hidden,
    change,
    weight,
    d_result,
    d_total,
    d_weights,
    tokens,
    eps,
    width: tl.constexpr,
    tile: tl.constexpr,
):
    d = tl.arange(0, width)
    factor = tl.load(weight + d).to(tl.float32)
    d_weight = tl.zeros((width,), tl.float32)
    first = tl.program_id(0).to(tl.int64) * tile
    step = tl.num_programs(0).to(tl.int64) * tile
    while first < tokens:
        token = first + tl.arange(0, tile)
        here = (token < tokens)[:, None]
        place = token[:, None] * width + d[None, :]
        total = tl.load(hidden + place, mask=here, other=0.0).to(tl.float32)
        total += tl.load(change + place, mask=here, other=0.0).to(tl.float32)
        pull = tl.load(d_result + place, mask=here, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(total * total, 1) / width + eps)[:, None]
        plain = total * scale
        d_weight += tl.sum(pull * plain, 0)
        pull = pull * factor
        along = (tl.sum(pull * plain, 1) / width)[:, None]
        moved = scale * (pull - plain * along)
        tl.store(d_total + place, moved.to(d_total.dtype.element_ty), mask=here)
        first += step
    tl.store(d_weights + tl.program_id(0) * width + d, d_weight)


def after_attention(
    hidden: Tensor,
    mixed: Tensor,
    out_weight: Tensor,
    first_norm: tuple[Tensor, float],
    widen: tuple[Tensor, Tensor],
    narrow: tuple[Tensor, Tensor],
    second_norm: tuple[Tensor, float],
) -> Tensor:
    """Do the rest of a layer: projection, skip, norm, feed-forward net, skip, norm.

    It has no gradients.

    Parameters
    ----------
    hidden
        What the layer was given, (rows, arcs, width).
    mixed
        What its attention gathered, likewise.
    out_weight
        Of the projection, (width, width).
    first_norm, second_norm
        Weights of the root-mean-square norms, (width,), and their epsilons.
    widen, narrow
        Weights and biases of the feed-forward net.
    """
    width, tokens = hidden.shape[-1], hidden.numel() // hidden.shape[-1]
    tile, warps, stages = _AFTER_SHAPE
    result = torch.empty_like(hidden, memory_format=torch.contiguous_format)
    with working_on(hidden.device):
        _after_kernel[(triton.cdiv(tokens, tile),)](
            hidden.contiguous(),
            mixed.contiguous(),
            out_weight,
            first_norm[0],
            *widen,
            *narrow,
            second_norm[0],
            result,
            tokens,
            first_norm[1],
            second_norm[1],
            width,
            len(widen[0]),
            tile,
            CHUNK,
            num_warps=warps,
            num_stages=stages,
        )
    return result


def sum_and_norm(hidden: Tensor, change: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Give what `add_and_norm` does, of tensors without gaps and without gradients."""
    width, tokens = hidden.shape[-1], hidden.numel() // hidden.shape[-1]
    result = torch.empty_like(hidden)
    tile, warps = _NORM_SHAPE
    with working_on(hidden.device):
        _norm_kernel[(triton.cdiv(tokens, tile),)](
            hidden, change, weight, result, tokens, eps, width, tile, num_warps=warps
        )
    return result


class _AddAndNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden, change, weight, eps):
        hidden, change = hidden.contiguous(), change.contiguous()
        ctx.save_for_backward(hidden, change, weight)
        ctx.eps = eps
        return sum_and_norm(hidden, change, weight, eps)

    @staticmethod
    @once_differentiable
    def backward(ctx, d_result):
        hidden, change, weight = ctx.saved_tensors
        width, tokens = hidden.shape[-1], hidden.numel() // hidden.shape[-1]
        tile, warps = _NORM_SHAPE
        programs = min(_PROGRAMS, triton.cdiv(tokens, tile))
        d_total = torch.empty_like(hidden)
        d_weights = torch.empty(
            (programs, width), dtype=torch.float32, device=hidden.device
        )
        with working_on(hidden.device):
            _norm_backward_kernel[(programs,)](
                hidden,
                change,
                weight,
                d_result.contiguous(),
                d_total,
                d_weights,
                tokens,
                ctx.eps,
                width,
                tile,
                num_warps=warps,
            )
        return d_total, d_total, d_weights.sum(0).to(weight.dtype), None


def add_and_norm(hidden: Tensor, change: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Give the root-mean-square norm of a sum, with gradients.

    Parameters
    ----------
    hidden, change
        To be added, (rows, arcs, width).
    weight, eps
        Of the norm.
    """
    return _AddAndNorm.apply(hidden, change, weight, eps)
