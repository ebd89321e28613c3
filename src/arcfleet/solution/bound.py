"""How good a plan can be at best: a lower bound of its cost, and the gap to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from arcfleet._checks import one_line
from arcfleet._display import notebook_html

if TYPE_CHECKING:
    from collections.abc import Mapping

    from arcfleet.instance import Instance

#: What ended the computation: a limit of `Stop`, Ctrl-C, an error of the caller's progress
#: callback, the end of the search that it ran beside, or that no violated cut was found.
BoundStoppedBy = Literal[
    "running",
    "no more cuts",
    "seconds",
    "iterations",
    "no_improvement",
    "target_cost",
    "search",
    "interrupt",
    "error",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A proven lower bound: no plan of the instance costs less.

    Parameters
    ----------
    instance
        The instance.
    value
        The bound, in the unit of all costs.
    seconds
        Wall-clock time.
    iterations
        Number of linear and integer programs that were solved.
    cuts
        Number of cuts that were found, by family: "connected", "odd", "capacity".
    ignored
        Rules of the instance that the bound leaves out. They only make plans dearer, so
        the bound holds; the gap may be wider than it need be.
    stopped_by
        Reason for the end; "running" in a progress callback.
    """

    instance: Instance = field(repr=False)
    value: int
    seconds: float
    iterations: int
    cuts: Mapping[str, int] = field(default_factory=dict, hash=False)
    ignored: tuple[str, ...] = ()
    stopped_by: BoundStoppedBy = "running"

    def gap_percent(self, cost: int) -> float:
        """Return how far above the bound a cost is, in percent of the bound.

        No plan is more than that dearer than the best possible one.
        """
        if cost == self.value:
            return 0.0
        return 100.0 * (cost - self.value) / self.value if self.value else math.inf

    def proves(self, cost: int) -> bool:
        """Return whether a plan of this cost is proven to be the best possible."""
        return cost <= self.value

    def gap_text(self, cost: int) -> str:
        """Return in words how good a plan of this cost is; the gap is rounded up."""
        if self.proves(cost):
            return "proven to be the best possible"
        gap = self.gap_percent(cost)
        if not math.isfinite(gap):
            return "no statement on how far above the best possible"
        digits = 1 if gap >= 0.1 else 2
        # Costs are integers, so the exact gap cannot hide below the rounding.
        rounded = max(-(-(cost - self.value) * 100 * 10**digits // self.value), 1)
        return f"at most {rounded / 10**digits:.{digits}f} % above the best possible"

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def _repr_html_(self) -> str | None:
        return notebook_html(self)

    def summary(self, cost: int | None = None) -> str:
        """Return the bound and how it was found, in a few lines.

        Parameters
        ----------
        cost
            Cost of a plan to compare with it.
        """
        unit = f" {self.instance.cost_unit}" if self.instance.cost_unit else ""
        cuts = ", ".join(f"{count} {name}" for name, count in self.cuts.items())
        lines = [
            f"instance    {one_line(self.instance.name)}",
            f"bound       {self.value}{unit}: no plan costs less",
        ]
        if cost is not None:
            lines += [f"plan        {cost}{unit}", f"gap         {self.gap_text(cost)}"]
        lines += [
            f"cuts        {cuts or '-'}",
            f"time        {self.seconds:.2f} s, {self.iterations} iterations, "
            f"stopped by {self.stopped_by.replace('_', ' ')}",
        ]
        if self.ignored:
            lines.append(
                f"left out    {', '.join(self.ignored)}; the bound holds with them"
            )
        return "\n".join(lines)

    def to_dict(self, cost: int | None = None) -> dict[str, Any]:
        """Return everything as plain dicts and lists, with the gap of a plan's cost."""
        facts: dict[str, Any] = {"instance": self.instance.name, "bound": self.value}
        if cost is not None:
            facts |= {"cost": cost, **self.gap_facts(cost)}
        return facts | {
            "seconds": round(self.seconds, 3),
            "iterations": self.iterations,
            "cuts": dict(self.cuts),
            "ignored": list(self.ignored),
            "stopped_by": self.stopped_by,
        }

    def gap_facts(self, cost: int) -> dict[str, Any]:
        """Return gap and proof of a plan's cost as a plain dict."""
        gap = self.gap_percent(cost)
        return {
            "gap_percent": round(gap, 6) if math.isfinite(gap) else None,
            "proven_optimal": self.proves(cost),
        }
