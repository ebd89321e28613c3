"""What `solve` returns: the solution and the statistics of the search."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from arcfleet._checks import one_line
from arcfleet._display import notebook_html
from arcfleet.solution.travel import travel_facts
from arcfleet.solution.words import (
    fleet_text,
    has_own_numbers,
    route_facts,
    route_figures,
    shape_facts,
    shape_texts,
)

if TYPE_CHECKING:
    from arcfleet.instance import Instance
    from arcfleet.search.stop import StoppedBy
    from arcfleet.solution import Solution
    from arcfleet.solution.bound import Bound
    from arcfleet.solution.shape import Shape


#: A summary has lines for this many routes.
_MOST_ROUTE_LINES = 12


@dataclass(frozen=True, slots=True)
class Improvement:
    """A better plan, and when it was found.

    Parameters
    ----------
    seconds
        Time since the call of `solve`.
    iteration
        Iteration that found it, counted from 0.
    cost
        Total cost of the plan.
    """

    seconds: float
    iteration: int
    cost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The best plan found, with the statistics of the search.

    Parameters
    ----------
    instance
        The instance that was solved.
    method
        Name of the method that ran.
    seed
        Seed of the random number generator.
    threads
        Number of threads that were used.
    solution
        The best plan.
    seconds
        Wall-clock time of the whole call.
    iterations
        Number of iterations.
    stopped_by
        Reason for the end of the search: a limit of `Stop`, "stop rule", "interrupt",
        "bound" where the plan costs no more than the lower bound, or "error" where the
        caller's stop rule or progress callback raised one.
    history
        Each better plan, in the order found.
    notes
        What was changed before the search and whether it was too short, a line each.
    shape
        Balance and interleaving of the best plan; None with fewer than two routes.
    fallback
        Name of the method that the plan is of, where `method` found none in time; None
        where it is its own.
    bound
        Lower bound that no plan costs less than; None where none was asked for.
    """

    instance: Instance = field(repr=False)
    method: str
    seed: int
    threads: int
    solution: Solution
    seconds: float
    iterations: int
    stopped_by: StoppedBy
    history: tuple[Improvement, ...] = field(repr=False)
    notes: tuple[str, ...] = ()
    shape: Shape | None = None
    fallback: str | None = None
    bound: Bound | None = None

    @property
    def cost(self) -> int:
        """Total cost of the best plan."""
        return self.solution.cost

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def _repr_html_(self) -> str | None:
        return notebook_html(self)

    def summary(self) -> str:
        """Return cost, routes and statistics of the search, in a few lines.

        Where the lengths or times of the streets are known, or routes differ in vehicle,
        visits or numbers, a line for each route follows.
        """
        plan = self.solution
        unit = f" {self.instance.cost_unit}" if self.instance.cost_unit else ""
        share = f" ({plan.deadhead / plan.cost:.1%} of it)" if plan.cost else ""
        loads = ", ".join(str(load) for load in plan.loads[:12])
        more = f", and {plan.num_routes - 12} more" if plan.num_routes > 12 else ""
        return "\n".join(
            [
                f"instance    {one_line(self.instance.name)}",
                f"method      {self.method}, seed {self.seed}{self._fallback()}",
                f"cost        {plan.cost}{unit}",
                *self._bound_lines(),
                f"deadhead    {plan.deadhead}{share}",
                *self._travel_lines(),
                *self._visit_lines(),
                f"routes      {plan.num_routes}{self._vehicles()}",
                f"loads       {loads or '-'}{more}",
                *(f"{name:<12}{text}" for name, text in shape_texts(self.shape).items()),
                f"time        {self.seconds:.2f} s, {self.iterations} iterations, "
                f"stopped by {self.stopped_by.replace('_', ' ')}",
                *(f"note        {one_line(note)}" for note in self.notes),
                *self._route_lines(),
            ]
        )

    def _fallback(self) -> str:
        if self.fallback is None:
            return ""
        return f"; the plan is of {self.fallback}, for want of time"

    def _bound_lines(self) -> list[str]:
        if self.bound is None:
            return []
        return [f"bound       {self.bound.value}: {self.bound.gap_text(self.cost)}"]

    def _travel_lines(self) -> list[str]:
        travel = self.solution.travel
        return [
            f"{name:<12}{whole}" + ("" if part is None else f", {part} of it deadheading")
            for name, (whole, part) in ({} if travel is None else travel.texts()).items()
        ]

    def _visit_lines(self) -> list[str]:
        if not self.instance.facilities:
            return []
        visits = sum(len(route.visits) for route in self.solution.routes)
        return [f"visits      {visits} of facilities, cost {self.solution.visit_cost}"]

    def _vehicles(self) -> str:
        if not self.instance.vehicles:
            return ""
        return f": {fleet_text(self.instance, self.solution)}"

    def _route_lines(self) -> list[str]:
        plan = self.solution
        differ = self.instance.vehicles or self.instance.facilities or has_own_numbers(plan)
        lines = []
        for number, route in zip(
            plan.numbers, plan.routes[:_MOST_ROUTE_LINES], strict=False
        ):
            if differ or route.travel is not None:
                travel = "" if route.travel is None else str(route.travel)
                figures = route_figures(self.instance, route, travel)
                lines.append(f"{f'route {number}':<12}{figures}")
        more = plan.num_routes - _MOST_ROUTE_LINES
        return [*lines, f"{'':<12}and {more} more"] if lines and more > 0 else lines

    def _bound_facts(self, bound: Bound) -> dict[str, Any]:
        facts = bound.to_dict()
        del facts["instance"]
        return {"value": facts.pop("bound"), **bound.gap_facts(self.cost), **facts}

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the street paths as plain dicts and lists.

        `result.solution.to_dict(result.instance)` has the paths.
        """
        plan = self.solution
        links = self.instance.links
        has_ids = any(link.ids for link in links)
        return {
            "instance": self.instance.name,
            "method": self.method,
            **({} if self.fallback is None else {"fallback": self.fallback}),
            "seed": self.seed,
            "threads": self.threads,
            "cost": plan.cost,
            **({} if self.bound is None else {"bound": self._bound_facts(self.bound)}),
            "deadhead": plan.deadhead,
            "service_cost": plan.service_cost,
            **({"visit_cost": plan.visit_cost} if self.instance.facilities else {}),
            **travel_facts(plan.travel),
            **shape_facts(self.shape),
            "num_routes": plan.num_routes,
            "seconds": round(self.seconds, 3),
            "iterations": self.iterations,
            "stopped_by": self.stopped_by,
            **({"notes": list(self.notes)} if self.notes else {}),
            "routes": [
                {
                    **route_facts(self.instance, plan, index),
                    "load": route.load,
                    "cost": route.cost,
                    **travel_facts(route.travel),
                    "services": [[s.link, int(s.reverse)] for s in route.services],
                    **(
                        {"ids": [list(links[s.link].ids) for s in route.services]}
                        if has_ids
                        else {}
                    ),
                }
                for index, route in enumerate(plan.routes)
            ],
            "history": [[round(h.seconds, 4), h.iteration, h.cost] for h in self.history],
        }
