"""When a search ends: stop rules, and the progress that they look at."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Literal, Protocol

from arcfleet._checks import check_number, check_whole_number, make_whole

if TYPE_CHECKING:
    from arcfleet.solution import Solution

#: Largest number of iterations; more than any search makes.
ANY_NUMBER = 2**62
_MOST_SECONDS = 10**9

#: What ended a search: a limit of `Stop`, another stop rule, a lower bound that the plan
#: meets, Ctrl-C, or an error that the caller's own stop rule or progress callback raised.
StoppedBy = Literal[
    "seconds",
    "iterations",
    "no_improvement",
    "target_cost",
    "stop rule",
    "bound",
    "interrupt",
    "error",
]


@dataclass(frozen=True, slots=True)
class Progress:
    """State of a running search.

    Parameters
    ----------
    seconds
        Time since the call of `solve`.
    iterations
        Number of iterations so far.
    cost
        Cost of the best plan so far; None while there is none.
    no_improvement
        Number of iterations since the best plan was found.
    bound
        Lower bound so far, where `solve` computes one; None while there is none.
    districts
        Number of districts that are finished, and of all, while `solve_districts` solves
        them; else None.
    """

    seconds: float
    iterations: int
    cost: int | None
    no_improvement: int = 0
    # Worked out only where it is asked for: a search reports many times a second.
    find_solution: Callable[[], Solution] | None = field(
        default=None, repr=False, compare=False
    )
    bound: int | None = None
    districts: tuple[int, int] | None = None

    @property
    def solution(self) -> Solution | None:
        """Best plan so far; None while there is none."""
        if self.cost is None or self.find_solution is None:
            return None
        return self.find_solution()


#: Called several times a second while a search runs.
ProgressCallback = Callable[[Progress], None]


class StopRule(Protocol):
    """A function of the progress that returns True to end the search.

    With one thread it is called after every iteration, so that a rule that does not look
    at the clock gives the same plan each time; with several threads some 25 times a
    second. A rule may also have a method `iterations_left(progress)`: then it is called
    again only after so many iterations, which is faster. One with a memory is for one
    search at a time; `solve_many` copies it for each.
    """

    def __call__(self, progress: Progress, /) -> bool:
        """Return whether the search ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The usual stop rule: the search ends as soon as one of the given limits is met.

    It is a value; the run holds the clock, so one Stop can be used any number of times.

    Parameters
    ----------
    seconds
        Wall-clock time, from the call of `solve`.
    iterations
        Number of iterations; each method defines what one is.
    no_improvement
        Number of iterations in a row without a better plan.
    target_cost
        Cost that is good enough.
    """

    seconds: float | None = None
    iterations: int | None = None
    no_improvement: int | None = None
    target_cost: int | None = None

    def __post_init__(self) -> None:
        """Check every limit."""
        make_whole(self, ("iterations", "no_improvement", "target_cost"))
        if self.seconds is not None:
            check_number("seconds", self.seconds, 0, _MOST_SECONDS)
        for name, least in (("iterations", 1), ("no_improvement", 1), ("target_cost", 0)):
            value = getattr(self, name)
            if value is not None:
                check_whole_number(name, value, least, ANY_NUMBER - 1)

    def __call__(self, progress: Progress, /) -> bool:
        """Return whether a limit is met."""
        return self.limit_met(progress) is not None

    def limit_met(self, progress: Progress) -> StoppedBy | None:
        """Return the first limit that is met; None while the search goes on."""
        if (
            self.target_cost is not None
            and progress.cost is not None
            and progress.cost <= self.target_cost
        ):
            return "target_cost"
        if self.iterations is not None and progress.iterations >= self.iterations:
            return "iterations"
        if (
            self.no_improvement is not None
            and progress.no_improvement >= self.no_improvement
        ):
            return "no_improvement"
        if self.seconds is not None and progress.seconds >= self.seconds:
            return "seconds"
        return None

    def iterations_left(self, progress: Progress) -> int:
        """Return the number of iterations until a limit on them can be met."""
        left = ANY_NUMBER
        if self.iterations is not None:
            left = min(left, self.iterations - progress.iterations)
        if self.no_improvement is not None:
            left = min(left, self.no_improvement - progress.no_improvement)
        return left

    @property
    def is_open(self) -> bool:
        """Whether nothing would ever end the search for certain."""
        return (
            self.seconds is None and self.iterations is None and self.no_improvement is None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StopSince(Stop):
    """A Stop whose time began before the call of `solve`, and is not all for the search.

    Parameters
    ----------
    started
        `time.perf_counter()` when the time began.
    reserve
        Seconds of the time limit that are kept for what follows `solve`.
    checked
        Seconds that `require_solvable` took, where it was called before; else None.
    """

    started: float
    reserve: float = 0.0
    checked: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAtBound(Stop):
    """A Stop that also ends the search at a plan that costs no more than a lower bound.

    Parameters
    ----------
    bound
        Returns the bound so far; None while there is none.
    """

    bound: Callable[[], int | None]

    def limit_met(self, progress: Progress) -> StoppedBy | None:
        """Return the first limit that is met; None while the search goes on."""
        if _meets(progress, self.bound()):
            return "bound"
        return Stop.limit_met(self, progress)


class RuleAtBound:
    """Any other stop rule that also ends the search at a lower bound."""

    def __init__(self, rule: StopRule, bound: Callable[[], int | None]) -> None:
        self.rule, self.bound = rule, bound

    def __call__(self, progress: Progress, /) -> bool:
        """Return whether the search ends."""
        return _meets(progress, self.bound()) or self.rule(progress)

    def __getattr__(self, name: str) -> object:
        """Return what the rule itself has."""
        return getattr(self.rule, name)  # `iterations_left`, where the rule has it


def at_bound(rule: StopRule, bound: Callable[[], int | None]) -> StopRule:
    """Return a rule that also ends the search at a plan that meets a lower bound."""
    if not isinstance(rule, Stop):
        return RuleAtBound(rule, bound)
    limits = {each.name: getattr(rule, each.name) for each in fields(Stop)}
    return StopAtBound(**limits, bound=bound)


def _meets(progress: Progress, bound: int | None) -> bool:
    return bound is not None and progress.cost is not None and progress.cost <= bound


class CallerError(Exception):
    """The caller's stop rule or progress callback raised the error that is the cause."""


@contextmanager
def caller_errors() -> Iterator[None]:
    """Mark errors of the caller's functions: the best plan is kept at them."""
    try:
        yield
    except Exception as error:
        raise CallerError from error


def stopped_by(rule: StopRule, progress: Progress) -> StoppedBy | None:
    """Return what ends a search now; None while it goes on."""
    if isinstance(rule, Stop):
        return rule.limit_met(progress)
    with caller_errors():
        return "stop rule" if rule(progress) else None


def copied(rule: StopRule) -> StopRule:
    """Return a rule for one of many searches: a copy, so that they share no memory.

    A rule that cannot be copied, for it holds a lock or an event, is shared.
    """
    try:
        return copy.deepcopy(rule)
    except Exception:
        return rule


def iterations_left(rule: StopRule, progress: Progress, otherwise: int) -> int:
    """Return how many iterations may pass until the rule is asked; else `otherwise`."""
    ask = getattr(rule, "iterations_left", None)
    return otherwise if ask is None else max(1, int(ask(progress)))


def time_limit(rule: StopRule) -> float | None:
    """Return the time limit of a rule in seconds; None if it has none or does not tell."""
    return rule.seconds if isinstance(rule, Stop) else None
