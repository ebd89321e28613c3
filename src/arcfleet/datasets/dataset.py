"""Many instances in one file: written from pieces, read one by one or as padded arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from arcfleet.datasets.array_file import (
    Array,
    ArrayFile,
    position_of,
    small_integers,
    starts_of,
    write_array_file,
)
from arcfleet.errors import FileError, InstanceError
from arcfleet.streets.tasks import Piece

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from arcfleet.instance import Instance

FORMAT = "arcfleet-dataset"
VERSION = 1
MADE_BY = "arcfleet dataset make"

#: The arrays of a file: one entry per instance, per node, and per link.
PER_INSTANCE = ("num_nodes", "num_links", "depot", "source")
PER_NODE = ("longitude", "latitude")
PER_LINK = ("tail", "head", "cost", "one_way", "demand")
_FARTHEST = 360


@dataclass(frozen=True, slots=True, kw_only=True)
class PaddedArrays:
    """Instances of different sizes in arrays of one shape, padded with 0.

    Parameters
    ----------
    num_nodes, num_links
        Numbers of real nodes and links, (batch,).
    longitude, latitude
        Coordinates of the nodes, (batch, nodes).
    tail, head, cost, one_way, required, demand
        Facts of the links, (batch, links).
    depot, capacity
        Facts of the instances, (batch,).
    """

    num_nodes: NDArray[np.int32]
    num_links: NDArray[np.int32]
    longitude: NDArray[np.float32]
    latitude: NDArray[np.float32]
    tail: NDArray[np.int32]
    head: NDArray[np.int32]
    cost: NDArray[np.int32]
    one_way: NDArray[np.bool_]
    required: NDArray[np.bool_]
    demand: NDArray[np.int32]
    depot: NDArray[np.int32]
    capacity: NDArray[np.int32]


def pieces_to_arrays(pieces: Sequence[Piece]) -> dict[str, Array]:
    """Concatenate pieces in the widest types; `write_dataset` shrinks them."""
    arrays: dict[str, Array] = {
        "num_nodes": np.array([len(p.longitude) for p in pieces], dtype=np.int32),
        "num_links": np.array([len(p.tail) for p in pieces], dtype=np.int32),
        "depot": np.array([p.depot for p in pieces], dtype=np.int32),
        "source": np.array([p.source for p in pieces], dtype=np.int32),
    }
    for name in PER_NODE:
        arrays[name] = np.concatenate([getattr(p, name) for p in pieces])
    for name in PER_LINK:
        columns = [getattr(p, name) for p in pieces]
        arrays[name] = np.concatenate(columns).astype(np.int32)
    return arrays


def write_dataset(
    path: Path | str, arrays: Mapping[str, Array], facts: Mapping[str, object]
) -> None:
    """Write a data set; the facts hold at least its name, capacity and attribution."""
    shrunk = {
        name: arrays[name] if name in PER_NODE else small_integers(arrays[name])
        for name in (*PER_INSTANCE, *PER_NODE, *PER_LINK)
    }
    count = len(arrays["num_nodes"])
    write_array_file(path, FORMAT, VERSION, {**facts, "count": count}, shrunk)


class Dataset:
    """A file of instances; arrays are read on first use.

    Parameters
    ----------
    file
        Opened file; usually by `Dataset.open`.
    """

    def __init__(self, file: ArrayFile) -> None:
        self._file = file
        self.path = file.path
        self.checksum = file.checksum
        self.facts: dict[str, Any] = file.facts
        self.name = str(file.fact("name", str))
        self.capacity = file.number("capacity", 1)
        self.attribution = str(file.fact("credit", str))
        self._count = file.number("count")

    @classmethod
    def open(cls, path: Path | str) -> Dataset:
        """Open a file made by `arcfleet dataset make`.

        Raises
        ------
        FileError
            If it is missing, cut short, of another format or version. A damaged array
            raises it when it is first needed.
        """
        return cls(ArrayFile(path, FORMAT, VERSION, MADE_BY))

    def __len__(self) -> int:
        """Return the number of instances."""
        return self._count

    @overload
    def __getitem__(self, index: int) -> Instance: ...
    @overload
    def __getitem__(self, index: slice) -> list[Instance]: ...
    def __getitem__(self, index: int | slice) -> Instance | list[Instance]:
        """Return one instance, or those of a slice."""
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        position = position_of(index, len(self))
        try:
            return self.piece(position).instance(
                f"{self.name}-{position}", self.attribution
            )
        except InstanceError as error:
            raise FileError(
                self.path, f"{error}; make it again with `{MADE_BY}`"
            ) from error

    def __iter__(self) -> Iterator[Instance]:
        """Iterate over the instances in order."""
        return (self[position] for position in range(len(self)))

    def piece(self, index: int) -> Piece:
        """Return one instance as arrays, much faster than as an Instance."""
        position = position_of(index, len(self))
        arrays = self.arrays
        nodes = slice(*self.node_starts[position : position + 2].tolist())
        links = slice(*self.link_starts[position : position + 2].tolist())
        return Piece(
            **{name: arrays[name][nodes] for name in PER_NODE},
            **{name: arrays[name][links] for name in PER_LINK if name != "one_way"},
            one_way=arrays["one_way"][links].astype(np.bool_),
            depot=int(arrays["depot"][position]),
            capacity=self.capacity,
            source=int(arrays["source"][position]),
        )

    def padded(self, indices: Sequence[int] | NDArray[np.integer]) -> PaddedArrays:
        """Return some instances as arrays of one shape, padded."""
        count = len(self)
        chosen = np.array([position_of(int(x), count) for x in indices], dtype=np.int64)
        nodes = _Padding(self.node_starts, chosen)
        links = _Padding(self.link_starts, chosen)
        arrays = self.arrays
        ints = {n: links.fill(arrays[n], np.int32) for n in PER_LINK if n != "one_way"}
        return PaddedArrays(
            num_nodes=nodes.counts.astype(np.int32),
            num_links=links.counts.astype(np.int32),
            **{name: nodes.fill(arrays[name], np.float32) for name in PER_NODE},
            **ints,
            one_way=links.fill(arrays["one_way"], np.bool_),
            required=ints["demand"] > 0,
            depot=arrays["depot"][chosen].astype(np.int32),
            capacity=np.full(len(chosen), self.capacity, dtype=np.int32),
        )

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """All arrays by name, as stored."""
        names = (*PER_INSTANCE, *PER_NODE, *PER_LINK)
        arrays = {name: self._file.array(name) for name in names}
        self._file.require_integers({x: arrays[x] for x in (*PER_INSTANCE, *PER_LINK)})
        for name in PER_NODE:
            values = arrays[name]
            fits = values.dtype.kind == "f" and (np.abs(values) <= _FARTHEST).all()
            self._file.require_numbers(name, fits, f"degrees up to {_FARTHEST}")
        lengths = {name: len(self) for name in PER_INSTANCE}
        lengths |= dict.fromkeys(PER_NODE, int(arrays["num_nodes"].sum(dtype=np.int64)))
        lengths |= dict.fromkeys(PER_LINK, int(arrays["num_links"].sum(dtype=np.int64)))
        self._file.require_lengths(arrays, lengths)
        return arrays

    @cached_property
    def node_starts(self) -> NDArray[np.int64]:
        """Start of the nodes of each instance, and the total."""
        return starts_of(self.arrays["num_nodes"])

    @cached_property
    def link_starts(self) -> NDArray[np.int64]:
        """Start of the links of each instance, and the total."""
        return starts_of(self.arrays["num_links"])


class _Padding:
    """Places of the entries of some instances in an array of one shape."""

    def __init__(self, starts: NDArray[np.int64], chosen: NDArray[np.int64]) -> None:
        self.counts = starts[chosen + 1] - starts[chosen]
        width = int(self.counts.max()) if len(chosen) else 0
        columns = np.arange(width)
        self.real = columns < self.counts[:, None]  # (batch, width)
        self.places = np.where(self.real, starts[chosen][:, None] + columns, 0)

    def fill(self, values: Array, dtype: type[np.generic]) -> Array:
        if not self.places.size:
            return np.zeros(self.places.shape, dtype=dtype)
        return np.where(self.real, values[self.places], 0).astype(dtype)
