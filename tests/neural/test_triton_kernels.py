"""The Triton kernels against torch, in the interpreter: without a GPU."""

import importlib.util
import os
import subprocess
import sys

import pytest

_ATTENTION = """
import torch
from torch.nn.functional import scaled_dot_product_attention
from arcfleet.neural.kernels.attention import short_attention

generator = torch.Generator().manual_seed(0)
for arcs, heads, dim, masked in (
    *((5, 2, 16, False), (70, 1, 16, True), (41, 2, 32, True)),
    *((130, 1, 16, True), (201, 1, 16, False)),
):
    joined = torch.randn(2, arcs, 3 * heads * dim, generator=generator, requires_grad=True)
    real = None
    if masked:
        real = torch.rand(2, arcs, generator=generator) < 0.6
        real[:, 0] = True
    query, key, value = joined.view(2, arcs, 3, heads, dim).permute(2, 0, 3, 1, 4)
    mask = None if real is None else real[:, None, None]
    wanted = scaled_dot_product_attention(query, key, value, attn_mask=mask)
    wanted = wanted.transpose(1, 2).flatten(2)
    got = short_attention(joined, real, heads)
    torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)
    pull = torch.randn(got.shape, generator=generator)
    ours, = torch.autograd.grad(got, joined, pull)
    theirs, = torch.autograd.grad(wanted, joined, pull)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
print("equal")
"""


_BIASED_ATTENTION = """
import torch
from triton.runtime import interpreter
from arcfleet.neural.kernels import biased_attention as biased

# numpy makes no number of an array of one any more, as the end of a loop needs it.
patch = interpreter._patch_lang_tensor
def patched(tensor, scope):
    patch(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())
interpreter._patch_lang_tensor = patched

generator = torch.Generator().manual_seed(0)
for arcs, heads, dim, masked, whole in (
    *((5, 2, 16, False, 256), (48, 1, 32, True, 256), (70, 1, 16, True, 256)),
    *((130, 1, 16, True, 256), (201, 1, 16, False, 256)),
    *((37, 2, 16, True, 32), (300, 1, 16, True, 256), (264, 1, 32, False, 256)),
):
    biased.WHOLE = whole
    parts = torch.randn(4, arcs, 3 * heads * dim, generator=generator, requires_grad=True)
    slopes = torch.randn(heads, 2, generator=generator, requires_grad=True)
    # Rounded, as the kernels get them; two plans of each instance.
    incoming = (2 * torch.rand(2, arcs, arcs, generator=generator)).bfloat16().float()
    visible = None
    if masked:
        visible = torch.rand(4, arcs, generator=generator) < 0.6
        visible[:, 0] = True
    pairs = biased.Pairs(incoming)  # on the CPU torch computes it
    wanted = biased.biased_attention(parts, visible, heads, pairs, slopes)
    got, _ = biased._attend(parts, visible, heads, biased.pack(incoming), slopes)
    torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)
    pull = torch.randn(got.shape, generator=generator)
    ours = torch.autograd.grad(got, [parts, slopes], pull)
    theirs = torch.autograd.grad(wanted, [parts, slopes], pull)
    torch.testing.assert_close(ours[0], theirs[0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours[1], theirs[1], atol=1e-4, rtol=1e-4)
print("equal")
"""


_LAYER = """
import torch
from arcfleet.neural.kernels import layer as layer_kernels
from arcfleet.neural.kernels.layer import (
    add_and_norm,
    feed_forward,
    fits,
    fused_rest_of_layer,
    rest_of_layer,
)

half = torch.zeros(1, 1, 128, dtype=torch.bfloat16)
assert fits(half, 512) and fits(half[..., :32], 64)
assert not fits(half[..., :16], 64) and not fits(half.repeat(1, 1, 2), 512)
assert not fits(half, 500) and not fits(half.float(), 512)
# So that a program has several tiles.
layer_kernels._PROGRAMS = 2

generator = torch.Generator().manual_seed(0)

def drawn(*shape):
    return torch.randn(shape, generator=generator)

for rows, arcs, width, spread in ((2, 5, 32, 64), (3, 70, 64, 192), (1, 41, 128, 512)):
    shapes = (width, width), (width,), (spread, width), (spread,), (width, spread)
    weights = [drawn(*x) / width**0.5 for x in (*shapes, (width,), (width,))]
    out, first, widen, widen_bias, narrow, narrow_bias, second = weights
    hidden, mixed = drawn(rows, arcs, width), drawn(rows, arcs, width)
    layer = (
        hidden,
        mixed,
        out,
        (first, 1e-6),
        (widen, widen_bias),
        (narrow, narrow_bias),
        (second, 1e-6),
    )
    with torch.no_grad():
        # On the CPU the second is what torch makes of it.
        got, wanted = fused_rest_of_layer(*layer), rest_of_layer(*layer)
        torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)
    change, weight = drawn(rows, arcs, width), drawn(width)
    parts = [x.requires_grad_() for x in (hidden, change, weight)]
    got = add_and_norm(*parts, 1e-6)
    wanted = torch.nn.functional.rms_norm(hidden + change, (width,), weight, 1e-6)
    torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)
    pull = drawn(*got.shape)
    ours = torch.autograd.grad(got, parts, pull)
    theirs = torch.autograd.grad(wanted, parts, pull)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    parts = [hidden, widen, widen_bias, narrow, narrow_bias, second]
    parts = [x.detach().requires_grad_() for x in parts]
    hidden, widen, widen_bias, narrow, narrow_bias, second = parts
    got = feed_forward(hidden, (widen, widen_bias), (narrow, narrow_bias), (second, 1e-6))
    wide = torch.relu(hidden @ widen.T + widen_bias)
    wanted = hidden + wide @ narrow.T + narrow_bias
    wanted = torch.nn.functional.rms_norm(wanted, (width,), second, 1e-6)
    torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)
    ours = torch.autograd.grad(got, parts, pull)
    theirs = torch.autograd.grad(wanted, parts, pull)
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
print("equal")
"""


@pytest.mark.skipif(
    importlib.util.find_spec("triton") is None,
    reason="torch for CPUs brings no Triton; install triton to test its kernels",
)
@pytest.mark.parametrize(
    "code",
    [_ATTENTION, _BIASED_ATTENTION, _LAYER],
    ids=["attention", "biased-attention", "layer"],
)
def test_kernels_equal_torch(code: str) -> None:
    # Triton reads the variable when it is first imported, hence another process.
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.strip() == "equal", ran.stderr
