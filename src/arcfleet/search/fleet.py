"""Searches over plans of a fleet: all that `Instance.operations` names.

Ruin and recreate, and path scanning.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from arcfleet import _core
from arcfleet.errors import InstanceError, OptionError, SolutionError, UnsolvableError
from arcfleet.instance.instance import MAX_NUMBER
from arcfleet.network.network import CLOSED_COST
from arcfleet.search.fleet_rules import flat, fleet_rules
from arcfleet.search.run import BEGUN, run_engine
from arcfleet.solution.build import Builder
from arcfleet.solution.solution import Service
from arcfleet.solution.trips import TripPlan, from_trips, to_trips

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from arcfleet.network import Network
    from arcfleet.search.path_scanning import PathScanningSettings
    from arcfleet.search.result import Result
    from arcfleet.search.ruin_recreate import RuinRecreateSettings
    from arcfleet.search.run import RunContext
    from arcfleet.solution import Solution

_MOST_COST = CLOSED_COST - 1  # in every network


def fleet_scanning(
    network: Network, context: RunContext, settings: PathScanningSettings
) -> Result:
    """Run path scanning on an instance with operations; it must have passed `diagnose`."""
    layout = _Layout(network, None)

    def make_engine() -> _FleetEngine:
        with _priced(network):
            core = _core.FleetScanning(
                networks=network.cores,
                rules=layout.rules(),
                choice=settings.choice,
                trigger=settings.trigger,
                filter=settings.filter,
                alpha=settings.alpha,
                seed=context.seed,
            )
        return _FleetEngine(core, layout.locked_cost)

    return run_engine(make_engine, network, context, layout.solution)


def fleet_search(
    network: Network, context: RunContext, settings: RuinRecreateSettings
) -> Result:
    """Run ruin and recreate on an instance with operations; it must have passed `diagnose`.

    It starts from the plan of the context, otherwise from one of path scanning.
    Locked routes are kept out of the search.
    """
    layout = _Layout(network, context.start)
    usual = type(settings)().most_excess
    if settings.most_excess != usual:
        raise OptionError(
            f"expected most_excess {usual} with operations, whose search has no such "
            f"limit, got {settings.most_excess}: leave it out"
        )

    def make_engine() -> _FleetEngine:
        core = _make_core(layout, settings, context.seed, context.threads, context.horizon)
        return _FleetEngine(core, layout.locked_cost)

    begun = BEGUN * network.num_tasks
    return run_engine(make_engine, network, context, layout.solution, begun=begun)


def fleet_engine(
    network: Network, settings: RuinRecreateSettings, seed: int
) -> _core.FleetSearch:
    """Return an engine of one chain to be run by hand, for measurements."""
    return _make_core(_Layout(network, None), settings, seed, 1, (10_000_000, 0.0))


def _make_core(
    layout: _Layout,
    settings: RuinRecreateSettings,
    seed: int,
    chains: int,
    horizon: tuple[int, float],
) -> _core.FleetSearch:
    iterations, seconds = horizon
    with _priced(layout.network):
        return _core.FleetSearch(
            networks=layout.network.cores,
            rules=layout.rules(),
            **asdict(settings),
            seed=seed,
            chains=chains,
            horizon_iterations=iterations,
            horizon_seconds=seconds,
            **layout.start_arrays(),
        )


@contextmanager
def _priced(network: Network) -> Iterator[None]:
    """Raise InstanceError where an engine cannot count what a plan may cost."""
    try:
        yield
    except OverflowError:
        raise InstanceError(
            "expected a plan with one route per street to cost at most "
            f"{_MOST_COST}, found more in instance {network.instance.name!r}: "
            "use a coarser unit of cost"
        ) from None


class _FleetEngine:
    """The engine, with the cost of the locked routes added to that of its plans."""

    def __init__(
        self, core: _core.FleetSearch | _core.FleetScanning, locked_cost: int
    ) -> None:
        self.core = core
        self.locked_cost = locked_cost

    def run(self, iterations: int, seconds: float, target: int, threads: int) -> None:
        if target >= 0:
            target = max(-1, target - self.locked_cost)
        self.core.run(iterations, seconds, target, threads)

    @property
    def iterations(self) -> int:
        return self.core.iterations

    @property
    def has_plan(self) -> bool:
        return self.core.has_plan

    @property
    def best_cost(self) -> int:
        return self.core.best_cost + self.locked_cost

    @property
    def no_improvement(self) -> int:
        return self.core.no_improvement

    def best_plan(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        return self.core.best_plan()

    def history(self) -> Sequence[tuple[float, int, int]]:
        return [
            (seconds, iteration, cost + self.locked_cost)
            for seconds, iteration, cost in self.core.history()
        ]


class _Layout:
    """Between the numbers of routes and the slots of the engine.

    Routes that pins or an earlier plan name have slots of their own; the others are
    numbered when the search is over, if any route has a number.
    """

    def __init__(self, network: Network, start: Solution | None) -> None:
        self.network = network
        self.instance = instance = network.instance
        if instance.total_demand > MAX_NUMBER:
            raise InstanceError(
                f"expected a total demand of at most {MAX_NUMBER} with operations, got "
                f"{instance.total_demand} in instance {instance.name!r}: use a coarser unit"
            )
        self.task_of_link = {link: task for task, link in enumerate(instance.required)}
        self.locked_numbers = {lock.route for lock in instance.locks}
        named = {item.route for item in instance.pins}
        if instance.change_price:
            named |= {item.route for item in instance.previous}
        self.numbers = sorted(named - self.locked_numbers)  # by slot
        self.slots = {number: slot for slot, number in enumerate(self.numbers)}
        self.start = [] if start is None else to_trips(network, start)
        arc_of = {int(edge): arc for arc, edge in enumerate(network.arc_edge) if arc}
        self.locked: list[TripPlan] = []
        builder = Builder(instance)
        for lock in instance.locks:
            arcs = tuple(arc_of[2 * link + reverse] for link, reverse in lock.services)
            services = [Service(link, reverse) for link, reverse in lock.services]
            tour = builder.tour(lock.vehicle, services)
            visits = {before for _, before in tour.visits}
            vias = tuple(place in visits for place in range(len(arcs)))
            self.locked.append(TripPlan(arcs, vias, lock.vehicle, lock.route))
        try:
            locked = from_trips(network, self.locked)
        except SolutionError as error:
            raise UnsolvableError(
                f"expected locked routes that can be driven: {error}"
            ) from None
        self.locked_cost = locked.cost
        self.locked_costs = [
            route.cost - instance.fleet[route.vehicle].fixed_cost for route in locked.routes
        ]
        self._require_sound_locks()

    def _require_sound_locks(self) -> None:
        """Raise UnsolvableError where a locked route breaks the rules of its vehicle."""
        for route, cost in zip(self.locked, self.locked_costs, strict=True):
            vehicle = self.instance.fleet[route.vehicle]
            load = most = 0
            for arc, via in zip(route.arcs, route.vias, strict=True):
                load = (0 if via else load) + int(self.network.arc_demand[arc])
                most = max(most, load)
            links = {int(self.network.arc_edge[arc]) // 2 for arc in route.arcs}
            longest = vehicle.max_route_cost
            if most > vehicle.capacity:
                broken = f"carries {most} on a trip, above the capacity {vehicle.capacity}"
            elif longest is not None and cost > longest:
                broken = f"costs {cost}, above the longest route {longest}"
            elif not links.isdisjoint(vehicle.forbidden_links):
                broken = "serves a link that is forbidden to its vehicle"
            else:
                continue
            raise UnsolvableError(
                f"expected locked routes that keep the rules, but route {route.number} "
                f"{broken} in instance {self.instance.name!r}"
            )

    def rules(self) -> _core.FleetRules:
        """Return what the engine is told of the instance."""
        network, instance = self.network, self.instance
        home = np.full(network.num_tasks, -1, dtype=np.int32)
        if instance.change_price:
            for item in instance.previous:
                home[self.task_of_link[item.link]] = self.slots.get(item.route, -1)
        pin = np.full(network.num_tasks, -1, dtype=np.int32)
        for item in instance.pins:
            pin[self.task_of_link[item.link]] = self.slots.get(item.route, -1)
        locked = np.zeros(network.num_tasks, dtype=np.int32)
        for position, lock in enumerate(instance.locks, start=1):
            for link, _ in lock.services:
                locked[self.task_of_link[link]] = position
        vehicles = [route.vehicle for route in self.locked]
        return fleet_rules(
            network,
            numbered_slots=self._slot_types(),
            home=home,
            pin=pin,
            locked=locked,
            locked_routes=list(zip(vehicles, self.locked_costs, strict=True)),
        )

    def _slot_types(self) -> list[int]:
        """Vehicle type of each numbered route to begin with: that of the start, if any.

        A type that may serve what is pinned to the route, one that is left if possible.
        """
        known = {route.number: route.vehicle for route in self.start}
        used = [route.vehicle for route in self.locked]
        types = []
        for number in self.numbers:
            pinned = {item.link for item in self.instance.pins if item.route == number}
            able = [
                i
                for i, vehicle in enumerate(self.instance.fleet)
                if pinned.isdisjoint(vehicle.forbidden_links)
            ]
            if not able:
                raise UnsolvableError(
                    f"expected a vehicle type that may serve all streets pinned to route "
                    f"{number}, found none in instance {self.instance.name!r}"
                )
            kind = known.get(number)
            if kind not in able:
                counts = [self.instance.fleet[i].count for i in able]
                free = (
                    i
                    for i, count in zip(able, counts, strict=True)
                    if count is None or used.count(i) < count
                )
                kind = next(free, able[0])
            used.append(kind)
            types.append(kind)
        return types

    def start_arrays(self) -> dict[str, Any]:
        """Return the plan to start from, each street once; the engine puts in the rest."""
        pins = {self.task_of_link[item.link]: item.route for item in self.instance.pins}
        seen = {
            int(self.network.arc_task[arc]) for each in self.locked for arc in each.arcs
        }
        routes: list[tuple[int, int, list[int], list[bool]]] = []
        types = self._slot_types()
        for route in self.start:
            arcs: list[int] = []
            vias: list[bool] = []
            pending = False
            slot = self.slots.get(route.number or 0, -1)
            vehicle = types[slot] if slot >= 0 else route.vehicle
            forbidden = self.instance.fleet[vehicle].forbidden_links
            for arc, via in zip(route.arcs, route.vias, strict=True):
                task = int(self.network.arc_task[arc])
                pending = pending or via
                if (
                    task not in seen
                    and pins.get(task, route.number) == route.number
                    and self.instance.required[task] not in forbidden
                ):
                    seen.add(task)
                    arcs.append(arc)
                    vias.append(pending and len(arcs) > 1)
                    pending = False
            if arcs:
                routes.append((vehicle, slot, arcs, vias))
        starts = np.cumsum([0, *(len(arcs) for _, _, arcs, _ in routes)])
        return {
            "arcs": flat([arcs for _, _, arcs, _ in routes]),
            "route_starts": starts.astype(np.int32) if routes else flat([]),
            "route_vehicles": flat([[vehicle for vehicle, _, _, _ in routes]]),
            "route_slots": flat([[slot for _, slot, _, _ in routes]]),
            "vias": flat([vias for _, _, _, vias in routes]).astype(np.uint8),
        }

    def solution(self, engine: _FleetEngine) -> Solution:
        """Return the best plan of the engine, with the locked routes."""
        arcs, starts = engine.best_plan()
        vehicles, slots, vias = engine.core.best_fleet()
        routes = list(self.locked)
        for i in range(len(starts) - 1):
            part = slice(int(starts[i]), int(starts[i + 1]))
            slot = int(slots[i])
            routes.append(
                TripPlan(
                    tuple(arcs[part].tolist()),
                    tuple(bool(via) for via in vias[part]),
                    int(vehicles[i]),
                    self.numbers[slot] if slot >= 0 else None,
                )
            )
        if self.locked or self.numbers:
            taken = {route.number for route in routes} | set(self.numbers)
            free = (n for n in range(1, len(routes) + len(taken) + 2) if n not in taken)
            routes = [
                TripPlan(each.arcs, each.vias, each.vehicle, each.number or next(free))
                for each in routes
            ]
            routes.sort(key=lambda route: route.number or 0)
        try:
            return from_trips(self.network, routes)
        except SolutionError as error:
            raise UnsolvableError(f"{error}: search longer or allow more") from None
