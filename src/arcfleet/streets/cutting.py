"""Cuts lines and amounts into equal parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from arcfleet.streets.geodesy import earth_centred

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.instance.instance import Coordinate

_DECIMALS = 7  # of a degree: about a centimetre, as in OpenStreetMap


def equal_shares(amount: int, parts: int) -> list[int]:
    """Split an amount into whole numbers that differ by at most 1, larger ones first."""
    share, rest = divmod(amount, parts)
    return [share + (part < rest) for part in range(parts)]


def cut_line(points: Sequence[Coordinate], parts: int) -> list[tuple[Coordinate, ...]]:
    """Cut a line into consecutive parts of equal length.

    Parameters
    ----------
    points
        At least two, from one end to the other.
    parts
        At least one.

    Returns
    -------
    lines
        Each begins where the one before ends; the outer ends are those of the line.
    """
    degrees = np.array(points, dtype=np.float64)  # (points, 2)
    steps = np.linalg.norm(np.diff(earth_centred(points), axis=0), axis=1)
    along = np.concatenate(([0.0], np.cumsum(steps)))  # (points,)
    cuts = along[-1] * np.arange(1, parts) / parts
    longitudes = np.interp(cuts, along, degrees[:, 0]).round(_DECIMALS)
    latitudes = np.interp(cuts, along, degrees[:, 1]).round(_DECIMALS)
    borders = [
        points[0],
        *zip(longitudes.tolist(), latitudes.tolist(), strict=True),
        points[-1],
    ]
    limits = [0.0, *cuts.tolist(), float(along[-1])]
    return [
        (
            borders[part],
            *(
                point
                for point, place in zip(points, along, strict=True)
                if limits[part] < place < limits[part + 1]
            ),
            borders[part + 1],
        )
        for part in range(parts)
    ]
