"""Streets that need no data: a bent grid of blocks, thinned out, with dead ends.

Junctions start as a grid whose lines lie at uneven distances and wave a little. Streets
are taken out at random as long as all stay connected, which leaves T-junctions. A junction
left with two streets gets a dead end as its third or becomes a bend in one longer street,
as it would on a real map; some stay as they are, as where the name of a street changes.
Streets meet at junctions only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count, product
from typing import TYPE_CHECKING

import numpy as np

from arcfleet._checks import check_number, check_whole_number
from arcfleet.streets.street_map import Street, StreetMap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_MOST_BLOCKS = 1_000
#: A dead end keeps this share of the way to the street that it would meet next.
_KEPT_WAY = 0.8
_SHORTEST_DEAD_END = 5.0
#: The towns lie where the equator meets the zero meridian: a degree is as long both ways.
METRES_PER_DEGREE = 111_320.0
#: Places are whole numbers of these, so that crossings can be found exactly.
UNITS_PER_DEGREE = 10_000_000
METRES_PER_UNIT = METRES_PER_DEGREE / UNITS_PER_DEGREE
_LEAST_GAP = 1.0
_BENDS = (0.08, 0.04, 0.02, 0.01, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticSettings:
    """Settings of a town; the defaults resemble the pieces of real maps."""

    # Size of the grid, before streets are removed.
    columns: int = 40
    rows: int = 40
    block_metres: float = 110.0  # median distance of neighbouring lines of the grid
    unevenness: float = 0.65  # standard deviation of the logarithm of these distances
    jitter: float = 0.2  # largest move of a junction off the grid, as a share of a block
    missing: float = 0.27  # share of streets to remove
    dead_ends: float = 0.35  # share of the junctions with two streets that get a dead end
    # Share of the other junctions with two streets that do not become bends.
    bare: float = 0.4
    one_way: float = 0.0  # share of the lines of the grid whose streets are one-way

    def __post_init__(self) -> None:
        """Check every setting."""
        for name in ("columns", "rows"):
            check_whole_number(name, getattr(self, name), 2, _MOST_BLOCKS)
        check_number("block_metres", self.block_metres, 1, 10_000)
        check_number("unevenness", self.unevenness, 0, 2)
        check_number("jitter", self.jitter, 0, 0.4)
        for name in ("missing", "dead_ends", "bare", "one_way"):
            check_number(name, getattr(self, name), 0, 1)


def synthetic_streets(
    settings: SyntheticSettings | None = None, *, seed: int = 0, name: str = "synthetic"
) -> StreetMap:
    """Sample a connected town; the same settings and seed give the same streets."""
    chosen = settings or SyntheticSettings()
    return _Town(chosen, np.random.default_rng(seed)).street_map(name)


def random_settings(generator: np.random.Generator, *, mixed: bool) -> SyntheticSettings:
    """Sample the settings of one town of many: dense and sparse, regular and crooked."""
    return SyntheticSettings(
        columns=int(generator.integers(30, 46)),
        rows=int(generator.integers(30, 46)),
        block_metres=float(generator.uniform(60.0, 180.0)),
        unevenness=float(generator.uniform(0.4, 1.0)),
        jitter=float(generator.uniform(0.05, 0.3)),
        missing=float(generator.uniform(0.18, 0.36)),
        dead_ends=float(generator.uniform(0.1, 0.5)),
        bare=float(generator.uniform(0.2, 0.6)),
        one_way=float(generator.uniform(0.1, 0.6)) if mixed else 0.0,
    )


class _Town:
    """The work of one call: places in units, and the streets kept between them."""

    def __init__(self, settings: SyntheticSettings, generator: np.random.Generator) -> None:
        self.settings = settings
        self.generator = generator
        self.places = grid_places(settings, generator)
        self.streets = self._kept(*self._grid_streets())
        self._add_dead_ends()

    def street_map(self, name: str) -> StreetMap:
        chains = self._chains()
        used = sorted({end for chain, _ in chains for end in (chain[0], chain[-1])})
        number = {place: index for index, place in enumerate(used)}
        points = [(x, y) for x, y in (self.places / UNITS_PER_DEGREE).tolist()]
        return StreetMap(
            name=name,
            junctions={number[place]: points[place] for place in used},
            streets=tuple(
                Street(
                    tail=number[chain[0]],
                    head=number[chain[-1]],
                    metres=self._length(chain),
                    one_way=one_way,
                    kind="residential",
                    geometry=tuple(points[p] for p in chain) if len(chain) > 2 else (),
                )
                for chain, one_way in chains
            ),
        )

    def _grid_streets(self) -> tuple[list[tuple[int, int]], list[bool]]:
        """Return the streets of the full grid, directed, and which are one-way."""
        columns, rows = self.settings.columns, self.settings.rows
        single = self.generator.random(columns + rows) < self.settings.one_way
        backwards = self.generator.random(columns + rows) < 0.5
        streets, one_way = [], []
        for row in range(rows):
            for column in range(columns):
                place = row * columns + column
                for ahead, line, exists in (
                    (place + 1, columns + row, column + 1 < columns),
                    (place + columns, column, row + 1 < rows),
                ):
                    if exists:
                        ends = (ahead, place) if backwards[line] else (place, ahead)
                        streets.append(ends)
                        one_way.append(bool(single[line]))
        return streets, one_way

    def _kept(
        self, streets: Sequence[tuple[int, int]], one_way: Sequence[bool]
    ) -> list[tuple[int, int, bool]]:
        """Take streets out at random, never one that would cut the town in two."""
        parent = list(range(len(self.places)))

        def root(place: int) -> int:
            while parent[place] != place:
                parent[place] = parent[parent[place]]
                place = parent[place]
            return place

        to_drop = round(self.settings.missing * len(streets))
        kept = []
        for street in self.generator.permutation(len(streets)).tolist():
            tail, head = streets[street]
            first, last = root(tail), root(head)
            parent[first] = last
            # What closes a circle is not needed to hold the town together.
            if first == last and to_drop > 0:
                to_drop -= 1
            else:
                kept.append(street)
        return [(*streets[street], one_way[street]) for street in sorted(kept)]

    def _add_dead_ends(self) -> None:
        """Add a dead end to some of the junctions with two streets."""
        starts: list[int] = []
        ways: list[NDArray[np.float64]] = []
        for place, streets in enumerate(self._around()):
            if len(streets) != 2 or self.generator.random() >= self.settings.dead_ends:
                continue
            ends = [self._other(street, place) for street in streets]
            away = (self.places[ends] - self.places[place]) * METRES_PER_UNIT
            lengths = np.hypot(away[:, 0], away[:, 1])
            out = -(away / lengths[:, None]).sum(axis=0)  # opposite to both
            if np.hypot(*out) < 0.3:  # a straight street: turn off to a side
                side = 1.0 if self.generator.random() < 0.5 else -1.0
                out = side * np.array([-away[0, 1], away[0, 0]]) / lengths[0]
            reach = lengths.min() * self.generator.uniform(0.35, 0.8)
            starts.append(place)
            ways.append(reach * out / np.hypot(*out))
        if starts:
            self._place_dead_ends(np.array(starts), np.array(ways))

    def _place_dead_ends(
        self, starts: NDArray[np.int64], ways: NDArray[np.float64]
    ) -> None:
        """Shorten dead ends before the streets in their way; drop those too short then."""
        kept_streets = self.places[[street[:2] for street in self.streets]]
        origin = self.places[starts]
        longer = np.stack([origin, origin + to_units(ways / _KEPT_WAY)], axis=1)
        ways = ways * free_shares(longer, kept_streets)[:, None]
        long_enough = np.hypot(ways[:, 0], ways[:, 1]) >= _SHORTEST_DEAD_END
        starts, origin = starts[long_enough], origin[long_enough]
        tips = origin + to_units(ways[long_enough])
        lines = np.concatenate([kept_streets, np.stack([origin, tips], axis=1)])
        crossing = np.zeros(len(lines), dtype=np.bool_)
        crossing[meeting_pairs(lines)[:, 1]] = True  # the later one gives way
        free = ~crossing[len(kept_streets) :]
        first = len(self.places)
        self.streets += [
            (place, first + number, False)
            for number, place in enumerate(starts[free].tolist())
        ]
        self.places = np.concatenate([self.places, tips[free]])

    def _around(self) -> list[list[int]]:
        around: list[list[int]] = [[] for _ in range(len(self.places))]
        for street, (tail, head, _) in enumerate(self.streets):
            around[tail].append(street)
            around[head].append(street)
        return around

    def _other(self, street: int, place: int) -> int:
        tail, head, _ = self.streets[street]
        return head if place == tail else tail

    def _chains(self) -> list[tuple[list[int], bool]]:
        """Join streets at junctions that have just two; tell which are one-way then."""
        around = self._around()
        bare = self.generator.random(len(around)) < self.settings.bare
        junction = [len(at) != 2 or bool(bare[p]) for p, at in enumerate(around)]
        if not any(junction):  # a single circle: it needs a place to begin
            junction[0] = True
        used = bytearray(len(self.streets))
        chains = []
        for place in range(len(self.places)):
            if not junction[place]:
                continue
            for first in around[place]:
                if used[first]:
                    continue
                chain, members, street = [place], [first], first
                while True:
                    used[street] = 1
                    chain.append(self._other(street, chain[-1]))
                    if junction[chain[-1]]:
                        break
                    street = next(s for s in around[chain[-1]] if s != street)
                    members.append(street)
                chains.append(self._directed(chain, members))
        return chains

    def _directed(self, chain: list[int], members: Sequence[int]) -> tuple[list[int], bool]:
        """Turn a chain the way it may be driven; mixed directions make it two-way."""
        forward = [self.streets[s][0] == p for s, p in zip(members, chain, strict=False)]
        single = all(self.streets[street][2] for street in members)
        if single and not any(forward):
            return chain[::-1], True
        return chain, single and all(forward)

    def _length(self, chain: Sequence[int]) -> float:
        steps = np.diff(self.places[list(chain)], axis=0)
        units = float(np.hypot(steps[:, 0], steps[:, 1]).sum())
        return round(units * METRES_PER_UNIT, 2)


def to_units(metres: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round places to what a map stores."""
    return np.rint(metres / METRES_PER_UNIT).astype(np.int64)


def grid_places(
    settings: SyntheticSettings, draw: np.random.Generator
) -> NDArray[np.int64]:
    """Sample the places of the grid row by row, in units; none of its streets cross."""
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
    """Return for each line of the grid the distance to the nearer of its neighbours."""
    gaps = np.diff(lines)
    nearest: NDArray[np.float64] = np.minimum(
        np.append(gaps, gaps[-1]), np.insert(gaps, 0, gaps[0])
    )
    return nearest


def meeting_pairs(lines: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the pairs of lines, (pairs, 2), that meet elsewhere than at an end of both."""
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
    """Return the share of each line from its first end that meets none of the others."""
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
    """Return the pairs whose boxes meet, found among those that share a cell of a grid."""
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
    """Return on which side of each line the two ends of the other lie: -1, 0 or 1."""
    along = lines[:, 1] - lines[:, 0]
    return np.sign([_cross(along, others[:, end] - lines[:, 0]) for end in (0, 1)])


def _cross(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    result: NDArray[np.int64] = one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]
    return result
