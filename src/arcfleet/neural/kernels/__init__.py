"""Triton kernels, each with its torch fallback."""
