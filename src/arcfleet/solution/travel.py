"""How far and how long a plan drives, whatever its costs are counted in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from arcfleet.instance.turns import TurnCosts

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from arcfleet.instance.instance import Instance
    from arcfleet.solution.solution import Route, Solution, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Travel:
    """Length and time of a route, or of all routes of a plan.

    Parameters
    ----------
    metres, seconds
        Length and time of the whole drive; None if unknown.
    deadhead_metres, deadhead_seconds
        The part of it that is driven without serving, turns included; None if unknown.
    """

    metres: int | None = None
    deadhead_metres: int | None = None
    seconds: int | None = None
    deadhead_seconds: int | None = None

    @property
    def service_metres(self) -> int | None:
        """Length of the streets served."""
        return _difference(self.metres, self.deadhead_metres)

    @property
    def service_seconds(self) -> int | None:
        """Time of serving."""
        return _difference(self.seconds, self.deadhead_seconds)

    def facts(self) -> dict[str, int]:
        """Return what is known, ready for JSON."""
        named = {
            "metres": self.metres,
            "deadhead_metres": self.deadhead_metres,
            "seconds": self.seconds,
            "deadhead_seconds": self.deadhead_seconds,
        }
        return {name: value for name, value in named.items() if value is not None}

    def __str__(self) -> str:
        """Return length and time, each with its part without serving."""
        return ", ".join(
            whole if deadhead is None else f"{whole} ({deadhead} deadheading)"
            for whole, deadhead in self.texts().values()
        )

    def brief(self) -> str:
        """Return length and time in a few words, as in `8.1 km, 1 h 05 min`."""
        return ", ".join(whole for whole, _ in self.texts().values())

    def texts(self) -> dict[str, tuple[str, str | None]]:
        """Return "distance" and "duration" for people, with the parts without serving.

        What is unknown is left out.
        """
        texts = {}
        for name, text, whole, part in (
            ("distance", length_text, self.metres, self.deadhead_metres),
            ("duration", duration_text, self.seconds, self.deadhead_seconds),
        ):
            if whole is not None:
                texts[name] = (text(whole), None if part is None else text(part))
        return texts


def knows_travel(instance: Instance) -> bool:
    """Return whether the length or time of any link is known."""
    return any(
        link.metres is not None or link.seconds is not None for link in instance.links
    )


def travel_facts(travel: Travel | None) -> dict[str, object]:
    """Return the member `travel` of an object in JSON; none where nothing is known."""
    return {} if travel is None else {"travel": travel.facts()}


def with_travel(instance: Instance, solution: Solution) -> Solution:
    """Return the plan with the length and time of its routes, as far as they are known.

    They come from the street paths, and from the metres and seconds of the links; without
    either they are unknown. The penalties of turns and the costs of facility visits count
    as time without serving where costs are seconds.
    """
    known = knows_travel(instance)
    if not known:
        stated = [solution.travel, *(route.travel for route in solution.routes)]
        if all(travel is None for travel in stated):
            return solution
    turns = TurnCosts(instance)
    routes = tuple(
        replace(route, travel=route_travel(instance, route, turns) if known else None)
        for route in solution.routes
    )
    return replace(solution, routes=routes, travel=_total(r.travel for r in routes))


def route_travel(
    instance: Instance, route: Route, turns: TurnCosts | None = None
) -> Travel | None:
    """Return the length and time of a route; None where neither is known."""
    if not route.path:  # its way between two services may be any shortest one
        return None
    stops = visit_stops(route)
    if None in stops:  # where on the path it empties is unknown
        return None
    metres = [instance.links[step.link].metres for step in route.path]
    without_serving = (
        length for length, x in zip(metres, route.path, strict=True) if not x.serves
    )
    deadhead_metres = None if None in metres else _sum(list(without_serving))
    seconds = step_seconds(instance, route.path, turns, stops)
    if seconds is not None:
        seconds = [*seconds, *visit_seconds(instance, route)]
    # A turn onto a street that is served is no part of serving it.
    serving = sum(
        instance.links[x.link].step_seconds(x.reverse, serves=True) or 0
        for x in route.path
        if x.serves
    )
    travel = Travel(
        metres=_sum(metres),
        deadhead_metres=deadhead_metres,
        seconds=None if seconds is None else sum(seconds),
        deadhead_seconds=None if seconds is None else sum(seconds) - serving,
    )
    return travel if travel.facts() else None


def visit_stops(route: Route) -> frozenset[int | None]:
    """Return the numbers of steps after which the vehicle empties: no turn is taken."""
    return frozenset(visit.steps for visit in route.visits)


def visit_seconds(instance: Instance, route: Route) -> list[int]:
    """Return the seconds of each facility visit: its cost where costs are seconds."""
    timed = instance.cost_unit == "seconds"
    return [instance.facilities[v.facility].cost if timed else 0 for v in route.visits]


def step_costs(
    instance: Instance,
    path: Sequence[Step],
    turns: TurnCosts | None = None,
    stops: Container[int | None] = (),
) -> list[int]:
    """Return the cost of each step of a street path, with that of the turn before it.

    After the numbers of steps in `stops` the vehicle visits a facility: no turn is taken.
    """
    costs = [instance.links[x.link].step_cost(x.reverse, x.serves) or 0 for x in path]
    penalties = _turn_penalties(instance, path, turns, stops)
    return [cost + turn for cost, turn in zip(costs, penalties, strict=True)]


def step_seconds(
    instance: Instance,
    path: Sequence[Step],
    turns: TurnCosts | None = None,
    stops: Container[int | None] = (),
) -> list[int] | None:
    """Return the seconds of each step, as `step_costs` does the cost; None if unknown."""
    if not path:
        return None
    times = [instance.links[x.link].step_seconds(x.reverse, x.serves) for x in path]
    known = [time for time in times if time is not None]
    if len(known) < len(times):
        return None
    if instance.cost_unit != "seconds":
        return known
    penalties = _turn_penalties(instance, path, turns, stops)
    return [time + turn for time, turn in zip(known, penalties, strict=True)]


def length_text(metres: float) -> str:
    """Return a length for people, as in `850 m` and `12.3 km`."""
    return f"{metres:.0f} m" if round(metres) < 1000 else f"{metres / 1000:.1f} km"


def duration_text(seconds: float) -> str:
    """Return a time for people, as in `40 s`, `12 min` and `1 h 05 min`."""
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min"


def _turn_penalties(
    instance: Instance,
    path: Sequence[Step],
    turns: TurnCosts | None,
    stops: Container[int | None],
) -> list[int]:
    """Return the cost of the turn before each step; a forbidden one, a fault, costs 0."""
    if not instance.has_turn_rules or not path:
        return [0] * len(path)
    turns = TurnCosts(instance) if turns is None else turns
    driven = [(step.link, step.reverse) for step in path]
    costs = (turns.cost(*turn) or 0 for turn in pairwise(driven))
    return [0, *(0 if i in stops else cost for i, cost in enumerate(costs, start=1))]


def _total(travels: Iterable[Travel | None]) -> Travel | None:
    """Return the sum over routes; unknown where it is for one of them."""
    known = [Travel() if travel is None else travel for travel in travels]
    if not known:
        return None
    total = Travel(
        metres=_sum([x.metres for x in known]),
        deadhead_metres=_sum([x.deadhead_metres for x in known]),
        seconds=_sum([x.seconds for x in known]),
        deadhead_seconds=_sum([x.deadhead_seconds for x in known]),
    )
    return total if total.facts() else None


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _difference(whole: int | None, part: int | None) -> int | None:
    return None if whole is None or part is None else whole - part
