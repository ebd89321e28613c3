"""Many instances by a learned method: batches of similar size, one process."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from arcfleet.errors import ArcfleetError
from arcfleet.instance.diagnose import require_solvable
from arcfleet.network import Network
from arcfleet.neural.hybrid import HybridJob, improve_job
from arcfleet.neural.out_of_memory import OutOfMemoryError
from arcfleet.neural.proposals import stands_alone
from arcfleet.neural.solver import attempt_together
from arcfleet.workers import TaskFailure, child_seed, run_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from arcfleet.instance import Instance
    from arcfleet.neural.attempt import Attempt
    from arcfleet.neural.solver import LoadedModel
    from arcfleet.search import ProgressCallback, Result, Stop

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

    Ctrl-C ends the running batch or searches. Members of a batch that were not searched
    on are then reported with their learned plan; what was not begun is not reported.

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
    batches = attempt_in_batches(
        instances,
        loaded=loaded,
        method=method,
        stop=stop,
        seed_of=lambda number: child_seed(seed, number),
        threads=workers,
        failed=lambda number, message: finished(number, TaskFailure(message=message)),
    )
    usual = signal.getsignal(signal.SIGINT)
    waiting: dict[int, BatchMember] = {}  # decoded, and not yet reported
    numbers: list[int] = []  # of the tasks of `run_tasks`

    def members() -> Iterator[BatchMember]:
        try:
            while True:
                with _interrupts_as(usual):
                    batch = next(batches, None)
                if batch is None:
                    return
                waiting.update({member.number: member for member in batch})
                if _was_interrupted(batch):
                    raise KeyboardInterrupt
                for member in batch:
                    numbers.append(member.number)
                    yield member
        except KeyboardInterrupt:
            if _is_replaced(usual):
                signal.raise_signal(signal.SIGINT)  # so that `run_tasks` knows of it

    def take(position: int, outcome: Result | TaskFailure) -> None:
        del waiting[numbers[position]]
        finished(numbers[position], outcome)

    result = partial(_result, method=method, seed=seed, threads=workers)
    if method == "hybrid":
        jobs = (_job(member, result, stop, seed) for member in members())
        run_tasks(improve_job, jobs, workers=workers, finished=take)
    else:

        def give(member: BatchMember, _: ProgressCallback) -> Result:
            return result(member)

        run_tasks(give, members(), workers=1, finished=take)
    for number, member in waiting.items():
        finished(number, _interrupted(member, result, method))


def _result(member: BatchMember, *, method: str, seed: int, threads: int) -> Result:
    seed = child_seed(seed, member.number)
    if method == "daam-sample":
        seed = member.batch_seed
    if method != "hybrid":
        return member.attempt.result(method=method, seed=seed, threads=threads)
    first = member.attempt.result(method=method, seed=seed, threads=1)
    # As if its share of the batch had been all that there was.
    found = tuple(replace(step, seconds=member.share) for step in first.history)
    return replace(first, seconds=member.share, history=found)


def _job(
    member: BatchMember, result: Callable[[BatchMember], Result], stop: Stop, seed: int
) -> HybridJob:
    first = None
    if member.attempt.plan is not None:
        first = result(member)
    else:
        member.attempt.warn_without_plan()
    return HybridJob(
        instance=member.attempt.network.instance,
        first=first,
        seconds=member.share,
        stop=stop,
        seed=child_seed(seed, member.number),
    )


def _interrupted(
    member: BatchMember, result: Callable[[BatchMember], Result], method: str
) -> Result | TaskFailure:
    """Give what there is of a member that Ctrl-C kept from being searched or reported."""
    searches = method == "hybrid"
    attempt = member.attempt
    if attempt.plan is None and (searches or attempt.stopped_by == "interrupt"):
        return TaskFailure(message="interrupted before there was a plan", interrupted=True)
    try:
        found = result(member)
    except ArcfleetError as error:
        return TaskFailure(message=str(error))
    return replace(found, stopped_by="interrupt") if searches else found


def _was_interrupted(batch: Iterable[BatchMember]) -> bool:
    return any(member.attempt.stopped_by == "interrupt" for member in batch)


def _is_replaced(usual: object) -> bool:
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) is not usual


@contextmanager
def _interrupts_as(usual: Any) -> Iterator[None]:
    """Let Ctrl-C end the block at once, where `run_tasks` would only take note of it."""
    if not _is_replaced(usual):
        yield
        return
    before = signal.signal(signal.SIGINT, usual)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def attempt_in_batches(
    instances: Iterable[tuple[int, Instance]],
    *,
    loaded: LoadedModel,
    method: str,
    stop: Stop,
    seed_of: Callable[[int], int],
    threads: int,
    failed: Failed,
) -> Iterator[list[BatchMember]]:
    """Make the plans of many instances, batch by batch.

    Ctrl-C ends the running batch, and that batch is the last one. A batch that does not
    fit in memory is halved, again and again.

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

    def attempt(batch: list[Numbered]) -> list[BatchMember]:
        seed = seed_of(min(number for number, _ in batch))
        started = time.perf_counter()
        attempts = attempt_together(
            [network for _, network in batch],
            loaded=loaded,
            method=method,
            stop=stop,
            seed=seed,
            threads=threads,
            started=started,
        )
        share = attempts[0].seconds / len(batch)
        return [
            BatchMember(number, attempt, seed, share)
            for (number, _), attempt in zip(batch, attempts, strict=True)
        ]

    for group in _groups(instances, failed):
        for batch in _batches(group):
            members = _halving(attempt, batch, failed)
            yield members
            if _was_interrupted(members):
                return


def _halving(
    attempt: Callable[[list[Numbered]], list[BatchMember]],
    batch: list[Numbered],
    failed: Failed,
) -> list[BatchMember]:
    try:
        return attempt(batch)
    except Exception as error:
        # Perhaps a mistake of ours; the other batches are still worth their time.
        if not isinstance(error, OutOfMemoryError) or len(batch) == 1:
            for number, _ in batch:
                failed(number, _message(error))
            return []
    # Outside of the handler, where the error no longer holds what filled the memory.
    half = len(batch) // 2
    members = _halving(attempt, batch[:half], failed)
    if not _was_interrupted(members):
        members += _halving(attempt, batch[half:], failed)
    return members


def _message(error: Exception) -> str:
    """Say what is wrong, as `run_tasks` does."""
    if isinstance(error, ArcfleetError):
        return str(error)
    if isinstance(error, MemoryError):
        return "expected it to fit in memory, found too little"
    return f"unexpected {type(error).__name__}: {error}"


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
        except Exception as error:
            failed(number, _message(error))
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
