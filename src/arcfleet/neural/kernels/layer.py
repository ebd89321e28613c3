"""What follows the attention in an encoder layer: projection, feed-forward net, two norms.

With embeddings of some hundred numbers a layer waits for memory, not for arithmetic: torch
writes and reads them a dozen times. Three kernels do it in fewer passes:

- `fused_rest_of_layer` does all of it at once, without gradients, for decoding.
- `add_and_norm` is the sum with its norm, with gradients.
- `feed_forward` is the net with its skip and norm, with gradients: two products of torch
  and the sum with its norm in one pass; backward one kernel does all but the gradients of
  the two matrices, which are products over all arcs.

`rest_of_layer` chooses among them and torch.
"""

# Triton reads the source of its kernels and knows no types of ours.
# mypy: ignore-errors
from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from arcfleet.neural.device import working_on
from arcfleet.neural.kernels import HAS_TRITON, jit

if HAS_TRITON:
    import triton
    import triton.language as tl

#: Hidden numbers that a kernel takes at a time.
CHUNK = 64

#: Best of a few on an H200: arcs of a tile, warps, stages.
_AFTER_SHAPE = (64, 4, 3)

#: Arcs of a tile and warps.
_NORM_SHAPE = (64, 8)

# Programs of the backward pass, each of which sums the weight's gradient of its tiles.
_PROGRAMS = 1024

#: Best of a few on an H200: arcs of a tile, warps, stages.
_FEED_FORWARD_SHAPE = (64, 4, 2)


def rest_of_layer(
    hidden: Tensor,
    mixed: Tensor,
    out_weight: Tensor,
    first_norm: tuple[Tensor, float],
    widen: tuple[Tensor, Tensor],
    narrow: tuple[Tensor, Tensor],
    second_norm: tuple[Tensor, float],
) -> Tensor:
    """Compute norm(x + FF(x)) with x = norm(hidden + out(mixed)), (rows, arcs, width).

    `hidden` is the input of the layer, `mixed` the result of its attention. The norms are
    root-mean-square norms, of a weight and an epsilon; FF is a net with one hidden layer
    and ReLU, whose two halves have a weight and a bias.
    """
    ours = hidden.is_cuda and fits(hidden, len(widen[0])) and _same(out_weight, hidden)
    compiling = torch.compiler.is_compiling()
    if ours and not compiling and not torch.is_grad_enabled():
        return fused_rest_of_layer(
            hidden, mixed, out_weight, first_norm, widen, narrow, second_norm
        )
    change = functional.linear(mixed, out_weight)
    if ours and not compiling:  # torch.compile makes one of its own
        hidden = add_and_norm(hidden, change, *first_norm)
    else:
        hidden = _rms_norm(hidden + change, *first_norm)
    if ours:
        return feed_forward(hidden, widen, narrow, second_norm)
    # In place it would be a change of a view, whose gradient is copied several times.
    wide = functional.relu(
        functional.linear(hidden, *widen), inplace=not torch.is_grad_enabled()
    )  # (rows, arcs, feed_forward)
    return _rms_norm(hidden + functional.linear(wide, *narrow), *second_norm)


def _rms_norm(hidden: Tensor, weight: Tensor, eps: float) -> Tensor:
    return functional.rms_norm(hidden, weight.shape, weight, eps)


def _same(weight: Tensor, hidden: Tensor) -> bool:
    return weight.dtype == hidden.dtype


def fits(hidden: Tensor, feed_forward: int) -> bool:
    """Return whether the kernels take such embeddings and such a feed-forward width.

    In single precision Triton would round more than torch does.
    """
    return (
        HAS_TRITON
        and hidden.dtype == torch.bfloat16
        and hidden.shape[-1] in (32, 64, 128)
        and feed_forward % CHUNK == 0
    )


@jit
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
    dtype = result.dtype.element_ty
    attended = tl.dot(
        tl.load(mixed + place, mask=here, other=0.0), tl.trans(tl.load(out_weight + square))
    )
    total = tl.load(hidden + place, mask=here, other=0.0).to(tl.float32) + attended
    scale = tl.rsqrt(tl.sum(total * total, 1) / width + first_eps)
    # Rounded, as torch keeps it.
    middle = (total * scale[:, None] * tl.load(first_norm + d).to(tl.float32)).to(dtype)
    narrowed = tl.zeros((tile, width), tl.float32)
    c = tl.arange(0, chunk)
    for first in range(0, spread, chunk):
        rows = tl.load(widen + (first + c)[:, None] * width + d[None, :])
        bias = tl.load(widen_bias + first + c).to(tl.float32)
        wide = tl.maximum(tl.dot(middle, tl.trans(rows)) + bias[None, :], 0.0)
        columns = tl.load(narrow + d[:, None] * spread + (first + c)[None, :])
        narrowed = tl.dot(wide.to(dtype), tl.trans(columns), narrowed)
    total = middle.to(tl.float32) + narrowed + tl.load(narrow_bias + d).to(tl.float32)
    scale = tl.rsqrt(tl.sum(total * total, 1) / width + second_eps)
    normed = total * scale[:, None] * tl.load(second_norm + d).to(tl.float32)
    tl.store(result + place, normed.to(dtype), mask=here)


@jit
def _norm_kernel(
    hidden, change, weight, result, tokens, eps, width: tl.constexpr, tile: tl.constexpr
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


@jit
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


def fused_rest_of_layer(
    hidden: Tensor,
    mixed: Tensor,
    out_weight: Tensor,
    first_norm: tuple[Tensor, float],
    widen: tuple[Tensor, Tensor],
    narrow: tuple[Tensor, Tensor],
    second_norm: tuple[Tensor, float],
) -> Tensor:
    """Compute `rest_of_layer` in one kernel; it has no gradients."""
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
    """Compute `add_and_norm` of contiguous tensors, without gradients."""
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
    """Compute the root-mean-square norm of a sum, (rows, arcs, width), with gradients."""
    return _AddAndNorm.apply(hidden, change, weight, eps)


@jit
def _feed_forward_backward_kernel(
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
    dtype = d_hidden.dtype.element_ty
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
    narrowed = moved.to(dtype)
    tl.store(d_total + place, narrowed, mask=here)
    for first in range(0, wide, chunk):
        columns = tl.load(narrow + d[:, None] * wide + (first + c)[None, :])
        wide_place = token[:, None] * wide + (first + c)[None, :]
        active = tl.load(spread + wide_place, mask=here, other=0.0) > 0
        pulled = tl.where(active, tl.dot(narrowed, columns), 0.0)
        tl.store(vectors + 2 * width + first + c, tl.sum(pulled, 0))
        small = pulled.to(dtype)
        tl.store(d_spread + wide_place, small, mask=here)
        rows = tl.load(widen + (first + c)[:, None] * width + d[None, :])
        moved = tl.dot(small, rows, moved)
    tl.store(d_hidden + place, moved.to(dtype), mask=here)


def feed_forward(
    hidden: Tensor,
    widen: tuple[Tensor, Tensor],
    narrow: tuple[Tensor, Tensor],
    norm: tuple[Tensor, float],
) -> Tensor:
    """Compute norm(hidden + FF(hidden)), (rows, arcs, width), with gradients."""
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
    tile, warps, stages = _FEED_FORWARD_SHAPE
    programs = triton.cdiv(tokens, tile)
    d_vectors = torch.empty(
        (programs, 2 * width + wide), dtype=torch.float32, device=hidden.device
    )
    with working_on(hidden.device):
        _feed_forward_backward_kernel[(programs,)](
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
    # The results of an operator must not share memory.
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
    # No gradients are wanted for what is only kept; zeros for them take time.
    ctx.set_materialize_grads(False)


def _pull_back(ctx, d_result, *_):
    return *_feed_forward_backward(*ctx.saved_tensors, d_result, ctx.eps), None


_feed_forward.register_autograd(_pull_back, setup_context=_keep)
