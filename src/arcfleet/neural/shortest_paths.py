"""Shortest paths between all nodes of many small instances at once, on any device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from arcfleet.errors import InstanceError

if TYPE_CHECKING:
    from torch import Tensor

#: No way there. Two of them still fit 32 bits, so sums need no check.
FAR = 2**30 - 1

#: Longest shortest path, as in `network`.
MOST_DISTANCE = 2**29 - 1

#: Entries of the matrices worked on at once: what a processor's cache holds, and half a
#: gigabyte of a GPU.
_ENTRIES_CPU = 1 << 17
_ENTRIES_GPU = 1 << 27


def shortest_paths(
    nodes: int, tail: Tensor, head: Tensor, cost: Tensor, one_way: Tensor, real: Tensor
) -> Tensor:
    """Give the driving costs between all nodes, (batch, nodes, nodes), int32.

    `FAR` stands where there is no way, which includes every way to or from padding.

    Parameters
    ----------
    nodes
        Number of nodes, with the padding.
    tail, head, cost, one_way
        Of the links, (batch, links).
    real
        Which links are no padding, (batch, links).

    Raises
    ------
    InstanceError
        If a shortest path is longer than `MOST_DISTANCE`.
    """
    batch = len(tail)
    entries = _ENTRIES_CPU if tail.device.type == "cpu" else _ENTRIES_GPU
    chunk = max(1, entries // max(1, nodes * nodes))
    distance = torch.full((batch, nodes, nodes), FAR, dtype=torch.int32, device=tail.device)
    distance.diagonal(dim1=1, dim2=2).zero_()
    # A longer link is cut to what is found too long below, if it is on a shortest path.
    length = cost.clamp(max=MOST_DISTANCE + 1).to(torch.int32)
    tail, head = tail.long(), head.long()
    flat = distance.view(batch, -1)
    for first, last, open_way in ((tail, head, real), (head, tail, real & ~one_way)):
        usable = length.masked_fill(~open_way, FAR)
        flat.scatter_reduce_(1, first * nodes + last, usable, "amin")
    for start in range(0, batch, chunk):
        _close(distance[start : start + chunk])
    _refuse_too_long(distance, cost)
    return distance


def _close(distance: Tensor) -> None:
    """Floyd and Warshall's algorithm in place."""
    through = torch.empty_like(distance)
    for node in range(distance.shape[1]):
        # Neither operand changes in its own step: a node is 0 from itself.
        torch.add(distance[:, :, node, None], distance[:, None, node], out=through)
        torch.minimum(distance, through, out=distance)


def _refuse_too_long(distance: Tensor, cost: Tensor) -> None:
    # No link is longer than MOST_DISTANCE + 1, so the first node beyond it on a path that
    # is too long lies nearer than FAR: such a path always shows.
    wrong = (distance > MOST_DISTANCE) & (distance < FAR)
    if cost.numel() and bool(wrong.any()):
        place = int(wrong.flatten(1).any(1).nonzero()[0])
        raise InstanceError(
            f"expected shortest paths of at most {MOST_DISTANCE}, found a longer one in "
            f"instance {place} of the batch: use a coarser unit of cost"
        )
