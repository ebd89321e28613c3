"""Ruin and recreate: the method for one hard instance.

Strings of neighbouring tasks are taken out of the plan and put back greedily; simulated
annealing decides what to keep (Christiaens and Vanden Berghe 2020). One iteration is one
such step. The temperature falls over the iterations or the time that the stop rule gives.

With several threads as many chains run side by side and share what they find. The same
seed, number of iterations and number of threads give the same plan.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from arcfleet import _core
from arcfleet.errors import InstanceError, SolutionError
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
class RuinRecreateSettings:
    """How the search goes about it; the defaults serve all sizes.

    Parameters
    ----------
    average_removed
        Tasks taken out per iteration, on average.
    longest_string
        At most so many in a row from one route.
    split_rate, split_growth
        Share of strings that leave a gap in their middle, and the chance that the gap
        grows by one more task, again and again.
    blink_rate
        Share of places overlooked when a task is put back.
    first_temperature, last_temperature
        In mean distances from a street's end to the three nearest others.
    most_excess
        Load above capacity allowed to a route on the way, as a share of the capacity.
    target_fit
        Share of plans on the way that keep the capacity; the price of excess load
        follows it.
    """

    average_removed: float = 10.0
    longest_string: float = 10.0
    split_rate: float = 0.8
    split_growth: float = 0.99
    blink_rate: float = 0.01
    first_temperature: float = 1.0
    last_temperature: float = 0.1
    most_excess: float = 0.15
    target_fit: float = 0.3


def ruin_recreate(
    network: Network,
    *,
    method: str,
    stop: Stop,
    seed: int,
    threads: int,
    started: float,
    progress: ProgressCallback | None,
    start: Solution | None = None,
    settings: RuinRecreateSettings | None = None,
) -> Result:
    """Run ruin and recreate; the instance must have passed `diagnose`.

    With `start` the search goes on from that plan, otherwise from one of path scanning.
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
    seconds = 0.0
    if stop.seconds is not None:
        # Never 0, which would mean no limit.
        seconds = max(1e-6, stop.seconds - (engine_started - started))
    try:
        engine = _core.RuinRecreate(
            network.core,
            **asdict(settings or RuinRecreateSettings()),
            seed=seed,
            chains=threads,
            horizon_iterations=stop.iterations or 0,
            horizon_seconds=seconds,
            arcs=arcs,
            route_starts=route_starts,
        )
    except OverflowError:
        raise InstanceError(
            "expected a plan with one route per street to cost at most "
            f"{_core.MAX_DISTANCE}, found more in instance {network.instance.name!r}: "
            "use a coarser unit of cost"
        ) from None
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
