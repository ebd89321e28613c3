"""The streets that vehicles may drive on: the whole map, a margin, or an own area."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from arcfleet._checks import needs
from arcfleet.errors import MapError
from arcfleet.instance.geodesy import is_on_earth, line_middles, metres_from
from arcfleet.streets.area import swap_hint
from arcfleet.streets.simplify import Dropped, strong_components, strong_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from arcfleet.instance.instance import Coordinate
    from arcfleet.instance.turns import Direction
    from arcfleet.streets.area import Area
    from arcfleet.streets.street_map import Street, StreetMap
    from arcfleet.streets.turns import TurnPolicy

T = TypeVar("T")

#: A depot farther than this from any junction is a mistake.
MOST_DEPOT_METRES = 2000.0
#: The most central junction is exact on maps up to this size; on larger ones, distances
#: to this many junctions stand for those to all.
MOST_MEASURED = 1000
#: Why a street cannot be served that one-way streets alone leave open.
CLOSED_BY_TURNS = "the turn rules leave no way there or back"
#: Why a street cannot be served that is, or lies behind, one that no vehicle may use.
FORBIDDEN = "forbidden to every vehicle type"
CLOSED_BY_FORBIDDEN = "streets forbidden to the vehicle types leave no way there or back"
#: No yard opens onto these.
_WITHOUT_ACCESS = frozenset({"motorway", "motorway_link"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DrivingNetwork:
    """Streets to drive on, all of which the depot reaches and is reached from."""

    streets: tuple[int, ...]  # their positions on the map, in order
    junctions: frozenset[int]  # their ends
    depot: int
    depot_metres: float | None  # distance from the place asked for; None if none was
    outside: Dropped  # what the margin or the area leaves out
    cut_off: Dropped  # what is left of the rest without a way there and back
    unreachable: dict[int, str]  # why streets that were asked for are not among `streets`
    # Junction of each further place, and its distance from there.
    places: dict[Coordinate, tuple[int, float]]


def streets_in(area: Area | None, street_map: StreetMap) -> list[bool]:
    """Return for each street whether both its ends lie in the area; None holds all."""
    if area is None:
        return [True] * len(street_map.streets)
    held = junctions_in(area, street_map)
    return [street.tail in held and street.head in held for street in street_map.streets]


def junctions_in(area: Area, street_map: StreetMap) -> set[int]:
    """Return the junctions that lie in the area."""
    held = area.holds(list(street_map.junctions.values())).tolist()
    return {end for end, inside in zip(street_map.junctions, held, strict=True) if inside}


def middles_in(area: Area, street_map: StreetMap) -> list[bool]:
    """Return for each street whether the middle of its line lies in the area."""
    middles = line_middles(map(street_map.points, street_map.streets))
    found: list[bool] = area.holds(middles).tolist()
    return found


def driving_network(
    street_map: StreetMap,
    asked: Sequence[bool],
    *,
    area: Area | None,
    margin: float | None,
    drive_area: Area | None,
    depot: Coordinate | None,
    turns: TurnPolicy,
    where: str,
    places: Sequence[Coordinate] = (),
) -> DrivingNetwork:
    """Choose the depot and the streets to drive on.

    Of the parts in which every junction can be reached from every other, the one is taken
    that holds most of the length asked for; of equals, that of most junctions.

    Parameters
    ----------
    street_map
        The whole map.
    asked
        For each street whether it is to be served.
    area
        Area in which streets are served; None means the whole map.
    margin
        Distance from the area in metres up to which streets are driven on; the shortest
        ways between the depot and the streets asked for are added wherever they are. None
        takes the whole map. 0 cuts the map at the border of the area.
    drive_area
        Area to drive in, in place of a margin. Streets asked for are always part of it.
    depot
        Longitude and latitude of a place; None takes the most central junction of the
        area. Junctions that the turn rules cut off are not taken.
    turns
        Turn rules.
    where
        The area of the map, for messages.
    places
        Longitude and latitude of further depots and of facilities.
    """
    everything = range(len(street_map.streets))
    inside = streets_in(area, street_map)
    candidates: Collection[int] = everything
    if drive_area is not None or margin == 0:
        held = inside if drive_area is None else streets_in(drive_area, street_map)
        candidates = [i for i in everything if held[i] or asked[i]]
    part = _serving_part(street_map, candidates, asked, where)
    drives = Drives(
        street_map, [i for i in candidates if _within(street_map.streets[i], part)], turns
    )
    depots = drives.depots(asked) or part
    if depot is None:
        start, metres = _central(street_map, drives.streets, depots, asked, inside), None
    else:
        start, metres = _nearest_yard(street_map, depots, depot)
    stops = {place: _nearest_yard(street_map, depots, place) for place in places}
    unreachable = _unreachable(street_map, candidates, part, asked, start)
    network = candidates
    if area is not None and margin:
        held = streets_in(area.grown(margin), street_map)
        ways = drives.ways(start, asked)
        for stop, _ in stops.values():
            ways |= drives.ways(stop, asked)
            beside = [stop in (x.tail, x.head) for x in street_map.streets]
            ways |= drives.ways(start, beside)
        network = [i for i in everything if held[i] or inside[i] or i in ways]
        part = next(set(one) for one in strong_parts(street_map, network) if start in one)
    kept = tuple(i for i in network if _within(street_map.streets[i], part))
    # The ways of a margin obey the turn rules: what they do not lead to is closed by these.
    missing = {i for i in everything if asked[i]}.difference(kept, unreachable)
    unreachable |= dict.fromkeys(missing, CLOSED_BY_TURNS)
    junctions = _ends(street_map, network)
    if network is everything:
        junctions = set(street_map.junctions)
    return DrivingNetwork(
        streets=kept,
        junctions=frozenset(part),
        depot=start,
        depot_metres=metres,
        outside=_dropped(
            street_map, everything, network, len(street_map.junctions) - len(junctions)
        ),
        cut_off=_dropped(street_map, network, kept, len(junctions) - len(part)),
        unreachable=unreachable,
        places=stops,
    )


def _nearest_yard(
    street_map: StreetMap, depots: set[int], place: Coordinate
) -> tuple[int, float]:
    """Return the nearest junction that a yard can open onto, and how far it is."""
    ends = depots & _ends_with_access(street_map) or depots
    junctions = {end: street_map.junctions[end] for end in ends}
    return nearest_junction(junctions, place, within=MOST_DEPOT_METRES)


def _dropped(
    street_map: StreetMap, before: Iterable[int], after: Iterable[int], junctions: int
) -> Dropped:
    left = set(after)
    gone = [street_map.streets[i].metres for i in before if i not in left]
    return Dropped(junctions=junctions, streets=len(gone), metres=math.fsum(gone))


def _within(street: Street, part: Collection[int]) -> bool:
    return street.tail in part and street.head in part


def _ends(street_map: StreetMap, positions: Iterable[int]) -> set[int]:
    streets = (street_map.streets[i] for i in positions)
    return {end for street in streets for end in (street.tail, street.head)}


def _ends_with_access(street_map: StreetMap) -> set[int]:
    """Return the junctions that some street with access to yards touches."""
    streets = enumerate(street_map.streets)
    return _ends(street_map, (i for i, s in streets if s.kind not in _WITHOUT_ACCESS))


def _serving_part(
    street_map: StreetMap, candidates: Collection[int], asked: Sequence[bool], where: str
) -> set[int]:
    """Return the junctions of the strong part that holds most of the length asked for."""
    parts = [set(part) for part in strong_parts(street_map, candidates)]
    part_of = {junction: number for number, part in enumerate(parts) for junction in part}
    lengths: dict[int, list[float]] = {}
    for i, street in enumerate(street_map.streets):
        if asked[i] and part_of[street.tail] == part_of[street.head]:
            lengths.setdefault(part_of[street.tail], []).append(street.metres)
    if not lengths:
        raise MapError(
            f"expected streets that lead there and back in {where}, "
            f"found none among {sum(asked)}: take a larger area or ignore one-way rules"
        )
    best = max(
        lengths,
        key=lambda n: (math.fsum(lengths[n]), len(parts[n]), -min(parts[n])),
    )
    return parts[best]


def _central(
    street_map: StreetMap,
    chosen: Sequence[int],
    depots: set[int],
    asked: Sequence[bool],
    inside: Sequence[bool],
) -> int:
    """Return the junction of the area that is most central to the streets asked for.

    Ways are measured within the area, so that the depot does not depend on the margin; if
    nothing there leads there and back, on all streets to drive on.
    """
    wanted = {i for i in chosen if asked[i]}
    local = [i for i in chosen if inside[i] or i in wanted]
    best: tuple[float, int, int] | None = None
    for candidate in strong_parts(street_map, local):
        held = set(candidate)
        served = [i for i in wanted if _within(street_map.streets[i], held)]
        if served:
            metres = math.fsum(street_map.streets[i].metres for i in served)
            key = (metres, len(held), -min(held))
            if best is None or key > best:
                best = key
                chosen = [i for i in local if _within(street_map.streets[i], held)]
    among = _ends(street_map, (i for i in chosen if asked[i]))
    among = among & depots or among
    streets = tuple(street_map.streets[i] for i in chosen)
    junctions = {end: street_map.junctions[end] for end in _ends(street_map, chosen)}
    network = replace(street_map, junctions=junctions, streets=streets, turns=())
    return most_central_junction(network, among)


def _unreachable(
    street_map: StreetMap,
    candidates: Collection[int],
    part: set[int],
    asked: Sequence[bool],
    depot: int,
) -> dict[int, str]:
    """Return why streets asked for are no part of a way from the depot and back."""
    lost = [i for i in candidates if asked[i] and not _within(street_map.streets[i], part)]
    if not lost:
        return {}
    onward: dict[int, list[int]] = {}
    backward: dict[int, list[int]] = {}
    for i in candidates:
        street = street_map.streets[i]
        for tail, head in [(street.tail, street.head)] + (
            [] if street.one_way else [(street.head, street.tail)]
        ):
            onward.setdefault(tail, []).append(head)
            backward.setdefault(head, []).append(tail)
    reached = _reached_from([depot], lambda here: onward.get(here, ()))
    returning = _reached_from([depot], lambda here: backward.get(here, ()))
    reasons = {}
    for i in lost:
        street = street_map.streets[i]
        starts = {street.tail} if street.one_way else {street.tail, street.head}
        ends = {street.head} if street.one_way else starts
        there, back = bool(starts & reached), bool(ends & returning)
        reasons[i] = "no way there or back"
        if there != back:
            reasons[i] = "no way back" if there else "no way there"
    return reasons


def _reached_from(starts: Iterable[T], following: Callable[[T], Iterable[T]]) -> set[T]:
    """Return all that can be reached from some starts, themselves included."""
    found = set(starts)
    waiting = list(found)
    while waiting:
        for there in following(waiting.pop()):
            if there not in found:
                found.add(there)
                waiting.append(there)
    return found


class Drives:
    """Drives along streets, as one-way and turn rules allow.

    Parameters
    ----------
    street_map
        The whole map. It decides what is a dead end.
    streets
        Positions of the streets that are driven on.
    turns
        Turn rules.
    """

    def __init__(
        self, street_map: StreetMap, streets: Sequence[int], turns: TurnPolicy
    ) -> None:
        self.street_map = street_map
        self.streets = streets
        self._u_turns = turns.u_turns
        self._banned: set[tuple[Direction, Direction]] = set()
        if turns.restrictions:
            self._banned = {
                ((turn.street_in, turn.reverse_in), (turn.street_out, turn.reverse_out))
                for turn in street_map.turns
            }
        self._exits: Counter[int] = Counter(
            street.ends(reverse)[0]
            for street in street_map.streets
            for reverse in street.directions
        )
        self._leaving: dict[int, list[Direction]] = {}
        self._arriving: dict[int, list[Direction]] = {}
        for i in streets:
            for reverse in street_map.streets[i].directions:
                tail, head = street_map.streets[i].ends(reverse)
                self._leaving.setdefault(tail, []).append((i, reverse))
                self._arriving.setdefault(head, []).append((i, reverse))

    def depots(self, asked: Sequence[bool]) -> set[int]:
        """Return the junctions from which a route can serve most of the length asked for.

        These are connected both ways with the part of the drives that holds most of it,
        every drive of which can follow every other.
        """
        onward = {
            along: self._following(along, False)
            for leaving in self._leaving.values()
            for along in leaving
        }
        best: tuple[float, int] = (-1.0, 0)
        kept: list[Direction] = []
        for part in strong_components(onward):
            served = {i for i, _ in part if asked[i]}
            metres = math.fsum(self.street_map.streets[i].metres for i in sorted(served))
            if served and (metres, len(part)) > best:
                best, kept = (metres, len(part)), part
        ends = []
        for backward in (False, True):
            following = partial(self._following, backward=backward)
            reached = _reached_from(kept[:1], following)
            ends.append({self._end(along, backward) for along in reached})
        return ends[0] & ends[1]

    def ways(self, depot: int, asked: Sequence[bool]) -> set[int]:
        """Return the streets asked for and all on shortest ways between them and a depot.

        So a margin loses no street, and the drive from the depot to the area is as short
        as without one.
        """
        wanted = [
            (i, reverse)
            for i in self.streets
            if asked[i]
            for reverse in self.street_map.streets[i].directions
        ]
        found = {i for i, _ in wanted}
        for backward in (False, True):
            before = self._shortest(depot, backward)
            seen: set[Direction] = set()
            for along in wanted:
                here: Direction | None = along
                while here is not None and here not in seen and here in before:
                    seen.add(here)
                    found.add(here[0])
                    here = before[here]
        return found

    def _shortest(self, depot: int, backward: bool) -> dict[Direction, Direction | None]:
        """Return the drive before each on a shortest way from the depot, or back to it."""
        starts = (self._arriving if backward else self._leaving).get(depot, [])
        before: dict[Direction, Direction | None] = {}
        waiting: list[tuple[float, Direction, Direction | None]] = [
            (0.0, along, None) for along in starts
        ]
        while waiting:
            metres, here, last = heappop(waiting)
            if here in before:
                continue
            before[here] = last
            metres += self.street_map.streets[here[0]].metres
            for onto in self._following(here, backward):
                if onto not in before:
                    heappush(waiting, (metres, onto, here))
        return before

    def _end(self, along: Direction, backward: bool) -> int:
        return self.street_map.streets[along[0]].ends(along[1])[0 if backward else 1]

    def _following(self, here: Direction, backward: bool) -> list[Direction]:
        """Return the drives that may come next, or before where `backward`."""
        options = (self._arriving if backward else self._leaving).get(
            self._end(here, backward), []
        )
        return [
            onto
            for onto in options
            if (self._may_turn(onto, here) if backward else self._may_turn(here, onto))
        ]

    def _may_turn(self, along: Direction, onto: Direction) -> bool:
        if (along, onto) in self._banned:
            return False
        if onto != (along[0], not along[1]) or self._u_turns == "allowed":
            return True
        street = self.street_map.streets[along[0]]
        own = 2 if street.tail == street.head else 1
        return self._u_turns == "dead-ends" and self._exits[self._end(along, False)] <= own


class _Graph:
    """Some streets as a sparse matrix of metres; of parallel ones, the shortest."""

    def __init__(self, street_map: StreetMap, positions: Sequence[int]) -> None:
        from scipy.sparse import csr_array

        self.positions = positions
        self.junctions = sorted(_ends(street_map, positions))
        self.index = {junction: index for index, junction in enumerate(self.junctions)}
        self.street: dict[tuple[int, int], int] = {}
        for i in positions:
            street = street_map.streets[i]
            tail, head = self.index[street.tail], self.index[street.head]
            ways = [(tail, head)] if street.one_way else [(tail, head), (head, tail)]
            for way in ways:
                other = self.street.get(way)
                if other is None or street.metres < street_map.streets[other].metres:
                    self.street[way] = i
        count = len(self.junctions)
        ends = np.array(list(self.street), dtype=np.int64).reshape(-1, 2)
        # A sparse graph has no edges of length 0.
        metres = [max(street_map.streets[i].metres, 0.01) for i in self.street.values()]
        self.matrix = csr_array(
            (np.array(metres), (ends[:, 0], ends[:, 1])), shape=(count, count)
        )


def nearest_junction(
    junctions: Mapping[int, Coordinate], place: Coordinate, *, within: float
) -> tuple[int, float]:
    """Return the junction nearest to a place, at most `within` metres off, and how far."""
    longitude, latitude = place
    if not is_on_earth(longitude, latitude):
        swapped = is_on_earth(latitude, longitude)
        raise MapError(
            "expected a depot or facility as longitude,latitude in degrees, "
            f"got {longitude:g},{latitude:g}"
            + (swap_hint(longitude, latitude) if swapped else ": check them")
        )
    numbers = sorted(junctions)
    distances = metres_from(place, [junctions[number] for number in numbers])
    nearest = int(np.argmin(distances))
    if distances[nearest] > within:
        others = metres_from((latitude, longitude), [junctions[n] for n in numbers])
        if is_on_earth(latitude, longitude) and others.min() <= within:
            raise MapError(
                "expected a depot or facility as longitude,latitude, "
                f"got {longitude:g},{latitude:g}{swap_hint(longitude, latitude)}"
            )
        raise MapError(
            f"expected a depot or facility within {within:,.0f} m of a junction of the "
            f"scene, got {longitude:g},{latitude:g}, which is "
            f"{distances[nearest]:,.0f} m from "
            f"the nearest one ({numbers[nearest]}): move it"
        )
    return numbers[nearest], float(distances[nearest])


def most_central_junction(street_map: StreetMap, among: Iterable[int] | None = None) -> int:
    """Return the junction from which driving to all others and back is least in sum.

    Parameters
    ----------
    street_map
        Streets that lead from every junction to every other.
    among
        Junctions that are taken and measured to; None means all. Of more than
        `MOST_MEASURED`, the sum is over that many, spread evenly through their numbers.
        Among equals the least number is taken.
    """
    with needs("scipy", "finding the most central junction", "maps", " or name a depot"):
        from scipy.sparse.csgraph import dijkstra
    graph = _Graph(street_map, range(len(street_map.streets)))
    taken = np.array(
        sorted(graph.index[end] for end in (graph.junctions if among is None else among))
    )
    backward = graph.matrix.T.tocsr()
    measured: NDArray[np.int64] = taken[
        np.unique(
            np.linspace(0, len(taken) - 1, min(len(taken), MOST_MEASURED)).astype(int)
        )
    ]
    sums = np.zeros(len(taken))
    # In slices, so that a large map does not need a matrix of the same size.
    for some in np.array_split(measured, -(-len(measured) // 64)):
        sums += dijkstra(graph.matrix, indices=some)[:, taken].sum(axis=0)
        sums += dijkstra(backward, indices=some)[:, taken].sum(axis=0)
    # Rounded, so that the order of summation does not decide among equals.
    return graph.junctions[int(taken[np.argmin(np.round(sums, 3))])]
