"""What an instance asks of a plan, as the engines in C++ take it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from arcfleet import _core
from arcfleet.instance.operations import ROUTE_LIMITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from arcfleet.network import Network
    from arcfleet.solution.plan import IntArray

_NO_LIMIT = 2**31 - 1


def fleet_rules(
    network: Network,
    *,
    numbered_slots: Sequence[int] = (),
    home: IntArray | None = None,
    pin: IntArray | None = None,
    locked: IntArray | None = None,
    locked_routes: Sequence[tuple[int, int]] = (),
) -> _core.FleetRules:
    """Return the rules of an instance.

    By default no route has a number. `numbered_slots` has the vehicle type of each that
    has. By task, `home` and `pin` have a slot or -1, `locked` a locked route counted from 1
    or 0. `locked_routes` has the vehicle type and the cost of each.
    """
    instance = network.instance
    nowhere = np.full(network.num_tasks, -1, dtype=np.int32)
    stops = zip(network.facility_terminals, instance.facilities, strict=True)
    return _core.FleetRules(
        vehicles=_vehicle_columns(network, [vehicle for vehicle, _ in locked_routes]),
        facilities=flat([(terminal, facility.cost) for terminal, facility in stops]),
        empty_at_end=instance.empty_at_end,
        exact_fleet=instance.exact_fleet,
        fewest_routes=instance.fewest_routes,
        balance=instance.balance,
        compactness=instance.compactness,
        change_price=instance.change_price,
        numbered_slots=flat([numbered_slots]),
        home=nowhere if home is None else home,
        pin=nowhere if pin is None else pin,
        locked=np.zeros_like(nowhere) if locked is None else locked,
        may_serve=_may_serve(network),
        locked_costs=flat([[cost for _, cost in locked_routes]]),
    )


def _vehicle_columns(network: Network, used: Sequence[int]) -> dict[str, IntArray]:
    """Return each field of the vehicle types; `used` has those of routes already set."""
    fleet = network.instance.fleet
    columns = {
        "start": network.vehicle_start,
        "end": network.vehicle_end,
        "driving": network.vehicle_class,
        "capacity": [vehicle.capacity for vehicle in fleet],
        "fixed_cost": [vehicle.fixed_cost for vehicle in fleet],
        "count": [
            _NO_LIMIT if vehicle.count is None else vehicle.count - used.count(i)
            for i, vehicle in enumerate(fleet)
        ],
        **{
            field: [getattr(vehicle, field) or _NO_LIMIT for vehicle in fleet]
            for field in ROUTE_LIMITS
        },
    }
    return {name: flat([values]) for name, values in columns.items()}


def _may_serve(network: Network) -> NDArray[np.uint8]:
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
