"""Simplify a street map: merge chains and close junctions, keep the reachable part."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from arcfleet._checks import needs
from arcfleet.errors import MapError, OptionError
from arcfleet.instance.geodesy import earth_centred, line_lengths
from arcfleet.streets.speeds import merged_limit
from arcfleet.streets.street_map import StreetTurn, turns_of_kept
from arcfleet.streets.turns import turns_of_groups

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from arcfleet.instance.instance import Coordinate
    from arcfleet.streets.street_map import Street, StreetMap

T = TypeVar("T")

#: A street by its position, and whether the chain runs from its tail to its head.
_Step = tuple[int, bool]


def merge_chains(
    street_map: StreetMap, *, across_kinds: bool = False, across_names: bool = False
) -> StreetMap:
    """Merge streets at every junction that is no crossing and no dead end.

    Two streets become one where they meet at a junction that no third street touches, if
    both are two-way or both one-way in the same direction, if kind and name are equal, and
    if no sign forbids to drive from one onto the other. Geometry, length
    and travel time are kept. A ring without a crossing keeps one junction. Across kinds or
    names, the longest piece gives the kind or the name.
    """
    streets = street_map.streets
    incident: dict[int, list[int]] = {junction: [] for junction in street_map.junctions}
    for index, street in enumerate(streets):
        incident[street.tail].append(index)
        incident[street.head].append(index)
    # A turn from a street back onto itself is no reason: within a street nobody turns.
    barred = {
        streets[turn.street_in].ends(turn.reverse_in)[1]
        for turn in street_map.turns
        if turn.street_in != turn.street_out
    }
    partners = {}
    for junction, indexes in incident.items():
        if len(indexes) == 2 and indexes[0] != indexes[1] and junction not in barred:
            first, second = streets[indexes[0]], streets[indexes[1]]
            if (
                _flow_agrees(first, second, junction)
                and (across_kinds or first.kind == second.kind)
                and (across_names or first.name == second.name)
            ):
                partners[junction] = (indexes[0], indexes[1])
    merged: list[Street] = []
    # The street that each became part of, and whether it runs the same way.
    part_of: dict[int, _Step] = {}
    for index in range(len(streets)):
        if index in part_of:
            continue
        steps = _chain(streets, index, partners)
        part_of.update((position, (len(merged), forward)) for position, forward in steps)
        merged.append(_merge(street_map, steps) if len(steps) > 1 else streets[index])
    ends = {end for street in merged for end in (street.tail, street.head)}
    junctions = {
        junction: place
        for junction, place in street_map.junctions.items()
        if junction in ends or not incident[junction]
    }
    turns = tuple(_turns_of_chains(street_map, merged, part_of))
    return replace(street_map, junctions=junctions, streets=tuple(merged), turns=turns)


def _turns_of_chains(
    street_map: StreetMap, merged: Sequence[Street], part_of: Mapping[int, _Step]
) -> Iterator[StreetTurn]:
    """Yield the turns between merged streets; those within one of them are gone."""
    for turn in street_map.turns:
        via = street_map.streets[turn.street_in].ends(turn.reverse_in)[1]
        into, into_forward = part_of[turn.street_in]
        out, out_forward = part_of[turn.street_out]
        # Along a street that runs against its chain, the directions are the other ones.
        reverse_in = turn.reverse_in == into_forward
        reverse_out = turn.reverse_out == out_forward
        if merged[into].ends(reverse_in)[1] == via == merged[out].ends(reverse_out)[0]:
            yield StreetTurn(into, reverse_in, out, reverse_out)


def _flow_agrees(first: Street, second: Street, junction: int) -> bool:
    """Return whether traffic can continue through the junction."""
    if first.one_way != second.one_way:
        return False
    if not first.one_way:
        return True
    return (first.head == junction) != (second.head == junction)


def _chain(
    streets: tuple[Street, ...], start: int, partners: dict[int, tuple[int, int]]
) -> list[_Step]:
    """Return all steps of the chain that a street is part of, in order."""
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
    limits = [
        (piece.limit, piece.reverse_limit)[:: 1 if forward else -1]
        for piece, (_, forward) in zip(pieces, steps, strict=True)
    ]
    forwards = [forward for _, forward in steps]
    lengths = [piece.metres for piece in pieces]
    first, last = pieces[0], pieces[-1]
    return replace(
        longest,
        tail=first.tail if steps[0][1] else first.head,
        head=last.head if steps[-1][1] else last.tail,
        metres=math.fsum(lengths),
        geometry=tuple(points),
        limit=merged_limit(zip(lengths, (there for there, _ in limits), strict=True)),
        reverse_limit=merged_limit(zip(lengths, (back for _, back in limits), strict=True)),
        ways=_along([piece.ways for piece in pieces], forwards),
        ids=_along([piece.ids for piece in pieces], forwards),
    )


def _along(
    parts: Iterable[Sequence[tuple[T, float]]], forwards: Iterable[bool]
) -> tuple[tuple[T, float], ...]:
    """Return the ways or ids of a chain with their metres, neighbours that agree as one."""
    found: list[tuple[T, float]] = []
    for part, forward in zip(parts, forwards, strict=True):
        for each, metres in part[:: 1 if forward else -1]:
            before = found.pop()[1] if found and found[-1][0] == each else 0.0
            found.append((each, before + metres))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """What was cut off a map."""

    # Number of junctions and of streets.
    junctions: int
    streets: int
    metres: float  # total length of those streets


def largest_strong_part(street_map: StreetMap) -> tuple[StreetMap, Dropped]:
    """Keep the largest part in which every junction can be driven to from every other.

    The largest is the one of most junctions; of equal ones, that of the least junction
    number. Return it, with the streets between its junctions, and what was dropped.
    """
    if not street_map.streets:
        raise MapError(f"expected at least one street, found none in {street_map.name!r}")
    parts = strong_parts(street_map, range(len(street_map.streets)))
    most = max(len(part) for part in parts)
    return keep_junctions(
        street_map, set(min((part for part in parts if len(part) == most), key=min))
    )


def strong_parts(street_map: StreetMap, positions: Iterable[int]) -> list[list[int]]:
    """Return the parts in which every junction can be driven to from every other.

    Only the streets at these positions are driven on. Every junction of the map is in one
    part, be it alone.
    """
    onward: dict[int, list[int]] = {junction: [] for junction in street_map.junctions}
    for position in positions:
        street = street_map.streets[position]
        onward[street.tail].append(street.head)
        if not street.one_way:
            onward[street.head].append(street.tail)
    return list(strong_components(onward))


def keep_junctions(street_map: StreetMap, kept: set[int]) -> tuple[StreetMap, Dropped]:
    """Keep some junctions and the streets between them; return also what was dropped."""
    junctions = {end: place for end, place in street_map.junctions.items() if end in kept}
    positions: list[int] = []
    dropped: list[Street] = []
    for index, street in enumerate(street_map.streets):
        if street.tail in kept and street.head in kept:
            positions.append(index)
        else:
            dropped.append(street)
    streets = tuple(street_map.streets[index] for index in positions)
    turns = turns_of_kept(street_map.turns, positions)
    part = replace(street_map, junctions=junctions, streets=streets, turns=turns)
    return part, Dropped(
        junctions=len(street_map.junctions) - len(junctions),
        streets=len(dropped),
        metres=math.fsum(street.metres for street in dropped),
    )


def merge_close_junctions(street_map: StreetMap, metres: float) -> StreetMap:
    """Merge junctions within a distance of each other into one.

    Where each carriageway of a road is a street of its own, one crossing is many junctions
    a few metres apart. Junctions that a chain of short steps connects become one, with the
    least of their numbers and their mean place. Streets end at the new place, and their
    length changes by as much as that moved their line. A street whose two ends became one
    is dropped if it was or is now no longer than `metres`; other such streets become loops.
    A turn that signs forbade, by whichever of the dropped streets, stays forbidden.
    """
    if not (math.isfinite(metres) and metres >= 0):
        raise OptionError(
            f"expected a distance of at least 0 m to merge within, got {metres}"
        )
    groups = _close_groups(street_map, metres)
    merged_into = {member: min(group) for group in groups for member in group}
    places = {
        min(group): _mean_place([street_map.junctions[member] for member in group])
        for group in groups
    }
    junctions = {
        junction: places.get(junction, place)
        for junction, place in street_map.junctions.items()
        if merged_into.get(junction, junction) == junction
    }
    found = dict(_reattached(street_map, merged_into, junctions, metres))
    turns = turns_of_groups(street_map, merged_into, set(found))
    return replace(
        street_map,
        junctions=junctions,
        streets=tuple(found.values()),
        turns=turns_of_kept(turns, found),
    )


def _reattached(
    street_map: StreetMap,
    merged_into: Mapping[int, int],
    junctions: Mapping[int, Coordinate],
    metres: float,
) -> Iterator[tuple[int, Street]]:
    """Yield the streets between the new junctions, less those that shrank to nothing.

    With each its old position.
    """
    ends = [
        (
            merged_into.get(street.tail, street.tail),
            merged_into.get(street.head, street.head),
        )
        for street in street_map.streets
    ]
    lines = [
        (junctions[tail], *street.geometry[1:-1], junctions[head])
        for street, (tail, head) in zip(street_map.streets, ends, strict=True)
    ]
    old_lengths = line_lengths(map(street_map.points, street_map.streets))
    new_lengths = line_lengths(lines)
    for index, (street, (tail, head), line, old, new) in enumerate(
        zip(street_map.streets, ends, lines, old_lengths, new_lengths, strict=True)
    ):
        if street.tail not in merged_into and street.head not in merged_into:
            yield index, street
            continue
        # What was longer than it is drawn, for want of points, stays longer.
        length = max(street.metres + new - old, 0.0)
        became_loop = tail == head and street.tail != street.head
        if became_loop and min(street.metres, length) <= metres:
            continue
        geometry = line if street.geometry else ()
        moved = replace(street, tail=tail, head=head, metres=length, geometry=geometry)
        yield index, moved


def strong_components(onward: Mapping[T, Sequence[T]]) -> Iterator[list[T]]:
    """Yield the strongly connected components (Tarjan 1972), without recursion."""
    order: dict[T, int] = {}
    low: dict[T, int] = {}
    open_places: list[T] = []
    is_open: set[T] = set()
    for root in onward:
        if root in order:
            continue
        path = [(root, iter(onward[root]))]
        order[root] = low[root] = len(order)
        open_places.append(root)
        is_open.add(root)
        while path:
            here, following = path[-1]
            for there in following:
                if there not in order:
                    order[there] = low[there] = len(order)
                    open_places.append(there)
                    is_open.add(there)
                    path.append((there, iter(onward[there])))
                    break
                if there in is_open:
                    low[here] = min(low[here], order[there])
            else:
                path.pop()
                if path:
                    before = path[-1][0]
                    low[before] = min(low[before], low[here])
                if low[here] == order[here]:
                    start = len(open_places) - 1
                    while open_places[start] != here:
                        start -= 1
                    part = open_places[start:]
                    del open_places[start:]
                    is_open.difference_update(part)
                    yield part


def _close_groups(street_map: StreetMap, metres: float) -> list[list[int]]:
    """Return the groups of at least two junctions that short steps connect."""
    if len(street_map.junctions) < 2:
        return []
    with needs("scipy", "merging junctions", "maps"):
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components
        from scipy.spatial import cKDTree
    numbers = list(street_map.junctions)
    tree = cKDTree(earth_centred(list(street_map.junctions.values())))
    pairs = tree.query_pairs(metres, output_type="ndarray")  # (pairs, 2)
    graph = coo_array(
        (np.ones(len(pairs), dtype=np.int8), (pairs[:, 0], pairs[:, 1])),
        shape=(len(numbers), len(numbers)),
    )
    _, labels = connected_components(graph, directed=False)
    members: dict[int, list[int]] = {}
    for number, label in zip(numbers, labels.tolist(), strict=True):
        members.setdefault(label, []).append(number)
    return [group for group in members.values() if len(group) > 1]


def _mean_place(places: Sequence[Coordinate]) -> Coordinate:
    first = places[0][0]
    # Relative to one of them, so that both sides of the 180th meridian are close.
    east = sum((place[0] - first + 180) % 360 - 180 for place in places) / len(places)
    longitude = (first + east + 180) % 360 - 180
    return longitude, sum(place[1] for place in places) / len(places)
