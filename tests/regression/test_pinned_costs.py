"""Costs that must not change unnoticed: an algorithm that changes them says so here."""

from __future__ import annotations

from pathlib import Path

import pytest

from arcfleet import METHODS, Stop, check, read, solve
from arcfleet.methods import LEARNED

VILLAGE = Path(__file__).parents[2] / "examples" / "village.json"

PINNED = {
    "ruin-recreate": 21521,
    "maens": 21621,
    "ps": 23474,
    "ps-random-rule": 22974,
    "ps-random-arc": 23149,
    "ps-ellipse": 22458,
    "ps-efficiency": 22719,
    "ps-alt1": 22476,
    "ps-alt2": 22633,
}


def test_every_method_is_pinned() -> None:
    # What a learned method finds is its model's, not the program's.
    assert PINNED.keys() == METHODS.keys() - set(LEARNED)


@pytest.mark.parametrize("method", PINNED)
def test_pinned_cost(method: str) -> None:
    instance = read(VILLAGE)
    result = solve(instance, method, stop=Stop(iterations=200), seed=1)
    assert check(instance, result.solution).ok
    assert result.cost == PINNED[method]
