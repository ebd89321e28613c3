"""The independent checker: verifies a plan from the instance alone and names every fault.

It shares no code with the solvers, on purpose: its own plain shortest paths, no arrays, no
compiled core. A plan that a solver got wrong must not be confirmed by the same mistake.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeGuard

from arcfleet.instance.turns import TurnCosts
from arcfleet.solution.checker_driving import Driving, leg_nodes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from arcfleet.instance.instance import Instance, Link
    from arcfleet.instance.operations import Facility, Vehicle
    from arcfleet.instance.turns import Direction
    from arcfleet.solution.checker_driving import Leg
    from arcfleet.solution.solution import FacilityVisit, Route, Service, Solution, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Findings of the checker.

    Parameters
    ----------
    faults
        One sentence per fault, in the order of the routes; empty for a valid plan. Routes
        have their numbers, links are counted from 0.
    cost, deadhead, service_cost, visit_cost
        Recomputed costs, with shortest deadheads; None where a fault leaves them
        undefined.
    """

    faults: tuple[str, ...]
    cost: int | None
    deadhead: int | None
    service_cost: int | None
    visit_cost: int | None = 0

    @property
    def ok(self) -> bool:
        """Whether the plan is valid and all its statements are true."""
        return not self.faults


def check(instance: Instance, solution: Solution) -> Report:
    """Verify a plan against its instance.

    Deadheads are costed as shortest paths by the turn rules, along links that the vehicle
    may drive, so a stated path that takes a detour is a fault. Penalties of turns count as
    deadhead. Prices on the shape of a plan (balance, compactness, change) are no faults.

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
        self.fleet = instance.fleet
        self.forbidden = {x.name: frozenset(x.forbidden_links) for x in self.fleet}
        self.faults: list[str] = []
        self.turns = TurnCosts(instance)

    def verify(self, solution: Solution) -> Report:
        legs_of_routes = [self._legs(route) for route in solution.routes]
        leg_costs = self._leg_costs(solution.routes, legs_of_routes)

        served_by = self._served_by(solution)
        self._check_each_served_once(served_by)
        self._check_fleet(solution.routes)
        self._check_numbers(solution)
        self._check_pins(served_by)
        self._check_locks(solution)
        service_costs: list[int | None] = []
        deadheads: list[int | None] = []
        visit_costs: list[int | None] = []
        fixed_costs: list[int | None] = []
        for number, route, legs in zip(
            solution.numbers, solution.routes, legs_of_routes, strict=True
        ):
            where = f"route {number}"
            vehicle = self._vehicle(route)
            if vehicle is None:
                self.faults.append(
                    f"{where}: is driven by vehicle type {route.vehicle!r}, which does not "
                    f"exist (there are {len(self.fleet)}, counted from 0)"
                )
            service_costs.append(self._check_services(route, vehicle, where))
            visit_costs.append(self._check_visits(route, where))
            deadheads.append(self._check_legs(legs, leg_costs, vehicle, where))
            self._check_load(route, vehicle, where)
            fixed_costs.append(_fixed_cost(route, vehicle))
            driving = _sum([service_costs[-1], deadheads[-1], visit_costs[-1]])
            if vehicle is not None and driving is not None:
                self._check_longest(driving, vehicle, where)
            cost = _sum([driving, fixed_costs[-1]])
            self._check_stated(f"{where}: cost", route.cost, cost)
            if route.path:
                self._check_path(route, vehicle, where)

        service_total = _sum(service_costs)
        deadhead_total = _sum(deadheads)
        visit_total = _sum(visit_costs)
        total = _sum([service_total, deadhead_total, visit_total, *fixed_costs])
        self._check_stated("total cost", solution.cost, total)
        self._check_stated("total deadhead", solution.deadhead, deadhead_total)
        self._check_stated("total service cost", solution.service_cost, service_total)
        self._check_stated("total visit cost", solution.visit_cost, visit_total)
        self._check_travel(solution)
        return Report(
            faults=tuple(self.faults),
            cost=total,
            deadhead=deadhead_total,
            service_cost=service_total,
            visit_cost=visit_total,
        )

    def _served_by(self, solution: Solution) -> dict[int, list[object]]:
        """Return the numbers of the routes that serve each link."""
        served_by: dict[int, list[object]] = defaultdict(list)
        for number, route in zip(solution.numbers, solution.routes, strict=True):
            for service in route.services:
                if self._link(service) is not None:
                    served_by[service.link].append(number)
        return served_by

    def _check_each_served_once(self, served_by: Mapping[int, Sequence[object]]) -> None:
        for index in self.instance.required:
            if index not in served_by:
                self.faults.append(f"{self.instance.describe_link(index)} is never served")
        for index, numbers in sorted(served_by.items()):
            if len(numbers) > 1:
                self.faults.append(
                    f"{self.instance.describe_link(index)} is served {len(numbers)} times, "
                    f"on routes {', '.join(map(str, numbers))}"
                )

    def _check_fleet(self, routes: Sequence[Route]) -> None:
        """Check the number of routes of each vehicle type."""
        for vehicle in self.fleet:
            if vehicle.count is None:
                continue
            if self.instance.vehicles:
                driven = sum(self._vehicle(route) is vehicle for route in routes)
                of, limit = f" of vehicle {vehicle.name!r}", "its count"
            else:
                driven, of, limit = len(routes), "", "fleet limit"
            if self.instance.exact_fleet and driven != vehicle.count:
                self.faults.append(
                    f"expected exactly {vehicle.count} routes{of} (exact fleet), "
                    f"got {driven}"
                )
            elif driven > vehicle.count:
                self.faults.append(
                    f"expected at most {vehicle.count} routes{of} ({limit}), got {driven}"
                )

    def _check_numbers(self, solution: Solution) -> None:
        """Check that every route has a number of its own."""
        positions: dict[int, int] = {}
        for position, number in enumerate(solution.numbers, start=1):
            if not _is_integer(number) or number < 1:
                self.faults.append(
                    "expected a whole number of at least 1 as the number of every route, "
                    f"got {number!r} as that of route {position} of the plan"
                )
            elif number in positions:
                self.faults.append(
                    f"expected every route number once, got {number} as that of routes "
                    f"{positions[number]} and {position} of the plan"
                )
            else:
                positions[number] = position

    def _check_pins(self, served_by: Mapping[int, Sequence[object]]) -> None:
        for pin in self.instance.pins:
            numbers = served_by.get(pin.link)
            if numbers is not None and pin.route not in numbers:
                self.faults.append(
                    f"{self.instance.describe_link(pin.link)} is pinned to route "
                    f"{pin.route}, but served on route {', '.join(map(str, numbers))}"
                )

    def _check_locks(self, solution: Solution) -> None:
        by_number: dict[int, Route] = {}
        for number, route in zip(solution.numbers, solution.routes, strict=True):
            if _is_integer(number):
                by_number.setdefault(number, route)
        for lock in self.instance.locks:
            where = f"route {lock.route}"
            if lock.route not in by_number:
                self.faults.append(f"{where} is locked, but not in the plan")
                continue
            route = by_number[lock.route]
            services = [(service.link, bool(service.reverse)) for service in route.services]
            difference = _first_difference(
                services, list(lock.services), "in the plan", "as locked"
            )
            if difference is not None:
                self.faults.append(
                    f"{where}: is locked, but its services changed: {difference}"
                )
            if self._vehicle(route) is not self.fleet[lock.vehicle]:
                self.faults.append(
                    f"{where}: is locked with vehicle type {lock.vehicle}, "
                    f"but driven by type {route.vehicle!r}"
                )

    def _check_services(
        self, route: Route, vehicle: Vehicle | None, where: str
    ) -> int | None:
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
            if vehicle is not None and service.link in self.forbidden[vehicle.name]:
                self.faults.append(
                    f"{where}: serves {name}, which is forbidden to vehicle "
                    f"{vehicle.name!r}"
                )
            costs.append(link.step_cost(service.reverse, serves=True))
        return _sum(costs)

    def _check_visits(self, route: Route, where: str) -> int | None:
        """Check the facilities and their places in the route; return what visits cost."""
        costs: list[int | None] = []
        before = 0  # services before the visit before
        last = len(route.services)
        for position, visit in enumerate(route.visits, start=1):
            place = f"{where}: facility visit {position}"
            facility = self._facility(visit)
            costs.append(None if facility is None else facility.cost)
            if facility is None:
                self.faults.append(
                    f"{place} is at facility {visit.facility!r}, which does not exist "
                    f"(there are {len(self.instance.facilities)}, counted from 0)"
                )
            if not _is_integer(visit.services) or not 0 <= visit.services <= last:
                self.faults.append(
                    f"{place} is after {visit.services!r} services, "
                    f"but the route has {last}"
                )
                continue
            if visit.services < before:
                self.faults.append(
                    f"{place} is after {visit.services} services, but the visit before it "
                    f"is after {before}"
                )
            elif visit.services == before:
                since = "the start" if position == 1 else "the visit before it"
                self.faults.append(f"{place} is needless: nothing is served since {since}")
            before = visit.services
        ends_empty = bool(route.visits) and route.visits[-1].services == last
        if (
            self.instance.facilities
            and self.instance.empty_at_end
            and route.services
            and not ends_empty
        ):
            self.faults.append(
                f"{where}: expected a facility visit after the last service, "
                f"got none after service {last}"
            )
        return _sum(costs)

    def _check_legs(
        self,
        legs: Sequence[Leg | None],
        leg_costs: Mapping[tuple[int, Leg], int],
        vehicle: Vehicle | None,
        where: str,
    ) -> int | None:
        """Check that every deadhead can be driven; return what they cost together."""
        if vehicle is None:
            return None
        own = self.fleet.index(vehicle)
        for leg in legs:
            if leg is not None and (own, leg) not in leg_costs:
                start, end = leg_nodes(self.instance.links, leg)
                rules = " by the turn rules" if self.instance.has_turn_rules else ""
                whose = f" for vehicle {vehicle.name!r}" if vehicle.forbidden_links else ""
                self.faults.append(
                    f"{where}: there is no way from node {start} to {end}{rules}{whose}"
                )
        return _sum([None if leg is None else leg_costs.get((own, leg)) for leg in legs])

    def _check_load(self, route: Route, vehicle: Vehicle | None, where: str) -> None:
        """Check the load of each trip and the stated load of all of them."""
        links = [self._link(service) for service in route.services]
        known = [link.demand for link in links if link is not None]
        trips = self._trips(route)
        for position, services in enumerate(trips, start=1):
            demands = (self._link(service) for service in services)
            carried = sum(link.demand for link in demands if link is not None)
            if vehicle is not None and carried > vehicle.capacity:
                whose = f" of vehicle {vehicle.name!r}" if self.instance.vehicles else ""
                on = f" on trip {position}" if len(trips) > 1 else ""
                self.faults.append(
                    f"{where}: expected a load of at most the capacity{whose} "
                    f"({vehicle.capacity}){on}, got {carried}"
                )
        load = sum(known) if len(known) == len(links) else None
        self._check_stated(f"{where}: load", route.load, load)

    def _check_longest(self, driving: int, vehicle: Vehicle, where: str) -> None:
        longest = vehicle.max_route_cost
        if longest is not None and driving > longest:
            fixed = " without the fixed cost" if vehicle.fixed_cost else ""
            self.faults.append(
                f"{where}: expected a cost{fixed} of at most {longest} (longest route), "
                f"got {driving}"
            )

    def _check_path(self, route: Route, vehicle: Vehicle | None, where: str) -> None:
        """Drive along the path, with the facility visits at their steps."""
        at: int | None = None if vehicle is None else vehicle.start
        depot = at
        along: Direction | None = None  # the link just driven, in its direction
        costs: list[int | None] = [_fixed_cost(route, vehicle)]
        visits_at = self._visits_by_step(route, where)
        served = 0
        for position, step in enumerate(route.path, start=1):
            for place, visit in visits_at.get(position - 1, ()):
                costs.append(self._check_visit_on_path(visit, at, served, place))
                along = None  # no turn is taken at a facility
            served += bool(step.serves)
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
            # A forbidden link that is served is named among the services.
            barred = vehicle is not None and step.link in self.forbidden[vehicle.name]
            if vehicle is not None and barred and not step.serves:
                self.faults.append(
                    f"{place} drives along {name}, which is forbidden to vehicle "
                    f"{vehicle.name!r}"
                )
            at = end
            along = step.link, bool(step.reverse)
            costs.append(link.step_cost(step.reverse, step.serves))
        for place, visit in visits_at.get(len(route.path), ()):
            costs.append(self._check_visit_on_path(visit, at, served, place))
        if vehicle is not None and at is not None and at != vehicle.end:
            self.faults.append(
                f"{where}: the path ends at node {at}, not at depot {vehicle.end}"
            )
        self._check_path_services(route, where)
        cost = _sum(costs)
        if cost is not None and cost != route.cost:
            self.faults.append(
                f"{where}: the path costs {cost}, but the stated cost is {route.cost}"
            )

    def _visits_by_step(
        self, route: Route, where: str
    ) -> dict[int, list[tuple[str, FacilityVisit]]]:
        """Return the facility visits by the number of steps before them, with names."""
        found: dict[int, list[tuple[str, FacilityVisit]]] = defaultdict(list)
        for position, visit in enumerate(route.visits, start=1):
            place = f"{where}: facility visit {position}"
            steps: object = visit.steps
            if _is_integer(steps) and 0 <= steps <= len(route.path):
                found[steps].append((place, visit))
            else:
                self.faults.append(
                    f"{place} is after {steps!r} steps of the path, "
                    f"which has {len(route.path)}"
                )
        return found

    def _check_visit_on_path(
        self, visit: FacilityVisit, at: int | None, served: int, place: str
    ) -> int | None:
        """Check that a path passes the facility where a visit says so; return its cost."""
        if visit.services != served:
            self.faults.append(
                f"{place} is after {served} services on the path, "
                f"{visit.services!r} as stated"
            )
        facility = self._facility(visit)
        if facility is None:
            return None
        if at is not None and at != facility.node:
            self.faults.append(
                f"{place} is at facility {visit.facility} at node {facility.node}, "
                f"but the vehicle is at node {at} after step {visit.steps} of the path"
            )
        return facility.cost

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
        difference = _first_difference(on_path, stated, "on the path", "as stated")
        if difference is not None:
            self.faults.append(
                f"{where}: the path does not serve the route's services in order: "
                f"{difference}"
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
        for number, route in zip(solution.numbers, solution.routes, strict=True):
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
            # Where costs are times, turns and facility visits take time, too.
            pauses = self._turn_and_visit_costs(route, steps) if by_time else ()
            for name in ("seconds", "deadhead_seconds"):
                found[name].extend(pauses)
            for name in names:
                totals[name].append(_sum(found[name]))
                stated = None if route.travel is None else getattr(route.travel, name)
                self._check_amount(f"route {number}: {name}", stated, totals[name][-1])
        for name in names:
            stated = None if solution.travel is None else getattr(solution.travel, name)
            self._check_amount(f"total {name}", stated, _sum(totals[name]))

    def _turn_and_visit_costs(
        self, route: Route, steps: Sequence[Step]
    ) -> list[int | None]:
        """Return the cost of every turn of a path, and of every facility visit."""
        facilities = [self._facility(visit) for visit in route.visits]
        costs = [None if facility is None else facility.cost for facility in facilities]
        breaks = [visit.steps for visit in route.visits]
        for position, (before, after) in enumerate(pairwise(steps), start=1):
            if position not in breaks:
                along, onto = ((x.link, bool(x.reverse)) for x in (before, after))
                costs.append(self.turns.cost(along, onto))
        return costs

    def _check_amount(self, what: str, stated: int | None, recomputed: int | None) -> None:
        if stated is not None and recomputed is None:
            self.faults.append(
                f"{what} is stated as {stated}, but its links or its path do not say it"
            )
        elif stated is not None:
            self._check_stated(what, stated, recomputed)

    def _vehicle(self, route: Route) -> Vehicle | None:
        index: object = route.vehicle
        if not _is_integer(index) or not 0 <= index < len(self.fleet):
            return None
        return self.fleet[index]

    def _facility(self, visit: FacilityVisit) -> Facility | None:
        index: object = visit.facility
        if not _is_integer(index) or not 0 <= index < len(self.instance.facilities):
            return None
        return self.instance.facilities[index]

    def _link(self, place: Service | Step) -> Link | None:
        index: object = place.link
        if not _is_integer(index) or not 0 <= index < len(self.instance.links):
            return None
        return self.instance.links[index]

    def _unknown(self, place: Service | Step) -> str:
        return (
            f"link {place.link!r}, which does not exist "
            f"(there are {len(self.instance.links)}, counted from 0)"
        )

    def _trips(self, route: Route) -> list[tuple[Service, ...]]:
        """Cut the services where facilities are visited; a needless visit cuts nothing."""
        last = len(route.services)
        cuts = {visit.services for visit in route.visits if _is_integer(visit.services)}
        inner = sorted(cut for cut in cuts if 0 < cut < last)
        return [route.services[a:b] for a, b in pairwise([0, *inner, last])]

    def _legs(self, route: Route) -> list[Leg | None]:
        """List every deadhead of a route; None where a place next to it does not exist."""
        vehicle = self._vehicle(route)
        if not route.services or vehicle is None or vehicle.end is None:
            return []
        stops: list[Direction | int | None] = [vehicle.start]
        visits = iter(route.visits)
        visit = next(visits, None)
        for position, service in enumerate(route.services, start=1):
            known = self._link(service) is not None
            stops.append((service.link, bool(service.reverse)) if known else None)
            while visit is not None and visit.services == position:
                facility = self._facility(visit)
                stops.append(None if facility is None else facility.node)
                visit = next(visits, None)
        if visit is not None:
            stops.append(None)  # a visit that is out of order
        stops.append(vehicle.end)
        return [
            None if start is None or end is None else (start, end)
            for start, end in pairwise(stops)
        ]

    def _leg_costs(
        self, routes: Sequence[Route], legs_of_routes: Sequence[Sequence[Leg | None]]
    ) -> dict[tuple[int, Leg], int]:
        """Cost of every leg that can be driven, by vehicle type."""
        # Types that may drive the same links share their searches.
        wanted: dict[frozenset[int], set[Leg]] = defaultdict(set)
        types: dict[frozenset[int], set[int]] = defaultdict(set)
        for route, legs in zip(routes, legs_of_routes, strict=True):
            vehicle = self._vehicle(route)
            if vehicle is not None:
                forbidden = self.forbidden[vehicle.name]
                wanted[forbidden].update(leg for leg in legs if leg is not None)
                types[forbidden].add(self.fleet.index(vehicle))
        return {
            (own, leg): cost
            for forbidden, legs in wanted.items()
            for leg, cost in Driving(self.instance, self.turns, forbidden)
            .leg_costs(legs)
            .items()
            for own in types[forbidden]
        }


def _fixed_cost(route: Route, vehicle: Vehicle | None) -> int | None:
    # A route that serves nothing is a fault, but no vehicle drives it.
    if not route.services:
        return 0
    return None if vehicle is None else vehicle.fixed_cost


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _first_difference(
    found: Sequence[Direction], wanted: Sequence[Direction], here: str, there: str
) -> str | None:
    """Return where two lists of directed services differ first; None where nowhere."""
    if list(found) == list(wanted):
        return None
    pairs = zip(found, wanted, strict=False)
    first = next((i for i, (left, right) in enumerate(pairs) if left != right), None)
    if first is None:
        stated = there.removeprefix("as ")
        return f"{len(found)} services {here}, {len(wanted)} {stated}"
    return (
        f"service {first + 1} is {_direction(*found[first])} {here}, "
        f"{_direction(*wanted[first])} {there}"
    )


def _direction(link: object, reverse: bool) -> str:
    return f"link {link} in reverse" if reverse else f"link {link} forward"


def _sum(parts: Sequence[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None
