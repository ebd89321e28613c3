"""From lines that share points to streets between junctions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from arcfleet.instance.geodesy import line_lengths
from arcfleet.streets.osm_tags import Tags, driving_direction
from arcfleet.streets.street_map import Street, StreetMap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from arcfleet.instance.instance import Coordinate
    from arcfleet.instance.own_data import StreetId
    from arcfleet.streets.speeds import LimitReader, SpeedLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A line as a map file has it; it may run across many junctions."""

    # Numbers of its points. One that has no place, because the extract was cut there, ends
    # the line and the next begins another.
    points: tuple[int, ...]
    # 1 for one-way along the line, -1 for one-way against it, 0 for both ways.
    direction: int = 0
    # Class and name of the street, as in `Street`.
    kind: str = ""
    name: str = ""
    # Number of the way on OpenStreetMap.
    number: int | None = None
    # Id of the line in the data of its owner.
    own_id: StreetId | None = None
    # Speed limits along the line and against it.
    limits: tuple[SpeedLimit | None, SpeedLimit | None] = (None, None)

    @classmethod
    def of_tags(
        cls,
        points: Iterable[int],
        tags: Tags,
        limits: LimitReader | None = None,
        number: int | None = None,
        own_id: StreetId | None = None,
    ) -> Way:
        """Return the way along some points that OpenStreetMap's tags describe."""
        return cls(
            points=tuple(points),
            direction=driving_direction(tags),
            kind=tags.get("highway", ""),
            name=tags.get("name", ""),
            number=number,
            own_id=own_id,
            limits=(None, None) if limits is None else limits.limits(tags),
        )


def map_of_ways(
    ways: Sequence[Way], places: Mapping[int, Coordinate], *, name: str, attribution: str
) -> StreetMap:
    """Cut ways at their ends and at each point that is on two of them, or twice on one."""
    return cut_ways(ways, places, name=name, attribution=attribution)[0]


def cut_ways(
    ways: Sequence[Way], places: Mapping[int, Coordinate], *, name: str, attribution: str
) -> tuple[StreetMap, dict[int, list[int]]]:
    """Cut ways as `map_of_ways` does; return also the streets of each.

    Both ways and streets are known by their positions.
    """
    runs = [
        (index, run) for index, way in enumerate(ways) for run in _placed_runs(way, places)
    ]
    uses = Counter(chain.from_iterable(run for _, run in runs))
    # An end is always a junction, so each counts once more.
    uses.update(chain.from_iterable((run[0], run[-1]) for _, run in runs))
    pieces = [(index, piece) for index, run in runs for piece in _pieces(run, uses)]
    streets_of: dict[int, list[int]] = {}
    for position, (index, _) in enumerate(pieces):
        streets_of.setdefault(index, []).append(position)
    lines = [tuple(places[point] for point in piece) for _, piece in pieces]
    streets = tuple(
        Street(
            tail=piece[0],
            head=piece[-1],
            metres=metres,
            one_way=way.direction != 0,
            kind=way.kind,
            name=way.name,
            geometry=line if len(line) > 2 else (),
            limit=way.limits[way.direction < 0],
            reverse_limit=way.limits[way.direction >= 0],
            ways=() if way.number is None else ((way.number, metres),),
            ids=() if way.own_id is None else ((way.own_id, metres),),
        )
        for (index, piece), line, metres in zip(
            pieces, lines, line_lengths(lines), strict=True
        )
        for way in (ways[index],)
    )
    junctions = {
        end: places[end] for street in streets for end in (street.tail, street.head)
    }
    street_map = StreetMap(
        name=name, junctions=junctions, streets=streets, attribution=attribution
    )
    return street_map, streets_of


def _placed_runs(way: Way, places: Mapping[int, Coordinate]) -> Iterator[list[int]]:
    """Yield the longest runs of at least two points with a place, in driving order."""
    run: list[int] = []
    for point in reversed(way.points) if way.direction < 0 else way.points:
        if point not in places:
            if len(run) > 1:
                yield run
            run = []
        elif not run or run[-1] != point:  # a point given twice in a row is one
            run.append(point)
    if len(run) > 1:
        yield run


def _pieces(run: Sequence[int], uses: Mapping[int, int]) -> Iterator[Sequence[int]]:
    start = 0
    for position in range(1, len(run)):
        if uses[run[position]] > 1:
            yield run[start : position + 1]
            start = position
