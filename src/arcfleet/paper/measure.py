"""Measuring rows on test sets: models in this process, searches over several.

Classical rows run `arcfleet.solve`; learned rows decode by the strategies that `solve` runs
too, whole batches at a time.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from arcfleet._checks import check_whole_number
from arcfleet.batch import MOST_WORKERS
from arcfleet.bench.machine import commit, machine
from arcfleet.datasets import Dataset
from arcfleet.errors import ArcfleetError, FileError, FormatWarning, SolutionError
from arcfleet.methods import solve
from arcfleet.network import Network
from arcfleet.paper.gaps import scale_number
from arcfleet.paper.report import prepare_folder
from arcfleet.paper.rows import (
    LABELS,
    MODELS,
    ROWS,
    TABLE_ROWS,
    parse_models,
    parse_rows,
    trained_label,
)
from arcfleet.paper.series import Costs, join, missing, open_costs
from arcfleet.paper.sets import open_test_sets, tiny_set
from arcfleet.search.stop import Stop
from arcfleet.solution.checker import check
from arcfleet.solution.plan import from_plan
from arcfleet.workers import TaskFailure, child_seed, run_tasks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from arcfleet.datasets.store import Store
    from arcfleet.instance import Instance
    from arcfleet.neural.solver import LoadedModel
    from arcfleet.paper.commands import Watch
    from arcfleet.paper.rows import ModelFiles, Row
    from arcfleet.paper.series import Key, Series
    from arcfleet.paper.sets import TestSet
    from arcfleet.search import ProgressCallback
    from arcfleet.solution import Solution

# Instances per line where a model decodes them one by one.
_ALONE_CHUNK = 20
# Batches per line on a CPU, where one takes seconds; a GPU has one.
_CPU_BATCHES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureConfig:
    """How rows are measured.

    Parameters
    ----------
    device
        Device of the models: auto, cpu, cuda or cuda:1.
    seed
        Seed of the random number generator; instance i has its child number i.
    workers
        Number of processes of searches, and of threads of models on a CPU.
    batch
        Number of instances decoded at a time; default: 1024 on a GPU, else 64.
    verify
        Number of plans per row and set to verify with the checker.
    """

    device: str = "auto"
    seed: int = 0
    workers: int = 1
    batch: int | None = None
    verify: int = 50

    def __post_init__(self) -> None:
        """Raise OptionError if a setting is out of range."""
        check_whole_number("--workers", self.workers, 1, MOST_WORKERS)
        check_whole_number("--seed", self.seed, 0, 2**64 - 1)
        check_whole_number("--verify", self.verify, 1, 10**9)
        if self.batch is not None:
            check_whole_number("--batch", self.batch, 1, 10**9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is measured.

    Parameters
    ----------
    rows
        Rows to measure, as NAME, NAME=NUMBER (plans, iterations or samples) or
        NAME=NUMBER@TEMPERATURE; default: the paper's but for maens, then daam and
        ruin-recreate, as far as there are models.
    models
        Model files as NAME=FILE (daam, daam-sl, s2v-dqn, vrp-dl), of one scale as
        NAME@task50=FILE; default: the shipped ones.
    temperature
        Temperature of samples where the row states none.
    count
        Number of first instances of each test set, 0 for all.
    search_count
        The same number for maens and ruin-recreate; default: as all rows.
    """

    rows: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    temperature: float | None = None
    count: int = 100
    search_count: int | None = None

    def __post_init__(self) -> None:
        """Raise OptionError if a number is out of range."""
        check_whole_number("--count", self.count, 0, 10**9)
        if self.search_count is not None:
            check_whole_number("--search-count", self.search_count, 1, 10**9)


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """A series to be measured."""

    head: Costs  # a line of it, without costs
    row: Row
    test_set: TestSet
    count: int  # number of its first instances
    model: Path | None  # model file; None for a row that needs none

    @property
    def key(self) -> Key:
        """Key of the series."""
        return self.head.key


def plan_measurements(
    test_sets: Sequence[TestSet],
    rows: Sequence[Row],
    models: ModelFiles,
    *,
    count: int | None = None,
    search_count: int | None = None,
    alone: bool = False,
) -> list[Measurement]:
    """List every row on every test set."""
    measurements = []
    for test_set in test_sets:
        for row in rows:
            limits = (len(test_set.dataset), count, search_count if row.is_search else None)
            model = models.path(row, test_set.scale) if row.model else None
            head = _head(test_set, row.name)
            if model is not None:
                head = replace(
                    head,
                    source_sha256=models.checksum(model),
                    device=models.device_name(),
                    alone=alone,
                    label=trained_label(row, models.training(model)),
                )
            else:
                head = replace(head, label=row.label)
            head = replace(head, settings=dict(row.settings))
            least = min(limit for limit in limits if limit is not None)
            measurements.append(Measurement(head, row, test_set, least, model))
    return measurements


def _head(test_set: TestSet, row: str) -> Costs:
    return Costs(
        data_sha256=test_set.dataset.checksum,
        row=row,
        settings={},
        source_sha256=None,
        device="cpu",
        alone=False,
        set_name=test_set.name,
        scale=test_set.scale,
        place=test_set.place,
        label=row,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsConfig:
    """Inputs and settings of a comparison of rows on test sets.

    Parameters
    ----------
    sets
        Test sets, as `arcfleet dataset make` writes them.
    out
        Output folder; unchanged results in it are reused.
    labelled
        Smaller labelled sets, each the beginning of a test set.
    selection
        Rows, models and numbers of instances.
    measure
        How rows are measured.
    figures
        Figures, which need matplotlib.
    quick
        Tiny inputs in place of those given, to see that all of it works.
    """

    sets: tuple[Path, ...] = field(
        default=(), metadata={"positional": True, "metavar": "SET"}
    )
    out: Path = field(metadata={"metavar": "DIR"})
    labelled: tuple[Path, ...] = ()
    selection: Selection = field(default_factory=Selection)
    measure: MeasureConfig = field(default_factory=MeasureConfig)
    figures: bool = True
    quick: bool = False

    def on_tiny_set(self, selection: Selection) -> RowsConfig:
        """Return the config of a quick run; the same one where none is asked for."""
        if not self.quick:
            return self
        sets = (tiny_set(self.out / "inputs"),)
        return replace(self, sets=sets, labelled=(), selection=selection, quick=False)


#: What a quick run measures.
QUICK = Selection(
    rows=(
        *("ps", "ps-ellipse=20", "s2v-dqn", "vrp-dl", "daam-sl-rl", "daam-po", "maens=20"),
        *("daam-greedy", "daam", "sample=2", "daam-sample=2", "ruin-recreate=50"),
    )
)


def measure_rows(
    config: RowsConfig, watch: Watch, *, alone: Sequence[bool] = (False,)
) -> list[Series]:
    """Measure rows on test sets, and return their series."""
    config = config.on_tiny_set(QUICK)
    selection = config.selection
    models = parse_models(selection.models, config.measure.device, names=MODELS)
    test_sets = open_test_sets(config.sets, config.labelled)
    scales = [test_set.scale for test_set in test_sets]
    texts = split_names(selection.rows)
    if not texts:
        texts = [x for x in TABLE_ROWS if all(models.has(ROWS[x], s) for s in scales)]
        left = [name for name in TABLE_ROWS if name not in texts]
        if left:
            watch.note(f"left out, without a model: {', '.join(left)}")
    rows = parse_rows(texts, seed=config.measure.seed, temperature=selection.temperature)
    measurements = [
        measurement
        for one_by_one in alone
        for measurement in plan_measurements(
            test_sets,
            rows,
            models,
            count=selection.count or None,
            search_count=selection.search_count,
            alone=one_by_one,
        )
    ]
    prepare_folder(config.out, figures=config.figures)
    return measured_series(
        measurements, config.out / "runs.jsonl", models, config.measure, watch
    )


def split_names(texts: Sequence[str]) -> list[str]:
    """Return names given one by one or separated by commas."""
    return [name for text in texts for name in text.split(",") if name.strip()]


def measured_series(
    measurements: Sequence[Measurement],
    path: Path,
    models: ModelFiles,
    config: MeasureConfig,
    watch: Watch,
) -> list[Series]:
    """Measure what a store lacks, and return all series asked for.

    Models come first, in this process; then the searches over processes, chunks of all of
    them in turn, so that what is done tells how long the rest will take. Ctrl-C ends it;
    chunks in hand are lost.
    """
    distinct = list({x.key: x for x in measurements}.values())
    with open_costs(path) as store:
        _keep_labels(distinct, store, config.verify)
        work = _Work(distinct, store, config, watch)
        work.announce(models.device)
        for measurement in distinct:
            if measurement.model is not None:
                work.decode(measurement, measurement.model, models)
        work.search([x for x in distinct if x.model is None])
        found = join(store.records)
    # Names for people are those of this call, not of the one that filled the store.
    asked = {x.key: x.head for x in distinct}
    labels = [_labels_head(x.test_set) for x in distinct if x.test_set.labels is not None]
    asked |= {head.key: head for head in labels}
    return [_renamed(x, asked[x.of.key]) for x in found if x.of.key in asked]


def _labels_head(test_set: TestSet) -> Costs:
    checksum = None if test_set.labels is None else test_set.labels.checksum
    return replace(_head(test_set, LABELS), source_sha256=checksum)


def _renamed(series: Series, head: Costs) -> Series:
    names = {x: getattr(head, x) for x in ("set_name", "scale", "place", "label")}
    return replace(series, lines=tuple(replace(x, **names) for x in series.lines))


class _Outcome(NamedTuple):
    costs: tuple[int, ...]
    seconds: float  # of all instances together
    verified: int


class _Work:
    """What is left to measure, and the callbacks that hear of it."""

    def __init__(
        self,
        measurements: Sequence[Measurement],
        store: Store[Costs],
        config: MeasureConfig,
        watch: Watch,
    ) -> None:
        self.measurements = measurements
        self.store, self.config, self.watch = store, config, watch
        self.machine, self.commit = machine(), commit()
        self.total = sum(x.count for x in measurements)
        self.left = {x.key: missing(store.records, x.key, x.count) for x in measurements}
        self.open = {key: sum(map(len, part)) for key, part in self.left.items()}
        self._warn_of_others()

    def announce(self, device: str) -> None:
        """Note what will be measured and about how long it will take."""
        self.tell(0)
        plans = sum(self.open.values())
        if not plans:
            return
        models, searches = 0.0, 0.0
        for x in self.measurements:
            tasks = scale_number(x.test_set.scale) or 100
            where = "cpu" if device == "cpu" or x.head.device == "cpu" else "cuda"
            seconds = self.open[x.key] * x.row.expected_seconds(tasks, where)
            models += seconds if x.model is not None else 0.0
            searches += seconds if x.model is None else 0.0
        rows = len({x.head.row for x in self.measurements})
        sets = len({x.test_set.name for x in self.measurements})
        reused = f", {self.total - plans:,} reused" if plans < self.total else ""
        expected = _duration(models + searches / self.config.workers)
        self.watch.note(
            f"rows: {rows}, test sets: {sets}, plans to make: {plans:,}{reused}; about "
            f"{expected}"
        )

    def tell(self, beyond: int) -> None:
        """Report; so many plans are made beyond those in the store."""
        if self.watch.progress is not None:
            self.watch.progress(self.total - sum(self.open.values()) + beyond, self.total)

    def decode(self, measurement: Measurement, path: Path, models: ModelFiles) -> None:
        """Decode what a series lacks, in this process."""
        warm_up = True
        for stretch in self.left[measurement.key]:
            loaded = models.load(path, measurement.row)
            for part in _cut(stretch, self._chunk_size(measurement, loaded.device.type)):
                outcome = self._decode_chunk(measurement, loaded, part, warm_up=warm_up)
                warm_up = False
                self.add(measurement, part.start, outcome, 1)

    def _chunk_size(self, measurement: Measurement, device: str) -> int:
        if measurement.head.alone:
            return _ALONE_CHUNK
        from arcfleet.neural.solver import DEFAULT_BATCH

        size = self.config.batch or DEFAULT_BATCH[device]
        return size if device == "cuda" else _CPU_BATCHES * size

    def _decode_chunk(
        self, measurement: Measurement, loaded: LoadedModel, part: range, *, warm_up: bool
    ) -> _Outcome:
        from arcfleet.neural.solver import decode_dataset

        settings: dict[str, Any] = dict(measurement.row.settings)
        dataset = measurement.test_set.dataset
        decoded = decode_dataset(
            loaded,
            dataset,
            len(part),
            measurement.row.method,
            first=part.start,
            samples=settings.get("samples", 1),
            temperature=settings.get("temperature"),
            seed=settings.get("seed", 0),
            keep=_chosen(part, measurement.count, self.config.verify),
            threads=self.config.workers,
            batch_size=1 if measurement.head.alone else self.config.batch,
            warm_up=warm_up,
            progress=self.tell,
        )
        costs = tuple(decoded.costs.tolist())
        for position, plan in decoded.plans.items():
            instance = dataset[position]
            solution = from_plan(Network(instance), *plan)
            cost = costs[position - part.start]
            _require_valid(measurement.head, position, instance, solution, cost)
        return _Outcome(costs, decoded.seconds, len(decoded.plans))

    def search(self, measurements: Sequence[Measurement]) -> None:
        """Solve what the series of searches lack, over processes."""
        jobs = sorted(self._jobs(measurements), key=lambda job: job[0])
        workers = max(1, min(self.config.workers, len(jobs)))
        failures: list[TaskFailure] = []

        def take(number: int, outcome: _Outcome | TaskFailure) -> None:
            _, measurement, job = jobs[number]
            if isinstance(outcome, TaskFailure):
                failures.append(outcome)
            else:
                self.add(measurement, job.part.start, outcome, workers)

        run_tasks(_solve_job, (job for _, _, job in jobs), workers=workers, finished=take)
        for failure in failures:
            if failure.interrupted:
                raise KeyboardInterrupt
            raise ArcfleetError(failure.message)
        if any(self.open[measurement.key] for measurement in measurements):
            raise KeyboardInterrupt

    def _jobs(
        self, measurements: Sequence[Measurement]
    ) -> Iterator[tuple[float, Measurement, _Job]]:
        """Return the chunks of searches, each with the share of its series before it."""
        for measurement in measurements:
            dataset = measurement.test_set.dataset
            for stretch in self.left[measurement.key]:
                for part in _cut(stretch, measurement.row.chunk):
                    job = _Job(
                        path=Path(dataset.path),
                        head=measurement.head,
                        method=measurement.row.method,
                        part=part,
                        verified=_chosen(part, measurement.count, self.config.verify),
                    )
                    yield part.start / measurement.count, measurement, job

    def add(
        self, measurement: Measurement, first: int, outcome: _Outcome, parallel: int
    ) -> None:
        """Add a line to the store."""
        self.store.add(
            replace(
                measurement.head,
                first=first,
                costs=outcome.costs,
                seconds=round(outcome.seconds, 9),
                parallel=parallel,
                verified=outcome.verified,
                machine=self.machine,
                commit=self.commit,
            )
        )
        self.open[measurement.key] -= len(outcome.costs)
        self.tell(0)
        if not self.open[measurement.key]:
            head = measurement.head
            alone = ", one at a time" if head.alone else ""
            self.watch.note(
                f"{head.set_name}, {head.label}{alone}: {measurement.count} instances"
            )

    def _warn_of_others(self) -> None:
        """Warn of reused lines of another commit or machine, where more will be made."""
        here = (self.machine, self.commit)
        keys = set(self.open)
        other = [
            line
            for line in self.store.records
            if line.key in keys and (line.machine, line.commit) != here
        ]
        if other and any(self.open.values()):
            warnings.warn(
                f"{self.store.path}: reuses {len(other)} lines made elsewhere (commit "
                f"{other[0].commit}, {other[0].machine}), this is commit {here[1]}, "
                f"{here[0]}; name another folder to make them anew",
                FormatWarning,
                stacklevel=5,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    path: Path
    head: Costs
    method: str
    part: range
    verified: Collection[int]


def _solve_job(job: _Job, progress: ProgressCallback) -> _Outcome:
    """Solve instances one after the other, each by its own child seed."""
    dataset = _dataset(job.path, job.head.data_sha256)
    settings = job.head.settings
    costs, seconds = [], 0.0
    for position in job.part:
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
        if position in job.verified:
            _require_valid(job.head, position, instance, result.solution, result.cost)
        costs.append(result.cost)
        seconds += result.seconds
    return _Outcome(tuple(costs), seconds, len(job.verified))


@lru_cache(maxsize=8)  # a worker solves many chunks of the same test sets
def _dataset(path: Path, checksum: str) -> Dataset:
    dataset = Dataset.open(path)
    if dataset.checksum != checksum:
        raise FileError(path, "expected it to stay the same while it is solved")
    return dataset


def _require_valid(
    head: Costs, position: int, instance: Instance, plan: Solution, cost: int
) -> None:
    """Raise SolutionError unless the checker confirms a plan and its cost."""
    report = check(instance, plan)
    faults = list(report.faults)
    if report.cost != cost:
        faults.append(f"expected cost {report.cost}, got {cost}")
    if faults:
        raise SolutionError(
            f"expected a valid plan of instance {position} of {head.set_name} by "
            f"{head.row}, found a fault: {faults[0]}"
        )


def _keep_labels(
    measurements: Sequence[Measurement], store: Store[Costs], verify: int
) -> None:
    """Put the costs of labels beside those of the methods, for reports without the sets."""
    for test_set in {id(x.test_set): x.test_set for x in measurements}.values():
        labels = test_set.labels
        if labels is None:
            continue
        head = _labels_head(test_set)
        if not missing(store.records, head.key, len(labels)):
            continue
        chosen = _chosen(range(len(labels)), len(labels), verify)
        for position in chosen:
            cost = int(labels.cost[position])
            instance = test_set.dataset[position]
            _require_valid(head, position, instance, labels[position], cost)
        store.add(
            replace(
                head,
                costs=tuple(labels.cost.tolist()),
                verified=len(chosen),
                machine=machine(),
                commit=commit(),
            )
        )


def _cut(stretch: range, size: int) -> Iterator[range]:
    for first in range(stretch.start, stretch.stop, size):
        yield range(first, min(first + size, stretch.stop))


def _chosen(part: range, count: int, number: int) -> list[int]:
    """Return the positions of a chunk to verify: about `number` of all, evenly spread."""
    step = max(1, count // number)
    return [position for position in part if position % step == 0]


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
