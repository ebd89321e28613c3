"""The learned solver against searches on test sets with reference plans.

For every test set and method: all instances solved, costs compared with the labels of the
same instances, a sample of the plans judged by the checker. A fault ends the experiment.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from arcfleet.batch import Failure, solve_many
from arcfleet.datasets import Dataset, open_labels
from arcfleet.datasets.labels import labels_path
from arcfleet.errors import FormatWarning, OptionError, SolutionError, UnsolvableError
from arcfleet.experiments.machine import commit, machine
from arcfleet.experiments.table_rows import RowFile, RowKey, TableRow
from arcfleet.network import Network
from arcfleet.search.stop import Stop
from arcfleet.solution.checker import check
from arcfleet.solution.plan import from_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from arcfleet.batch import BatchProgress
    from arcfleet.datasets import Labels
    from arcfleet.experiments.contenders import Contender
    from arcfleet.neural.evaluation import Decoding
    from arcfleet.neural.solver import LoadedModel
    from arcfleet.solution import Solution


class LabelledFile(NamedTuple):
    """A test set with its reference plans."""

    name: str
    dataset: Dataset
    labels: Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A row of the file that is to be made, or kept: a contender on a test set."""

    key: RowKey
    contender: Contender
    file: LabelledFile


def open_test_sets(paths: Sequence[Path]) -> list[LabelledFile]:
    """Open test sets and the labels beside them.

    Raises
    ------
    OptionError
        If two have the same name, or there is none.
    FileError
        If a file cannot be read, or labels do not fit.
    """
    names = [path.name.removesuffix(".npz") for path in paths]
    for name in names:
        if names.count(name) > 1:  # the columns of the table are told apart by them
            raise OptionError(
                f"expected test sets with different names, got {name!r} twice: rename one"
            )
    files = []
    for name, path in zip(names, paths, strict=True):
        dataset = Dataset.open(path)
        files.append(LabelledFile(name, dataset, open_labels(labels_path(path), dataset)))
    if not files or not all(len(file.dataset) for file in files):
        raise OptionError("expected test sets of at least one instance, got an empty one")
    return files


def file_checksum(path: Path) -> str:
    """Give the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def plan_cells(
    files: Sequence[LabelledFile],
    contenders: Sequence[Contender],
    *,
    model_sha256: str | None,
    count: int | None = None,
) -> list[Cell]:
    """List every contender on every test set, set by set.

    Parameters
    ----------
    files, contenders
        What to combine.
    model_sha256
        Of the model file; None where no contender needs it.
    count
        Take only so many of the first instances of each set.
    """
    cells = []
    for file in files:
        for contender in contenders:
            limits = (len(file.dataset), count, contender.count)
            key = RowKey(
                set_name=file.name,
                data_sha256=file.dataset.checksum,
                labels_sha256=file.labels.checksum,
                count=min(limit for limit in limits if limit is not None),
                method=contender.method,
                settings=contender.settings,
                model_sha256=model_sha256 if contender.is_learned else None,
            )
            cells.append(Cell(key=key, contender=contender, file=file))
    return cells


def cells_left(cells: Sequence[Cell], rows: RowFile) -> list[Cell]:
    """Give the cells that the file does not hold.

    A warning tells of kept rows of another commit or machine: their seconds, and perhaps
    their costs, do not compare with those made now.
    """
    kept = [rows.rows[cell.key] for cell in cells if cell.key in rows.rows]
    here = (machine(), commit())
    foreign = [row for row in kept if (row.machine, row.commit) != here]
    if foreign and len(kept) < len(cells):
        other = foreign[0]
        warnings.warn(
            f"{rows.path}: keeps {len(foreign)} rows made elsewhere (commit "
            f"{other.commit}, {other.machine}), this is commit {here[1]}, {here[0]}; "
            "name another file to make them anew",
            FormatWarning,
            stacklevel=2,
        )
    return [cell for cell in cells if cell.key not in rows.rows]


def fill_table(
    cells: Sequence[Cell],
    rows: RowFile,
    *,
    loaded: LoadedModel | None,
    workers: int = 1,
    batch_size: int | None = None,
    judge: int = 50,
    progress: Callable[[int, int], None] | None = None,
    finished: Callable[[Cell, TableRow], None] | None = None,
) -> None:
    """Make rows, each added to the file as soon as it is there.

    Ctrl-C ends it; the row in hand is lost.

    Parameters
    ----------
    cells
        What to make.
    rows
        Where to add.
    loaded
        The model; None where no cell needs one.
    workers
        Processes of the searches; threads of the path optimiser, and of torch on a CPU.
    batch_size
        Instances that the model decodes at a time; by default what suits the device.
    judge
        Plans of each row, and labels of each set, that the checker judges.
    progress
        Told how many plans are made, and how many there will be.
    finished
        Called after each row.

    Raises
    ------
    SolutionError
        If the checker finds a fault.
    UnsolvableError
        If an instance has no plan.
    """
    here = (machine(), commit())
    total = sum(cell.key.count for cell in cells)
    before = 0
    judged_labels: set[str] = set()

    def tell(done: int) -> None:
        if progress is not None:
            progress(before + done, total)

    tell(0)
    for cell in cells:
        key, file = cell.key, cell.file
        chosen = _spread(key.count, judge)
        if file.name not in judged_labels:
            for position in chosen:
                _judge(file, position, file.labels[position], "labels", None)
            judged_labels.add(file.name)
        if cell.contender.is_learned:
            if loaded is None:
                raise OptionError(f"expected a model for {key.method!r}, got none")
            outcome = _decode(cell, loaded, chosen, workers, batch_size, tell)
        else:
            outcome = _search(cell, chosen, workers, tell)
        for position, plan in outcome.plans.items():
            cost = outcome.costs[position]
            _judge(file, position, plan, cell.contender.label, cost)
        row = TableRow(
            key=key,
            machine=here[0],
            device=outcome.device,
            commit=here[1],
            seconds_per_instance=outcome.seconds / key.count,
            judged=len(outcome.plans),
            costs=outcome.costs,
            references=tuple(file.labels.cost[: key.count].tolist()),
        )
        rows.add(row)
        before += key.count
        tell(0)
        if finished is not None:
            finished(cell, row)


class _Outcome(NamedTuple):
    costs: tuple[int, ...]
    plans: dict[int, Solution]  # those to be judged
    seconds: float  # of all instances together
    device: str


def _decode(
    cell: Cell,
    loaded: LoadedModel,
    chosen: Sequence[int],
    threads: int,
    batch_size: int | None,
    tell: Callable[[int], None],
) -> _Outcome:
    from arcfleet.neural.evaluation import decode_dataset, device_name

    settings = dict(cell.key.settings)
    dataset = cell.file.dataset
    decoded = decode_dataset(
        loaded,
        dataset,
        cell.key.count,
        cast("Decoding", cell.key.method),
        samples=int(settings.get("samples", 1)),
        temperature=settings.get("temperature", 1.0),
        seed=int(settings.get("seed", 0)),
        keep=chosen,
        threads=threads,
        batch_size=batch_size,
        progress=tell,
    )
    plans = {
        position: from_plan(Network(dataset[position]), *plan)
        for position, plan in decoded.plans.items()
    }
    costs = tuple(decoded.costs.tolist())
    return _Outcome(costs, plans, decoded.seconds, device_name(loaded))


def _search(
    cell: Cell, chosen: Sequence[int], workers: int, tell: Callable[[int], None]
) -> _Outcome:
    settings = dict(cell.key.settings)

    def progress(where: BatchProgress) -> None:
        tell(where.finished)

    outcomes = solve_many(
        cell.file.dataset[: cell.key.count],
        cell.key.method,
        stop=Stop(iterations=int(settings["iterations"])),
        seed=int(settings["seed"]),
        workers=workers,
        progress=progress,
    )
    costs, seconds = [], 0.0
    for outcome in outcomes:
        if isinstance(outcome, Failure):
            if outcome.message.startswith("interrupted"):
                raise KeyboardInterrupt
            raise UnsolvableError(
                f"expected a plan of {outcome.instance!r} by {cell.key.method}, found "
                f"none: {outcome.message}"
            )
        if outcome.stopped_by == "interrupt":  # not the plan that the seed stands for
            raise KeyboardInterrupt
        costs.append(outcome.cost)
        seconds += outcome.seconds
    results = {i: outcomes[i] for i in chosen}
    plans = {i: x.solution for i, x in results.items() if not isinstance(x, Failure)}
    return _Outcome(tuple(costs), plans, seconds, "cpu")


def _spread(count: int, number: int) -> list[int]:
    """Give some positions below `count`, the first and the last among them."""
    places = np.linspace(0, count - 1, min(count, number)).round().astype(np.int64)
    return sorted(set(places.tolist()))


def _judge(
    file: LabelledFile, position: int, plan: Solution, who: str, cost: int | None
) -> None:
    report = check(file.dataset[position], plan)
    faults = list(report.faults)
    if cost is not None and report.cost != cost:
        faults.append(f"expected cost {report.cost}, got {cost}")
    if faults:
        raise SolutionError(
            f"expected a valid plan of instance {position} of {file.name} by {who}, "
            f"found a fault: {faults[0]}"
        )
