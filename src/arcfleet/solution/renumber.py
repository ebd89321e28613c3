"""Routes of a plan numbered as those of another that they resemble most."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from arcfleet.solution.solution import Solution


def renumber(
    solution: Solution, earlier: Solution, fixed: Collection[int] = ()
) -> Solution:
    """Return the plan with the route numbers of an earlier one.

    Pairs of routes with most streets in common come first; a route without a partner gets
    a number that neither plan uses. Routes are sorted by their numbers.

    Parameters
    ----------
    solution
        Plan whose routes get numbers.
    earlier
        Plan that has the numbers, in terms of the same links.
    fixed
        Numbers that routes of `solution` keep.
    """
    numbers = {
        position: number
        for position, number in enumerate(solution.numbers)
        if number in fixed
    }
    taken = {*fixed}
    before = {
        service.link: number
        for number, route in zip(earlier.numbers, earlier.routes, strict=True)
        for service in route.services
    }
    common: Counter[tuple[int, int]] = Counter(
        (position, before[service.link])
        for position, route in enumerate(solution.routes)
        for service in route.services
        if service.link in before
    )
    for (position, number), _ in sorted(common.items(), key=lambda x: (-x[1], x[0])):
        if position not in numbers and number not in taken:
            numbers[position] = number
            taken.add(number)
    fresh = iter(range(1, len(solution.routes) + len(earlier.routes) + len(taken) + 2))
    used = taken | set(earlier.numbers)
    for position in range(len(solution.routes)):
        if position not in numbers:
            numbers[position] = next(n for n in fresh if n not in used)
    order = sorted(numbers, key=numbers.__getitem__)
    routes = (replace(solution.routes[x], number=numbers[x]) for x in order)
    return replace(solution, routes=tuple(routes))
