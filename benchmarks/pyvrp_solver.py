"""Arc routing by PyVRP, a solver of node routing: the numbers it takes, and its plans back.

Every direction in which a street may be served is a client; the two directions of a street
are a group of which exactly one is visited. The distance between two clients is the
shortest way from the end of one service to the start of the next.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from arcfleet.errors import InstanceError, OptionError, UnsolvableError
from arcfleet.instance.diagnose import require_solvable
from arcfleet.network import Network
from arcfleet.network.network import UNREACHABLE
from arcfleet.search.result import Improvement, Result
from arcfleet.solution.plan import from_plan

if TYPE_CHECKING:
    import pyvrp
    from numpy.typing import NDArray

    from arcfleet.instance import Instance
    from arcfleet.search import Stop
    from arcfleet.search.stop import StoppedBy


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRouting:
    """A node-routing problem whose plans are those of an arc-routing one.

    Client `c` is arc `c + 1` of the network; place 0 is the depot, place `c + 1` that of
    client `c`.

    Parameters
    ----------
    distances
        From place to place, what a direction costs beyond the cheaper one included.
    demands
        Of the clients.
    groups
        Clients of which exactly one is visited, a group for each task.
    capacity
        Of a vehicle.
    vehicles
        As many as the best plan may need.
    vehicle_cost
        Of every vehicle that leaves the depot.
    constant
        Cost of every plan beside these: each task in its cheaper direction.
    """

    distances: NDArray[np.int64]  # (clients + 1, clients + 1)
    demands: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    capacity: int
    vehicles: int
    vehicle_cost: int
    constant: int


def to_node_routing(network: Network) -> NodeRouting:
    """Return the node-routing problem of an instance."""
    instance = network.instance
    ends, starts = network.arc_end, network.arc_start
    deadheads = network.distances[np.ix_(ends, starts)]  # (arcs, arcs), the depot first
    if (deadheads == UNREACHABLE).any():
        raise InstanceError(
            "expected a way from every service to every other, found none between two of "
            f"instance {instance.name!r}: leave out the streets that cannot be left"
        )
    groups: list[list[int]] = [[] for _ in range(network.num_tasks)]
    for client, task in enumerate(network.arc_task[1:].tolist()):
        groups[task].append(client)
    costs = network.arc_service_cost[1:].astype(np.int64)
    cheapest = np.array([costs[group].min() for group in groups], dtype=np.int64)
    distances = deadheads.astype(np.int64)
    # Not the whole cost of serving: equal terms would only hide which streets are near.
    distances[:, 1:] += costs - cheapest[network.arc_task[1:]]
    np.fill_diagonal(distances, 0)
    # Two routes that fit into one cost no less than it, so that some best plan has no such
    # pair: any two of its routes carry more than the capacity.
    most_routes = 2 * instance.total_demand // instance.capacity + 1
    return NodeRouting(
        distances=distances,
        demands=tuple(network.arc_demand[1:].tolist()),
        groups=tuple(map(tuple, groups)),
        capacity=instance.capacity,
        vehicles=min(most_routes, instance.fleet_limit or most_routes),
        vehicle_cost=instance.route_cost,
        constant=int(cheapest.sum()),
    )


def pyvrp_name() -> str:
    """Return PyVRP's name with its version, or raise OptionError where it is missing."""
    if find_spec("pyvrp") is None:
        raise OptionError(
            "the side-by-side run needs pyvrp, which is not installed: pip install "
            "pyvrp==0.14.1"
        )
    return f"PyVRP {version('pyvrp')}"


def solve_by_pyvrp(instance: Instance, *, stop: Stop, seed: int) -> Result:
    """Solve an instance by PyVRP with its own settings, on one thread.

    The clock runs as in `arcfleet.solve`: shortest ways and the conversion count.
    """
    seconds = stop.seconds
    if seconds is None or (stop.iterations, stop.no_improvement) != (None, None):
        raise OptionError(
            "expected PyVRP to be stopped by seconds, perhaps with a target cost, got "
            f"{stop}: give seconds, and no iterations"
        )
    method = pyvrp_name()
    import pyvrp
    from pyvrp.IteratedLocalSearch import (
        IteratedLocalSearchCallbacks,
        IteratedLocalSearchParams,
    )

    started = time.perf_counter()
    require_solvable(instance)
    network = Network(instance)
    problem = to_node_routing(network)
    target = -1 if stop.target_cost is None else stop.target_cost
    history: list[Improvement] = []
    iterations = 0

    class Watch(IteratedLocalSearchCallbacks):  # type: ignore[misc]
        """Keeps when better plans were found."""

        def on_start(self, ils: pyvrp.IteratedLocalSearch) -> None:
            self.on_best(ils.initial_solution)

        def on_best(self, best: pyvrp.Solution) -> None:
            if best.is_feasible():
                cost = best.distance_cost() + best.fixed_vehicle_cost() + problem.constant
                seconds = time.perf_counter() - started
                history.append(Improvement(seconds, iterations, cost))

    def is_over(best_cost: int) -> bool:
        """Count an iteration, and tell whether it was the last."""
        nonlocal iterations
        iterations += 1
        if history and history[-1].cost <= target:
            return True
        return time.perf_counter() - started > seconds

    result = pyvrp.solve(
        _problem_data(problem),
        stop=is_over,
        seed=seed,
        collect_stats=False,
        params=pyvrp.SolveParams(ils=IteratedLocalSearchParams(callbacks=Watch())),
    )
    if not result.is_feasible():
        raise UnsolvableError(
            f"found no plan for {instance.name!r} in {result.num_iterations} iterations "
            f"of {method}: give it more time"
        )
    # Client c is arc c + 1.
    routes = [
        [visit.idx + 1 for visit in route if visit.is_client()]
        for route in result.best.routes()
    ]
    solution = from_plan(
        network,
        np.array([arc for route in routes for arc in route], dtype=np.int32),
        np.cumsum([0, *map(len, routes)], dtype=np.int32),
    )
    stopped_by: StoppedBy = "target_cost" if solution.cost <= target else "seconds"
    return Result(
        instance=instance,
        method=method,
        seed=seed,
        threads=1,
        solution=solution,
        seconds=time.perf_counter() - started,
        iterations=result.num_iterations,
        stopped_by=stopped_by,
        history=tuple(history),
    )


def _problem_data(problem: NodeRouting) -> pyvrp.ProblemData:
    import pyvrp

    group_of = {
        client: group
        for group, clients in enumerate(x for x in problem.groups if len(x) > 1)
        for client in clients
    }
    clients = [
        pyvrp.Client(
            location=client + 1,
            delivery=[demand],
            required=client not in group_of,
            group=group_of.get(client),
        )
        for client, demand in enumerate(problem.demands)
    ]
    vehicles = pyvrp.VehicleType(
        num_available=problem.vehicles,
        capacity=[problem.capacity],
        fixed_cost=problem.vehicle_cost,
    )
    return pyvrp.ProblemData(
        # Where places lie on a map plays no part: the distances are given.
        locations=[pyvrp.Location(x=0, y=0) for _ in range(len(clients) + 1)],
        clients=clients,
        depots=[pyvrp.Depot(location=0)],
        vehicle_types=[vehicles],
        distance_matrices=[problem.distances],
        duration_matrices=[np.zeros_like(problem.distances)],
        groups=[pyvrp.ClientGroup(list(x)) for x in problem.groups if len(x) > 1],
    )
