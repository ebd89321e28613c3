"""Shape of a plan: how even its routes are, how far they interleave, what changed."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from arcfleet.network.network import IN_PARTS_FROM, Network

if TYPE_CHECKING:
    from arcfleet.instance.instance import Instance
    from arcfleet.solution.solution import Solution


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Balance, compactness and changes of a plan, as numbers.

    Parameters
    ----------
    longest, shortest
        Largest and smallest cost of a route, its fixed cost apart; 0 without routes.
    ratio
        Longest divided by shortest; None where the shortest is 0.
    variation
        Coefficient of variation of the costs of the routes: standard deviation divided by
        mean.
    interleaving
        Share of the streets whose nearest other street is on another route. Nearness is
        driving between ends, both ways: the least plus the mean. Above 2,800 streets it is
        the nearest of some hundreds around.
    changed
        Number of streets on another route than in the instance's `previous`; None where
        that is empty. Streets that it does not name are new and do not count.
    """

    longest: int
    shortest: int
    ratio: float | None
    variation: float
    interleaving: float
    changed: int | None


def shape(instance: Instance, solution: Solution, network: Network | None = None) -> Shape:
    """Compute the shape of a plan.

    Parameters
    ----------
    instance
        Instance that the plan solves.
    solution
        The plan.
    network
        Network of the instance, where it is at hand; else it is built.

    Returns
    -------
    shape
        Figures to compare plans by.
    """
    fleet = instance.fleet
    costs = [route.cost - fleet[route.vehicle].fixed_cost for route in solution.routes]
    longest, shortest = max(costs, default=0), min(costs, default=0)
    numbers = {
        service.link: number
        for number, route in zip(solution.numbers, solution.routes, strict=True)
        for service in route.services
    }
    return Shape(
        longest=longest,
        shortest=shortest,
        ratio=longest / shortest if shortest else None,
        variation=pstdev(costs) / fmean(costs) if any(costs) else 0.0,
        interleaving=_interleaving(instance, numbers, network),
        changed=(
            sum(numbers.get(x.link, x.route) != x.route for x in instance.previous)
            if instance.previous
            else None
        ),
    )


def _interleaving(
    instance: Instance, numbers: dict[int, int], network: Network | None
) -> float:
    """Return the share of streets whose nearest other street is on another route."""
    if len(instance.required) < 2 or len(set(numbers.values())) < 2:
        return 0.0
    routes = [numbers.get(link) for link in instance.required]
    mates = _NEAREST.of(instance, network)
    return fmean(route != routes[mate] for route, mate in zip(routes, mates, strict=True))


class _NearestStreets:
    """The nearest other street of each, kept for the instance that was asked for last.

    A search, its files and its summary all ask for the shape of one plan: with it, one
    network is built for all of them.
    """

    def __init__(self) -> None:
        self._last: tuple[Instance, list[int]] | None = None

    def of(self, instance: Instance, network: Network | None) -> list[int]:
        last = self._last
        if last is None or last[0] is not instance:
            in_parts = len(instance.required) > IN_PARTS_FROM
            built = network
            if built is None or in_parts != built.in_parts:
                built = Network(instance, in_parts=in_parts)
            last = self._last = instance, built.core.nearest_others().tolist()
        return last[1]


_NEAREST = _NearestStreets()
