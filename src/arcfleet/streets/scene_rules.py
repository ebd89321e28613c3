"""What a scene is to be: where, which streets, how much demand, what vehicle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from arcfleet.errors import OptionError
from arcfleet.instance.instance import MAX_NUMBER

if TYPE_CHECKING:
    from arcfleet.instance.instance import Coordinate
    from arcfleet.streets.area import Area

#: "length": metres, rounded; a number: the same for every street; two numbers: drawn
#: from the first to the second, both included.
Demand = Literal["length"] | int | tuple[int, int]

#: Stands for the streets that the map gives no kind.
UNKNOWN_KIND = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneRules:
    """How to make an instance from a street map.

    Parameters
    ----------
    capacity
        Of a vehicle, in the unit of the demand.
    area
        Streets with both ends in it are kept; None keeps all.
    depot
        Longitude and latitude of a place; the nearest junction becomes the depot. None
        takes the most central junction.
    serve_kinds, serve_names
        A street is served if its kind or its name is among these; with neither given, all
        streets are. Case does not matter. `UNKNOWN_KIND` means streets without a kind.
    demand
        "length" for the metres of the street, rounded and at least 1; a whole number for
        the same on every street; two of them for a random one between, both included.
    one_way
        Whether one-way streets stay one-way; else all are two-way.
    both_sides
        Whether each side of a two-way street is served for itself, in its direction and
        with half the demand, rounded up.
    oversized
        What becomes of a street with more demand than a vehicle takes: "split" cuts it
        into equal consecutive parts, "refuse" raises MapError.
    name
        Of the instance; None takes that of the map.
    remark
        Follows the map's credit in the comment of the instance.
    seed
        Of random demands.

    Raises
    ------
    OptionError
        If one of them is not as described.
    """

    capacity: int
    area: Area | None = None
    depot: Coordinate | None = None
    serve_kinds: tuple[str, ...] = ()
    serve_names: tuple[str, ...] = ()
    demand: Demand = "length"
    one_way: bool = True
    both_sides: bool = False
    oversized: Literal["split", "refuse"] = "split"
    name: str | None = None
    remark: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        """Check every rule."""
        object.__setattr__(self, "serve_kinds", tuple(self.serve_kinds))
        object.__setattr__(self, "serve_names", tuple(self.serve_names))
        _check_number("capacity", self.capacity, 1)
        _check_number("seed", self.seed, 0, 2**64 - 1)
        if self.oversized not in ("split", "refuse"):
            raise OptionError(
                f"expected oversized to be 'split' or 'refuse', got {self.oversized!r}"
            )
        if isinstance(self.demand, tuple) and len(self.demand) == 2:
            least, most = self.demand
            _check_number("the least demand", least, 0)
            _check_number("the largest demand", most, 0)
            if least > most:
                raise OptionError(
                    "expected the least demand before the largest, "
                    f"got {least} before {most}"
                )
        elif isinstance(self.demand, int):
            _check_number("demand", self.demand, 0)
        elif self.demand != "length":
            raise OptionError(
                "expected demand to be 'length', a whole number or two of them, "
                f"got {self.demand!r}"
            )


def _check_number(name: str, value: object, least: int, most: int = MAX_NUMBER) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise OptionError(
            f"expected {name} to be a whole number from {least} to {most}, got {value!r}"
        )
