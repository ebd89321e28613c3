"""Many instances in one file: written from pieces, read one by one or as padded arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from arcfleet.datasets.array_file import (
    Array,
    ArrayFile,
    position_of,
    require_npz,
    small_integers,
    starts_of,
    write_array_file,
)
from arcfleet.errors import FileError, InstanceError, OptionError
from arcfleet.instance.instance import MAX_NUMBER, U_TURNS
from arcfleet.network import Network
from arcfleet.streets.drawn_rules import PieceTurns
from arcfleet.streets.tasks import Piece

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from arcfleet.instance import Instance

FORMAT = "arcfleet-dataset"
#: Version 2 brought capacities of each instance and costs by direction and of serving,
#: version 3 turn rules. A file without them is of version 1.
VERSION = 3
MADE_BY = "arcfleet dataset make"

#: The arrays of a file: one entry per instance, per node, and per link.
PER_INSTANCE = ("num_nodes", "num_links", "depot", "source")
PER_NODE = ("longitude", "latitude")
PER_LINK = ("tail", "head", "cost", "one_way", "demand")
#: Those of own instances alone: one entry per instance, and per link.
OWN_PER_INSTANCE = ("capacity",)
OWN_PER_LINK = ("reverse_cost", "service_cost", "reverse_service_cost")
#: Those of turn rules: one entry per instance, and per turn that has a rule.
TURNS_PER_INSTANCE = ("u_turns", "u_turn_penalty", "num_turns")
PER_TURN = ("turn_in", "turn_out", "turn_price")
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
    reverse_cost, service_cost, reverse_service_cost
        Further facts of the links, (batch, links); None where all are as `cost`.
    turns
        Turn rules; None where turns are free.
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
    reverse_cost: NDArray[np.int32] | None = None
    service_cost: NDArray[np.int32] | None = None
    reverse_service_cost: NDArray[np.int32] | None = None
    turns: PaddedTurns | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaddedTurns:
    """Turn rules of some instances; an edge is twice a link, plus one from head to tail.

    Parameters
    ----------
    u_turns
        Where U-turns are allowed, as position in `U_TURNS`, (batch,).
    u_turn_penalty, num_turns
        Penalty of U-turns, and number of turns that have a rule of their own, (batch,).
    turn_in, turn_out
        Edges before and after those turns, (batch, turns).
    turn_price
        One more than their penalty, 0 where they are forbidden, (batch, turns).
    """

    u_turns: NDArray[np.int32]
    u_turn_penalty: NDArray[np.int32]
    num_turns: NDArray[np.int32]
    turn_in: NDArray[np.int32]
    turn_out: NDArray[np.int32]
    turn_price: NDArray[np.int32]


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
    is_own = pieces[0].service_cost is not None
    for name in (*PER_LINK, *(OWN_PER_LINK if is_own else ())):
        columns = [getattr(p, name) for p in pieces]
        arrays[name] = np.concatenate(columns).astype(np.int32)
    if is_own:
        arrays["capacity"] = np.array([p.capacity for p in pieces], dtype=np.int32)
    if any(piece.turns is not None for piece in pieces):
        rules = [_FREE if piece.turns is None else piece.turns for piece in pieces]
        for name in ("u_turns", "u_turn_penalty"):
            arrays[name] = np.array([getattr(x, name) for x in rules], dtype=np.int32)
        counts = [len(each.turn_in) for each in rules]
        arrays["num_turns"] = np.array(counts, dtype=np.int32)
        for name in PER_TURN:
            columns = [getattr(each, name) for each in rules]
            arrays[name] = np.concatenate(columns).astype(np.int32)
    return arrays


_NONE = np.zeros(0, dtype=np.int32)
_FREE = PieceTurns(turn_in=_NONE, turn_out=_NONE, turn_price=_NONE)


def write_dataset(
    path: Path | str, arrays: Mapping[str, Array], facts: Mapping[str, object]
) -> None:
    """Write a data set; the facts hold at least its name, capacity and attribution."""
    further = (*OWN_PER_INSTANCE, *OWN_PER_LINK, *TURNS_PER_INSTANCE, *PER_TURN)
    own = [name for name in further if name in arrays]
    shrunk = {
        name: arrays[name] if name in PER_NODE else small_integers(arrays[name])
        for name in (*PER_INSTANCE, *PER_NODE, *PER_LINK, *own)
    }
    count = len(arrays["num_nodes"])
    version = 3 if "num_turns" in arrays else 2 if own else 1
    write_array_file(path, FORMAT, version, {**facts, "count": count}, shrunk)


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
        stated = file.facts.get("sha256")
        is_own = file.facts["version"] == 2 or (
            file.facts["version"] == 3 and isinstance(stated, dict) and "capacity" in stated
        )
        self.has_turn_rules = file.facts["version"] == 3
        self._own_per_instance = OWN_PER_INSTANCE if is_own else ()
        self._own_per_link = OWN_PER_LINK if is_own else ()

    @classmethod
    def open(cls, path: Path | str) -> Dataset:
        """Open a file made by `arcfleet dataset make` or by `from_instances`.

        Raises
        ------
        FileError
            If it is missing, cut short, of another format or version. A damaged array
            raises it when it is first needed.
        """
        return cls(ArrayFile(path, FORMAT, VERSION, MADE_BY))

    @classmethod
    def from_instances(
        cls, instances: Iterable[Instance], path: Path | str, *, name: str | None = None
    ) -> Dataset:
        """Write instances of your own into a file and open it, to train a model on them.

        Costs, demands, capacities, one-way streets and turn rules are kept, and so are the
        positions of links, by which labels know them. Nodes are counted from 0. Coordinates
        lose some precision; names, geometry and what else is for reports is left out.

        Parameters
        ----------
        instances
            Instances without fixed costs of routes, fleet limits and what
            `Instance.operations` names: models learn without these. By their turn rules
            every required link can be driven to from every other.
        path
            File to write, ending in .npz; it is replaced.
        name
            Name of the data set; by default that of the file.

        Raises
        ------
        OptionError
            If there is no instance, one cannot be held, or the file is no .npz.
        FileError
            If the file cannot be written.
        """
        path = Path(path)
        require_npz(path)
        given = list(instances)
        if not given:
            raise OptionError("expected at least one instance for a data set, got none")
        pieces = [own_piece(each, position) for position, each in enumerate(given)]
        facts = {
            "name": path.name.removesuffix(".npz") if name is None else name,
            "capacity": max(piece.capacity for piece in pieces),
            "credit": "; ".join(
                dict.fromkeys(x.attribution for x in given if x.attribution)
            ),
        }
        write_dataset(path, pieces_to_arrays(pieces), facts)
        return cls.open(path)

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
            **{name: arrays[name][links] for name in self._own_per_link},
            depot=int(arrays["depot"][position]),
            capacity=int(self.capacities[position]),
            source=int(arrays["source"][position]),
            turns=self._turns(position),
        )

    def _turns(self, position: int) -> PieceTurns | None:
        if not self.has_turn_rules:
            return None
        arrays = self.arrays
        turns = slice(*self.turn_starts[position : position + 2].tolist())
        return PieceTurns(
            u_turns=int(arrays["u_turns"][position]),
            u_turn_penalty=int(arrays["u_turn_penalty"][position]),
            **{name: arrays[name][turns] for name in PER_TURN},
        )

    def padded(self, indices: Sequence[int] | NDArray[np.integer]) -> PaddedArrays:
        """Return some instances as arrays of one shape, padded."""
        count = len(self)
        chosen = np.array([position_of(int(x), count) for x in indices], dtype=np.int64)
        nodes = _Padding(self.node_starts, chosen)
        links = _Padding(self.link_starts, chosen)
        arrays = self.arrays
        ints = {n: links.fill(arrays[n], np.int32) for n in PER_LINK if n != "one_way"}
        rules = None
        if self.has_turn_rules:
            turns = _Padding(self.turn_starts, chosen)
            rules = PaddedTurns(
                **{n: arrays[n][chosen].astype(np.int32) for n in TURNS_PER_INSTANCE},
                **{name: turns.fill(arrays[name], np.int32) for name in PER_TURN},
            )
        return PaddedArrays(
            num_nodes=nodes.counts.astype(np.int32),
            num_links=links.counts.astype(np.int32),
            **{name: nodes.fill(arrays[name], np.float32) for name in PER_NODE},
            **ints,
            one_way=links.fill(arrays["one_way"], np.bool_),
            required=ints["demand"] > 0,
            depot=arrays["depot"][chosen].astype(np.int32),
            capacity=self.capacities[chosen].astype(np.int32),
            **{name: links.fill(arrays[name], np.int32) for name in self._own_per_link},
            turns=rules,
        )

    @property
    def capacities(self) -> Array:
        """Capacity of each instance."""
        if self._own_per_instance:
            return self.arrays["capacity"]
        return np.full(len(self), self.capacity, dtype=np.int32)

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """All arrays by name, as stored."""
        per_instance = (*PER_INSTANCE, *self._own_per_instance)
        per_link = (*PER_LINK, *self._own_per_link)
        per_turn: tuple[str, ...] = ()
        if self.has_turn_rules:
            per_instance, per_turn = (*per_instance, *TURNS_PER_INSTANCE), PER_TURN
        whole = (*per_instance, *per_link, *per_turn)
        names = (*whole, *PER_NODE)
        arrays = {name: self._file.array(name) for name in names}
        self._file.require_integers({name: arrays[name] for name in whole})
        for name in PER_NODE:
            values = arrays[name]
            fits = values.dtype.kind == "f" and (np.abs(values) <= _FARTHEST).all()
            self._file.require_numbers(name, fits, f"degrees up to {_FARTHEST}")
        for name in self._own_per_instance:
            positive = bool((arrays[name] >= 1).all())
            self._file.require_numbers(name, positive, "whole numbers of at least 1")
        lengths = {name: len(self) for name in per_instance}
        lengths |= dict.fromkeys(PER_NODE, int(arrays["num_nodes"].sum(dtype=np.int64)))
        lengths |= dict.fromkeys(per_link, int(arrays["num_links"].sum(dtype=np.int64)))
        for name in per_turn:
            lengths[name] = int(arrays["num_turns"].sum(dtype=np.int64))
        self._file.require_lengths(arrays, lengths)
        if self.has_turn_rules:
            known = bool((arrays["u_turns"] < len(U_TURNS)).all())
            self._file.require_numbers("u_turns", known, f"0 to {len(U_TURNS) - 1}")
            edges = 2 * np.repeat(arrays["num_links"].astype(np.int64), arrays["num_turns"])
            for name in ("turn_in", "turn_out"):
                known = bool((arrays[name] < edges).all())
                self._file.require_numbers(name, known, "links of the instance")
        return arrays

    @cached_property
    def node_starts(self) -> NDArray[np.int64]:
        """Start of the nodes of each instance, and the total."""
        return starts_of(self.arrays["num_nodes"])

    @cached_property
    def turn_starts(self) -> NDArray[np.int64]:
        """Start of the turns of each instance that have a rule, and the total."""
        return starts_of(self.arrays["num_turns"])

    @cached_property
    def link_starts(self) -> NDArray[np.int64]:
        """Start of the links of each instance, and the total."""
        return starts_of(self.arrays["num_links"])


def own_piece(instance: Instance, position: int) -> Piece:
    """Return an instance as arrays; raise OptionError if a data set cannot hold it."""
    where = f"in instance {position}, {instance.name!r:.60}"
    for is_asked, what, remedy in (
        (bool(instance.operations), ", ".join(instance.operations), "leave them out"),
        (instance.fleet_limit is not None, "fleet limit", "leave it out"),
        (instance.route_cost > 0, "fixed costs of routes", "leave them out"),
        (
            any(link.required and not link.demand for link in instance.links),
            "required links that have no demand",
            "give them one",
        ),
        (not instance.required, "instance without required links", "leave it out"),
    ):
        if is_asked:
            raise OptionError(
                f"expected no {what} in a data set, which models learn without, got some "
                f"{where}: {remedy}"
            )
    if instance.has_turn_rules and Network(instance).core.closed_cost:
        raise OptionError(
            "expected a way between every two required links in a data set, in either "
            f"direction, found one that turn rules close {where}: leave the rules out"
        )
    number = {node: position for position, node in enumerate(instance.nodes)}
    # Places that are unknown are all the same one.
    places = np.array(instance.coordinates or [(0.0, 0.0)] * len(number), dtype=np.float32)

    def column(values: Iterable[int | None]) -> NDArray[np.int32]:
        return np.array([value or 0 for value in values], dtype=np.int32)

    links = instance.links
    own: dict[str, Any] = {
        name: column(getattr(link, name) for link in links) for name in OWN_PER_LINK
    }
    return Piece(
        longitude=places[:, 0],
        latitude=places[:, 1],
        tail=column(number[link.tail] for link in links),
        head=column(number[link.head] for link in links),
        cost=column(link.cost for link in links),
        one_way=np.array([link.one_way for link in links], dtype=np.bool_),
        demand=column(link.demand for link in links),
        depot=number[instance.depot],
        capacity=instance.capacity,
        turns=_own_turns(instance),
        **own,
    )


def _own_turns(instance: Instance) -> PieceTurns | None:
    """Return the turn rules of an instance as arrays."""
    if not instance.has_turn_rules:
        return None
    turns = instance.turns
    columns = {
        "turn_in": [2 * turn.link_in + turn.reverse_in for turn in turns],
        "turn_out": [2 * turn.link_out + turn.reverse_out for turn in turns],
        "turn_price": [
            0 if turn.penalty is None else min(turn.penalty, MAX_NUMBER - 1) + 1
            for turn in turns
        ],
    }
    return PieceTurns(
        u_turns=U_TURNS.index(instance.u_turns),
        u_turn_penalty=instance.u_turn_penalty,
        **{name: np.array(column, dtype=np.int32) for name, column in columns.items()},
    )


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
