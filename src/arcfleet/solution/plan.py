"""Between the flat arrays that solvers hold and Solutions, and from routes to streets.

A plan is two arrays: the arcs of all routes one after the other, and where each route
starts, with the total number of arcs as last entry.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from arcfleet.errors import SolutionError
from arcfleet.network import StreetPaths
from arcfleet.solution.solution import Route, Service, Solution, Step
from arcfleet.solution.travel import with_travel

if TYPE_CHECKING:
    from arcfleet.network import Network

IntArray = NDArray[np.int32]


def from_plan(network: Network, arcs: IntArray, route_starts: IntArray) -> Solution:
    """Return the Solution of a flat plan, with costs, loads, street paths and lengths."""
    routes = []
    deadhead = 0
    service_cost = 0
    paths = StreetPaths(network.core)
    for number, (first, last) in enumerate(pairwise(route_starts.tolist()), start=1):
        route = arcs[first:last]
        path, route_deadhead = _street_path(network, paths, route, number)
        route_service = int(network.arc_service_cost[route].sum(dtype=np.int64))
        edges = network.arc_edge[route].tolist()
        routes.append(
            Route(
                services=tuple(Service(edge // 2, edge % 2 == 1) for edge in edges),
                load=int(network.arc_demand[route].sum(dtype=np.int64)),
                cost=route_deadhead + route_service + network.instance.route_cost,
                path=path,
            )
        )
        deadhead += route_deadhead
        service_cost += route_service
    solution = Solution(
        routes=tuple(routes),
        cost=deadhead + service_cost + network.instance.route_cost * len(routes),
        deadhead=deadhead,
        service_cost=service_cost,
    )
    return with_travel(network.instance, solution)


def to_plan(network: Network, solution: Solution) -> tuple[IntArray, IntArray]:
    """Flatten a Solution into arcs and route starts, as solvers take it.

    Raises SolutionError where a service is none that the network knows; whether the plan
    is otherwise right, the checker verifies.
    """
    arc_of_edge = {edge: arc for arc, edge in enumerate(network.arc_edge.tolist()) if arc}
    arcs = []
    route_starts = [0]
    for number, route in enumerate(solution.routes, start=1):
        for service in route.services:
            arc = arc_of_edge.get(2 * service.link + service.reverse)
            if arc is None:
                raise SolutionError(
                    "expected services of required links in legal directions, got link "
                    f"{service.link}{' reversed' if service.reverse else ''} "
                    f"in route {number}"
                )
            arcs.append(arc)
        route_starts.append(len(arcs))
    return np.array(arcs, dtype=np.int32), np.array(route_starts, dtype=np.int32)


def with_street_paths(network: Network, solution: Solution) -> Solution:
    """Return the Solution with the street path of every route, as `from_plan` computes it.

    Raises SolutionError where no streets connect two services that follow each other.
    """
    arcs, route_starts = to_plan(network, solution)
    bounds = pairwise(route_starts.tolist())
    paths = StreetPaths(network.core)
    routes = tuple(
        replace(route, path=_street_path(network, paths, arcs[first:last], number)[0])
        for number, (route, (first, last)) in enumerate(
            zip(solution.routes, bounds, strict=True), start=1
        )
    )
    return replace(solution, routes=routes)


def _street_path(
    network: Network, paths: StreetPaths, route: IntArray, number: int
) -> tuple[tuple[Step, ...], int]:
    """Return the links driven along on a route, and what driving between services costs.

    They lie on shortest paths between its services.
    """
    try:
        edges, serves, costs = paths.of(route)
    except ValueError:
        rules = " that obeys the turn rules" if network.instance.has_turn_rules else ""
        raise SolutionError(
            f"expected streets that lead through all services of route {number} and back "
            f"to the depot, found no way{rules} between two of them in instance "
            f"{network.instance.name!r}"
        ) from None
    path = tuple(
        Step(edge // 2, edge % 2 == 1, bool(served))
        for edge, served in zip(edges.tolist(), serves.tolist(), strict=True)
    )
    return path, int(costs.sum(dtype=np.int64))
