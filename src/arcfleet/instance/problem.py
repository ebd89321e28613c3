"""What a diagnosis consists of: problems, with the links that they concern."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.instance.instance import Instance

ProblemKind = Literal[
    "isolated-depot",
    "unreachable",
    "no-return",
    "u-turns",
    "forbidden-turns",
    "oversized",
    "fleet-too-small",
    "forbidden-links",
    "no-facility",
    "too-long",
    "pins",
    "locks",
    "exact-fleet",
]

#: A message names at most this many links; `Problem.links` has them all.
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason why no plan can serve all required links.

    Parameters
    ----------
    kind
        Kind of the problem.
    message
        What is wrong, where, and what to do about it, as a clause without a full stop.
    links
        Positions of all required links concerned, in order.
    """

    kind: ProblemKind
    message: str
    links: tuple[int, ...]


def problem_on(kind: ProblemKind, links: Sequence[int], message: str) -> Problem | None:
    """Return the problem of some links; None where there are none."""
    return Problem(kind, message, tuple(links)) if links else None


def name_links(instance: Instance, links: Sequence[int]) -> str:
    """Return the names of links in a row; of many, the first ones and how many more."""
    named = [instance.describe_link(i) for i in links[:MOST_NAMED]]
    return in_a_row(named, len(links) - len(named))


def in_a_row(names: Sequence[str], more: int = 0) -> str:
    """Return names in a row, and how many more there are."""
    if more:
        return f"{', '.join(names)} and {more} more"
    return ", ".join([*names[:-2], " and ".join(names[-2:])])
