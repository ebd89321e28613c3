"""MAENS: a population of plans, crossover, and local search with large steps.

The memetic algorithm with extended neighbourhood search of Tang, Mei and Yao (2009), with
the slips of the published program corrected; docs/maens.md lists them. One iteration is
one offspring. The paper's 500 generations of 180 offspring are 90,000 iterations.

The work is done by one thread. The same seed and number of iterations give the same plan.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from arcfleet import _core
from arcfleet._checks import check_whole_number
from arcfleet.errors import OptionError, SolutionError
from arcfleet.search.run import run_engine
from arcfleet.solution.checker import check
from arcfleet.solution.plan import to_plan

if TYPE_CHECKING:
    from arcfleet.network import Network
    from arcfleet.search.progress import ProgressCallback
    from arcfleet.search.result import Result
    from arcfleet.search.stop import Stop
    from arcfleet.solution import Solution


@dataclass(frozen=True, slots=True, kw_only=True)
class MaensSettings:
    """How the search goes about it; the defaults are the paper's.

    Parameters
    ----------
    population
        Plans that survive a generation.
    offspring
        New plans in a generation, for each that survives.
    trials
        Failed attempts in a row, at the start, to find a plan of another cost; after
        these the population stays smaller.
    local_search_rate
        Share of offspring that are improved by local search.
    merge_pairs
        Most pairs of routes that one step of merge-split looks at.
    rank_by_cost_rate
        Share of comparisons by cost between plans that do not both keep the capacity.
    tries_per_offspring
        Crossovers until one gives a plan of another cost than those at hand; after these
        the generation does with one plan less.
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
        most = 10_000
        for name in ("population", "offspring", "trials", "tries_per_offspring"):
            check_whole_number(name, getattr(self, name), 1, most)
        check_whole_number("merge_pairs", self.merge_pairs, 0, 2**31 - 1)
        for name in ("local_search_rate", "rank_by_cost_rate"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and 0 <= value <= 1):
                raise OptionError(f"expected {name} between 0 and 1, got {value!r}")


def maens(
    network: Network,
    *,
    method: str,
    stop: Stop,
    seed: int,
    threads: int,
    started: float,
    progress: ProgressCallback | None,
    start: Solution | None = None,
    settings: MaensSettings | None = None,
) -> Result:
    """Run MAENS; the instance must have passed `diagnose`.

    A plan given as `start` joins the first population.
    """
    arcs = route_starts = np.zeros(0, dtype=np.int32)
    if start is not None:
        report = check(network.instance, start)
        if not report.ok:
            raise SolutionError(
                f"expected a plan without faults to start from, got: {report.faults[0]}"
            )
        arcs, route_starts = to_plan(network, start)
    engine_started = time.perf_counter()
    engine = _core.Maens(
        network.core,
        **asdict(settings or MaensSettings()),
        seed=seed,
        arcs=arcs,
        route_starts=route_starts,
    )
    return run_engine(
        engine,
        network,
        method=method,
        stop=stop,
        seed=seed,
        threads=threads,
        started=started,
        engine_started=engine_started,
        progress=progress,
    )
