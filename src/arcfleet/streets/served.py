"""Which streets of a scene are to be served."""

from __future__ import annotations

import difflib
from collections import Counter
from typing import TYPE_CHECKING

from arcfleet.errors import MapError
from arcfleet.streets.scene_rules import UNKNOWN_KIND

if TYPE_CHECKING:
    from collections.abc import Iterable

    from arcfleet.streets.scene_rules import SceneRules
    from arcfleet.streets.street_map import Street, StreetMap

_MOST_SUGGESTED = 12


def served_streets(street_map: StreetMap, rules: SceneRules) -> list[bool]:
    """Tell for each street whether it is served.

    Raises
    ------
    MapError
        If a kind or name asked for does not occur, with those that do.
    """
    if not rules.serve_kinds and not rules.serve_names:
        return [True] * len(street_map.streets)
    where = f"in the scene from map {street_map.name!r}"
    kinds = _found("kind", rules.serve_kinds, map(_kind, street_map.streets), where)
    names = _found("name", rules.serve_names, (s.name for s in street_map.streets), where)
    return [
        _kind(street).casefold() in kinds or street.name.casefold() in names
        for street in street_map.streets
    ]


def _kind(street: Street) -> str:
    return street.kind or UNKNOWN_KIND


def _found(what: str, asked: Iterable[str], present: Iterable[str], where: str) -> set[str]:
    """Give what was asked for, folded, once it is certain that all of it occurs."""
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
