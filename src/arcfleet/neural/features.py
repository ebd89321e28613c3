"""From instances to what a learned solver sees of them: the file that knows both worlds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from arcfleet.errors import UnsolvableError
from arcfleet.network import distances_around, node_distances
from arcfleet.neural.arc_arrays import (
    ArcArrays,
    arcs_of_arrays,
    arcs_of_networks,
    pad_arrays,
)
from arcfleet.neural.arc_batch import ArcBatch, take_rows
from arcfleet.neural.daam_config import NUM_PLAIN
from arcfleet.neural.mds import (
    MOST_LANDMARKS,
    classical_mds,
    landmark_mds,
    landmark_nodes,
)
from arcfleet.neural.shortest_paths import FAR, shortest_paths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from arcfleet.datasets import Dataset, PaddedArrays
    from arcfleet.instance import Instance
    from arcfleet.network import Network

MDS_DIMENSIONS = 8

#: Instances prepared at once on a GPU. What stays of a Task100 instance is 67 KiB: 110 x
#: 110 driving costs of 4 bytes, 201 x 19 features of 4, and 25 bytes beside for each arc;
#: so 20,000 take 1.3 GiB. While they are prepared, some six matrices of 110 x 110 entries
#: of 8 bytes come on top: 0.6 MiB each, 2.3 GiB for a chunk.
GPU_CHUNK = 4096

#: On a CPU, few: their matrices stay near the processor.
CPU_CHUNK = 64

#: The same for instances of any size, as entries of their matrices.
GPU_ENTRIES = 1 << 25
CPU_ENTRIES = 1 << 20


def batch_from_dataset(
    dataset: Dataset,
    indices: Sequence[int] | NDArray[np.integer],
    *,
    device: torch.device | str,
    mds_dimensions: int = MDS_DIMENSIONS,
    chunk: int | None = None,
) -> ArcBatch:
    """Prepare instances of a data set; the arguments are those of `batch_from_arrays`."""
    padded = dataset.padded(indices)
    return batch_from_arrays(
        padded, device=device, mds_dimensions=mds_dimensions, chunk=chunk
    )


def batch_from_arrays(
    padded: PaddedArrays,
    *,
    device: torch.device | str,
    mds_dimensions: int = MDS_DIMENSIONS,
    chunk: int | None = None,
) -> ArcBatch:
    """Prepare many instances on the device.

    Their places are their nodes.

    Parameters
    ----------
    padded
        The instances.
    device
        Where to work, and where the batch will be.
    mds_dimensions
        Coordinates of a node.
    chunk
        Instances prepared at once, which bounds the memory; by default what suits the
        device.

    Raises
    ------
    InstanceError
        If a shortest path is too long.
    UnsolvableError
        If there is no way between two arcs.
    """
    if chunk is None:
        chunk = CPU_CHUNK if torch.device(device).type == "cpu" else GPU_CHUNK
    arcs = arcs_of_arrays(padded)
    batch, nodes = padded.longitude.shape
    shape = (batch, arcs.real.shape[1], 2 * mds_dimensions)
    links = np.arange(padded.tail.shape[1]) < padded.num_links[:, None]
    distance = torch.empty((batch, nodes, nodes), dtype=torch.int32, device=device)
    scale = torch.empty(batch, dtype=torch.float64, device=device)
    places = torch.empty(shape, dtype=torch.float32, device=device)
    for first in range(0, batch, chunk):
        rows = slice(first, first + chunk)

        def send(values: NDArray[np.generic], rows: slice = rows) -> Tensor:
            return _tensor(values[rows]).to(device)

        distance[rows] = shortest_paths(
            nodes,
            tail=send(padded.tail),
            head=send(padded.head),
            cost=send(padded.cost),
            one_way=send(padded.one_way),
            real=send(links),
        )
        start, end = send(arcs.start), send(arcs.end)
        scale[rows], lost = _unit_of_length(
            distance[rows], start, end, send(arcs.service_cost), send(arcs.real)
        )
        if bool(lost.any()):
            raise _no_way(f"instance {first + int(lost.nonzero()[0])} of the batch")
        nodes_at = _node_coordinates(distance[rows], padded.num_nodes[rows], mds_dimensions)
        nodes_at /= scale[rows, None, None]
        both = [take_rows(nodes_at, ends) for ends in (start, end)]
        places[rows] = torch.cat(both, dim=2).to(torch.float32)
    return _assemble(
        arcs,
        distance=distance,
        scale=scale,
        places=places,
        capacity=padded.capacity,
        route_cost=np.zeros(batch, dtype=np.int32),
        fleet_limit=np.zeros(batch, dtype=np.int32),
    )


def batch_from_networks(
    networks: Sequence[Network],
    *,
    device: torch.device | str,
    mds_dimensions: int = MDS_DIMENSIONS,
    threads: int = 1,
) -> ArcBatch:
    """Prepare some instances of any size and kind.

    Their places are the terminals of the networks.

    Parameters
    ----------
    networks
        The instances.
    device
        Where to work, and where the batch will be.
    mds_dimensions
        Coordinates of a node.
    threads
        For the driving costs between nodes, which the CPU finds.

    Raises
    ------
    UnsolvableError
        If there is no way between two arcs.
    """
    arcs = arcs_of_networks(networks)
    instances = [network.instance for network in networks]
    terminals = max((len(network.terminal_nodes) for network in networks), default=1)
    distance = torch.from_numpy(
        pad_arrays([network.distances for network in networks], (terminals, terminals))
    ).to(device)
    ends = [_tensor(nodes).to(device) for nodes in (arcs.start_node, arcs.end_node)]
    scale = torch.empty(len(networks), dtype=torch.float64, device=device)
    shape = (*arcs.real.shape, 2 * mds_dimensions)
    places = torch.zeros(shape, dtype=torch.float32, device=device)
    largest = max((terminals, *(_matrix_size(instance) for instance in instances)))
    entries = CPU_ENTRIES if distance.device.type == "cpu" else GPU_ENTRIES
    chunk = max(1, entries // largest**2)
    for first in range(0, len(networks), chunk):
        rows = slice(first, first + chunk)
        columns = (
            _tensor(values[rows]).to(device)
            for values in (arcs.start, arcs.end, arcs.service_cost, arcs.real)
        )
        scale[rows], lost = _unit_of_length(distance[rows], *columns)
        if bool(lost.any()):
            name = instances[first + int(lost.nonzero()[0])].name
            raise _no_way(f"instance {name!r}")
        nodes_at = _place_instances(
            instances[rows], mds_dimensions, distance.device, threads
        )
        nodes_at /= scale[rows, None, None]
        both = [take_rows(nodes_at, nodes[rows]) for nodes in ends]
        places[rows] = torch.cat(both, dim=2).to(torch.float32)
    limits = [instance.fleet_limit or 0 for instance in instances]
    return _assemble(
        arcs,
        distance=distance,
        scale=scale,
        places=places,
        capacity=np.array([i.capacity for i in instances], dtype=np.int32),
        route_cost=np.array([i.route_cost for i in instances], dtype=np.int32),
        fleet_limit=np.array(limits, dtype=np.int32),
    )


def flip_axes(batch: ArcBatch, generator: torch.Generator) -> ArcBatch:
    """Flip the MDS axes of each instance at random: their signs mean nothing.

    The generator may live on another device than the batch.
    """
    axes = num_axes(batch)
    heads = torch.randint(
        2, (len(batch), 1, axes), generator=generator, device=generator.device
    )
    return with_signs(batch, 2 * heads[:, 0] - 1)


def mirrored(batch: ArcBatch) -> ArcBatch:
    """Flip all MDS axes, which means nothing, but may lead a model to other plans."""
    return with_signs(batch, batch.features.new_full((len(batch), num_axes(batch)), -1))


def num_axes(batch: ArcBatch) -> int:
    """Count the MDS axes."""
    return (batch.features.shape[2] - NUM_PLAIN) // 2


def with_signs(batch: ArcBatch, signs: Tensor) -> ArcBatch:
    """Give the same instances with their MDS axes times `signs`, (batch, axes)."""
    sign = signs[:, None].to(batch.features)
    plain = torch.ones_like(batch.features[:, :1, :NUM_PLAIN])
    factor = torch.cat([plain, sign, sign], dim=2)  # (batch, 1, 3 + 2 d)
    return replace(batch, features=batch.features * factor)


def _assemble(
    arcs: ArcArrays,
    *,
    distance: Tensor,
    scale: Tensor,
    places: Tensor,
    capacity: NDArray[np.int32],
    route_cost: NDArray[np.int32],
    fleet_limit: NDArray[np.int32],
) -> ArcBatch:
    def send(values: NDArray[np.generic]) -> Tensor:
        return _tensor(values).to(distance.device)

    service_cost, demand, real = (
        send(values) for values in (arcs.service_cost, arcs.demand, arcs.real)
    )
    plain = torch.zeros((*real.shape, NUM_PLAIN), dtype=torch.float64, device=real.device)
    plain[:, 0, 0] = 1
    plain[:, :, 1] = service_cost / scale[:, None]
    plain[:, :, 2] = demand / send(capacity)[:, None].double()
    places.mul_(real[:, :, None])
    return ArcBatch(
        features=torch.cat([plain.to(torch.float32), places], dim=2),
        distance=distance,
        start=send(arcs.start),
        end=send(arcs.end),
        service_cost=service_cost,
        demand=demand,
        twin=send(arcs.twin),
        real=real,
        capacity=send(capacity),
        route_cost=send(route_cost),
        fleet_limit=send(fleet_limit),
        scale=scale.to(torch.float32),
    )


def _unit_of_length(
    distance: Tensor, start: Tensor, end: Tensor, service_cost: Tensor, real: Tensor
) -> tuple[Tensor, Tensor]:
    """Give the mean driving cost between real arcs, and where a way lacks, both (batch,).

    Where all driving is free the mean service cost is the unit, or 1 if that is 0, too.

    Places are counted by how many arcs start and end there, which spares the matrix
    between arcs; sums of integers in float64 are exact in any order.
    """
    zeros = torch.zeros(distance.shape[:2], dtype=torch.float64, device=distance.device)
    weight = real.double()
    leaving = zeros.scatter_add(1, end.long(), weight)
    arriving = zeros.scatter_add(1, start.long(), weight)
    sums = torch.bmm(distance.double(), arriving[:, :, None])[:, :, 0]
    mean = (leaving * sums).sum(1) / weight.sum(1).square()
    used = (leaving > 0)[:, :, None] & (arriving > 0)[:, None]
    lost = (used & (distance >= FAR)).flatten(1).any(1)
    return torch.where(mean > 0, mean, mean_service_cost(service_cost, real)), lost


def mean_service_cost(service_cost: Tensor, real: Tensor) -> Tensor:
    """Give the mean over the real arcs but the depot, 1 if it is 0, (batch,), float64."""
    total = service_cost.sum(1, dtype=torch.float64)  # nothing at the depot and padding
    mean = total / (real.sum(1) - 1).clamp(min=1)
    return torch.where(mean > 0, mean, 1.0)


def _node_coordinates(
    distance: Tensor, num_nodes: NDArray[np.int32], dimensions: int
) -> Tensor:
    """Place the nodes of every instance, (batch, nodes, dimensions)."""
    if distance.shape[1] <= MOST_LANDMARKS:
        counts = _tensor(num_nodes).to(distance.device)
        return classical_mds(distance, counts, dimensions)
    points = torch.zeros(
        (*distance.shape[:2], dimensions), dtype=torch.float64, device=distance.device
    )
    for row, count in enumerate(num_nodes.tolist()):
        landmarks = landmark_nodes(count).to(distance.device)
        own = distance[row, :count, :count]
        points[row, :count] = landmark_mds(
            own[landmarks], own[:, landmarks].mT, landmarks, dimensions
        )
    return points


def _matrix_size(instance: Instance) -> int:
    """Give the rows of the matrix of driving costs by which the nodes are placed."""
    return min(len(instance.nodes), MOST_LANDMARKS)


def _place_instances(
    instances: Sequence[Instance], dimensions: int, device: torch.device, threads: int
) -> Tensor:
    """Place the nodes of some instances, (batch, nodes, dimensions).

    Small ones all at once, those beyond the landmarks one by one.
    """
    counts = [len(instance.nodes) for instance in instances]
    points = torch.zeros(
        (len(instances), max(counts), dimensions), dtype=torch.float64, device=device
    )
    small = [row for row, count in enumerate(counts) if count <= MOST_LANDMARKS]
    if small:
        nodes = max(counts[row] for row in small)
        matrices = [node_distances(instances[row], threads) for row in small]
        distance = torch.from_numpy(pad_arrays(matrices, (nodes, nodes))).to(device)
        sizes = torch.tensor([counts[row] for row in small], device=device)
        points[small, :nodes] = classical_mds(distance, sizes, dimensions)
    for row, instance in enumerate(instances):
        if counts[row] <= MOST_LANDMARKS:
            continue
        landmarks = landmark_nodes(counts[row])
        around = distances_around(instance, landmarks.numpy().astype(np.int32), threads)
        leaving, arriving = (torch.from_numpy(part).to(device) for part in around)
        points[row, : counts[row]] = landmark_mds(
            leaving, arriving, landmarks.to(device), dimensions
        )
    return points


def _tensor(values: NDArray[np.generic]) -> Tensor:
    # torch warns of arrays that are read-only; those are copied.
    return torch.from_numpy(np.require(values, requirements="W"))


def _no_way(where: str) -> UnsolvableError:
    return UnsolvableError(
        "expected a way between every two required links and the depot, found one lacking "
        f"in {where}: `arcfleet info` names the links at fault"
    )
