"""When a search ends."""

from __future__ import annotations

from dataclasses import dataclass

from arcfleet._checks import check_whole_number
from arcfleet.errors import OptionError

_MOST = 2**62 - 1
_MOST_SECONDS = 10**9


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
            isinstance(self.seconds, int | float) and 0 <= self.seconds <= _MOST_SECONDS
        ):
            raise OptionError(
                f"expected seconds between 0 and {_MOST_SECONDS}, got {self.seconds!r}"
            )
        for field, least in (
            ("iterations", 1),
            ("stale_iterations", 1),
            ("target_cost", 0),
        ):
            value = getattr(self, field)
            if value is not None:
                check_whole_number(field, value, least, _MOST)

    @property
    def is_open(self) -> bool:
        """Whether nothing would ever end the search for certain."""
        return (
            self.seconds is None
            and self.iterations is None
            and self.stale_iterations is None
        )
