"""Labelling a data set: a plan for every instance, by a search method."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from arcfleet._checks import check_whole_number
from arcfleet._files import check_writable
from arcfleet._version import __version__
from arcfleet.datasets.array_file import require_npz, require_same_facts
from arcfleet.datasets.chunks import joined, make_chunks, remove_leftover
from arcfleet.datasets.dataset import Dataset
from arcfleet.datasets.labels import Labels, labels_path, open_labels, write_labels
from arcfleet.errors import FileError, OptionError, UnsolvableError
from arcfleet.instance.diagnose import require_solvable
from arcfleet.network import Network
from arcfleet.search.maens import MaensSettings, maens
from arcfleet.search.ruin_recreate import RuinRecreateSettings, ruin_recreate
from arcfleet.search.run import RunContext
from arcfleet.search.stop import Stop
from arcfleet.workers import child_seed

if TYPE_CHECKING:
    from arcfleet.datasets.array_file import Array
    from arcfleet.datasets.chunks import CountCallback
    from arcfleet.search import ProgressCallback

#: Methods to label with.
LABEL_METHODS = ("ruin-recreate", "maens")

#: Instances per chunk at most: enough to make handing them over cheap.
_CHUNK = 16
#: Iterations of ruin and recreate per chunk at most, a few seconds: what a kill may lose.
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
    the same call goes on; a file that is there already is only opened.

    Parameters
    ----------
    dataset
        Data set to label.
    path
        File to write; default: beside the data set, `.labels.npz` for its `.npz`.
    method
        One of `LABEL_METHODS`.
    iterations
        Iterations of the method for each instance.
    seed
        Seed whose child number i solves instance i.
    workers
        Number of processes; with more than one, a script must guard its calls by
        `if __name__ == "__main__":`.
    progress
        Callback that takes the number of instances done and the number of all.

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
        "arcfleet_version": __version__,
        "dataset_sha256": dataset.checksum,
        "method": method,
        "iterations": iterations,
        "settings": asdict(
            MaensSettings() if method == "maens" else RuinRecreateSettings()
        ),
        "seed": seed,
        "count": len(dataset),
    }
    size = chunk_size(method, iterations)
    if path.exists():
        labels = open_labels(path, dataset)
        require_same_facts(path, labels.facts, facts)
        remove_leftover(path, facts, count=len(dataset), size=size)
        return labels
    with make_chunks(
        path,
        facts,
        _solve_chunk,
        lambda first, last: _Job(
            dataset.path, dataset.checksum, method, stop, seed, first=first, last=last
        ),
        count=len(dataset),
        size=size,
        what="labels in the making",
        error=UnsolvableError,
        workers=workers,
        progress=progress,
    ) as store:
        write_labels(path, facts, joined(store))
        store.remove()
    return open_labels(path, dataset)


@dataclass(frozen=True, slots=True)
class _Job:
    dataset: Path
    checksum: str
    method: str
    stop: Stop
    seed: int
    first: int
    last: int


def chunk_size(method: str, iterations: int) -> int:
    """Return the instances per chunk: one where a single instance takes long."""
    if method == "maens":
        return 1
    return max(1, min(_CHUNK, _CHUNK_ITERATIONS // iterations))


def _solve_chunk(job: _Job, progress: ProgressCallback) -> dict[str, Array]:
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
    return {
        "cost": np.array(costs, dtype=np.int64),
        "num_routes": np.array(num_routes, dtype=np.int32),
        "route_length": np.array(lengths, dtype=np.int32),
        "services": np.array(services, dtype=np.int32),
    }


@lru_cache(maxsize=1)  # a worker labels many chunks of the same data set
def _dataset(path: Path, checksum: str) -> Dataset:
    dataset = Dataset.open(path)
    if dataset.checksum != checksum:
        raise FileError(path, "expected it to stay the same while it is labelled")
    return dataset
