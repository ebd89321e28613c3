"""The labels of a data set: a plan for every instance, by a search method."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from arcfleet._checks import check_whole_number
from arcfleet._files import check_writable
from arcfleet._version import __version__
from arcfleet.datasets.array_file import (
    Array,
    ArrayFile,
    position_of,
    require_npz,
    require_same_facts,
    small_integers,
    starts_of,
    write_array_file,
)
from arcfleet.datasets.chunks import (
    CHUNK_PARTS,
    joined,
    make_in_chunks,
    make_part,
    remove_leftover,
)
from arcfleet.datasets.dataset import Dataset
from arcfleet.errors import FileError, OptionError, UnsolvableError
from arcfleet.instance.diagnose import require_solvable
from arcfleet.network import Network
from arcfleet.search.maens import MaensSettings, maens
from arcfleet.search.ruin_recreate import RuinRecreateSettings, ruin_recreate
from arcfleet.search.run import RunContext
from arcfleet.search.stop import Stop
from arcfleet.solution.plan import from_plan
from arcfleet.workers import PROCESSES, check_workers, child_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from arcfleet.datasets.chunks import Chunk, CountCallback
    from arcfleet.datasets.shards import Merged, Shard
    from arcfleet.search import ProgressCallback
    from arcfleet.solution import Solution

FORMAT = "arcfleet-labels"
VERSION = 1
MADE_BY = "arcfleet dataset label"
_WHAT = "labels in the making"
#: Parts of labels; the chunks of data sets in the making are never parts.
LABEL_PARTS = CHUNK_PARTS

_ARRAYS = ("cost", "num_routes", "route_length", "services")

#: Methods to label with.
LABEL_METHODS = ("ruin-recreate", "maens")

#: Instances per chunk at most: enough to make handing them over cheap.
_CHUNK = 16
#: Iterations of ruin and recreate per chunk at most, a few seconds: what a kill may lose.
_CHUNK_ITERATIONS = 400_000


def labels_path(dataset: Path) -> Path:
    """Return the default path of the labels of a data set."""
    stem = dataset.name.removesuffix(".npz")
    return dataset.with_name(f"{stem}.labels.npz")


def write_labels(
    path: Path, facts: Mapping[str, object], arrays: Mapping[str, Array]
) -> None:
    """Write the labels of all instances, with the facts of how they were made.

    The arrays are `cost` and `num_routes` of each plan, `route_length` of each route, and
    `services`: twice the position of the link, plus one if served from head to tail.
    """
    small = {name: small_integers(arrays[name]) for name in _ARRAYS}
    write_array_file(path, FORMAT, VERSION, facts, small)


def open_labels(path: Path | str, dataset: Dataset) -> Labels:
    """Open the labels of a data set.

    Raises
    ------
    FileError
        If the file is missing, cut short, of another format or version, or belongs to
        another data set.
    """
    return Labels(ArrayFile(path, FORMAT, VERSION, MADE_BY), dataset)


class Labels:
    """One plan per instance; arrays are read when they are first needed.

    Parameters
    ----------
    file
        Opened file; usually by `open_labels`.
    dataset
        Data set that is labelled.
    """

    def __init__(self, file: ArrayFile, dataset: Dataset) -> None:
        self._file = file
        self.path = file.path
        self.checksum = file.checksum
        self.dataset = dataset
        self.facts: dict[str, Any] = file.facts
        if file.fact("dataset_sha256", str) != dataset.checksum or file.fact(
            "count", int
        ) != len(dataset):
            raise FileError(
                file.path,
                f"expected the labels of {dataset.path}, found those of another data set: "
                f"make them with `{MADE_BY}`",
            )

    def __len__(self) -> int:
        """Return the number of plans."""
        return len(self.dataset)

    def __getitem__(self, index: int) -> Solution:
        """Return a plan with all its costs, computed from the streets."""
        position = position_of(index, len(self))
        services, route_starts = self.plan(position)
        network = Network(self.dataset[position])
        arc_of = np.full(2 * len(network.instance.links), -1, dtype=np.int32)
        arc_of[network.arc_edge[1:]] = np.arange(1, network.num_arcs, dtype=np.int32)
        known = services < len(arc_of)
        arcs = np.where(known, arc_of[np.where(known, services, 0)], -1).astype(np.int32)
        if (arcs < 0).any():
            raise self._unfit(position)
        solution = from_plan(network, arcs, route_starts)
        if solution.cost != int(self.cost[position]):
            raise self._unfit(position)
        return solution

    @property
    def cost(self) -> Array:
        """Total cost of each plan."""
        return self.arrays["cost"]

    def plan(self, index: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return a plan as arrays.

        Returns
        -------
        services
            Twice the position of the link, plus one if it is served from head to tail.
        route_starts
            Where each route starts among them, and their number.
        """
        position = position_of(index, len(self))
        routes = self._route_starts[position : position + 2]
        lengths = self._service_starts[routes[0] : routes[1] + 1]
        services = self.arrays["services"][lengths[0] : lengths[-1]].astype(np.int32)
        return services, (lengths - lengths[0]).astype(np.int32)

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """All arrays by name, as stored."""
        arrays = {name: self._file.array(name) for name in _ARRAYS}
        costs = arrays["cost"]
        fits = costs.dtype.kind in "iu" and (not costs.size or costs.min() >= 0)
        self._file.require_numbers("cost", fits, "whole numbers of at least 0")
        self._file.require_integers({x: arrays[x] for x in _ARRAYS if x != "cost"})
        lengths = {
            "cost": len(self),
            "num_routes": len(self),
            "route_length": int(arrays["num_routes"].sum(dtype=np.int64)),
            "services": int(arrays["route_length"].sum(dtype=np.int64)),
        }
        self._file.require_lengths(arrays, lengths)
        return arrays

    @cached_property
    def _route_starts(self) -> NDArray[np.int64]:
        return starts_of(self.arrays["num_routes"])

    @cached_property
    def _service_starts(self) -> NDArray[np.int64]:
        return starts_of(self.arrays["route_length"])

    def _unfit(self, position: int) -> FileError:
        return FileError(
            self.path,
            f"expected a plan of the stated cost for instance {position}, found another: "
            f"make it again with `{MADE_BY}`",
        )


def label_dataset(
    dataset: Dataset,
    path: Path | str | None = None,
    *,
    method: str = "ruin-recreate",
    iterations: int,
    seed: int = 0,
    workers: int | None = None,
    progress: CountCallback | None = None,
    executor: str = PROCESSES,
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
        Number of processes, 1 by default; with more than one, a script must guard its
        calls by `if __name__ == "__main__":`. With Ray the most cores to use; by default
        all of the cluster.
    progress
        Callback that takes the number of instances done and the number of all.
    executor
        "processes" of this machine, or "ray" for those of a Ray cluster, whose machines
        see the data set at the same place.

    Raises
    ------
    OptionError
        If an argument is wrong.
    FileError
        If a file cannot be read or written, or was made with other arguments.
    """
    path = labels_path(dataset.path) if path is None else Path(path)
    work = _work(dataset, method, iterations, seed)
    check_workers(workers, executor)
    require_npz(path)
    check_writable(path)
    facts, size = work.facts, work.size
    if path.exists():
        labels = open_labels(path, dataset)
        require_same_facts(path, labels.facts, facts)
        remove_leftover(path, facts, count=len(dataset), size=size)
        return labels
    make_in_chunks(
        path,
        facts,
        _solve_chunk,
        work.job,
        lambda arrays: write_labels(path, facts, arrays),
        count=len(dataset),
        size=size,
        what=_WHAT,
        error=UnsolvableError,
        workers=workers,
        executor=executor,
        progress=progress,
    )
    return open_labels(path, dataset)


def label_part(
    dataset: Dataset,
    path: Path,
    shard: Shard,
    *,
    method: str,
    iterations: int,
    seed: int,
    workers: int | None,
    executor: str,
    progress: CountCallback | None,
) -> int:
    """Solve the instances of one part into a file of JSON lines, and return their number.

    Arguments are those of `label_dataset`. The same call resumes.
    """
    work = _work(dataset, method, iterations, seed)
    check_workers(workers, executor)
    return make_part(
        path,
        work.facts,
        shard,
        _solve_chunk,
        work.job,
        count=len(dataset),
        size=work.size,
        what=_WHAT,
        error=UnsolvableError,
        workers=workers,
        executor=executor,
        progress=progress,
    )


def write_merged_labels(path: Path, merged: Merged[Chunk]) -> int:
    """Write the labels of merged parts, and return their number."""
    require_npz(path)
    facts = {name: x for name, x in merged.identity.items() if name != "chunk"}
    arrays = joined(merged.records, path)
    if set(arrays) != set(_ARRAYS) or len(arrays["cost"]) != facts.get("count"):
        raise FileError(path, "expected parts with a label of each instance, found others")
    try:
        write_labels(path, facts, arrays)
    except UnicodeEncodeError as error:
        raise FileError(path, "expected parts with facts in UTF-8, found others") from error
    return len(arrays["cost"])


@dataclass(frozen=True, slots=True)
class _Work:
    facts: dict[str, object]  # header of the labels
    size: int  # instances per chunk
    job: Callable[[int, int], _Job]  # job of the instances from one to before another


def _work(dataset: Dataset, method: str, iterations: int, seed: int) -> _Work:
    """Return how a data set is labelled; raise OptionError if that is not possible."""
    if method not in LABEL_METHODS:
        raise OptionError(
            f"expected a method among {', '.join(LABEL_METHODS)}, got {method!r}"
        )
    stop = Stop(iterations=iterations)
    check_whole_number("seed", seed, 0, 2**64 - 1)
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
    # Workers on other machines have other working directories.
    place = Path(dataset.path).absolute()
    return _Work(
        facts,
        chunk_size(method, iterations),
        lambda first, last: _Job(
            place, dataset.checksum, method, stop, seed, first=first, last=last
        ),
    )


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
