"""When a search ends."""

from __future__ import annotations

import math
from dataclasses import dataclass

from arcfleet.errors import OptionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A stop rule: the search ends as soon as one of the given limits is met.

    It is a value; the run holds the clock, so one Stop can be used any number of times.

    Parameters
    ----------
    seconds
        Wall-clock time, from the call of `solve`.
    iterations
        Iterations of the method; what one is, the method says.
    stale_iterations
        Iterations in a row without a better plan.
    target_cost
        A plan of at most this cost was found.
    """

    seconds: float | None = None
    iterations: int | None = None
    stale_iterations: int | None = None
    target_cost: int | None = None

    def __post_init__(self) -> None:
        """Check every limit."""
        if self.seconds is not None and not (
            math.isfinite(self.seconds) and self.seconds >= 0
        ):
            raise OptionError(f"expected seconds to be at least 0, got {self.seconds}")
        for field in ("iterations", "stale_iterations"):
            value = getattr(self, field)
            if value is not None and not 1 <= value < 2**62:
                raise OptionError(f"expected {field} to be at least 1, got {value}")
        if self.target_cost is not None and not 0 <= self.target_cost < 2**62:
            raise OptionError(
                f"expected target_cost to be at least 0, got {self.target_cost}"
            )

    @property
    def is_open(self) -> bool:
        """Whether nothing would ever end the search for certain."""
        return (
            self.seconds is None
            and self.iterations is None
            and self.stale_iterations is None
        )
