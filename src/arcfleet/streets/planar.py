"""Where straight lines meet, found exactly: coordinates are whole numbers.

Lines are arrays of shape (number, 2, 2): two ends of two coordinates each.
"""

from __future__ import annotations

from itertools import count, product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def meeting_pairs(lines: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the pairs of lines that meet elsewhere than at an end of both.

    Returns
    -------
    Positions of shape (pairs, 2), the lesser first.
    """
    pairs = _close_pairs(lines)
    one, other = lines[pairs[:, 0]], lines[pairs[:, 1]]
    meet = (_sides(one, other).prod(axis=0) <= 0) & (_sides(other, one).prod(axis=0) <= 0)
    for i, k in product((0, 1), repeat=2):
        shared = (one[:, i] == other[:, k]).all(axis=1)
        along, beside = one[:, 1 - i] - one[:, i], other[:, 1 - k] - other[:, k]
        overlapping = (_cross(along, beside) == 0) & ((along * beside).sum(axis=1) > 0)
        meet = np.where(shared, overlapping, meet)
    found: NDArray[np.int64] = pairs[meet]
    return found


def free_shares(lines: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give how far each line can be followed before it meets one of the others.

    Parameters
    ----------
    lines
        Followed from their first end, which may be an end of others.
    others
        Lines that meet each other at common ends only.

    Returns
    -------
    Shares of the lines' lengths; 1 where a line meets none.
    """
    pairs = meeting_pairs(np.concatenate([others, lines]))
    pairs = pairs[(pairs[:, 0] < len(others)) & (pairs[:, 1] >= len(others))]
    met, number = others[pairs[:, 0]], pairs[:, 1] - len(others)
    start = lines[number, 0]
    across = met[:, 1] - met[:, 0]
    whole = _cross(lines[number, 1] - start, across).astype(np.float64)
    part = _cross(met[:, 0] - start, across)
    shares = np.ones(len(lines))
    # Parallel lines that meet lie on each other: nothing of such a line is free.
    reached = np.divide(part, whole, out=np.zeros(len(whole)), where=whole != 0)
    np.minimum.at(shares, number, reached)
    return shares


def _close_pairs(lines: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the pairs whose boxes meet, found among those that share a cell of a grid."""
    if not len(lines):
        return np.empty((0, 2), dtype=np.int64)
    low, high = lines.min(axis=1), lines.max(axis=1)
    cell = max(1, round(float((high - low).max(axis=1).mean())))
    first = low // cell
    spans = high // cell - first + 1
    counts = spans.prod(axis=1)
    line = np.repeat(np.arange(len(lines)), counts)
    within = np.arange(len(line)) - np.repeat(np.cumsum(counts) - counts, counts)
    column = first[line, 0] + within // spans[line, 1]
    row = first[line, 1] + within % spans[line, 1]
    key = (column - column.min()) * (row.max() - row.min() + 1) + row - row.min()
    order = np.lexsort((line, key))
    key, line = key[order], line[order]
    found = [np.empty(0, dtype=np.int64)]
    starts = np.arange(len(key))
    for step in count(1):
        starts = starts[starts + step < len(key)]
        starts = starts[key[starts] == key[starts + step]]
        if not len(starts):
            break
        one, other = line[starts], line[starts + step]
        touching = (low[one] <= high[other]) & (low[other] <= high[one])
        found.append((one * len(lines) + other)[touching.all(axis=1)])
    pairs = np.unique(np.concatenate(found))
    return np.column_stack([pairs // len(lines), pairs % len(lines)])


def _sides(lines: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.int64]:
    """Tell on which side of each line the two ends of the other lie: -1, 0 or 1."""
    along = lines[:, 1] - lines[:, 0]
    return np.sign([_cross(along, others[:, end] - lines[:, 0]) for end in (0, 1)])


def _cross(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    result: NDArray[np.int64] = one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]
    return result
