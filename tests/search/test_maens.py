import pytest

from arcfleet import Instance, Stop
from arcfleet.errors import OptionError
from arcfleet.instance.instance import Link
from arcfleet.search.maens import MaensSettings
from tests.helpers import make_instance, solved, star


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


def test_costs_beyond_32_bits_add_up() -> None:
    # Two streets whose service alone costs 2^31 - 1, and driving to them 2^28 more.
    links = [
        Link(tail=0, head=1, cost=2**28),
        *(
            Link(
                tail=1,
                head=head,
                cost=head,
                required=True,
                demand=1,
                service_cost=2**31 - 1,
            )
            for head in (2, 3, 4)
        ),
    ]
    instance = make_instance(*links, depot=0, capacity=2)
    result = solved(instance, "maens", stop=Stop(iterations=50))
    costs = [found.cost for found in result.history]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == result.cost == result.solution.cost > 3 * (2**31 - 1)
