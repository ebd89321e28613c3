"""From a learned plan on by ruin and recreate: one stop rule, one history; no torch."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from arcfleet.network import Network
from arcfleet.search.progress import Progress
from arcfleet.search.result import Improvement, StoppedBy
from arcfleet.search.ruin_recreate import ruin_recreate
from arcfleet.search.stop import Stop

if TYPE_CHECKING:
    from arcfleet.instance import Instance
    from arcfleet.search import ProgressCallback, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridJob:
    """The search part of one instance of many, for a worker.

    Parameters
    ----------
    instance
        The problem.
    first
        As `improve` takes it.
    seconds
        That the learned plan took, which count, too.
    stop
        For both parts together.
    seed
        Of the search.
    """

    instance: Instance
    first: Result | None
    seconds: float
    stop: Stop
    seed: int


def improve_job(job: HybridJob, progress: ProgressCallback) -> Result:
    """Search on from the learned plan of a job, on one thread."""
    return improve(
        Network(job.instance),
        job.first,
        method="hybrid",
        # There may be nothing to search for.
        stop=job.stop if job.instance.required else Stop(iterations=1),
        seed=job.seed,
        threads=1,
        started=time.perf_counter() - job.seconds,
        progress=progress,
    )


def improve(
    network: Network,
    first: Result | None,
    *,
    method: str,
    stop: Stop,
    seed: int,
    threads: int,
    started: float,
    progress: ProgressCallback | None,
) -> Result:
    """Search on from a learned plan for what the stop rule leaves.

    Trying to make the learned plan was the first iteration; those of the search come
    after it.

    Parameters
    ----------
    network
        What is searched on.
    first
        The learned plan. None where the model found none within the fleet limit, or took
        too long: the search then begins by itself, as `ruin-recreate` does.
    method, seed, threads
        For the result; the last two also for the search.
    stop
        For both parts together.
    started
        `time.perf_counter()` when the first part began.
    progress
        Called several times a second.
    """
    if first is not None:
        first = replace(first, method=method, seed=seed, threads=threads)
        limit = _limit_met(first, stop, time.perf_counter() - started)
        if limit is not None:
            return replace(first, stopped_by=limit)
    left = stop
    if stop.iterations is not None:
        # Never 0: without a plan there is one iteration more than asked for.
        left = replace(stop, iterations=max(1, stop.iterations - 1))
    try:
        found = ruin_recreate(
            network,
            method=method,
            stop=left,
            seed=seed,
            threads=threads,
            started=started,
            progress=None if progress is None else _one_later(progress),
            start=None if first is None else first.solution,
        )
    except KeyboardInterrupt:
        if first is None:
            raise
        return replace(first, stopped_by="interrupt", seconds=time.perf_counter() - started)
    return _joined(first, found)


def _limit_met(first: Result, stop: Stop, seconds: float) -> StoppedBy | None:
    if first.stopped_by == "interrupt":
        return "interrupt"
    if stop.target_cost is not None and first.cost <= stop.target_cost:
        return "target_cost"
    if stop.iterations == 1:
        return "iterations"
    if stop.seconds is not None and seconds >= stop.seconds:
        return "seconds"
    return None


def _one_later(progress: ProgressCallback) -> ProgressCallback:
    return lambda now: progress(Progress(now.seconds, now.iterations + 1, now.cost))


def _joined(first: Result | None, found: Result) -> Result:
    later = [Improvement(x.seconds, x.iteration + 1, x.cost) for x in found.history]
    if first is None:
        return replace(found, iterations=found.iterations + 1, history=tuple(later))
    # The search counts the plan that it starts from as its own first one.
    better = [x for x in later if x.cost < first.cost]
    return replace(
        found,
        solution=found.solution if better else first.solution,
        iterations=found.iterations + 1,
        history=(*first.history, *better),
    )
