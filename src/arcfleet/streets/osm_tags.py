"""What OpenStreetMap's tags say about a street: may it be driven, and which way."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from arcfleet.errors import OptionError

#: Values of `highway` that are streets to drive on, from the most important down.
DRIVABLE_KINDS = (
    "motorway",
    "motorway_link",
    "trunk",
    "trunk_link",
    "primary",
    "primary_link",
    "secondary",
    "secondary_link",
    "tertiary",
    "tertiary_link",
    "unclassified",
    "residential",
    "living_street",
    "road",
)

Tags = Mapping[str, str]
#: Which streets to read: the values of `highway` wanted, or a callable on all tags.
StreetRule = Collection[str] | Callable[[Tags], bool]

_RANKS = {kind: rank for rank, kind in enumerate(DRIVABLE_KINDS)}
_FORWARD = frozenset({"yes", "true", "1"})
_BACKWARD = frozenset({"-1", "reverse"})
_BOTH = frozenset({"no", "false", "0"})
#: Names that files give the number of an OpenStreetMap way: some mean only ways, some
#: nodes as well.
WAY_COLUMNS = ("way", "way_id", "osm_way_id")
OSM_COLUMNS = ("osm_id", "osmid", "@id")
_WAY_NUMBER = re.compile(r"(?:way/|w)?(-?[0-9]{1,18})(?:\.0*)?", re.IGNORECASE)
#: Who may use a street, the most specific first: the first that is there holds.
_ACCESS_KEYS = ("motor_vehicle", "vehicle", "access")
_CLOSED = frozenset({"no", "private"})
_ROUNDABOUTS = frozenset({"roundabout", "circular"})
_ONE_WAY_KINDS = frozenset({"motorway", "motorway_link"})


def is_wanted(tags: Tags, rule: StreetRule) -> bool:
    """Return whether a line with these tags is a street by the rule.

    Areas never are. A collection of kinds leaves out what is closed to motor vehicles; a
    callable decides that itself.
    """
    if tags.get("area") == "yes":
        return False
    if callable(rule):
        return bool(rule(tags))
    access = next((tags[key] for key in _ACCESS_KEYS if key in tags), "yes")
    return tags.get("highway", "") in rule and access not in _CLOSED


def check_rule(rule: StreetRule) -> None:
    """Raise OptionError for a rule that can only be a mistake."""
    if isinstance(rule, str):
        # "road" in "some road" would quietly be true.
        raise OptionError(
            "expected a collection of highway values or a callable, "
            f"got the text {rule!r}; write {{{rule!r}}}"
        )
    if not callable(rule) and not rule:
        raise OptionError("expected at least one highway value to read, got none")


def driving_direction(tags: Tags) -> int:
    """Return 1 for one-way along the line, -1 for one-way against it, 0 for both ways.

    What `oneway` says holds; where it is silent, roundabouts and motorways are one-way.
    Streets whose direction changes with the hour (reversible, alternating) count as both.
    """
    oneway = tags.get("oneway", "").lower()
    if oneway in _FORWARD:
        return 1
    if oneway in _BACKWARD:
        return -1
    if oneway in _BOTH:
        return 0
    implied = tags.get("junction") in _ROUNDABOUTS or tags.get("highway") in _ONE_WAY_KINDS
    return 1 if implied and not oneway else 0


def main_kind(value: object) -> str:
    """Return the most important of the values of `highway`; "" where there is none."""
    kinds = _texts(value)
    return min(kinds, key=lambda kind: (_RANKS.get(kind, len(_RANKS)), kind), default="")


def way_number(value: object) -> int | None:
    """Return the number of a way, written as 123 or `way/123`; None if it is none."""
    found = _WAY_NUMBER.fullmatch(str(value).strip())
    return None if found is None else int(found[1])


def joined_names(value: object) -> str:
    """Return all values of `name` in one text."""
    return "; ".join(_texts(value))


def _texts(value: object) -> list[str]:
    """Return the values of a tag that is one text, several or absent."""
    values = value if isinstance(value, list | tuple | set) else [value]
    # Sorted, for OSMnx lists them in no fixed order.
    return sorted({text for text in values if isinstance(text, str)})
