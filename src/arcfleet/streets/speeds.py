"""Travel times: speed limits of OpenStreetMap, speeds by class, and the speed of work."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from arcfleet._checks import check_number, name_hint
from arcfleet._files import quote
from arcfleet.errors import FormatWarning, MapError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from arcfleet.streets.osm_tags import Tags
    from arcfleet.streets.scene import SceneRules
    from arcfleet.streets.street_map import Street

#: What the costs of a scene are: metres or seconds.
Cost = Literal["length", "time"]
COSTS: tuple[Cost, ...] = get_args(Cost)

#: Stands for the streets that the map gives no kind, or one without a speed of its own.
UNKNOWN_KIND = "unknown"
#: Driving speed by class of street, in km/h, where the map has no speed limit. These are
#: those of OSRM's profile of a car, which are below the limits, for they allow for
#: crossings and parked cars.
CLASS_SPEEDS: dict[str, float] = {
    "motorway": 90.0,
    "motorway_link": 45.0,
    "trunk": 85.0,
    "trunk_link": 40.0,
    "primary": 65.0,
    "primary_link": 30.0,
    "secondary": 55.0,
    "secondary_link": 25.0,
    "tertiary": 40.0,
    "tertiary_link": 20.0,
    "unclassified": 25.0,
    "residential": 25.0,
    "living_street": 10.0,
    "road": 25.0,
    "service": 15.0,
    UNKNOWN_KIND: 25.0,
}
#: Slower or faster than this, a speed in km/h is a mistake.
LEAST_SPEED, MOST_SPEED = 1.0, 200.0
#: The longest fixed time of a service: a day.
MOST_SERVICE_TIME = 86_400.0

_WALK = 7.0  # km/h
_UNITS = {
    **dict.fromkeys(("", "km/h", "kmh", "kph"), 1.0),
    "mph": 1.609344,
    "knots": 1.852,
}
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z/]*)")
#: A limit that the law of a country sets, as DE:urban, DE-BY:zone30, GB:zone:20.
_LEGAL = re.compile(r"([a-z]{2})(?:-[a-z0-9]+)*:(?:zone:?)?([a-z0-9_]+)")
#: Countries whose signs are in miles per hour.
_MILES = frozenset({"gb", "uk", "us"})
#: No number is stated, or none holds: the class of the street says how fast it is driven.
_NO_NUMBER = frozenset(
    {"none", "signals", "variable", "unposted", "motorway", "motorroad", "trunk"}
    | {"expressway"}
)
_LEGAL_SPEEDS = {
    "walk": _WALK,
    "living_street": _WALK,
    "pedestrian_zone": _WALK,
    "bicycle_road": 30.0,
    "urban": 50.0,
    "rural": 90.0,
    "nsl_restricted": 30 * _UNITS["mph"],
    "nsl_single": 60 * _UNITS["mph"],
    "nsl_dual": 70 * _UNITS["mph"],
}
#: Where the law differs from the usual.
_NATIONAL_SPEEDS = {
    **dict.fromkeys([("de", "rural"), ("at", "rural")], 100.0),
    **{(country, "rural"): 80.0 for country in ("ch", "dk", "fi", "fr", "nl", "no")},
    ("se", "rural"): 70.0,
    ("ru", "urban"): 60.0,
    ("ru", "living_street"): 20.0,
    ("us", "urban"): 30 * _UNITS["mph"],
    ("us", "rural"): 55 * _UNITS["mph"],
}


class SpeedLimit(NamedTuple):
    """The speed limit of a street in one direction.

    Parameters
    ----------
    speed
        Limit in km/h; where it changes along the street, the speed that takes as long.
    share
        Part of the street's length that has a limit, above 0 and at most 1.
    """

    speed: float
    share: float = 1.0


def parse_speed(text: str) -> float | None:
    """Return the speed in km/h that a value of `maxspeed` states; None if it has no number.

    Numbers are km/h unless they have another unit (`30 mph`, `5 knots`). `walk` is 7 km/h.
    `DE:urban`, `FR:rural` and the like are the speeds of the law, `DE:zone30` is 30. Of
    several values, as `50;30`, the least counts. `none`, `signals` and the laws of
    motorways have no number.

    Raises
    ------
    ValueError
        If the value is no speed, or one that nobody drives.
    """
    speeds = [_parse_one(part) for part in re.split(r"[;|]", text.strip().lower())]
    return min((speed for speed in speeds if speed is not None), default=None)


@lru_cache(maxsize=1024)
def _parse_one(text: str) -> float | None:
    text = text.strip()
    country, word = "", text
    legal = _LEGAL.fullmatch(text)
    if legal is not None:
        country, word = legal[1], legal[2]
    if word in _NO_NUMBER:
        return None
    number = _NUMBER.fullmatch(word)
    if number is not None:
        unit = number[2] or ("mph" if country in _MILES else "")
        speed = float(number[1]) * _UNITS.get(unit, 0.0)
    else:
        usual = _LEGAL_SPEEDS.get(word, 0.0) if country or word == "walk" else 0.0
        speed = _NATIONAL_SPEEDS.get((country, word), usual)
    if not LEAST_SPEED <= speed <= MOST_SPEED:
        raise ValueError(f"expected a speed, got {text!r}")
    return speed


class LimitReader:
    """Reads the speed limits of a map, and warns of those that make no sense."""

    def __init__(self) -> None:
        self._wrong = 0
        self._example = ""

    def limits(self, tags: Tags) -> tuple[SpeedLimit | None, SpeedLimit | None]:
        """Return the limits along a line and against it that its tags state."""
        wrong: list[str] = []
        forward = _first_limit(tags, ("maxspeed:forward", "maxspeed"), wrong)
        backward = _first_limit(tags, ("maxspeed:backward", "maxspeed"), wrong)
        if wrong:
            self._wrong += 1
            name = tags.get("name", "")
            on = f" on {quote(name)}" if name else ""
            self._example = self._example or f"{quote(wrong[0])}{on}"
        return forward, backward

    def warn(self, where: object) -> None:
        """Warn of all limits that make no sense, in one sentence."""
        if not self._wrong:
            return
        lines = "line" if self._wrong == 1 else "lines"
        warnings.warn(
            f"{where}: expected speeds as maxspeed, found none that make sense on "
            f"{self._wrong} {lines}, as {self._example}; the speed of the street's class "
            "is used there",
            FormatWarning,
            stacklevel=3,
        )


def _first_limit(tags: Tags, keys: Sequence[str], wrong: list[str]) -> SpeedLimit | None:
    """Return the limit of the first key whose value makes sense; collect the others."""
    for key in keys:
        if key in tags:
            try:
                speed = parse_speed(tags[key])
            except ValueError:
                wrong.append(tags[key])
            else:
                return None if speed is None else SpeedLimit(speed)
    return None


def value_of_maxspeed(value: object) -> str | None:
    """Return the value of an attribute `maxspeed`, which may be a list or a number."""
    if isinstance(value, list | tuple | set):
        texts = sorted(text for one in value if (text := value_of_maxspeed(one)))
        return ";".join(texts) or None
    if isinstance(value, float | int) and not isinstance(value, bool):
        return f"{value:g}" if value == value else None  # not a number: absent
    return value if isinstance(value, str) else None


def merged_limit(pieces: Iterable[tuple[float, SpeedLimit | None]]) -> SpeedLimit | None:
    """Return the limit of consecutive pieces, of a length each, that takes as long."""
    pieces = list(pieces)
    limits = {limit for _, limit in pieces}
    if len(limits) == 1:
        return limits.pop()
    total = sum(metres for metres, _ in pieces)
    limited = [(metres * limit.share, limit.speed) for metres, limit in pieces if limit]
    metres = sum(part for part, _ in limited)
    time = sum(part / speed for part, speed in limited)
    if time <= 0:  # pieces without a length: any limit takes no time
        return None
    return SpeedLimit(metres / time, min(1.0, metres / total))


class Measures(NamedTuple):
    """Length and times of a street or a part of one, in whole metres and seconds."""

    metres: int
    there: int  # seconds of driving from tail to head
    back: int  # seconds of driving from head to tail
    serving: int  # seconds of serving in either direction

    def reversed(self) -> Measures:
        """Return those of the same street from head to tail."""
        return self._replace(there=self.back, back=self.there)

    def of_link(self, cost: Cost, *, one_way: bool, required: bool) -> dict[str, Any]:
        """Return the fields of a link: costs, at least 1, and metres and seconds."""
        fields = {
            "metres": self.metres,
            "seconds": self.there,
            "reverse_seconds": None if one_way else self.back,
            "service_seconds": self.serving if required else None,
        }
        if cost == "length":
            return {"cost": max(1, self.metres), **fields}
        return {
            "cost": max(1, self.there),
            "reverse_cost": None if one_way else max(1, self.back),
            "service_cost": max(1, self.serving) if required else None,
            "reverse_service_cost": None,
            **fields,
        }


def measures_of(street: Street, rules: SceneRules) -> Measures:
    """Return the length of a street and its times by the rules, each at least 1."""
    unknown = rules.speeds[UNKNOWN_KIND]
    class_speed = rules.speeds.get(street.kind.casefold(), unknown)
    there = _driving_seconds(street.metres, street.limit, class_speed)
    back = _driving_seconds(street.metres, street.reverse_limit, class_speed)
    # Nobody works faster than he may drive.
    slowest = there if street.one_way else max(there, back)
    serving = max(slowest, 3.6 * street.metres / rules.service_speed) + rules.service_time
    return Measures(*(max(1, round(x)) for x in (street.metres, there, back, serving)))


def driving_speeds(street: Street, rules: SceneRules) -> tuple[float, float]:
    """Return the mean speeds from tail to head and back by the rules, in km/h."""
    class_speed = rules.speeds.get(street.kind.casefold(), rules.speeds[UNKNOWN_KIND])
    there = 3600 / _driving_seconds(1000.0, street.limit, class_speed)
    back = 3600 / _driving_seconds(1000.0, street.reverse_limit, class_speed)
    return round(there, 1), round(back, 1)


def _driving_seconds(metres: float, limit: SpeedLimit | None, class_speed: float) -> float:
    if limit is None:
        return 3.6 * metres / class_speed
    hours_per_km = limit.share / limit.speed + (1 - limit.share) / class_speed
    return 3.6 * metres * hours_per_km


def checked_speeds(speeds: Mapping[str, float]) -> dict[str, float]:
    """Return the speed of every class: those given, else the usual; refuse nonsense."""
    given: dict[str, float] = {}
    for kind, speed in dict(speeds).items():
        if not isinstance(kind, str):
            raise OptionError(f"expected speeds by class of street, got {kind!r} as class")
        name = f"the speed of {kind} in km/h"
        check_number(name, speed, LEAST_SPEED, MOST_SPEED)
        given[kind.casefold()] = float(speed)
    return CLASS_SPEEDS | given


def check_known_kinds(speeds: Mapping[str, float], streets: Iterable[Street]) -> None:
    """Raise MapError where a speed is given for a class that is none."""
    unusual = set(speeds) - set(CLASS_SPEEDS)
    if not unusual:
        return
    known = {street.kind.casefold() for street in streets} - {""}
    for kind in sorted(unusual - known):
        classes = sorted(known | set(CLASS_SPEEDS))
        raise MapError(
            f"expected speeds for classes of street, got one for {kind!r}: "
            f"{name_hint(kind, classes)}"
        )
