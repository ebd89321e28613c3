"""Problems of vehicle types, facilities, longest routes, pins and locked routes."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from arcfleet.instance.operations import ROUTE_LIMITS
from arcfleet.instance.problem import in_a_row, name_links, problem_on
from arcfleet.instance.round_trips import RoundTrips, round_trips

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from arcfleet.instance.instance import Instance
    from arcfleet.instance.operations import Vehicle
    from arcfleet.instance.problem import Problem


class ClosedStreets(NamedTuple):
    """Streets that no vehicle type can serve on a route of their own."""

    links: list[int]
    trips: list[RoundTrips]
    emptied: bool  # whether routes end empty, by way of a facility


def closed_streets(instance: Instance) -> ClosedStreets | None:
    """Find streets that no vehicle type can serve; None if there are none."""
    trips = round_trips(instance)
    emptied = bool(instance.facilities) and instance.empty_at_end
    links = [x for x in instance.required if not any(y.serves(x, emptied) for y in trips)]
    return ClosedStreets(links, trips, emptied) if links else None


def access_problems(
    instance: Instance, closed: ClosedStreets, one_type: bool
) -> list[Problem | None]:
    """Return why streets are closed, each under its first reason.

    With `one_type` the depot, the turn rules and the capacity have been looked at already.
    """
    links, trips, emptied = closed
    barred: list[int] = []
    oversized: list[int] = []
    unreachable: list[int] = []
    stranded: list[int] = []
    too_long: dict[int, tuple[int, int]] = {}  # links, with cost and longest route
    for link in links:
        allowed = [x for x in trips if x.may_serve(link)]
        demand = instance.links[link].demand
        able = [x for x in allowed if demand <= x.vehicle.capacity]
        reached = [x for x in able if x.least_cost(link, over_facility=False) is not None]
        costs = [(x.least_cost(link, emptied), x.vehicle.max_route_cost) for x in reached]
        known = [(cost, longest) for cost, longest in costs if cost is not None]
        over = [(cost, most) for cost, most in known if most is not None and cost > most]
        if not allowed:
            barred.append(link)
        elif not able:
            oversized.append(link)
        elif not reached:
            unreachable.append(link)
        elif not known:
            stranded.append(link)
        elif len(over) == len(known):
            too_long[link] = min(over, key=lambda pair: pair[0] - pair[1])
    rules = " by the turn rules" if instance.has_turn_rules else ""
    stuck = "".join(f"; {reason}" for reason in stuck_vehicles(instance).values())
    found = [
        problem_on(
            "forbidden-links",
            barred,
            "expected a vehicle type that may serve every required link, found none for "
            f"{name_links(instance, barred)} (allow one of them there or do not require "
            "these links)",
        ),
        problem_on(
            "unreachable",
            unreachable,
            f"expected a way{rules} from the start of a vehicle type to every required "
            f"link and on to its end, found none for {name_links(instance, unreachable)}"
            f"{stuck} (add the missing streets, move a depot or do not require these "
            "links)",
        ),
        _no_facility(instance, trips, stranded, rules),
        _too_long(instance, too_long, emptied),
    ]
    if not one_type:
        found.append(_oversized(instance, oversized))
    return found


def stuck_vehicles(instance: Instance) -> dict[int, str]:
    """Return vehicle types that cannot leave their depot or not come back, and why.

    Others may do their work, so that a plan may exist nevertheless.
    """
    if not instance.vehicles:
        return {}
    out: dict[int, list[int]] = defaultdict(list)
    into: dict[int, list[int]] = defaultdict(list)
    for index, link in enumerate(instance.links):
        for reverse in (False,) if link.one_way else (False, True):
            tail, head = link.ends(reverse)
            out[tail].append(index)
            into[head].append(index)
    found = {}
    for position, vehicle in enumerate(instance.vehicles):
        closed = set(vehicle.forbidden_links)
        start, end = vehicle.depots
        for links, verb, way, depot in (
            (out[start], "leave", "out of", start),
            (into[end], "come back to", "to", end),
        ):
            if closed.issuperset(links):
                lack = f"no link leads {way} it"
                if links:
                    lack = f"all links that lead {way} it are forbidden to it"
                found[position] = (
                    f"vehicle {vehicle.name!r} cannot {verb} depot {depot}, because {lack}"
                )
                break
    return found


def fleet_problems(instance: Instance) -> list[Problem | None]:
    """Find what the numbers of vehicles contradict, without a look at the streets."""
    return [
        *_route_problems(instance),
        _too_many_routes(instance) or _too_few_vehicles(instance),
        _exact_fleet(instance),
        _stuck_in_exact_fleet(instance),
        _capacity_too_small(instance) if instance.vehicles else None,
        *_limits_too_small(instance),
    ]


def _no_facility(
    instance: Instance, trips: Sequence[RoundTrips], stranded: Sequence[int], rules: str
) -> Problem | None:
    """Return why vehicles cannot empty after some streets and then drive home."""
    if not stranded:
        return None
    homes = [
        any(x.facility_home[i] is not None for x in trips)
        for i in range(len(instance.facilities))
    ]
    if not any(homes):
        nodes = [str(facility.node) for facility in instance.facilities]
        at = f"the facility at node {nodes[0]}"
        if len(nodes) > 1:
            at = f"the facilities at nodes {', '.join(nodes)}"
        message = (
            f"expected a way{rules} from a facility to the depot where a route ends, found "
            f"none from {at} (add the missing streets or another facility)"
        )
    else:
        message = (
            f"expected a way{rules} from every required link to a facility and on to the "
            f"depot, found none after {name_links(instance, stranded)} (add the missing "
            "streets, another facility, or do not require these links)"
        )
    return problem_on("no-facility", stranded, message)


def _too_long(
    instance: Instance, too_long: dict[int, tuple[int, int]], emptied: bool
) -> Problem | None:
    links = list(too_long)
    cost, longest = max(too_long.values(), default=(0, 0))
    by_way = " by way of a facility" if emptied else ""
    up_to, these = "", "this link"
    if len(links) > 1:
        up_to, these = "up to ", f"these {len(links)} links"
    unit = f" {instance.cost_unit}" if instance.cost_unit else ""
    return problem_on(
        "too-long",
        links,
        "expected every required link to be served within the longest route "
        f"({longest}{unit}), got {up_to}{cost} for the way to "
        f"{name_links(instance, links)} and back{by_way} (raise it to {cost} or do not "
        f"require {these})",
    )


def _oversized(instance: Instance, links: Sequence[int]) -> Problem | None:
    largest = max((instance.links[i].demand for i in links), default=0)
    return problem_on(
        "oversized",
        links,
        "expected demands of at most the capacity of a vehicle type that may serve them, "
        f"got up to {largest} on {name_links(instance, links)} "
        f"(the largest capacity is {instance.capacity}: raise it or split these links)",
    )


def _route_problems(instance: Instance) -> list[Problem | None]:
    """Find pinned or locked streets that no vehicle can serve on one route."""
    pinned = _pinned_routes(instance)
    found: list[Problem | None] = []
    for lock in instance.locks:
        links = [link for link, _ in lock.services]
        wrong_way = [
            i for i, reverse in lock.services if reverse and instance.links[i].one_way
        ]
        if wrong_way:
            found.append(
                problem_on(
                    "locks",
                    wrong_way,
                    f"expected locked route {lock.route} to serve one-way links forward, "
                    f"got {name_links(instance, wrong_way)} in reverse (correct the route "
                    "or unlock it)",
                )
            )
        reason = _misfit(instance, instance.fleet[lock.vehicle], links)
        if reason:
            found.append(
                problem_on(
                    "locks",
                    links,
                    f"expected locked route {lock.route} to fit its vehicle, got {reason} "
                    "(unlock the route or take streets out of it)",
                )
            )
    for route, links in sorted(pinned.items()):
        reasons = [_misfit(instance, vehicle, links) for vehicle in instance.fleet]
        if all(reasons):
            found.append(
                problem_on(
                    "pins",
                    sorted(links),
                    f"expected the streets pinned to route {route} to fit one vehicle, got "
                    f"{reasons[0]} (pin fewer streets to this route)",
                )
            )
    return found


def _misfit(instance: Instance, vehicle: Vehicle, links: Sequence[int]) -> str:
    """Return why a vehicle cannot serve all of some links on one route; empty if it may."""
    barred = [link for link in links if link in vehicle.forbidden_links]
    if barred:
        return f"{name_links(instance, barred)} forbidden to vehicle {vehicle.name!r}"
    demand = sum(instance.links[link].demand for link in links)
    if demand > vehicle.capacity and not instance.facilities:
        return f"demands of {demand} together at capacity {vehicle.capacity}"
    for field, limit in ROUTE_LIMITS.items():
        most, work = getattr(vehicle, field), limit.work(instance, links)
        if most is not None and work > most:
            return f"{work} {limit.unit} where the {limit.name} is {most}"
    return ""


def _too_many_routes(instance: Instance) -> Problem | None:
    """Find more pinned or locked routes than vehicles."""
    named = {lock.route: [link for link, _ in lock.services] for lock in instance.locks}
    for vehicle_type, vehicle in enumerate(instance.fleet):
        locked = [lock for lock in instance.locks if lock.vehicle == vehicle_type]
        if vehicle.count is not None and len(locked) > vehicle.count:
            of = f" of vehicle {vehicle.name!r}" if instance.vehicles else ""
            return problem_on(
                "locks",
                [link for lock in locked for link, _ in lock.services],
                f"expected at most {vehicle.count} locked routes{of} (its count), "
                f"got {len(locked)} (unlock some or raise the count)",
            )
    for pin in instance.pins:
        named.setdefault(pin.route, []).append(pin.link)
    most = _fleet_size(instance)
    if most is None or len(named) <= most:
        return None
    return problem_on(
        "pins" if instance.pins else "locks",
        sorted({link for links in named.values() for link in links}),
        f"expected at most {most} routes in pins and locks (the size of the fleet), "
        f"got {len(named)} (pin to fewer routes or raise the fleet limit)",
    )


def _too_few_vehicles(instance: Instance) -> Problem | None:
    """Find pinned routes that fit the same vehicles, of which there are too few.

    A route takes a vehicle, and those before it move to others where they can: a matching.
    """
    pinned = _pinned_routes(instance)
    fits = {
        route: [i for i, x in enumerate(instance.fleet) if not _misfit(instance, x, links)]
        for route, links in pinned.items()
    }
    locked = Counter(lock.vehicle for lock in instance.locks)
    slots = {
        i: None if vehicle.count is None else vehicle.count - locked[i]
        for i, vehicle in enumerate(instance.fleet)
    }
    taken: dict[int, list[int]] = {i: [] for i in slots}
    for route in sorted(route for route, types in fits.items() if types):
        asked: set[int] = set()
        if _takes_vehicle(route, fits, slots, taken, asked):
            continue
        routes = sorted([route, *(other for i in asked for other in taken[i])])
        names = [repr(instance.fleet[i].name) for i in sorted(asked)]
        vehicles = f"vehicle{'s' * (len(names) > 1)} {in_a_row(names)}"
        there = sum(slots[i] or 0 for i in asked)
        beside = " beside the locked routes" if instance.locks else ""
        plural = "s" if len(routes) > 1 else ""
        return problem_on(
            "pins",
            sorted(link for each in routes for link in pinned[each]),
            f"expected a vehicle for every pinned route, got route{plural} "
            f"{in_a_row([str(each) for each in routes])} for {there} of {vehicles}{beside} "
            f"(pin fewer streets to {'these routes' if plural else 'this route'} or add "
            "vehicles)",
        )
    return None


def _takes_vehicle(
    route: int,
    fits: dict[int, list[int]],
    slots: dict[int, int | None],
    taken: dict[int, list[int]],
    asked: set[int],
) -> bool:
    """Return whether a route gets a vehicle of a type that was not asked for yet."""
    for i in fits[route]:
        if i in asked:
            continue
        asked.add(i)
        most = slots[i]
        if most is None or len(taken[i]) < most:
            taken[i].append(route)
            return True
        for position, other in enumerate(taken[i]):
            if _takes_vehicle(other, fits, slots, taken, asked):
                taken[i][position] = route
                return True
    return False


def _pinned_routes(instance: Instance) -> dict[int, list[int]]:
    """Return the links that are pinned to each route that is not locked."""
    pinned: dict[int, list[int]] = defaultdict(list)
    for pin in instance.pins:
        pinned[pin.route].append(pin.link)
    for lock in instance.locks:
        pinned.pop(lock.route, None)  # they agree, as the instance has checked
    return pinned


def _exact_fleet(instance: Instance) -> Problem | None:
    size = _fleet_size(instance)
    if not instance.exact_fleet or size is None:
        return None
    locked = {link for lock in instance.locks for link, _ in lock.services}
    pinned = _pinned_routes(instance)
    held = locked.union(*pinned.values())
    free = [link for link in instance.required if link not in held]
    vehicles = size - len(instance.locks) - len(pinned)
    if vehicles <= len(free) or not instance.required:
        return None
    names = (("pinned", pinned), ("locked", instance.locks))
    given = " and ".join(name for name, routes in names if routes)
    beside = f" beside the {given} routes" if given else ""
    remedy = "take fewer vehicles" + (" or pin fewer streets" if pinned else "")
    return problem_on(
        "exact-fleet",
        free or instance.required,
        f"expected a street for each of the {vehicles} vehicles of an exact fleet{beside}, "
        f"got {len(free)} streets ({remedy})",
    )


def _stuck_in_exact_fleet(instance: Instance) -> Problem | None:
    stuck = stuck_vehicles(instance) if instance.exact_fleet else {}
    if not stuck:
        return None
    return problem_on(
        "isolated-depot",
        instance.required,
        "expected a route for every vehicle of an exact fleet, but "
        f"{next(iter(stuck.values()))} (allow it one of these links, move its depot or "
        "leave it out)",
    )


def _capacity_too_small(instance: Instance) -> Problem | None:
    if instance.facilities:
        return None
    held = 0
    for vehicle in instance.fleet:
        if vehicle.count is None:
            return None
        held += vehicle.count * vehicle.capacity
    links = [i for i in instance.required if instance.links[i].demand > 0]
    if instance.total_demand <= held:
        return None
    return problem_on(
        "fleet-too-small",
        links,
        f"expected a total demand of at most what all vehicles hold ({held}), got "
        f"{instance.total_demand} (add vehicles or raise their capacities)",
    )


def _limits_too_small(instance: Instance) -> Iterator[Problem | None]:
    """Find limits of routes that, over the whole fleet, are too small for serving alone."""
    for field, limit in ROUTE_LIMITS.items():
        sizes = [(vehicle.count, getattr(vehicle, field)) for vehicle in instance.fleet]
        most = sum(count * size for count, size in sizes if count and size)
        work = limit.work(instance, instance.required)
        if all(count and size for count, size in sizes) and work > most:
            yield problem_on(
                "fleet-too-small",
                instance.required,
                f"expected at most {most} on the routes of all vehicles together "
                f"({limit.name}), got {work} {limit.unit} (add vehicles or raise the "
                f"{limit.name})",
            )


def _fleet_size(instance: Instance) -> int | None:
    counts = [vehicle.count for vehicle in instance.fleet]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
