"""Which streets of a scene are served, and with what demand: by rules and own data."""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from arcfleet.errors import MapError
from arcfleet.instance.change import fold_name
from arcfleet.streets.joins import FAR_APART, OUTSIDE, JoinedTable, join_table
from arcfleet.streets.speeds import UNKNOWN_KIND
from arcfleet.streets.tables import Table, read_table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from arcfleet.streets.joins import Role
    from arcfleet.streets.scene import SceneRules
    from arcfleet.streets.street_map import Street, StreetMap

#: "length": metres, rounded; a number: the same for every street; two numbers: drawn
#: from the first to the second, both included.
Demand = Literal["length"] | int | tuple[int, int]
#: In `serve_kinds`: every kind, and every kind but `DRIVEN_KINDS`.
ALL_KINDS, DEFAULT_KINDS = "all", "default"
#: Streets of these kinds are driven on, and served only where they are asked for.
DRIVEN_KINDS = frozenset({"motorway", "motorway_link", "trunk", "trunk_link"})
#: The rules that are tables of own data.
TABLES = ("demand_file", "serve_file", "exclude_file")
_MOST_SUGGESTED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The streets that are served, by their positions in the map."""

    asked: Sequence[bool]  # whether a street is to be served
    demands: Sequence[int]  # demand of every street, if it is served
    joined: Mapping[int, int]  # the demands among them that come from the demand file
    # Whether it would be served if it had a row in the demand file.
    without_row: Sequence[bool]
    excluded: Sequence[bool]  # whether it would be served if it were not excluded
    joins: tuple[JoinedTable, ...]


def choose_streets(
    street_map: StreetMap,
    inside: Sequence[bool],
    rules: SceneRules,
    where: str,
    unreachable: Mapping[int, str] | None = None,
) -> Choice:
    """Return which streets are served, and with what demand.

    Parameters
    ----------
    street_map
        The streets.
    inside
        Whether each street is in the area.
    rules
        Rules of the scene.
    where
        Name of the area, for messages.
    unreachable
        Why streets cannot be served, by their positions, as far as that is known; rows of
        the demand file that are on these alone are unmatched.

    Raises
    ------
    MapError
        If a kind or a name is that of no street, or nothing is left to serve.
    FileError
        If a file of own data cannot be joined.
    """
    joins: list[JoinedTable] = []
    excluded = _excluded(street_map, inside, rules, where, joins)
    asked, anywhere = _asked(street_map, inside, rules, where, joins)
    joined: dict[int, int] = {}
    without_row = [False] * len(asked)
    if rules.demand_file is not None:
        chosen = rules.serve_streets is not None or bool(
            rules.serve_kinds or rules.serve_names or rules.serve_file
        )
        barred = [
            "excluded" if gone else (_unasked(street) if chosen and not held else "")
            for street, gone, held in zip(
                street_map.streets, excluded, anywhere, strict=True
            )
        ]
        for position, held in enumerate(inside):
            barred[position] = barred[position] or ("" if held else OUTSIDE)
        for position, why in (unreachable or {}).items():
            barred[position] = barred[position] or f"its street cannot be served: {why}"
        joins.append(_join(street_map, rules, "demand", barred, anywhere))
        joined = dict(joins[-1].demands)
        if rules.demand is None:
            without_row = [
                held and not gone and position not in joined
                for position, (held, gone) in enumerate(zip(asked, excluded, strict=True))
            ]
            asked = [position in joined for position in range(len(asked))]
        else:
            asked = [held or position in joined for position, held in enumerate(asked)]
    excluded = [held and gone for held, gone in zip(asked, excluded, strict=True)]
    asked = [held and not gone for held, gone in zip(asked, excluded, strict=True)]
    if not any(asked):
        raise MapError(
            f"expected a street to serve {where}, found none but excluded ones: exclude "
            "fewer streets"
        )
    demands = _demands(street_map, inside, rules)
    for position, demand in joined.items():
        demands[position] = demand
    return Choice(
        asked=asked,
        demands=demands,
        joined=joined,
        without_row=without_row,
        excluded=excluded,
        joins=tuple(joins),
    )


def join_warnings(tables: Iterable[JoinedTable]) -> Iterator[str]:
    """Yield a sentence on rows that found no street, and on names of several streets."""
    for table in tables:
        if table.unmatched:
            yield (
                f"{len(table.unmatched)} of {table.rows} rows of {table.file} found no "
                f"street to serve, as {table.unmatched[0]}"
            )
        if table.scattered:
            more = len(table.scattered)
            yield (
                f"{more} {'name' if more == 1 else 'names'} of {table.file}, as "
                f"{table.scattered[0]!r}, {'is' if more == 1 else 'are'} on streets more "
                f"than {FAR_APART / 1000:g} km apart, which share the demand: give an area"
            )


def demand_words(rules: SceneRules) -> str:
    """Return what the demand of a street is, for messages."""
    words = []
    if rules.demand_file is not None:
        source = rules.demand_file
        words.append(f"that of {source.name if isinstance(source, Table) else source}")
    if isinstance(rules.demand, tuple):
        words.append("{} to {} for each street".format(*rules.demand))
    elif rules.demand == "length" or not words:
        words.append("metres")
    elif rules.demand is not None:
        words.append(f"{rules.demand} for each street")
    return ", else ".join(words)


def with_tables(rules: SceneRules) -> SceneRules:
    """Return the rules with the files of own data read."""
    files = {name: getattr(rules, name) for name in TABLES}
    tables: dict[str, Any] = {
        name: read_table(source)
        for name, source in files.items()
        if isinstance(source, Path | str)
    }
    return replace(rules, **tables) if tables else rules


def kind_of(street: Street) -> str:
    """Return the kind of a street, or the word for none."""
    return street.kind or UNKNOWN_KIND


def _unasked(street: Street) -> str:
    return f"not among the streets to serve ({kind_of(street)})"


def _join(
    street_map: StreetMap,
    rules: SceneRules,
    role: Role,
    barred: Sequence[str],
    anywhere: Sequence[bool],
) -> JoinedTable:
    """Join a table; places do not see the motorways that are not asked for anywhere."""
    is_demand = role == "demand"
    return join_table(
        getattr(rules, f"{role}_file"),
        street_map,
        role=role,
        barred=barred,
        seen=[
            asked or fold_name(kind_of(street)) not in DRIVEN_KINDS
            for street, asked in zip(street_map.streets, anywhere, strict=True)
        ],
        join=rules.demand_join if is_demand else None,
        column=rules.demand_column if is_demand else None,
        snap=rules.snap,
    )


def _excluded(
    street_map: StreetMap,
    inside: Sequence[bool],
    rules: SceneRules,
    where: str,
    joins: list[JoinedTable],
) -> list[bool]:
    """Return for each street whether it is excluded; refuse kinds and names of none."""
    streets = street_map.streets
    present = [street for street, held in zip(streets, inside, strict=True) if held]
    kinds = _found("kind", rules.exclude_kinds, map(kind_of, present), where)
    names = _found("name", rules.exclude_names, (s.name for s in present), where)
    rows: Mapping[int, int] = {}
    positions = _positions("exclude_streets", rules.exclude_streets, street_map)
    if not (kinds or names or positions or rules.exclude_file is not None):
        return [False] * len(streets)
    if rules.exclude_file is not None:
        free, unasked = [""] * len(streets), [False] * len(streets)
        joins.append(_join(street_map, rules, "exclude", free, unasked))
        rows = joins[-1].demands
    return _fitting(streets, kinds, names, positions.union(rows))


def _asked(
    street_map: StreetMap,
    inside: Sequence[bool],
    rules: SceneRules,
    where: str,
    joins: list[JoinedTable],
) -> tuple[list[bool], list[bool]]:
    """Return which streets the rules ask to serve, in the area and anywhere.

    Refuse kinds and names of no street.
    """
    streets = street_map.streets
    present = [street for street, held in zip(streets, inside, strict=True) if held]
    usual, default = (
        {fold_name(kind) for kind in {kind_of(street) for street in some}} - DRIVEN_KINDS
        for some in (streets, present)
    )
    rows: Mapping[int, int] = {}
    if rules.serve_file is not None:
        barred = ["" if held else OUTSIDE for held in inside]
        joins.append(_join(street_map, rules, "serve", barred, [False] * len(streets)))
        rows = joins[-1].demands
    names = set[str]()
    if rules.serve_streets is not None:
        positions = _positions("serve_streets", rules.serve_streets, street_map)
        anywhere = _fitting(streets, (), (), positions)
        return [held and x for held, x in zip(inside, anywhere, strict=True)], anywhere
    if not (rules.serve_kinds or rules.serve_names or rows):
        kinds = usual
        if not default and rules.demand_file is None:
            raise MapError(
                f"expected streets to serve {where}, found only motorways, trunk roads and "
                f"their ramps: serve kinds {ALL_KINDS!r} to serve these"
            )
    else:
        groups = {ALL_KINDS: usual | DRIVEN_KINDS, DEFAULT_KINDS: usual}
        single = [kind for kind in rules.serve_kinds if kind.casefold() not in groups]
        kinds = _found("kind", single, map(kind_of, present), where)
        kinds |= {
            one for kind in rules.serve_kinds for one in groups.get(kind.casefold(), ())
        }
        names = _found("name", rules.serve_names, (s.name for s in present), where)
    anywhere = _fitting(streets, kinds, names, rows)
    asked = [held and one for held, one in zip(inside, anywhere, strict=True)]
    return asked, anywhere


def _positions(rule: str, positions: Iterable[int], street_map: StreetMap) -> set[int]:
    """Return positions of streets as a set; raise MapError where there is no street."""
    last = len(street_map.streets) - 1
    for position in positions:
        if not 0 <= position <= last:
            raise MapError(
                f"expected {rule} from 0 to {last}, the streets of map "
                f"{street_map.name!r}, got {position}"
            )
    return set(positions)


def _fitting(
    streets: Sequence[Street],
    kinds: Collection[str],
    names: Collection[str],
    rows: Collection[int],
) -> list[bool]:
    """Return for each street whether its kind, its name or its position is among these."""
    folded = {kind: fold_name(kind) for kind in {kind_of(street) for street in streets}}
    return [
        folded[kind_of(street)] in kinds
        or position in rows
        or (bool(names) and fold_name(street.name) in names)
        for position, street in enumerate(streets)
    ]


def _demands(street_map: StreetMap, inside: Sequence[bool], rules: SceneRules) -> list[int]:
    """Return the demand of every street by the rules, if it is served."""
    streets = street_map.streets
    if isinstance(rules.demand, tuple):
        least, most = rules.demand
        # Drawn for every street of the area, so that serving others or driving elsewhere
        # does not change a street's demand.
        numbers = np.random.default_rng(rules.seed).integers(
            least, most, size=sum(inside), endpoint=True
        )
        drawn = iter(numbers.tolist())
        return [next(drawn) if is_inside else 0 for is_inside in inside]
    if isinstance(rules.demand, int):
        return [rules.demand] * len(streets)
    return [max(1, round(street.metres)) for street in streets]


def _found(what: str, asked: Iterable[str], present: Iterable[str], where: str) -> set[str]:
    """Return the texts asked for, folded; raise MapError if one does not occur."""
    counts = Counter(text for text in present if text)
    spelled = {fold_name(text): text for text in counts}
    for text in asked:
        if fold_name(text) not in spelled:
            raise MapError(
                f"expected the {what} of a street {where}, got {text!r}: "
                + _suggestion(what, text, counts, spelled)
            )
    return {fold_name(text) for text in asked}


def _suggestion(what: str, text: str, counts: Counter[str], spelled: dict[str, str]) -> str:
    if not counts:
        return f"no street there has a {what}"
    near = difflib.get_close_matches(fold_name(text), spelled, n=3)
    if near:
        return f"did you mean {' or '.join(repr(spelled[one]) for one in near)}?"
    usual = [one for one, _ in counts.most_common(_MOST_SUGGESTED)]
    more = len(counts) - len(usual)
    return f"there are {', '.join(usual)}" + (f" and {more} more" if more else "")
