"""Costs of some neighbouring instances by a row, with a part of the plans judged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, cast

from arcfleet.datasets import Dataset
from arcfleet.errors import FileError, SolutionError, UnsolvableError
from arcfleet.methods import solve
from arcfleet.network import Network
from arcfleet.search.result import Result
from arcfleet.search.stop import Stop
from arcfleet.solution.checker import check
from arcfleet.solution.plan import from_plan
from arcfleet.workers import TaskFailure, child_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from arcfleet.experiments.measurements import Measurement
    from arcfleet.experiments.series import SeriesKey
    from arcfleet.instance import Instance
    from arcfleet.neural.evaluation import Decoding
    from arcfleet.neural.solver import LoadedModel
    from arcfleet.search import ProgressCallback
    from arcfleet.solution import Solution


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
        cast("Decoding", measurement.row.kind.method),
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
    from arcfleet.neural.many import solve_in_batches

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
