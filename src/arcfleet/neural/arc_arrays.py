"""The arcs of many instances as padded arrays, numbered as by `network.Network`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from arcfleet.datasets import PaddedArrays
    from arcfleet.network import Network


@dataclass(frozen=True, slots=True, kw_only=True)
class ArcArrays:
    """What `ArcBatch` holds of the same names, (batch, arcs), and where the arcs lie.

    Parameters
    ----------
    start, end
        Places between which driving costs are known.
    start_node, end_node
        The same as nodes of the instance.
    service_cost, demand, twin, real
        As in `ArcBatch`.
    """

    start: NDArray[np.int32]
    end: NDArray[np.int32]
    start_node: NDArray[np.int32]
    end_node: NDArray[np.int32]
    service_cost: NDArray[np.int32]
    demand: NDArray[np.int32]
    twin: NDArray[np.int64]
    real: NDArray[np.bool_]


def arcs_of_arrays(padded: PaddedArrays) -> ArcArrays:
    """List the arcs of instances whose places are their nodes."""
    batch = len(padded.num_nodes)
    two_way = padded.required & ~padded.one_way
    directions = np.stack([padded.required, two_way], axis=-1)
    directions = directions.reshape(batch, 2 * padded.tail.shape[1])
    counts = directions.sum(axis=1)  # (batch,)
    rows, slots = np.nonzero(directions)  # in the order of the arcs
    links, backward = slots // 2, slots % 2 == 1
    columns = 1 + np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
    shape = (batch, 1 + int(counts.max(initial=0)))
    tail, head = padded.tail[rows, links], padded.head[rows, links]

    def spread(values: NDArray[np.int32]) -> NDArray[np.int32]:
        table = np.zeros(shape, dtype=np.int32)
        table[rows, columns] = values
        return table

    start = spread(np.where(backward, head, tail))
    end = spread(np.where(backward, tail, head))
    start[:, 0] = end[:, 0] = padded.depot
    twin = np.tile(np.arange(shape[1], dtype=np.int64), (batch, 1))
    twin[rows, columns] += np.where(two_way[rows, links], np.where(backward, -1, 1), 0)
    return ArcArrays(
        start=start,
        end=end,
        start_node=start,
        end_node=end,
        service_cost=spread(padded.cost[rows, links]),
        demand=spread(padded.demand[rows, links]),
        twin=twin,
        real=np.arange(shape[1]) <= counts[:, None],
    )


def arcs_of_networks(networks: Sequence[Network]) -> ArcArrays:
    """Pad the arcs of instances whose places are the terminals of their networks."""
    width = max((network.num_arcs for network in networks), default=1)
    counts = np.array([network.num_arcs for network in networks], dtype=np.int64)

    def pad(columns: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
        return pad_arrays(columns, (width,))

    own = np.arange(width, dtype=np.int64)
    twin = np.tile(own, (len(networks), 1))
    for row, network in enumerate(networks):
        given = network.arc_twin
        twin[row, : len(given)] = np.where(given < 0, own[: len(given)], given)
    return ArcArrays(
        start=pad([n.arc_start for n in networks]),
        end=pad([n.arc_end for n in networks]),
        start_node=pad([n.terminal_nodes[n.arc_start] for n in networks]),
        end_node=pad([n.terminal_nodes[n.arc_end] for n in networks]),
        service_cost=pad([n.arc_service_cost for n in networks]),
        demand=pad([n.arc_demand for n in networks]),
        twin=twin,
        real=own < counts[:, None],
    )


def pad_arrays(
    arrays: Sequence[NDArray[np.int32]], shape: tuple[int, ...]
) -> NDArray[np.int32]:
    """Put arrays into one of shape (batch, *shape), with 0 where they end."""
    table = np.zeros((len(arrays), *shape), dtype=np.int32)
    for row, values in zip(table, arrays, strict=True):
        row[tuple(slice(size) for size in values.shape)] = values
    return table
