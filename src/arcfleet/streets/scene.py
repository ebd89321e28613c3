"""A scene: an area of a street map, a depot and demands, made into an instance."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from arcfleet._checks import check_whole_number, name_hint, needs
from arcfleet.errors import MapError, OptionError
from arcfleet.instance.geodesy import earth_centred, is_on_earth, metres_from
from arcfleet.instance.instance import MAX_NUMBER, Coordinate, Instance, Link
from arcfleet.streets.simplify import Dropped, keep_junctions, largest_strong_part
from arcfleet.streets.turns import TurnPolicy, scene_turns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from arcfleet.streets.area import Area
    from arcfleet.streets.street_map import Street, StreetMap

#: "length": metres, rounded; a number: the same for every street; two numbers: drawn
#: from the first to the second, both included.
Demand = Literal["length"] | int | tuple[int, int]
#: Stands for the streets that the map gives no kind.
UNKNOWN_KIND = "unknown"
#: A depot farther than this from any junction is a mistake.
MOST_DEPOT_METRES = 2000.0
#: The most central junction is exact on maps up to this size; on larger ones, distances
#: to this many junctions stand for those to all.
MOST_MEASURED = 1000
_MOST_SUGGESTED = 12
#: Capacity and demand in different units would cut streets to crumbs.
_MOST_PARTS = 1000
_CUT_DECIMALS = 7  # of a degree: about a centimetre, as in OpenStreetMap


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneRules:
    """How to make an instance from a street map.

    Parameters
    ----------
    capacity
        Capacity of a vehicle, in the unit of the demand.
    area
        Streets with both ends in it are kept; None keeps all.
    depot
        Longitude and latitude of a place; the nearest junction becomes the depot. None
        takes the most central junction.
    serve_kinds, serve_names
        A street is served if its kind or its name is among these; with neither given, all
        streets are. Case does not matter. `UNKNOWN_KIND` means streets without a kind.
    demand
        "length" for the metres of the street, rounded and at least 1; a whole number for
        the same on every street; two of them for a random one between, both included.
    one_way
        Whether one-way streets stay one-way; else all are two-way.
    both_sides
        Whether each side of a two-way street is served for itself, in its direction and
        with half the demand, rounded up.
    oversized
        Treatment of a street with more demand than a vehicle takes: "split" cuts it
        into equal consecutive parts, "refuse" raises MapError.
    name
        Name of the instance; None takes that of the map.
    remark
        Comment of the instance.
    seed
        Seed of random demands.
    turns
        Turn rules. By default the map's restrictions are obeyed and U-turns are allowed at
        dead ends only; `FREE_TURNS` has no rules.

    Raises
    ------
    OptionError
        If one of them is not as described.
    """

    capacity: int
    area: Area | None = None
    depot: Coordinate | None = None
    serve_kinds: tuple[str, ...] = ()
    serve_names: tuple[str, ...] = ()
    demand: Demand = "length"
    one_way: bool = True
    both_sides: bool = False
    oversized: Literal["split", "refuse"] = "split"
    name: str | None = None
    remark: str = ""
    seed: int = 0
    turns: TurnPolicy = TurnPolicy()  # noqa: RUF009 (it is frozen)

    def __post_init__(self) -> None:
        """Check every rule."""
        object.__setattr__(self, "serve_kinds", tuple(self.serve_kinds))
        object.__setattr__(self, "serve_names", tuple(self.serve_names))
        check_whole_number("capacity", self.capacity, 1, MAX_NUMBER)
        check_whole_number("seed", self.seed, 0, 2**64 - 1)
        if not isinstance(self.turns, TurnPolicy):
            raise OptionError(f"expected turns to be a TurnPolicy, got {self.turns!r}")
        if self.oversized not in ("split", "refuse"):
            raise OptionError(
                f"expected oversized to be 'split' or 'refuse', got {self.oversized!r}"
            )
        if isinstance(self.demand, tuple) and len(self.demand) == 2:
            least, most = self.demand
            check_whole_number("the least demand", least, 0, MAX_NUMBER)
            check_whole_number("the largest demand", most, 0, MAX_NUMBER)
            if least > most:
                raise OptionError(
                    "expected the least demand before the largest, "
                    f"got {least} before {most}"
                )
        elif isinstance(self.demand, int):
            check_whole_number("demand", self.demand, 0, MAX_NUMBER)
        elif self.demand != "length":
            raise OptionError(
                "expected demand to be 'length', a whole number or two of them, "
                f"got {self.demand!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """An instance made from a street map, and what was left out or changed on the way."""

    instance: Instance  # the scene itself; its nodes have the numbers of the junctions
    # The part of the map it is made of; all its streets are two-way where one-way rules are
    # ignored.
    street_map: StreetMap
    outside: Dropped  # streets and junctions outside the area
    # Streets and junctions of the area outside its largest strongly connected part.
    cut_off: Dropped
    split_streets: int  # number of streets that were split because of their demand
    # Distance of the depot from the place asked for; None if none was.
    depot_metres: float | None

    @property
    def metres(self) -> float:
        """Length of all streets."""
        return math.fsum(street.metres for street in self.street_map.streets)


def make_scene(
    street_map: StreetMap, rules: SceneRules | None = None, **options: Any
) -> Instance:
    """Make an instance from a street map; `cut_scene` also reports what was left out.

    Parameters
    ----------
    street_map
        The streets, of which the area may take a part.
    rules
        Rules of the scene.
    options
        Fields of `SceneRules`, in place of `rules` or to change some of them:
        `make_scene(streets, capacity=3000)`. `turns` may be a text, too, as that of
        `arcfleet scene --turns`.

    Raises
    ------
    OptionError
        If the rules lack the capacity, or an option is none of their fields.
    MapError
        If the streets do not fit the rules, as `cut_scene` tells.
    """
    known = [field.name for field in fields(SceneRules)]
    for name in options:
        if name not in known:
            raise OptionError(
                f"expected a rule of a scene, got {name!r}: {name_hint(name, known)}"
            )
    if isinstance(options.get("turns"), str):
        options["turns"] = TurnPolicy.parse(options["turns"])
    if rules is not None:
        rules = replace(rules, **options)
    elif "capacity" in options:
        rules = SceneRules(**options)
    else:
        raise OptionError("expected the capacity of a vehicle, got none: give capacity=...")
    return cut_scene(street_map, rules).instance


def cut_scene(street_map: StreetMap, rules: SceneRules) -> Scene:
    """Make an instance from a street map, and report what was left out or changed.

    The same map and rules give the same scene. Streets keep their order, and junctions
    their numbers; where a street is split, new junctions get numbers beyond the largest of
    the map. Costs are metres, rounded and at least 1.
    """
    if not rules.one_way:
        two_way = tuple(replace(street, one_way=False) for street in street_map.streets)
        street_map = replace(street_map, streets=two_way)
    inside, outside = _inside(street_map, rules)
    if not inside.streets:
        raise MapError(
            f"expected a street with both ends in {_place(street_map, rules)}, "
            "found none: take a larger area"
        )
    part, cut_off = largest_strong_part(inside)
    if not part.streets:
        raise MapError(
            f"expected streets that lead there and back in {_place(street_map, rules)}, "
            f"found none among {len(inside.streets)}: "
            "take a larger area or ignore one-way rules"
        )
    if rules.depot is None:
        depot, depot_metres = most_central_junction(part), None
    else:
        depot, depot_metres = nearest_junction(part, rules.depot, within=MOST_DEPOT_METRES)
    served = served_streets(part, rules)
    maker = LinkMaker(
        part, rules, first_new_junction=max(street_map.junctions, default=0) + 1
    )
    starts = []
    for street, is_served, demand in zip(
        part.streets, served, _demands(part.streets, rules), strict=True
    ):
        starts.append(len(maker.links))
        maker.add(street, demand if is_served else None)
    instance = Instance(
        name=street_map.name if rules.name is None else rules.name,
        nodes=(*part.junctions, *maker.new_junctions),
        links=tuple(maker.links),
        depot=depot,
        capacity=rules.capacity,
        comment=rules.remark,
        attribution=street_map.attribution,
        coordinates=(*part.junctions.values(), *maker.new_junctions.values()),
        turns=scene_turns(street_map, part, maker.links, starts, rules.turns),
        u_turns=rules.turns.u_turns,
        u_turn_penalty=rules.turns.u_turn_penalty,
    )
    return Scene(
        instance=instance,
        street_map=part,
        outside=outside,
        cut_off=cut_off,
        split_streets=maker.split_streets,
        depot_metres=depot_metres,
    )


def _inside(street_map: StreetMap, rules: SceneRules) -> tuple[StreetMap, Dropped]:
    if rules.area is None:
        return street_map, Dropped(junctions=0, streets=0, metres=0.0)
    held = rules.area.holds(list(street_map.junctions.values())).tolist()
    kept = {end for end, inside in zip(street_map.junctions, held, strict=True) if inside}
    if not kept:
        raise MapError(
            f"expected junctions in {_place(street_map, rules)}, found none: "
            f"the map reaches {_extent(street_map)}"
        )
    return keep_junctions(street_map, kept)


def _demands(streets: tuple[Street, ...], rules: SceneRules) -> list[int]:
    if isinstance(rules.demand, tuple):
        least, most = rules.demand
        # Drawn for every street, so that serving others does not change a street's demand.
        numbers = np.random.default_rng(rules.seed).integers(
            least, most, size=len(streets), endpoint=True
        )
        return [int(number) for number in numbers]
    if isinstance(rules.demand, int):
        return [rules.demand] * len(streets)
    return [max(1, round(street.metres)) for street in streets]


def _place(street_map: StreetMap, rules: SceneRules) -> str:
    where = f"map {street_map.name!r}"
    return where if rules.area is None else f"{rules.area.describe()} of {where}"


def _extent(street_map: StreetMap) -> str:
    if not street_map.junctions:
        return "nowhere, it has no junctions"
    places = np.array(list(street_map.junctions.values()))
    (west, south), (east, north) = places.min(axis=0), places.max(axis=0)
    return f"from {west:.4f},{south:.4f} to {east:.4f},{north:.4f}"


def nearest_junction(
    street_map: StreetMap, place: Coordinate, *, within: float
) -> tuple[int, float]:
    """Return the junction nearest to a place, at most `within` metres off, and how far."""
    longitude, latitude = place
    if not is_on_earth(longitude, latitude):
        raise MapError(
            "expected the depot as longitude,latitude in degrees, "
            f"got {longitude:g},{latitude:g}: check their order"
        )
    junctions = list(street_map.junctions)
    distances = metres_from(place, list(street_map.junctions.values()))
    nearest = int(np.argmin(distances))
    if distances[nearest] > within:
        raise MapError(
            f"expected a depot within {within:,.0f} m of a junction of the scene, got "
            f"{longitude:g},{latitude:g}, which is {distances[nearest]:,.0f} m from "
            f"the nearest one ({junctions[nearest]}): "
            "check that it is longitude,latitude or move it"
        )
    return junctions[nearest], float(distances[nearest])


def most_central_junction(street_map: StreetMap) -> int:
    """Return the junction from which driving to all others and back is least in sum.

    On more than `MOST_MEASURED` junctions the sum is over that many of them, spread evenly
    through their numbers. Among equals the least number is taken.
    """
    with needs("scipy", "finding the most central junction", "maps", " or name a depot"):
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra
    junctions = sorted(street_map.junctions)
    position = {junction: index for index, junction in enumerate(junctions)}
    shortest: dict[tuple[int, int], float] = {}
    for street in street_map.streets:
        tail, head = position[street.tail], position[street.head]
        # A sparse graph has no edges of length 0.
        metres = max(street.metres, 0.01)
        ways = [(tail, head)] if street.one_way else [(tail, head), (head, tail)]
        for way in ways:
            shortest[way] = min(metres, shortest.get(way, metres))
    count = len(junctions)
    ends = np.array(list(shortest), dtype=np.int64).reshape(-1, 2)
    graph = csr_array(
        (np.array(list(shortest.values())), (ends[:, 0], ends[:, 1])), shape=(count, count)
    )
    backward = graph.T.tocsr()
    measured = np.unique(np.linspace(0, count - 1, min(count, MOST_MEASURED)).astype(int))
    sums = np.zeros(count)
    # In slices, so that a large map does not need a matrix of the same size.
    for some in np.array_split(measured, -(-len(measured) // 64)):
        sums += dijkstra(graph, indices=some).sum(axis=0)
        sums += dijkstra(backward, indices=some).sum(axis=0)
    # Rounded, so that the order of summation does not decide among equals.
    return junctions[int(np.argmin(np.round(sums, 3)))]


def served_streets(street_map: StreetMap, rules: SceneRules) -> list[bool]:
    """Return for each street whether it is served; refuse kinds and names that are none."""
    if not rules.serve_kinds and not rules.serve_names:
        return [True] * len(street_map.streets)
    where = f"in the scene from map {street_map.name!r}"
    kinds = _found("kind", rules.serve_kinds, map(_kind_of, street_map.streets), where)
    names = _found("name", rules.serve_names, (s.name for s in street_map.streets), where)
    return [
        _kind_of(street).casefold() in kinds or street.name.casefold() in names
        for street in street_map.streets
    ]


def _kind_of(street: Street) -> str:
    return street.kind or UNKNOWN_KIND


def _found(what: str, asked: Iterable[str], present: Iterable[str], where: str) -> set[str]:
    """Return the texts asked for, case-folded; raise MapError if one does not occur."""
    counts = Counter(text for text in present if text)
    spelled = {text.casefold(): text for text in counts}
    for text in asked:
        if text.casefold() not in spelled:
            raise MapError(
                f"expected the {what} of a street {where}, got {text!r}: "
                + _suggestion(what, text, counts, spelled)
            )
    return {text.casefold() for text in asked}


def _suggestion(what: str, text: str, counts: Counter[str], spelled: dict[str, str]) -> str:
    if not counts:
        return f"no street there has a {what}"
    near = difflib.get_close_matches(text.casefold(), spelled, n=3)
    if near:
        return f"did you mean {' or '.join(repr(spelled[one]) for one in near)}?"
    usual = [one for one, _ in counts.most_common(_MOST_SUGGESTED)]
    more = len(counts) - len(usual)
    return f"there are {', '.join(usual)}" + (f" and {more} more" if more else "")


class LinkMaker:
    """Collects the links of a scene, and the junctions that cutting streets makes."""

    def __init__(
        self, street_map: StreetMap, rules: SceneRules, first_new_junction: int
    ) -> None:
        self._map = street_map
        self._rules = rules
        self._next_junction = first_new_junction
        self.links: list[Link] = []
        self.new_junctions: dict[int, Coordinate] = {}
        self.split_streets = 0

    def add(self, street: Street, demand: int | None) -> None:
        """Add the links of a street; a demand of None means that it is not served."""
        is_served = demand is not None
        by_side = is_served and self._rules.both_sides and not street.one_way
        load = demand or 0
        if by_side:  # each side has half of the demand, rounded up
            load = -(-load // 2)
        parts = self._parts(street, load)
        ends, lines = self._cut(street, parts)
        costs = equal_shares(max(1, round(street.metres)), parts)
        for part, part_load in enumerate(equal_shares(load, parts)):
            there = Link(
                tail=ends[part],
                head=ends[part + 1],
                cost=max(1, costs[part]),
                one_way=street.one_way or by_side,
                required=is_served,
                demand=part_load,
                name=street.name,
                geometry=lines[part],
            )
            self.links.append(there)
            if by_side:
                line = lines[part][::-1]
                back = replace(there, tail=there.head, head=there.tail, geometry=line)
                self.links.append(back)

    def _parts(self, street: Street, load: int) -> int:
        capacity = self._rules.capacity
        parts = max(1, -(-load // capacity))
        if parts == 1:
            return 1
        too_much = (
            f"expected at most {capacity} (the capacity) as demand of a street, "
            f"got {load} on {_describe(street)} of map {self._map.name!r}"
        )
        if self._rules.oversized == "refuse":
            raise MapError(f"{too_much}: raise the capacity or let such streets be split")
        if parts > _MOST_PARTS:
            raise MapError(
                f"{too_much}, which would be split into {parts} parts: "
                "give capacity and demand in the same unit"
            )
        self.split_streets += 1
        return parts

    def _cut(
        self, street: Street, parts: int
    ) -> tuple[list[int], list[tuple[Coordinate, ...]]]:
        """Return the junctions along a street, new ones included, and the lines between."""
        if parts == 1:
            return [street.tail, street.head], [street.geometry]
        lines = cut_line(self._map.points(street), parts)
        between = range(self._next_junction, self._next_junction + parts - 1)
        self._next_junction += parts - 1
        for junction, line in zip(between, lines, strict=False):
            self.new_junctions[junction] = line[-1]
        # A street without geometry is straight, and so are its parts.
        if not street.geometry:
            lines = [() for _ in lines]
        return [street.tail, *between, street.head], lines


def _describe(street: Street) -> str:
    arrow = ">" if street.one_way else "-"
    name = " ".join(street.name.split())  # a message stays one line
    return f"street {street.tail}{arrow}{street.head}" + (f" ({name})" if name else "")


def equal_shares(amount: int, parts: int) -> list[int]:
    """Split an amount into whole numbers that differ by at most 1, larger ones first."""
    share, rest = divmod(amount, parts)
    return [share + (part < rest) for part in range(parts)]


def cut_line(points: Sequence[Coordinate], parts: int) -> list[tuple[Coordinate, ...]]:
    """Cut a line into consecutive parts of equal length."""
    degrees = np.array(points, dtype=np.float64)  # (points, 2)
    steps = np.linalg.norm(np.diff(earth_centred(points), axis=0), axis=1)
    along = np.concatenate(([0.0], np.cumsum(steps)))  # (points,)
    cuts = along[-1] * np.arange(1, parts) / parts
    longitudes = np.interp(cuts, along, degrees[:, 0]).round(_CUT_DECIMALS)
    latitudes = np.interp(cuts, along, degrees[:, 1]).round(_CUT_DECIMALS)
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
