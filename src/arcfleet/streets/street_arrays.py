"""A street map as flat arrays: what pieces are cut from, thousands per second."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

import numpy as np

from arcfleet.errors import MapError, OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from arcfleet.streets.street_map import Street, StreetMap

Split = Literal["train", "validation", "test"]

#: Where the longitude band of each split starts and ends, as shares of the junctions.
BANDS: dict[str, tuple[float, float]] = {
    "train": (0.0, 0.6),
    "validation": (0.6, 0.7),
    "test": (0.7, 1.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreetArrays:
    """Streets without loops and parallels; junctions are counted from 0."""

    # Position of each junction, in degrees.
    longitude: NDArray[np.float32]
    latitude: NDArray[np.float32]
    source: NDArray[np.uint8]  # number of the map that each junction comes from
    # Junctions of each street.
    tail: NDArray[np.int32]
    head: NDArray[np.int32]
    cost: NDArray[np.int32]  # length of each street in metres, rounded, at least 1
    one_way: NDArray[np.bool_]  # whether it may be driven from tail to head only

    @property
    def digest(self) -> str:
        """A checksum over all arrays."""
        total = hashlib.sha256()
        for field in fields(self):
            values: NDArray[np.generic] = getattr(self, field.name)
            total.update(f"{field.name} {values.dtype.str} {len(values)} ".encode())
            total.update(values.tobytes())
        return total.hexdigest()


def to_arrays(street_map: StreetMap, *, mixed: bool) -> StreetArrays:
    """Flatten a map; loops and all but the shortest of parallel streets are dropped.

    Where `mixed`, one-way streets stay one-way. Between two junctions there is then the
    shortest two-way street or, where there is none, the shortest one-way street of each
    direction: no direction is lost.
    """
    position = {junction: index for index, junction in enumerate(street_map.junctions)}
    kept: dict[tuple[int, int, bool], Street] = {}
    for street in street_map.streets:
        tail, head = position[street.tail], position[street.head]
        if tail == head:
            continue
        one_way = mixed and street.one_way
        key = (tail, head, True) if one_way else (min(tail, head), max(tail, head), False)
        known = kept.get(key)
        if known is None or street.metres < known.metres:
            kept[key] = street
    chosen = [
        (key, street)
        for key, street in kept.items()
        if not (key[2] and (min(key[:2]), max(key[:2]), False) in kept)
    ]
    places = np.array(list(street_map.junctions.values()), dtype=np.float32).reshape(-1, 2)
    metres = np.array([street.metres for _, street in chosen], dtype=np.float64)
    if metres.size and metres.max() > 2**30:
        raise MapError(
            f"expected streets of at most {2**30} m, got one of {metres.max():.0f} m "
            f"in map {street_map.name!r}"
        )
    return StreetArrays(
        longitude=np.ascontiguousarray(places[:, 0]),
        latitude=np.ascontiguousarray(places[:, 1]),
        source=np.zeros(len(places), dtype=np.uint8),
        tail=np.array([key[0] for key, _ in chosen], dtype=np.int32),
        head=np.array([key[1] for key, _ in chosen], dtype=np.int32),
        cost=np.maximum(1, np.rint(metres)).astype(np.int32),
        one_way=np.array([key[2] for key, _ in chosen], dtype=np.bool_),
    )


def band(streets: StreetArrays, split: Split) -> StreetArrays:
    """Keep the longitude band of a split: its junctions and the streets between them.

    From west to east lie 60 % of the junctions for training, 10 % for validation and
    30 % for tests, so no two splits share a junction.
    """
    if split not in BANDS:
        raise OptionError(f"expected a split among {', '.join(BANDS)}, got {split!r}")
    first, last = BANDS[split]
    order = np.argsort(streets.longitude, kind="stable")
    inside = np.zeros(len(order), dtype=np.bool_)
    inside[order[round(first * len(order)) : round(last * len(order))]] = True
    return _keep(streets, inside)


def join(parts: Sequence[StreetArrays]) -> StreetArrays:
    """Put maps side by side, numbered in this order, with no street between them."""
    if not 1 <= len(parts) <= 256:
        raise OptionError(f"expected 1 to 256 maps, got {len(parts)}")
    shifts = np.cumsum([0, *(len(part.longitude) for part in parts)])[:-1]
    return StreetArrays(
        longitude=np.concatenate([part.longitude for part in parts]),
        latitude=np.concatenate([part.latitude for part in parts]),
        source=np.repeat(
            np.arange(len(parts)), [len(part.longitude) for part in parts]
        ).astype(np.uint8),
        tail=_shifted([part.tail for part in parts], shifts),
        head=_shifted([part.head for part in parts], shifts),
        cost=np.concatenate([part.cost for part in parts]),
        one_way=np.concatenate([part.one_way for part in parts]),
    )


def _shifted(
    ends: Sequence[NDArray[np.int32]], shifts: NDArray[np.int64]
) -> NDArray[np.int32]:
    moved = [part + shift for part, shift in zip(ends, shifts, strict=True)]
    return np.concatenate(moved).astype(np.int32)


def _keep(streets: StreetArrays, inside: NDArray[np.bool_]) -> StreetArrays:
    number = np.cumsum(inside, dtype=np.int32) - 1
    both = inside[streets.tail] & inside[streets.head]
    return StreetArrays(
        longitude=streets.longitude[inside],
        latitude=streets.latitude[inside],
        source=streets.source[inside],
        tail=number[streets.tail[both]].astype(np.int32),
        head=number[streets.head[both]].astype(np.int32),
        cost=streets.cost[both],
        one_way=streets.one_way[both],
    )
