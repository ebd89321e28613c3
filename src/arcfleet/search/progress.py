"""What a running search tells whoever watches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a search stands.

    Parameters
    ----------
    seconds
        Since the call of `solve`.
    iterations
        Done so far.
    cost
        Of the best plan so far; None while there is none.
    """

    seconds: float
    iterations: int
    cost: int | None


#: Called several times a second while a search runs.
ProgressCallback = Callable[[Progress], None]
