"""Kernels: each file has a Triton kernel for recent GPUs and its torch fallback.

A model calls one function for each computation; the function takes the kernel where it
fits the device and the shapes, and torch elsewhere. Triton comes with torch for CUDA only.
"""

# Triton reads the source of its kernels and knows no types of ours.
# mypy: ignore-errors
from __future__ import annotations

try:
    import triton
except ImportError:  # not every torch brings Triton
    triton = None

HAS_TRITON = triton is not None


def jit(function):
    """Make a Triton kernel of a function; without Triton the function stays as it is."""
    return function if triton is None else triton.jit(function)
