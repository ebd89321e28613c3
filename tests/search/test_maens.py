import pytest

from arcfleet import Instance, Stop
from arcfleet.errors import OptionError
from arcfleet.search.maens import MaensSettings
from tests.helpers import solved, star


@pytest.mark.parametrize("demands", [(4,), (4, 4), (1, 1, 1), (9, 9, 9)])
def test_tiny_instances_come_to_an_end(demands: tuple[int, ...]) -> None:
    # One cost is all there is: every offspring is a clone.
    result = solved(star(*demands), "maens", stop=Stop(iterations=5000))
    assert (result.iterations, result.stopped_by) == (5000, "iterations")


def test_the_fixed_cost_of_a_route_counts() -> None:
    result = solved(star(2, 2, 2, 2, route_cost=100), "maens", stop=Stop(iterations=200))
    assert result.solution.num_routes == 1
    assert result.cost == 100 + 2 * (2 + 3 + 4 + 5)


def test_settings_are_used_and_checked(village: Instance) -> None:
    settings = MaensSettings(population=4, local_search_rate=1.0, merge_pairs=3)
    solved(village, "maens", stop=Stop(iterations=30), params=settings)
    with pytest.raises(OptionError, match="population"):
        MaensSettings(population=0)
    with pytest.raises(OptionError, match="local_search_rate between 0 and 1, got 2"):
        MaensSettings(local_search_rate=2)
