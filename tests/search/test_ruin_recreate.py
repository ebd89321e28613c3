import pytest

from arcfleet import Stop, solve
from arcfleet.errors import InstanceError
from tests.helpers import make_instance, solved, star, street


def test_costs_beyond_the_range_are_refused() -> None:
    with pytest.raises(InstanceError, match="coarser unit"):
        solve(star(1, 1, 1, 1, 1, 1, cost=lambda node: 2**27))


@pytest.mark.parametrize("capacity", [40, 2_000_000_000, 2**31 - 1])
def test_any_capacity_with_tasks_of_no_demand(capacity: int) -> None:
    """A capacity as large as numbers go, the usual way to say that there is none."""
    ring = [
        street(1 + i, 1 + (i + 1) % 12, 3 + i % 5, 0 if i % 2 else 5) for i in range(12)
    ]
    town = make_instance(*ring, capacity=capacity)
    result = solved(town, stop=Stop(iterations=20_000), seed=1)
    # All the way round, once.
    assert result.cost == sum(link.cost for link in ring)
