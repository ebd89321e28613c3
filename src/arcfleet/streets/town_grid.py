"""Where the junctions of a synthetic town lie: a grid with uneven, waving lines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from arcfleet.streets.planar import meeting_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from arcfleet.streets.synthetic import SyntheticSettings

#: The towns lie where the equator meets the zero meridian: a degree is as long both ways.
METRES_PER_DEGREE = 111_320.0
#: Places are whole numbers of these, so that crossings can be found exactly.
UNITS_PER_DEGREE = 10_000_000
METRES_PER_UNIT = METRES_PER_DEGREE / UNITS_PER_DEGREE

_LEAST_GAP = 1.0
_BENDS = (0.08, 0.04, 0.02, 0.01, 0.0)


def to_units(metres: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round places to what a map stores."""
    return np.rint(metres / METRES_PER_UNIT).astype(np.int64)


def grid_places(
    settings: SyntheticSettings, draw: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the places of the grid row after row, in units; none of its streets cross."""
    across, along = (
        np.cumsum(
            np.maximum(
                _LEAST_GAP,
                settings.block_metres * np.exp(draw.normal(0, settings.unevenness, n)),
            )
        )
        for n in (settings.columns, settings.rows)
    )
    x, y = (axis.ravel() for axis in np.meshgrid(across, along))
    moves = draw.uniform(-1, 1, (2, len(x))) * settings.jitter
    gap_x, gap_y = (_nearest_gap(lines) for lines in (across, along))
    x = x + moves[0] * np.tile(gap_x, settings.rows)
    y = y + moves[1] * np.repeat(gap_y, settings.columns)
    wave = 12 * settings.block_metres
    phase = draw.uniform(0, 2 * math.pi, 2)
    number = np.arange(len(x)).reshape(settings.rows, settings.columns)
    ends = np.concatenate(
        [
            np.column_stack([number[:, :-1].ravel(), number[:, 1:].ravel()]),
            np.column_stack([number[:-1].ravel(), number[1:].ravel()]),
        ]
    )
    for bend in _BENDS:
        # Long waves turn the lines. They move neighbours nearly alike, but a long street
        # may miss the bend of a close neighbour; without waves no two can cross, because
        # junctions move by less than half the way to the next line.
        bent_x = x + bend * wave * np.sin(y / wave + phase[0])
        bent_y = y + bend * wave * np.sin(x / wave + phase[1])
        places = to_units(np.column_stack([bent_x - bent_x.mean(), bent_y - bent_y.mean()]))
        if not len(meeting_pairs(places[ends])):
            break
    return places


def _nearest_gap(lines: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give for each line of the grid the distance to the nearer of its neighbours."""
    gaps = np.diff(lines)
    nearest: NDArray[np.float64] = np.minimum(
        np.append(gaps, gaps[-1]), np.insert(gaps, 0, gaps[0])
    )
    return nearest
