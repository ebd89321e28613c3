"""Routes in words: which way to turn, into which street, how far, and whether to work.

A line of directions covers several links where the vehicle keeps to one street. The rule
for that is the one a driver follows: at a junction take the street of the same name that
leads straight on. Where a path does not follow it, a new line says where to turn. So the
lines of a route, followed one by one, give its path exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from arcfleet._checks import one_line
from arcfleet.instance.geodesy import (
    STRAIGHT_DEGREES,
    bearing,
    line_lengths,
    turn_angle,
)
from arcfleet.instance.turns import TurnCosts
from arcfleet.solution.drive import check_located, driven_points, route_legs, with_all_paths
from arcfleet.solution.travel import step_seconds, visit_seconds, visit_stops
from arcfleet.solution.words import depot_name, facility_name, street_name, trip_loads

if TYPE_CHECKING:
    from arcfleet.instance.instance import Coordinate, Instance
    from arcfleet.instance.turns import Direction
    from arcfleet.solution.drive import Leg
    from arcfleet.solution.solution import Route, Solution

#: What the driver does: serve the street, drive along it, empty or refill, return.
Action = Literal["serve", "drive", "visit", "return"]

#: A turn by more degrees is a sharp one.
SHARP_DEGREES = 135.0
_COMPASS = (
    *("north", "north-east", "east", "south-east"),
    *("south", "south-west", "west", "north-west"),
)
_ORDINALS = ("first", "second", "third")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One line of directions.

    Parameters
    ----------
    action
        Whether the street is served or driven along, or a facility is visited, or the
        route ends.
    turn
        Way to turn first: "straight on", "left", "right", "sharp left", "sharp right" or
        "turn round"; at a depot or facility a point of the compass, as in "north-east".
    choice
        Where several streets of that name lie that way: which of how many, counted from
        the left, or clockwise from north; None where the name tells.
    dead_end
        Whether the vehicle turns round where no other street leads on.
    street
        Name of the street, or of the place where the vehicle stops.
    metres
        Length of the line.
    seconds
        Time of the line, turns included; None if unknown.
    load
        Load after the line; of a visit, what is emptied.
    total_metres, total_seconds
        Length and time since the depot, after the line.
    first, last
        Numbers of the steps of the path before and after the line.
    place
        Longitude and latitude where the line starts.
    """

    action: Action
    turn: str
    choice: tuple[int, int] | None = None
    dead_end: bool = False
    street: str
    metres: int
    seconds: int | None
    load: int
    total_metres: int
    total_seconds: int | None
    first: int
    last: int
    place: Coordinate

    @property
    def manoeuvre(self) -> str:
        """What to do at the start of the line, as in `Left, the second of 2`."""
        if self.action == "visit":
            return "Empty or refill"
        if self.action == "return":
            return "End of the route"
        text = self.turn.capitalize()
        if self.turn in _COMPASS:
            text = f"Leave to the {self.turn}"
        if self.dead_end:
            text += " at the dead end"
        if self.choice is not None:
            which, count = self.choice
            ordinal = _ORDINALS[which - 1] if which <= len(_ORDINALS) else f"no. {which}"
            side = "clockwise" if self.turn in _COMPASS else "from the left"
            text += f", the {ordinal} of {count} {side}"
        return text

    def __str__(self) -> str:
        """Return the line as a sentence."""
        if self.action in ("visit", "return"):
            return f"{self.manoeuvre}: {self.street}"
        verb = "work" if self.action == "serve" else "drive"
        return f"{self.manoeuvre}: {self.street}, {verb} {self.metres} m"


def directions(instance: Instance, solution: Solution) -> list[list[Instruction]]:
    """Return the directions of every route, from its depot to its depot.

    Parameters
    ----------
    instance
        The streets; they need coordinates.
    solution
        The plan; street paths are worked out where it has none.

    Returns
    -------
    list of list of Instruction
        One list per route.

    Raises
    ------
    OptionError
        If the instance has no coordinates.
    SolutionError
        If the plan cannot be driven along the streets of the instance.
    """
    check_located(instance)
    solution = with_all_paths(instance, solution)
    junctions = _Junctions(instance)
    return [
        _Describer(instance, route, legs, junctions).lines()
        for route, legs in zip(solution.routes, route_legs(instance, solution), strict=True)
    ]


class _Junctions:
    """What a driver sees at junctions: the streets to drive on to, and their angles."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.turns = TurnCosts(instance)
        self.names = [one_line(street_name(link)) for link in instance.links]
        self._places = dict(zip(instance.nodes, instance.coordinates, strict=True))
        self._bearings: dict[Direction, float] = {}

    def place(self, node: int) -> Coordinate:
        return self._places[node]

    def ahead(self, along: Direction) -> float:
        """Return the bearing in which a link starts, driven in a direction."""
        if along not in self._bearings:
            points = driven_points(self.instance, self._places, *along)
            self._bearings[along] = bearing(points)
        return self._bearings[along]

    def angle(self, along: Direction, onto: Direction) -> float:
        return turn_angle(self.ahead((along[0], not along[1])), self.ahead(onto))

    def exits(self, along: Direction, taken: Direction) -> list[Direction]:
        """Return where the turn rules let a vehicle drive on to, and where it does."""
        found = [onto for onto, _ in self.turns.onward(along)]
        return found if taken in found else [*found, taken]

    def turn(self, along: Direction, onto: Direction) -> str:
        """Return the word for a turn."""
        if _is_back(along, onto):
            return "turn round"
        angle = self.angle(along, onto)
        if abs(angle) <= STRAIGHT_DEGREES:
            return "straight on"
        side = "right" if angle > 0 else "left"
        return f"sharp {side}" if abs(angle) > SHARP_DEGREES else side

    def choice(self, along: Direction, onto: Direction) -> tuple[int, int] | None:
        """Return which of the exits of one name and turn is meant, from the left."""
        name, turn = self.names[onto[0]], self.turn(along, onto)
        alike = [
            (self.angle(along, other), other)
            for other in self.exits(along, onto)
            if self.names[other[0]] == name and self.turn(along, other) == turn
        ]
        return _position(alike, onto)

    def compass(self, onto: Direction) -> str:
        return _COMPASS[round(self.ahead(onto) / 45) % 8]

    def first_choice(self, node: int, onto: Direction) -> tuple[int, int] | None:
        """Return which street is meant where a vehicle leaves a depot or facility."""
        name, point = self.names[onto[0]], self.compass(onto)
        alike = [
            (self.ahead(other), other)
            for other in self.turns.leaving(node)
            if self.names[other[0]] == name and self.compass(other) == point
        ]
        return _position(alike, onto)

    def is_dead_end(self, along: Direction) -> bool:
        end = self.instance.links[along[0]].ends(along[1])[1]
        return all(link == along[0] for link, _ in self.turns.leaving(end))

    def keeps_to_street(self, along: Direction, onto: Direction) -> bool:
        """Return whether a driver who keeps to the street takes this turn unasked."""
        name = self.names[along[0]]
        exits = [x for x in self.exits(along, onto) if not _is_back(along, x)]
        same = [
            (abs(self.angle(along, other)), other)
            for other in exits
            if self.names[other[0]] == name
        ]
        if not same or min(same)[1] != onto:
            return False
        return len(exits) == 1 or min(same)[0] <= STRAIGHT_DEGREES


class _Describer:
    """The directions of one route."""

    def __init__(
        self, instance: Instance, route: Route, legs: list[Leg], junctions: _Junctions
    ) -> None:
        self.instance, self.route, self.legs = instance, route, legs
        self.junctions = junctions
        self.times = step_seconds(instance, route.path, junctions.turns, visit_stops(route))
        self.node = instance.fleet[route.vehicle].start
        self.along: Direction | None = None
        self.load = self.total_metres = 0
        self.total_seconds: int | None = None if self.times is None else 0

    @cached_property
    def metres(self) -> list[int]:
        """Length of each step: that of the link, else of its line; at least a metre."""
        drawn = line_lengths([leg.points for leg in self.legs])
        known = [self.instance.links[leg.step.link].metres for leg in self.legs]
        return [
            max(1, round(length) if metres is None else metres)
            for length, metres in zip(drawn, known, strict=True)
        ]

    def lines(self) -> list[Instruction]:
        found = []
        visits = list(zip(self.route.visits, self._visit_facts(), strict=True))
        position = 0
        while True:
            while visits and visits[0][0].steps == position:
                visit, (load, seconds) = visits.pop(0)
                name = facility_name(self.instance, visit.facility)
                found.append(self._stop("visit", name, position, load, seconds))
                self.load, self.along = 0, None
            if position == len(self.legs):
                break
            end = self._end_of_line(position, visits[0][0].steps if visits else None)
            found.append(self._drive(position, end))
            position = end
        end_node = self.instance.fleet[self.route.vehicle].end
        name = depot_name(self.instance, self.node if end_node is None else end_node)
        found.append(self._stop("return", name, position, self.load, 0))
        return found

    def _visit_facts(self) -> list[tuple[int, int]]:
        loads = trip_loads(self.instance, self.route)
        return list(zip(loads, visit_seconds(self.instance, self.route), strict=False))

    def _end_of_line(self, first: int, visit: int | None) -> int:
        path = self.route.path
        end = first + 1
        while end < len(path) and end != visit:
            before, after = path[end - 1], path[end]
            along, onto = (before.link, before.reverse), (after.link, after.reverse)
            if before.serves != after.serves:
                break
            if not self.junctions.keeps_to_street(along, onto):
                break
            end += 1
        return end

    def _drive(self, first: int, end: int) -> Instruction:
        steps = self.route.path[first:end]
        onto = steps[0].link, steps[0].reverse
        dead_end = False
        if self.along is None:
            turn = self.junctions.compass(onto)
            choice = self.junctions.first_choice(self.node, onto)
        else:
            turn = self.junctions.turn(self.along, onto)
            choice = self.junctions.choice(self.along, onto)
            dead_end = turn == "turn round" and self.junctions.is_dead_end(self.along)
        links = [self.instance.links[step.link] for step in steps]
        start = self.node
        self.along = steps[-1].link, steps[-1].reverse
        self.node = links[-1].ends(steps[-1].reverse)[1]
        metres = sum(self.metres[first:end])
        seconds = None if self.times is None else sum(self.times[first:end])
        self.load += sum(x.demand for x in links) if steps[0].serves else 0
        self._add(metres, seconds)
        return Instruction(
            action="serve" if steps[0].serves else "drive",
            turn=turn,
            choice=choice,
            dead_end=dead_end,
            street=self.junctions.names[onto[0]],
            metres=metres,
            seconds=seconds,
            load=self.load,
            total_metres=self.total_metres,
            total_seconds=self.total_seconds,
            first=first,
            last=end,
            place=self.junctions.place(start),
        )

    def _stop(
        self, action: Action, name: str, position: int, load: int, seconds: int
    ) -> Instruction:
        self._add(0, seconds)
        return Instruction(
            action=action,
            turn="",
            street=name,
            metres=0,
            seconds=None if self.times is None else seconds,
            load=load,
            total_metres=self.total_metres,
            total_seconds=self.total_seconds,
            first=position,
            last=position,
            place=self.junctions.place(self.node),
        )

    def _add(self, metres: int, seconds: int | None) -> None:
        self.total_metres += metres
        if self.total_seconds is not None and seconds is not None:
            self.total_seconds += seconds


def _is_back(along: Direction, onto: Direction) -> bool:
    return along[0] == onto[0] and along[1] != onto[1]


def _position(
    alike: list[tuple[float, Direction]], taken: Direction
) -> tuple[int, int] | None:
    """Return the place of what is taken among those that look alike; None if alone."""
    if len(alike) < 2:
        return None
    ordered = [other for _, other in sorted(alike)]
    return ordered.index(taken) + 1, len(ordered)
