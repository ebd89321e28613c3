"""Measuring rows on test sets: models in this process, searches over several.

Classical rows run `arcfleet.solve`; learned rows decode by the strategies that `solve` runs
too, whole batches at a time.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcfleet._checks import check_whole_number
from arcfleet.bench.machine import commit, machine, warn_of_reused
from arcfleet.datasets import Dataset
from arcfleet.datasets.chunks import run_all
from arcfleet.datasets.shards import identity_of
from arcfleet.datasets.store import Store
from arcfleet.errors import FileError, SolutionError
from arcfleet.methods import solve
from arcfleet.network import Network
from arcfleet.neural.solver import DEFAULT_BATCH, decode_dataset
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
from arcfleet.paper.series import COSTS, Costs, join, missing
from arcfleet.paper.sets import open_test_sets, refuse_beside_quick, tiny_set
from arcfleet.search.stop import Stop
from arcfleet.solution.checker import check
from arcfleet.solution.plan import from_plan
from arcfleet.workers import check_workers, child_seed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from arcfleet.datasets import Labels
    from arcfleet.datasets.shards import Shard
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
        check_workers(self.workers, name="--workers")
        check_whole_number("--seed", self.seed, 0, 2**64 - 1)
        check_whole_number("--verify", self.verify, 1, 10**9)
        check_whole_number("--batch", 1 if self.batch is None else self.batch, 1, 10**9)


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
        Tiny inputs, to see that all of it works; rows are those given, or cheap ones.
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

    def on_tiny_set(self, rows: tuple[str, ...]) -> RowsConfig:
        """Return the config of a quick run; the same one where none is asked for."""
        if not self.quick:
            return self
        refuse_beside_quick(sets=self.sets, labelled=self.labelled)
        selection = replace(self.selection, rows=self.selection.rows or rows)
        sets = (tiny_set(self.out / "inputs"),)
        return replace(self, sets=sets, selection=selection, quick=False)


#: Rows of a quick run.
QUICK = (
    *("ps", "ps-ellipse=20", "s2v-dqn", "vrp-dl", "daam-sl-rl", "daam-po", "maens=20"),
    *("daam-greedy", "daam", "sample=2", "daam-sample=2", "ruin-recreate=50"),
)


@dataclass(frozen=True, slots=True, eq=False)
class _Target:
    """A series to be measured."""

    head: Costs  # a line of it, without costs
    row: Row
    test_set: TestSet
    count: int  # number of its first instances
    model: Path | None  # model file; None for a row that needs none


def measure_rows(
    config: RowsConfig,
    watch: Watch,
    *,
    alone: Sequence[bool] = (False,),
    shard: Shard | None = None,
) -> list[Series]:
    """Measure the rows of a config on its test sets, and return their series."""
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
    return measure(
        test_sets,
        rows,
        models,
        config.measure,
        watch,
        store=config.out / "runs.jsonl",
        figures=config.figures,
        count=selection.count,
        search_count=selection.search_count,
        alone=alone,
        shard=shard,
    )


def split_names(texts: Sequence[str]) -> list[str]:
    """Return names given one by one or separated by commas."""
    return [name for text in texts for name in text.split(",") if name.strip()]


def measure(
    test_sets: Sequence[TestSet],
    rows: Sequence[Row],
    models: ModelFiles,
    config: MeasureConfig,
    watch: Watch,
    *,
    store: Path,
    figures: bool,
    count: int,
    search_count: int | None = None,
    alone: Sequence[bool] = (False,),
    shard: Shard | None = None,
) -> list[Series]:
    """Measure what a store lacks of every row on every test set, and return all series.

    Of a shard, only its part; the labels of the sets belong to the first one. Models come
    first, in this process; then the searches over processes, chunks of all of them in turn,
    so that what is done tells how long the rest will take. Ctrl-C ends it; chunks in hand
    are lost.
    """
    found = {}
    for one_by_one, test_set, row in itertools.product(alone, test_sets, rows):
        limits = (count or None, search_count if row.is_search else None)
        least = min([len(test_set.dataset), *(x for x in limits if x is not None)])
        path = models.path(row, test_set.scale) if row.model else None
        head = _head(test_set, row, models, path, alone=one_by_one)
        found[head.key] = _Target(head, row, test_set, least, path)
    targets = list(found.values())
    prepare_folder(store.parent, figures=figures)
    mine = _pieces(targets, config)
    labels = [x for x in test_sets if x.labels is not None]
    identity: dict[str, object] = {}
    if shard is not None:
        common = _identity(targets, labels)
        mine = shard.tasks(mine)
        labels = labels if shard.number == 1 else []
        tasks = sum(len(part) for _, part in mine)
        tasks += sum(len(x.labels) for x in labels if x.labels is not None)
        identity = identity_of(shard, tasks, common)
    with Store(store, COSTS, identity) as costs:
        # Names for people are those of this call, not of the one that filled the store.
        asked = {x.head.key: x.head for x in targets}
        for test_set in labels:
            if test_set.labels is not None:
                head = _keep_labels(test_set, test_set.labels, costs, config.verify)
                asked[head.key] = head
        work = _Work(targets, mine, costs, config, watch)
        work.announce()
        for target in targets:
            if target.model is not None:
                work.decode(target, target.model, models)
        work.search([x for x in targets if x.model is None])
        series = [x for x in join(costs.records) if x.of.key in asked]
    return [_renamed(x, asked[x.of.key]) for x in series]


def _pieces(
    targets: Sequence[_Target], config: MeasureConfig
) -> Sequence[tuple[_Target, range]]:
    """Return what there is to measure, in pieces that are measured at once."""
    return [
        (target, part)
        for target in targets
        for part in _cut(range(target.count), _piece_size(target, config))
    ]


def _piece_size(target: _Target, config: MeasureConfig) -> int:
    """Return the number of instances that are measured at once: a line of the store."""
    if target.model is None:
        return target.row.chunk
    if target.head.alone:
        return _ALONE_CHUNK
    if target.head.device == "cpu":
        return _CPU_BATCHES * (config.batch or DEFAULT_BATCH["cpu"])
    return config.batch or DEFAULT_BATCH["cuda"]


def _identity(targets: Sequence[_Target], labelled: Sequence[TestSet]) -> dict[str, object]:
    """Return what all parts of a measurement have in common."""
    keys = sorted(repr((x.head.key, x.count)) for x in targets)
    keys += [x.labels.checksum for x in labelled if x.labels is not None]
    return {
        "sets": [x.set_name for x in {x.head.set_name: x.head for x in targets}.values()],
        "rows": list(dict.fromkeys(x.head.row for x in targets)),
        "plans": {
            "count": sum(x.count for x in targets),
            "sha256": hashlib.sha256("\n".join(keys).encode()).hexdigest(),
        },
    }


def _head(
    test_set: TestSet, row: Row, models: ModelFiles, path: Path | None, *, alone: bool
) -> Costs:
    """Return a line of a series, without costs."""
    return Costs(
        **test_set.facts,
        row=row.name,
        settings=dict(row.settings),
        source_sha256=None if path is None else models.checksum(path),
        device="cpu" if path is None else models.device_name(),
        alone=alone and path is not None,
        label=row.label if path is None else trained_label(row, models.training(path)),
    )


def _keep_labels(
    test_set: TestSet, labels: Labels, store: Store[Costs], verify: int
) -> Costs:
    """Put the costs of labels beside those of the methods, for reports without the sets."""
    head = Costs(
        **test_set.facts,
        row=LABELS,
        label=LABELS,
        settings={},
        source_sha256=labels.checksum,
        device="cpu",
        alone=False,
    )
    if missing(store.records, head.key, len(labels)):
        chosen = _chosen(range(len(labels)), len(labels), verify)
        for position in chosen:
            cost = int(labels.cost[position])
            instance = test_set.dataset[position]
            _require_valid(head, position, instance, labels[position], cost)
        costs, verified = tuple(labels.cost.tolist()), len(chosen)
        here: dict[str, Any] = {"machine": machine(), "commit": commit()}
        store.add(replace(head, costs=costs, verified=verified, **here))
    return head


def _renamed(series: Series, head: Costs) -> Series:
    names = {x: getattr(head, x) for x in ("set_name", "scale", "place", "label")}
    return replace(series, lines=tuple(replace(x, **names) for x in series.lines))


class _Work:
    """What is left to measure, and the callbacks that hear of it."""

    def __init__(
        self,
        targets: Sequence[_Target],
        mine: Sequence[tuple[_Target, range]],
        store: Store[Costs],
        config: MeasureConfig,
        watch: Watch,
    ) -> None:
        self.targets, self.store = targets, store
        self.config, self.watch = config, watch
        self.total = sum(len(part) for _, part in mine)
        keys = {x.head.key: x.count for x in targets}
        lacking = {key: missing(store.records, key, x) for key, x in keys.items()}
        self.left: dict[Key, list[range]] = {key: [] for key in keys}
        for target, part in mine:
            for stretch in lacking[target.head.key]:
                first, last = max(part.start, stretch.start), min(part.stop, stretch.stop)
                if first < last:
                    self.left[target.head.key].append(range(first, last))
        self.open = {key: sum(map(len, part)) for key, part in self.left.items()}
        self.here: dict[str, Any] = {"machine": machine(), "commit": commit()}
        if any(self.open.values()):
            warn_of_reused(store.path, [x for x in store.records if x.key in keys], "lines")

    def announce(self) -> None:
        """Note what will be measured and about how long it will take."""
        self.tell(0)
        plans = sum(self.open.values())
        if not plans:
            return
        seconds = 0.0
        for x in self.targets:
            tasks = scale_number(x.test_set.scale) or 100
            device = "cpu" if x.head.device == "cpu" else "cuda"
            parallel = self.config.workers if x.model is None else 1
            expected = x.row.expected_seconds(tasks, device) / parallel
            seconds += self.open[x.head.key] * expected
        rows = len({x.head.row for x in self.targets})
        sets = len({x.test_set.name for x in self.targets})
        reused = f", {self.total - plans:,} reused" if plans < self.total else ""
        self.watch.note(
            f"rows: {rows}, test sets: {sets}, plans to make: {plans:,}{reused}; about "
            f"{_duration(seconds)}"
        )

    def tell(self, beyond: int) -> None:
        """Report; so many plans are made beyond those in the store."""
        if self.watch.progress is not None:
            self.watch.progress(self.total - sum(self.open.values()) + beyond, self.total)

    def decode(self, target: _Target, path: Path, models: ModelFiles) -> None:
        """Decode what a series lacks, in this process."""
        warm_up = True
        for part in self.left[target.head.key]:
            loaded = models.load(path, target.row)
            self.add(target, self._decode(target, loaded, part, warm_up=warm_up))
            warm_up = False

    def _decode(
        self, target: _Target, loaded: LoadedModel, part: range, *, warm_up: bool
    ) -> Costs:
        settings: dict[str, Any] = dict(target.row.settings)
        dataset = target.test_set.dataset
        decoded = decode_dataset(
            loaded,
            dataset,
            len(part),
            target.row.method,
            first=part.start,
            samples=settings.get("samples", 1),
            temperature=settings.get("temperature"),
            seed=settings.get("seed", 0),
            keep=_chosen(part, target.count, self.config.verify),
            threads=self.config.workers,
            batch_size=1 if target.head.alone else self.config.batch,
            warm_up=warm_up,
            progress=self.tell,
        )
        costs = tuple(decoded.costs.tolist())
        for position, plan in decoded.plans.items():
            instance = dataset[position]
            solution = from_plan(Network(instance), *plan)
            cost = costs[position - part.start]
            _require_valid(target.head, position, instance, solution, cost)
        return replace(
            target.head,
            first=part.start,
            costs=costs,
            seconds=decoded.seconds,
            verified=len(decoded.plans),
        )

    def search(self, targets: Sequence[_Target]) -> None:
        """Solve what the series of searches lack, over processes."""
        jobs = [(target, part) for target in targets for part in self.left[target.head.key]]
        jobs.sort(key=lambda job: job[1].start / job[0].count)
        workers = max(1, min(self.config.workers, len(jobs)))
        run_all(
            _solve_job,
            [
                _Job(
                    path=Path(target.test_set.dataset.path),
                    head=replace(target.head, first=part.start, parallel=workers),
                    method=target.row.method,
                    part=part,
                    verified=_chosen(part, target.count, self.config.verify),
                )
                for target, part in jobs
            ],
            lambda number, line: self.add(jobs[number][0], line),
            workers=workers,
        )

    def add(self, target: _Target, line: Costs) -> None:
        """Add a line to the store."""
        head = target.head
        self.store.add(replace(line, seconds=round(line.seconds, 9), **self.here))
        self.open[head.key] -= len(line.costs)
        self.tell(0)
        if not self.open[head.key]:
            alone = ", one at a time" if head.alone else ""
            count = f"{target.count} instances"
            self.watch.note(f"{head.set_name}, {head.label}{alone}: {count}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    path: Path
    head: Costs
    method: str
    part: range
    verified: Collection[int]


def _solve_job(job: _Job, progress: ProgressCallback) -> Costs:
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
    verified = len(job.verified)
    return replace(job.head, costs=tuple(costs), seconds=seconds, verified=verified)


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
