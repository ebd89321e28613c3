"""Running methods over a suite: every plan verified, every run kept as soon as it ends."""

from __future__ import annotations

import hashlib
import json
import math
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from arcfleet.bench.compare import checking_seconds
from arcfleet.bench.machine import commit, machine, warn_of_reused
from arcfleet.bounds import bound
from arcfleet.datasets.shards import PartForm, identity_of
from arcfleet.datasets.store import LineFormat, Store
from arcfleet.errors import ArcfleetError, UnsolvableError
from arcfleet.instance.files import read
from arcfleet.methods import METHODS, find_method, load_for_method, model_files, solve
from arcfleet.search.stop import StopSince
from arcfleet.solution.checker import check
from arcfleet.workers import PROCESSES, TaskFailure, run_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from arcfleet.bench.suite import Suite, SuiteInstance
    from arcfleet.datasets.shards import Shard
    from arcfleet.instance import Instance
    from arcfleet.methods import Method
    from arcfleet.neural.solver import LoadedModel
    from arcfleet.search import ProgressCallback, Result


class RunKey(NamedTuple):
    """Identity of a run."""

    # Names of the set and of the instance in the suite.
    set_name: str
    instance: str
    method: str
    seed: int
    time_limit: float  # seconds
    stop_at_reference: bool  # whether a reference cost that is proven optimal ends the run


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One finished run: a line of the store."""

    # Identity of the run, as in `RunKey`.
    set_name: str
    instance: str
    method: str
    seed: int
    time_limit: float
    stop_at_reference: bool
    # Machine and version of the run.
    machine: str
    commit: str
    reference: int | None  # best known cost; None where none is known
    error: str | None = None  # reason why there is no valid plan; None where there is one
    # Cost and number of routes of the plan, as the checker confirmed them; None after an
    # error, as all below.
    cost: int | None = None
    gap_percent: float | None = None  # gap of the cost to the reference
    # Time of the whole run, and until its best plan was found.
    seconds: float | None = None
    seconds_to_best: float | None = None
    # Statistics of the search, as in Result.
    iterations: int | None = None
    routes: int | None = None
    stopped_by: str | None = None
    # Lower bound of the instance, where one was asked for.
    bound: int | None = None
    history: tuple[tuple[float, int], ...] = ()  # seconds and cost of each better plan

    @property
    def key(self) -> RunKey:
        """Identity of the run."""
        return RunKey(
            self.set_name,
            self.instance,
            self.method,
            self.seed,
            float(self.time_limit),
            self.stop_at_reference,
        )


def _upgrade(facts: dict[str, Any]) -> dict[str, Any]:
    """Return a line with today's names of its members."""
    if "set" in facts:
        facts["set_name"] = facts.pop("set")
    if facts.get("error") is None and None in (facts.get("cost"), facts.get("seconds")):
        raise ValueError("expected a cost and a time")
    times = [facts.get(name) for name in ("time_limit", "seconds", "seconds_to_best")]
    times += [seconds for seconds, _ in facts.get("history", ())]
    if not all(math.isfinite(x) for x in times if x is not None):
        raise ValueError("expected finite times")
    return facts


#: Lines of `arcfleet bench`.
RUNS = LineFormat("arcfleet-run-1", Record, "a run of `arcfleet bench`", _upgrade)


RUN_PARTS = PartForm(RUNS, lambda x: [x.key], lambda x: x.key, "runs", has_identity=False)


def open_runs(path: Path, identity: Mapping[str, object] | None = None) -> Store[Record]:
    """Open a file of runs for adding, or raise FileError if it holds something else.

    `identity` is that of a part; the file of all runs has none.
    """
    return Store(path, RUNS, identity or {})


def part_of(
    runs: Sequence[Run], shard: Shard, suite: str
) -> tuple[list[Run], dict[str, object]]:
    """Return the runs of a part, and the identity of its file."""
    keys = json.dumps(sorted(run.key for run in runs)).encode()
    common = {
        "suite": suite,
        "methods": sorted({run.key.method for run in runs}),
        "time_limits": sorted({run.key.time_limit for run in runs}),
        "seeds": len({run.key.seed for run in runs}),
        "stop_at_reference": any(run.key.stop_at_reference for run in runs),
        "runs": {"count": len(runs), "sha256": hashlib.sha256(keys).hexdigest()},
    }
    mine = shard.tasks(runs)
    return mine, identity_of(shard, len(mine), common)


def latest(records: Iterable[Record]) -> dict[RunKey, Record]:
    """Return the last record of each run: a later one replaces a failed one."""
    return {record.key: record for record in records}


def gap_percent(cost: int, reference: int | None) -> float | None:
    """Return by how many percent a cost exceeds the reference."""
    return 100 * (cost / reference - 1) if reference else None


@dataclass(frozen=True, slots=True)
class Run:
    """A run to be made."""

    key: RunKey
    source: SuiteInstance

    @classmethod
    def of(
        cls, source: SuiteInstance, method: str, seed: int, limit: float, at_reference: bool
    ) -> Run:
        """Return a run of a method on an instance of a suite."""
        names = (source.set_name, source.name)
        return cls(RunKey(*names, method, seed, limit, at_reference), source)


def plan_runs(
    suite: Suite,
    methods: Iterable[str],
    time_limits: Iterable[float],
    seeds: int,
    *,
    stop_at_reference: bool = False,
) -> list[Run]:
    """List every combination once, the short time limits first."""
    names = dict.fromkeys(find_method(name).name for name in methods)
    return [
        Run.of(source, method, seed, time_limit, stop_at_reference)
        for time_limit in sorted({float(limit) for limit in time_limits})
        for source in suite.instances
        for method in names
        for seed in range(seeds)
    ]


def runs_left(runs: Sequence[Run], store: Store[Record]) -> list[Run]:
    """Return the runs that the store does not hold; failed ones are made again.

    Warns of reused runs of another commit or machine: their seconds, and perhaps their
    costs, do not compare with those made now.
    """
    found = latest(store.records)
    kept = [found[run.key] for run in runs if run.key in found]
    kept = [record for record in kept if record.error is None]
    if len(kept) < len(runs):
        warn_of_reused(store.path, kept, "runs")
    done = {record.key for record in kept}
    return [run for run in runs if run.key not in done]


def run_benchmark(
    runs: Iterable[Run],
    store: Store[Record],
    *,
    workers: int | None = None,
    finished: Callable[[Record], None] | None = None,
    model: Path | None = None,
    device: str = "auto",
    bound_seconds: float | None = None,
    executor: str = PROCESSES,
) -> None:
    """Make the runs, each on one thread, and add each to the store as it ends.

    The time limit of a run holds from the reading of its instance, which all runs on it
    share and each counts, to its line in the store. Models are loaded before. With
    `bound_seconds` a lower bound of each instance is computed first, in that time at most.

    An instance that cannot be read or solved, or a plan that the checker rejects, is a
    record with an error. Ctrl-C ends it; runs cut short are not recorded.
    """
    _loaded.cache_clear()  # the file may be another one since
    here = (machine(), commit())
    instances: dict[SuiteInstance, _Source] = {}
    bounds: dict[SuiteInstance, int | None] = {}
    started: list[Run] = []
    runs = list(runs)
    learned = [x for x in (find_method(run.key.method) for run in runs) if x.is_learned]
    files = model_files(learned, model) if learned else {}

    def keep(record: Record) -> None:
        store.add(record)
        if finished is not None:
            finished(record)

    def failed(run: Run, message: str) -> Record:
        return record_of(run, here, error=message)

    def jobs() -> Iterator[_Job]:
        for run in runs:
            if run.source not in instances:
                instances[run.source] = _read(run.source)
            found = instances[run.source]
            if isinstance(found.instance, str):
                keep(failed(run, found.instance))
                continue
            if bound_seconds is not None and run.source not in bounds:
                bounds[run.source] = _lower_bound(found.instance, bound_seconds)
            started.append(run)
            method = find_method(run.key.method)
            model_file = files.get(method.model_type or "")
            if isinstance(model_file, Path):  # workers have other working directories
                model_file = model_file.absolute()
            yield _Job(
                run, method, found.instance, found.seconds, *here, model_file, device
            )

    def take(number: int, outcome: Record | TaskFailure | None) -> None:
        if isinstance(outcome, Record):
            keep(replace(outcome, bound=bounds.get(started[number].source)))
        elif isinstance(outcome, TaskFailure) and not outcome.interrupted:
            keep(failed(started[number], outcome.message))

    run_tasks(_run_job, jobs(), workers=workers, finished=take, executor=executor)


@dataclass(frozen=True, slots=True)
class _Job:
    run: Run
    method: Method
    instance: Instance
    reading_seconds: float  # part of the time limit, though several runs share it
    machine: str
    commit: str
    model: Path | str | None
    device: str


@cache
def _loaded(
    model_type: str | None, model: Path | str | None, device: str
) -> LoadedModel | None:
    # Methods of one type share a model.
    if model_type is None:
        return None
    method = next(x for x in METHODS.values() if x.model_type == model_type)
    return load_for_method(method, model, device)


def _run_job(job: _Job, progress: ProgressCallback) -> Record | None:
    """Solve and verify; None where Ctrl-C cut the search short."""
    key, source = job.run.key, job.run.source
    target = source.reference if key.stop_at_reference and source.proven else None
    # Methods share a model, which is no part of a run.
    model = _loaded(job.method.model_type, job.model, job.device)
    stop = StopSince(
        seconds=key.time_limit,
        target_cost=target,
        started=time.perf_counter() - job.reading_seconds,
        reserve=checking_seconds(job.instance, job.reading_seconds),
    )
    result = solve(
        job.instance, job.method, stop=stop, seed=key.seed, progress=progress, model=model
    )
    if result.stopped_by == "interrupt":
        return None
    here = (job.machine, job.commit)
    report = check(job.instance, result.solution)
    if not report.ok:
        return record_of(job.run, here, error=f"faulty plan: {report.faults[0]}")
    return record_of(job.run, here, result)


def record_of(
    run: Run,
    here: tuple[str, str],
    result: Result | None = None,
    *,
    error: str | None = None,
    history: bool = True,
) -> Record:
    """Return the record of a run."""
    facts: dict[str, Any] = {"machine": here[0], "commit": here[1], "error": error}
    facts |= {**run.key._asdict(), "reference": run.source.reference}
    if result is not None:
        gap = gap_percent(result.cost, run.source.reference)
        best = result.history[-1].seconds if result.history else 0.0
        facts |= {
            "cost": result.cost,
            "gap_percent": None if gap is None else round(gap, 6),
            "seconds": round(result.seconds, 6),
            "seconds_to_best": round(best, 6),
            "iterations": result.iterations,
            "routes": result.solution.num_routes,
            "stopped_by": result.stopped_by,
        }
        if history:
            steps = ((round(step.seconds, 4), step.cost) for step in result.history)
            facts["history"] = tuple(steps)
    return Record(**facts)


def _lower_bound(instance: Instance, seconds: float) -> int | None:
    """Return a lower bound; None for an instance that cannot be solved."""
    try:
        found = bound(instance, seconds=seconds)
    except UnsolvableError:
        return None
    if found.stopped_by == "interrupt":
        raise KeyboardInterrupt
    return found.value


class _Source(NamedTuple):
    instance: Instance | str  # or why it cannot be read
    seconds: float  # of reading it


def _read(source: SuiteInstance) -> _Source:
    began = time.perf_counter()
    try:
        instance: Instance | str = read(source.path)
    except ArcfleetError as error:
        instance = str(error)
    return _Source(instance, time.perf_counter() - began)
