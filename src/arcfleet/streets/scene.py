"""A scene: an area of a street map, a depot and demands, made into an instance."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from arcfleet._checks import check_number, check_whole_number, name_hint, whole
from arcfleet.errors import MapError, OptionError
from arcfleet.instance.change import not_required
from arcfleet.instance.diagnose import Problem, diagnose
from arcfleet.instance.diagnose_fleet import stuck_vehicles
from arcfleet.instance.geodesy import earth_centred
from arcfleet.instance.instance import MAX_NUMBER, Coordinate, Instance, Link
from arcfleet.instance.turns import servable
from arcfleet.streets.choice import (
    TABLES,
    Demand,
    choose_streets,
    demand_words,
    join_warnings,
    kind_of,
    with_tables,
)
from arcfleet.streets.driving import (
    CLOSED_BY_FORBIDDEN,
    CLOSED_BY_TURNS,
    FORBIDDEN,
    driving_network,
    junctions_in,
    middles_in,
    streets_in,
)
from arcfleet.streets.fleet import (
    SceneOperations,
    parse_shift,
    unknown_streets,
    with_operations,
)
from arcfleet.streets.joins import USUAL_SNAP, Join, JoinedTable
from arcfleet.streets.speeds import (
    COSTS,
    LEAST_SPEED,
    MOST_SERVICE_TIME,
    MOST_SPEED,
    Cost,
    Measures,
    check_known_kinds,
    checked_speeds,
    driving_speeds,
    measures_of,
)
from arcfleet.streets.street_map import turns_of_kept
from arcfleet.streets.tables import Table
from arcfleet.streets.turns import TurnPolicy, scene_turns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from arcfleet.streets.area import Area
    from arcfleet.streets.simplify import Dropped
    from arcfleet.streets.street_map import Street, StreetMap

T = TypeVar("T")

#: A table of own data, or the file of one.
TableSource = Table | Path | str | None
#: More routes than this are more often a mistake in the capacity than a large fleet.
MANY_ROUTES = 200
#: A depot or facility farther than this from its junction may be a mistake.
FAR_METRES = 250.0
#: With more streets to drive on than this, and this many for each that is served, a margin
#: makes files and search faster at little loss.
MANY_STREETS, MANY_PER_SERVED = 20_000, 20
#: Capacity and demand in different units would cut streets to crumbs.
_MOST_PARTS = 1000
#: Share of a street's length below which a way only touches a part of it.
_TOUCHING = 1e-9
_CUT_DECIMALS = 7  # of a degree: about a centimetre, as in OpenStreetMap


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneRules:
    """How to make an instance from a street map.

    Parameters
    ----------
    capacity
        Capacity of a vehicle, in the unit of the demand.
    area
        Area whose streets are served: those with both ends in it. None means the whole
        map.
    border
        Treatment of streets that cross the border of the area: "leave" leaves them to
        others, "middle" serves those whose middle is in the area.
    margin
        Distance from the area in metres up to which streets are driven on. The shortest
        ways between the depot and the streets to serve are added wherever they are. None
        drives on the whole map; 0 cuts the map at the border of the area, so that streets
        whose ways lead across it are lost.
    drive_area
        Area to drive in, in place of a margin; the streets to serve always belong to it.
    depot
        Longitude and latitude of a place, in the area or not. The nearest junction from
        which the streets to serve can be reached becomes the depot. None takes the most
        central junction of the area.
    serve_kinds, serve_names
        A street is served if its kind or its name is among these. With neither given, all
        streets are but motorways, trunk roads and their ramps (`DRIVEN_KINDS`).
        `ALL_KINDS` means every kind, `DEFAULT_KINDS` every kind but these,
        `UNKNOWN_KIND` streets without a kind. Case and accents do not matter.
    serve_file
        Table of streets that are served, as those of `serve_names` are.
    serve_streets
        Positions in the map of the streets that are served: these alone. None leaves it to
        the rules above.
    exclude_kinds, exclude_names, exclude_file, exclude_streets
        A street is not served if its kind, its name, a row of the table or its position in
        the map says so.
    demand
        "length" for the metres of the street, rounded and at least 1; a whole number for
        the same on every street; two of them for a random one between, both included.
        None means "length", or with a demand file that streets without a row in it are
        not served.
    demand_file
        Table of demands: a `Table`, or a file as `read_table` reads. Of the streets to
        serve, those with a row in it are served.
    demand_join
        How its rows find their streets: "way", "name" or "place"; None recognises it.
    demand_column
        Column of its demands; None recognises it, and where there is none, rows count 1.
    snap
        Largest distance of a place of a table from its street, in metres.
    one_way
        Whether one-way streets stay one-way; else all are two-way.
    both_sides
        Whether each side of a two-way street is served for itself, in its direction and
        with half the demand, rounded up.
    oversized
        Treatment of a street with more demand than a vehicle takes: "split" cuts it
        into equal consecutive parts, "refuse" raises MapError.
    cost
        Measure of all costs: "length" for metres, "time" for seconds, rounded and at least
        1. Links have their metres and seconds in either case.
    speeds
        Driving speed by kind of street in km/h, where the map has no speed limit; in place
        of `CLASS_SPEEDS`, whose kinds left out here keep theirs.
    service_speed
        Speed of serving in km/h; serving is never faster than driving.
    service_time
        Time of every service in seconds, in addition to that of the speed.
    name
        Name of the instance; None takes that of the map.
    seed
        Seed of random demands.
    turns
        Turn rules. By default the map's restrictions are obeyed and U-turns are allowed at
        dead ends only; `FREE_TURNS` has no rules.
    operations
        Further depots, facilities, vehicle types, longest route and prices on the shape of
        plans.

    Raises
    ------
    OptionError
        If one of them is not as described.
    """

    capacity: int
    area: Area | None = None
    border: Literal["leave", "middle"] = "leave"
    margin: float | None = None
    drive_area: Area | None = None
    depot: Coordinate | None = None
    serve_kinds: tuple[str, ...] = ()
    serve_names: tuple[str, ...] = ()
    serve_file: TableSource = None
    serve_streets: tuple[int, ...] | None = None
    exclude_kinds: tuple[str, ...] = ()
    exclude_names: tuple[str, ...] = ()
    exclude_file: TableSource = None
    exclude_streets: tuple[int, ...] = ()
    demand: Demand | None = None
    demand_file: TableSource = None
    demand_join: Join | None = None
    demand_column: str | None = None
    snap: float = USUAL_SNAP
    one_way: bool = True
    both_sides: bool = False
    oversized: Literal["split", "refuse"] = "split"
    cost: Cost = "length"
    speeds: Mapping[str, float] = field(default_factory=dict)
    service_speed: float = 10.0
    service_time: float = 0.0
    name: str | None = None
    seed: int = 0
    turns: TurnPolicy = TurnPolicy()  # noqa: RUF009 (it is frozen)
    operations: SceneOperations = SceneOperations()  # noqa: RUF009 (it is frozen)

    def __post_init__(self) -> None:
        """Check every rule."""
        for rule in ("serve_kinds", "serve_names", "exclude_kinds", "exclude_names"):
            object.__setattr__(self, rule, tuple(getattr(self, rule)))
        check_whole_number("capacity", self.capacity, 1, MAX_NUMBER)
        check_whole_number("seed", self.seed, 0, 2**64 - 1)
        for rule, choices in (
            ("cost", COSTS),
            ("oversized", ("split", "refuse")),
            ("border", ("leave", "middle")),
        ):
            if getattr(self, rule) not in choices:
                raise OptionError(
                    f"expected {rule} to be {choices[0]!r} or {choices[1]!r}, "
                    f"got {getattr(self, rule)!r}"
                )
        self._check_driving()
        self._check_tables()
        self._check_positions()
        if not isinstance(self.turns, TurnPolicy):
            raise OptionError(f"expected turns to be a TurnPolicy, got {self.turns!r}")
        if not isinstance(self.operations, SceneOperations):
            raise OptionError(
                f"expected operations to be SceneOperations, got {self.operations!r}"
            )
        parse_shift(self.operations.shift, self.cost)
        object.__setattr__(self, "speeds", checked_speeds(self.speeds))
        speed = "the service speed in km/h"
        check_number(speed, self.service_speed, LEAST_SPEED, MOST_SPEED)
        time = "the service time in seconds"
        check_number(time, self.service_time, 0, MOST_SERVICE_TIME)
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
        elif self.demand not in (None, "length"):
            raise OptionError(
                "expected demand to be 'length', a whole number or two of them, "
                f"got {self.demand!r}"
            )

    def _check_tables(self) -> None:
        check_number("snap", self.snap, 0, 1e6)
        for rule in TABLES:
            source = getattr(self, rule)
            if source is not None and not isinstance(source, Table | Path | str):
                raise OptionError(
                    f"expected {rule} as a file or a Table, got {source!r:.60}: write "
                    "Table.of(rows) for dicts"
                )
        for rule in ("demand_join", "demand_column"):
            if getattr(self, rule) is not None and self.demand_file is None:
                raise OptionError(
                    f"expected a demand file with {rule}, got none: give demand_file "
                    "(--demand-file)"
                )

    def _check_positions(self) -> None:
        for rule in ("serve_streets", "exclude_streets"):
            given = getattr(self, rule)
            if given is not None:
                object.__setattr__(self, rule, tuple(map(whole, given)))
        if self.serve_streets is not None and (
            self.serve_kinds or self.serve_names or self.serve_file is not None
        ):
            raise OptionError(
                "expected serve_streets without kinds, names or a file of streets to "
                "serve, got both: leave one out"
            )

    def _check_driving(self) -> None:
        if self.margin is not None:
            check_number("margin", self.margin, 0, 1e9)
            if self.drive_area is not None:
                raise OptionError(
                    "expected a margin or an area to drive in, got both: leave one out"
                )
        for rule in ("margin", "drive_area"):
            if getattr(self, rule) is not None and self.area is None:
                raise OptionError(
                    f"expected an area to serve with {rule}, got none: "
                    "the whole map is served, and so driven on; give an area"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreetCount:
    """Number and total length of some streets."""

    streets: int
    metres: float

    @staticmethod
    def of(streets: Iterable[Street]) -> StreetCount:
        """Count streets."""
        lengths = [street.metres for street in streets]
        return StreetCount(streets=len(lengths), metres=math.fsum(lengths))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unserved:
    """A street that was to be served and is not, and why."""

    street: Street
    reason: str

    def __str__(self) -> str:
        """Return the street, its length and the reason in one line."""
        where = describe_street(self.street)
        return f"{where}, {self.street.metres:,.0f} m: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """An instance made from a street map, and what was left out or changed on the way."""

    instance: Instance  # the scene itself; its nodes have the numbers of the junctions
    rules: SceneRules
    # The streets that are driven on, served or not; all are two-way where one-way rules
    # are ignored.
    street_map: StreetMap
    link_streets: tuple[int, ...]  # position in the whole map of the street of each link
    to_serve: StreetCount  # streets of the area that are to be served, `unserved` included
    unserved: tuple[Unserved, ...]  # those of them that are not in the instance
    # Streets of the area that are driven on only, because of their kind.
    driven_only: Mapping[str, StreetCount]
    excluded: StreetCount  # streets of the area that are driven on only, as asked
    # Streets that are not served because the demand file has no row for them.
    without_row: StreetCount
    joins: tuple[JoinedTable, ...]  # files of own data
    lost_demand: int  # on links that turn rules cut off
    crossing: StreetCount  # streets with one end in the area, which are not served
    outside: Dropped  # streets and junctions that the margin or the area to drive in drops
    # Streets and junctions of the rest without a way there from the depot and back.
    cut_off: Dropped
    split_streets: int  # number of streets that were split because of their demand
    most_parts: int  # into how many at most
    # Distance of the depot from the place asked for; None if none was.
    depot_metres: float | None
    depot_junction: int
    # Distance of each further depot and facility from the place asked for.
    place_metres: Mapping[Coordinate, float] = field(default_factory=dict)
    place_junctions: Mapping[Coordinate, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()  # why no plan can exist

    @property
    def metres(self) -> float:
        """Length of all streets."""
        return math.fsum(street.metres for street in self.street_map.streets)

    @property
    def served(self) -> StreetCount:
        """Streets of the area that are served."""
        lost = StreetCount.of(one.street for one in self.unserved)
        return StreetCount(
            streets=self.to_serve.streets - lost.streets,
            metres=self.to_serve.metres - lost.metres,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What asks for a second look, a sentence each; lost streets come last."""
        return tuple(_second_looks(self))


def _second_looks(scene: Scene) -> Iterable[str]:
    instance, rules = scene.instance, scene.rules
    yield from join_warnings(scene.joins)
    demand = demand_words(rules)
    same_unit = f"check that the capacity is in the unit of the demand ({demand})"
    if instance.least_trips > MANY_ROUTES:
        yield (
            f"a total demand of {instance.total_demand} takes at least "
            f"{instance.least_trips} {'trips' if instance.facilities else 'routes'} of "
            f"capacity {instance.capacity}: {same_unit}"
        )
    if scene.split_streets:
        one = scene.split_streets == 1
        yield (
            f"{scene.split_streets} {'street has' if one else 'streets have'} more demand "
            f"than the capacity of {instance.capacity} and {'is' if one else 'are'} split "
            f"into up to {scene.most_parts} parts: {same_unit}"
        )
    yield from unknown_streets(rules.operations, scene.street_map.streets)
    yield from stuck_vehicles(instance).values()
    yield from _far_places(scene)
    for problem in scene.problems:
        yield f"no plan can exist: {problem.message}"
    driven, served = len(scene.street_map.streets), scene.served.streets
    if rules.area is not None and driven > max(MANY_STREETS, MANY_PER_SERVED * served):
        yield (
            f"{driven} streets to drive on for {served} to serve make a large instance: "
            "a margin of 1000 m or more around the area would do"
        )
    if scene.unserved:
        lost = StreetCount.of(one.street for one in scene.unserved)
        why = "no way leads there and back"
        advice = "check the one-way streets and turns of the map there"
        if rules.drive_area is not None or rules.margin == 0:
            advice = "drive on more of the map (a larger margin or drive area), or check it"
        reasons = {one.reason for one in scene.unserved}
        if any(reason.startswith((FORBIDDEN, CLOSED_BY_FORBIDDEN)) for reason in reasons):
            why = "no vehicle type may drive there and back"
            advice = "forbid fewer streets to one of them, or " + advice
        yield (
            f"{lost.streets} of {scene.to_serve.streets} streets to serve "
            f"({lost.metres / 1000:.1f} km) {'is' if lost.streets == 1 else 'are'} NOT in "
            f"the instance, because {why}: {advice}"
        )


def _far_places(scene: Scene) -> Iterable[str]:
    """Yield a sentence for each depot and facility far from its place."""
    places = [("depot", scene.rules.depot, scene.depot_metres, scene.depot_junction)]
    stops = {one.place for one in scene.rules.operations.facilities}
    for place, far in scene.place_metres.items():
        what = "facility" if place in stops else "depot"
        places.append((what, place, far, scene.place_junctions[place]))
    for what, at, metres, junction in places:
        if at is not None and metres is not None and metres > FAR_METRES:
            yield (
                f"the {what} at {at[0]:g},{at[1]:g} is {metres:,.0f} m from the nearest "
                f"junction that it can be at, {junction}: check the place, and whether the "
                "map has its street"
            )


def make_scene(
    street_map: StreetMap, rules: SceneRules | None = None, **options: Any
) -> Instance:
    """Make an instance from a street map; `cut_scene` also reports what was left out.

    Streets that were to be served and cannot be, and numbers that ask for a second look,
    are warned of.

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
    known = [rule.name for rule in fields(SceneRules)]
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
    scene = cut_scene(street_map, rules)
    for warning in scene.warnings:
        warnings.warn(warning, stacklevel=2)
    return scene.instance


def cut_scene(street_map: StreetMap, rules: SceneRules) -> Scene:
    """Make an instance from a street map, and report what was left out or changed.

    The same map and rules give the same scene. Streets keep their order, and junctions
    their numbers; where a street is split, new junctions get numbers beyond the largest of
    the map. Costs are metres or seconds, rounded and at least 1.
    """
    usual_capacity = rules.capacity
    # Streets are split by the largest vehicle.
    rules = replace(rules, capacity=rules.operations.capacity(usual_capacity))
    rules = with_tables(rules)
    check_known_kinds(rules.speeds, street_map.streets)
    if not rules.one_way:
        two_way = tuple(replace(street, one_way=False) for street in street_map.streets)
        street_map = replace(street_map, streets=two_way)
    where = _place(street_map, rules)
    streets = street_map.streets
    inside, crossing = _in_area(street_map, rules)
    choice = choose_streets(street_map, inside, rules, f"in {where}")
    asked = choice.asked
    network = driving_network(
        street_map,
        asked,
        area=rules.area,
        margin=rules.margin,
        drive_area=rules.drive_area,
        depot=rules.depot,
        turns=rules.turns,
        where=where,
        places=rules.operations.places,
    )
    if not choice.joined.keys().isdisjoint(network.unreachable):
        where_in, closed = f"in {where}", network.unreachable
        choice = choose_streets(street_map, inside, rules, where_in, closed)
    part = replace(
        street_map,
        junctions={
            end: at for end, at in street_map.junctions.items() if end in network.junctions
        },
        streets=tuple(streets[position] for position in network.streets),
        turns=turns_of_kept(street_map.turns, network.streets),
    )
    maker = LinkMaker(
        part, rules, first_new_junction=max(street_map.junctions, default=0) + 1
    )
    starts = []  # the first link of each street
    owners: list[int] = []  # the street of each link
    for position in network.streets:
        starts.append(len(maker.links))
        demand = choice.demands[position] if asked[position] else None
        maker.add(streets[position], demand, exact=position in choice.joined)
        owners += [position] * (len(maker.links) - len(owners))
    instance = Instance(
        name=street_map.name if rules.name is None else rules.name,
        nodes=(*part.junctions, *maker.new_junctions),
        links=tuple(maker.links),
        depot=network.depot,
        capacity=rules.capacity,
        attribution=street_map.attribution,
        coordinates=(*part.junctions.values(), *maker.new_junctions.values()),
        cost_unit="metres" if rules.cost == "length" else "seconds",
        turns=scene_turns(street_map, part, maker.links, starts, rules.turns),
        u_turns=rules.turns.u_turns,
        u_turn_penalty=rules.turns.u_turn_penalty,
    )
    junctions = {place: junction for place, (junction, _) in network.places.items()}
    instance = with_operations(
        instance,
        rules.operations,
        usual_capacity=usual_capacity,
        junctions=junctions,
        streets=[streets[position] for position in owners],
    )
    instance, lost = serve_what_is_open(instance)
    if not instance.required:
        reasons = [*lost.values(), *network.unreachable.values()]
        rules_of = "the turn rules"
        advice = "allow U-turns or take a larger area"
        if any(vehicle.forbidden_links for vehicle in instance.fleet):
            rules_of = "turn rules and forbidden streets"
            advice = "forbid fewer streets, or " + advice
        raise MapError(
            f"expected a street that {rules_of} let be served in {where}, found none among "
            f"{sum(asked)}: {_most_common(reasons)}; {advice}"
        )
    unserved = network.unreachable | _reasons(owners, instance, lost)
    problems = diagnose(instance) if instance.operations else ()
    for problem in problems:
        if problem.kind == "too-long" and problem.links == instance.required:
            raise MapError(
                "expected a longest route that some street fits into, got one that none of "
                f"{len(problem.links)} links in {where} does: {problem.message}"
            )
    return Scene(
        instance=instance,
        rules=rules,
        street_map=part,
        link_streets=tuple(owners),
        to_serve=StreetCount.of(
            s for s, wanted in zip(streets, asked, strict=True) if wanted
        ),
        unserved=tuple(
            Unserved(street=streets[position], reason=unserved[position])
            for position in sorted(unserved, key=lambda i: (-streets[i].metres, i))
        ),
        driven_only=_driven_only(streets, inside, asked, rules),
        excluded=StreetCount.of(compress(streets, choice.excluded)),
        without_row=StreetCount.of(compress(streets, choice.without_row)),
        joins=choice.joins,
        lost_demand=sum(maker.links[position].demand for position in lost),
        crossing=crossing,
        outside=network.outside,
        cut_off=network.cut_off,
        split_streets=maker.split_streets,
        most_parts=maker.most_parts,
        depot_metres=network.depot_metres,
        depot_junction=network.depot,
        place_metres={place: metres for place, (_, metres) in network.places.items()},
        place_junctions=junctions,
        problems=problems,
    )


def serve_what_is_open(instance: Instance) -> tuple[Instance, dict[int, str]]:
    """Require only links that some vehicle can serve; return also why not the others."""
    forbidden = [set(vehicle.forbidden_links) for vehicle in instance.fleet]
    if not instance.has_turn_rules and not any(forbidden):
        return instance, {}
    closed = set(instance.required) - servable(instance)
    if not closed:
        return instance, {}
    to_all = set.intersection(*forbidden)
    opened = set[int]()  # by every vehicle type, if it might use all streets
    if any(forbidden):
        free = tuple(replace(one, forbidden_links=()) for one in instance.vehicles)
        opened = servable(replace(instance, vehicles=free))
    lost = {
        position: FORBIDDEN
        if position in to_all
        else (CLOSED_BY_FORBIDDEN if position in opened else CLOSED_BY_TURNS)
        for position in sorted(closed)
    }
    links = [
        not_required(link) if position in lost else link
        for position, link in enumerate(instance.links)
    ]
    return replace(instance, links=tuple(links)), lost


def _reasons(
    owners: Sequence[int], instance: Instance, lost: Mapping[int, str]
) -> dict[int, str]:
    """Return for streets with links that are lost why, and how much of them it is."""
    reasons: dict[int, list[str]] = {}
    for position, reason in lost.items():
        reasons.setdefault(owners[position], []).append(reason)
    left = Counter(owners[position] for position in instance.required)
    texts = {}
    for street, found in reasons.items():
        texts[street] = _most_common(found)
        if left[street]:
            texts[street] += f" for {len(found)} of {len(found) + left[street]} links"
    return texts


def _most_common(reasons: Iterable[str]) -> str:
    return Counter(reasons).most_common(1)[0][0]


def _in_area(street_map: StreetMap, rules: SceneRules) -> tuple[list[bool], StreetCount]:
    """Return which streets are in the area, and count those left that cross its border."""
    where = _place(street_map, rules)
    inside = streets_in(rules.area, street_map)
    crossing = StreetCount.of(())
    if rules.area is not None:
        held = junctions_in(rules.area, street_map)
        if not held:
            turned = [place[::-1] for place in street_map.junctions.values()]
            hint = "its numbers look like LAT,LON: write LON,LAT; "
            raise MapError(
                f"expected junctions in {where}, found none: "
                + (hint if rules.area.holds(turned).any() else "")
                + f"the map reaches {_extent(street_map)}"
            )
        if rules.border == "middle":
            middles = middles_in(rules.area, street_map)
            inside = [one or other for one, other in zip(inside, middles, strict=True)]
        crossing = StreetCount.of(
            street
            for street, is_inside in zip(street_map.streets, inside, strict=True)
            if not is_inside and (street.tail in held or street.head in held)
        )
    if not any(inside):
        raise MapError(
            f"expected a street with both ends in {where}, found none: take a larger area"
        )
    return inside, crossing


def _driven_only(
    streets: Sequence[Street],
    inside: Sequence[bool],
    asked: Sequence[bool],
    rules: SceneRules,
) -> dict[str, StreetCount]:
    """Count the streets that are not served for their kind, unless kinds were asked for."""
    by_file = rules.serve_file is not None or rules.demand_file is not None
    by_file = by_file or rules.serve_streets is not None
    if rules.serve_names or rules.serve_kinds or by_file:
        return {}
    by_kind: dict[str, list[Street]] = {}
    for street, is_inside, is_asked in zip(streets, inside, asked, strict=True):
        if is_inside and not is_asked:
            by_kind.setdefault(kind_of(street), []).append(street)
    return {kind: StreetCount.of(by_kind[kind]) for kind in sorted(by_kind)}


def _place(street_map: StreetMap, rules: SceneRules) -> str:
    where = f"map {street_map.name!r}"
    return where if rules.area is None else f"{rules.area.describe()} of {where}"


def _extent(street_map: StreetMap) -> str:
    if not street_map.junctions:
        return "nowhere, it has no junctions"
    places = np.array(list(street_map.junctions.values()))
    (west, south), (east, north) = places.min(axis=0), places.max(axis=0)
    return f"from {west:.4f},{south:.4f} to {east:.4f},{north:.4f}"


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
        self.most_parts = 1

    def add(self, street: Street, demand: int | None, *, exact: bool = False) -> None:
        """Add the links of a street; a demand of None means that it is not served.

        Where it is exact, both sides together have the demand; else each has half of it,
        rounded up.
        """
        is_served = demand is not None
        by_side = is_served and self._rules.both_sides and not street.one_way
        load = demand or 0
        back_load = load
        if by_side:
            load = -(-load // 2)
            back_load = back_load - load if exact else load
        parts = self._parts(street, load)
        back_loads = equal_shares(back_load, parts)
        ends, lines = self._cut(street, parts)
        shares = (equal_shares(n, parts) for n in measures_of(street, self._rules))
        measures = [Measures(*share) for share in zip(*shares, strict=True)]
        one_way = street.one_way or by_side
        speed, reverse_speed = driving_speeds(street, self._rules)
        for part, part_load in enumerate(equal_shares(load, parts)):
            there = Link(
                tail=ends[part],
                head=ends[part + 1],
                one_way=one_way,
                required=is_served,
                demand=part_load,
                name=street.name,
                geometry=lines[part],
                kind=street.kind,
                ways=on_part(street.ways, part, parts),
                ids=on_part(street.ids, part, parts),
                speed_kmh=speed,
                reverse_speed_kmh=None if one_way else reverse_speed,
                **measures[part].of_link(
                    self._rules.cost, one_way=one_way, required=is_served
                ),
            )
            self.links.append(there)
            if by_side:
                back = replace(
                    there,
                    tail=there.head,
                    head=there.tail,
                    demand=back_loads[part],
                    geometry=lines[part][::-1],
                    ways=there.ways[::-1],
                    ids=there.ids[::-1],
                    speed_kmh=reverse_speed,
                    **measures[part]
                    .reversed()
                    .of_link(self._rules.cost, one_way=True, required=True),
                )
                self.links.append(back)

    def _parts(self, street: Street, load: int) -> int:
        capacity = self._rules.capacity
        parts = max(1, -(-load // capacity))
        if parts == 1:
            return 1
        too_much = (
            f"expected at most {capacity} (the capacity) as demand of a street, "
            f"got {load} on {describe_street(street)} of map {self._map.name!r}"
        )
        if self._rules.oversized == "refuse":
            raise MapError(f"{too_much}: raise the capacity or let such streets be split")
        if parts > _MOST_PARTS:
            raise MapError(
                f"{too_much}, which would be split into {parts} parts: "
                "give capacity and demand in the same unit"
            )
        self.split_streets += 1
        self.most_parts = max(self.most_parts, parts)
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


def describe_street(street: Street) -> str:
    """Return the name of a street for messages, as in `street 5-9 (High Street)`."""
    arrow = ">" if street.one_way else "-"
    name = " ".join(street.name.split())  # a message stays one line
    return f"street {street.tail}{arrow}{street.head}" + (f" ({name})" if name else "")


def on_part(along: Sequence[tuple[T, float]], part: int, parts: int) -> tuple[T, ...]:
    """Return the ways or ids along a street that one of some equal parts of it lies on."""
    total = math.fsum(metres for _, metres in along)
    first, last = total * part / parts, total * (part + 1) / parts
    found: dict[T, None] = {}
    start = 0.0
    for each, metres in along:
        # Sums of lengths are rounded: what only touches the part is no part of it.
        if min(start + metres, last) - max(start, first) > _TOUCHING * total:
            found[each] = None
        start += metres
    # A street without a length has its ways, too.
    return tuple(found) or tuple(dict.fromkeys(each for each, _ in along))


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
