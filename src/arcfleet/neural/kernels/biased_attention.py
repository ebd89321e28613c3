"""Attention with a bias by the driving costs of each pair, there and back.

Adds to the score of arc i for arc j

    s0 c_ji + s1 c_ij + s2 exp(-4 c_ji) + s3 exp(-4 c_ij)

with c_ji the driving cost from j to i, in mean driving costs, and four slopes of each head.
The kernels are those of `attention.py`; the costs of a pair come as two bfloat16 numbers in
one word, which all heads and layers share.
"""

# Triton reads the source of its kernels and knows no types of ours.
# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple, Optional

import torch
from torch import Tensor
from torch.nn import functional

from arcfleet.neural.device import working_on
from arcfleet.neural.kernels import HAS_TRITON, jit
from arcfleet.neural.kernels.attention import fits

if HAS_TRITON:
    import triton
    import triton.language as tl

#: Rows of which one counts for the gradient of the slopes.
EVERY = 8

#: Numbers by which a bias may grow: costs from and to, and how near each way is.
SLOPES = 4
#: Of the exponentials.
NEARNESS = 4.0
_DECAY = -NEARNESS * math.log2(math.e)

#: Best of a few on an H200: rows of a tile, warps and stages, up to so many arcs.
FORWARD_SHAPE = {48: (16, 1, 2), 256: (32, 2, 2)}
BACKWARD_SHAPE = {48: (16, 1, 1), 256: (32, 4, 1)}


class Pairs(NamedTuple):
    """Driving costs of each pair of arcs."""

    incoming: Tensor  # from arc j to arc i, (batch, arcs i, arcs j)
    packed: Optional[Tensor]  # noqa: UP045  # as `pack` makes it; None off the kernels


def pack(incoming: Tensor) -> Tensor:
    """Put the costs to and from of each pair into one word, (batch, arcs, arcs), int32.

    The low half is the cost from j to i, the high half that from i to j, in bfloat16.
    """
    costs = incoming.to(torch.bfloat16)
    both = torch.stack([costs, costs.mT], dim=-1)  # little-endian: the first is low
    return both.view(torch.int32)[..., 0]


def biased_attention(
    parts: Tensor,
    visible: Tensor | None,
    heads: int,
    pairs: Pairs,
    slopes: Tensor,
    near: bool,
    every: int = 1,
) -> Tensor:
    """Let every arc attend to all visible ones; return (rows, arcs, width).

    `slopes` are (heads, 4); the last two count if `near`. Rows are the plans of the
    instances of `pairs`, side by side. On a GPU the gradient of the slopes is estimated
    from one row in `every`; 0 for no gradient.
    """
    if pairs.packed is not None and parts.is_cuda and fits(parts, heads):
        return _attend(parts, visible, heads, pairs.packed, slopes, near, every)[0]
    split = parts.view(*parts.shape[:-1], 3, heads, -1)  # (rows, arcs, 3, heads, dim)
    query, key, value = split.permute(2, 0, 3, 1, 4)  # each: (rows, heads, arcs, dim)
    mask = bias_of(pairs.incoming, slopes, near)  # (batch, heads, arcs, arcs)
    mask = mask.repeat_interleave(len(parts) // len(mask), 0)
    if visible is not None:
        mask = mask.masked_fill(~visible[:, None, None], -math.inf)
    mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return mixed.transpose(1, 2).flatten(2)


def bias_of(incoming: Tensor, slopes: Tensor, near: bool) -> Tensor:
    """Compute the bias of all pairs, (batch, heads, arcs, arcs)."""
    there, back = incoming[:, None], incoming.mT[:, None]
    slope = slopes.to(incoming.dtype).t()[:, None, :, None, None]  # (4, 1, heads, 1, 1)
    bias = slope[0] * there + slope[1] * back
    if near:
        bias = bias + slope[2] * torch.exp(-NEARNESS * there)
        bias = bias + slope[3] * torch.exp(-NEARNESS * back)
    return bias


@jit
def _unpacked(word):
    low = (word << 16).to(tl.float32, bitcast=True)
    high = (word & -65536).to(tl.float32, bitcast=True)
    return low, high


@jit
def _forward_kernel(
    parts,
    real,
    pairs,
    slopes,
    out,
    log_sums,
    scale,
    decay,
    plans,
    arcs: tl.constexpr,
    heads: tl.constexpr,
    masked: tl.constexpr,
    near: tl.constexpr,
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
    within = k < arcs
    key = tl.load(base + width + cell, mask=within[:, None], other=0.0)
    value = tl.load(base + 2 * width + cell, mask=within[:, None], other=0.0)
    inside = within
    if masked:
        inside = inside & (tl.load(real + row * arcs + k, mask=inside, other=0) != 0)
    hide = tl.where(inside, 0.0, float("-inf"))
    slope0 = tl.load(slopes + head * 4)
    slope1 = tl.load(slopes + head * 4 + 1)
    slope2 = tl.load(slopes + head * 4 + 2)
    slope3 = tl.load(slopes + head * 4 + 3)
    costs = pairs + (row // plans) * arcs * arcs
    for first in range(0, arcs, tile):
        q = first + tl.arange(0, tile)
        here = (q < arcs)[:, None]
        query = tl.load(base + q[:, None] * 3 * width + d[None, :], mask=here, other=0.0)
        words = tl.load(
            costs + q[:, None] * arcs + k[None, :], mask=here & within[None, :], other=0
        )
        there, back = _unpacked(words)
        score = tl.dot(query, tl.trans(key)) * scale + hide[None, :]
        score += slope0 * there + slope1 * back
        if near:
            score += slope2 * tl.exp2(there * decay) + slope3 * tl.exp2(back * decay)
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
    """Load some keys and values, and what hides those that are not visible."""
    d = tl.arange(0, dim)
    k = first + tl.arange(0, count)
    inside = k < arcs
    cell = offset + k[:, None] * 3 * width + d[None, :]
    key = tl.load(parts + width + cell, mask=inside[:, None], other=0.0)
    value = tl.load(parts + 2 * width + cell, mask=inside[:, None], other=0.0)
    if masked:
        inside = inside & (tl.load(real + row * arcs + k, mask=inside, other=0) != 0)
    return key, value, tl.where(inside, 0.0, float("-inf"))


@jit
def _pull_on_keys(
    key,
    value,
    hide,
    query,
    d_mixed,
    log_sum,
    along,
    d_key,
    d_value,
    costs,
    q,
    first,
    slope0,
    slope1,
    slope2,
    slope3,
    d_slope0,
    d_slope1,
    d_slope2,
    d_slope3,
    counts,
    scale,
    decay,
    arcs: tl.constexpr,
    near: tl.constexpr,
    every: tl.constexpr,
    count: tl.constexpr,
):
    """Add the gradients of a tile of queries to keys, values and slopes.

    Pairs are laid out with keys down, where the word of a pair has its halves the other
    way round.
    """
    k = first + tl.arange(0, count)
    words = tl.load(
        costs + k[:, None] * arcs + q[None, :],
        mask=(k < arcs)[:, None] & (q < arcs)[None, :],
        other=0,
    )
    back, there = _unpacked(words)
    score = tl.dot(key, tl.trans(query)) * scale + hide[:, None]
    score += slope0 * there + slope1 * back
    if near:
        near_there = tl.exp2(there * decay)
        near_back = tl.exp2(back * decay)
        score += slope2 * near_there + slope3 * near_back
    weight = tl.exp2(score - log_sum[None, :])
    d_value = tl.dot(weight.to(value.dtype), d_mixed, d_value)
    d_weight = tl.dot(value, tl.trans(d_mixed))
    d_score = weight * (d_weight - along[None, :])
    if every:
        if counts:
            d_slope0 += tl.sum(d_score * there, 1)
            d_slope1 += tl.sum(d_score * back, 1)
            if near:
                d_slope2 += tl.sum(d_score * near_there, 1)
                d_slope3 += tl.sum(d_score * near_back, 1)
    small = d_score.to(value.dtype)
    d_key = tl.dot(small, query, d_key)
    d_query = tl.dot(tl.trans(small), key)
    return d_key, d_value, d_query, d_slope0, d_slope1, d_slope2, d_slope3


@jit
def _store_keys(
    d_parts,
    offset,
    first,
    d_key,
    d_value,
    arcs: tl.constexpr,
    width: tl.constexpr,
    dim: tl.constexpr,
    count: tl.constexpr,
):
    k = first + tl.arange(0, count)
    target = d_parts + offset + k[:, None] * 3 * width + tl.arange(0, dim)[None, :]
    dtype = d_parts.dtype.element_ty
    kept = (k < arcs)[:, None]
    tl.store(target + width, d_key.to(dtype), mask=kept)
    tl.store(target + 2 * width, d_value.to(dtype), mask=kept)


@jit
def _backward_kernel(
    parts,
    real,
    pairs,
    slopes,
    out,
    log_sums,
    d_out,
    d_parts,
    d_slopes,
    scale,
    plain_scale,
    decay,
    plans,
    arcs: tl.constexpr,
    heads: tl.constexpr,
    masked: tl.constexpr,
    near: tl.constexpr,
    every: tl.constexpr,
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
    # Rows next to each other are states of one plan: each of them has its turn.
    counts = (row + row // 8) % (every if every else 1) == 0
    costs = pairs + (row // plans) * arcs * arcs
    slope0 = tl.load(slopes + head * 4)
    slope1 = tl.load(slopes + head * 4 + 1)
    slope2 = tl.load(slopes + head * 4 + 2)
    slope3 = tl.load(slopes + head * 4 + 3)
    key, value, hide = _keys(parts, real, offset, row, 0, arcs, width, masked, dim, keys)
    d_key = tl.zeros((keys, dim), tl.float32)
    d_value = tl.zeros((keys, dim), tl.float32)
    s0 = tl.zeros((keys,), tl.float32)
    s1 = tl.zeros((keys,), tl.float32)
    s2 = tl.zeros((keys,), tl.float32)
    s3 = tl.zeros((keys,), tl.float32)
    if more:
        key2, value2, hide2 = _keys(
            parts, real, offset, row, keys, arcs, width, masked, dim, more
        )
        d_key2 = tl.zeros((more, dim), tl.float32)
        d_value2 = tl.zeros((more, dim), tl.float32)
        t0 = tl.zeros((more,), tl.float32)
        t1 = tl.zeros((more,), tl.float32)
        t2 = tl.zeros((more,), tl.float32)
        t3 = tl.zeros((more,), tl.float32)
    for start in range(0, arcs, tile):
        q = start + tl.arange(0, tile)
        here = (q < arcs)[:, None]
        query_cell = offset + q[:, None] * 3 * width + d[None, :]
        query = tl.load(parts + query_cell, mask=here, other=0.0)
        place = row * arcs * width + q[:, None] * width + head * dim + d[None, :]
        mixed = tl.load(out + place, mask=here, other=0.0)
        d_mixed = tl.load(d_out + place, mask=here, other=0.0)
        sums = log_sums + tl.program_id(0).to(tl.int64) * arcs + q
        log_sum = tl.load(sums, mask=q < arcs, other=float("inf"))
        along = tl.sum(mixed.to(tl.float32) * d_mixed.to(tl.float32), 1)
        d_key, d_value, d_query, s0, s1, s2, s3 = _pull_on_keys(
            key, value, hide, query, d_mixed, log_sum, along, d_key, d_value, costs, q, 0,
            slope0, slope1, slope2, slope3, s0, s1, s2, s3, counts, scale, decay, arcs, near,
            every, keys,
        )  # fmt: skip
        if more:
            d_key2, d_value2, d_query2, t0, t1, t2, t3 = _pull_on_keys(
                key2, value2, hide2, query, d_mixed, log_sum, along, d_key2, d_value2,
                costs, q, keys, slope0, slope1, slope2, slope3, t0, t1, t2, t3, counts,
                scale, decay, arcs, near, every, more,
            )  # fmt: skip
            d_query += d_query2
        d_query = (d_query * plain_scale).to(d_parts.dtype.element_ty)
        tl.store(d_parts + query_cell, d_query, mask=here)
    d_key *= plain_scale
    _store_keys(d_parts, offset, 0, d_key, d_value, arcs, width, dim, keys)
    sum0 = tl.sum(s0, 0)
    sum1 = tl.sum(s1, 0)
    sum2 = tl.sum(s2, 0)
    sum3 = tl.sum(s3, 0)
    if more:
        d_key2 *= plain_scale
        _store_keys(d_parts, offset, keys, d_key2, d_value2, arcs, width, dim, more)
        sum0 += tl.sum(t0, 0)
        sum1 += tl.sum(t1, 0)
        sum2 += tl.sum(t2, 0)
        sum3 += tl.sum(t3, 0)
    target = d_slopes + tl.program_id(0).to(tl.int64) * 4
    tl.store(target, sum0)
    tl.store(target + 1, sum1)
    tl.store(target + 2, sum2)
    tl.store(target + 3, sum3)


@torch.library.custom_op("arcfleet::biased_attention", mutates_args=())
def _attend(
    parts: Tensor,
    real: Optional[Tensor],  # noqa: UP045 (torch reads this signature)
    heads: int,
    pairs: Tensor,
    slopes: Tensor,
    near: bool,
    every: int,
) -> tuple[Tensor, Tensor]:
    rows, arcs, width = parts.shape[0], parts.shape[1], parts.shape[2] // 3
    parts = parts.contiguous()
    out = parts.new_empty(rows, arcs, width)
    log_sums = parts.new_empty(rows * heads, arcs, dtype=torch.float32)
    dim = width // heads
    tile, warps, stages = _shape(FORWARD_SHAPE, arcs)
    with working_on(parts.device):
        _forward_kernel[(rows * heads,)](
            parts,
            parts if real is None else real.contiguous(),
            pairs,
            slopes.float() * math.log2(math.e),
            out,
            log_sums,
            math.log2(math.e) / math.sqrt(dim),
            _DECAY,
            rows // len(pairs),
            arcs,
            heads,
            real is not None,
            near,
            dim,
            _padded(arcs),
            tile,
            num_warps=warps,
            num_stages=stages,
        )
    return out, log_sums


@_attend.register_fake
def _(parts, real, heads, pairs, slopes, near, every):
    rows, arcs, width = parts.shape[0], parts.shape[1], parts.shape[2] // 3
    log_sums = parts.new_empty(rows * heads, arcs, dtype=torch.float32)
    return parts.new_empty(rows, arcs, width), log_sums


@torch.library.custom_op("arcfleet::biased_attention_backward", mutates_args=())
def _attend_backward(
    parts: Tensor,
    real: Optional[Tensor],  # noqa: UP045 (torch reads this signature)
    pairs: Tensor,
    slopes: Tensor,
    out: Tensor,
    log_sums: Tensor,
    d_out: Tensor,
    heads: int,
    near: bool,
    every: int,
) -> tuple[Tensor, Tensor]:
    rows, arcs, width = out.shape
    parts = parts.contiguous()
    d_parts = torch.empty_like(parts)
    d_slopes = parts.new_empty((rows, heads, SLOPES), dtype=torch.float32)
    dim = width // heads
    # In two parts, since the number of each must be a power of 2.
    keys = min(_padded(arcs), 128)
    more = _padded(arcs - keys) if arcs > keys else 0
    tile, warps, stages = _shape(BACKWARD_SHAPE, arcs)
    with working_on(parts.device):
        _backward_kernel[(rows * heads,)](
            parts,
            parts if real is None else real.contiguous(),
            pairs,
            slopes.float() * math.log2(math.e),
            out,
            log_sums,
            d_out.contiguous(),
            d_parts,
            d_slopes,
            math.log2(math.e) / math.sqrt(dim),
            1 / math.sqrt(dim),
            _DECAY,
            rows // len(pairs),
            arcs,
            heads,
            real is not None,
            near,
            every,
            dim,
            keys,
            more,
            tile,
            num_warps=warps,
            num_stages=stages,
        )
    return d_parts, (every * d_slopes.sum(0)).to(slopes.dtype)


@_attend_backward.register_fake
def _(parts, real, pairs, slopes, out, log_sums, d_out, heads, near, every):
    return parts.new_empty(parts.shape), slopes.new_empty(slopes.shape)


def _keep(ctx, inputs, output):
    parts, real, heads, pairs, slopes, near, every = inputs
    ctx.save_for_backward(parts, real, pairs, slopes, *output)
    ctx.options = heads, near, every
    ctx.set_materialize_grads(False)  # none for the sums


def _pull_back(ctx, d_out, _):
    parts, real, pairs, slopes, out, log_sums = ctx.saved_tensors
    d_parts, d_slopes = _attend_backward(
        parts, real, pairs, slopes, out, log_sums, d_out, *ctx.options
    )
    return d_parts, None, None, None, d_slopes, None, None


_attend.register_autograd(_pull_back, setup_context=_keep)


def _padded(arcs: int) -> int:
    return max(16, triton.next_power_of_2(arcs))


def _shape(shapes: dict[int, tuple[int, int, int]], arcs: int) -> tuple[int, int, int]:
    return next(shape for most, shape in shapes.items() if arcs <= most)
