"""MAENS: a population of plans, crossover, and local search with large steps.

The memetic algorithm with extended neighbourhood search of Tang, Mei and Yao (2009), with
the slips of the published program corrected; docs/explanation/maens.md lists them. One
iteration is one offspring. The paper's 500 generations of 180 offspring are 90,000
iterations.

The work is done by one thread. The same seed and number of iterations give the same plan.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from arcfleet import _core
from arcfleet._checks import check_number, check_whole_number
from arcfleet.search.run import run_engine

if TYPE_CHECKING:
    from arcfleet.network import Network
    from arcfleet.search.result import Result
    from arcfleet.search.run import RunContext


@dataclass(frozen=True, slots=True, kw_only=True)
class MaensSettings:
    """Parameters of MAENS; the defaults are the paper's.

    Parameters
    ----------
    population
        Number of plans that survive a generation.
    offspring
        Number of new plans in a generation, for each that survives.
    trials
        Number of failed attempts in a row, at the start, to find a plan of another cost;
        after these the population stays smaller.
    local_search_rate
        Share of offspring that are improved by local search.
    merge_pairs
        Largest number of pairs of routes that one step of merge-split evaluates.
    rank_by_cost_rate
        Share of comparisons by cost between plans that do not both keep the capacity.
    tries_per_offspring
        Number of crossovers until one gives a plan of another cost than the present ones;
        after these the generation has one plan less.
    """

    population: int = 30
    offspring: int = 6
    trials: int = 50
    local_search_rate: float = 0.2
    merge_pairs: int = 100
    rank_by_cost_rate: float = 0.45
    tries_per_offspring: int = 5

    def __post_init__(self) -> None:
        """Check every setting."""
        for name in ("population", "offspring", "trials", "tries_per_offspring"):
            check_whole_number(name, getattr(self, name), 1, 10_000)
        check_whole_number("merge_pairs", self.merge_pairs, 0, 2**31 - 1)
        for name in ("local_search_rate", "rank_by_cost_rate"):
            check_number(name, getattr(self, name), 0, 1)


def maens(network: Network, context: RunContext) -> Result:
    """Run MAENS; the instance must have passed `diagnose`.

    A plan to warm-start from joins the first population.
    """
    arcs, route_starts = context.warm_start(network)

    def make_engine() -> _core.Maens:
        return _core.Maens(
            network.core,
            **asdict(context.params or MaensSettings()),
            seed=context.seed,
            arcs=arcs,
            route_starts=route_starts,
        )

    return run_engine(make_engine, network, context)
