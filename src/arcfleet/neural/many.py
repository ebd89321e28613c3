"""Many instances by a learned method: batches of similar size, one process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from arcfleet.errors import ArcfleetError
from arcfleet.instance.diagnose import require_solvable
from arcfleet.network import Network
from arcfleet.neural.hybrid import HybridJob, improve_job
from arcfleet.neural.proposals import stands_alone
from arcfleet.neural.solver import attempt_together
from arcfleet.workers import TaskFailure, child_seed, run_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from arcfleet.instance import Instance
    from arcfleet.neural.attempt import Attempt
    from arcfleet.neural.solver import LoadedModel
    from arcfleet.search import Result, Stop

    Failed = Callable[[int, str], None]
    Finished = Callable[[int, Result | TaskFailure], None]
    Numbered = tuple[int, Network]

# Held at a time, to find many of one size among them: instances, and squared terminals of
# all (512 MB of driving costs).
_MOST_HELD = 2048
_MOST_HELD_SQUARES = 1 << 27
# Of a batch: instances, squared arcs of all (256 MB as float32), and how much larger than
# its smallest member the largest may be, since all are padded to that.
_MOST_INSTANCES = 512
_MOST_SQUARES = 1 << 26
_MOST_PADDING = 1.25


class BatchMember(NamedTuple):
    """What came of one instance of a batch.

    Parameters
    ----------
    number
        Of the instance.
    attempt
        Its best plan.
    batch_seed
        By which the batch drew its plans.
    share
        The batch's seconds, divided by its instances.
    """

    number: int
    attempt: Attempt
    batch_seed: int
    share: float


def solve_in_batches(
    instances: Iterable[tuple[int, Instance]],
    *,
    loaded: LoadedModel,
    method: str,
    stop: Stop,
    seed: int,
    workers: int,
    finished: Finished,
) -> None:
    """Solve many instances by a learned method.

    Ctrl-C ends the running batch or searches; what has no plan then is not reported.

    Parameters
    ----------
    instances
        With their numbers.
    loaded, method, stop
        As `attempt_together` takes them.
    seed
        Instance i has `child_seed(seed, i)`; a batch draws by that of its first.
    workers
        Threads of the batches, processes of the hybrid's searches.
    finished
        Takes the number of an instance and what came of it.
    """
    members = attempt_in_batches(
        instances,
        loaded=loaded,
        method=method,
        stop=stop,
        seed_of=lambda number: child_seed(seed, number),
        threads=workers,
        failed=lambda number, message: finished(number, TaskFailure(message=message)),
    )
    if method == "hybrid":
        _search_on(members, stop, seed, workers, finished)
        return
    try:
        for member in members:
            drawn = method == "daam-sample"
            try:
                outcome: Result | TaskFailure = member.attempt.result(
                    method=method,
                    seed=member.batch_seed if drawn else child_seed(seed, member.number),
                    threads=workers,
                )
            except ArcfleetError as error:
                outcome = TaskFailure(message=str(error))
            finished(member.number, outcome)
    except KeyboardInterrupt:
        return  # between two batches: what is left was not begun


def _search_on(
    members: Iterable[BatchMember],
    stop: Stop,
    seed: int,
    workers: int,
    finished: Finished,
) -> None:
    numbers: list[int] = []

    def jobs() -> Iterator[HybridJob]:
        for number, attempt, _, share in members:
            numbers.append(number)
            own_seed = child_seed(seed, number)
            first: Result | None = None
            if attempt.plan is not None:
                first = attempt.result(method="hybrid", seed=own_seed, threads=1)
            yield HybridJob(
                instance=attempt.network.instance,
                first=first,
                seconds=share,
                stop=stop,
                seed=own_seed,
            )

    run_tasks(
        improve_job,
        jobs(),
        workers=workers,
        finished=lambda number, outcome: finished(numbers[number], outcome),
    )


def attempt_in_batches(
    instances: Iterable[tuple[int, Instance]],
    *,
    loaded: LoadedModel,
    method: str,
    stop: Stop,
    seed_of: Callable[[int], int],
    threads: int,
    failed: Failed,
) -> Iterator[BatchMember]:
    """Make the plans of many instances, batch by batch.

    Ctrl-C ends the running batch and is the end; members without a plan are left out.

    Parameters
    ----------
    instances
        With their numbers.
    loaded, method, stop, threads
        As `attempt_together` takes them; seconds count for each batch.
    seed_of
        Gives the seed of an instance by its number; a batch draws by that of its first.
    failed
        Told the number of an instance that cannot be solved, and why.
    """
    for group in _groups(instances, failed):
        for batch in _batches(group):
            seed = seed_of(min(number for number, _ in batch))
            started = time.perf_counter()
            try:
                attempts = attempt_together(
                    [network for _, network in batch],
                    loaded=loaded,
                    method=method,
                    stop=stop,
                    seed=seed,
                    threads=threads,
                    started=started,
                )
            except ArcfleetError as error:
                for number, _ in batch:
                    failed(number, str(error))
                continue
            share = (time.perf_counter() - started) / len(batch)
            for (number, _), attempt in zip(batch, attempts, strict=True):
                if attempt.plan is not None or attempt.stopped_by != "interrupt":
                    yield BatchMember(number, attempt, seed, share)
            if any(attempt.stopped_by == "interrupt" for attempt in attempts):
                return


def _groups(
    instances: Iterable[tuple[int, Instance]], failed: Failed
) -> Iterator[list[Numbered]]:
    """Give as many at a time as may be held; one that stands alone at once, by itself."""
    held: list[Numbered] = []
    squares = 0
    for number, network in _networks(instances, failed):
        if stands_alone(network):
            yield [(number, network)]
            continue
        square = len(network.terminal_nodes) ** 2
        if len(held) == _MOST_HELD or (held and squares + square > _MOST_HELD_SQUARES):
            yield held
            held, squares = [], 0
        held.append((number, network))
        squares += square
    if held:
        yield held


def _networks(
    instances: Iterable[tuple[int, Instance]], failed: Failed
) -> Iterator[Numbered]:
    for number, instance in instances:
        try:
            require_solvable(instance)
            network = Network(instance)
        except ArcfleetError as error:
            failed(number, str(error))
        else:
            yield number, network


def _batches(networks: list[Numbered]) -> Iterator[list[Numbered]]:
    """Cut a group into batches, the small instances first."""
    batch: list[Numbered] = []
    for number, network in sorted(networks, key=lambda x: (x[1].num_arcs, x[0])):
        if batch and (
            len(batch) == _MOST_INSTANCES
            or network.num_arcs > _MOST_PADDING * batch[0][1].num_arcs + 1
            or (len(batch) + 1) * network.num_arcs**2 > _MOST_SQUARES
        ):
            yield batch
            batch = []
        batch.append((number, network))
    if batch:
        yield batch
