"""Batches made straight from networks, with random numbers for the MDS coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from arcfleet.instance.instance import Instance, Link
from arcfleet.neural.batch import ArcBatch
from arcfleet.neural.model import Daam
from tests.tiny_model import tiny_config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.network import Network

MDS_DIMENSIONS = 2

# The tensors of tests are so small that more threads only wait for each other.
torch.set_num_threads(1)


def toy_batch(networks: Sequence[Network]) -> ArcBatch:
    """Pad the arcs of all networks to those of the largest."""
    arcs = max(network.num_arcs for network in networks)
    places = max(len(network.distances) for network in networks)
    size = len(networks)
    numbers = {
        name: torch.zeros((size, arcs), dtype=torch.int32)
        for name in ("start", "end", "service_cost", "demand")
    }
    inverse = torch.arange(arcs).repeat(size, 1)
    real = torch.zeros((size, arcs), dtype=torch.bool)
    distance = torch.zeros((size, places, places), dtype=torch.int32)
    features = torch.zeros((size, arcs, 3 + 2 * MDS_DIMENSIONS))
    scale = torch.zeros(size)
    for row, network in enumerate(networks):
        count = network.num_arcs
        for name, values in numbers.items():
            values[row, :count] = torch.from_numpy(getattr(network, f"arc_{name}").copy())
        one_way = np.arange(count)
        inverse[row, :count] = torch.from_numpy(
            np.where(network.arc_inverse < 0, one_way, network.arc_inverse)
        )
        real[row, :count] = True
        side = len(network.distances)
        distance[row, :side, :side] = torch.from_numpy(network.distances.copy())
        ways = network.distances[network.arc_end][:, network.arc_start]
        scale[row] = max(1.0, float(ways.mean()))
        generator = np.random.default_rng(count)
        coordinates = generator.normal(size=(side, MDS_DIMENSIONS))
        features[row, 0, 0] = 1
        features[row, :count, 1] = numbers["service_cost"][row, :count] / scale[row]
        features[row, :count, 2] = (
            numbers["demand"][row, :count] / network.instance.capacity
        )
        both = [coordinates[network.arc_start], coordinates[network.arc_end]]
        features[row, :count, 3:] = torch.from_numpy(np.concatenate(both, axis=1))
    rules = [network.instance for network in networks]
    return ArcBatch(
        features=features,
        distance=distance,
        inverse=inverse,
        real=real,
        capacity=torch.tensor([rule.capacity for rule in rules], dtype=torch.int32),
        route_cost=torch.tensor([rule.route_cost for rule in rules], dtype=torch.int32),
        fleet_limit=torch.tensor(
            [rule.fleet_limit or 0 for rule in rules], dtype=torch.int32
        ),
        scale=scale,
        **numbers,
    )


def toy_model(seed: int = 1) -> Daam:
    """A small model with random weights, in float64, that is far from indifferent."""
    torch.manual_seed(seed)
    model = Daam(tiny_config(MDS_DIMENSIONS)).double().eval()
    with torch.no_grad():
        model.context.weight *= 3
    return model


def ring(
    demands: Sequence[int],
    *,
    capacity: int = 4,
    route_cost: int = 0,
    fleet_limit: int | None = None,
) -> Instance:
    """A ring of two-way streets, each of them to be served, the depot on it."""
    count = len(demands)
    return Instance(
        name="ring",
        nodes=tuple(range(count)),
        links=tuple(
            Link(
                tail=i,
                head=(i + 1) % count,
                cost=3 + 2 * i,
                reverse_cost=3 + 2 * i,
                required=True,
                demand=demand,
                service_cost=5 + i,
                reverse_service_cost=5 + i,
            )
            for i, demand in enumerate(demands)
        ),
        depot=0,
        capacity=capacity,
        route_cost=route_cost,
        fleet_limit=fleet_limit,
    )
