"""Finds what makes an instance unsolvable before a solver does, and names the links."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from arcfleet.errors import UnsolvableError
from arcfleet.instance.diagnose_fleet import (
    access_problems,
    closed_streets,
    fleet_problems,
)
from arcfleet.instance.problem import Problem, name_links, problem_on
from arcfleet.instance.turns import reach, servable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from arcfleet.instance.instance import Instance

__all__ = ["Problem", "diagnose", "require_solvable"]


def diagnose(instance: Instance) -> tuple[Problem, ...]:
    """Find what makes the instance unsolvable, each street under its first problem.

    Nothing found is no proof that a plan exists under a fleet limit: that is a bin packing
    problem, and only its simplest bounds are checked. Nor is it with pins, locked routes,
    or both facilities and turn rules. Otherwise it is.

    Parameters
    ----------
    instance
        Instance to diagnose.

    Returns
    -------
    problems
        Empty if nothing was found.
    """
    found: list[Problem | None] = []
    # Where every street can be served on a route of its own, nothing closes any.
    bounded = instance.max_route_cost is not None or bool(instance.facilities)
    asks_routes = bounded or bool(instance.vehicles)
    closed = closed_streets(instance) if asks_routes else None
    if closed and instance.vehicles:
        found += access_problems(instance, closed, one_type=False)
    elif closed or not asks_routes:
        found += _access_problems(instance)
        if instance.has_turn_rules and not instance.facilities and not any(found):
            found += _turn_problems(instance)
        found.append(_oversized(instance))
        if closed and not any(found):
            found += access_problems(instance, closed, one_type=True)
    if not instance.vehicles and not instance.facilities:
        found.append(_fleet_too_small(instance))
    if instance.operations:
        found += fleet_problems(instance)
    return tuple(problem for problem in found if problem is not None)


def require_solvable(instance: Instance) -> None:
    """Raise UnsolvableError naming all problems unless `diagnose` finds none."""
    problems = diagnose(instance)
    if problems:
        reasons = "; ".join(problem.message for problem in problems)
        raise UnsolvableError(f"instance {instance.name!r} cannot be solved: {reasons}")


def _access_problems(instance: Instance) -> list[Problem | None]:
    onward: dict[int, list[int]] = defaultdict(list)
    backward: dict[int, list[int]] = defaultdict(list)
    for link in instance.links:
        onward[link.tail].append(link.head)
        backward[link.head].append(link.tail)
        if not link.one_way:
            onward[link.head].append(link.tail)
            backward[link.tail].append(link.head)
    isolated = _isolated_depot(instance, onward, backward)
    if isolated is not None:
        return [isolated]

    reached = reach([instance.depot], onward)
    returning = reach([instance.depot], backward)
    # The two ends of a two-way link reach each other, so testing one end is testing both.
    unreachable = [i for i in instance.required if instance.links[i].tail not in reached]
    trapped = [
        i
        for i in instance.required
        if instance.links[i].tail in reached and instance.links[i].head not in returning
    ]
    return [
        problem_on(
            "unreachable",
            unreachable,
            f"expected a way from depot {instance.depot} to every required link, "
            f"found none to {name_links(instance, unreachable)} "
            "(add the missing streets, move the depot or do not require these links)",
        ),
        problem_on(
            "no-return",
            trapped,
            f"expected a way back to depot {instance.depot} from every required link, "
            f"found none after {name_links(instance, trapped)} "
            "(one-way streets lead in and none leads out: "
            "check their directions or do not require these links)",
        ),
    ]


def _turn_problems(instance: Instance) -> list[Problem | None]:
    """Find what only the turn rules close; without them every required link is open."""
    served = servable(instance)
    closed = [i for i in instance.required if i not in served]
    if not closed:
        return []
    # What opens where U-turns are allowed is closed by the ban on them.
    freely = replace(instance, u_turns="allowed")
    banned = served if instance.u_turns == "allowed" else servable(freely)
    by_u_turns = [i for i in closed if i in banned]
    by_turns = [i for i in closed if i not in banned]
    where = (
        "forbidden" if instance.u_turns == "forbidden" else "forbidden except at dead ends"
    )
    return [
        problem_on(
            "u-turns",
            by_u_turns,
            f"U-turns are {where}, and without one there is no way from depot "
            f"{instance.depot} to {name_links(instance, by_u_turns)} and back "
            "(allow U-turns there or do not require these links)",
        ),
        problem_on(
            "forbidden-turns",
            by_turns,
            f"forbidden turns close every way from depot {instance.depot} to "
            f"{name_links(instance, by_turns)} and back "
            "(allow one of these turns or do not require these links)",
        ),
    ]


def _isolated_depot(
    instance: Instance,
    onward: Mapping[int, Sequence[int]],
    backward: Mapping[int, Sequence[int]],
) -> Problem | None:
    depot = instance.depot
    # Loops at the depot can be served even where no other link touches it.
    elsewhere = [
        i
        for i in instance.required
        if not instance.links[i].tail == instance.links[i].head == depot
    ]
    leaves = any(node != depot for node in onward.get(depot, ()))
    enters = any(node != depot for node in backward.get(depot, ()))
    if leaves and enters:
        return None
    if leaves:
        lack = "only one-way links that leave it"
    elif enters:
        lack = "only one-way links that enter it"
    else:
        lack = "no link to any other node"
    return problem_on(
        "isolated-depot",
        elsewhere,
        f"expected links that leave and enter depot {depot}, found {lack} "
        f"while {name_links(instance, elsewhere)} must be served "
        "(choose another depot or add the missing street)",
    )


def _oversized(instance: Instance) -> Problem | None:
    links = [i for i in instance.required if instance.links[i].demand > instance.capacity]
    largest = max((instance.links[i].demand for i in links), default=0)
    return problem_on(
        "oversized",
        links,
        f"expected demands of at most the capacity ({instance.capacity}), "
        f"got up to {largest} on {name_links(instance, links)} "
        "(raise the capacity or split these links)",
    )


def _fleet_too_small(instance: Instance) -> Problem | None:
    limit = instance.fleet_limit
    if limit is None:
        return None
    capacity = instance.capacity
    # No two demands above half the capacity fit into one route.
    large = [i for i in instance.required if 2 * instance.links[i].demand > capacity]
    by_total = -(-instance.total_demand // capacity)
    least = max(by_total, len(large))
    if least <= limit:
        return None
    if by_total >= len(large):
        links = [i for i in instance.required if instance.links[i].demand > 0]
        reason = f"the total demand of {instance.total_demand} at capacity {capacity}"
    else:
        links = large
        reason = (
            f"{len(large)} demands above half the capacity ({capacity}), "
            f"on {name_links(instance, large)},"
        )
    return problem_on(
        "fleet-too-small",
        links,
        f"{reason} needs at least {least} routes, but the fleet limit is {limit} "
        "(raise the fleet limit or the capacity)",
    )
