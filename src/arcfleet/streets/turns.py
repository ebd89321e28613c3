"""Turn rules of a scene: which links can be driven to and back from under them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from arcfleet.instance.instance import Link, Turn, UTurns

#: A link or street driven in one direction: its position, and whether from head to tail.
Direction = tuple[int, bool]


def servable(
    links: Sequence[Link], turns: Iterable[Turn], u_turns: UTurns, depot: int
) -> set[int]:
    """Return the positions of the links that a route can drive along.

    A route leaves the depot, drives along the link in one of its directions and returns to
    the depot, without a turn that is forbidden. No turn is taken where it leaves the depot
    and where it returns.

    Parameters
    ----------
    links, turns, u_turns, depot
        As in `Instance`.
    """
    leaving: dict[int, list[Direction]] = defaultdict(list)
    directions: list[Direction] = []
    for index, link in enumerate(links):
        for reverse in (False,) if link.one_way else (False, True):
            leaving[link.ends(reverse)[0]].append((index, reverse))
            directions.append((index, reverse))
    named = {
        ((turn.link_in, turn.reverse_in), (turn.link_out, turn.reverse_out)): turn.penalty
        for turn in turns
    }
    onward: dict[Direction, list[Direction]] = {}
    back: dict[Direction, list[Direction]] = {along: [] for along in directions}
    ends_at_depot = []
    for along in directions:
        end = links[along[0]].ends(along[1])[1]
        if end == depot:
            ends_at_depot.append(along)
        round_about = (along[0], not along[1])
        may_turn_round = u_turns == "allowed" or (
            u_turns == "dead-ends" and all(other == along[0] for other, _ in leaving[end])
        )
        onward[along] = []
        for onto in leaving[end]:
            usual = 0 if onto != round_about or may_turn_round else None
            if named.get((along, onto), usual) is not None:
                onward[along].append(onto)
                back[onto].append(along)
    there = _reached(leaving[depot], onward)
    return {index for index, _ in there & _reached(ends_at_depot, back)}


def _reached(
    starts: Iterable[Direction], following: Mapping[Direction, Sequence[Direction]]
) -> set[Direction]:
    """Return all that can be reached from some starts, themselves included."""
    reached = set(starts)
    waiting = list(reached)
    while waiting:
        for onto in following[waiting.pop()]:
            if onto not in reached:
                reached.add(onto)
                waiting.append(onto)
    return reached
