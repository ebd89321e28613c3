"""Turn rules of the pieces of a data set, drawn at random.

Half of the pieces have the rules that scenes have by default: U-turns at dead ends only. A
quarter has forbidden turns, too. In the last quarter turns have penalties by their angle,
some are forbidden in half of these, and U-turns have a penalty or are left to dead ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from arcfleet.instance.geodesy import BACK_DEGREES, STRAIGHT_DEGREES
from arcfleet.instance.instance import U_TURNS, Turn
from arcfleet.instance.turns import reach

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from arcfleet.instance.instance import UTurns

_ALLOWED, _DEAD_ENDS = U_TURNS.index("allowed"), U_TURNS.index("dead-ends")
#: Turns have rules of their own at junctions of so many streets.
_LEAST_STREETS = 3
#: Least and largest share of turns that are forbidden, where some are.
_FORBIDDEN = (0.01, 0.1)
#: Largest penalty of a turn across the traffic, in mean costs of a street. The others have
#: up to so much of it: those the other way, those straight on, and U-turns.
_MOST_PENALTY = 1.0
_OTHERS = (0.6, 0.3, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceTurns:
    """The turn rules of a piece; an edge is twice a link, plus one from head to tail."""

    u_turns: int = _ALLOWED  # position in `U_TURNS`
    u_turn_penalty: int = 0
    # Edges before and after each turn that has a rule, and one more than its penalty; 0
    # means that it is forbidden.
    turn_in: NDArray[np.integer]
    turn_out: NDArray[np.integer]
    turn_price: NDArray[np.integer]

    @property
    def policy(self) -> UTurns:
        """Where U-turns are allowed."""
        return U_TURNS[self.u_turns]

    def turns(self) -> tuple[Turn, ...]:
        """Return the turns that have a rule, as those of an Instance."""
        columns = (self.turn_in, self.turn_out, self.turn_price)
        return tuple(
            Turn(
                link_in=into // 2,
                reverse_in=bool(into % 2),
                link_out=out // 2,
                reverse_out=bool(out % 2),
                penalty=price - 1 if price else None,
            )
            for into, out, price in zip(*(x.tolist() for x in columns), strict=True)
        )


class Streets(NamedTuple):
    """The streets of a piece."""

    longitude: NDArray[np.float32]
    latitude: NDArray[np.float32]
    tail: NDArray[np.int32]
    head: NDArray[np.int32]
    cost: NDArray[np.int32]
    one_way: NDArray[np.bool_]


class Turns(NamedTuple):
    """All turns between the edges of a piece."""

    into: NDArray[np.int64]
    out: NDArray[np.int64]
    at: NDArray[np.int32]  # node of each
    back: NDArray[np.bool_]  # whether it is a U-turn


def draw_rules(
    generator: np.random.Generator, streets: Streets
) -> tuple[PieceTurns, set[int]]:
    """Draw the rules of a piece.

    Returns
    -------
    rules
        The rules.
    edges
        Edges that can be driven one after the other in any order by these rules, with those
        that leave the first node; all others are better not served.
    """
    turns = all_turns(streets)
    kind = generator.random()
    forbids, has_penalties = kind >= 0.5, kind >= 0.75
    if has_penalties:
        forbids = generator.random() < 0.5
    price = np.ones(len(turns.into), dtype=np.int64)
    u_turns, u_turn_penalty = _DEAD_ENDS, 0
    streets_at = np.bincount(
        np.concatenate([streets.tail, streets.head]), minlength=len(streets.longitude)
    )
    ruled = (streets_at[turns.at] >= _LEAST_STREETS) & ~turns.back
    if has_penalties:
        across, other, straight, back = _draw_penalties(generator, streets)
        angle = turn_angles(streets, turns)
        if generator.random() < 0.5:  # traffic keeps to the left
            angle = -angle
        prices = np.where(angle > 0, other, across)
        prices[np.abs(angle) > BACK_DEGREES] = across
        prices[np.abs(angle) <= STRAIGHT_DEGREES] = straight
        price[ruled] += prices[ruled]
        if generator.random() < 0.5:
            u_turns, u_turn_penalty = _ALLOWED, back
    if forbids:
        share = generator.uniform(*_FORBIDDEN)
        price[ruled & (generator.random(len(price)) < share)] = 0
    named = price != 1
    rules = PieceTurns(
        u_turns=u_turns,
        u_turn_penalty=u_turn_penalty,
        turn_in=turns.into[named].astype(np.int32),
        turn_out=turns.out[named].astype(np.int32),
        turn_price=price[named].astype(np.int32),
    )
    open_turns = price > 0
    if u_turns == _DEAD_ENDS:
        open_turns &= ~turns.back | (streets_at[turns.at] == 1)
    return rules, _connected_edges(streets, turns, open_turns)


def _draw_penalties(
    generator: np.random.Generator, streets: Streets
) -> tuple[int, int, int, int]:
    """Draw penalties: across the traffic, the other way, straight on, of U-turns."""
    across = float(streets.cost.mean()) * generator.uniform(0.05, _MOST_PENALTY)
    shares = (1.0, *(generator.uniform(0.0, most) for most in _OTHERS))
    first, second, third, last = (max(0, round(across * share)) for share in shares)
    return first, second, third, last


def _edges(
    streets: Streets,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Return the edges that may be driven, and the nodes where each begins and ends."""
    links = np.arange(len(streets.tail))
    back = links[~streets.one_way]
    edges = np.concatenate([2 * links, 2 * back + 1])
    first = np.concatenate([streets.tail, streets.head[back]])
    last = np.concatenate([streets.head, streets.tail[back]])
    return edges, first, last


def all_turns(streets: Streets) -> Turns:
    """Return every turn from an edge to one that leaves where it ends."""
    edges, first, last = _edges(streets)
    order = np.argsort(first, kind="stable")
    leaving = np.bincount(first, minlength=len(streets.longitude))
    starts = np.cumsum(leaving) - leaving
    counts = leaving[last]  # turns after each edge
    into = np.repeat(np.arange(len(edges)), counts)
    place = np.arange(len(into)) - np.repeat(np.cumsum(counts) - counts, counts)
    out = order[starts[last[into]] + place]
    before, after = edges[into], edges[out]
    return Turns(before, after, last[into], (before ^ 1) == after)


def turn_angles(streets: Streets, turns: Turns) -> NDArray[np.float64]:
    """Return the angle of each turn, positive to the right."""
    longitude = streets.longitude.astype(np.float64)
    latitude = streets.latitude.astype(np.float64)
    shrunk = np.cos(np.radians(latitude.mean()))
    east = (longitude[streets.head] - longitude[streets.tail]) * shrunk
    north = latitude[streets.head] - latitude[streets.tail]
    bearing = np.degrees(np.arctan2(east, north))

    def along(edges: NDArray[np.int64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = bearing[edges // 2] + 180 * (edges % 2)
        return found

    found: NDArray[np.float64] = (along(turns.out) - along(turns.into) + 180) % 360 - 180
    return found


def _connected_edges(
    streets: Streets, turns: Turns, open_turns: NDArray[np.bool_]
) -> set[int]:
    onward: dict[int, list[int]] = {}
    backward: dict[int, list[int]] = {}
    pairs = (turns.into[open_turns].tolist(), turns.out[open_turns].tolist())
    for before, after in zip(*pairs, strict=True):
        onward.setdefault(before, []).append(after)
        backward.setdefault(after, []).append(before)
    edges, first, _ = _edges(streets)
    leaving: list[int] = edges[first == 0][:1].tolist()
    reached, returning = reach(leaving, onward), reach(leaving, backward)
    return reached & returning
