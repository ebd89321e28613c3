"""The labels of a data set: one plan per instance, in a file of their own."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from arcfleet.datasets.array_file import (
    Array,
    ArrayFile,
    small_integers,
    write_array_file,
)
from arcfleet.errors import FileError
from arcfleet.network import Network
from arcfleet.solution.plan import from_plan

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from arcfleet.datasets.dataset import Dataset
    from arcfleet.solution import Solution

FORMAT = "arcfleet-labels"
VERSION = 1
MADE_BY = "arcfleet dataset label"

_ARRAYS = ("cost", "num_routes", "route_length", "services")


def labels_path(dataset: Path) -> Path:
    """Return the default path of the labels of a data set."""
    stem = dataset.name.removesuffix(".npz")
    return dataset.with_name(f"{stem}.labels.npz")


def write_labels(
    path: Path, facts: Mapping[str, object], arrays: Mapping[str, Array]
) -> None:
    """Write the labels of all instances.

    Parameters
    ----------
    path
        File to write.
    facts
        How the labels were made.
    arrays
        `cost` and `num_routes` of each plan, `route_length` of each route, and `services`:
        twice the position of the link, plus one if it is served from head to tail.
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
        position = index + len(self) if index < 0 else index
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
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"expected an index below {len(self)}, got {index}")
        routes = self._route_starts[position : position + 2]
        lengths = self._service_starts[routes[0] : routes[1] + 1]
        services = self.arrays["services"][lengths[0] : lengths[-1]].astype(np.int32)
        return services, (lengths - lengths[0]).astype(np.int32)

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """All arrays by name, as stored."""
        arrays = {name: self._file.array(name) for name in _ARRAYS}
        lengths = {
            "cost": len(self),
            "num_routes": len(self),
            "route_length": int(arrays["num_routes"].sum(dtype=np.int64)),
            "services": int(arrays["route_length"].sum(dtype=np.int64)),
        }
        for name, length in lengths.items():
            if arrays[name].shape != (length,):
                raise FileError(
                    self.path,
                    f"expected {length} entries of {name!r}, found an array of shape "
                    f"{arrays[name].shape}: make it again with `{MADE_BY}`",
                )
        return arrays

    @cached_property
    def _route_starts(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.arrays["num_routes"], dtype=np.int64)])

    @cached_property
    def _service_starts(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.arrays["route_length"], dtype=np.int64)])

    def _unfit(self, position: int) -> FileError:
        return FileError(
            self.path,
            f"expected a plan of the stated cost for instance {position}, found another: "
            f"make it again with `{MADE_BY}`",
        )
