"""Batches of instances as tensors: the arcs, their features and the driving costs.

A batch is built from networks (`batch_from_networks`, any instance, driving costs by the
C++ core) or from arrays of a data set (`batch_from_arrays`, many small instances, driving
costs by Floyd-Warshall on the device). `shrink` drops the arcs that plans have served, and
`buckets` groups states by length for training.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from arcfleet.errors import UnsolvableError
from arcfleet.network import arc_distances, distances_around, node_distances
from arcfleet.neural.env import State, visible_arcs
from arcfleet.neural.geometry import (
    FAR,
    MOST_LANDMARKS,
    TurnRules,
    classical_mds,
    driving_under_rules,
    landmark_mds,
    landmark_nodes,
    shortest_paths,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from arcfleet.datasets import PaddedArrays
    from arcfleet.datasets.dataset import PaddedTurns
    from arcfleet.network import Network

    Array = NDArray[np.generic]

# Columns of the features before the MDS coordinates: is_depot, cost and demand.
NUM_PLAIN = 3


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ArcBatch:
    """The arcs of some instances; arc 0 is the depot.

    Instances of different sizes are padded: arcs that are not `real` lie at place 0, have
    no cost and no demand, and are their own inverse.

    Parameters
    ----------
    features
        Static features, (batch, arcs, 3 + 2 d): depot flag, service cost, demand, MDS
        coordinates of start and end. Lengths are divided by `scale`, demands by the
        capacity.
    distance
        Driving costs between places, (batch, places, places), in the instance's unit.
    start, end
        Places where the service of an arc starts and ends, (batch, arcs).
    service_cost, demand
        Service cost and demand of each arc, (batch, arcs), in the instance's units.
    inverse
        Inverse arc: the same task in the other direction, or the arc itself if there is
        none, (batch, arcs).
    real
        Arcs that are not padding, (batch, arcs).
    capacity, route_cost, fleet_limit
        Rules of each instance, (batch,); a fleet limit of 0 means none.
    scale
        Mean driving cost between the real arcs of each instance, (batch,): the unit of
        all lengths that the model sees. Where all driving is free, the mean service cost;
        1 where that is 0, too.
    """

    features: Tensor
    distance: Tensor
    start: Tensor
    end: Tensor
    service_cost: Tensor
    demand: Tensor
    inverse: Tensor
    real: Tensor
    capacity: Tensor
    route_cost: Tensor
    fleet_limit: Tensor
    scale: Tensor

    def __len__(self) -> int:
        """Return the number of instances."""
        return len(self.capacity)

    @property
    def num_arcs(self) -> int:
        """Number of arcs, padding and depot included."""
        return self.real.shape[1]

    @property
    def num_tasks(self) -> Tensor:
        """Tasks of each instance, (batch,)."""
        return self.task_arcs.sum(1, dtype=torch.int32)

    @property
    def task_arcs(self) -> Tensor:
        """One arc of each task, (batch, arcs), bool."""
        arc = torch.arange(self.num_arcs, device=self.inverse.device)
        return self.real & (self.inverse >= arc) & (arc > 0)

    @property
    def demand_once(self) -> Tensor:
        """Demand of each task, at one of its arcs only, (batch, arcs)."""
        return self.demand.masked_fill(~self.task_arcs, 0)

    @property
    def num_axes(self) -> int:
        """Number of MDS coordinates of a place."""
        return (self.features.shape[2] - NUM_PLAIN) // 2

    @property
    def is_full(self) -> bool:
        """Whether there is no padding, which saves the masks. Waits for the device."""
        return bool(self.real.all())

    def select(self, rows: Tensor) -> ArcBatch:
        """Return some of the instances, in the order of `rows`."""
        return self._each(lambda tensor: tensor[rows])

    def to(self, device: torch.device | str) -> ArcBatch:
        """Return the same batch on another device."""
        return self._each(lambda tensor: tensor.to(device, non_blocking=True))

    def incoming(self) -> Tensor:
        """Return the driving costs into each arc, (batch, arcs, arcs), scaled.

        Entry [b, i, j] is from the end of arc j to the start of arc i.
        """
        rows = torch.arange(len(self), device=self.distance.device)[:, None, None]
        ends, starts = self.end.long()[:, None, :], self.start.long()[:, :, None]
        costs = self.distance[rows, ends, starts]  # (batch, arcs i, arcs j)
        return costs / self.scale[:, None, None]

    def deadheads(self, arcs: Tensor, before: Tensor | None = None) -> Tensor:
        """Sum the driving costs along (batch, samples, steps): (batch, samples), int64.

        `before` is the arc before the first, (batch, samples); None for the depot.
        """
        rows = torch.arange(len(self), device=arcs.device)[:, None, None]
        last = functional.pad(arcs, (1, 0))[..., :-1]  # the depot, then all but the last
        if before is not None:
            last[..., 0] = before
        ends, starts = self.end[rows, last], self.start[rows, arcs]
        return self.distance[rows, ends.long(), starts.long()].sum(-1, dtype=torch.int64)

    def _each(self, change: Callable[[Tensor], Tensor]) -> ArcBatch:
        return ArcBatch(**{f.name: change(getattr(self, f.name)) for f in fields(self)})


def take_rows(values: Tensor, index: Tensor) -> Tensor:
    """Gather rows of (batch, rows, width) by (batch, count): (batch, count, width)."""
    wide = index.long()[..., None].expand(-1, -1, values.shape[2])
    return values.gather(1, wide)


# ------------------------------------------------------------------ building a batch

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


def batch_from_arrays(
    padded: PaddedArrays,
    *,
    device: torch.device | str,
    mds_dimensions: int = MDS_DIMENSIONS,
    chunk: int | None = None,
) -> ArcBatch:
    """Build a batch of many instances on a device.

    The places are the nodes; under turn rules, where what driving costs depends on the
    street that a vehicle came along, the arcs.

    Parameters
    ----------
    padded
        Instances of a data set, as from `Dataset.padded`.
    device
        Device that computes and holds the batch.
    mds_dimensions
        Number of MDS coordinates of a node.
    chunk
        Instances prepared at a time, which bounds the memory; default by device.
    """
    if chunk is None:
        chunk = CPU_CHUNK if torch.device(device).type == "cpu" else GPU_CHUNK
    batch, nodes = padded.longitude.shape
    links = np.arange(padded.tail.shape[1]) < padded.num_links[:, None]
    arcs = _columns_of_arrays(padded)
    edges = arcs.pop("edge")
    places = nodes
    if padded.turns is not None:
        places = edges.shape[1]
        own = np.where(arcs["real"], np.arange(places, dtype=np.int32), 0)
        arcs["start"] = arcs["end"] = own
    distance = torch.zeros((batch, places, places), dtype=torch.int32, device=device)

    def place(rows: slice) -> Tensor:
        streets = [padded.tail, padded.head, padded.cost, padded.one_way, links]
        if padded.reverse_cost is not None:
            streets.append(padded.reverse_cost)
        columns = [_tensor(values[rows]).to(device) for values in streets]
        paths = shortest_paths(nodes, *columns)
        if padded.turns is None:
            distance[rows] = paths
        elif _measures_each(paths.device):
            for row in range(rows.start, min(rows.stop, batch)):
                within = _arc_distances(padded, padded.turns, row)
                distance[row, : len(within), : len(within)] = _tensor(within).clamp(max=FAR)
        else:
            tail, head, cost, one_way, real, *back = columns
            distance[rows] = driving_under_rules(
                _tensor(edges[rows]).to(device),
                _tensor(padded.depot[rows]).to(device),
                tail,
                head,
                (cost, back[0] if back else cost),
                one_way,
                real,
                _rules_of(padded.turns, rows, device),
            )
        if nodes > MOST_LANDMARKS:
            first, last = arcs["start_node"][rows], arcs["end_node"][rows]
            return _place_ends(paths, first, last, arcs["real"][rows], mds_dimensions)
        counts = _tensor(padded.num_nodes[rows]).to(device)
        return classical_mds(paths, counts, mds_dimensions)

    return _build(
        arcs,
        distance,
        place,
        mds_dimensions=mds_dimensions,
        chunk=chunk,
        name_of=lambda number: f"instance {number} of the batch",
    )


def _measures_each(device: torch.device) -> bool:
    """Return whether driving costs by turn rules are computed one instance at a time.

    On a CPU that is many times as fast as Floyd-Warshall over the edges.
    """
    return device.type == "cpu"


def _arc_distances(padded: PaddedArrays, rules: PaddedTurns, row: int) -> NDArray[np.int32]:
    links, turns = slice(padded.num_links[row]), slice(rules.num_turns[row])
    one_way = padded.one_way[row, links]
    back = padded.cost if padded.reverse_cost is None else padded.reverse_cost
    named = (rules.turn_in, rules.turn_out, rules.turn_price - 1)
    into, out, penalty = (np.ascontiguousarray(x[row, turns]) for x in named)
    return arc_distances(
        num_nodes=int(padded.num_nodes[row]),
        tail=padded.tail[row, links],
        head=padded.head[row, links],
        cost=padded.cost[row, links],
        reverse_cost=np.where(one_way, -1, back[row, links]).astype(np.int32),
        required=padded.required[row, links],
        depot=int(padded.depot[row]),
        turns=(into, out, penalty),
        u_turns=int(rules.u_turns[row]),
        u_turn_penalty=int(rules.u_turn_penalty[row]),
    )


def _rules_of(turns: PaddedTurns, rows: slice, device: torch.device | str) -> TurnRules:
    return TurnRules(
        *(_tensor(getattr(turns, x)[rows]).to(device) for x in TurnRules._fields)
    )


def batch_from_networks(
    networks: Sequence[Network],
    *,
    device: torch.device | str,
    mds_dimensions: int = MDS_DIMENSIONS,
    threads: int = 1,
) -> ArcBatch:
    """Build a batch of instances of any size; the places are the networks' terminals.

    Parameters
    ----------
    networks
        Networks of the instances.
    device
        Device that computes and holds the batch.
    mds_dimensions
        Number of MDS coordinates of a node.
    threads
        Threads of the C++ core for the driving costs between nodes.
    """
    instances = [network.instance for network in networks]
    terminals = max((len(network.terminal_nodes) for network in networks), default=1)
    distance = torch.from_numpy(
        _pad_arrays([network.distances for network in networks], (terminals, terminals))
    ).to(device)
    sizes = [min(len(instance.nodes), MOST_LANDMARKS) for instance in instances]
    entries = CPU_ENTRIES if distance.device.type == "cpu" else GPU_ENTRIES

    def place(rows: slice) -> Tensor:
        return _place_instances(networks[rows], mds_dimensions, distance.device, threads)

    return _build(
        _columns_of_networks(networks),
        distance,
        place,
        mds_dimensions=mds_dimensions,
        chunk=max(1, entries // max((terminals, *sizes)) ** 2),
        name_of=lambda number: f"instance {instances[number].name!r}",
    )


def _columns_of_arrays(padded: PaddedArrays) -> dict[str, Array]:
    """Return columns of `ArcBatch`, nodes and edges of the arcs, where places are nodes."""
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

    there = padded.cost if padded.service_cost is None else padded.service_cost
    back = there if padded.reverse_service_cost is None else padded.reverse_service_cost
    start = spread(np.where(backward, head, tail))
    end = spread(np.where(backward, tail, head))
    start[:, 0] = end[:, 0] = padded.depot
    inverse = np.tile(np.arange(shape[1], dtype=np.int64), (batch, 1))
    inverse[rows, columns] += np.where(two_way[rows, links], np.where(backward, -1, 1), 0)
    edge = np.full(shape, -1, dtype=np.int32)
    edge[rows, columns] = slots
    return {
        "edge": edge,
        "start": start,
        "end": end,
        "start_node": start,
        "end_node": end,
        "service_cost": spread(np.where(backward, back[rows, links], there[rows, links])),
        "demand": spread(padded.demand[rows, links]),
        "inverse": inverse,
        "real": np.arange(shape[1]) <= counts[:, None],
        "capacity": padded.capacity,
        "route_cost": np.zeros(batch, dtype=np.int32),
        "fleet_limit": np.zeros(batch, dtype=np.int32),
    }


def _columns_of_networks(networks: Sequence[Network]) -> dict[str, Array]:
    """Return columns of `ArcBatch`, and nodes of the arcs, where places are terminals."""
    width = max((network.num_arcs for network in networks), default=1)
    counts = np.array([network.num_arcs for network in networks], dtype=np.int64)
    own = np.arange(width, dtype=np.int64)
    inverse = np.tile(own, (len(networks), 1))
    for row, network in enumerate(networks):
        given = network.arc_inverse
        inverse[row, : len(given)] = np.where(given < 0, own[: len(given)], given)

    def pad(columns: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
        return _pad_arrays(columns, (width,))

    instances = [network.instance for network in networks]
    limits = [instance.fleet_limit or 0 for instance in instances]
    return {
        "start": pad([n.arc_start for n in networks]),
        "end": pad([n.arc_end for n in networks]),
        "start_node": pad([n.terminal_nodes[n.arc_start] for n in networks]),
        "end_node": pad([n.terminal_nodes[n.arc_end] for n in networks]),
        "service_cost": pad([n.arc_service_cost for n in networks]),
        "demand": pad([n.arc_demand for n in networks]),
        "inverse": inverse,
        "real": own < counts[:, None],
        "capacity": np.array([i.capacity for i in instances], dtype=np.int32),
        "route_cost": np.array([i.route_cost for i in instances], dtype=np.int32),
        "fleet_limit": np.array(limits, dtype=np.int32),
    }


def _pad_arrays(
    arrays: Sequence[NDArray[np.int32]], shape: tuple[int, ...]
) -> NDArray[np.int32]:
    """Stack arrays into one of shape (batch, *shape), padded with 0."""
    table = np.zeros((len(arrays), *shape), dtype=np.int32)
    for row, values in zip(table, arrays, strict=True):
        row[tuple(slice(size) for size in values.shape)] = values
    return table


def _build(
    columns: dict[str, Array],
    distance: Tensor,
    place: Callable[[slice], Tensor],
    *,
    mds_dimensions: int,
    chunk: int,
    name_of: Callable[[int], str],
) -> ArcBatch:
    """Build a batch chunk by chunk.

    Parameters
    ----------
    columns
        Columns of `ArcBatch`, and the nodes of the arcs.
    distance
        Driving costs between places, (batch, places, places); `place` may fill them.
    place
        Function from batch rows to MDS coordinates, (rows, nodes, dimensions).
    mds_dimensions, chunk
        Number of MDS coordinates of a node; instances at a time.
    name_of
        Function from a batch row to the name of the instance in errors.
    """
    tensors = {name: _tensor(x).to(distance.device) for name, x in columns.items()}
    nodes = [tensors.pop("start_node"), tensors.pop("end_node")]
    real = tensors["real"]
    scale = torch.empty(len(real), dtype=torch.float64, device=distance.device)
    shape = (*real.shape, 2 * mds_dimensions)
    places = torch.zeros(shape, dtype=torch.float32, device=distance.device)
    for first in range(0, len(real), chunk):
        rows = slice(first, first + chunk)
        coordinates = place(rows)
        names = ("start", "end", "service_cost", "real")
        scale[rows], lost = _unit_of_length(
            distance[rows], *(tensors[name][rows] for name in names)
        )
        if bool(lost.any()):
            raise UnsolvableError(
                "expected a way between every two required links and the depot, found one "
                f"lacking in {name_of(first + int(lost.nonzero()[0]))}: `arcfleet info` "
                "names the links at fault"
            )
        coordinates /= scale[rows, None, None]
        both = [take_rows(coordinates, ends[rows]) for ends in nodes]
        places[rows] = torch.cat(both, dim=2).to(torch.float32)
    plain = torch.zeros((*real.shape, NUM_PLAIN), dtype=torch.float64, device=real.device)
    plain[:, 0, 0] = 1
    plain[:, :, 1] = tensors["service_cost"] / scale[:, None]
    plain[:, :, 2] = tensors["demand"] / tensors["capacity"][:, None].double()
    places.mul_(real[:, :, None])
    features = torch.cat([plain.to(torch.float32), places], dim=2)
    return ArcBatch(
        features=features, distance=distance, scale=scale.to(torch.float32), **tensors
    )


def _unit_of_length(
    distance: Tensor, start: Tensor, end: Tensor, service_cost: Tensor, real: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the scale of `ArcBatch`, and instances with a missing way, both (batch,).

    Places are counted by how many arcs start and end there, which saves the matrix
    between arcs. Sums of integers in float64 are exact in any order.
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
    """Return the mean over the real arcs but the depot, 1 if that is 0, (batch,)."""
    total = service_cost.sum(1, dtype=torch.float64)  # nothing at the depot and padding
    mean = total / (real.sum(1) - 1).clamp(min=1)
    return torch.where(mean > 0, mean, 1.0)


def _place_ends(
    distance: Tensor, start: Array, end: Array, real: Array, dimensions: int
) -> Tensor:
    """Place the nodes where arcs start and end by MDS, (batch, nodes, dimensions).

    So it is done where nodes are many: a scene is small beside the map that it drives on,
    and placed with all of it would be a dot far from the middle.
    """
    points = torch.zeros(
        (*distance.shape[:2], dimensions), dtype=torch.float64, device=distance.device
    )
    for row, known in enumerate(real.astype(np.bool_)):
        ends = np.unique(np.concatenate([start[row, known], end[row, known]]))
        nodes = torch.from_numpy(ends.astype(np.int64)).to(distance.device)
        landmarks = landmark_nodes(len(nodes)).to(distance.device)
        own = distance[row][nodes][:, nodes]
        points[row, nodes] = landmark_mds(
            own[landmarks], own[:, landmarks].mT, landmarks, dimensions
        )
    return points


def _place_instances(
    networks: Sequence[Network], dimensions: int, device: torch.device, threads: int
) -> Tensor:
    """Place nodes by MDS: of small networks all, at once; of others the ends of arcs."""
    instances = [network.instance for network in networks]
    counts = [len(instance.nodes) for instance in instances]
    points = torch.zeros(
        (len(instances), max(counts), dimensions), dtype=torch.float64, device=device
    )
    small = [row for row, count in enumerate(counts) if count <= MOST_LANDMARKS]
    if small:
        nodes = max(counts[row] for row in small)
        matrices = [node_distances(instances[row], threads) for row in small]
        distance = torch.from_numpy(_pad_arrays(matrices, (nodes, nodes))).to(device)
        sizes = torch.tensor([counts[row] for row in small], device=device)
        points[small, :nodes] = classical_mds(distance, sizes, dimensions)
    for row, network in enumerate(networks):
        if counts[row] <= MOST_LANDMARKS:
            continue
        ends = np.unique(network.terminal_nodes)
        landmarks = landmark_nodes(len(ends))
        seen_from = ends[landmarks.numpy()].astype(np.int32)
        around = distances_around(network.instance, seen_from, threads)
        leaving, arriving = (torch.from_numpy(part[:, ends]).to(device) for part in around)
        points[row, torch.from_numpy(ends).long().to(device)] = landmark_mds(
            leaving, arriving, landmarks.to(device), dimensions
        )
    return points


def _tensor(values: NDArray[np.generic]) -> Tensor:
    # torch warns of arrays that are read-only; those are copied.
    return torch.from_numpy(np.require(values, requirements="W"))


def flip_axes(batch: ArcBatch, generator: torch.Generator) -> ArcBatch:
    """Flip the MDS axes of each instance at random: an augmentation, signs mean nothing.

    The generator may be on another device than the batch.
    """
    shape = (len(batch), 1, batch.num_axes)
    heads = torch.randint(2, shape, generator=generator, device=generator.device)
    return with_signs(batch, 2 * heads[:, 0] - 1)


def with_signs(batch: ArcBatch, signs: Tensor) -> ArcBatch:
    """Return the same instances with their MDS axes times `signs`, (batch, axes)."""
    sign = signs[:, None].to(batch.features)
    plain = torch.ones_like(batch.features[:, :1, :NUM_PLAIN])
    factor = torch.cat([plain, sign, sign], dim=2)  # (batch, 1, 3 + 2 d)
    return replace(batch, features=batch.features * factor)


# ----------------------------------------------------------------- states by length

# Lengths of buckets are 48, 88, 128 and so on: multiples of 8 suit the GPU, few lengths
# mean few shapes to compile, and a state wastes some twenty places on average.
_FIRST_LENGTH = 48
_LENGTH_STEP = 40

# Numbers that kernels load at once.
_VECTOR = 8


class Bucket(NamedTuple):
    """States of similar length: more than `above` unserved tasks, at most `most`."""

    length: int  # largest number of arcs, the depot and the previous arc included
    above: int
    most: int


def buckets(batch: ArcBatch) -> list[Bucket]:
    """Divide states into buckets by their unserved tasks. Waits for the device."""
    tasks = int(batch.num_tasks.amax())
    found: list[Bucket] = []
    above = 0
    while above < tasks:
        length = _FIRST_LENGTH + _LENGTH_STEP * len(found)
        # Two arcs of each task, the depot and the previous arc.
        most = min(tasks, (length - 2) // 2)
        found.append(Bucket(length, above, most))
        above = most
    return found


def bucket_sizes(batch: ArcBatch, known: Sequence[Bucket]) -> Tensor:
    """Count the services of all instances in each bucket, float64, on the host."""
    tasks = batch.num_tasks.cpu().double()
    counts = [(tasks.clamp(max=x.most) - x.above).clamp(min=0).sum() for x in known]
    return torch.stack(counts) if counts else torch.zeros(0, dtype=torch.float64)


def pad_arcs(batch: ArcBatch, length: int) -> ArcBatch:
    """Return the same instances with padding up to so many arcs."""
    more = length - batch.num_arcs
    if more <= 0:
        return batch
    columns = ("start", "end", "service_cost", "demand", "real")
    wider = {name: functional.pad(getattr(batch, name), (0, more)) for name in columns}
    own = torch.arange(batch.num_arcs, length, device=batch.inverse.device)
    own = own.to(batch.inverse).expand(len(batch), -1)
    return replace(
        batch,
        features=functional.pad(batch.features, (0, 0, 0, more)),
        inverse=torch.cat([batch.inverse, own], dim=1),
        **wider,
    )


class Shrunk(NamedTuple):
    """Instances without their served arcs; the places are the arcs."""

    batch: ArcBatch
    state: State
    kept: Tensor  # former number of each arc, (rows, length)
    slot: Tensor  # new number of each former arc, (rows, arcs); `length` for dropped ones


def present_arcs(state: State) -> Tensor:
    """Return the arcs that some plan of an instance may still see, (batch, arcs)."""
    return visible_arcs(state).any(1)


def round_length(length: int) -> int:
    """Round a number of arcs up to whole vectors of the kernels."""
    return -(-length // _VECTOR) * _VECTOR


def shrink(
    batch: ArcBatch, state: State, length: int, rows: Tensor | None = None
) -> Shrunk:
    """Drop the arcs that all plans of an instance have served, except previous ones.

    A model that hides served arcs computes the same logits for what is left.

    Parameters
    ----------
    batch
        Instances.
    state
        State of their plans, (rows, samples, ...).
    length
        Arcs of the new instances, enough for those left of each.
    rows
        Instance of each row of the state, (rows,); None for one row of each.
    """
    device = state.unserved.device
    present = present_arcs(state)  # (rows, arcs)
    number = torch.arange(present.shape[1], device=device)
    # Dropped arcs go to a slot that is cut off.
    slot = torch.where(present, present.cumsum(1) - 1, length)
    kept = torch.zeros((len(slot), length + 1), dtype=torch.int64, device=device)
    kept = kept.scatter(1, slot, number.expand_as(slot))[:, :length]  # (rows, length)
    place = torch.arange(length, device=device)
    real = place < present.sum(1, keepdim=True)  # (rows, length)
    row = torch.arange(len(batch), device=device) if rows is None else rows

    # The other direction of a previous arc is gone.
    inverses = slot.gather(1, batch.inverse[row[:, None], kept])
    inverses = torch.where(real & (inverses < length), inverses, place)
    small = some_arcs(batch, row, kept, real, inverses)
    columns = kept[:, None].expand(-1, state.unserved.shape[1], -1)
    state = State(
        unserved=state.unserved.gather(2, columns) & real[:, None],
        previous=slot.gather(1, state.previous),
        remaining=state.remaining,
    )
    return Shrunk(small, state, kept, slot)


def some_arcs(
    batch: ArcBatch, rows: Tensor, arcs: Tensor, real: Tensor, inverse: Tensor
) -> ArcBatch:
    """Return instances of some arcs, (rows, length), each; the places are the arcs.

    `rows` are the instances that the arcs are of, (rows,); padding, which is not `real`, is
    a copy of the depot.
    """

    def of_arcs(values: Tensor) -> Tensor:
        return values[rows[:, None], arcs]

    # One index into all distances: three side by side take a GPU many times as long.
    places = batch.distance.shape[1]
    ends, starts = of_arcs(batch.end).long(), of_arcs(batch.start).long()
    ends = (rows[:, None] * places + ends) * places
    number = torch.arange(arcs.shape[1], device=arcs.device)
    number = number.expand_as(arcs).to(batch.start.dtype)
    return ArcBatch(
        features=of_arcs(batch.features),
        distance=batch.distance.flatten()[ends[:, :, None] + starts[:, None]],
        start=number,
        end=number,
        service_cost=of_arcs(batch.service_cost),
        demand=of_arcs(batch.demand),
        inverse=inverse,
        real=real,
        capacity=batch.capacity[rows],
        route_cost=batch.route_cost[rows],
        fleet_limit=batch.fleet_limit[rows],
        scale=batch.scale[rows],
    )


def as_instances(state: State) -> tuple[State, Tensor]:
    """Return a state with one row per plan, (batch * samples, 1, ...), and batch rows."""
    batch, samples = state.previous.shape
    rows = torch.arange(batch, device=state.previous.device).repeat_interleave(samples)
    return State(*(tensor.flatten(0, 1)[:, None] for tensor in state)), rows
