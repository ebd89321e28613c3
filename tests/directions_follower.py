"""A driver who knows the streets and follows the lines of a sheet, and nothing else.

Shares no code with `arcfleet.solution.directions`: what it takes from there are words.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from arcfleet.instance.geodesy import line_length
from arcfleet.instance.instance import Coordinate, Instance
from arcfleet.instance.turns import TurnCosts

Along = tuple[int, bool]
POINTS = ["north", "north-east", "east", "south-east"]
POINTS += ["south", "south-west", "west", "north-west"]


@dataclass(frozen=True)
class Line:
    """What a line of a sheet says: `Left, the second of 2 from the left`, and so on."""

    manoeuvre: str
    street: str
    serves: bool
    metres: int


class Follower:
    """Follow lines from a node; `path` has the links passed and whether they are served."""

    def __init__(self, instance: Instance, node: int) -> None:
        self.instance = instance
        self.node = node
        self.along: Along | None = None
        self.path: list[tuple[int, bool, bool]] = []
        self._turns = TurnCosts(instance)
        self._places = dict(zip(instance.nodes, instance.coordinates, strict=True))

    def stop(self) -> None:
        """Empty or refill: the vehicle may leave in any direction."""
        self.along = None

    def follow(self, line: Line) -> None:
        left = line.metres - self._take(self._meant(line), line.serves)
        while left > 0:
            left -= self._take(self._straight_on(), line.serves)
        assert left == 0, f"{line}: {-left} m too far"

    def _take(self, onto: Along, serves: bool) -> int:
        link = self.instance.links[onto[0]]
        self.node = link.ends(onto[1])[1]
        self.along = onto
        self.path.append((*onto, serves))
        length = link.metres
        return max(1, round(line_length(self._points(onto))) if length is None else length)

    def _meant(self, line: Line) -> Along:
        """The only street that a line can mean."""
        words, _, rest = line.manoeuvre.partition(", the ")
        words = words.removesuffix(" at the dead end")
        found = []
        for onto in self._exits():
            if self._name(onto) != line.street:
                continue
            if self.along is None:
                point = POINTS[round(self._bearing(onto) / 45) % 8]
                fits = words == f"Leave to the {point}"
                found += [(self._bearing(onto), onto)] if fits else []
            elif words.lower() == self._word(onto):
                found.append((self._angle(onto), onto))
        assert found, f"no street fits {line}"
        if not rest:
            assert len(found) == 1, f"{len(found)} streets fit {line}"
            return found[0][1]
        which, of, count, *_ = rest.removeprefix("no. ").split()
        assert of == "of"
        assert int(count) == len(found)
        number = {"first": 1, "second": 2, "third": 3}.get(which) or int(which)
        return sorted(found)[number - 1][1]

    def _straight_on(self) -> Along:
        """The next piece of the street that the driver is on."""
        assert self.along is not None
        here = self.along
        exits = [onto for onto in self._exits() if onto != (here[0], not here[1])]
        same = sorted(
            (abs(self._angle(onto)), onto)
            for onto in exits
            if self._name(onto) == self._name(here)
        )
        assert same, f"{self._name(here)} ends before the line does"
        assert len(exits) == 1 or same[0][0] <= 45
        return same[0][1]

    def _exits(self) -> list[Along]:
        if self.along is None:
            return self._turns.leaving(self.node)
        return [onto for onto, _ in self._turns.onward(self.along)]

    def _name(self, onto: Along) -> str:
        link = self.instance.links[onto[0]]
        small = max(link.tail, link.head) < 100_000
        what = "ramp" if link.kind.endswith("_link") else "street"
        unnamed = f"street {link.tail}-{link.head}" if small else f"unnamed {what}"
        printed = "".join(x if x.isprintable() else "?" for x in link.name)
        return printed or unnamed

    def _word(self, onto: Along) -> str:
        assert self.along is not None
        if onto == (self.along[0], not self.along[1]):
            return "turn round"
        angle = self._angle(onto)
        if abs(angle) <= 45:
            return "straight on"
        return ("sharp " if abs(angle) > 135 else "") + ("right" if angle > 0 else "left")

    def _angle(self, onto: Along) -> float:
        assert self.along is not None
        behind = self._bearing((self.along[0], not self.along[1]))
        return (self._bearing(onto) - behind) % 360 - 180

    def _points(self, along: Along) -> list[Coordinate]:
        link = self.instance.links[along[0]]
        points = [self._places[link.tail], *link.geometry, self._places[link.head]]
        points = [p for i, p in enumerate(points) if i == 0 or p != points[i - 1]]
        return points[::-1] if along[1] else points

    def _bearing(self, along: Along) -> float:
        """Bearing of the point 12 m along the line, clockwise from north."""
        east = north = gone = 0.0
        for x, y in self._vectors(self._points(along)):
            length = math.hypot(x, y)
            share = min(1.0, (12 - gone) / length) if length else 0.0
            east, north, gone = east + share * x, north + share * y, gone + length
            if gone >= 12:
                break
        return math.degrees(math.atan2(east, north)) % 360

    @staticmethod
    def _vectors(points: list[Coordinate]) -> Iterator[tuple[float, float]]:
        for (x, y), (next_x, next_y) in pairwise(points):
            scale = 111_195.0
            around = (next_x - x + 180) % 360 - 180
            yield around * math.cos(math.radians(y)) * scale, (next_y - y) * scale
