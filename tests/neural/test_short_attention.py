"""The Triton kernel against the attention of torch, in the interpreter: without a GPU."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

_COMPARE = """
import torch
from torch.nn.functional import scaled_dot_product_attention
from arcfleet.neural.short_attention import short_attention

generator = torch.Generator().manual_seed(0)
for arcs, heads, dim, masked in ((5, 2, 16, False), (70, 1, 16, True), (41, 2, 32, True)):
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


@pytest.mark.skipif(
    importlib.util.find_spec("triton") is None,
    reason="torch for CPUs brings no Triton; install triton to test its kernel",
)
def test_kernel_equals_the_general_attention() -> None:
    # Triton reads the variable when it is first imported, hence another process.
    ran = subprocess.run(
        [sys.executable, "-c", _COMPARE],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.strip() == "equal", ran.stderr
