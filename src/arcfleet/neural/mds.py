"""Multi-dimensional scaling: points whose distances are about the driving costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from arcfleet.neural.eigenpairs import Eigenpairs, top_eigenpairs
from arcfleet.neural.shortest_paths import FAR

if TYPE_CHECKING:
    from torch import Tensor

#: Networks with more nodes are placed by so many of them.
MOST_LANDMARKS = 512

#: Splits equal eigenvalues, whose vectors would be any turn of each other, by the numbers
#: of the nodes: the same axes then come out on every device and with any padding.
_TIE_BREAK = 1e-9

#: Eigenvalues below this share of the first are rounding, and their axes nothing.
_LEAST_SHARE = 1e-7


def classical_mds(
    distance: Tensor,
    num_nodes: Tensor,
    dimensions: int,
    *,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """Place all nodes of every instance, (batch, nodes, dimensions).

    One-way streets: the mean of both directions counts, and where there is no way the
    largest finite distance of the instance stands. Padding lies at the origin.

    Parameters
    ----------
    distance
        Driving costs between nodes, (batch, nodes, nodes); from `FAR` on means no way.
    num_nodes
        How many are real, (batch,).
    dimensions
        Coordinates of a node; those that the instance does not fill are 0.
    dtype
        Of the arithmetic. Single precision is enough for a model, but loses the tie-break
        between equal axes.
    """
    nodes = distance.shape[1]
    real = torch.arange(nodes, device=distance.device) < num_nodes[:, None]
    squared, largest = _squared(distance, distance.mT, real, real, dtype)
    pairs = _centred_eigenpairs(squared, real, dimensions)
    points = pairs.vectors * pairs.values.sqrt()[:, None] * largest
    return functional.pad(points, (0, dimensions - points.shape[2]))


def landmark_nodes(num_nodes: int, most: int = MOST_LANDMARKS) -> Tensor:
    """Choose nodes evenly in the order of their numbers; all if they are not too many."""
    count = min(num_nodes, most)
    return torch.arange(count) * num_nodes // max(1, count)


def landmark_mds(
    leaving: Tensor,
    arriving: Tensor,
    landmarks: Tensor,
    dimensions: int,
    *,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """Place the nodes of one instance by some of them, (nodes, dimensions).

    Landmarks are placed as by `classical_mds`, every node then by its distances to them
    (de Silva and Tenenbaum 2004).

    Parameters
    ----------
    leaving, arriving
        Driving costs from and to the landmarks, (landmarks, nodes).
    landmarks
        Their nodes, (landmarks,).
    dimensions, dtype
        As for `classical_mds`.
    """
    count, nodes = leaving.shape
    real = torch.ones((1, nodes), dtype=torch.bool, device=leaving.device)
    squared, largest = _squared(
        leaving[None], arriving[None], real[:, :count], real, dtype
    )  # (1, landmarks, nodes)
    between = squared[:, :, landmarks]
    pairs = _centred_eigenpairs(between, real[:, :count], dimensions)
    root = pairs.values.sqrt()
    pull = pairs.vectors * torch.where(root > 0, 1 / root, 0)[:, None]
    points = (between.mean(2, keepdim=True) - squared).mT @ pull / 2 * largest
    return functional.pad(points[0], (0, dimensions - points.shape[2]))


def _squared(
    leaving: Tensor, arriving: Tensor, real_rows: Tensor, real: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Give squared distances of at most 1, and the distance that 1 stands for."""
    known = real_rows[:, :, None] & real[:, None]
    finite = [d.masked_fill((d >= FAR) | ~known, 0) for d in (leaving, arriving)]
    largest = torch.maximum(*(d.amax((1, 2), keepdim=True) for d in finite))
    filled = [torch.where(d >= FAR, largest, d) for d in (leaving, arriving)]
    unit = largest.clamp(min=1).to(dtype)
    mean = (filled[0].to(dtype) + filled[1].to(dtype)) / (2 * unit)
    return mean.square().masked_fill(~known, 0), unit


def _centred_eigenpairs(squared: Tensor, real: Tensor, count: int) -> Eigenpairs:
    """Give the largest eigenpairs of the double-centred matrix; no value is below 0."""
    share = real.to(squared) / real.sum(1, keepdim=True).clamp(min=1)
    row = (squared * share[:, None]).sum(2)  # (batch, nodes)
    total = (row * share).sum(1)
    inner = (row[:, :, None] + row[:, None] - squared - total[:, None, None]) / 2
    inner = inner.masked_fill(~(real[:, :, None] & real[:, None]), 0)
    number = torch.arange(1, real.shape[1] + 1, dtype=torch.float64, device=real.device)
    shift = _TIE_BREAK * (number * 0.6180339887498949).frac()
    # Downwards, so that no axis appears where there was none.
    inner.diagonal(dim1=1, dim2=2).sub_(shift.to(inner.dtype))
    pairs = top_eigenpairs(inner, count)
    values = pairs.values.clamp(min=0)
    values = torch.where(values > _LEAST_SHARE * values[:, :1], values, 0)
    # Vectors of padding belong to no value above 0.
    vectors = torch.where(values[:, None] > 0, pairs.vectors, 0)
    return Eigenpairs(values, _fix_signs(vectors))


def _fix_signs(vectors: Tensor) -> Tensor:
    """Make the largest entry of each vector positive, the first of about equal ones."""
    size = vectors.abs()
    near = size >= 0.999 * size.amax(1, keepdim=True)
    first = near.to(torch.int8).argmax(1, keepdim=True)  # (batch, 1, count)
    return torch.where(vectors.gather(1, first) < 0, -vectors, vectors)
