"""Many instances by a learned method: batches of similar size, one process."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from arcfleet.errors import (
    ArcfleetError,
    OptionError,
    UnsolvableError,
    WithoutLearnedPlanWarning,
)
from arcfleet.instance.diagnose import require_solvable
from arcfleet.network import Network
from arcfleet.neural.checkpoint import load_model, model_path, model_type_of
from arcfleet.neural.decoding import decoding_model
from arcfleet.neural.device import (
    OutOfMemoryError,
    choose_device,
    expected_to_fit,
    torch_threads,
    working_on,
)
from arcfleet.neural.plans import NO_PLAN
from arcfleet.neural.strategies import ANY_NUMBER, Proposer, one_plan, stands_alone
from arcfleet.search.path_scanning import FIVE_RULES, path_scanning
from arcfleet.search.result import Improvement, Result
from arcfleet.search.ruin_recreate import ruin_recreate
from arcfleet.search.run import RunContext
from arcfleet.search.stop import (
    Progress,
    Stop,
    iterations_left,
    stopped_by,
    time_limit,
)
from arcfleet.solution.plan import from_plan, to_plan
from arcfleet.workers import TaskFailure, child_seed, run_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from arcfleet.instance import Instance
    from arcfleet.neural.model import Model
    from arcfleet.neural.plans import Plans
    from arcfleet.search.stop import ProgressCallback, StoppedBy, StopRule
    from arcfleet.solution.plan import IntArray

    FlatPlan = tuple[IntArray, IntArray]
    Failed = Callable[[int, str], None]
    Finished = Callable[[int, Result | TaskFailure], None]
    Numbered = tuple[int, Network]


@dataclass(slots=True, kw_only=True)
class Attempt:
    """The best plan of one instance so far; the one thing here that changes.

    Parameters
    ----------
    network
        The instance.
    stop
        When to end.
    started
        `time.perf_counter()` when the work on it began.
    ended
        The same when it ended; None until then.
    """

    network: Network
    stop: StopRule
    started: float
    iterations: int = 0
    cost: int | None = None
    plan: FlatPlan | None = None
    history: list[Improvement] = field(default_factory=list)
    stopped_by: StoppedBy | None = None
    ended: float | None = None

    @property
    def seconds(self) -> float:
        """Wall-clock time from the start to the end, or to now."""
        now = time.perf_counter() if self.ended is None else self.ended
        return now - self.started

    @property
    def iterations_left(self) -> int:
        """Plans that the stop rule still allows, as far as is known now."""
        return iterations_left(self.stop, self.progress, otherwise=ANY_NUMBER)

    def offer(self, costs: Sequence[int], plan: Callable[[int], FlatPlan]) -> None:
        """Count plans in their order, until one of them meets a limit.

        Parameters
        ----------
        costs
            Of each; -1 where it breaks the fleet limit.
        plan
            Gives one of them by its position.
        """
        for position, cost in enumerate(costs):
            if cost >= 0 and (self.cost is None or cost < self.cost):
                self.cost = cost
                self.plan = plan(position)
                self.history.append(Improvement(self.seconds, self.iterations, cost))
            self.iterations += 1
            self.stopped_by = stopped_by(self.stop, self.progress)
            if self.stopped_by is not None:
                return

    def scan_paths(self, method: str) -> None:
        """Take a plan of path scanning, since time was too short for any other; say so.

        There is none still where the fleet limit does not allow it.
        """
        try:
            found = path_scanning(
                self.network, RunContext(method="ps", stop=Stop(iterations=FIVE_RULES))
            )
        except UnsolvableError:
            return
        warnings.warn(
            f"{method} goes without a learned plan for {self.network.instance.name!r}, "
            "with one of path scanning: the time limit was too short",
            WithoutLearnedPlanWarning,
            stacklevel=2,
        )
        self.offer([found.cost], lambda _: to_plan(self.network, found.solution))

    def warn_without_plan(self) -> None:
        """Say that the search has to do without a learned plan, and why."""
        name = self.network.instance.name
        why = "the fleet limit allows none that was made"
        if self.iterations == 0:
            why = "a fifth of the time limit was too short for one"
        warnings.warn(
            f"hybrid starts without a learned plan for {name!r}: {why}",
            WithoutLearnedPlanWarning,
            stacklevel=2,
        )

    def result(self, *, method: str, seed: int, threads: int) -> Result:
        """Give the best plan, or raise UnsolvableError where there is none."""
        instance = self.network.instance
        if self.plan is None:
            remedy = "give it more time, try another method"
            if method != "daam-sample" and self.iterations > 0:
                remedy = "it makes no more, so try another method, such as ruin-recreate,"
            raise UnsolvableError(
                f"found no plan with at most {instance.fleet_limit} routes for "
                f"{instance.name!r} in {self.iterations} iterations of {method}: "
                f"{remedy} or raise the fleet limit"
            )
        return Result(
            instance=instance,
            method=method,
            seed=seed,
            threads=threads,
            solution=from_plan(self.network, *self.plan),
            seconds=self.seconds,
            iterations=self.iterations,
            # A method that has made all its plans has done its iterations.
            stopped_by=self.stopped_by or "iterations",
            history=tuple(self.history),
        )

    @property
    def progress(self) -> Progress:
        """State of the work on this instance."""
        best = self.history[-1].iteration if self.history else -1
        return Progress(
            self.seconds, self.iterations, self.cost, self.iterations - 1 - best
        )


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
    stop: StopRule
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
    stop: StopRule,
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
    if isinstance(stop, Stop) and stop.iterations is not None:
        # Never 0: without a plan there is one iteration more than asked for.
        left = replace(stop, iterations=max(1, stop.iterations - 1))
    try:
        found = ruin_recreate(
            network,
            RunContext(
                method=method,
                stop=left,
                seed=seed,
                threads=threads,
                started=started,
                progress=None if progress is None else _one_later(progress),
                start=None if first is None else first.solution,
            ),
        )
    except KeyboardInterrupt:
        if first is None:
            raise
        return replace(first, stopped_by="interrupt", seconds=time.perf_counter() - started)
    return _joined(first, found)


def _limit_met(first: Result, stop: StopRule, seconds: float) -> StoppedBy | None:
    if first.stopped_by == "interrupt":
        return "interrupt"
    return stopped_by(stop, Progress(seconds, 1, first.cost))


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


_PROGRESS_SECONDS = 0.1

# Plans drawn at a time: few at first, so that short time limits are kept, then more.
_FIRST_ROUND = 4

_GROWTH = 4

_LARGEST_ROUND = {"cpu": 64, "cuda": 1024}

# Of the time limit of `hybrid`, the most that its learned plan may take.
_HYBRID_SHARE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A model that is ready to solve.

    Parameters
    ----------
    model
        Its weights are on `device`.
    device
        Where it works.
    """

    model: Model
    device: torch.device

    @property
    def serves(self) -> str:
        """Model type whose methods take this model."""
        return model_type_of(self.model).serves


def load_for_solving(
    model: Path | str | LoadedModel | None, device: str, model_type: str = "daam"
) -> LoadedModel:
    """Load a model file, or the shipped one, on to a device; a loaded one stays as it is.

    Parameters
    ----------
    model
        The file, None for the shipped one, or a loaded model.
    device
        Its name, or "auto".
    model_type
        Model type that is wanted.

    Raises
    ------
    OptionError
        If the model is none, the device is not there, or a loaded model is elsewhere or
        of another type.
    FileError
        If the model file is none or damaged.
    """
    if isinstance(model, LoadedModel):
        if device != "auto" and choose_device(device) != model.device:
            raise OptionError(
                f"expected a model loaded on device {device!r}, got one on "
                f"{str(model.device)!r}: leave the device out or load the model there"
            )
        if model.serves != model_type:
            raise OptionError(
                f"expected a loaded model of type {model_type!r}, got one of type "
                f"{model.serves!r}: load one of that type, or take the method of this one"
            )
        return model
    path = model_path(model, model_type)
    place = choose_device(device)
    loaded = load_model(path, place, serves=model_type)[0]
    return LoadedModel(model=decoding_model(loaded), device=place)


def solve_learned(network: Network, context: RunContext) -> Result:
    """Run a learned method with a loaded model; the instance must be solvable."""
    context.refuse_warm_start()
    method, seed, threads = context.method, context.seed, context.threads
    (attempt,) = attempt_together(
        [network],
        loaded=context.model,
        method=method,
        stop=context.stop,
        seed=seed,
        threads=threads,
        started=context.started,
        progress=context.progress,
    )
    if attempt.plan is None and attempt.stopped_by == "interrupt":
        raise KeyboardInterrupt
    if method != "hybrid":
        return attempt.result(method=method, seed=seed, threads=threads)
    first: Result | None = None
    if attempt.plan is not None:
        first = attempt.result(method=method, seed=seed, threads=threads)
    else:
        attempt.warn_without_plan()
    return improve(
        network,
        first,
        method=method,
        stop=context.stop,
        seed=seed,
        threads=threads,
        started=context.started,
        progress=context.progress,
    )


def attempt_together(
    networks: Sequence[Network],
    *,
    loaded: LoadedModel,
    method: str,
    stop: StopRule,
    seed: int,
    threads: int,
    started: float,
    progress: ProgressCallback | None = None,
) -> list[Attempt]:
    """Make the plans of some instances side by side; of `hybrid` the learned part.

    The first plans have the time limits of all instances together, those of `hybrid` a
    fifth of it. If they take longer there are none for `hybrid`, and those of path scanning
    for the others. Ctrl-C ends it: attempts that it cut short say so and keep what they
    have.

    Parameters
    ----------
    networks
        The instances, of similar size; a large one must come alone.
    loaded
        The model.
    method
        One of the learned methods.
    stop
        For each instance; after the first plans, seconds count for all together.
    seed
        Of the draws for all.
    threads
        For torch and the path optimiser.
    started
        `time.perf_counter()` when the caller asked.
    progress
        Called several times a second.
    """
    attempts = [Attempt(network=x, stop=stop, started=started) for x in networks]
    watch = _Watch(attempts, method, stop, started, progress)
    try:
        with (
            torch_threads(threads),
            working_on(loaded.device),
            torch.inference_mode(),
            expected_to_fit(partial(_too_large, loaded.device)),
        ):
            _attempt(attempts, watch, loaded, method, seed, threads)
    except _TimeIsUp:
        for attempt in attempts:
            if attempt.iterations == 0 and method != "hybrid":
                attempt.scan_paths(method)
        _end(attempts, "seconds")
    except KeyboardInterrupt:
        _end(attempts, "interrupt")
    ended = time.perf_counter()
    for attempt in attempts:
        attempt.ended = ended
    return attempts


def _attempt(
    attempts: Sequence[Attempt],
    watch: _Watch,
    loaded: LoadedModel,
    method: str,
    seed: int,
    threads: int,
) -> None:
    if not any(attempt.network.num_tasks for attempt in attempts):
        for attempt in attempts:
            attempt.offer([0], _empty_plan)
        return
    watch.look()
    generator = torch.Generator()
    # torch takes 63 bits; numpy mixes all 64 of the seed into them.
    mixed = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    generator.manual_seed(int(mixed) >> 1)
    proposer = Proposer(
        loaded.model,
        [attempt.network for attempt in attempts],
        loaded.device,
        threads=threads,
        generator=generator,
    )
    first = proposer.of_views if method == "daam" else proposer.greedy
    if loaded.serves != "daam":
        first = proposer.decoded
    watch.look()
    in_need = None
    if method == "daam" and watch.limit is not None:
        in_need = proposer.greedy(watch.look)
    began = time.perf_counter()
    try:
        plans = first(watch.look)
    except (_TimeIsUp, KeyboardInterrupt):
        if in_need is not None:
            _offer_legal(attempts, in_need)
        raise
    _offer(attempts, range(len(attempts)), plans)
    watch.limit = time_limit(watch.stop)
    # A round that would not be finished in time is lost: better a smaller one.
    in_time = watch.number_in_time(time.perf_counter() - began)
    size, most = max(1, min(_FIRST_ROUND, in_time)), _LARGEST_ROUND[loaded.device.type]
    while method == "daam-sample":
        watch.look()
        rows = [i for i, attempt in enumerate(attempts) if attempt.stopped_by is None]
        if not rows:
            return
        # One that is near its limit leaves some unused, and does not slow the others.
        samples = min(size, max(attempts[i].iterations_left for i in rows))
        began = time.perf_counter()
        for plans in proposer.sample(rows, samples, watch.look):
            _offer(attempts, rows, plans)
            if all(attempts[row].stopped_by is not None for row in rows):
                return
        each = (time.perf_counter() - began) / samples
        size = max(1, min(most, size * _GROWTH, watch.number_in_time(each)))


def _offer(attempts: Sequence[Attempt], rows: Sequence[int], plans: Plans) -> None:
    for place, row in enumerate(rows):
        if attempts[row].stopped_by is None:
            plan = partial(one_plan, plans, place)
            attempts[row].offer(plans.costs[place].tolist(), plan)


def _offer_legal(attempts: Sequence[Attempt], plans: Plans) -> None:
    """Offer one plan of each attempt that has one."""
    for row, attempt in enumerate(attempts):
        if plans.costs[row, 0] != NO_PLAN:
            attempt.offer(plans.costs[row].tolist(), partial(one_plan, plans, row))


def _empty_plan(_: int) -> tuple[IntArray, IntArray]:
    return np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int32)


def _end(attempts: Sequence[Attempt], limit: StoppedBy) -> None:
    for attempt in attempts:
        if attempt.stopped_by is None:
            attempt.stopped_by = limit


class _TimeIsUp(Exception):  # noqa: N818
    """Ends a round of plans in its midst; what was complete before is kept."""


class _Watch:
    """Looks at the clock while plans are made, and reports."""

    def __init__(
        self,
        attempts: Sequence[Attempt],
        method: str,
        stop: StopRule,
        started: float,
        progress: ProgressCallback | None,
    ) -> None:
        self.attempts = attempts
        self.stop = stop
        #: Seconds, of what is made now.
        self.limit = time_limit(stop)
        if self.limit is not None:
            share = _HYBRID_SHARE if method == "hybrid" else 1.0
            self.limit *= share * len(attempts)
        self.started = started
        self.progress = progress
        self.reported = started

    def number_in_time(self, seconds_each: float) -> int:
        """Say how many plans the time limit leaves room for."""
        if self.limit is None:
            return ANY_NUMBER
        left = self.limit - (time.perf_counter() - self.started)
        return int(min(ANY_NUMBER, left / max(seconds_each, 1e-9)))

    def look(self, done: int = 0, total: int = 0) -> None:
        """Report now and then; raise _TimeIsUp when it is."""
        now = time.perf_counter()
        if self.progress is not None and now - self.reported >= _PROGRESS_SECONDS:
            self.reported = now
            first = self.attempts[0]
            self.progress(first.progress)
        if self.limit is not None and now - self.started >= self.limit:
            raise _TimeIsUp


def _too_large(device: torch.device) -> str:
    return (
        f"expected the instance to fit in the memory of device {str(device)!r}, found "
        "too little: use another device or split it into smaller areas"
    )


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
    stop: StopRule,
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
    member: BatchMember, result: Callable[[BatchMember], Result], stop: StopRule, seed: int
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
    stop: StopRule,
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
