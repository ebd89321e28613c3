"""Runs methods over a suite: every plan judged, every run kept as soon as it ends."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from arcfleet.bench.store import Record, RecordFile, RunKey, commit, gap_percent, machine
from arcfleet.errors import ArcfleetError, FormatWarning
from arcfleet.instance.files import read
from arcfleet.methods import METHODS, find_method, load_for_method, model_files, solve
from arcfleet.search.stop import Stop
from arcfleet.solution.checker import check
from arcfleet.workers import TaskFailure, run_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from arcfleet.bench.suite import Suite, SuiteInstance
    from arcfleet.instance import Instance
    from arcfleet.methods import Method
    from arcfleet.neural.solver import LoadedModel
    from arcfleet.search import ProgressCallback


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that is to be made.

    Parameters
    ----------
    key
        Which run.
    source
        The instance, as the suite has it.
    """

    key: RunKey
    source: SuiteInstance


def run_of(
    source: SuiteInstance,
    method: str,
    seed: int,
    time_limit: float,
    *,
    stop_at_reference: bool,
) -> Run:
    """Describe one run of a method on an instance of a suite."""
    key = RunKey(
        set_name=source.set_name,
        instance=source.name,
        method=method,
        seed=seed,
        time_limit=time_limit,
        stop_at_reference=stop_at_reference,
    )
    return Run(key=key, source=source)


def plan_runs(
    suite: Suite,
    methods: Iterable[str],
    time_limits: Iterable[float],
    seeds: int,
    *,
    stop_at_reference: bool = False,
) -> list[Run]:
    """List every combination once, the short time limits first.

    Raises
    ------
    OptionError
        If a method is unknown.
    """
    names = dict.fromkeys(find_method(name).name for name in methods)
    return [
        run_of(source, method, seed, time_limit, stop_at_reference=stop_at_reference)
        for time_limit in sorted({float(limit) for limit in time_limits})
        for source in suite.instances
        for method in names
        for seed in range(seeds)
    ]


def runs_left(runs: Sequence[Run], file: RecordFile) -> list[Run]:
    """Give the runs that the file does not hold; failed ones are made again.

    A warning tells of kept runs of another commit or machine: their seconds, and perhaps
    their costs, do not compare with those made now.
    """
    kept = [file.records[run.key] for run in runs if run.key in file.records]
    kept = [record for record in kept if record.error is None]
    here = (machine(), commit())
    foreign = [record for record in kept if (record.machine, record.commit) != here]
    if foreign and len(kept) < len(runs):
        other = foreign[0]
        warnings.warn(
            f"{file.path}: keeps {len(foreign)} runs made elsewhere (commit "
            f"{other.commit}, {other.machine}), this is commit {here[1]}, {here[0]}; "
            "name another file to make them anew",
            FormatWarning,
            stacklevel=2,
        )
    done = {record.key for record in kept}
    return [run for run in runs if run.key not in done]


def run_benchmark(
    runs: Iterable[Run],
    file: RecordFile,
    *,
    workers: int = 1,
    finished: Callable[[Record], None] | None = None,
    model: Path | None = None,
    device: str = "auto",
) -> None:
    """Make the runs, each on one thread, and add each to the file as it ends.

    An instance that cannot be read or solved, or a plan that the checker rejects, is a
    record with an error. Ctrl-C ends it; runs cut short are not recorded.

    Parameters
    ----------
    runs
        What to do.
    file
        Where to add.
    workers
        Processes. More than there are idle cores would falsify every figure.
    finished
        Called after each run.
    model, device
        Of the learned methods, as `solve` takes them; each worker loads the model once,
        before the first run that needs it. A model is for the methods of its kind. The
        records do not name it: one file, one model.
    """
    _loaded.cache_clear()  # the file may be another one since
    here = (machine(), commit())
    instances: dict[SuiteInstance, Instance | str] = {}
    started: list[Run] = []
    runs = list(runs)
    learned = [x for x in (find_method(run.key.method) for run in runs) if x.is_learned]
    files = model_files(learned, model) if learned else {}

    def keep(record: Record) -> None:
        file.add(record)
        if finished is not None:
            finished(record)

    def failed(run: Run, message: str) -> Record:
        return Record(
            key=run.key,
            machine=here[0],
            commit=here[1],
            reference=run.source.reference,
            error=message,
        )

    def jobs() -> Iterator[_Job]:
        for run in runs:
            if run.source not in instances:
                instances[run.source] = _read(run.source)
            instance = instances[run.source]
            if isinstance(instance, str):
                keep(failed(run, instance))
                continue
            started.append(run)
            model_file = files.get(find_method(run.key.method).model_type or "")
            method = find_method(run.key.method)
            yield _Job(run, method, instance, *here, model_file, device)

    def take(number: int, outcome: Record | TaskFailure | None) -> None:
        if isinstance(outcome, Record):
            keep(outcome)
        elif isinstance(outcome, TaskFailure) and not outcome.interrupted:
            keep(failed(started[number], outcome.message))

    run_tasks(_run_job, jobs(), workers=workers, finished=take)


@dataclass(frozen=True, slots=True)
class _Job:
    run: Run
    method: Method
    instance: Instance
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
    """Solve and judge; None where Ctrl-C cut the search short."""
    key, source = job.run.key, job.run.source
    target = source.reference if key.stop_at_reference and source.proven else None
    result = solve(
        job.instance,
        job.method,
        stop=Stop(seconds=key.time_limit, target_cost=target),
        seed=key.seed,
        progress=progress,
        model=_loaded(job.method.model_type, job.model, job.device),
    )
    if result.stopped_by == "interrupt":
        return None
    report = check(job.instance, result.solution)
    if not report.ok:
        return Record(
            key=key,
            machine=job.machine,
            commit=job.commit,
            reference=source.reference,
            error=f"faulty plan: {report.faults[0]}",
        )
    return Record(
        key=key,
        machine=job.machine,
        commit=job.commit,
        reference=source.reference,
        cost=result.cost,
        gap_percent=gap_percent(result.cost, source.reference),
        seconds=result.seconds,
        seconds_to_best=result.history[-1].seconds if result.history else 0.0,
        iterations=result.iterations,
        routes=result.solution.num_routes,
        stopped_by=result.stopped_by,
        history=tuple((step.seconds, step.cost) for step in result.history),
    )


def _read(source: SuiteInstance) -> Instance | str:
    try:
        return read(source.path)
    except ArcfleetError as error:
        return str(error)
