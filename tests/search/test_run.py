"""How engines are run: what is said of a search that was too short."""

from __future__ import annotations

import re
import signal
from dataclasses import replace
from typing import Any

import pytest

from arcfleet import Facility, Instance, Stop
from arcfleet.search.run import _rounded_up
from arcfleet.solution.words import known_shape
from tests.helpers import solved


def test_a_search_that_has_hardly_begun_says_what_time_it_needs(village: Instance) -> None:
    result = solved(village, stop=Stop(seconds=0))
    assert result.iterations == 1
    (note,) = result.notes
    tasks = len(village.required)
    pattern = rf"hardly begun .*iterations: 1, tasks: {tasks}\): give it about [0-9.]+ s"
    assert re.search(pattern, note)
    assert note in str(result)


def test_it_says_so_with_operations_too(village: Instance) -> None:
    emptied = replace(village, facilities=(Facility(node=village.depot),))
    (note,) = solved(emptied, stop=Stop(seconds=0)).notes
    assert "hardly begun" in note


def test_only_a_time_limit_makes_a_search_too_short(village: Instance) -> None:
    assert solved(village, stop=Stop(iterations=1)).notes == ()
    # With a target that the first plan meets, there is nothing to add either.
    assert solved(village, stop=Stop(seconds=60, target_cost=10**6)).notes == ()


def test_path_scanning_is_never_too_short(village: Instance) -> None:
    assert solved(village, "ps", stop=Stop(seconds=0)).notes == ()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.00123, "0.0013"), (0.121, "0.13"), (1.61, "1.7"), (9.99, "10"), (12.01, "13")],
)
def test_needed_times_are_rounded_up(seconds: float, text: str) -> None:
    assert _rounded_up(seconds) == text


@pytest.mark.parametrize("method", ["ruin-recreate", "maens", "ps"])
def test_ctrl_c_after_the_search_loses_no_plan(
    village: Instance, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes while the Result is made, which takes seconds in a city."""

    def interrupted(*arguments: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return known_shape(*arguments)

    monkeypatch.setattr("arcfleet.search.run.known_shape", interrupted)
    result = solved(village, method, stop=Stop(iterations=2))
    assert result.iterations == 2
    # The second one gives up.
    monkeypatch.setattr(
        "arcfleet.search.run.known_shape", lambda *x: interrupted(*x) and interrupted(*x)
    )
    with pytest.raises(KeyboardInterrupt):
        solved(village, method, stop=Stop(iterations=2))
