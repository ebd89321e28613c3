"""Attention of all arcs of a plan to all visible ones, with narrow heads.

Computes softmax(Q K^T / sqrt(d)) V for each head. Heads of 16 numbers are too narrow for
the general kernels, which take up to six times as long. Here one program holds all keys and
values of one head of one plan, so that the softmax needs one pass and nothing but the
result goes through memory. Forward and backward.
"""

# Triton reads the source of its kernels and knows no types of ours.
# mypy: ignore-errors
from __future__ import annotations

import math
from typing import Optional

import torch
from torch import Tensor
from torch.nn import functional

from arcfleet.neural.device import working_on
from arcfleet.neural.kernels import HAS_TRITON, jit

if HAS_TRITON:
    import triton
    import triton.language as tl

#: Beyond this the keys of a head no longer fit into registers.
MOST_ARCS = 256

#: Best of a few on an H200: rows of a tile, warps and stages, up to so many arcs.
_FORWARD_SHAPE = {64: (16, 1, 1), 128: (32, 2, 3), 256: (16, 1, 3)}

_BACKWARD_SHAPE = {
    64: (16, 1, 2),
    96: (32, 2, 2),
    128: (64, 2, 2),
    192: (64, 4, 2),
    256: (64, 4, 1),
}


def attention(parts: Tensor, visible: Tensor | None, heads: int) -> Tensor:
    """Let every arc attend to all visible ones; return (rows, arcs, width).

    `parts` are queries, keys and values side by side, (rows, arcs, 3 width), heads within
    each. The visible arcs, (rows, arcs), always include the depot; None for all.
    """
    if parts.is_cuda and fits(parts, heads):
        return short_attention(parts, visible, heads)
    split = parts.view(*parts.shape[:-1], 3, heads, -1)  # (rows, arcs, 3, heads, dim)
    query, key, value = split.permute(2, 0, 3, 1, 4)  # each: (rows, heads, arcs, dim)
    mask = None
    if visible is not None:
        # The fused kernels take numbers, not truth values.
        mask = torch.zeros(visible.shape, dtype=parts.dtype, device=visible.device)
        mask = mask.masked_fill(~visible, -math.inf)[:, None, None]  # (rows, 1, 1, arcs)
    mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return mixed.transpose(1, 2).flatten(2)


def fits(parts: Tensor, heads: int) -> bool:
    """Return whether the kernel takes such queries, keys and values.

    In single precision Triton would round more than the general kernels do, and wide heads
    they handle well. GPUs too old for bfloat16 see none of it: `device.has_bfloat16`.
    """
    dim = parts.shape[-1] // 3 // heads
    half = parts.dtype == torch.bfloat16
    return HAS_TRITON and half and parts.shape[1] <= MOST_ARCS and dim in (16, 32)


@jit
def _forward_kernel(
    parts,
    real,
    out,
    log_sums,
    scale,
    arcs: tl.constexpr,
    heads: tl.constexpr,
    masked: tl.constexpr,
    dim: tl.constexpr,
    keys: tl.constexpr,
    tile: tl.constexpr,
):
    row = (tl.program_id(0) // heads).to(tl.int64)
    head = tl.program_id(0) % heads
    width: tl.constexpr = heads * dim
    d = tl.arange(0, dim)
    k = tl.arange(0, keys)
    base = parts + row * arcs * 3 * width + head * dim
    cell = k[:, None] * 3 * width + d[None, :]
    inside = k < arcs
    key = tl.load(base + width + cell, mask=inside[:, None], other=0.0)
    value = tl.load(base + 2 * width + cell, mask=inside[:, None], other=0.0)
    if masked:
        inside = inside & (tl.load(real + row * arcs + k, mask=inside, other=0) != 0)
    bias = tl.where(inside, 0.0, float("-inf"))
    for first in range(0, arcs, tile):
        q = first + tl.arange(0, tile)
        here = (q < arcs)[:, None]
        query = tl.load(base + q[:, None] * 3 * width + d[None, :], mask=here, other=0.0)
        score = tl.dot(query, tl.trans(key)) * scale + bias[None, :]
        top = tl.max(score, 1)
        weight = tl.exp2(score - top[:, None])
        total = tl.sum(weight, 1)
        mixed = tl.dot(weight.to(value.dtype), value) / total[:, None]
        place = row * arcs * width + q[:, None] * width + head * dim + d[None, :]
        tl.store(out + place, mixed.to(out.dtype.element_ty), mask=here)
        sums = log_sums + tl.program_id(0).to(tl.int64) * arcs + q
        tl.store(sums, top + tl.log2(total), mask=q < arcs)


@jit
def _keys(
    parts,
    real,
    offset,
    row,
    first,
    arcs: tl.constexpr,
    width: tl.constexpr,
    masked: tl.constexpr,
    dim: tl.constexpr,
    count: tl.constexpr,
):
    """Load some keys to score, the same with zeros for hidden ones, values, and a mask."""
    d = tl.arange(0, dim)
    k = first + tl.arange(0, count)
    inside = k < arcs
    if masked:
        inside = inside & (tl.load(real + row * arcs + k, mask=inside, other=0) != 0)
    # In place of none stands the depot: with its score no weight is above 1, and a bias of
    # minus infinity for every pair would take longer.
    cell = offset + tl.where(inside, k, 0)[:, None] * 3 * width + d[None, :]
    scored = tl.load(parts + width + cell)
    value = tl.load(parts + 2 * width + cell)
    return scored, tl.where(inside[:, None], scored, 0.0), value, inside


@jit
def _pull_on_keys(
    scored, key, value, query, d_mixed, log_sum, along, d_key, d_value, scale
):
    """Add the gradients of a tile of queries to keys and values; return the queries' own.

    Pairs are laid out with keys down: so they need no turning for two products of three.
    """
    weight = tl.exp2(tl.dot(scored, tl.trans(query)) * scale - log_sum[None, :])
    d_value = tl.dot(weight.to(value.dtype), d_mixed, d_value)
    d_weight = tl.dot(value, tl.trans(d_mixed))
    d_score = (weight * (d_weight - along[None, :])).to(value.dtype)
    d_key = tl.dot(d_score, query, d_key)
    return d_key, d_value, tl.dot(tl.trans(d_score), key)


@jit
def _store_keys(
    d_parts,
    offset,
    first,
    d_key,
    d_value,
    inside,
    arcs: tl.constexpr,
    width: tl.constexpr,
    dim: tl.constexpr,
    count: tl.constexpr,
):
    k = first + tl.arange(0, count)
    target = d_parts + offset + k[:, None] * 3 * width + tl.arange(0, dim)[None, :]
    dtype = d_parts.dtype.element_ty
    some = inside[:, None]
    kept = (k < arcs)[:, None]
    tl.store(target + width, tl.where(some, d_key, 0.0).to(dtype), mask=kept)
    tl.store(target + 2 * width, tl.where(some, d_value, 0.0).to(dtype), mask=kept)


@jit
def _backward_kernel(
    parts,
    real,
    out,
    log_sums,
    d_out,
    d_parts,
    scale,
    plain_scale,
    arcs: tl.constexpr,
    heads: tl.constexpr,
    masked: tl.constexpr,
    dim: tl.constexpr,
    keys: tl.constexpr,
    more: tl.constexpr,
    tile: tl.constexpr,
):
    row = (tl.program_id(0) // heads).to(tl.int64)
    head = tl.program_id(0) % heads
    width: tl.constexpr = heads * dim
    d = tl.arange(0, dim)
    offset = row * arcs * 3 * width + head * dim
    scored, key, value, inside = _keys(
        parts, real, offset, row, 0, arcs, width, masked, dim, keys
    )
    d_key = tl.zeros((keys, dim), tl.float32)
    d_value = tl.zeros((keys, dim), tl.float32)
    if more:
        scored2, key2, value2, inside2 = _keys(
            parts, real, offset, row, keys, arcs, width, masked, dim, more
        )
        d_key2 = tl.zeros((more, dim), tl.float32)
        d_value2 = tl.zeros((more, dim), tl.float32)
    for first in range(0, arcs, tile):
        q = first + tl.arange(0, tile)
        here = (q < arcs)[:, None]
        query_cell = offset + q[:, None] * 3 * width + d[None, :]
        query = tl.load(parts + query_cell, mask=here, other=0.0)
        place = row * arcs * width + q[:, None] * width + head * dim + d[None, :]
        mixed = tl.load(out + place, mask=here, other=0.0)
        d_mixed = tl.load(d_out + place, mask=here, other=0.0)
        sums = log_sums + tl.program_id(0).to(tl.int64) * arcs + q
        log_sum = tl.load(sums, mask=q < arcs, other=float("inf"))
        along = tl.sum(mixed.to(tl.float32) * d_mixed.to(tl.float32), 1)
        d_key, d_value, d_query = _pull_on_keys(
            scored, key, value, query, d_mixed, log_sum, along, d_key, d_value, scale
        )
        if more:
            d_key2, d_value2, d_query2 = _pull_on_keys(
                scored2,
                key2,
                value2,
                query,
                d_mixed,
                log_sum,
                along,
                d_key2,
                d_value2,
                scale,
            )
            d_query += d_query2
        d_query = (d_query * plain_scale).to(d_parts.dtype.element_ty)
        tl.store(d_parts + query_cell, d_query, mask=here)
    d_key *= plain_scale
    _store_keys(d_parts, offset, 0, d_key, d_value, inside, arcs, width, dim, keys)
    if more:
        d_key2 *= plain_scale
        _store_keys(
            d_parts, offset, keys, d_key2, d_value2, inside2, arcs, width, dim, more
        )


def short_attention(parts: Tensor, real: Optional[Tensor], heads: int) -> Tensor:  # noqa: UP045
    """Compute `attention` by the kernel, with gradients."""
    return _attend(parts, real, heads)[0]


@torch.library.custom_op("arcfleet::short_attention", mutates_args=())
def _attend(
    parts: Tensor,
    real: Optional[Tensor],  # noqa: UP045 (torch reads this signature)
    heads: int,
) -> tuple[Tensor, Tensor]:
    rows, arcs, width = parts.shape[0], parts.shape[1], parts.shape[2] // 3
    parts = parts.contiguous()
    out = parts.new_empty(rows, arcs, width)
    log_sums = parts.new_empty(rows * heads, arcs, dtype=torch.float32)
    dim, keys = width // heads, _padded(arcs)
    tile, warps, stages = _shape(_FORWARD_SHAPE, arcs)
    with working_on(parts.device):
        _forward_kernel[(rows * heads,)](
            parts,
            parts if real is None else real.contiguous(),
            out,
            log_sums,
            math.log2(math.e) / math.sqrt(dim),
            arcs,
            heads,
            real is not None,
            dim,
            keys,
            tile,
            num_warps=warps,
            num_stages=stages,
        )
    return out, log_sums


@_attend.register_fake
def _(parts, real, heads):
    rows, arcs, width = parts.shape[0], parts.shape[1], parts.shape[2] // 3
    log_sums = parts.new_empty(rows * heads, arcs, dtype=torch.float32)
    return parts.new_empty(rows, arcs, width), log_sums


@torch.library.custom_op("arcfleet::short_attention_backward", mutates_args=())
def _attend_backward(
    parts: Tensor,
    real: Optional[Tensor],  # noqa: UP045 (torch reads this signature)
    out: Tensor,
    log_sums: Tensor,
    d_out: Tensor,
    heads: int,
) -> Tensor:
    rows, arcs, width = out.shape
    parts = parts.contiguous()
    d_parts = torch.empty_like(parts)
    dim = width // heads
    # In two parts, since the number of each must be a power of 2.
    keys = min(_padded(arcs), 128)
    more = _padded(arcs - keys) if arcs > keys else 0
    tile, warps, stages = _shape(_BACKWARD_SHAPE, arcs)
    with working_on(parts.device):
        _backward_kernel[(rows * heads,)](
            parts,
            parts if real is None else real.contiguous(),
            out,
            log_sums,
            d_out.contiguous(),
            d_parts,
            math.log2(math.e) / math.sqrt(dim),
            1 / math.sqrt(dim),
            arcs,
            heads,
            real is not None,
            dim,
            keys,
            more,
            tile,
            num_warps=warps,
            num_stages=stages,
        )
    return d_parts


@_attend_backward.register_fake
def _(parts, real, out, log_sums, d_out, heads):
    return parts.new_empty(parts.shape)


def _keep(ctx, inputs, output):
    parts, real, heads = inputs
    ctx.save_for_backward(parts, real, *output)
    ctx.heads = heads
    ctx.set_materialize_grads(False)  # none for the sums


def _pull_back(ctx, d_out, _):
    parts, real, out, log_sums = ctx.saved_tensors
    return _attend_backward(parts, real, out, log_sums, d_out, ctx.heads), None, None


_attend.register_autograd(_pull_back, setup_context=_keep)


def _padded(arcs: int) -> int:
    return max(64, triton.next_power_of_2(arcs))


def _shape(shapes: dict[int, tuple[int, int, int]], arcs: int) -> tuple[int, int, int]:
    return next(shape for most, shape in shapes.items() if arcs <= most)
