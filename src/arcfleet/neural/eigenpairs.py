"""The largest eigenpairs of many small symmetric matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from torch import Tensor

#: Vectors iterated beside those wanted; they speed up the last wanted ones.
_EXTRA = 8

#: Degrees of the filters. The first are low: as long as no vector is near its limit, a
#: high degree would turn all of them into the first eigenvector.
_DEGREES = (2, 3, 4, *(9 * (5,)))

#: On a GPU `eigh` takes matrices larger than 32 one after the other, some milliseconds
#: each; so many pay for the iteration's fixed number of steps.
_MANY = 8


class Eigenpairs(NamedTuple):
    """Eigenvalues, the largest first, and their vectors.

    Parameters
    ----------
    values
        (batch, count).
    vectors
        (batch, nodes, count).
    """

    values: Tensor
    vectors: Tensor


def top_eigenpairs(matrix: Tensor, count: int) -> Eigenpairs:
    """Give the largest eigenpairs of (batch, nodes, nodes), by the way that is faster.

    Where a matrix has fewer, fewer are given.
    """
    batch, nodes, _ = matrix.shape
    many = matrix.device.type != "cpu" and batch >= _MANY
    if many and nodes >= 2 * (count + _EXTRA):
        return iterate_eigenpairs(matrix, count)
    values, vectors = torch.linalg.eigh(matrix)
    return Eigenpairs(values.flip(-1)[:, :count], vectors.flip(-1)[:, :, :count])


def iterate_eigenpairs(matrix: Tensor, count: int) -> Eigenpairs:
    """Give the largest eigenpairs by subspace iteration, in batched products only.

    Chebyshev polynomials damp the unwanted part of the spectrum, from below its smallest
    eigenvalue up to the smallest Ritz value (Zhou, Saad, Tiago and Chelikowsky 2006).
    """
    batch, nodes, _ = matrix.shape
    width = min(count + _EXTRA, nodes)
    start = _start(nodes, width).to(matrix)
    vectors = _orthonormal(start.expand(batch, -1, -1))
    values, vectors = _rayleigh_ritz(matrix, vectors)
    total = matrix.square().sum((1, 2))  # the sum of all squared eigenvalues
    for degree in _DEGREES:
        # Ritz values never exceed eigenvalues, so the rest of the squares is a bound.
        rest = total - values.clamp(min=0).square().sum(1)
        upper = values[:, -1]
        lower = torch.minimum(-rest.clamp(min=0).sqrt(), upper)
        # A narrow interval would lift the first vector so far that rounding shows.
        half = torch.maximum((upper - lower) / 2, values[:, 0].abs() / 100)
        half = half.clamp(min=torch.finfo(matrix.dtype).tiny ** 0.5)
        vectors = _filter(matrix, vectors, upper - half, half, degree)
        values, vectors = _rayleigh_ritz(matrix, _orthonormal(vectors))
    return Eigenpairs(values[:, :count], vectors[:, :, :count])


def _start(nodes: int, width: int) -> Tensor:
    """Spread numbers that look random and depend on their place alone."""
    row = torch.arange(1, nodes + 1, dtype=torch.float64)[:, None]
    column = torch.arange(1, width + 1, dtype=torch.float64)
    return torch.sin(row.square() * column.sqrt() + 1.7 * row * column)


def _filter(
    matrix: Tensor, vectors: Tensor, centre: Tensor, half: Tensor, degree: int
) -> Tensor:
    centre, half = centre[:, None, None], half[:, None, None]
    before, now = vectors, (matrix @ vectors - centre * vectors) / half
    for _ in range(degree - 1):
        before, now = now, 2 * (matrix @ now - centre * now) / half - before
    return now


def _orthonormal(vectors: Tensor) -> Tensor:
    """Orthonormalise by Cholesky twice, which is all products on a GPU."""
    small = 100 * torch.finfo(vectors.dtype).eps
    for _ in range(2):
        length = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
        vectors = vectors / length.clamp(min=torch.finfo(vectors.dtype).tiny)
        gram = vectors.mT @ vectors
        gram.diagonal(dim1=1, dim2=2).add_(small)
        factor = torch.linalg.cholesky_ex(gram).L
        vectors = torch.linalg.solve_triangular(factor.mT, vectors, upper=True, left=False)
    return vectors


def _rayleigh_ritz(matrix: Tensor, vectors: Tensor) -> Eigenpairs:
    small = vectors.mT @ (matrix @ vectors)
    values, turn = torch.linalg.eigh((small + small.mT) / 2)
    return Eigenpairs(values.flip(-1), vectors @ turn.flip(-1))
