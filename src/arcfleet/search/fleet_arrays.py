"""Vehicle types and facilities as the engines in C++ take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from arcfleet.network import Network
    from arcfleet.solution.plan import IntArray

_NO_LIMIT = 2**31 - 1


def vehicle_rows(network: Network, used: Sequence[int] = ()) -> IntArray:
    """Return one row for each vehicle type; `used` has the types of routes already set."""
    rows = [
        (
            network.vehicle_start[i],
            network.vehicle_end[i],
            vehicle.capacity,
            _NO_LIMIT if vehicle.count is None else vehicle.count - used.count(i),
            vehicle.fixed_cost,
            vehicle.max_route_cost or _NO_LIMIT,
            network.vehicle_class[i],
        )
        for i, vehicle in enumerate(network.instance.fleet)
    ]
    return flat(rows)


def facility_rows(network: Network) -> IntArray:
    """Return terminal and cost of each facility."""
    pairs = zip(network.facility_terminals, network.instance.facilities, strict=True)
    return flat([(terminal, facility.cost) for terminal, facility in pairs])


def may_serve(network: Network) -> NDArray[np.uint8]:
    """Return, by driving costs and task, whether such vehicles may serve it."""
    instance = network.instance
    task_of_link = {link: task for task, link in enumerate(instance.required)}
    allowed = np.ones((len(network.cores), network.num_tasks), dtype=np.uint8)
    for vehicle, number in zip(instance.fleet, network.vehicle_class, strict=True):
        for link in vehicle.forbidden_links:
            if link in task_of_link:
                allowed[number, task_of_link[link]] = 0
    return allowed.reshape(-1)


def flat(rows: Sequence[Sequence[int]]) -> IntArray:
    """Return all numbers of some rows, one after the other."""
    return np.array([value for row in rows for value in row], dtype=np.int32)
