"""The best plan of a tiny fleet by trying out all of them, in plain Python.

Driving costs are those of the checker; nothing of the search or the network is used but
the driving costs between streets that say which of them are neighbours.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from arcfleet import Instance, Solution
from arcfleet.instance.operations import Vehicle
from arcfleet.instance.turns import Direction, TurnCosts
from arcfleet.network import Network
from arcfleet.solution.checker_driving import Driving

FAR = 10**12
Block = tuple[int, ...]


def objective(instance: Instance, solution: Solution) -> tuple[int, float]:
    """What plans are compared by: routes where they come first, then cost and prices."""
    routes = [
        (route.cost - instance.fleet[route.vehicle].fixed_cost, number)
        for route, number in zip(solution.routes, solution.numbers, strict=True)
    ]
    where = {
        service.link: number
        for route, number in zip(solution.routes, solution.numbers, strict=True)
        for service in route.services
    }
    changed = sum(where[item.link] != item.route for item in instance.previous)
    apart = sum(where[link] != where[mate] for link, mate in mates(instance).items())
    return _objective(instance, solution.cost, [cost for cost, _ in routes], changed, apart)


def _objective(
    instance: Instance, cost: int, routes: list[int], changed: int, apart: int
) -> tuple[int, float]:
    price = float(cost) + instance.change_price * changed + instance.compactness * apart
    mean = sum(routes) / max(1, len(routes))
    if instance.balance and mean:
        price += instance.balance * sum((each - mean) ** 2 for each in routes) / mean
    return (len(routes) if instance.fewest_routes else 0), price


def mates(instance: Instance) -> dict[int, int]:
    """The nearest other street of each, by the costs of driving between their ends."""
    if not instance.compactness:
        return {}
    network = Network(instance)
    closed = network.core.closed_cost  # ways that there are not
    ends = {
        link: [
            int(terminal)
            for arc in range(1, network.num_arcs)
            if network.arc_edge[arc] == 2 * link
            for terminal in (network.arc_start[arc], network.arc_end[arc])
        ]
        for link in instance.required
    }

    def distance(link: int, other: int) -> tuple[int, int]:
        costs = [
            int(cost)
            for a in ends[link]
            for b in ends[other]
            for cost in (network.distances[a, b], network.distances[b, a])
            if not closed or cost < closed
        ]
        return (min(costs) + sum(costs) // len(costs) if costs else FAR), other

    return {
        link: min(
            (x for x in instance.required if x != link), key=lambda x: distance(link, x)
        )
        for link in instance.required
        if len(instance.required) > 1
    }


@dataclass(frozen=True)
class Optimum:
    """The best plan of an instance: number of routes where that counts, and objective.

    Balance may be better where a route is longer than it need be. With `cheapest_routes`,
    the best of the plans in which no route is.
    """

    instance: Instance
    cheapest_routes: bool = False

    @cached_property
    def drivings(self) -> list[Driving]:
        turns = TurnCosts(self.instance)
        return [
            Driving(self.instance, turns, vehicle.forbidden_links)
            for vehicle in self.instance.fleet
        ]

    @cached_property
    def _legs(self) -> dict[tuple[int, Direction | int, Direction | int], int]:
        instance = self.instance
        services = [way for link in instance.required for way in self._ways(link)]
        stops: list[Direction | int] = [facility.node for facility in instance.facilities]
        found: dict[tuple[int, Direction | int, Direction | int], int] = {}
        for kind, (vehicle, driving) in enumerate(
            zip(instance.fleet, self.drivings, strict=True)
        ):
            starts = [vehicle.depots[0], *services, *stops]
            ends = [*services, *stops, vehicle.depots[1]]
            costs = driving.leg_costs(itertools.product(starts, ends))
            found |= {(kind, *leg): cost for leg, cost in costs.items()}
        return found

    def _ways(self, link: int) -> list[Direction]:
        one_way = self.instance.links[link].one_way
        return [(link, False)] if one_way else [(link, False), (link, True)]

    def _drive(
        self, kind: int, start: Direction | int, end: Direction | int, via: bool
    ) -> int:
        leg = self._legs.get
        if not via:
            return leg((kind, start, end), FAR)
        return min(
            leg((kind, start, stop.node), FAR)
            + stop.cost
            + leg((kind, stop.node, end), FAR)
            for stop in self.instance.facilities
        )

    def _route(self, kind: int, order: list[list[Direction]], vias: list[bool]) -> int:
        """The least cost of an order of services, each in one of some directions."""
        start, end = self.instance.fleet[kind].depots
        done: dict[Direction | int, int] = {start: 0}
        for ways, via in zip(order, vias, strict=True):
            done = {
                way: self.instance.links[way[0]].step_cost(way[1], serves=True)  # type: ignore[operator]
                + min(cost + self._drive(kind, at, way, via) for at, cost in done.items())
                for way in ways
            }
        # Where it need not be empty, a vehicle may still come home by way of a facility:
        # no turn is taken there.
        lasts = [True] if self.instance.empty_at_end else [False, True]
        if not self.instance.facilities:
            lasts = [False]
        return min(
            cost + self._drive(kind, at, end, last)
            for at, cost in done.items()
            for last in lasts
        )

    def _cuts(self, vehicle: Vehicle, links: Block) -> Iterator[list[bool]]:
        """All choices of facility visits that keep the capacity on every trip."""
        free = [False, True] if self.instance.facilities else [False]
        for choice in itertools.product(free, repeat=len(links) - 1):
            vias = [False, *choice]
            load = 0
            for link, via in zip(links, vias, strict=True):
                load = (0 if via else load) + self.instance.links[link].demand
                if load > vehicle.capacity:
                    break
            else:
                yield vias

    def _costs(self, kind: int, block: Block) -> set[int]:
        """Costs of routes of a type through some streets; the least if only that counts."""
        vehicle = self.instance.fleet[kind]
        most = FAR - 1 if vehicle.max_route_cost is None else vehicle.max_route_cost
        if any(link in vehicle.forbidden_links for link in block):
            return set()
        costs = {
            cost
            for order in itertools.permutations(block)
            for vias in self._cuts(vehicle, order)
            if (cost := self._route(kind, [self._ways(link) for link in order], vias))
            <= most
        }
        all_count = self.instance.balance and not self.cheapest_routes
        return costs if all_count else set(sorted(costs)[:1])

    def _locked(self) -> list[tuple[int, int]] | None:
        """Vehicle type and cost of each locked route; None where one breaks a rule."""
        found = []
        for lock in self.instance.locks:
            vehicle = self.instance.fleet[lock.vehicle]
            most = FAR - 1 if vehicle.max_route_cost is None else vehicle.max_route_cost
            links = tuple(link for link, _ in lock.services)
            ways = [[way] for way in lock.services]
            costs = [
                self._route(lock.vehicle, ways, vias) for vias in self._cuts(vehicle, links)
            ]
            barred = not set(links).isdisjoint(vehicle.forbidden_links)
            if barred or not costs or min(costs) > most:
                return None
            found.append((lock.vehicle, min(costs)))
        return found

    def find(self) -> tuple[int, float] | None:
        """The least objective of all plans; None if there is no plan."""
        instance = self.instance
        locked = self._locked()
        if locked is None:
            return None
        held = {link: lock.route for lock in instance.locks for link, _ in lock.services}
        free = [link for link in instance.required if link not in held]
        known: dict[tuple[int, Block], set[int]] = {}
        nearest = mates(instance)
        best = None
        for blocks in _partitions(free):
            kinds = range(len(instance.fleet))
            for types in itertools.product(kinds, repeat=len(blocks)):
                if not self._fleet_holds([*types, *(kind for kind, _ in locked)]):
                    continue
                choices = []
                for kind, block in zip(types, blocks, strict=True):
                    if (kind, block) not in known:
                        known[kind, block] = self._costs(kind, block)
                    choices.append(known[kind, block])
                if not all(choices):
                    continue
                changed = self._least_changed(blocks, held)
                if changed is None:
                    continue
                where = {link: i for i, block in enumerate(blocks) for link in block}
                where |= {link: -number for link, number in held.items()}
                apart = sum(where[a] != where[b] for a, b in nearest.items())
                fixed = sum(
                    instance.fleet[kind].fixed_cost
                    for kind in [*types, *(kind for kind, _ in locked)]
                )
                for costs in itertools.product(*choices):
                    routes = [*costs, *(cost for _, cost in locked)]
                    price = _objective(
                        instance, sum(routes) + fixed, routes, changed, apart
                    )
                    best = price if best is None else min(best, price)
        return best

    def _fleet_holds(self, types: list[int]) -> bool:
        for kind, vehicle in enumerate(self.instance.fleet):
            driven = types.count(kind)
            if vehicle.count is not None and driven > vehicle.count:
                return False
            if self.instance.exact_fleet and driven != vehicle.count:
                return False
        return True

    def _least_changed(self, blocks: list[Block], held: dict[int, int]) -> int | None:
        """Streets off their earlier route, by the best numbers; None if pins forbid it."""
        instance = self.instance
        pins = {item.link: item.route for item in instance.pins if item.link not in held}
        previous = {item.link: item.route for item in instance.previous}
        locked = {lock.route for lock in instance.locks}
        numbers = [*sorted({*pins.values(), *previous.values()} - locked)]
        numbers += [-1 - i for i in range(len(blocks))]  # any others
        least = None
        for chosen in itertools.permutations(numbers, len(blocks)):
            where = held | {
                link: number
                for number, block in zip(chosen, blocks, strict=True)
                for link in block
            }
            if all(where[link] == number for link, number in pins.items()):
                changed = sum(where[link] != number for link, number in previous.items())
                least = changed if least is None else min(least, changed)
        return least


def _partitions(links: list[int]) -> Iterator[list[Block]]:
    if not links:
        yield []
        return
    first, rest = links[0], links[1:]
    for size in range(len(rest) + 1):
        for others in itertools.combinations(rest, size):
            left = [link for link in rest if link not in others]
            for blocks in _partitions(left):
                yield [(first, *others), *blocks]
