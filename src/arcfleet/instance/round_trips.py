"""The way to one street and back, as a vehicle type drives it: the shortest of all routes.

Plain searches, for `diagnose`: a few per vehicle type, over nodes or, with turn rules, over
directed links.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeVar

from arcfleet.instance.shortest_ways import shortest_ways
from arcfleet.instance.turns import TurnCosts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from arcfleet.instance.instance import Instance, Link
    from arcfleet.instance.operations import Vehicle
    from arcfleet.instance.turns import Direction

_Place = TypeVar("_Place")


class RoundTrips:
    """Costs of driving to a street and back for one vehicle type.

    Parameters
    ----------
    instance
        The instance.
    vehicle
        Vehicle type that drives.
    ways
        Shortest ways of the instance, which vehicle types share.

    Attributes
    ----------
    facility_home
        Cost of driving from each facility to the end of the route; None where there is no
        way.
    """

    def __init__(
        self, instance: Instance, vehicle: Vehicle, ways: _WaysByTurns | _WaysByNodes
    ) -> None:
        self._instance = instance
        self._ways = ways
        self.vehicle = vehicle
        self._forbidden = forbidden = frozenset(vehicle.forbidden_links)
        start, end = vehicle.depots
        # By place: where services begin and where they end. None where there is no way.
        self._out: Mapping[Any, int] = ways.out(start, forbidden)
        home: Any = ways.back({end: 0}, forbidden)
        self._home: Mapping[Any, int] = home
        self.facility_home = [
            0 if x.node == end else ways.on_from(x.node, home, forbidden)
            for x in instance.facilities
        ]
        homes = zip(instance.facilities, self.facility_home, strict=True)
        targets = {x.node: x.cost + cost for x, cost in homes if cost is not None}
        self._over_facility: Mapping[Any, int] = ways.back(targets, forbidden)

    def may_serve(self, link: int) -> bool:
        """Return whether the link is not forbidden to the vehicle type."""
        return link not in self._forbidden

    def least_cost(self, link: int, over_facility: bool) -> int | None:
        """Return the cost of a route that serves one link; None where there is none.

        The fixed cost is left out, as the longest route does.
        """
        if link in self._forbidden:
            return None
        back = self._over_facility if over_facility else self._home
        street = self._instance.links[link]
        least = None
        for reverse in (False,) if street.one_way else (False, True):
            before, after = self._ways.places(link, street, reverse)
            out, home = self._out.get(before), back.get(after)
            if out is not None and home is not None:
                cost = out + (street.step_cost(reverse, serves=True) or 0) + home
                least = cost if least is None else min(least, cost)
        return least

    def serves(self, link: int, emptied: bool) -> bool:
        """Return whether a route may serve this link alone, emptied afterwards or not."""
        if self._instance.links[link].demand > self.vehicle.capacity:
            return False
        cost = self.least_cost(link, emptied)
        if cost is None or (emptied and self.least_cost(link, over_facility=False) is None):
            return False
        longest = self.vehicle.max_route_cost
        return longest is None or cost <= longest


def round_trips(instance: Instance) -> list[RoundTrips]:
    """Return the costs of driving to a street and back for every vehicle type."""
    ways = _WaysByTurns(instance) if instance.has_turn_rules else _WaysByNodes(instance)
    return [RoundTrips(instance, vehicle, ways) for vehicle in instance.fleet]


class _WaysByNodes:
    """Shortest paths over nodes."""

    def __init__(self, instance: Instance) -> None:
        # Links that leave a node and that arrive there: cost, node at the other end, link.
        self._leaving: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        self._arriving: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for index, link in enumerate(instance.links):
            tail, head = link.tail, link.head
            self._leaving[tail].append((link.cost, head, index))
            self._arriving[head].append((link.cost, tail, index))
            if not link.one_way:
                cost = link.reverse_cost or 0
                self._leaving[head].append((cost, tail, index))
                self._arriving[tail].append((cost, head, index))

    def places(self, link: int, street: Link, reverse: bool) -> tuple[int, int]:
        """Return where a service begins and where it ends."""
        return (street.head, street.tail) if reverse else (street.tail, street.head)

    def out(self, node: int, forbidden: frozenset[int]) -> dict[int, int]:
        """Return the cost of driving from a node to every place."""
        return _shortest_by_nodes({node: 0}, self._leaving, forbidden)

    def back(self, targets: Mapping[int, int], forbidden: frozenset[int]) -> dict[int, int]:
        """Return the cost of driving from every place to a node with a cost of its own."""
        return _shortest_by_nodes(targets, self._arriving, forbidden)

    def on_from(
        self, node: int, home: Mapping[int, int], forbidden: frozenset[int]
    ) -> int | None:
        """Return the cost of driving on from a facility."""
        return home.get(node)


def _shortest_by_nodes(
    starts: Mapping[int, int],
    steps: Mapping[int, list[tuple[int, int, int]]],
    forbidden: frozenset[int],
) -> dict[int, int]:
    """Return the least costs as `shortest_ways` does, several times faster."""
    costs = dict(starts)
    heap = [(cost, node) for node, cost in starts.items()]
    heapq.heapify(heap)
    while heap:
        cost, node = heapq.heappop(heap)
        if cost > costs[node]:
            continue
        for more, other, link in steps.get(node, ()):
            onward = cost + more
            known = costs.get(other)
            if (known is None or onward < known) and link not in forbidden:
                costs[other] = onward
                heapq.heappush(heap, (onward, other))
    return costs


class _Directions:
    """Directed links with their ends and costs."""

    def __init__(self, instance: Instance) -> None:
        self.ends: dict[Direction, tuple[int, int]] = {}
        self.costs: dict[Direction, int] = {}
        self.leaving: dict[int, list[Direction]] = defaultdict(list)
        self.arriving: dict[int, list[Direction]] = defaultdict(list)
        for index, link in enumerate(instance.links):
            for reverse in (False,) if link.one_way else (False, True):
                along = index, reverse
                self.ends[along] = link.ends(reverse)
                self.costs[along] = link.step_cost(reverse, serves=False) or 0
                self.leaving[self.ends[along][0]].append(along)
                self.arriving[self.ends[along][1]].append(along)


class _WaysByTurns(_Directions):
    """Shortest paths over directed links, since a turn depends on the link before it.

    A vehicle that visits a facility takes no turn there, so that facilities may open ways
    that the turn rules close. These count here at the cost of a visit. On the way out one
    needs a service before it, whose cost is left out: the costs are lower bounds.
    """

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance)
        turns = TurnCosts(instance)
        visits = {facility.node: facility.cost for facility in instance.facilities}
        self._has_visits = bool(visits)
        self._required = {along for along in self.ends if instance.links[along[0]].required}
        # Links after each and before each, with the costs of the turns; with visits, also
        # those that a visit leads to.
        self._turning = {along: turns.onward(along) for along in self.ends}
        self._after = dict(self._turning)
        for node, cost in visits.items():
            visiting = [(onto, cost) for onto in self.leaving[node]]
            for along in self.arriving[node]:
                self._after[along] = [*self._turning[along], *visiting]
        self._before: dict[Direction, list[tuple[Direction, int]]] = defaultdict(list)
        for along, following in self._after.items():
            for onto, turn in following:
                self._before[onto].append((along, turn))

    def places(self, link: int, street: Link, reverse: bool) -> tuple[Direction, Direction]:
        """Return where a service begins and where it ends: the link itself."""
        return (link, reverse), (link, reverse)

    def out(self, node: int, forbidden: frozenset[int]) -> dict[Direction, int]:
        # A place here is the beginning of a link, after the turn onto it.
        starts = dict.fromkeys(self.leaving[node], 0)
        costs = self._search(starts, self._after, forbidden)
        if not self._has_visits:
            return costs
        # A visit needs a service before it: of a street that is reached without one.
        direct = self._search(starts, self._turning, forbidden)
        if len(direct) == len(costs):
            return costs
        served = {along: 0 for along in direct if along in self._required}
        opened = {*direct, *self._search(served, self._after, forbidden)}
        return {along: cost for along, cost in costs.items() if along in opened}

    def back(
        self, targets: Mapping[int, int], forbidden: frozenset[int]
    ) -> dict[Direction, int]:
        # A place here is the end of a link, before the turn from it.
        starts = {
            along: cost for node, cost in targets.items() for along in self.arriving[node]
        }
        return self._search(starts, self._before, forbidden)

    def on_from(
        self, node: int, home: Mapping[Direction, int], forbidden: frozenset[int]
    ) -> int | None:
        # By the best of the links that leave there.
        costs = [
            self.costs[along] + home[along]
            for along in self.leaving[node]
            if along in home and along[0] not in forbidden
        ]
        return min(costs, default=None)

    def _search(
        self,
        starts: Mapping[Direction, int],
        steps: Mapping[Direction, list[tuple[Direction, int]]],
        forbidden: frozenset[int],
    ) -> dict[Direction, int]:
        def onward(along: Direction) -> Iterable[tuple[Direction, int]]:
            if along[0] in forbidden:
                return ()
            cost = self.costs[along]
            return [(other, cost + turn) for other, turn in steps.get(along, ())]

        return _shortest(starts, onward)


def _shortest(
    starts: Mapping[_Place, int], onward: Callable[[_Place], Iterable[tuple[_Place, int]]]
) -> dict[_Place, int]:
    """Return the least cost of reaching every place from places with costs of their own."""
    costs, _ = shortest_ways(starts, lambda place: ((*to, None) for to in onward(place)))
    return costs
