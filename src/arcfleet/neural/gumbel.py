"""Gumbel noise that depends on its place alone: seed, plan, step and arc.

A generator gives other numbers when a batch is padded or cut into chunks, or lives on
another device. Here every number is a hash of where it is used, so the same seeds draw the
same plans everywhere, and a step stays a function of tensors alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

# Constants of SplitMix64 (Steele, Lea and Flood 2014), as signed numbers.
_GOLDEN = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64


def draw_seeds(count: int, generator: torch.Generator) -> Tensor:
    """Draw a seed for each of `count` instances, on the generator's device."""
    return torch.randint(2**62, (count,), generator=generator, device=generator.device)


def gumbel_noise(seeds: Tensor, copies: int, steps: Tensor, arcs: int) -> Tensor:
    """Give independent Gumbel noise.

    Parameters
    ----------
    seeds
        Of the instances, (batch,).
    copies
        Plans of each instance.
    steps
        Number of the step, a tensor of one number.
    arcs
        Arcs of each instance.

    Returns
    -------
    noise
        Of shape (batch, copies, arcs), float32.
    """
    copy = torch.arange(copies, device=seeds.device)
    arc = torch.arange(arcs, device=seeds.device)
    plans = mixed_bits(
        mixed_bits(seeds[:, None] + copy * _GOLDEN) + steps * _GOLDEN
    )  # (batch, copies)
    bits = mixed_bits(plans[..., None] + arc * _GOLDEN)  # (batch, copies, arcs)
    # 23 bits and a half are exact in float32, and so never 0 or 1.
    uniform = (_shift_right(bits, 41).float() + 0.5) * 2.0**-23
    return -torch.log(-torch.log(uniform))


def mixed_bits(values: Tensor) -> Tensor:
    """Hash whole numbers of 64 bits to others that look random."""
    values = (values ^ _shift_right(values, 30)) * _FIRST
    values = (values ^ _shift_right(values, 27)) * _SECOND
    return values ^ _shift_right(values, 31)


def _shift_right(values: Tensor, count: int) -> Tensor:
    # Without the sign, which >> would copy.
    return (values >> count) & ((1 << (64 - count)) - 1)
