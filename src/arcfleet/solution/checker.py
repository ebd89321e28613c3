"""The independent checker: verifies a plan from the instance alone and names every fault.

It shares no code with the solvers, on purpose: its own plain shortest paths, no arrays, no
compiled core. A plan that a solver got wrong must not be confirmed by the same mistake.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from arcfleet.instance.turns import TurnCosts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from arcfleet.instance.instance import Instance, Link
    from arcfleet.instance.turns import Direction
    from arcfleet.solution.solution import Route, Service, Solution, Step

#: A deadhead from one service to the next; None is the depot.
_Leg = tuple["Direction | None", "Direction | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Findings of the checker.

    Parameters
    ----------
    faults
        One sentence per fault, in the order of the routes; empty for a valid plan. Routes
        are counted from 1, links from 0.
    cost, deadhead, service_cost
        Recomputed costs, with shortest deadheads; None where a fault leaves them
        undefined.
    """

    faults: tuple[str, ...]
    cost: int | None
    deadhead: int | None
    service_cost: int | None

    @property
    def ok(self) -> bool:
        """Whether the plan is valid and all its statements are true."""
        return not self.faults


def check(instance: Instance, solution: Solution) -> Report:
    """Verify a plan against its instance.

    Deadheads are costed as shortest paths by the turn rules, so a stated path that takes a
    detour is a fault. Penalties of turns count as deadhead.

    Parameters
    ----------
    instance
        Instance that the plan is to solve.
    solution
        Plan to verify; it may be arbitrarily wrong.

    Returns
    -------
    report
        Every fault and the recomputed costs.
    """
    return _Check(instance).verify(solution)


class _Check:
    """The faults of one plan, as they are found."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.faults: list[str] = []
        self.turns = TurnCosts(instance)
        self.neighbours: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for link in instance.links:
            self.neighbours[link.tail].append((link.head, link.cost))
            if link.reverse_cost is not None:
                self.neighbours[link.head].append((link.tail, link.reverse_cost))

    def verify(self, solution: Solution) -> Report:
        legs_of_routes = [self._legs(route.services) for route in solution.routes]
        distances = self._leg_distances(leg for legs in legs_of_routes for leg in legs)

        self._check_each_served_once(solution.routes)
        limit = self.instance.fleet_limit
        if limit is not None and len(solution.routes) > limit:
            self.faults.append(
                f"expected at most {limit} routes (fleet limit), got {len(solution.routes)}"
            )
        service_costs: list[int | None] = []
        deadheads: list[int | None] = []
        for number, route in enumerate(solution.routes, start=1):
            where = f"route {number}"
            service_cost = self._check_services(route, where)
            deadhead = self._check_legs(legs_of_routes[number - 1], distances, where)
            self._check_load(route, where)
            cost = _sum([service_cost, deadhead, self._fixed_cost(route)])
            self._check_stated(f"{where}: cost", route.cost, cost)
            if route.path:
                self._check_path(route, where)
            service_costs.append(service_cost)
            deadheads.append(deadhead)

        service_total = _sum(service_costs)
        deadhead_total = _sum(deadheads)
        fixed = [self._fixed_cost(route) for route in solution.routes]
        total = _sum([service_total, deadhead_total, *fixed])
        self._check_stated("total cost", solution.cost, total)
        self._check_stated("total deadhead", solution.deadhead, deadhead_total)
        self._check_stated("total service cost", solution.service_cost, service_total)
        self._check_travel(solution)
        return Report(
            faults=tuple(self.faults),
            cost=total,
            deadhead=deadhead_total,
            service_cost=service_total,
        )

    def _check_each_served_once(self, routes: Sequence[Route]) -> None:
        served_by: dict[int, list[int]] = defaultdict(list)
        for number, route in enumerate(routes, start=1):
            for service in route.services:
                if self._link(service) is not None:
                    served_by[service.link].append(number)
        for index in self.instance.required:
            if index not in served_by:
                self.faults.append(f"{self.instance.describe_link(index)} is never served")
        for index, numbers in sorted(served_by.items()):
            if len(numbers) > 1:
                self.faults.append(
                    f"{self.instance.describe_link(index)} is served {len(numbers)} times, "
                    f"on routes {', '.join(map(str, numbers))}"
                )

    def _check_services(self, route: Route, where: str) -> int | None:
        """Check the services one by one; return what they cost together."""
        if not route.services:
            self.faults.append(f"{where}: serves nothing")
        costs: list[int | None] = []
        for service in route.services:
            link = self._link(service)
            if link is None:
                self.faults.append(f"{where}: serves {self._unknown(service)}")
                costs.append(None)
                continue
            name = self.instance.describe_link(service.link)
            if not link.required:
                self.faults.append(f"{where}: serves {name}, which is not required")
            if link.one_way and service.reverse:
                self.faults.append(f"{where}: serves one-way {name} in reverse")
            costs.append(link.step_cost(service.reverse, serves=True))
        return _sum(costs)

    def _check_legs(
        self, legs: Sequence[_Leg | None], distances: Mapping[_Leg, int], where: str
    ) -> int | None:
        """Check that every deadhead can be driven; return what they cost together."""
        for leg in legs:
            if leg is not None and leg not in distances:
                start, end = self._nodes(leg)
                rules = " by the turn rules" if self.instance.has_turn_rules else ""
                self.faults.append(
                    f"{where}: there is no way from node {start} to {end}{rules}"
                )
        return _sum([None if leg is None else distances.get(leg) for leg in legs])

    def _check_load(self, route: Route, where: str) -> None:
        links = [self._link(service) for service in route.services]
        known = [link.demand for link in links if link is not None]
        if sum(known) > self.instance.capacity:
            self.faults.append(
                f"{where}: expected a load of at most the capacity "
                f"({self.instance.capacity}), got {sum(known)}"
            )
        load = sum(known) if len(known) == len(links) else None
        self._check_stated(f"{where}: load", route.load, load)

    def _check_path(self, route: Route, where: str) -> None:
        depot = self.instance.depot
        at: int | None = depot
        along: Direction | None = None  # the link just driven, in its direction
        costs: list[int | None] = [self._fixed_cost(route)]
        for position, step in enumerate(route.path, start=1):
            place = f"{where}: step {position} of the path"
            link = self._link(step)
            if link is None:
                self.faults.append(f"{place} drives along {self._unknown(step)}")
                at = None  # Unknown: a gap after this step would be the same fault again.
                along = None
                costs.append(None)
                continue
            name = self.instance.describe_link(step.link)
            start, end = link.ends(step.reverse)
            if at is not None and start != at:
                gap = f"{name} from node {start}, but the vehicle is at node {at}"
                start_rule = f" (the depot is {depot})" if position == 1 else ""
                self.faults.append(f"{place} takes {gap}{start_rule}")
            elif along is not None:
                costs.append(self._check_turn(along, step, start, place))
            if link.one_way and step.reverse:
                self.faults.append(f"{place} drives one-way {name} in reverse")
            at = end
            along = step.link, bool(step.reverse)
            costs.append(link.step_cost(step.reverse, step.serves))
        if at is not None and at != depot:
            self.faults.append(f"{where}: the path ends at node {at}, not at depot {depot}")
        self._check_path_services(route, where)
        cost = _sum(costs)
        if cost is not None and cost != route.cost:
            self.faults.append(
                f"{where}: the path costs {cost}, but the stated cost is {route.cost}"
            )

    def _check_turn(
        self, along: Direction, step: Step, node: int, place: str
    ) -> int | None:
        """Check the turn from the link just driven onto that of a step; return its cost."""
        onto = step.link, bool(step.reverse)
        cost = self.turns.cost(along, onto)
        if cost is None:
            u_turn = " by a U-turn" if along == (onto[0], not onto[1]) else ""
            before, after = (self.instance.describe_link(i) for i in (along[0], onto[0]))
            self.faults.append(
                f"{place} turns at node {node} from {before} onto {after}{u_turn}, "
                "which is forbidden"
            )
        return cost

    def _check_path_services(self, route: Route, where: str) -> None:
        on_path = [(step.link, bool(step.reverse)) for step in route.path if step.serves]
        stated = [(service.link, bool(service.reverse)) for service in route.services]
        if on_path == stated:
            return
        pairs = zip(on_path, stated, strict=False)
        same = next((i for i, (left, right) in enumerate(pairs) if left != right), None)
        if same is None:
            difference = f"{len(on_path)} services on the path, {len(stated)} stated"
        else:
            difference = (
                f"service {same + 1} is {_direction(*on_path[same])} on the path, "
                f"{_direction(*stated[same])} as stated"
            )
        self.faults.append(
            f"{where}: the path does not serve the route's services in order: {difference}"
        )

    def _check_stated(self, what: str, stated: int, recomputed: int | None) -> None:
        if recomputed is not None and stated != recomputed:
            self.faults.append(
                f"{what} is stated as {stated}, recomputed it is {recomputed}"
            )

    def _check_travel(self, solution: Solution) -> None:
        """Check stated lengths and times, of routes and in total, against street paths."""
        stated_travels = (solution.travel, *(route.travel for route in solution.routes))
        if all(travel is None for travel in stated_travels):
            return
        links, by_time = self.instance.links, self.instance.cost_unit == "seconds"
        names = ("metres", "deadhead_metres", "seconds", "deadhead_seconds")
        totals: dict[str, list[int | None]] = {name: [] for name in names}
        for number, route in enumerate(solution.routes, start=1):
            found: dict[str, list[int | None]] = {name: [] for name in names}
            steps = [step for step in route.path if self._link(step) is not None]
            if len(steps) < len(route.path) or not steps:
                found = {name: [None] for name in names}  # nothing to follow
            for step in steps:
                seconds = links[step.link].step_seconds(step.reverse, step.serves)
                for name, amount in (
                    ("metres", links[step.link].metres),
                    ("seconds", seconds),
                ):
                    found[name].append(amount)
                    unserved = None if amount is None else 0 if step.serves else amount
                    found[f"deadhead_{name}"].append(unserved)
            for before, after in pairwise(steps if by_time else ()):
                along, onto = ((x.link, bool(x.reverse)) for x in (before, after))
                for name in ("seconds", "deadhead_seconds"):
                    found[name].append(self.turns.cost(along, onto))
            for name in names:
                totals[name].append(_sum(found[name]))
                stated = None if route.travel is None else getattr(route.travel, name)
                self._check_amount(f"route {number}: {name}", stated, totals[name][-1])
        for name in names:
            stated = None if solution.travel is None else getattr(solution.travel, name)
            self._check_amount(f"total {name}", stated, _sum(totals[name]))

    def _check_amount(self, what: str, stated: int | None, recomputed: int | None) -> None:
        if stated is not None and recomputed is None:
            self.faults.append(
                f"{what} is stated as {stated}, but its links or its path do not say it"
            )
        elif stated is not None:
            self._check_stated(what, stated, recomputed)

    def _fixed_cost(self, route: Route) -> int:
        # A route that serves nothing is a fault, but no vehicle drives it.
        return self.instance.route_cost if route.services else 0

    def _link(self, place: Service | Step) -> Link | None:
        index: object = place.link
        if isinstance(index, bool) or not isinstance(index, int):
            return None
        return self.instance.links[index] if 0 <= index < len(self.instance.links) else None

    def _unknown(self, place: Service | Step) -> str:
        return (
            f"link {place.link!r}, which does not exist "
            f"(there are {len(self.instance.links)}, counted from 0)"
        )

    def _legs(self, services: Sequence[Service]) -> list[_Leg | None]:
        """List every deadhead of a route; None where a link next to it does not exist."""
        if not services:
            return []
        unknown = (-1, False)
        stops: list[Direction | None] = [None]
        for service in services:
            known = self._link(service) is not None
            stops.append((service.link, bool(service.reverse)) if known else unknown)
        stops.append(None)
        return [
            None if unknown in (start, end) else (start, end)
            for start, end in pairwise(stops)
        ]

    def _nodes(self, leg: _Leg) -> tuple[int, int]:
        """Return the nodes where a deadhead starts and ends."""
        links, depot = self.instance.links, self.instance.depot
        before, after = leg
        return (
            depot if before is None else links[before[0]].ends(before[1])[1],
            depot if after is None else links[after[0]].ends(after[1])[0],
        )

    def _leg_distances(self, legs: Iterable[_Leg | None]) -> dict[_Leg, int]:
        """Cost of every leg that can be driven: one search per place where legs start."""
        known = {leg for leg in legs if leg is not None}
        if self.instance.has_turn_rules:
            following: dict[Direction | None, set[Direction | None]] = defaultdict(set)
            for start, end in known:
                following[start].add(end)
            return {
                (start, end): distance
                for start, ends in following.items()
                for end, distance in self._dijkstra_by_turns(start, ends).items()
            }
        targets: dict[int, set[int]] = defaultdict(set)
        for leg in known:
            start_node, end_node = self._nodes(leg)
            targets[start_node].add(end_node)
        by_nodes = {
            (start_node, end_node): distance
            for start_node, ends in targets.items()
            for end_node, distance in self._dijkstra(start_node, ends).items()
        }
        return {
            leg: by_nodes[self._nodes(leg)] for leg in known if self._nodes(leg) in by_nodes
        }

    def _dijkstra(self, source: int, targets: set[int]) -> dict[int, int]:
        missing = set(targets)
        done: dict[int, int] = {}
        best = {source: 0}
        waiting = [(0, source)]
        while waiting and missing:
            distance, node = heapq.heappop(waiting)
            if node in done:
                continue
            done[node] = distance
            missing.discard(node)
            for neighbour, cost in self.neighbours[node]:
                reached = distance + cost
                if reached < best.get(neighbour, reached + 1):
                    best[neighbour] = reached
                    heapq.heappush(waiting, (reached, neighbour))
        return {node: done[node] for node in targets if node in done}

    def _dijkstra_by_turns(
        self, source: Direction | None, targets: set[Direction | None]
    ) -> dict[Direction | None, int]:
        """Search over the links just driven: a turn depends on the one before it."""
        depot = self.instance.depot
        targets_at: dict[int, list[Direction | None]] = defaultdict(list)
        for target in targets:
            targets_at[self._nodes((None, target))[1]].append(target)
        found: dict[Direction | None, int] = {}
        best: dict[Direction, int] = {}
        waiting: list[tuple[int, Direction]] = []

        def reach(distance: int, along: Direction) -> None:
            if distance < best.get(along, distance + 1):
                best[along] = distance
                heapq.heappush(waiting, (distance, along))

        if source is None:
            # No turn is taken where a route leaves the depot.
            found.update(dict.fromkeys(targets_at[depot], 0))
            for onto in self.turns.leaving(depot):
                reach(self._driving_cost(onto), onto)
        else:
            reach(0, source)
        done: set[Direction] = set()
        while waiting:
            distance, along = heapq.heappop(waiting)
            if len(found) == len(targets) and distance >= max(found.values()):
                break
            if along in done:
                continue
            done.add(along)
            node = self._nodes((along, None))[0]
            for target in targets_at.get(node, ()):
                turn = 0 if target is None else self.turns.cost(along, target)
                if turn is not None:
                    known = found.get(target, distance + turn)
                    found[target] = min(known, distance + turn)
            for onto, turn in self.turns.onward(along):
                reach(distance + turn + self._driving_cost(onto), onto)
        return found

    def _driving_cost(self, along: Direction) -> int:
        cost = self.instance.links[along[0]].step_cost(along[1], serves=False)
        assert cost is not None  # only legal directions leave a node
        return cost


def _direction(link: object, reverse: bool) -> str:
    return f"link {link} in reverse" if reverse else f"link {link} forward"


def _sum(parts: Sequence[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None
