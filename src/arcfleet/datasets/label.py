"""Labelling a data set: a plan for every instance, by a search method."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from arcfleet._checks import check_whole_number
from arcfleet._files import check_writable
from arcfleet.datasets.array_file import require_npz, require_same_facts
from arcfleet.datasets.dataset import Dataset
from arcfleet.datasets.label_log import LabelChunk, LabelLog
from arcfleet.datasets.labels import Labels, labels_path, open_labels, write_labels
from arcfleet.datasets.make import CountCallback, raise_failures
from arcfleet.errors import FileError, OptionError, UnsolvableError
from arcfleet.instance.diagnose import require_solvable
from arcfleet.network import Network
from arcfleet.search.maens import MaensSettings, maens
from arcfleet.search.ruin_recreate import RuinRecreateSettings, ruin_recreate
from arcfleet.search.run import RunContext
from arcfleet.search.stop import Stop
from arcfleet.workers import TaskFailure, child_seed, run_tasks

if TYPE_CHECKING:
    from arcfleet.search import ProgressCallback

#: Methods to label with.
LABEL_METHODS = ("ruin-recreate", "maens")

#: Instances per record at most: enough to make their passing cheap.
_CHUNK = 16
#: Iterations of ruin and recreate per record at most, a few seconds: what a kill may lose.
_CHUNK_ITERATIONS = 400_000


def label_dataset(
    dataset: Dataset,
    path: Path | str | None = None,
    *,
    method: str = "ruin-recreate",
    iterations: int,
    seed: int = 0,
    workers: int = 1,
    progress: CountCallback | None = None,
) -> Labels:
    """Solve every instance and keep the plans in a file beside the data set.

    The same arguments give the same bytes, whatever the number of workers. After a kill
    the same call goes on; where the file is there already, it is only opened.

    Parameters
    ----------
    dataset
        What to label.
    path
        The file to make; by default beside the data set, `.labels.npz` for its `.npz`.
    method
        "ruin-recreate" or "maens".
    iterations
        Of the method, for each instance.
    seed
        Instance i is solved with numpy's child seed number i of it.
    workers
        Processes; with more than one, a script must guard its calls by
        `if __name__ == "__main__":`.
    progress
        Called as instances are done.

    Raises
    ------
    OptionError
        If an argument is wrong.
    FileError
        If a file cannot be read or written, or was made with other arguments.
    """
    path = labels_path(dataset.path) if path is None else Path(path)
    if method not in LABEL_METHODS:
        raise OptionError(
            f"expected a method among {', '.join(LABEL_METHODS)}, got {method!r}"
        )
    stop = Stop(iterations=iterations)
    check_whole_number("seed", seed, 0, 2**64 - 1)
    check_whole_number("workers", workers, 1, 256)
    require_npz(path)
    check_writable(path)
    facts: dict[str, object] = {
        # Asked of the whole package, which lies above this part of it: hence no import.
        "arcfleet_version": sys.modules["arcfleet"].__version__,
        "dataset_sha256": dataset.checksum,
        "method": method,
        "iterations": iterations,
        "settings": asdict(
            MaensSettings() if method == "maens" else RuinRecreateSettings()
        ),
        "seed": seed,
        "count": len(dataset),
    }
    log_path = path.with_name(f"{path.name}.log")
    if path.exists():
        labels = open_labels(path, dataset)
        require_same_facts(path, labels.facts, facts)
        log_path.unlink(missing_ok=True)  # of a run that was killed at its very end
        return labels
    size = chunk_size(method, iterations)
    log = LabelLog(log_path, {**facts, "chunk": size})
    try:
        job = _Job(dataset.path, dataset.checksum, method, stop, seed)
        _label_chunks(log, job, len(dataset), size, workers, progress)
        write_labels(path, facts, [log.chunks[first] for first in sorted(log.chunks)])
        log.remove()
    finally:
        log.close()
    return open_labels(path, dataset)


@dataclass(frozen=True, slots=True)
class _Job:
    dataset: Path
    checksum: str
    method: str
    stop: Stop
    seed: int
    first: int = 0
    last: int = 0


def chunk_size(method: str, iterations: int) -> int:
    """Give the instances per record: one where a single instance takes long."""
    if method == "maens":
        return 1
    return max(1, min(_CHUNK, _CHUNK_ITERATIONS // iterations))


def _label_chunks(
    log: LabelLog,
    job: _Job,
    count: int,
    size: int,
    workers: int,
    progress: CountCallback | None,
) -> None:
    left = [first for first in range(0, count, size) if first not in log.chunks]
    done = sum(len(chunk.cost) for chunk in log.chunks.values())
    failures: list[TaskFailure] = []

    def finish(position: int, outcome: LabelChunk | TaskFailure) -> None:
        nonlocal done
        if isinstance(outcome, TaskFailure):
            failures.append(outcome)
            return
        log.add(outcome)
        done += len(outcome.cost)
        if progress is not None:
            progress(done, count)

    if progress is not None:
        progress(done, count)
    run_tasks(
        _solve_chunk,
        (
            _Job(
                *(job.dataset, job.checksum, job.method, job.stop, job.seed),
                first=first,
                last=min(first + size, count),
            )
            for first in left
        ),
        workers=max(1, min(workers, len(left))),
        finished=finish,
    )
    raise_failures(failures, UnsolvableError)
    if done < count:
        raise KeyboardInterrupt


def _solve_chunk(job: _Job, progress: ProgressCallback) -> LabelChunk:
    dataset = _dataset(job.dataset, job.checksum)
    run = maens if job.method == "maens" else ruin_recreate
    costs, num_routes, lengths, services = [], [], [], []
    for index in range(job.first, job.last):
        instance = dataset[index]
        require_solvable(instance)
        result = run(
            Network(instance),
            RunContext(
                method=job.method,
                stop=job.stop,
                seed=child_seed(job.seed, index),
                progress=progress,
            ),
        )
        if result.stopped_by == "interrupt":  # not the plan that the seed stands for
            raise KeyboardInterrupt
        costs.append(result.cost)
        num_routes.append(len(result.solution.routes))
        for route in result.solution.routes:
            lengths.append(len(route.services))
            services += [2 * service.link + service.reverse for service in route.services]
    return LabelChunk(
        first=job.first,
        cost=np.array(costs, dtype=np.int64),
        num_routes=np.array(num_routes, dtype=np.int32),
        route_length=np.array(lengths, dtype=np.int32),
        services=np.array(services, dtype=np.int32),
    )


@lru_cache(maxsize=1)  # a worker labels many chunks of the same data set
def _dataset(path: Path, checksum: str) -> Dataset:
    dataset = Dataset.open(path)
    if dataset.checksum != checksum:
        raise FileError(path, "expected it to stay the same while it is labelled")
    return dataset
