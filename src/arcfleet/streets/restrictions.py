"""Turn restrictions of OpenStreetMap: which turns between streets its relations forbid.

A relation names the way that a vehicle comes along (`from`), the node where it turns
(`via`) and the way that it must (`only_…`) or must not (`no_…`) turn onto (`to`). Where a
way runs on across the node, the map means one of its two pieces: that to which `left`,
`right`, `straight_on` or `u_turn` fits. Where none or several fit, `no_…` means all of
them, which forbids too much rather than too little, and `only_…` is left out.

An `only_…` onto a street that is not read forbids all turns onto those that are.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from arcfleet._checks import name_hint
from arcfleet.errors import OptionError
from arcfleet.instance.geodesy import bearing, turn_angle
from arcfleet.streets.street_map import StreetTurn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from arcfleet.instance.turns import Direction
    from arcfleet.streets.osm_tags import Tags
    from arcfleet.streets.street_map import StreetMap
    from arcfleet.streets.ways import Way

#: Why a relation is not obeyed, in the words of reports.
Reason = Literal[
    "not read",
    "excepted",
    "other vehicles",
    "one-way",
    "via ways",
    "ambiguous",
    "contradictory",
    "broken",
]
#: What each reason means, for people.
REASONS: dict[Reason, str] = {
    "not read": "between streets that are not read",
    "excepted": "with an exception for the vehicle",
    "other vehicles": "for other vehicles",
    "one-way": "on turns that one-way streets rule out anyway",
    "via ways": "via a way instead of a node",
    "ambiguous": "that fit several turns",
    "contradictory": "that contradict each other",
    "broken": "that lack a part or do not meet",
}
#: Reasons that a mapper should look at; the others are no mistake and no loss.
NAMED_REASONS: tuple[Reason, ...] = ("via ways", "ambiguous", "contradictory", "broken")
#: Vehicles, and the class that each is part of.
VEHICLES: dict[str, str] = {
    "hgv": "motor_vehicle",
    "goods": "motor_vehicle",
    "motorcar": "motor_vehicle",
    "motorcycle": "motor_vehicle",
    "moped": "motor_vehicle",
    "bus": "psv",
    "taxi": "psv",
    "psv": "motor_vehicle",
    "emergency": "motor_vehicle",
    "motor_vehicle": "vehicle",
    "bicycle": "vehicle",
    "vehicle": "",
}
DEFAULT_VEHICLE = "hgv"
_VALUE = re.compile(r"(no|only)_(left|right|straight|u|entry|exit)(_turn|_on|)")
#: The angle of a turn in each direction, positive to the right.
_ANGLES = {"left": -90.0, "straight": 0.0, "right": 90.0, "u": 180.0}
#: What every vehicle does between the junctions of a street, where nobody turns.
_WITHIN_A_STREET = ("no_left_turn", "no_right_turn", "no_u_turn", "only_straight_on")
_CONDITIONS = ("hour_on", "hour_off", "day_on", "day_off")


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRestriction:
    """A relation that is not obeyed."""

    relation: int  # its number on OpenStreetMap
    reason: Reason
    detail: str = ""  # what is wrong, where the reason alone does not tell
    streets: tuple[
        str, ...
    ] = ()  # names of the streets it is about, as far as they are read

    def __str__(self) -> str:
        """Return relation, streets and detail in one line."""
        streets = f" ({', '.join(self.streets)})" if self.streets else ""
        return f"relation {self.relation}{streets}" + (
            f": {self.detail}" if self.detail else ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RestrictionReport:
    """What became of the turn restrictions of a file."""

    vehicle: str  # the vehicle they were read for
    obeyed: int = 0  # number of relations that are obeyed
    conditional: int = 0  # number of those that hold at some hours or for some loads only
    skipped: tuple[SkippedRestriction, ...] = ()  # in the order of the file

    @property
    def counts(self) -> dict[Reason, int]:
        """Number of relations that are not obeyed, by reason."""
        found = Counter(skipped.reason for skipped in self.skipped)
        return {reason: found[reason] for reason in REASONS if found[reason]}

    @property
    def named(self) -> tuple[SkippedRestriction, ...]:
        """The relations that a mapper should look at."""
        return tuple(one for one in self.skipped if one.reason in NAMED_REASONS)


class Relation(NamedTuple):
    """A restriction as the file has it."""

    number: int
    tags: Tags
    members: tuple[tuple[str, int, str], ...]  # type (n, w or r), number and role


class _Skip(Exception):  # noqa: N818 (no error: it ends the reading of one relation)
    """The relation at hand cannot be obeyed."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class _Rule(NamedTuple):
    """One value of a relation, on the streets of the map."""

    relation: int
    value: str
    # Turns it forbids, or, of `only_…`, the turn that it leaves; nothing (None) leaves no
    # turn onto a street that is read.
    turns: tuple[tuple[Direction, Direction | None], ...]
    only: bool


def check_vehicle(vehicle: str) -> None:
    """Raise OptionError unless restrictions can be read for a vehicle of that name."""
    if vehicle not in VEHICLES:
        raise OptionError(
            "expected a vehicle in the words of OpenStreetMap, "
            f"got {vehicle!r}: {name_hint(vehicle, VEHICLES)}"
        )


def forbidden_turns(
    relations: Iterable[Relation],
    street_map: StreetMap,
    ways: Mapping[int, tuple[Way, Sequence[int]]],
    vehicle: str,
) -> tuple[tuple[StreetTurn, ...], RestrictionReport, list[str]]:
    """Return the turns that relations forbid, a report, and the contradictions.

    Parameters
    ----------
    relations
        Relations of type `restriction`.
    street_map
        The streets, cut at each node that ways share.
    ways
        By number each way that was read, and the positions of its streets.
    vehicle
        Vehicle at hand; exceptions and rules of its own count.
    """
    reader = _Reader(street_map, ways, vehicle)
    for relation in relations:
        reader.read(relation)
    contradictions = reader.drop_contradictions()
    return reader.turns(), reader.report(), contradictions


class _Reader:
    def __init__(
        self,
        street_map: StreetMap,
        ways: Mapping[int, tuple[Way, Sequence[int]]],
        vehicle: str,
    ) -> None:
        check_vehicle(vehicle)
        self.map = street_map
        self.ways = ways
        self.vehicle = vehicle
        # From the most specific to the most general.
        self.classes = [vehicle]
        while VEHICLES[self.classes[-1]]:
            self.classes.append(VEHICLES[self.classes[-1]])
        self.rules: list[_Rule] = []
        self.relations: dict[int, Relation] = {}
        self.conditional: set[int] = set()
        self.skipped: dict[int, SkippedRestriction] = {}

    def read(self, relation: Relation) -> None:
        """Note the rules of a relation, or why it has none."""
        self.relations[relation.number] = relation
        try:
            values, conditional = self._values(relation.tags)
            # Of several values, one that cannot be obeyed leaves the others out, too.
            rules = [self._rule(relation, value) for value in values]
        except _Skip as skip:
            self._skip(relation, skip.reason, skip.detail)
            return
        self.rules += rules
        if conditional:
            self.conditional.add(relation.number)

    def _skip(self, relation: Relation, reason: Reason, detail: str = "") -> None:
        numbers = (number for kind, number, _ in relation.members if kind == "w")
        self.skipped[relation.number] = SkippedRestriction(
            relation=relation.number,
            reason=reason,
            detail=detail,
            streets=tuple(
                dict.fromkeys(self._name(way) for way in numbers if way in self.ways)
            ),
        )

    def _name(self, way: int) -> str:
        name = self.ways[way][0].name if way in self.ways else ""
        return " ".join(name.split()) or f"way {way}"

    def _values(self, tags: Tags) -> tuple[list[str], bool]:
        """Return what a relation demands of the vehicle, and whether at some hours only."""
        exceptions = re.split(r"[;,\s]+", tags.get("except", ""))
        excepted = any(one in exceptions for one in self.classes)
        texts: list[str] = []
        conditional: list[str] = []
        own = [f"restriction:{one}" for one in self.classes]
        specific = next((key for key in own if key in tags), None)
        if specific is not None:
            texts.append(tags[specific])
        elif not excepted:
            texts.append(tags.get("restriction", ""))
        # Those that hold at some hours only are obeyed at all hours.
        keys = [f"{key}:conditional" for key in own]
        keys += [] if excepted else ["restriction:conditional"]
        for key in keys:
            conditional += re.findall(r"([a-z_]+)\s*@", tags.get(key, ""))
        parts = (one.strip() for text in texts for one in text.split(";"))
        values = [one for one in (*parts, *conditional) if one]
        wanted = [value for value in dict.fromkeys(values) if value not in ("none", "no")]
        if wanted:
            return wanted, bool(conditional) or any(key in tags for key in _CONDITIONS)
        if excepted or values:
            raise _Skip("excepted")
        if any(key.startswith("restriction:") for key in tags):
            raise _Skip("other vehicles")
        raise _Skip("broken", "it does not say what it forbids")

    def _rule(self, relation: Relation, value: str) -> _Rule:
        known = _VALUE.fullmatch(value)
        if known is None:
            raise _Skip("broken", f"{value[:40]!r} is no restriction that is known")
        only, side = known[1] == "only", known[2]
        members: dict[str, list[int]] = {"from": [], "via": [], "to": []}
        via_ways = False
        for kind, number, role in relation.members:
            if role in members:
                members[role].append(number)
                if kind != "w" and not (kind == "n" and role == "via"):
                    raise _Skip("broken", f"its member {role} is no way")
                via_ways |= kind == "w" and role == "via"
        for role, numbers in members.items():
            if not numbers:
                raise _Skip("broken", f"it has no member {role}")
        if only and (len(members["from"]) > 1 or len(members["to"]) > 1):
            raise _Skip("broken", f"{value} has several members from or to")
        origins = [way for way in members["from"] if way in self.ways]
        targets = [way for way in members["to"] if way in self.ways]
        if not origins or not (targets or only):
            raise _Skip("not read")
        if via_ways or len(members["via"]) > 1:
            raise _Skip("via ways")
        (via,) = members["via"]
        for way in (*origins, *targets):
            if via not in self.ways[way][0].points:
                raise _Skip("broken", f"{self._name(way)} does not touch node {via}")
        if via not in self.map.junctions:
            if origins != targets:
                raise _Skip("not read")
            if value in _WITHIN_A_STREET:
                return _Rule(relation.number, value, (), only)
            within = f"{value} within {self._name(origins[0])}"
            raise _Skip("broken", f"{within}, at node {via}, which is no junction")
        if only:
            turn = self._only_turn(origins[0], via, targets, side)
            return _Rule(relation.number, value, (turn,), only)
        turns: list[tuple[Direction, Direction | None]] = []
        for origin in origins:
            for target in targets:
                pairs = self._pairs(origin, via, target)
                fitting = self._fitting(pairs, side) if len(pairs) > 1 else pairs
                turns += fitting or pairs
        if not turns:
            raise _Skip("one-way")
        return _Rule(relation.number, value, tuple(turns), only)

    def _only_turn(
        self, origin: int, via: int, targets: list[int], side: str
    ) -> tuple[Direction, Direction | None]:
        """Return the one turn that an `only_…` leaves."""
        arriving = self._arriving(origin, via)
        if not arriving:
            raise _Skip("one-way")
        if not targets:
            if len(arriving) > 1:
                raise _Skip("ambiguous", f"{self._name(origin)} runs across node {via}")
            return arriving[0], None
        pairs = self._pairs(origin, via, targets[0])
        if not pairs:
            raise _Skip("broken", f"{self._name(targets[0])} is one-way to node {via}")
        if len(pairs) > 1:
            pairs = self._fitting(pairs, side)
        if len(pairs) != 1:
            raise _Skip("ambiguous", f"a street runs across node {via}")
        return pairs[0]

    def _arriving(self, way: int, via: int) -> list[Direction]:
        return [
            (index, reverse)
            for index in self.ways[way][1]
            for reverse in self.map.streets[index].directions
            if self.map.streets[index].ends(reverse)[1] == via
        ]

    def _pairs(
        self, origin: int, via: int, target: int
    ) -> list[tuple[Direction, Direction]]:
        leaving = [
            (index, reverse)
            for index in self.ways[target][1]
            for reverse in self.map.streets[index].directions
            if self.map.streets[index].ends(reverse)[0] == via
        ]
        return [(along, onto) for along in self._arriving(origin, via) for onto in leaving]

    def _fitting(
        self, pairs: list[tuple[Direction, Direction]], side: str
    ) -> list[tuple[Direction, Direction]]:
        """Return the turns that go to the side that the relation names."""
        return [pair for pair in pairs if self._side(*pair) == side]

    def _side(self, along: Direction, onto: Direction) -> str:
        if onto == (along[0], not along[1]):
            return "u"
        angle = turn_angle(self._bearing(along[0], not along[1]), self._bearing(*onto))
        return min(_ANGLES, key=lambda side: abs((angle - _ANGLES[side] + 180) % 360 - 180))

    def _bearing(self, index: int, reverse: bool) -> float:
        points = self.map.points(self.map.streets[index])
        return bearing(points[::-1] if reverse else points)

    def drop_contradictions(self) -> list[str]:
        """Drop the relations that contradict each other; return what to say of them."""
        onto_by_only: dict[Direction, dict[Direction | None, list[_Rule]]] = {}
        no: dict[tuple[Direction, Direction | None], list[_Rule]] = defaultdict(list)
        for rule in self.rules:
            for along, onto in rule.turns:
                if rule.only:
                    choices = onto_by_only.setdefault(along, {})
                    choices.setdefault(onto, []).append(rule)
                else:
                    no[along, onto].append(rule)
        texts = []
        wrong: set[int] = set()
        for along, choices in onto_by_only.items():
            clashing = [rule for rules in choices.values() for rule in rules]
            if len(choices) == 1:
                (onto,) = choices
                against = no.get((along, onto), [])
                clashing = clashing + against if against else []
            if clashing:
                wrong.update(rule.relation for rule in clashing)
                texts.append(self._contradiction(along, clashing))
        self.rules = [rule for rule in self.rules if rule.relation not in wrong]
        for number in sorted(wrong):
            self._skip(self.relations[number], "contradictory")
        return texts

    def _contradiction(self, along: Direction, rules: list[_Rule]) -> str:
        street = self.map.streets[along[0]]
        onto = [o for rule in rules for _, o in rule.turns if o is not None]
        names = dict.fromkeys(
            " ".join(self.map.streets[index].name.split()) or "a street without a name"
            for index, _ in onto
        )
        said = " and ".join(f"{rule.relation} ({rule.value})" for rule in rules)
        origin = " ".join(street.name.split()) or "a street without a name"
        return (
            f"relations {said} from {origin} onto {' or '.join(names)} "
            f"at node {street.ends(along[1])[1]}"
        )

    def turns(self) -> tuple[StreetTurn, ...]:
        """Return all turns that the rules forbid."""
        found: set[StreetTurn] = set()
        vias = {
            self.map.streets[along[0]].ends(along[1])[1]
            for rule in self.rules
            if rule.only
            for along, _ in rule.turns
        }
        leaving: dict[int, list[Direction]] = {via: [] for via in vias}
        for index, street in enumerate(self.map.streets if vias else ()):
            for reverse in street.directions:
                start = street.ends(reverse)[0]
                if start in vias:
                    leaving[start].append((index, reverse))
        for rule in self.rules:
            for along, onto in rule.turns:
                if rule.only:
                    via = self.map.streets[along[0]].ends(along[1])[1]
                    others = [other for other in leaving[via] if other != onto]
                    found.update(StreetTurn(*along, *other) for other in others)
                elif onto is not None:
                    found.add(StreetTurn(*along, *onto))
        return tuple(sorted(found))

    def report(self) -> RestrictionReport:
        """Return what became of all relations."""
        obeyed = {rule.relation for rule in self.rules}
        return RestrictionReport(
            vehicle=self.vehicle,
            obeyed=len(obeyed),
            conditional=len(obeyed & self.conditional),
            skipped=tuple(self.skipped.values()),
        )
