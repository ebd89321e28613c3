from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from arcfleet import Instance, OptionError, Solution, diff
from arcfleet.report.diff_plot import plot_diff
from tests.helpers import refused
from tests.located_instances import located_plans


@pytest.mark.filterwarnings("ignore:Glyph")
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(located_plans())
def test_any_difference_can_be_drawn(
    tmp_path: Path, located: tuple[Instance, Solution]
) -> None:
    instance, plan = located
    routes = tuple(
        replace(route, number=number)
        for number, route in enumerate(plan.routes[::-1], start=2)
    )
    after = replace(plan, routes=routes[1:])
    path = tmp_path / "moved.svg"
    for one, other in ((plan, after), (after, plan)):
        plot_diff(instance, other, diff(instance, one, other), path)
        first = path.read_bytes()
        plot_diff(instance, other, diff(instance, one, other), path)
        assert path.read_bytes() == first


def test_a_suffix_that_is_no_picture_is_refused(
    village: Instance, village_plan: Solution, tmp_path: Path
) -> None:
    found = diff(village, village_plan, village_plan)
    with refused(OptionError, "expected a picture file ending in"):
        plot_diff(village, village_plan, found, tmp_path / "moved.gif")
