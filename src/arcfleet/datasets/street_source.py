"""The streets that a data set is cut from: bands of maps, or synthetic towns."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from arcfleet.errors import MapError, OptionError
from arcfleet.streets.street_arrays import BANDS, Split, StreetArrays, band, join, to_arrays
from arcfleet.streets.synthetic import random_settings, synthetic_streets

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from arcfleet.streets.street_map import StreetMap

#: Towns that a split without maps is cut from.
SYNTHETIC_TOWNS = 24

#: West, south, east, north.
_Box = tuple[float, float, float, float]


def check_merge_metres(metres: float | None) -> None:
    """Raise OptionError unless it is a distance or None."""
    if metres is None:
        return
    number = isinstance(metres, int | float) and not isinstance(metres, bool)
    if not (number and math.isfinite(metres) and metres >= 0):
        raise OptionError(
            "expected merge_metres to be a distance of at least 0 m or None to merge "
            f"nothing, got {metres!r}"
        )


def map_streets(
    maps: Sequence[Path | str], split: Split, mixed: bool, merge_metres: float | None
) -> tuple[StreetArrays, list[str], str]:
    """Give the band of a split of all maps, their names and whom they are owed to.

    Raises
    ------
    MapError
        If two maps overlap: what is in the band of one split of one map could be in the
        band of another split of the other.
    """
    from arcfleet.streets.files import read_map
    from arcfleet.streets.simplify import merge_close_junctions

    parts, names, credits = [], [], []
    boxes: list[tuple[Path | str, _Box]] = []
    for path in maps:
        street_map = read_map(path)
        if street_map.junctions:
            box = _box(street_map)
            _refuse_overlap(path, box, boxes)
            boxes.append((path, box))
        if merge_metres is not None:
            street_map = merge_close_junctions(street_map, merge_metres)
        parts.append(band(to_arrays(street_map, mixed=mixed), split))
        names.append(street_map.name)
        credits.append(street_map.attribution)
    return join(parts), names, "; ".join(dict.fromkeys(filter(None, credits)))


@lru_cache(maxsize=2)  # data sets of several scales are cut from the same towns
def synthetic_towns(
    split: Split, seed: int, mixed: bool
) -> tuple[StreetArrays, list[str], str]:
    """Draw the towns of a split; the same three things as `map_streets`."""
    number = list(BANDS).index(split)
    draw = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number, 0)))
    towns = [
        synthetic_streets(
            random_settings(draw, mixed=mixed),
            seed=int(draw.integers(2**63)),
            name=f"synthetic {town}",
        )
        for town in range(SYNTHETIC_TOWNS)
    ]
    parts = [to_arrays(town, mixed=mixed) for town in towns]
    return join(parts), [town.name for town in towns], ""


def _box(street_map: StreetMap) -> _Box:
    places = np.array(list(street_map.junctions.values()))
    (west, south), (east, north) = places.min(axis=0), places.max(axis=0)
    return float(west), float(south), float(east), float(north)


def _refuse_overlap(
    path: Path | str, box: _Box, others: Sequence[tuple[Path | str, _Box]]
) -> None:
    west, south, east, north = box
    for other, (other_west, other_south, other_east, other_north) in others:
        if max(west, other_west) <= min(east, other_east) and max(
            south, other_south
        ) <= min(north, other_north):
            raise MapError(
                "expected maps that lie apart, so that no two splits share a street, found "
                f"that the boxes around {other} and {path} overlap: leave one of them out"
            )
