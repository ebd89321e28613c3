"""A plan changed by hand: streets moved to other routes, removed or added."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from arcfleet.errors import OptionError
from arcfleet.instance.change import (
    Demands,
    Pins,
    StreetName,
    as_demands,
    as_pairs,
    as_streets,
    exclude,
    find_links,
    pin,
    require,
)
from arcfleet.instance.instance import MAX_NUMBER
from arcfleet.solution.files import as_solution
from arcfleet.solution.keep import (
    as_routes,
    keep,
    lock,
    require_known_routes,
    route_hint,
    unlock,
)
from arcfleet.solution.match import carry_over
from arcfleet.solution.repair import Repair, repair

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from arcfleet.instance.instance import Instance
    from arcfleet.solution.solution import Solution


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A plan changed by hand, and what a search may change of it.

    Parameters
    ----------
    instance
        Instance to search again: moved streets are pinned, untouched routes locked, and
        streets that leave their route have a price.
    plain_instance
        The same without pins, locks and price of the edits: the instance of the edited
        plan. Pins of moved streets are replaced, routes that may change are not locked.
    repaired
        The plan with the edits, and what they took.
    free
        Numbers of the routes that a search may change.
    """

    instance: Instance
    plain_instance: Instance
    repaired: Repair
    free: tuple[int, ...]

    @property
    def solution(self) -> Solution:
        """The plan with the edits."""
        return self.repaired.solution


def edit(
    instance: Instance,
    solution: Solution | Path | str,
    *,
    move: Pins = (),
    remove: StreetName | Iterable[StreetName] = (),
    add: Demands | None = None,
    free: Iterable[int] = (),
    price: int | None = None,
) -> Edit:
    """Change a plan by hand; `solve` then searches only what may change.

    Routes that lose or get a street may change, and those of `free`; all others are
    locked. If streets are added, all routes may change unless `free` names some or the
    instance locks them.

    Parameters
    ----------
    instance
        Instance of the plan.
    solution
        Plan to change, or the path of its file.
    move
        Number of the new route of each street, by names or positions of links.
    remove
        Streets that are not served any more, by names or positions of links.
    add
        Demand of each link of streets that are to be served as well; "length" for metres.
    free
        Numbers of more routes that may change.
    price
        Price of every street that leaves its route, in the unit of all costs. By default
        it is above all that could be saved, so that streets leave their routes only where
        a limit forces them to; with `free`, it is 1, so that of equal plans the one with
        fewer changes is taken.

    Raises
    ------
    OptionError
        If a street or a route is not there.
    SolutionError
        If the plan is none of the instance.
    InstanceError
        If moves contradict each other, or the plan breaks pins of the instance.

    Examples
    --------
    >>> edited = arcfleet.edit(town, plan, move={"High Street": 2})  # doctest: +SKIP
    >>> result = arcfleet.solve(edited.instance, start=edited.solution)  # doctest: +SKIP
    """
    solution = as_solution(solution, instance)
    plan = carry_over(instance, solution)
    remove, add = as_streets(remove), dict(as_demands(add or {}))
    free = set(as_routes("free", free))
    moves = as_pairs(move)
    if not (moves or remove or add or free):
        raise OptionError(
            "expected streets to move, remove or add, or routes to free, got none of them"
        )
    unknown = sorted(free - set(plan.numbers))
    if unknown:
        raise OptionError(
            f"expected the number of a route to free, got {unknown[0]}: {route_hint(plan)}"
        )
    routes = {
        service.link: number
        for number, route in zip(plan.numbers, plan.routes, strict=True)
        for service in route.services
    }
    touched = {route for _, route in moves}
    moved = {link for street, _ in moves for link in find_links(instance, street)}
    gone = {link for street in remove for link in find_links(instance, street)}
    touched |= {routes[link] for link in moved | gone if link in routes}
    may_change = free | touched
    plain = unlock(exclude(instance, remove), may_change, moved)
    if add:
        plain = require(plain, add)
    if add and not free:
        may_change |= set(plan.numbers) - {one.route for one in plain.locks}
    pinned = pin(plain, moves)
    stored = {one.link for one in plain.pins}
    plain = replace(plain, pins=tuple(one for one in pinned.pins if one.link in stored))
    require_known_routes(pinned, plan)
    fixed = [
        number
        for number, route in zip(plan.numbers, plan.routes, strict=True)
        if number not in may_change and route.services
    ]
    if price is None:
        price = 1 if free else min(MAX_NUMBER, 2 * max(1, solution.cost))
    searched = keep(lock(pinned, plan, fixed), plan, price)
    return Edit(
        instance=searched,
        plain_instance=plain,
        repaired=repair(searched, solution),
        free=tuple(sorted(may_change & {*plan.numbers, *touched})),
    )
