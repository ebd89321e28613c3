"""Solving many instances: results in order, one bad instance is reported and not fatal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcfleet._checks import check_whole_number, whole
from arcfleet.errors import ArcfleetError, OptionError
from arcfleet.instance import Instance
from arcfleet.methods import (
    as_instance,
    chosen_settings,
    chosen_stop,
    find_method,
    load_for_method,
    require_operations,
    solve,
)
from arcfleet.search.stop import copied
from arcfleet.workers import (
    PROCESSES,
    TaskFailure,
    check_sendable,
    check_workers,
    child_seed,
    run_tasks,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from arcfleet.methods import Method
    from arcfleet.neural.model import Model
    from arcfleet.neural.solver import LoadedModel
    from arcfleet.search import ProgressCallback, Result, StopRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An instance that could not be solved, and why.

    Parameters
    ----------
    instance
        Name of the instance; its path where it could not be read.
    message
        Reason, in one sentence.
    """

    instance: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProgress:
    """State of `solve_many`.

    Parameters
    ----------
    finished, total
        Number of instances that have an outcome, and of all.
    position
        Position of the instance that was finished last, from 0.
    outcome
        Its outcome.
    """

    finished: int
    total: int
    position: int
    outcome: Result | Failure


#: Called in the calling process whenever an instance is finished.
BatchProgressCallback = Callable[[BatchProgress], None]


def solve_many(
    instances: Iterable[Instance | Path | str],
    method: str | Method = "auto",
    *,
    stop: StopRule | None = None,
    seconds: float | None = None,
    params: object = None,
    seed: int = 0,
    workers: int | None = None,
    progress: BatchProgressCallback | None = None,
    model: Path | str | LoadedModel | Model | None = None,
    device: str = "auto",
    executor: str = PROCESSES,
) -> list[Result | Failure]:
    """Solve each instance on one thread, several at a time.

    An instance that cannot be read or solved becomes a Failure and the others go on. The
    number of workers changes no plan, as far as the stop rule does not depend on the
    clock. Ctrl-C ends the running searches, which keep their best plan so far; instances
    not yet begun give a Failure. Workers are spawned processes: with more than one, a
    script must guard its calls by `if __name__ == "__main__":`.

    A learned method solves instances of similar size in batches, in the calling process.
    The seconds of a Result, and of the stop rule, are then those of its batch, and
    `daam-sample` samples by the seed of the batch's first instance.

    Parameters
    ----------
    instances
        Instances, or files that hold them.
    method
        Name of a method in `METHODS`, or "auto" for the best one.
    stop
        Stop rule of each search; by default that of the method. A rule with a memory is
        copied for each of them.
    seconds
        Time limit of each search, short for `stop=Stop(seconds=...)`.
    params
        Settings of the method, as `solve` takes them.
    seed
        Seed of all instances; instance i is solved with `child_seed(seed, i)`,
        which its Result states.
    workers
        Number of processes; 1, the default, works in the calling one. For a learned
        method, threads. With Ray the most cores to use; by default all of the cluster.
    progress
        Callback, called whenever an instance is finished.
    model, device
        Model and device of a learned method, as `solve` takes them.
    executor
        "processes" of this machine, or "ray" for those of a Ray cluster.

    Returns
    -------
    outcomes
        One Result or Failure per instance, in the order of the instances.

    Raises
    ------
    OptionError
        If another argument than an instance is wrong.
    FileError
        If the model file is not one or is corrupt.
    """
    if isinstance(instances, str | Path | Instance):
        raise OptionError("expected several instances, got one: put it into a list")
    given = list(instances)
    names = [x.name if isinstance(x, Instance) else str(x) for x in given]
    outcomes: dict[int, Result | Failure] = {}

    def finish(position: int, outcome: Result | TaskFailure) -> None:
        if isinstance(outcome, TaskFailure):
            outcomes[position] = Failure(instance=names[position], message=outcome.message)
        else:
            outcomes[position] = outcome
        if progress is not None:
            progress(
                BatchProgress(
                    finished=len(outcomes),
                    total=len(given),
                    position=position,
                    outcome=outcomes[position],
                )
            )

    solve_each(
        ((position, partial(as_instance, source)) for position, source in enumerate(given)),
        setup(method, stop, seconds, params, seed, model, device),
        workers=workers,
        executor=executor,
        count=len(given),
        finished=finish,
    )
    late = "interrupted before it was begun"
    return [
        outcomes.get(position) or Failure(instance=name, message=late)
        for position, name in enumerate(names)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How each of many instances is solved."""

    method: Method
    stop: StopRule
    settings: Any
    seed: int  # of all; instance i has its child number i
    loaded: LoadedModel | None


def setup(
    method: str | Method = "auto",
    stop: StopRule | None = None,
    seconds: float | None = None,
    params: object = None,
    seed: int = 0,
    model: Path | str | LoadedModel | Model | None = None,
    device: str = "auto",
) -> Setup:
    """Return how to solve, from arguments as `solve_many` takes them."""
    chosen = find_method(method)
    rule = chosen_stop(chosen, stop, seconds)
    settings = chosen_settings(chosen, params)
    seed = whole(seed)
    check_whole_number("seed", seed, 0, 2**64 - 1)
    return Setup(
        method=chosen,
        stop=rule,
        settings=settings,
        seed=seed,
        loaded=load_for_method(chosen, model, device),
    )


def solve_each(
    sources: Iterable[tuple[int, Callable[[], Instance]]],
    how: Setup,
    *,
    workers: int | None,
    executor: str,
    count: int,
    finished: Callable[[int, Result | TaskFailure], None],
) -> None:
    """Solve instances by their positions, and report each as it ends.

    Parameters
    ----------
    sources
        Position of each instance, of which its seed depends, and the function that reads
        it.
    how
        Method, stop rule, settings, seed and model.
    workers, executor
        As in `solve_many`.
    count
        Number of instances, which need no more workers.
    finished
        Callback with the position and the outcome; not called for what Ctrl-C left out.
    """
    workers = None if workers is None else whole(workers)
    check_workers(workers, executor)
    positions: list[int] = []  # of the jobs: what cannot be read becomes none

    def readable() -> Iterator[tuple[int, Instance]]:
        for position, source in sources:
            try:
                instance = source()
                require_operations(how.method, instance)
            except ArcfleetError as error:
                finished(position, TaskFailure(message=str(error)))
                continue
            yield position, instance

    def jobs() -> Iterator[_Job]:
        for position, instance in readable():
            positions.append(position)
            seed = child_seed(how.seed, position)
            yield _Job(instance, how.method, copied(how.stop), how.settings, seed)

    if how.loaded is None:
        if executor == PROCESSES and (workers or 1) > 1:
            check_sendable(method=how.method, stop=how.stop, settings=how.settings)
        run_tasks(
            _solve_job,
            jobs(),
            workers=None if workers is None else min(workers, max(count, 1)),
            executor=executor,
            finished=lambda number, outcome: finished(positions[number], outcome),
        )
        return
    if executor != PROCESSES:
        raise OptionError(
            f"expected executor {PROCESSES!r} for method {how.method.name!r}, which solves "
            f"batches in the calling process, got {executor!r}: give each machine a part "
            "of the instances"
        )
    from arcfleet.neural.solver import solve_in_batches

    solve_in_batches(
        readable(),
        loaded=how.loaded,
        method=how.method.name,
        stop=how.stop,
        seed=how.seed,
        workers=workers or 1,
        finished=finished,
    )


@dataclass(frozen=True, slots=True)
class _Job:
    instance: Instance
    method: Method
    stop: StopRule
    settings: Any
    seed: int


def _solve_job(job: _Job, progress: ProgressCallback) -> Result:
    # The method itself, not its name: a worker does not know what a script registered.
    return solve(
        job.instance,
        job.method,
        stop=job.stop,
        params=job.settings,
        seed=job.seed,
        progress=progress,
    )
