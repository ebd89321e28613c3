"""Turn rules of scenes: what a user asks for, made into turns between links."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from arcfleet._checks import check_whole_number, name_hint
from arcfleet.errors import OptionError
from arcfleet.instance.geodesy import (
    BACK_DEGREES,
    STRAIGHT_DEGREES,
    bearing,
    turn_angle,
)
from arcfleet.instance.instance import MAX_NUMBER, U_TURNS, Turn, UTurns
from arcfleet.streets.street_map import StreetTurn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from arcfleet.instance.instance import Link
    from arcfleet.instance.turns import Direction
    from arcfleet.streets.street_map import StreetMap

#: Side of the street that traffic keeps to.
Traffic = Literal["right", "left"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPolicy:
    """The turn rules of a scene. Penalties are in the unit of all costs.

    Parameters
    ----------
    restrictions
        Whether to obey the turn restrictions of the map.
    u_turns
        Where a vehicle may turn round: "allowed" everywhere, at "dead-ends" only, or
        "forbidden". A junction is a dead end if no other street of the whole map leaves it.
    u_turn_penalty
        Penalty of turning round where that is allowed.
    left, right, straight
        Penalty of turning left or right by more than 45 degrees, and of driving straight
        on, at junctions of at least three streets.
    traffic
        Side of driving, "right" or "left". A turn back onto another street, such as the
        other carriageway, counts as left where traffic keeps to the right, else as right.

    Raises
    ------
    OptionError
        If one of them is not as described.
    """

    restrictions: bool = True
    u_turns: UTurns = "dead-ends"
    u_turn_penalty: int = 0
    left: int = 0
    right: int = 0
    straight: int = 0
    traffic: Traffic = "right"

    def __post_init__(self) -> None:
        """Check every rule."""
        if not isinstance(self.restrictions, bool):
            raise OptionError(
                f"expected restrictions to be True or False, got {self.restrictions!r}"
            )
        for field, choices in (("u_turns", U_TURNS), ("traffic", get_args(Traffic))):
            if getattr(self, field) not in choices:
                raise OptionError(
                    f"expected {field} to be one of {', '.join(map(repr, choices))}, "
                    f"got {getattr(self, field)!r}"
                )
        for field in ("u_turn_penalty", "left", "right", "straight"):
            check_whole_number(field, getattr(self, field), 0, MAX_NUMBER)

    @classmethod
    def parse(cls, text: str) -> TurnPolicy:
        """Return the policy that a text as `osm,u-turn=dead-ends,left=15` describes.

        What it does not name is as by default; after `free`, which comes first, no rule
        holds but those named.
        """
        policy = cls()
        seen: set[str] = set()
        for number, part in enumerate(text.split(",")):
            word = part.strip()
            key, _, value = word.partition("=")
            if key in seen:
                raise OptionError(f"expected every turn rule once, got {key} twice")
            seen.add(key)
            if word == "free" and number == 0:
                policy = FREE_TURNS
            elif word == "osm":
                policy = replace(policy, restrictions=True)
            elif key in _WORDS and value:
                policy = _with(policy, key, value.strip())
            else:
                known = ("free", "osm", *(f"{name}=" for name in _WORDS))
                raise OptionError(
                    "expected turn rules as osm,u-turn=dead-ends,left=15, "
                    f"got {word[:40]!r}: "
                    + (
                        "free comes first"
                        if word == "free"
                        else name_hint(key + ("=" if key in _WORDS else ""), known)
                    )
                )
        return policy

    @property
    def by_angle(self) -> bool:
        """Whether a turn has a penalty because of its angle."""
        return bool(self.left or self.right or self.straight)

    def penalty(self, angle: float) -> int:
        """Return the penalty of a turn by an angle in degrees, positive to the right."""
        if abs(angle) <= STRAIGHT_DEGREES:
            return self.straight
        if abs(angle) > BACK_DEGREES:
            return self.left if self.traffic == "right" else self.right
        return self.right if angle > 0 else self.left


#: No rule at all: the classical problem.
FREE_TURNS = TurnPolicy(restrictions=False, u_turns="allowed")
#: Fields of a policy by their words in texts.
_WORDS = {
    "u-turn": "u_turns",
    "u-turn-penalty": "u_turn_penalty",
    "left": "left",
    "right": "right",
    "straight": "straight",
    "traffic": "traffic",
}


def _with(policy: TurnPolicy, key: str, text: str) -> TurnPolicy:
    """Change one field of a policy, as a text asks."""
    field = _WORDS[key]
    value: Any = text
    if field not in ("u_turns", "traffic"):
        value = int(text) if text.isdecimal() else text
    try:
        return replace(policy, **{field: value})
    except OptionError as error:
        said = str(error).replace(f"expected {field}", f"expected {key}", 1)
        raise OptionError(f"{said} in the turn rules") from error


def scene_turns(
    whole: StreetMap,
    part: StreetMap,
    links: Sequence[Link],
    starts: Sequence[int],
    policy: TurnPolicy,
) -> tuple[Turn, ...]:
    """Return the turns of a scene that are forbidden or have a penalty.

    U-turns are left to the `u_turns` and `u_turn_penalty` of the instance, but for two
    kinds: those from one side of a street to the other where the sides are two links, and
    those at junctions that are dead ends in the scene only, because it lacks some streets.

    Parameters
    ----------
    whole
        The map. It decides what is a dead end and what is a junction.
    part
        The streets of the scene, with the junction numbers of the map.
    links
        Links of the scene, street by street.
    starts
        Position of the first link of each street of `part`.
    policy
        The rules.
    """
    made = _SceneTurns(whole, part, links, starts, policy)
    return tuple(
        Turn(*along, *onto, penalty) for (along, onto), penalty in made.all().items()
    )


class _SceneTurns:
    """The turns of a scene, by the links they come along and leave along."""

    def __init__(
        self,
        whole: StreetMap,
        part: StreetMap,
        links: Sequence[Link],
        starts: Sequence[int],
        policy: TurnPolicy,
    ) -> None:
        self.whole = whole
        self.part = part
        self.links = links
        self.starts = starts
        self.policy = policy
        self.bounds = [*starts, len(links)]
        self.arriving: dict[int, list[Direction]] = defaultdict(list)
        self.leaving: dict[int, list[Direction]] = defaultdict(list)
        for index, street in enumerate(part.streets):
            for reverse in street.directions:
                self.leaving[street.ends(reverse)[0]].append((index, reverse))
                self.arriving[street.ends(reverse)[1]].append((index, reverse))

    def all(self) -> dict[tuple[Direction, Direction], int | None]:
        """Return the penalty of each turn, None where it is forbidden; signs come last."""
        found: dict[tuple[Direction, Direction], int | None] = {}
        if self.policy.by_angle:
            found.update(self._by_angle())
        found.update(self._u_turns())
        if self.policy.restrictions:
            for turn in self.part.turns:
                along = self._last_link(turn.street_in, turn.reverse_in)
                onto = self._first_link(turn.street_out, turn.reverse_out)
                found[along, onto] = None
        return found

    def _by_sides(self, street: int) -> bool:
        """Return whether each side of a street is a link of its own."""
        return (
            self.links[self.starts[street]].one_way
            and not self.part.streets[street].one_way
        )

    def _last_link(self, street: int, reverse: bool) -> Direction:
        """Return the link that a vehicle arrives along that drives along a street."""
        first, last = self.bounds[street], self.bounds[street + 1] - 1
        if self._by_sides(street):  # there and back alternate
            return (first + 1, False) if reverse else (last - 1, False)
        return (first, True) if reverse else (last, False)

    def _first_link(self, street: int, reverse: bool) -> Direction:
        """Return the link that a vehicle leaves along that drives along a street."""
        first, last = self.bounds[street], self.bounds[street + 1] - 1
        if self._by_sides(street):
            return (last, False) if reverse else (first, False)
        return (last, True) if reverse else (first, False)

    def _by_angle(self) -> Iterator[tuple[tuple[Direction, Direction], int]]:
        ends: dict[int, int] = defaultdict(int)  # of streets, at each junction of the map
        for one in self.whole.streets:
            ends[one.tail] += 1
            ends[one.head] += 1
        for junction, arriving in self.arriving.items():
            if ends[junction] < 3:  # a bend, where nobody turns
                continue
            bearings = {
                (street, reverse): self._bearing(street, reverse)
                for street, reverse in self.leaving[junction]
            }
            for street, reverse in arriving:
                # Where the vehicle comes from lies behind it.
                behind = self._bearing(street, not reverse)
                along = self._last_link(street, reverse)
                for onto, ahead in bearings.items():
                    if onto == (street, not reverse):  # a U-turn
                        continue
                    penalty = self.policy.penalty(turn_angle(behind, ahead))
                    if penalty:
                        yield (along, self._first_link(*onto)), penalty

    def _bearing(self, street: int, reverse: bool) -> float:
        points = self.part.points(self.part.streets[street])
        return bearing(points[::-1] if reverse else points)

    def _u_turns(self) -> Iterator[tuple[tuple[Direction, Direction], int | None]]:
        policy = self.policy
        leaving: dict[int, list[int]] = defaultdict(
            list
        )  # streets of the map, one each way
        for index, street in enumerate(self.whole.streets):
            for reverse in street.directions:
                leaving[street.ends(reverse)[0]].append(index)
        for index, street in enumerate(self.part.streets):
            if street.one_way:
                continue
            by_sides = self._by_sides(index)
            if by_sides:
                yield from self._u_turns_within(index)
            for reverse in (False, True):
                end = street.ends(reverse)[1]
                own = 2 if street.tail == street.head else 1
                is_dead_end = len(leaving[end]) <= own
                penalty: int | None = policy.u_turn_penalty
                if policy.u_turns == "forbidden" or (
                    policy.u_turns == "dead-ends" and not is_dead_end
                ):
                    penalty = None
                along = self._last_link(index, reverse)
                onto = self._first_link(index, not reverse)
                if by_sides:
                    if penalty != 0:
                        yield (along, onto), penalty
                elif (
                    policy.u_turns == "dead-ends"
                    and penalty is None
                    and len(self.leaving[end]) <= own  # a dead end of the scene only
                ):
                    yield (along, onto), None

    def _u_turns_within(
        self, street: int
    ) -> Iterator[tuple[tuple[Direction, Direction], int | None]]:
        """Yield those at the junctions where a street is cut that has a link per side."""
        allowed = self.policy.u_turns == "allowed"
        penalty = self.policy.u_turn_penalty if allowed else None
        if penalty == 0:
            return
        first, end = self.bounds[street], self.bounds[street + 1]
        for there in range(first, end - 2, 2):
            back, next_there, next_back = there + 1, there + 2, there + 3
            yield ((there, False), (back, False)), penalty
            yield ((next_back, False), (next_there, False)), penalty


def turns_of_groups(
    street_map: StreetMap, merged_into: Mapping[int, int], kept: set[int]
) -> tuple[StreetTurn, ...]:
    """Return the turns that stay forbidden where groups of junctions become one.

    They are between streets that are kept, by their old positions: those that a sign
    forbids, and those that could be driven over streets within the group but for a sign.

    Parameters
    ----------
    street_map
        The map before.
    merged_into
        For each junction of a group the one that the group becomes.
    kept
        Positions of the streets that are kept.
    """
    found = {t for t in street_map.turns if t.street_in in kept and t.street_out in kept}
    banned = {
        ((t.street_in, t.reverse_in), (t.street_out, t.reverse_out))
        for t in street_map.turns
    }
    concerned = {
        merged_into[street_map.streets[t.street_in].ends(t.reverse_in)[1]]
        for t in street_map.turns
        if not (t.street_in in kept and t.street_out in kept)
    }
    if concerned:
        arriving: dict[int, list[Direction]] = defaultdict(list)
        leaving: dict[int, list[Direction]] = defaultdict(list)
        for index, street in enumerate(street_map.streets):
            for reverse in street.directions:
                start, end = street.ends(reverse)
                if merged_into.get(start) in concerned:
                    leaving[start].append((index, reverse))
                if index in kept and merged_into.get(end) in concerned:
                    arriving[merged_into[end]].append((index, reverse))
        for group in concerned:
            for along in arriving[group]:
                free = _left_along(street_map, along, leaving, kept, set())
                ruled = _left_along(street_map, along, leaving, kept, banned)
                found.update(
                    StreetTurn(*along, *onto)
                    for onto in free - ruled
                    if onto != (along[0], not along[1])
                )
    return tuple(sorted(found))


def _left_along(
    street_map: StreetMap,
    along: Direction,
    leaving: Mapping[int, Sequence[Direction]],
    kept: set[int],
    banned: set[tuple[Direction, Direction]],
) -> set[Direction]:
    """Return the kept streets that a vehicle can leave a group of junctions along."""
    left: set[Direction] = set()
    seen = {along}
    waiting = [along]
    while waiting:
        here = waiting.pop()
        end = street_map.streets[here[0]].ends(here[1])[1]
        for onto in leaving[end]:
            if (here, onto) in banned or onto == (here[0], not here[1]):
                continue
            if onto[0] in kept:
                left.add(onto)
            elif onto not in seen:
                seen.add(onto)
                waiting.append(onto)
    return left
