"""Where a training run stands, what came of it, and the figures of its last steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from arcfleet.neural.validation import Gaps


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingProgress:
    """Where a run stands.

    Parameters
    ----------
    doing
        What is done just now.
    share
        Of the run that is over.
    step, seconds
        Steps made, and the time they took.
    loss, states_per_second
        Of the last steps; None before the first line of metrics.
    gaps
        By name of the validation set; empty before the first validation.
    later
        Seconds that other runs will take after this one; None if nobody knows.
    """

    doing: str
    share: float = 0.0
    step: int = 0
    seconds: float = 0.0
    loss: float | None = None
    states_per_second: float | None = None
    gaps: dict[str, Gaps]
    later: float | None = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """The outcome of a run.

    Parameters
    ----------
    model_file
        The averaged weights.
    finished
        Whether the run came to its end; if not, it was stopped and can be resumed.
    steps, seconds
        Steps made, and the time they took.
    gaps
        Of the last validation, by name of the set.
    """

    model_file: Path
    finished: bool
    steps: int
    seconds: float
    gaps: dict[str, Gaps]


class Window:
    """Figures of the steps since the last line of metrics; summed where they are.

    Parameters
    ----------
    started
        Seconds of the run when it was opened.
    """

    def __init__(self, started: float) -> None:
        self.started = started
        self._sums: dict[str, Tensor | float] = {}
        self._counts: dict[str, int] = {}
        self._states = 0

    def add(self, states: int, **figures: Tensor | float) -> None:
        """Note the states that an update learned from, and figures; `loss` is one."""
        self._states += states
        for name, value in figures.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
            self._counts[name] = self._counts.get(name, 0) + 1

    def close(self) -> tuple[dict[str, float], int]:
        """Give the mean of each figure and the number of states; waits for the device."""
        sums = self._sums.items()
        return {name: float(total) / self._counts[name] for name, total in sums}, (
            self._states
        )
