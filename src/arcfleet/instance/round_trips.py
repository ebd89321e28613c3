"""The way to one street and back, as a vehicle type drives it: the shortest of all routes.

Plain searches, for `diagnose`: a few per vehicle type, over nodes or, with turn rules, over
directed links.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeVar

from arcfleet.instance.shortest_ways import shortest_ways
from arcfleet.instance.turns import TurnCosts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from arcfleet.instance.instance import Instance
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
    out
        Cost of driving from the start to where a service begins, by directed link; none
        where there is no way.
    home
        Cost of driving from where a service ends to the end of the route.
    over_facility
        The same by way of the best facility, its visit included.
    facility_home
        Cost of driving from each facility to the end of the route; None where there is no
        way.
    """

    def __init__(
        self, instance: Instance, vehicle: Vehicle, ways: _WaysByTurns | _WaysByNodes
    ) -> None:
        self._instance = instance
        self.vehicle = vehicle
        self._forbidden = frozenset(vehicle.forbidden_links)
        start, end = vehicle.depots
        self.out = ways.out(start, self._forbidden)
        self.home = ways.back({end: 0}, self._forbidden)
        self.facility_home = [
            0 if facility.node == end else self._from_any(ways.leaving[facility.node])
            for facility in instance.facilities
        ]
        self.over_facility = ways.back(
            {
                facility.node: facility.cost + home
                for facility, home in zip(
                    instance.facilities, self.facility_home, strict=True
                )
                if home is not None
            },
            self._forbidden,
        )

    def _from_any(self, directions: Iterable[Direction]) -> int | None:
        """Return the cost of the best way home that begins with one of some links."""
        costs = [
            (self._instance.links[along[0]].step_cost(along[1], serves=False) or 0)
            + self.home[along]
            for along in directions
            if along in self.home and along[0] not in self._forbidden
        ]
        return min(costs, default=None)

    def may_serve(self, link: int) -> bool:
        """Return whether the link is not forbidden to the vehicle type."""
        return link not in self._forbidden

    def least_cost(self, link: int, over_facility: bool) -> int | None:
        """Return the cost of a route that serves one link; None where there is none.

        The fixed cost is left out, as the longest route does.
        """
        if not self.may_serve(link):
            return None
        back = self.over_facility if over_facility else self.home
        street = self._instance.links[link]
        costs = [
            self.out[along] + (street.step_cost(reverse, serves=True) or 0) + back[along]
            for reverse in ((False,) if street.one_way else (False, True))
            if (along := (link, reverse)) in self.out and along in back
        ]
        return min(costs, default=None)


def round_trips(instance: Instance) -> list[RoundTrips]:
    """Return the costs of driving to a street and back for every vehicle type."""
    ways = _WaysByTurns(instance) if instance.has_turn_rules else _WaysByNodes(instance)
    return [RoundTrips(instance, vehicle, ways) for vehicle in instance.fleet]


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


class _WaysByNodes(_Directions):
    """Shortest paths over nodes."""

    def out(self, node: int, forbidden: frozenset[int]) -> dict[Direction, int]:
        def onward(here: int) -> Iterable[tuple[int, int]]:
            return [
                (self.ends[along][1], self.costs[along])
                for along in self.leaving[here]
                if along[0] not in forbidden
            ]

        reached = _shortest({node: 0}, onward)
        return {
            along: reached[start]
            for along, (start, _) in self.ends.items()
            if start in reached
        }

    def back(
        self, targets: Mapping[int, int], forbidden: frozenset[int]
    ) -> dict[Direction, int]:
        def before(here: int) -> Iterable[tuple[int, int]]:
            return [
                (self.ends[along][0], self.costs[along])
                for along in self.arriving[here]
                if along[0] not in forbidden
            ]

        reached = _shortest(targets, before)
        return {
            along: reached[end] for along, (_, end) in self.ends.items() if end in reached
        }


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
