"""The way to one street and back, as a vehicle type drives it: the shortest of all routes.

Plain searches, for `diagnose`: a few per vehicle type, over nodes or, with turn rules, over
directed links.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
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

    def __init__(self, instance: Instance, vehicle: Vehicle) -> None:
        self._instance = instance
        self.vehicle = vehicle
        self._forbidden = frozenset(vehicle.forbidden_links)
        self._directions = [
            (index, reverse)
            for index, link in enumerate(instance.links)
            for reverse in ((False,) if link.one_way else (False, True))
        ]
        ways = _WaysByTurns if instance.has_turn_rules else _WaysByNodes
        found = ways(instance, self._directions, self._forbidden)
        leaving: dict[int, list[Direction]] = defaultdict(list)
        for along in self._directions:
            leaving[instance.links[along[0]].ends(along[1])[0]].append(along)
        end = vehicle.start if vehicle.end is None else vehicle.end
        self.out = found.out(vehicle.start)
        self.home = found.back({end: 0})
        self.facility_home = [
            0 if facility.node == end else self._from_any(leaving[facility.node])
            for facility in instance.facilities
        ]
        self.over_facility = found.back(
            {
                facility.node: facility.cost + home
                for facility, home in zip(
                    instance.facilities, self.facility_home, strict=True
                )
                if home is not None
            }
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


class _WaysByNodes:
    """Shortest paths over nodes."""

    def __init__(
        self, instance: Instance, directions: list[Direction], forbidden: frozenset[int]
    ) -> None:
        links = instance.links
        self._ends = {(i, reverse): links[i].ends(reverse) for i, reverse in directions}
        self._onward: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._backward: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for (index, reverse), (start, end) in self._ends.items():
            if index not in forbidden:
                cost = links[index].step_cost(reverse, serves=False) or 0
                self._onward[start].append((end, cost))
                self._backward[end].append((start, cost))

    def out(self, node: int) -> dict[Direction, int]:
        reached = _shortest({node: 0}, self._onward.__getitem__)
        return {
            along: reached[start]
            for along, (start, _) in self._ends.items()
            if start in reached
        }

    def back(self, targets: Mapping[int, int]) -> dict[Direction, int]:
        reached = _shortest(targets, self._backward.__getitem__)
        return {
            along: reached[end] for along, (_, end) in self._ends.items() if end in reached
        }


class _WaysByTurns:
    """Shortest paths over directed links, since a turn depends on the link before it.

    A vehicle that visits a facility takes no turn there, so that facilities may open ways
    that the turn rules close. These count here at the cost of a visit. On the way out one
    needs a service before it, whose cost is left out: the costs are lower bounds.
    """

    def __init__(
        self, instance: Instance, directions: list[Direction], forbidden: frozenset[int]
    ) -> None:
        self._instance = instance
        self._turns = TurnCosts(instance)
        self._forbidden = forbidden
        self._visits = {facility.node: facility.cost for facility in instance.facilities}
        self._costs = {
            (index, reverse): instance.links[index].step_cost(reverse, serves=False) or 0
            for index, reverse in directions
        }
        self._arriving: dict[int, list[Direction]] = defaultdict(list)
        self._before: dict[Direction, list[tuple[Direction, int]]] = defaultdict(list)
        for along in directions:
            self._arriving[instance.links[along[0]].ends(along[1])[1]].append(along)
            for onto, turn in self._following(along):
                self._before[onto].append((along, turn))

    def _following(self, along: Direction) -> list[tuple[Direction, int]]:
        """Return the links after one, with the costs of the turns or facility visits."""
        found = self._turns.onward(along)
        node = self._instance.links[along[0]].ends(along[1])[1]
        if node in self._visits:
            found += [(onto, self._visits[node]) for onto in self._turns.leaving(node)]
        return found

    def out(self, node: int) -> dict[Direction, int]:
        # A place here is the beginning of a link, after the turn onto it.
        def onward(
            along: Direction, visits: bool = True
        ) -> Iterable[tuple[Direction, int]]:
            if along[0] in self._forbidden:
                return ()
            following = self._following(along) if visits else self._turns.onward(along)
            return [(onto, self._costs[along] + turn) for onto, turn in following]

        starts = dict.fromkeys(self._turns.leaving(node), 0)
        if not self._visits:
            return _shortest(starts, onward)
        # A visit needs a service before it: of a street that is reached without one.
        direct = _shortest(starts, partial(onward, visits=False))
        served = {along: 0 for along in direct if self._instance.links[along[0]].required}
        opened = {*direct, *_shortest(served, onward)}
        costs = _shortest(starts, onward)
        return {along: cost for along, cost in costs.items() if along in opened}

    def back(self, targets: Mapping[int, int]) -> dict[Direction, int]:
        # A place here is the end of a link, before the turn from it.
        def before(along: Direction) -> Iterable[tuple[Direction, int]]:
            if along[0] in self._forbidden:
                return ()
            cost = self._costs[along]
            return [(came, cost + turn) for came, turn in self._before[along]]

        starts = {
            along: cost for node, cost in targets.items() for along in self._arriving[node]
        }
        return _shortest(starts, before)


def _shortest(
    starts: Mapping[_Place, int], onward: Callable[[_Place], Iterable[tuple[_Place, int]]]
) -> dict[_Place, int]:
    """Return the least cost of reaching every place from places with costs of their own."""
    costs, _ = shortest_ways(starts, lambda place: ((*to, None) for to in onward(place)))
    return costs
