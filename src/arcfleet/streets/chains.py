"""Merge pieces of street that follow each other without a crossing between them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arcfleet.instance.instance import Coordinate
    from arcfleet.streets.street_map import Street, StreetMap

#: A street by its position, and whether the chain runs from its tail to its head.
_Step = tuple[int, bool]


def merge_chains(
    street_map: StreetMap, *, across_kinds: bool = False, across_names: bool = False
) -> StreetMap:
    """Merge streets at every junction that is no crossing and no dead end.

    Two streets become one where they meet at a junction that no third street touches, if
    both are two-way or both one-way in the same direction, and if kind and name are equal.
    Geometry and length are kept. A ring without a crossing keeps one junction.

    Parameters
    ----------
    street_map
        The map; it is left as it is.
    across_kinds, across_names
        Whether to merge also where the kind or the name changes; the longest piece then
        gives it.
    """
    streets = street_map.streets
    incident: dict[int, list[int]] = {junction: [] for junction in street_map.junctions}
    for index, street in enumerate(streets):
        incident[street.tail].append(index)
        incident[street.head].append(index)
    partners = {}
    for junction, indexes in incident.items():
        if len(indexes) == 2 and indexes[0] != indexes[1]:
            first, second = streets[indexes[0]], streets[indexes[1]]
            if (
                _flow_agrees(first, second, junction)
                and (across_kinds or first.kind == second.kind)
                and (across_names or first.name == second.name)
            ):
                partners[junction] = (indexes[0], indexes[1])
    merged: list[Street] = []
    done: set[int] = set()
    for index in range(len(streets)):
        if index in done:
            continue
        steps = _chain(streets, index, partners)
        done.update(position for position, _ in steps)
        merged.append(_merge(street_map, steps) if len(steps) > 1 else streets[index])
    ends = {end for street in merged for end in (street.tail, street.head)}
    junctions = {
        junction: place
        for junction, place in street_map.junctions.items()
        if junction in ends or not incident[junction]
    }
    return replace(street_map, junctions=junctions, streets=tuple(merged))


def _flow_agrees(first: Street, second: Street, junction: int) -> bool:
    """Say whether whoever may drive from one to the other at the junction may do so on."""
    if first.one_way != second.one_way:
        return False
    if not first.one_way:
        return True
    return (first.head == junction) != (second.head == junction)


def _chain(
    streets: tuple[Street, ...], start: int, partners: dict[int, tuple[int, int]]
) -> list[_Step]:
    """Give all steps of the chain that a street is part of, in order."""
    steps: list[_Step] = [(start, True)]
    if _extend(streets, steps, streets[start].head, partners):
        backward: list[_Step] = [(start, False)]
        _extend(streets, backward, streets[start].tail, partners)
        steps[:0] = [(index, not forward) for index, forward in backward[:0:-1]]
    return steps


def _extend(
    streets: tuple[Street, ...],
    steps: list[_Step],
    end: int,
    partners: dict[int, tuple[int, int]],
) -> bool:
    """Append the steps from the chain's end onwards; False if it came back to its start."""
    start = steps[0][0]
    while end in partners:
        first, second = partners[end]
        following = second if steps[-1][0] == first else first
        if following == start:
            return False
        forward = streets[following].tail == end
        steps.append((following, forward))
        end = streets[following].head if forward else streets[following].tail
    return True


def _merge(street_map: StreetMap, steps: list[_Step]) -> Street:
    pieces = [street_map.streets[index] for index, _ in steps]
    longest = max(pieces, key=lambda piece: piece.metres)
    points: list[Coordinate] = []
    for piece, (_, forward) in zip(pieces, steps, strict=True):
        line = street_map.points(piece)
        points.extend((line if forward else line[::-1])[1 if points else 0 :])
    first, last = pieces[0], pieces[-1]
    return replace(
        longest,
        tail=first.tail if steps[0][1] else first.head,
        head=last.head if steps[-1][1] else last.tail,
        metres=math.fsum(piece.metres for piece in pieces),
        geometry=tuple(points),
    )
