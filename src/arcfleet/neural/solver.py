"""Solving by a learned method: time limits, attempts, instances in batches, data sets."""

from __future__ import annotations

import copy
import ctypes
import time
import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

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
from arcfleet.neural.batch import batch_from_arrays, batch_from_networks
from arcfleet.neural.checkpoint import (
    MODEL_TYPES,
    load_model,
    model_path,
    registered_type,
)
from arcfleet.neural.decoding import OnStep, decoding_model
from arcfleet.neural.decoding_run import DecodingRun, generator_seeds, hashed_seeds
from arcfleet.neural.device import (
    OutOfMemoryError,
    choose_device,
    expected_to_fit,
    torch_threads,
    working_on,
)
from arcfleet.neural.model import Model
from arcfleet.neural.plans import NO_PLAN, Plans, flat_plan
from arcfleet.neural.strategies import (
    STRATEGIES,
    Strategy,
    find_strategy,
    method_strategies,
)
from arcfleet.neural.windows import stands_alone
from arcfleet.search.path_scanning import FIVE_RULES, path_scanning
from arcfleet.search.result import Improvement, Result
from arcfleet.search.run import RunContext
from arcfleet.search.split import drivable
from arcfleet.search.stop import (
    ANY_NUMBER,
    CallerError,
    Progress,
    Stop,
    StoppedBy,
    StopRule,
    copied,
    iterations_left,
    stopped_by,
    time_limit,
)
from arcfleet.solution.plan import to_plan
from arcfleet.workers import TaskFailure, child_seed, first_interrupt_sets

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from arcfleet.datasets import Dataset
    from arcfleet.instance import Instance
    from arcfleet.solution import Solution
    from arcfleet.solution.plan import IntArray

    FlatPlan = tuple[IntArray, IntArray]
    Failed = Callable[[int, Exception], None]
    Finished = Callable[[int, Result | TaskFailure], None]
    Numbered = tuple[int, Network]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A model that is ready to solve, with its weights on a device."""

    model: Model
    device: torch.device

    @property
    def serves(self) -> str | None:
        """Model type whose methods take this model; None for a class of a user's own."""
        known = registered_type(self.model)
        return None if known is None else known.serves


def load_for_solving(
    model: Path | str | LoadedModel | Model | None, device: str, model_type: str = "daam"
) -> LoadedModel:
    """Load a model on to a device; a loaded model is returned as it is.

    Parameters
    ----------
    model
        Model file, loaded model, a module of torch, which is copied, or None for the
        shipped model.
    device
        Name of the device, or "auto".
    model_type
        Model type that is needed.
    """
    if isinstance(model, torch.nn.Module):
        model = _loaded_module(model, device)
        device = "auto"
    if isinstance(model, LoadedModel):
        if device != "auto" and choose_device(device) != model.device:
            raise OptionError(
                f"expected a model loaded on device {device!r}, got one on "
                f"{str(model.device)!r}: leave the device out or load the model there"
            )
        if model.serves not in (None, model_type):
            raise OptionError(
                f"expected a loaded model of type {model_type!r}, got one of type "
                f"{model.serves!r}: load one of that type, or take the method of this one"
            )
        return model
    path, place = model_path(model, model_type), choose_device(device)
    loaded = load_model(path, place, serves=model_type)[0]
    return LoadedModel(model=decoding_model(loaded), device=place)


def _loaded_module(module: torch.nn.Module, device: str) -> LoadedModel:
    """Return a copy of a module, where it is unless a device is named."""
    if not isinstance(module, Model):
        raise OptionError(
            "expected a torch module of class arcfleet.neural.model.Model, got a "
            f"{type(module).__name__}: derive it from Model, with prepare and forward"
        )
    here = next((weights.device for weights in module.parameters()), torch.device("cpu"))
    place = here if device == "auto" else choose_device(device)
    # The caller's own may be in training, and goes on being changed.
    model = decoding_model(copy.deepcopy(module).to(place))
    return LoadedModel(model=model, device=place)


def strategy_of_method(method: str) -> Strategy:
    """Return the decoding strategy that a learned method runs.

    A baseline bears the name of its model and takes plans as decoded.
    """
    strategies = method_strategies()
    if method in strategies:
        return strategies[method]
    if method in MODEL_TYPES:
        return STRATEGIES["as-decoded"]
    raise OptionError(
        f"expected a learned method, got {method!r}: known are {', '.join(strategies)}"
    )


# --------------------------------------------------------------- attempts and time limits


@dataclass(slots=True)
class Attempt:
    """The best plan of one instance so far, and what the stop rule says of it."""

    network: Network
    context: RunContext
    iterations: int = 0
    cost: int | None = None
    plan: FlatPlan | None = None
    history: list[Improvement] = field(default_factory=list)
    stopped_by: StoppedBy | None = None
    #: Seconds since the start when it ended; None until then.
    ended: float | None = None
    #: Method that made the plan where the learned one had no time; None otherwise.
    fallback: str | None = None

    @property
    def progress(self) -> Progress:
        """Progress of the attempt, for the stop rule and callbacks."""
        best = self.history[-1].iteration if self.history else -1
        seconds = self.context.seconds if self.ended is None else self.ended
        return Progress(
            seconds,
            self.iterations,
            self.cost,
            self.iterations - 1 - best,
            partial(self._solution, self.plan),
        )

    def _solution(self, plan: FlatPlan | None) -> Solution:
        assert plan is not None  # asked where there is a cost
        return drivable(self.network, *plan)

    @property
    def iterations_left(self) -> int:
        """Plans that the stop rule still allows, as far as is known now."""
        return iterations_left(self.context.stop, self.progress, otherwise=ANY_NUMBER)

    def offer(self, costs: Sequence[int], plan: Callable[[int], FlatPlan]) -> None:
        """Count plans, by cost (-1 beyond the fleet limit), until one meets a limit."""
        for position, cost in enumerate(costs):
            if cost >= 0 and (self.cost is None or cost < self.cost):
                self.cost, self.plan = cost, plan(position)
                now = Improvement(self.context.seconds, self.iterations, cost)
                self.history.append(now)
            self.iterations += 1
            self.stopped_by = stopped_by(self.context.stop, self.progress)
            if self.stopped_by is not None:
                return

    def scan_paths(self) -> None:
        """Take a plan of path scanning, time being too short for another; warn of it."""
        try:
            found = path_scanning(
                self.network, RunContext(method="ps", stop=Stop(iterations=FIVE_RULES))
            )
        except UnsolvableError:
            return  # the fleet limit does not allow it
        warnings.warn(
            f"{self.context.method} goes without a learned plan for "
            f"{self.network.instance.name!r}, with one of path scanning: the time limit "
            "was too short",
            WithoutLearnedPlanWarning,
            stacklevel=2,
        )
        self.fallback = found.method
        self.offer([found.cost], lambda _: to_plan(self.network, found.solution))

    def result(self) -> Result:
        """Return the best plan, or raise UnsolvableError where there is none."""
        if self.plan is None:
            if strategy_of_method(self.context.method).improve or not self.iterations:
                raise self.context.no_plan(self.network, self.iterations)
            instance = self.network.instance
            raise UnsolvableError(
                f"found no plan with at most {instance.fleet_limit} routes for "
                f"{instance.name!r} in {self.iterations} iterations of "
                f"{self.context.method}: it makes no more, so try another method, such as "
                "ruin-recreate, or raise the fleet limit"
            )
        result = self.context.result(
            self.network,
            self._solution(self.plan),
            iterations=self.iterations,
            # A method that has made all its plans has done its iterations.
            stopped_by=self.stopped_by or "iterations",
            history=self.history,
        )
        return replace(result, seconds=self.progress.seconds, fallback=self.fallback)


def solve_learned(network: Network, context: RunContext) -> Result:
    """Run a learned method with a loaded model; the instance must be solvable."""
    (attempt,) = attempt_together([network], context)
    if attempt.plan is None and attempt.stopped_by == "interrupt":
        raise KeyboardInterrupt
    return attempt.result()


def attempt_together(networks: Sequence[Network], context: RunContext) -> list[Attempt]:
    """Decode plans of some instances side by side.

    The first plans have the time limits of all instances together; if they take longer,
    path scanning makes them. After them, seconds count for all together. Ctrl-C ends it:
    attempts that it cut short say so and keep what they have. A network that
    `stands_alone` must be the only one; `context.model` is a `LoadedModel`.
    """
    contexts = [context]
    if len(networks) > 1:
        contexts = [replace(context, stop=copied(context.stop)) for _ in networks]
    attempts = [Attempt(*pair) for pair in zip(networks, contexts, strict=True)]
    device = context.model.device
    too_large = (
        f"expected the instance to fit in the memory of device {str(device)!r}, found too "
        "little: use another device or split it into smaller areas"
    )
    try:
        with (
            torch_threads(context.threads),
            working_on(device),
            torch.inference_mode(),
            expected_to_fit(lambda: too_large),
        ):
            _attempt(attempts, _Watch(attempts, context), context)
    except _TimeIsUp:
        for attempt in attempts:
            if attempt.iterations == 0:
                attempt.scan_paths()
        _end(attempts, "seconds")
    except KeyboardInterrupt:
        _end(attempts, "interrupt")
    except CallerError as error:
        if all(attempt.plan is None for attempt in attempts):
            raise error.__cause__ or error from None
        context.warn_of(error)
        _end(attempts, "error")
    ended = context.seconds
    for attempt in attempts:
        attempt.ended = ended
    return attempts


# Samples of a round: few at first, so that short time limits are kept, then more.
_FIRST_ROUND = 4
_GROWTH = 4
_LARGEST_ROUND = {"cpu": 64, "cuda": 1024}


def _attempt(attempts: Sequence[Attempt], watch: _Watch, context: RunContext) -> None:
    strategy = strategy_of_method(context.method)
    if not any(attempt.network.num_tasks for attempt in attempts):
        empty = np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int32)
        for attempt in attempts:
            attempt.offer([0], lambda _: empty)
        return
    watch.look()
    run = start_run([attempt.network for attempt in attempts], context, watch.look)
    watch.look()
    fallback = None
    if strategy.rollouts > 1 and watch.limit is not None:
        fallback = STRATEGIES["greedy"].decode(run)
    began = time.perf_counter()
    try:
        plans = strategy.decode(run)
    except (_TimeIsUp, KeyboardInterrupt):
        if fallback is not None:
            legal = np.flatnonzero(fallback.costs[:, 0] != NO_PLAN).tolist()
            _offer(attempts, legal, fallback.at(legal))
        raise
    everyone = range(len(attempts))
    run.offer(everyone, plans)
    _offer(attempts, everyone, plans)
    watch.limit = time_limit(context.stop)
    # A round that would not be finished in time is lost: better a smaller one.
    in_time = watch.number_in_time(time.perf_counter() - began)
    size = max(1, min(_FIRST_ROUND, in_time))
    most = _LARGEST_ROUND[context.model.device.type]
    while strategy.improve is not None:
        watch.look()
        rows = [i for i, attempt in enumerate(attempts) if attempt.stopped_by is None]
        if not rows:
            return
        # One that is near its limit leaves some unused, and does not slow the others.
        samples = min(size, max(attempts[i].iterations_left for i in rows))
        began = time.perf_counter()
        for plans in run.improve(strategy, rows, samples):
            _offer(attempts, rows, plans)
            if all(attempts[row].stopped_by is not None for row in rows):
                return
        each = (time.perf_counter() - began) / samples
        size = max(1, min(most, size * _GROWTH, watch.number_in_time(each)))


def start_run(
    networks: Sequence[Network], context: RunContext, on_step: OnStep
) -> DecodingRun:
    """Return a decoding run on networks; one that `stands_alone` must be the only one."""
    loaded: LoadedModel = context.model
    batch = batch_from_networks(
        networks,
        device=loaded.device,
        mds_dimensions=loaded.model.config.mds_dimensions,
        threads=context.threads,
    )
    # torch takes 63 bits; numpy mixes all 64 of the seed into them.
    mixed = np.random.SeedSequence(context.seed).generate_state(1, np.uint64)[0]
    generator = torch.Generator().manual_seed(int(mixed) >> 1)
    return DecodingRun(
        loaded.model,
        batch,
        next_seeds=generator_seeds(generator),
        threads=context.threads,
        on_step=on_step,
        windowed=any(stands_alone(network) for network in networks),
    )


def _offer(attempts: Sequence[Attempt], rows: Sequence[int], plans: Plans) -> None:
    """Offer the plans of some rows to their attempts, unless these have stopped."""
    for place, row in enumerate(rows):
        if attempts[row].stopped_by is None:
            costs = plans.costs[place].tolist()
            attempts[row].offer(costs, partial(_plan_at, plans, place))


def _plan_at(plans: Plans, row: int, sample: int) -> FlatPlan:
    return flat_plan(plans.at((slice(row, row + 1), slice(sample, sample + 1))), 0)


def _end(attempts: Sequence[Attempt], limit: StoppedBy) -> None:
    for attempt in attempts:
        if attempt.stopped_by is None:
            attempt.stopped_by = limit


class _TimeIsUp(Exception):  # noqa: N818
    """Ends a round of plans in its midst; what was complete before is kept."""


_PROGRESS_SECONDS = 0.1
#: Share of the time limit that is left for path scanning at most.
_SCANNING = 0.2


class _Watch:
    """Checks the time limit at every decoding step, and reports progress."""

    def __init__(self, attempts: Sequence[Attempt], context: RunContext) -> None:
        self.attempts = attempts
        self.context = context
        limit = time_limit(context.stop)
        #: Time limit of what is decoded now, in seconds. While there is no plan, the time
        #: for one of path scanning is left: about that of the shortest paths, if that is
        #: not much of it.
        self.limit = None
        if limit is not None:
            self.limit = limit * len(attempts) - min(context.seconds, _SCANNING * limit)
        self.reported = 0.0

    def number_in_time(self, seconds_each: float) -> int:
        """Return how many plans the time limit still allows."""
        if self.limit is None:
            return ANY_NUMBER
        left = self.limit - self.context.seconds
        return int(min(ANY_NUMBER, left / max(seconds_each, 1e-9)))

    def look(self, done: int = 0, total: int = 0) -> None:
        """Report progress now and then; raise _TimeIsUp at the limit."""
        now = self.context.seconds
        if now - self.reported >= _PROGRESS_SECONDS:
            self.reported = now
            self.context.report(self.attempts[0].progress)
        if self.limit is not None and now >= self.limit:
            raise _TimeIsUp


# --------------------------------------------------------- many instances in batches


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
    """Solve many numbered instances by a learned method, in batches of similar size.

    A batch that does not fit in memory is halved, again and again. Ctrl-C ends the running
    batch, whose members are then reported; what was not begun is not reported.

    Parameters
    ----------
    instances, loaded, method
        Instances with their numbers, model, name of a learned method.
    stop
        Stop rule of each instance; seconds count for each batch, after its first plans.
    seed
        Instance i has `child_seed(seed, i)`; a batch samples by that of its first.
    workers
        Threads of torch and Split.
    finished
        Callback with the number of an instance and its outcome.
    """
    samples = strategy_of_method(method).improve is not None
    interrupted = ctypes.c_bool(False)

    def failed(number: int, error: Exception) -> None:
        finished(number, TaskFailure(message=_message(error)))

    def attempt(batch: list[Numbered]) -> list[tuple[int, Attempt]]:
        numbers, networks = zip(*batch, strict=True)
        context = RunContext(
            method=method,
            stop=copied(stop),
            seed=child_seed(seed, min(numbers)),
            threads=workers,
            started=time.perf_counter(),
            model=loaded,
        )
        return list(zip(numbers, attempt_together(networks, context), strict=True))

    def report(number: int, attempt: Attempt) -> None:
        if attempt.plan is None and attempt.stopped_by == "interrupt":
            message = "interrupted before there was a plan"
            finished(number, TaskFailure(message=message, interrupted=True))
            return
        try:
            result = attempt.result()
        except ArcfleetError as error:
            failed(number, error)
        else:
            own = result.seed if samples else child_seed(seed, number)
            finished(number, replace(result, seed=own))

    try:
        for group in _groups(instances, failed):
            for batch in _batches(group):
                attempts = _halving(attempt, batch, failed)
                # Ctrl-C while results are reported loses none of them.
                with first_interrupt_sets(interrupted):
                    for number, made in attempts:
                        report(number, made)
                if interrupted.value or _was_interrupted(attempts):
                    return
    except KeyboardInterrupt:
        return


def _was_interrupted(attempts: Iterable[tuple[int, Attempt]]) -> bool:
    return any(attempt.stopped_by == "interrupt" for _, attempt in attempts)


def _halving(
    attempt: Callable[[list[Numbered]], list[tuple[int, Attempt]]],
    batch: list[Numbered],
    failed: Failed,
) -> list[tuple[int, Attempt]]:
    """Attempt a batch, or its halves where it does not fit in memory."""
    try:
        return attempt(batch)
    except Exception as error:
        # Perhaps a mistake of ours; the other batches are still worth their time.
        if not isinstance(error, OutOfMemoryError) or len(batch) == 1:
            for number, _ in batch:
                failed(number, error)
            return []
    # Outside of the handler, where the error no longer holds what filled the memory.
    half = len(batch) // 2
    attempts = _halving(attempt, batch[:half], failed)
    if not _was_interrupted(attempts):
        attempts += _halving(attempt, batch[half:], failed)
    return attempts


def _message(error: Exception) -> str:
    """Return the message of an error, as in `run_tasks`."""
    if isinstance(error, ArcfleetError):
        return str(error)
    if isinstance(error, MemoryError):
        return "expected it to fit in memory, found too little"
    return f"unexpected {type(error).__name__}: {error}"


# Limits of what is held at a time, to find many of one size among them: instances, and
# squared terminals of all (512 MB of driving costs).
_MOST_HELD = 2048
_MOST_HELD_SQUARES = 1 << 27

# Limits of a batch: instances, squared arcs of all (256 MB as float32), and the ratio of
# its largest to its smallest member, since all are padded to the largest.
_MOST_INSTANCES = 512
_MOST_SQUARES = 1 << 26
_MOST_PADDING = 1.25


def _groups(
    instances: Iterable[tuple[int, Instance]], failed: Failed
) -> Iterator[list[Numbered]]:
    """Yield as many as may be held; one that stands alone at once, by itself."""
    held: list[Numbered] = []
    squares = 0
    for number, instance in instances:
        try:
            require_solvable(instance)
            network = Network(instance)
        except Exception as error:
            failed(number, error)
            continue
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


def _batches(networks: list[Numbered]) -> Iterator[list[Numbered]]:
    """Divide a group into batches, small instances first."""
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


# --------------------------------------------------------------- plans of a data set

#: Default number of instances decoded at a time, by type of device.
DEFAULT_BATCH = {"cpu": 64, "cuda": 1024}


class DecodedSet(NamedTuple):
    """Plans of some instances of a data set."""

    costs: NDArray[np.int64]  # total cost of each plan, (instances,)
    plans: dict[int, FlatPlan]  # those asked for by position, as in `from_plan`
    seconds: float  # of all of them: features, decoding and Split


def decode_dataset(
    loaded: LoadedModel,
    dataset: Dataset,
    count: int,
    strategy: str,
    *,
    first: int = 0,
    samples: int = 1,
    temperature: float | None = None,
    seed: int = 0,
    keep: Collection[int] = (),
    threads: int = 1,
    batch_size: int | None = None,
    warm_up: bool = True,
    progress: Callable[[int], None] | None = None,
) -> DecodedSet:
    """Decode a plan of each of `count` instances, from position `first` on.

    This is what the results tables measure.

    Parameters
    ----------
    loaded
        Model on its device.
    dataset
        Data set.
    count
        Number of instances.
    strategy
        Name of the decoding strategy, in `STRATEGIES`.
    first
        Position of the first instance.
    samples
        Plans of each instance, where the strategy samples.
    temperature
        Sampling temperature; None for the default.
    seed
        Seed of the random number generator; instance i has its child number i.
    keep
        Positions of the instances whose plans are returned.
    threads
        Threads of torch on the CPU and of Split.
    batch_size
        Instances at a time; default by device.
    warm_up
        Whether, on a GPU, the first batch is decoded once before the time is taken, while
        libraries choose their kernels.
    progress
        Callback with the number of instances done, after each batch.
    """
    chosen = find_strategy(strategy)
    if not (0 <= first < first + count <= len(dataset)):
        raise OptionError(
            f"expected a count from 1 to the {len(dataset)} instances of {dataset.path}, "
            f"got {count}" + (f" from number {first} on" if first else "")
        )
    end = first + count
    size = DEFAULT_BATCH[loaded.device.type] if batch_size is None else batch_size
    if size < 1:
        raise OptionError(f"expected batches of at least 1 instance, got {size}")

    def decode(start: int) -> Plans:
        rows = range(start, min(start + size, end))
        batch = batch_from_arrays(
            dataset.padded(np.array(rows)),
            device=loaded.device,
            mds_dimensions=loaded.model.config.mds_dimensions,
        )
        # Half of a child seed, since torch has no unsigned numbers.
        seeds = torch.tensor([child_seed(seed, i) >> 1 for i in rows], dtype=torch.int64)
        run = DecodingRun(
            loaded.model,
            batch,
            next_seeds=hashed_seeds(seeds),
            temperature=temperature,
            threads=threads,
        )
        return chosen.best_plans(run, samples)

    costs: list[NDArray[np.int64]] = []
    plans: dict[int, FlatPlan] = {}
    seconds = 0.0

    too_large = (
        f"expected batches of {size} instances to fit in the device's memory, found too "
        "little: take smaller batches"
    )
    fits = expected_to_fit(lambda: too_large)
    with torch_threads(threads), torch.inference_mode(), fits:
        if loaded.device.type == "cuda" and warm_up:
            torch.cuda.empty_cache()
            decode(first)
        for start in range(first, end, size):
            # What torch keeps of earlier batches looks taken when chunks are sized.
            torch.cuda.empty_cache()
            started = time.perf_counter()
            found = decode(start)  # on the host: the device has finished
            seconds += time.perf_counter() - started
            missing = np.flatnonzero(found.costs[:, 0] == NO_PLAN)
            if len(missing):
                raise UnsolvableError(
                    f"expected a plan of every instance of {dataset.path}, found none of "
                    f"instance {start + int(missing[0])}"
                )
            costs.append(found.costs[:, 0])
            last = start + len(found.costs)
            plans |= {i: flat_plan(found, i - start) for i in keep if start <= i < last}
            if progress is not None:
                progress(last - first)
    return DecodedSet(np.concatenate(costs), plans, seconds)


def device_name(device: str | torch.device) -> str:
    """Return the name of a device for records: the type of the GPU, or "cpu"."""
    place = choose_device(device) if isinstance(device, str) else device
    if place.type == "cuda":
        return torch.cuda.get_device_name(place)
    return place.type
