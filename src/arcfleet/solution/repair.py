"""Yesterday's plan made fit for today's instance."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from arcfleet.solution.build import Builder, Tour
from arcfleet.solution.checker import check
from arcfleet.solution.files import as_solution
from arcfleet.solution.match import carry_over
from arcfleet.solution.solution import Service, Solution
from arcfleet.solution.ways import NO_WAY

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from arcfleet.instance.instance import Instance
    from arcfleet.solution.ways import Place

#: Places that are tried for a street, cheapest first.
_MOST_TRIED = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A plan that fits an instance again, and what was changed.

    Parameters
    ----------
    solution
        The plan; without the streets of `unplaced`.
    dropped
        Number of streets of the earlier plan that are not required.
    inserted
        Links that the earlier plan did not serve.
    moved
        Links that were taken out of their route and inserted again, without those of
        `pinned`.
    pinned
        Links that were moved to the route that they are pinned to.
    turned
        Links that are served in the other direction.
    unplaced
        Links that no route has slack for, and no vehicle is left for.
    fault
        First fault of the plan, or a locked route that no longer fits, which the plan then
        is without; empty if there is none.
    recomputed
        Whether totals, paths or visits were computed again.
    """

    solution: Solution
    dropped: int = 0
    inserted: tuple[int, ...] = ()
    moved: tuple[int, ...] = ()
    pinned: tuple[int, ...] = ()
    turned: tuple[int, ...] = ()
    unplaced: tuple[int, ...] = ()
    fault: str = ""
    recomputed: bool = False

    @property
    def ok(self) -> bool:
        """Whether the plan is one of the instance, without faults."""
        return not self.unplaced and not self.fault

    @property
    def notes(self) -> tuple[str, ...]:
        """A line on what was changed; none where nothing was."""
        return (f"repaired the plan to start from: {self}",) if self.recomputed else ()

    @property
    def reason(self) -> str:
        """Why the plan is not one of the instance; empty where it is."""
        if self.unplaced:
            count = len(self.unplaced)
            streets = "1 street" if count == 1 else f"{count} streets"
            fit = "fits" if count == 1 else "fit"
            return f"{streets} {fit} on no route that may take them"
        return self.fault

    def __str__(self) -> str:
        """Return what was changed, in one line."""
        parts = [
            f"{verb.format(count)} {'street' if count == 1 else 'streets'}{rest}"
            for verb, count, rest in (
                ("dropped {}", self.dropped, ""),
                ("inserted {}", len(self.inserted), ""),
                ("moved {} pinned", len(self.pinned), ""),
                ("moved {}", len(self.moved), " to keep to the limits"),
                ("turned {}", len(self.turned), " round"),
            )
            if count
        ]
        if self.recomputed:
            parts.append("recomputed the totals")
        if not self.ok:
            parts.append(self.reason)
        return ", ".join(parts) or "nothing changed"


def repair(
    instance: Instance,
    solution: Solution | Path | str,
    old_instance: Instance | None = None,
) -> Repair:
    """Return an earlier plan made fit for today's instance.

    Streets that are not required are dropped and new ones inserted where they add the
    least cost and no limit is exceeded, else on a new route; streets of routes that exceed
    a limit are moved. Routes keep their numbers. Pins and locked routes of the instance
    are obeyed. Paths, facility visits and totals are computed again. A plan without faults
    is returned as it is.

    Parameters
    ----------
    instance
        Today's instance.
    solution
        Earlier plan, or the path of its file.
    old_instance
        Instance of the earlier plan; None if links have kept their positions. Streets are
        then matched by end nodes, name and line, see `match_links`.

    Raises
    ------
    SolutionError
        If the plan is none of this instance, or of the old one.
    """
    solution = as_solution(solution, old_instance or instance)
    carried = carry_over(instance, solution, old_instance)
    served = [one.link for route in solution.routes for one in route.services]
    if (
        old_instance is None
        and not set(served) ^ set(instance.required)
        and check(instance, solution).ok
        and not _breaks_rules(instance, solution)
    ):
        return Repair(solution=solution)
    return _Repair(instance, carried).run(len(served))


def _breaks_rules(instance: Instance, solution: Solution) -> bool:
    """Return whether pins or locks ask for other routes."""
    plan = dict(zip(solution.numbers, solution.routes, strict=True))
    where = {one.link: n for n, route in plan.items() for one in route.services}
    return any(where.get(pin.link) != pin.route for pin in instance.pins) or any(
        lock.route not in plan
        or tuple((s.link, s.reverse) for s in plan[lock.route].services) != lock.services
        for lock in instance.locks
    )


class _Repair:
    """The tours of a plan by route number, while it is repaired."""

    def __init__(self, instance: Instance, carried: Solution) -> None:
        self.instance = instance
        self.builder = Builder(instance)
        self.carried = carried
        self.pins = {pin.link: pin.route for pin in instance.pins}
        self.locks = {lock.route: lock for lock in instance.locks}
        self.tours: dict[int, Tour] = {}
        self.turned: list[int] = []

    def run(self, services_before: int) -> Repair:
        left = self._take_over()
        self._keep_to_fleet()
        placed = {s.link for tour in self.tours.values() for s in tour.services}
        for link in self.pins:
            if link not in placed:
                self._insert_pinned(link)
        for number in list(self.tours):
            self._keep_to_limits(number)
        before = {
            one.link: route.number
            for route in self.carried.routes
            for one in route.services
        }
        placed = {s.link for tour in self.tours.values() for s in tour.services}
        missing = [link for link in self.instance.required if link not in placed]
        demands = self.instance.links
        missing.sort(key=lambda x: (x not in self.pins, -demands[x].demand, x))
        unplaced = tuple(link for link in missing if not self._insert(link))
        self._fill_exact_fleet()
        faults = self._drop_impossible_locks()
        numbers = sorted(self.tours)
        routes = [self.builder.route(self.tours[n], n) for n in numbers]
        plan = self.builder.solution(routes)
        if not unplaced and not faults:
            faults = check(self.instance, plan).faults
        pinned = {
            link
            for link, number in self.pins.items()
            if link in before and before[link] != number
        }.difference(unplaced)
        return Repair(
            solution=plan,
            dropped=services_before - left,
            inserted=tuple(sorted(set(missing) - set(before) - set(unplaced))),
            moved=tuple(sorted(set(missing) & set(before) - set(unplaced) - pinned)),
            pinned=tuple(sorted(pinned)),
            turned=tuple(sorted(self.turned)),
            unplaced=unplaced,
            fault=faults[0] if faults else "",
            recomputed=True,
        )

    def _take_over(self) -> int:
        """Set up the tours of what can stay on its route; return how many streets that is.

        Streets that are to move are counted, too.
        """
        links = self.instance.links
        seen: set[int] = set()
        for lock in self.locks.values():
            services = [Service(link, reverse) for link, reverse in lock.services]
            self.tours[lock.route] = self.builder.tour(lock.vehicle, services)
        locked = {link for lock in self.locks.values() for link, _ in lock.services}
        for route in self.carried.routes:
            number = route.number or 0
            closed = set(self.instance.fleet[route.vehicle].forbidden_links)
            stay = []
            for service in route.services:
                link = service.link
                if not links[link].required or link in seen:
                    continue
                seen.add(link)
                if link in locked or number in self.locks or link in closed:
                    continue
                if self.pins.get(link, number) != number:
                    continue
                if service.reverse and links[link].one_way:
                    self.turned.append(link)
                    service = Service(link)
                stay.append(service)
            if stay and number not in self.locks:
                self.tours[number] = self.builder.tour(route.vehicle, stay)
        return len(seen)

    def _keep_to_fleet(self) -> None:
        """Dissolve the smallest routes of types that have more routes than vehicles."""
        for vehicle_type, vehicle in enumerate(self.builder.fleet):
            numbers = [n for n, tour in self.tours.items() if tour.vehicle == vehicle_type]
            pinned = set(self.pins.values()) | set(self.locks)
            free = [n for n in numbers if n not in pinned]
            free.sort(key=lambda n: (len(self.tours[n].services), n))
            excess = 0 if vehicle.count is None else len(numbers) - vehicle.count
            for number in free[: max(0, excess)]:
                del self.tours[number]

    def _keep_to_limits(self, number: int) -> None:
        """Take streets out of a route until it keeps to capacity and longest route."""
        if number in self.locks:
            return
        tour = self.tours[number]
        while tour.services and not self.builder.fits(tour):
            services = list(tour.services)
            free = [s for s in services if s.link not in self.pins] or services
            excess = self.builder.load(services) - self.builder.fleet[tour.vehicle].capacity
            demands = {s: self.instance.links[s.link].demand for s in free}
            if not self.instance.facilities and excess > 0:
                enough = [s for s in free if demands[s] >= excess]
                gone = min(enough, key=demands.__getitem__) if enough else None
                gone = gone or max(free, key=demands.__getitem__)
            else:
                costs = {
                    s: self.builder.tour(tour.vehicle, [x for x in services if x != s]).cost
                    for s in free
                }
                gone = min(free, key=costs.__getitem__)
            tour = self.builder.tour(tour.vehicle, [s for s in services if s != gone])
        if tour.services:
            self.tours[number] = tour
        else:
            del self.tours[number]

    def _insert(self, link: int) -> bool:
        """Insert a link where it adds the least cost; else on a new route."""
        pinned = self.pins.get(link)
        numbers = [n for n in self.tours if n not in self.locks]
        if pinned is not None:
            numbers = [n for n in numbers if n == pinned]
        places = sorted(
            (place for number in numbers for place in self._places(number, link)),
            key=lambda place: place[0],
        )
        for _, number, position, service in islice(places, _MOST_TRIED):
            tour = self.tours[number]
            services = list(tour.services)
            services.insert(position, service)
            longer = self.builder.tour(tour.vehicle, services)
            if self.builder.fits(longer):
                self.tours[number] = longer
                return True
        if pinned is not None and (pinned in self.tours or pinned in self.locks):
            return False
        return self._open_route(link, pinned)

    def _insert_pinned(self, link: int) -> None:
        """Insert a link on its route whatever the limits; others make way afterwards."""
        number = self.pins[link]
        if number in self.locks:
            return
        if number not in self.tours:
            self._open_route(link, number)
            return
        places = list(self._places(number, link, within_limits=False))
        if places:
            _, _, position, service = min(places, key=lambda place: place[0])
            services = list(self.tours[number].services)
            services.insert(position, service)
            self.tours[number] = self.builder.tour(self.tours[number].vehicle, services)

    def _places(
        self, number: int, link: int, *, within_limits: bool = True
    ) -> Iterable[tuple[float, int, int, Service]]:
        """Yield where a link may go on a route: cost added, route, position, service."""
        tour, instance = self.tours[number], self.instance
        kind = self.builder.fleet[tour.vehicle]
        if link in kind.forbidden_links:
            return
        if within_limits and self.builder.is_full(tour, link):
            return
        ways = self.builder.ways(tour.vehicle)
        end = kind.start if kind.end is None else kind.end
        # With facilities, other visits may make the route shorter than this estimate.
        bounded = within_limits and not instance.facilities
        for service in self.builder.directions(link):
            here = service.link, service.reverse
            after, before = ways.costs_from(here), ways.costs_to(here)
            stops: list[Place] = [
                kind.start,
                *((s.link, s.reverse) for s in tour.services),
                end,
            ]
            serving = self.builder.service_cost(service)
            for position, (one, other) in enumerate(pairwise(stops)):
                added = before(one) + after(other) - ways.path(one, other)[0]
                cost = tour.cost + added + serving
                too_long = bounded and self.builder.is_too_long(tour.vehicle, cost)
                if added < NO_WAY and not too_long:
                    yield added + serving, number, position, service

    def _open_route(self, link: int, number: int | None) -> bool:
        used = Counter(tour.vehicle for tour in self.tours.values())
        tours = [
            self.builder.tour(vehicle_type, [service])
            for vehicle_type, vehicle in enumerate(self.builder.fleet)
            if vehicle.count is None or used[vehicle_type] < vehicle.count
            for service in self.builder.directions(link)
        ]
        tours = [tour for tour in tours if self.builder.fits(tour)]
        if not tours:
            return False
        fixed = [self.builder.fleet[tour.vehicle].fixed_cost for tour in tours]
        costs = [tour.cost + price for tour, price in zip(tours, fixed, strict=True)]
        self.tours[number or self._free_number()] = tours[costs.index(min(costs))]
        return True

    def _free_number(self) -> int:
        taken = {*self.tours, *self.pins.values(), *self.locks}
        taken |= {one.route for one in self.instance.previous}
        number = 1
        while number in taken:
            number += 1
        return number

    def _drop_impossible_locks(self) -> tuple[str, ...]:
        """Leave out locked routes that nothing can drive; return a fault for each."""
        wrong = [n for n in sorted(self.locks) if self.tours[n].cost == NO_WAY]
        faults = []
        for number in wrong:
            name = self.builder.fleet[self.tours.pop(number).vehicle].name
            faults.append(
                f"vehicle {name!r} cannot reach or carry all of locked route {number}"
            )
        return tuple(faults)

    def _fill_exact_fleet(self) -> None:
        """Assign the last street of the longest routes to idle vehicles, if exact."""
        if not self.instance.exact_fleet:
            return
        for vehicle_type, vehicle in enumerate(self.builder.fleet):
            used = sum(tour.vehicle == vehicle_type for tour in self.tours.values())
            for _ in range((vehicle.count or 0) - used):
                self._split_route(vehicle_type)

    def _split_route(self, vehicle_type: int) -> None:
        free = [
            number
            for number, tour in self.tours.items()
            if number not in self.locks
            and len(tour.services) > 1
            and tour.services[-1].link not in self.pins
        ]
        for number in sorted(free, key=lambda n: -self.tours[n].cost):
            *rest, last = self.tours[number].services
            alone = self.builder.tour(vehicle_type, [last])
            shorter = self.builder.tour(self.tours[number].vehicle, rest)
            if self.builder.fits(alone) and self.builder.fits(shorter):
                self.tours[number] = shorter
                self.tours[self._free_number()] = alone
                return
