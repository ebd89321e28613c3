"""Attention with a bias by the driving costs of each pair of arcs, there and back.

Adds to the score of arc i for arc j

    s0 c_ji + s1 c_ij

with c_ji the driving cost from j to i, in mean driving costs, and two slopes of each head.
Both costs of a pair come as two bfloat16 numbers in one word, made once for all heads and
layers. States of any length: up to `WHOLE` arcs a program holds all keys of a head, beyond
that the softmax is taken block by block. Forward and backward.
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

if HAS_TRITON:
    import triton
    import triton.language as tl

#: Slopes of a head: of the cost from the other arc, and of that to it.
SLOPES = 2

#: Beyond this the keys of a head no longer fit into registers.
WHOLE = 256

#: Best of a few on an H200: rows of a tile, warps and stages, up to so many arcs.
_FORWARD_SHAPE = {48: (16, 1, 2), 128: (64, 4, 2), WHOLE: (32, 2, 2)}
_BACKWARD_SHAPE = {48: (16, 1, 1), 128: (32, 4, 1), WHOLE: (16, 4, 1)}

#: The same beyond, after the keys of a block.
_LONG_FORWARD_SHAPE = (64, 64, 4, 2)
_LONG_BACKWARD_SHAPE = (64, 64, 4, 1)


class Pairs(NamedTuple):
    """Driving costs of each pair of arcs."""

    incoming: Tensor  # from arc j to arc i, (batch, arcs i, arcs j)
    packed: Optional[Tensor] = None  # noqa: UP045  # as `pack` makes it; None off the kernels

    def rows(self, rows: slice) -> Pairs:
        """Return those of some of the instances."""
        return Pairs(*(None if part is None else part[rows] for part in self))


def pairs_of(incoming: Tensor) -> Pairs:
    """Return driving costs, (batch, arcs, arcs), in the form that their device needs."""
    kernels = HAS_TRITON and incoming.is_cuda and incoming.dtype == torch.bfloat16
    return Pairs(incoming, pack(incoming) if kernels else None)


def pack(incoming: Tensor) -> Tensor:
    """Put the costs there and back of each pair into one word, (batch, arcs, arcs), int32.

    The low half is the cost from j to i, the high half that from i to j, in bfloat16.
    """
    costs = incoming.to(torch.bfloat16)
    both = torch.stack([costs, costs.mT], dim=-1)  # little-endian: the first is low
    return both.view(torch.int32)[..., 0]


def biased_attention(
    parts: Tensor, visible: Tensor | None, heads: int, pairs: Pairs, slopes: Tensor
) -> Tensor:
    """Let every arc attend to all visible ones; return (rows, arcs, width).

    Parameters
    ----------
    parts
        Queries, keys and values side by side, (rows, arcs, 3 width), heads within each.
    visible
        Visible arcs, (rows, arcs), the depot always among them; None for all.
    heads
        Number of heads.
    pairs
        Driving costs of the instances; the rows are their plans, side by side.
    slopes
        Slopes of the bias, (heads, 2).
    """
    if pairs.packed is not None and fits(parts, heads):
        return _attend(parts, visible, heads, pairs.packed, slopes)[0]
    split = parts.view(*parts.shape[:-1], 3, heads, -1)  # (rows, arcs, 3, heads, dim)
    query, key, value = split.permute(2, 0, 3, 1, 4)  # each: (rows, heads, arcs, dim)
    there, back = pairs.incoming[:, None], pairs.incoming.mT[:, None]
    slope = slopes.to(there.dtype).t()[:, None, :, None, None]  # (2, 1, heads, 1, 1)
    bias = slope[0] * there + slope[1] * back  # (batch, heads, arcs, arcs)
    plans = len(parts) // len(bias)
    if plans > 1:
        bias = bias.repeat_interleave(plans, 0)  # (rows, heads, arcs, arcs)
    if visible is not None:
        bias = bias.masked_fill(~visible[:, None, None], -math.inf)
    mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
    return mixed.transpose(1, 2).flatten(2)


def fits(parts: Tensor, heads: int) -> bool:
    """Return whether the kernels take such queries, keys and values."""
    dim = parts.shape[-1] // 3 // heads
    return parts.is_cuda and parts.dtype == torch.bfloat16 and dim in (16, 32)


@jit
def _costs(word):
    """Return both halves of a word, the low one first."""
    low = (word << 16).to(tl.float32, bitcast=True)
    high = (word & -65536).to(tl.float32, bitcast=True)
    return low, high


@jit
def _keys(
    parts,
    real,
    offset,
    row,
    first,
    arcs,
    width: tl.constexpr,
    masked: tl.constexpr,
    dim: tl.constexpr,
    count: tl.constexpr,
):
    """Load some keys and values, and what hides those that are not visible."""
    d = tl.arange(0, dim)
    k = first + tl.arange(0, count)
    inside = k < arcs
    cell = offset + k[:, None] * (3 * width) + d[None, :]
    key = tl.load(parts + width + cell, mask=inside[:, None], other=0.0)
    value = tl.load(parts + 2 * width + cell, mask=inside[:, None], other=0.0)
    if masked:
        inside = inside & (tl.load(real + row * arcs + k, mask=inside, other=0) != 0)
    return key, value, tl.where(inside, 0.0, float("-inf"))


@jit
def _scores(
    query, key, hide, costs, q, first, slope0, slope1, scale, arcs, count: tl.constexpr
):
    """Compute the scores of a tile of queries for some keys, queries down."""
    k = first + tl.arange(0, count)
    words = tl.load(
        costs + q[:, None] * arcs + k[None, :],
        mask=(q < arcs)[:, None] & (k < arcs)[None, :],
        other=0,
    )
    there, back = _costs(words)
    score = tl.dot(query, tl.trans(key)) * scale + hide[None, :]
    return score + slope0 * there + slope1 * back


@jit
def _forward_kernel(
    parts,
    real,
    pairs,
    slopes,
    out,
    log_sums,
    scale,
    plans,
    units,
    unit: tl.constexpr,
    heads: tl.constexpr,
    masked: tl.constexpr,
    dim: tl.constexpr,
    whole: tl.constexpr,
    keys: tl.constexpr,
    tile: tl.constexpr,
):
    arcs = units * unit  # so that the compiler knows by what it can be divided
    row = (tl.program_id(0) // heads).to(tl.int64)
    head = tl.program_id(0) % heads
    width: tl.constexpr = heads * dim
    d = tl.arange(0, dim)
    offset = row * arcs * (3 * width) + head * dim
    costs = pairs + (row // plans) * arcs * arcs
    slope0 = tl.load(slopes + head * 2)
    slope1 = tl.load(slopes + head * 2 + 1)
    places = out + row * arcs * width + head * dim
    sums = log_sums + tl.program_id(0).to(tl.int64) * arcs
    if whole:
        key, value, hide = _keys(
            parts, real, offset, row, 0, arcs, width, masked, dim, keys
        )
        for first in range(0, arcs, tile):
            q = first + tl.arange(0, tile)
            here = (q < arcs)[:, None]
            cell = offset + q[:, None] * (3 * width) + d[None, :]
            query = tl.load(parts + cell, mask=here, other=0.0)
            score = _scores(
                query, key, hide, costs, q, 0, slope0, slope1, scale, arcs, keys
            )
            top = tl.max(score, 1)
            weight = tl.exp2(score - top[:, None])
            total = tl.sum(weight, 1)
            mixed = tl.dot(weight.to(value.dtype), value) / total[:, None]
            place = places + q[:, None] * width + d[None, :]
            tl.store(place, mixed.to(out.dtype.element_ty), mask=here)
            tl.store(sums + q, top + tl.log2(total), mask=q < arcs)
    else:
        q = tl.program_id(1) * tile + tl.arange(0, tile)
        here = (q < arcs)[:, None]
        cell = offset + q[:, None] * (3 * width) + d[None, :]
        query = tl.load(parts + cell, mask=here, other=0.0)
        # The depot is in the first block, so that the largest score is never -inf.
        top = tl.full((tile,), float("-inf"), tl.float32)
        total = tl.zeros((tile,), tl.float32)
        mixed = tl.zeros((tile, dim), tl.float32)
        for first in range(0, arcs, keys):
            key, value, hide = _keys(
                parts, real, offset, row, first, arcs, width, masked, dim, keys
            )
            score = _scores(
                query, key, hide, costs, q, first, slope0, slope1, scale, arcs, keys
            )
            higher = tl.maximum(top, tl.max(score, 1))
            fade = tl.exp2(top - higher)
            weight = tl.exp2(score - higher[:, None])
            total = total * fade + tl.sum(weight, 1)
            mixed = tl.dot(weight.to(value.dtype), value, mixed * fade[:, None])
            top = higher
        place = places + q[:, None] * width + d[None, :]
        tl.store(place, (mixed / total[:, None]).to(out.dtype.element_ty), mask=here)
        tl.store(sums + q, top + tl.log2(total), mask=q < arcs)


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
    d_slope0,
    d_slope1,
    costs,
    q,
    first,
    slope0,
    slope1,
    scale,
    arcs,
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
    back, there = _costs(words)
    score = tl.dot(key, tl.trans(query)) * scale + hide[:, None]
    score += slope0 * there + slope1 * back
    weight = tl.exp2(score - log_sum[None, :])
    d_value = tl.dot(weight.to(value.dtype), d_mixed, d_value)
    d_weight = tl.dot(value, tl.trans(d_mixed))
    d_score = weight * (d_weight - along[None, :])
    d_slope0 += tl.sum(d_score * there, 1)
    d_slope1 += tl.sum(d_score * back, 1)
    small = d_score.to(value.dtype)
    d_key = tl.dot(small, query, d_key)
    d_query = tl.dot(tl.trans(small), key)
    return d_key, d_value, d_query, d_slope0, d_slope1


@jit
def _store_keys(
    d_parts,
    offset,
    first,
    d_key,
    d_value,
    arcs,
    width: tl.constexpr,
    dim: tl.constexpr,
    count: tl.constexpr,
):
    k = first + tl.arange(0, count)
    target = d_parts + offset + k[:, None] * (3 * width) + tl.arange(0, dim)[None, :]
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
    d_queries,
    d_slopes,
    scale,
    plain_scale,
    plans,
    units,
    unit: tl.constexpr,
    heads: tl.constexpr,
    masked: tl.constexpr,
    dim: tl.constexpr,
    whole: tl.constexpr,
    keys: tl.constexpr,
    more: tl.constexpr,
    tile: tl.constexpr,
):
    arcs = units * unit
    row = (tl.program_id(0) // heads).to(tl.int64)
    head = tl.program_id(0) % heads
    begin = tl.program_id(1) * keys
    width: tl.constexpr = heads * dim
    d = tl.arange(0, dim)
    offset = row * arcs * (3 * width) + head * dim
    costs = pairs + (row // plans) * arcs * arcs
    slope0 = tl.load(slopes + head * 2)
    slope1 = tl.load(slopes + head * 2 + 1)
    key, value, hide = _keys(
        parts, real, offset, row, begin, arcs, width, masked, dim, keys
    )
    d_key = tl.zeros((keys, dim), tl.float32)
    d_value = tl.zeros((keys, dim), tl.float32)
    s0 = tl.zeros((keys,), tl.float32)
    s1 = tl.zeros((keys,), tl.float32)
    if more:
        key2, value2, hide2 = _keys(
            parts, real, offset, row, keys, arcs, width, masked, dim, more
        )
        d_key2 = tl.zeros((more, dim), tl.float32)
        d_value2 = tl.zeros((more, dim), tl.float32)
        t0 = tl.zeros((more,), tl.float32)
        t1 = tl.zeros((more,), tl.float32)
    for start in range(0, arcs, tile):
        q = start + tl.arange(0, tile)
        here = (q < arcs)[:, None]
        cell = q[:, None] * (3 * width) + d[None, :]
        query = tl.load(parts + offset + cell, mask=here, other=0.0)
        place = row * arcs * width + q[:, None] * width + head * dim + d[None, :]
        mixed = tl.load(out + place, mask=here, other=0.0)
        d_mixed = tl.load(d_out + place, mask=here, other=0.0)
        sums = log_sums + tl.program_id(0).to(tl.int64) * arcs + q
        log_sum = tl.load(sums, mask=q < arcs, other=float("inf"))
        along = tl.sum(mixed.to(tl.float32) * d_mixed.to(tl.float32), 1)
        d_key, d_value, d_query, s0, s1 = _pull_on_keys(
            key, value, hide, query, d_mixed, log_sum, along, d_key, d_value, s0, s1,
            costs, q, begin, slope0, slope1, scale, arcs, keys,
        )  # fmt: skip
        if more:
            d_key2, d_value2, d_query2, t0, t1 = _pull_on_keys(
                key2, value2, hide2, query, d_mixed, log_sum, along, d_key2, d_value2, t0,
                t1, costs, q, keys, slope0, slope1, scale, arcs, more,
            )  # fmt: skip
            d_query += d_query2
        d_query *= plain_scale
        if whole:
            d_query = d_query.to(d_parts.dtype.element_ty)
            tl.store(d_parts + offset + cell, d_query, mask=here)
        else:  # every block of keys has its part
            tl.atomic_add(d_queries + place, d_query, mask=here, sem="relaxed")
    _store_keys(
        d_parts, offset, begin, d_key * plain_scale, d_value, arcs, width, dim, keys
    )
    sum0 = tl.sum(s0, 0)
    sum1 = tl.sum(s1, 0)
    if more:
        _store_keys(
            d_parts, offset, keys, d_key2 * plain_scale, d_value2, arcs, width, dim, more
        )
        sum0 += tl.sum(t0, 0)
        sum1 += tl.sum(t1, 0)
    program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    target = d_slopes + program.to(tl.int64) * 2
    tl.store(target, sum0)
    tl.store(target + 1, sum1)


@torch.library.custom_op("arcfleet::biased_attention", mutates_args=())
def _attend(
    parts: Tensor,
    real: Optional[Tensor],  # noqa: UP045 (torch reads this signature)
    heads: int,
    pairs: Tensor,
    slopes: Tensor,
) -> tuple[Tensor, Tensor]:
    rows, arcs, width = parts.shape[0], parts.shape[1], parts.shape[2] // 3
    parts = parts.contiguous()
    out = parts.new_empty(rows, arcs, width)
    log_sums = parts.new_empty(rows * heads, arcs, dtype=torch.float32)
    dim, whole, tiles = width // heads, arcs <= WHOLE, 1
    if whole:
        keys = _padded(arcs)
        tile, warps, stages = _shape(_FORWARD_SHAPE, arcs)
    else:
        keys, tile, warps, stages = _LONG_FORWARD_SHAPE
        tiles = triton.cdiv(arcs, tile)
    with working_on(parts.device):
        _forward_kernel[(rows * heads, tiles)](
            parts,
            parts if real is None else real.contiguous(),
            pairs,
            slopes.float() * math.log2(math.e),
            out,
            log_sums,
            math.log2(math.e) / math.sqrt(dim),
            rows // len(pairs),
            *_units(arcs),
            heads,
            real is not None,
            dim,
            whole,
            keys,
            tile,
            num_warps=warps,
            num_stages=stages,
        )
    return out, log_sums


@_attend.register_fake
def _(parts, real, heads, pairs, slopes):
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
) -> tuple[Tensor, Tensor]:
    rows, arcs, width = out.shape
    parts = parts.contiguous()
    d_parts = torch.empty_like(parts)
    dim, whole = width // heads, arcs <= WHOLE
    if whole:
        # In two parts, since the number of each must be a power of 2.
        keys, blocks, d_queries = min(_padded(arcs), 128), 1, d_parts
        more = _padded(arcs - keys) if arcs > keys else 0
        tile, warps, stages = _shape(_BACKWARD_SHAPE, arcs)
    else:
        keys, tile, warps, stages = _LONG_BACKWARD_SHAPE
        more, blocks = 0, triton.cdiv(arcs, keys)
        d_queries = torch.zeros(out.shape, dtype=torch.float32, device=out.device)
    d_slopes = parts.new_empty((blocks * rows, heads, SLOPES), dtype=torch.float32)
    with working_on(parts.device):
        _backward_kernel[(rows * heads, blocks)](
            parts,
            parts if real is None else real.contiguous(),
            pairs,
            slopes.float() * math.log2(math.e),
            out,
            log_sums,
            d_out.contiguous(),
            d_parts,
            d_queries,
            d_slopes,
            math.log2(math.e) / math.sqrt(dim),
            1 / math.sqrt(dim),
            rows // len(pairs),
            *_units(arcs),
            heads,
            real is not None,
            dim,
            whole,
            keys,
            more,
            tile,
            num_warps=warps,
            num_stages=stages,
        )
    if not whole:
        d_parts[..., :width] = d_queries
    return d_parts, d_slopes.sum(0).to(slopes.dtype)


@_attend_backward.register_fake
def _(parts, real, pairs, slopes, out, log_sums, d_out, heads):
    return parts.new_empty(parts.shape), slopes.new_empty(slopes.shape)


def _keep(ctx, inputs, output):
    parts, real, heads, pairs, slopes = inputs
    ctx.save_for_backward(parts, real, pairs, slopes, *output)
    ctx.heads = heads
    ctx.set_materialize_grads(False)  # none for the sums


def _pull_back(ctx, d_out, _):
    parts, real, pairs, slopes, out, log_sums = ctx.saved_tensors
    d_parts, d_slopes = _attend_backward(
        parts, real, pairs, slopes, out, log_sums, d_out, ctx.heads
    )
    return d_parts, None, None, None, d_slopes


_attend.register_autograd(_pull_back, setup_context=_keep)


def _units(arcs: int) -> tuple[int, int]:
    """Return a number of arcs as a multiple of 8 where it is one: words load faster then.

    Only the second is known to the compiler, so that few lengths are compiled anew.
    """
    return (arcs // 8, 8) if arcs % 8 == 0 else (arcs, 1)


def _padded(arcs: int) -> int:
    return max(16, triton.next_power_of_2(arcs))


def _shape(shapes: dict[int, tuple[int, int, int]], arcs: int) -> tuple[int, int, int]:
    return next(shape for most, shape in shapes.items() if arcs <= most)
