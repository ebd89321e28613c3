"""Small instances, checked plans and expected errors, for all tests."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import EllipsisType
from typing import Any

import pytest

from arcfleet import (
    ArcfleetError,
    Failure,
    FileError,
    Instance,
    Link,
    Result,
    Solution,
    Step,
    check,
    solve,
)

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
VILLAGE = ROOT / "examples" / "village.json"
SMALL = DATA / "small.dat"
MIXED = DATA / "small_mixed.txt"
NO_ROUTES = Solution(routes=(), cost=0, deadhead=0, service_cost=0)


def street(
    tail: int, head: int, cost: int = 1, demand: int | None = None, **more: Any
) -> Link:
    """A link; one with a demand is required."""
    required = demand is not None
    return Link(
        tail=tail, head=head, cost=cost, required=required, demand=demand or 0, **more
    )


def make_instance(*links: Link, **more: Any) -> Instance:
    """An instance of these links, with depot 1 and capacity 10 unless told otherwise."""
    depot = more.get("depot", 1)
    nodes = {depot}.union(*((link.tail, link.head) for link in links))
    usual: dict[str, Any] = {"name": "town", "depot": 1, "capacity": 10}
    return Instance(links=links, **({"nodes": tuple(sorted(nodes))} | usual | more))


def star(*demands: int, cost: Callable[[int], int] = int, **more: Any) -> Instance:
    """One dead-end street per demand, all from the depot; a street costs as its node."""
    nodes = range(2, 2 + len(demands))
    links = (street(1, n, cost(n), d) for n, d in zip(nodes, demands, strict=True))
    return make_instance(*links, **({"name": "star"} | more))


def unpackable() -> Instance:
    """Two vehicles hold the total demand; but the demands pack two to a vehicle: three."""
    return star(4, 4, 4, 4, 4, fleet_limit=2, name="unpackable")


def steps(text: str) -> tuple[Step, ...]:
    """A path by its links: `-3` is driven in reverse, `3!` is served."""
    return tuple(
        Step(int(word.strip("-!")), word.startswith("-"), word.endswith("!"))
        for word in text.split()
    )


def solved(instance: Instance | Path | str, *arguments: Any, **options: Any) -> Result:
    """Solve an instance, and have the plan verified by the checker."""
    result = solve(instance, *arguments, **options)
    assert check(result.instance, result.solution).faults == ()
    return result


def verified(outcomes: Iterable[Result | Failure]) -> list[Result]:
    """The outcomes, none of which failed, with their plans verified by the checker."""
    found = []
    for outcome in outcomes:
        assert isinstance(outcome, Result), outcome
        assert check(outcome.instance, outcome.solution).faults == ()
        found.append(outcome)
    return found


@contextmanager
def refused(
    error: type[ArcfleetError], message: str, line: int | EllipsisType | None = ...
) -> Iterator[pytest.ExceptionInfo[ArcfleetError]]:
    """Expect an error of one line with this text in it, and of a file at this line."""
    with pytest.raises(error) as caught:
        yield caught
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    if not isinstance(line, EllipsisType):
        assert isinstance(caught.value, FileError)
        assert caught.value.line == line


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes, as on a disk that is nearly full."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
