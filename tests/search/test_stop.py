import math

import pytest

from arcfleet.errors import OptionError
from arcfleet.search import Stop


@pytest.mark.parametrize(
    "limits",
    [
        {"seconds": -1.0},
        {"seconds": math.nan},
        {"seconds": math.inf},
        {"iterations": 0},
        {"no_improvement": 0},
        {"target_cost": -1},
    ],
)
def test_impossible_limits_are_refused(limits: dict[str, float]) -> None:
    (name,) = limits
    with pytest.raises(OptionError, match=name):
        Stop(**limits)  # type: ignore[arg-type]


def test_a_target_alone_is_open() -> None:
    assert Stop(target_cost=5).is_open
    assert not Stop(target_cost=5, iterations=1).is_open
