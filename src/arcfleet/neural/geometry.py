"""Shortest paths and multi-dimensional scaling (MDS) of many instances on a device."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from arcfleet.errors import InstanceError
from arcfleet.instance.instance import U_TURNS

#: No way there. Two of them still fit 32 bits, so sums need no check.
FAR = 2**30 - 1

#: Longest shortest path, as in `network`.
MOST_DISTANCE = 2**29 - 1

_DEAD_ENDS, _FORBIDDEN = U_TURNS.index("dead-ends"), U_TURNS.index("forbidden")

#: Entries of the matrices worked on at once: what a processor's cache holds, and half a
#: gigabyte of a GPU.
_ENTRIES_CPU = 1 << 17
_ENTRIES_GPU = 1 << 27


def shortest_paths(
    nodes: int,
    tail: Tensor,
    head: Tensor,
    cost: Tensor,
    one_way: Tensor,
    real: Tensor,
    reverse_cost: Tensor | None = None,
) -> Tensor:
    """Compute the driving costs between all nodes, (batch, nodes, nodes), int32.

    `FAR` means that there is no way, as to and from padding. The columns of the links are
    (batch, links); those that are not `real` are padding. From head to tail a link costs as
    much unless `reverse_cost` is given. A shortest path longer than
    `MOST_DISTANCE` raises InstanceError.
    """
    batch = len(tail)
    entries = _ENTRIES_CPU if tail.device.type == "cpu" else _ENTRIES_GPU
    chunk = max(1, entries // max(1, nodes * nodes))
    distance = torch.full((batch, nodes, nodes), FAR, dtype=torch.int32, device=tail.device)
    distance.diagonal(dim1=1, dim2=2).zero_()
    # A longer link is cut to what is found too long below, if it is on a shortest path.
    lengths = [
        each.clamp(max=MOST_DISTANCE + 1).to(torch.int32)
        for each in (cost, cost if reverse_cost is None else reverse_cost)
    ]
    tail, head = tail.long(), head.long()
    flat = distance.view(batch, -1)
    there, back = (tail, head, real), (head, tail, real & ~one_way)
    for (first, last, open_way), length in zip((there, back), lengths, strict=True):
        usable = length.masked_fill(~open_way, FAR)
        flat.scatter_reduce_(1, first * nodes + last, usable, "amin")
    for start in range(0, batch, chunk):
        _close(distance[start : start + chunk])
    # No link is longer than MOST_DISTANCE + 1, so the first node beyond it on a path that
    # is too long lies nearer than FAR: such a path always shows.
    wrong = (distance > MOST_DISTANCE) & (distance < FAR)
    if cost.numel() and bool(wrong.any()):
        raise InstanceError(
            f"expected shortest paths of at most {MOST_DISTANCE}, found a longer one in "
            f"instance {int(wrong.flatten(1).any(1).nonzero()[0])} of the batch: use a "
            "coarser unit of cost"
        )
    return distance


class TurnRules(NamedTuple):
    """Turn rules of some instances, as in `datasets.PaddedTurns`."""

    u_turns: Tensor
    u_turn_penalty: Tensor
    num_turns: Tensor
    turn_in: Tensor
    turn_out: Tensor
    turn_price: Tensor


def driving_under_rules(
    edges: Tensor,
    depot: Tensor,
    tail: Tensor,
    head: Tensor,
    costs: tuple[Tensor, Tensor],
    one_way: Tensor,
    real: Tensor,
    rules: TurnRules,
) -> Tensor:
    """Compute the driving costs between arcs by turn rules, (batch, arcs, arcs), int32.

    Entry [b, i, j] is from the end of arc i, which was just driven, to the start of arc j,
    which is driven next. `FAR` means that there is no way.

    Parameters
    ----------
    edges
        Edge of each arc: twice its link, plus one from head to tail; -1 for the depot and
        padding, (batch, arcs).
    depot
        Node where routes start and end, without a turn, (batch,).
    tail, head, costs, one_way, real
        Columns of the links, (batch, links); costs are those there and those back.
    rules
        Turn rules.
    """
    batch, states = len(tail), 2 * tail.shape[1]
    entries = _ENTRIES_CPU if tail.device.type == "cpu" else _ENTRIES_GPU
    chunk = max(1, entries // (states + 1) ** 2)
    shape = (*edges.shape, edges.shape[1])
    found = torch.empty(shape, dtype=torch.int32, device=tail.device)
    for first in range(0, batch, chunk):
        rows = slice(first, first + chunk)
        lengths, cost = _edge_graph(
            depot[rows],
            tail[rows],
            head[rows],
            (costs[0][rows], costs[1][rows]),
            one_way[rows],
            real[rows],
            TurnRules(*(each[rows] for each in rules)),
        )
        # No way leads across the depot, the last state: a route would end there.
        _close(lengths, states)
        wrong = (lengths > MOST_DISTANCE + cost[:, None]) & (lengths < FAR)
        if bool(wrong.any()):
            raise InstanceError(
                f"expected shortest paths of at most {MOST_DISTANCE}, found a longer one "
                f"in instance {first + int(wrong.flatten(1).any(1).nonzero()[0])} of the "
                "batch: use a coarser unit of cost"
            )
        own = torch.where(edges[rows] < 0, states, edges[rows]).long()
        between = lengths.gather(1, own[:, :, None].expand(-1, -1, states + 1))
        between = between.gather(2, own[:, None].expand(-1, own.shape[1], -1))
        # A path counts the last edge, whose service is no driving.
        between = torch.where(between < FAR, between - cost.gather(1, own)[:, None], FAR)
        found[rows] = between
    return found


def _edge_graph(
    depot: Tensor,
    tail: Tensor,
    head: Tensor,
    both_costs: tuple[Tensor, Tensor],
    one_way: Tensor,
    real: Tensor,
    rules: TurnRules,
) -> tuple[Tensor, Tensor]:
    """Return the cost of each turn with the edge after it, and that of each edge.

    States are the edges, and last the depot, (batch, states, states) and (batch, states).
    """
    batch = len(tail)

    def pairs(there: Tensor, back: Tensor) -> Tensor:
        return torch.stack([there, back], dim=2).flatten(1)

    first, last = pairs(tail, head), pairs(head, tail)  # (batch, edges)
    is_open = pairs(real, real & ~one_way)
    costs = pairs(*both_costs).clamp(max=MOST_DISTANCE).to(torch.int32)
    meets = (last[:, :, None] == first[:, None]) & is_open[:, :, None] & is_open[:, None]
    edge = torch.arange(first.shape[1], device=tail.device)
    same = (edge // 2)[:, None] == edge // 2
    leads_on = (meets & ~same).any(2)  # (batch, edges)
    # Prices are one more than penalties; 0 is forbidden.
    price = meets.to(torch.int32)
    back = (edge[:, None] ^ 1) == edge
    closed = rules.u_turns[:, None] == _FORBIDDEN
    closed = closed | ((rules.u_turns[:, None] == _DEAD_ENDS) & leads_on)
    u_turn = torch.where(closed, 0, rules.u_turn_penalty[:, None].clamp(max=FAR) + 1)
    price = torch.where(back & meets, u_turn[:, :, None].to(torch.int32), price)
    number = torch.arange(rules.turn_in.shape[1], device=tail.device)
    row, place = (number < rules.num_turns[:, None]).nonzero(as_tuple=True)
    into, out = (x[row, place].long() for x in (rules.turn_in, rules.turn_out))
    price[row, into, out] = rules.turn_price[row, place].to(torch.int32)
    price = torch.where(meets, price, 0)
    onward = costs[:, None].to(torch.int64) + price - 1
    onward = torch.where(price > 0, onward.clamp(max=FAR), FAR).to(torch.int32)
    lengths = functional.pad(onward, (0, 1, 0, 1), value=FAR)
    leaves = is_open & (first == depot[:, None])
    lengths[:, -1, :-1] = torch.where(leaves, costs, FAR)
    lengths[:, :-1, -1] = torch.where(is_open & (last == depot[:, None]), 0, FAR)
    lengths[:, -1, -1] = 0
    return lengths, functional.pad(costs, (0, 1)).view(batch, -1)


def _close(distance: Tensor, most: int | None = None) -> None:
    """Run the Floyd-Warshall algorithm in place, by way of the first `most` nodes."""
    through = torch.empty_like(distance)
    for node in range(distance.shape[1] if most is None else most):
        # Neither operand changes in its own step: a node is 0 from itself.
        torch.add(distance[:, :, node, None], distance[:, None, node], out=through)
        torch.minimum(distance, through, out=distance)


# -------------------------------------------------------------------------- eigenpairs

#: Vectors iterated beside those wanted; they speed up the last wanted ones.
_EXTRA = 8

#: Degrees of the filters. The first are low: as long as no vector is near its limit, a
#: high degree would turn all of them into the first eigenvector.
_DEGREES = (2, 3, 4, *(9 * (5,)))

#: On a GPU `eigh` takes matrices larger than 32 one after the other, some milliseconds
#: each; so many pay for the iteration's fixed number of steps.
_MANY = 8


class Eigenpairs(NamedTuple):
    """Eigenvalues in descending order, and their vectors."""

    values: Tensor  # (batch, count)
    vectors: Tensor  # (batch, nodes, count)


def top_eigenpairs(matrix: Tensor, count: int) -> Eigenpairs:
    """Compute the largest eigenpairs of (batch, nodes, nodes) by the faster algorithm.

    A matrix of fewer nodes has fewer.
    """
    batch, nodes, _ = matrix.shape
    many = matrix.device.type != "cpu" and batch >= _MANY
    if many and nodes >= 2 * (count + _EXTRA):
        return iterate_eigenpairs(matrix, count)
    values, vectors = torch.linalg.eigh(matrix)
    return Eigenpairs(values.flip(-1)[:, :count], vectors.flip(-1)[:, :, :count])


def iterate_eigenpairs(matrix: Tensor, count: int) -> Eigenpairs:
    """Compute the largest eigenpairs by subspace iteration, in batched products only.

    Chebyshev polynomials damp the unwanted part of the spectrum, from below its smallest
    eigenvalue up to the smallest Ritz value (Zhou, Saad, Tiago and Chelikowsky 2006).
    """
    batch, nodes, _ = matrix.shape
    width = min(count + _EXTRA, nodes)
    # Numbers that look random and depend on their position alone.
    row = torch.arange(1, nodes + 1, dtype=torch.float64)[:, None]
    column = torch.arange(1, width + 1, dtype=torch.float64)
    start = torch.sin(row.square() * column.sqrt() + 1.7 * row * column).to(matrix)
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


# --------------------------------------------------------------------------------- MDS

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

    The distance of two nodes is the mean of both directions; where there is no way, the
    largest finite distance of the instance. Padding lies at the origin; coordinates that an
    instance does not need are 0. Single precision is enough for a model, but loses the
    tie-break between equal axes.

    Parameters
    ----------
    distance
        Driving costs between nodes, (batch, nodes, nodes); `FAR` or more means no way.
    num_nodes
        Number of real nodes, (batch,).
    dimensions, dtype
        Number of coordinates, and their type.
    """
    nodes = distance.shape[1]
    real = torch.arange(nodes, device=distance.device) < num_nodes[:, None]
    squared, largest = _squared(distance, distance.mT, real, real, dtype)
    pairs = _centred_eigenpairs(squared, real, dimensions)
    points = pairs.vectors * pairs.values.sqrt()[:, None] * largest
    return functional.pad(points, (0, dimensions - points.shape[2]))


def landmark_nodes(num_nodes: int, most: int = MOST_LANDMARKS) -> Tensor:
    """Return landmarks: nodes spread evenly over the numbers, or all if few enough."""
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
    """Place the nodes of one instance by landmarks, (nodes, dimensions).

    Landmarks are placed as in `classical_mds`, every other node by its distances to them
    (de Silva and Tenenbaum 2004). `leaving` and `arriving` are the driving costs from and
    to the landmarks, (landmarks, nodes).
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
    """Return squared distances scaled to at most 1, and the scale."""
    known = real_rows[:, :, None] & real[:, None]
    finite = [d.masked_fill((d >= FAR) | ~known, 0) for d in (leaving, arriving)]
    largest = torch.maximum(*(d.amax((1, 2), keepdim=True) for d in finite))
    filled = [torch.where(d >= FAR, largest, d) for d in (leaving, arriving)]
    unit = largest.clamp(min=1).to(dtype)
    mean = (filled[0].to(dtype) + filled[1].to(dtype)) / (2 * unit)
    return mean.square().masked_fill(~known, 0), unit


def _centred_eigenpairs(squared: Tensor, real: Tensor, count: int) -> Eigenpairs:
    """Compute the largest eigenpairs of the double-centred matrix, none negative."""
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
