"""What both engines, ruin-and-recreate and MAENS, must do."""

from dataclasses import replace

import pytest

from arcfleet import METHODS, Instance, Solution, Stop, solve
from arcfleet.errors import OptionError
from arcfleet.search.result import Result
from tests.helpers import solved

BOTH = pytest.mark.parametrize(
    ("method", "many", "some"), [("ruin-recreate", 5000, 500), ("maens", 1000, 200)]
)


def trajectory(result: Result) -> list[tuple[int, int]]:
    return [(step.iteration, step.cost) for step in result.history]


@pytest.mark.parametrize(
    ("method", "iterations", "threads"),
    # The threads of MAENS change nothing; those of ruin-and-recreate share the search.
    [
        ("ruin-recreate", 4000, (1, 1)),
        ("ruin-recreate", 4000, (2, 2)),
        ("maens", 600, (1, 2)),
    ],
)
def test_same_seed_same_trajectory(
    village: Instance, method: str, iterations: int, threads: tuple[int, int]
) -> None:
    # The clock cuts the two searches into slices at different places.
    stop = Stop(iterations=iterations)
    first, second = (
        solved(village, method, stop=stop, seed=7, threads=number) for number in threads
    )
    assert first.solution == second.solution
    if threads != (2, 2):
        assert trajectory(first) == trajectory(second)
        other = solved(village, method, stop=stop, seed=8)
        assert trajectory(other) != trajectory(first)


@BOTH
def test_it_beats_path_scanning_and_its_start(
    village: Instance, rough_plan: Solution, method: str, many: int, some: int
) -> None:
    scanned = solved(village, "ps-efficiency", stop=Stop(iterations=1000))
    searched = solved(village, method, stop=Stop(iterations=many))
    assert searched.cost < scanned.cost
    for iterations in (1, 10):
        stop = Stop(iterations=iterations)
        again = solved(village, method, start=searched.solution, stop=stop)
        assert again.cost <= searched.cost
    better = solved(village, method, start=rough_plan, stop=Stop(iterations=some))
    assert better.cost < rough_plan.cost


@BOTH
def test_a_start_that_does_not_fit_is_repaired(
    village: Instance, rough_plan: Solution, method: str, many: int, some: int
) -> None:
    short = replace(rough_plan, routes=rough_plan.routes[1:])
    result = solved(village, method, start=short, stop=Stop(iterations=1))
    (note,) = result.notes
    assert note.startswith("repaired the plan to start from: inserted ")
    with pytest.raises(OptionError, match="warm-starts from a plan"):
        solve(village, "ps", start=rough_plan)


def test_every_method_that_takes_a_start_is_named(
    village: Instance, rough_plan: Solution
) -> None:
    with pytest.raises(OptionError) as caught:
        solve(village, "ps", start=rough_plan)
    known = [repr(name) for name, method in METHODS.items() if method.warm_start]
    assert known == ["'ruin-recreate'", "'maens'"]
    assert str(caught.value).endswith(f"use {' or '.join(known)} or give no start")
    lined = replace(village, balance=1.0)
    with pytest.raises(OptionError, match=r"got 'maens': use 'ruin-recreate'$"):
        solve(lined, "maens", start=rough_plan)
