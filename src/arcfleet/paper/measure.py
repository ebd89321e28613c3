"""Fills series, chunk by chunk: models in this process, searches over several."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from arcfleet.bench.store import commit, machine
from arcfleet.datasets import Dataset
from arcfleet.errors import (
    ArcfleetError,
    FileError,
    FormatWarning,
    SolutionError,
    UnsolvableError,
)
from arcfleet.methods import solve
from arcfleet.network import Network
from arcfleet.paper.rows import LABELS, trained_label
from arcfleet.paper.series import Chunk, RunFile, SeriesKey
from arcfleet.search.result import Result
from arcfleet.search.stop import Stop
from arcfleet.solution.checker import check
from arcfleet.solution.plan import from_plan
from arcfleet.workers import TaskFailure, child_seed, run_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from arcfleet.instance import Instance
    from arcfleet.neural.solver import LoadedModel
    from arcfleet.paper.rows import ModelFiles, Row
    from arcfleet.paper.sets import TestSet
    from arcfleet.search import ProgressCallback
    from arcfleet.solution import Solution


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measurement:
    """A series that is to be made, or completed.

    Parameters
    ----------
    key
        Which series.
    row
        How.
    test_set
        On what.
    count
        So many of its first instances.
    model
        The model file; None for a row that needs none.
    """

    key: SeriesKey
    row: Row
    test_set: TestSet
    count: int
    model: Path | None


def plan_measurements(
    test_sets: Sequence[TestSet],
    rows: Sequence[Row],
    models: ModelFiles,
    *,
    count: int | None = None,
    search_count: int | None = None,
    alone: bool = False,
) -> list[Measurement]:
    """List every row on every test set.

    Parameters
    ----------
    test_sets, rows
        What to combine.
    models
        Of the rows that need one.
    count, search_count
        How many of the first instances to take, and searches among them; None for all.
    alone
        Whether models decode instances one at a time. Searches always do.

    Raises
    ------
    OptionError
        If a row needs a model and there is none.
    """
    measurements = []
    for test_set in test_sets:
        for row in rows:
            most = search_count if row.kind.is_slow else None
            limits = (len(test_set.dataset), count, most)
            model = models.path(row.kind, test_set.scale) if row.kind.model else None
            key = SeriesKey(
                data_sha256=test_set.dataset.checksum,
                row=row.name,
                settings=row.settings,
                source_sha256=None if model is None else models.checksum(model),
                device="cpu" if model is None else models.device_name(),
                alone=alone and model is not None,
                set_name=test_set.name,
                scale=test_set.scale,
                place=test_set.place,
                label=(
                    row.label
                    if model is None
                    else trained_label(row, models.training(model))
                ),
            )
            measurements.append(
                Measurement(
                    key=key,
                    row=row,
                    test_set=test_set,
                    count=min(limit for limit in limits if limit is not None),
                    model=model,
                )
            )
    return measurements


def labels_key(test_set: TestSet, checksum: str) -> SeriesKey:
    """Name the series that holds the costs of a test set's labels."""
    return SeriesKey(
        data_sha256=test_set.dataset.checksum,
        row=LABELS,
        settings=(),
        source_sha256=checksum,
        device="cpu",
        alone=False,
        set_name=test_set.name,
        scale=test_set.scale,
        place=test_set.place,
        label="labels",
    )


class Outcome(NamedTuple):
    """What came of a chunk; `seconds` are those of all its instances together."""

    costs: list[int]
    seconds: float
    judged: int


def decode_chunk(
    measurement: Measurement,
    loaded: LoadedModel,
    part: range,
    *,
    judged: Collection[int],
    threads: int,
    batch_size: int | None,
    warm_up: bool,
    tell: Callable[[int], None],
) -> Outcome:
    """Decode instances by a model, in batches or one by one.

    Samples of each instance are drawn by its own child seed.
    """
    from arcfleet.neural.evaluation import decode_dataset

    settings = dict(measurement.row.settings)
    dataset = measurement.test_set.dataset
    decoded = decode_dataset(
        loaded,
        dataset,
        len(part),
        measurement.row.kind.method,
        first=part.start,
        samples=int(settings.get("samples", 1)),
        temperature=settings.get("temperature"),
        seed=int(settings.get("seed", 0)),
        keep=judged,
        threads=threads,
        batch_size=1 if measurement.key.alone else batch_size,
        warm_up=warm_up,
        progress=tell,
    )
    costs: list[int] = decoded.costs.tolist()
    for position, plan in decoded.plans.items():
        instance = dataset[position]
        solution = from_plan(Network(instance), *plan)
        cost = costs[position - part.start]
        require_valid(measurement.key, position, instance, solution, cost)
    return Outcome(costs, decoded.seconds, len(decoded.plans))


def hybrid_chunk(
    measurement: Measurement,
    loaded: LoadedModel,
    part: range,
    *,
    judged: Collection[int],
    workers: int,
    tell: Callable[[int], None],
) -> Outcome:
    """Decode instances together and search on over processes; or one after the other.

    Each has a child seed of its own, as those of `search_chunk`.
    """
    from arcfleet.neural.solver import solve_in_batches

    settings = dict(measurement.row.settings)
    instances = measurement.test_set.dataset[part.start : part.stop]
    numbered = list(zip(part, instances, strict=True))
    size = 1 if measurement.key.alone else len(part)
    outcomes: dict[int, Result | TaskFailure] = {}

    def finished(position: int, outcome: Result | TaskFailure) -> None:
        outcomes[position] = outcome
        tell(len(outcomes))

    for start in range(0, len(part), size):
        solve_in_batches(
            numbered[start : start + size],
            loaded=loaded,
            method=measurement.row.kind.method,
            stop=Stop(iterations=int(settings["iterations"])),
            seed=int(settings["seed"]),
            workers=1 if measurement.key.alone else workers,
            finished=finished,
        )
    costs: list[int] = []
    seconds = 0.0
    for position, instance in numbered:
        outcome = outcomes.get(position)
        if isinstance(outcome, TaskFailure) and not outcome.interrupted:
            raise UnsolvableError(
                f"expected a plan of {instance.name!r} by {measurement.row.name}, found "
                f"none: {outcome.message}"
            )
        # Not the plan that the seed stands for.
        if not isinstance(outcome, Result) or outcome.stopped_by == "interrupt":
            raise KeyboardInterrupt
        costs.append(outcome.cost)
        seconds += outcome.seconds
        if position in judged:
            plan = outcome.solution
            require_valid(measurement.key, position, instance, plan, outcome.cost)
    return Outcome(costs, seconds, len(judged))


@dataclass(frozen=True, slots=True)
class SearchJob:
    """A chunk that another process can make."""

    path: Path
    checksum: str
    key: SeriesKey
    method: str
    first: int
    last: int
    judged: tuple[int, ...]


def search_chunk(job: SearchJob, progress: ProgressCallback) -> Outcome:
    """Solve instances one after the other, each by its own child seed."""
    dataset = _dataset(job.path, job.checksum)
    settings = dict(job.key.settings)
    costs, seconds = [], 0.0
    for position in range(job.first, job.last):
        instance = dataset[position]
        result = solve(
            instance,
            job.method,
            stop=Stop(iterations=int(settings["iterations"])),
            seed=child_seed(int(settings["seed"]), position),
            progress=progress,
        )
        if result.stopped_by == "interrupt":  # not the plan that the seed stands for
            raise KeyboardInterrupt
        if position in job.judged:
            require_valid(job.key, position, instance, result.solution, result.cost)
        costs.append(result.cost)
        seconds += result.seconds
    return Outcome(costs, seconds, len(job.judged))


@lru_cache(maxsize=8)  # a worker solves many chunks of the same test sets
def _dataset(path: Path, checksum: str) -> Dataset:
    dataset = Dataset.open(path)
    if dataset.checksum != checksum:
        raise FileError(path, "expected it to stay the same while it is solved")
    return dataset


def require_valid(
    key: SeriesKey, position: int, instance: Instance, plan: Solution, cost: int
) -> None:
    """Raise SolutionError unless the checker confirms a plan and its cost."""
    report = check(instance, plan)
    faults = list(report.faults)
    if report.cost != cost:
        faults.append(f"expected cost {report.cost}, got {cost}")
    if faults:
        raise SolutionError(
            f"expected a valid plan of instance {position} of {key.set_name} by "
            f"{key.row}, found a fault: {faults[0]}"
        )


# Instances per line where a model decodes them one by one.
_ALONE_CHUNK = 20

# Batches per line on a CPU, where one takes seconds; a GPU has one.
_CPU_BATCHES = 4


def measure(
    measurements: Sequence[Measurement],
    file: RunFile,
    models: ModelFiles,
    *,
    workers: int = 1,
    batch_size: int | None = None,
    judge: int = 50,
    progress: Callable[[int, int], None] | None = None,
    finished: Callable[[Measurement], None] | None = None,
) -> None:
    """Make what the file lacks, each chunk added as soon as it is there.

    Models come first, in this process; then the searches over processes, chunks of all of
    them in turn, so that what is done tells how long the rest will take. Ctrl-C ends it;
    chunks in hand are lost.

    Parameters
    ----------
    measurements
        What to make.
    file
        Where to add.
    models
        The model files.
    workers
        Processes of the searches; threads of the path optimiser, and of torch on a CPU.
    batch_size
        Instances that a model decodes at a time; by default what suits the device.
    judge
        About so many plans of each series are judged by the checker, spread over it.
    progress
        Told how many plans are made, and how many there will be; what the file had
        counts as made.
    finished
        Called after each series that was not complete before.

    Raises
    ------
    SolutionError
        If the checker finds a fault.
    UnsolvableError
        If an instance has no plan.
    """
    distinct = list({measurement.key: measurement for measurement in measurements}.values())
    _keep_labels(distinct, file, judge)
    work = _Work(distinct, file, progress, finished, workers, batch_size, judge)
    work.tell(0)
    for measurement in distinct:
        if measurement.model is not None:
            work.learned(measurement, measurement.model, models)
    work.searches([x for x in distinct if x.model is None])


class _Work:
    """The work that is left, and what there is to tell about it."""

    def __init__(
        self,
        measurements: Sequence[Measurement],
        file: RunFile,
        progress: Callable[[int, int], None] | None,
        finished: Callable[[Measurement], None] | None,
        workers: int,
        batch_size: int | None,
        judge: int,
    ) -> None:
        self.file = file
        self.progress, self.finished = progress, finished
        self.workers, self.batch_size, self.judge = workers, batch_size, judge
        self.here = (machine(), commit())
        self.total = sum(measurement.count for measurement in measurements)
        self.left = {x.key: file.missing(x.key, x.count) for x in measurements}
        self.open = {key: sum(map(len, part)) for key, part in self.left.items()}
        self._warn_of_others(measurements)

    def tell(self, beyond: int) -> None:
        """Report; so many plans are made beyond those in the file."""
        if self.progress is not None:
            self.progress(self.total - sum(self.open.values()) + beyond, self.total)

    def learned(self, measurement: Measurement, path: Path, models: ModelFiles) -> None:
        """Decode what a series lacks, in this process."""
        warm_up = True
        for stretch in self.left[measurement.key]:
            loaded = models.load(path, measurement.row.kind)
            for part in _cut(stretch, self._chunk_size(measurement, loaded.device.type)):
                judged = _judged(part, measurement.count, self.judge)
                if measurement.row.kind.kind == "hybrid":
                    outcome = hybrid_chunk(
                        measurement,
                        loaded,
                        part,
                        judged=judged,
                        workers=self.workers,
                        tell=self.tell,
                    )
                else:
                    outcome = decode_chunk(
                        measurement,
                        loaded,
                        part,
                        judged=judged,
                        threads=self.workers,
                        batch_size=self.batch_size,
                        warm_up=warm_up,
                        tell=self.tell,
                    )
                warm_up = False
                self.add(measurement, part, outcome, self._at_once(measurement, part))

    def _at_once(self, measurement: Measurement, part: range) -> int:
        """Give how many instances of a learned row have clocks that run at once."""
        one_clock = measurement.row.kind.kind == "decoding" or measurement.key.alone
        return 1 if one_clock else min(self.workers, len(part))

    def _chunk_size(self, measurement: Measurement, device: str) -> int:
        if measurement.key.alone:
            return _ALONE_CHUNK
        if measurement.row.kind.chunk:
            return measurement.row.kind.chunk
        from arcfleet.neural.evaluation import DEFAULT_BATCH

        size = self.batch_size or DEFAULT_BATCH[device]
        return size if device == "cuda" else _CPU_BATCHES * size

    def searches(self, measurements: Sequence[Measurement]) -> None:
        """Make what the series of searches lack, over processes."""
        jobs = sorted(self._jobs(measurements), key=lambda job: job[0])
        workers = max(1, min(self.workers, len(jobs)))
        failures: list[TaskFailure] = []

        def take(number: int, outcome: Outcome | TaskFailure) -> None:
            _, measurement, job = jobs[number]
            if isinstance(outcome, TaskFailure):
                failures.append(outcome)
            else:
                self.add(measurement, range(job.first, job.last), outcome, workers)

        run_tasks(
            search_chunk,
            (job for _, _, job in jobs),
            workers=workers,
            finished=take,
        )
        for failure in failures:
            if failure.interrupted:
                raise KeyboardInterrupt
            raise ArcfleetError(failure.message)
        if any(self.open[measurement.key] for measurement in measurements):
            raise KeyboardInterrupt

    def _jobs(
        self, measurements: Sequence[Measurement]
    ) -> Iterator[tuple[float, Measurement, SearchJob]]:
        """Give the chunks of searches, each with the share of its series before it."""
        for measurement in measurements:
            dataset = measurement.test_set.dataset
            kind = measurement.row.kind
            for stretch in self.left[measurement.key]:
                for part in _cut(stretch, kind.chunk):
                    judged = _judged(part, measurement.count, self.judge)
                    job = SearchJob(
                        Path(dataset.path),
                        dataset.checksum,
                        measurement.key,
                        kind.method,
                        part.start,
                        part.stop,
                        tuple(judged),
                    )
                    yield part.start / measurement.count, measurement, job

    def add(
        self, measurement: Measurement, part: range, outcome: Outcome, parallel: int
    ) -> None:
        """Keep a chunk."""
        self.file.add(
            Chunk(
                key=measurement.key,
                first=part.start,
                costs=tuple(outcome.costs),
                seconds=outcome.seconds,
                parallel=parallel,
                judged=outcome.judged,
                machine=self.here[0],
                commit=self.here[1],
            )
        )
        self.open[measurement.key] -= len(part)
        self.tell(0)
        if not self.open[measurement.key] and self.finished is not None:
            self.finished(measurement)

    def _warn_of_others(self, measurements: Sequence[Measurement]) -> None:
        """Warn of kept chunks of another commit or machine, where more will be made."""
        keys = {measurement.key for measurement in measurements}
        other = [
            chunk
            for chunk in self.file.chunks
            if chunk.key in keys and (chunk.machine, chunk.commit) != self.here
        ]
        if other and any(self.open.values()):
            warnings.warn(
                f"{self.file.path}: keeps {len(other)} chunks made elsewhere (commit "
                f"{other[0].commit}, {other[0].machine}), this is commit {self.here[1]}, "
                f"{self.here[0]}; name another folder to make them anew",
                FormatWarning,
                stacklevel=4,
            )


def _keep_labels(measurements: Sequence[Measurement], file: RunFile, judge: int) -> None:
    """Put the costs of labels beside those of the methods, for reports without the sets."""
    for test_set in {id(x.test_set): x.test_set for x in measurements}.values():
        labels = test_set.labels
        if labels is None:
            continue
        key = labels_key(test_set, labels.checksum)
        if not file.missing(key, len(labels)):
            continue
        judged = _judged(range(len(labels)), len(labels), judge)
        for position in judged:
            cost = int(labels.cost[position])
            instance = test_set.dataset[position]
            require_valid(key, position, instance, labels[position], cost)
        file.add(
            Chunk(
                key=key,
                first=0,
                costs=tuple(labels.cost.tolist()),
                seconds=0.0,
                parallel=1,
                judged=len(judged),
                machine=machine(),
                commit=commit(),
            )
        )


def _cut(stretch: range, size: int) -> Iterator[range]:
    for first in range(stretch.start, stretch.stop, size):
        yield range(first, min(first + size, stretch.stop))


def _judged(part: range, count: int, number: int) -> list[int]:
    """Give the positions of a chunk to be judged: about `number` of all, evenly spread."""
    step = max(1, count // number)
    return [position for position in part if position % step == 0]
