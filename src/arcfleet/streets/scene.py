"""A scene: an area of a street map, a depot and demands, made into an instance."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from arcfleet.errors import MapError
from arcfleet.instance.instance import Instance
from arcfleet.streets.nearness import most_central_junction, nearest_junction
from arcfleet.streets.scene_links import LinkMaker
from arcfleet.streets.served import served_streets
from arcfleet.streets.simplify import Dropped, largest_strong_part

if TYPE_CHECKING:
    from arcfleet.streets.scene_rules import SceneRules
    from arcfleet.streets.street_map import Street, StreetMap

#: A depot farther than this from any junction is a mistake.
MOST_DEPOT_METRES = 2000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """An instance made from a street map, and what was left out or changed on the way.

    Parameters
    ----------
    instance
        The scene itself; its nodes have the numbers of the junctions.
    street_map
        The part of the map it is made of; all its streets are two-way where one-way rules
        are ignored.
    outside
        What does not lie in the area.
    cut_off
        What lies in the area, but not in its largest part in which every junction can be
        reached from every other.
    split_streets
        How many streets were cut because their demand is more than a vehicle takes.
    depot_metres
        How far the depot is from the place asked for; None where none was.
    """

    instance: Instance
    street_map: StreetMap
    outside: Dropped
    cut_off: Dropped
    split_streets: int
    depot_metres: float | None

    @property
    def metres(self) -> float:
        """Length of all streets."""
        return math.fsum(street.metres for street in self.street_map.streets)


def make_scene(street_map: StreetMap, rules: SceneRules) -> Scene:
    """Make an instance from a street map.

    The same map and rules give the same scene. Streets keep their order, and junctions
    their numbers; where a street is split, new junctions get numbers beyond the largest of
    the map. Costs are metres, rounded and at least 1.

    Parameters
    ----------
    street_map
        The streets, of which the area may take a part.
    rules
        Everything else.

    Raises
    ------
    MapError
        If the area holds no streets, the depot is far from it, a kind or name of street
        to be served does not occur, or a street has too much demand.
    """
    inside, outside = _inside(street_map, rules)
    if not rules.one_way:
        two_way = tuple(replace(street, one_way=False) for street in inside.streets)
        inside = replace(inside, streets=two_way)
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
    for street, is_served, demand in zip(
        part.streets, served, _demands(part.streets, rules), strict=True
    ):
        maker.add(street, demand if is_served else None)
    instance = Instance(
        name=street_map.name if rules.name is None else rules.name,
        nodes=(*part.junctions, *maker.new_junctions),
        links=tuple(maker.links),
        depot=depot,
        capacity=rules.capacity,
        comment="; ".join(text for text in (street_map.credit, rules.remark) if text),
        coordinates=(*part.junctions.values(), *maker.new_junctions.values()),
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
    held = rules.area.holds(list(street_map.junctions.values()))
    junctions = {
        junction: place
        for (junction, place), inside in zip(
            street_map.junctions.items(), held.tolist(), strict=True
        )
        if inside
    }
    if not junctions:
        raise MapError(
            f"expected junctions in {_place(street_map, rules)}, found none: "
            f"the map reaches {_extent(street_map)}"
        )
    kept: list[Street] = []
    left: list[Street] = []
    for street in street_map.streets:
        is_inside = street.tail in junctions and street.head in junctions
        (kept if is_inside else left).append(street)
    dropped = Dropped(
        junctions=len(street_map.junctions) - len(junctions),
        streets=len(left),
        metres=math.fsum(street.metres for street in left),
    )
    return replace(street_map, junctions=junctions, streets=tuple(kept)), dropped


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
