from pathlib import Path

import pytest
from matplotlib.image import imread

from arcfleet.errors import OptionError, SolutionError
from arcfleet.report.colours import DEPOT, route_colours
from arcfleet.report.plan_grid import Panel, plot_panels
from arcfleet.solution.solution import Route, Service, Solution
from tests.unit.report.test_plot import INSTANCE, PLAN, colours_of, rgb


def test_plans_side_by_side(tmp_path: Path) -> None:
    one = Panel(instance=INSTANCE, solution=PLAN, title="$x_ cost 28")
    bare = Panel(instance=INSTANCE, solution=None, title="no plan")
    path = tmp_path / "a.png"
    plot_panels([[one, bare]], path)
    assert {rgb(colour) for colour in (DEPOT, *route_colours(2))} <= colours_of(path)
    wide = imread(path).shape
    plot_panels([[one, bare], [bare, one]], path)
    tall = imread(path).shape
    assert 0.9 < tall[1] / wide[1] < 1.1
    assert 1.7 < tall[0] / wide[0] < 2.3
    first = path.read_bytes()
    plot_panels([[one, bare], [bare, one]], path)
    assert path.read_bytes() == first


def test_wrong_use(tmp_path: Path) -> None:
    panel = Panel(instance=INSTANCE, solution=PLAN, title="")
    with pytest.raises(OptionError, match="picture file ending in"):
        plot_panels([[panel]], tmp_path / "a.txt")
    route = Route(services=(Service(9),), load=1, cost=1)
    wrong = Solution(routes=(route,), cost=1, deadhead=0, service_cost=1)
    with pytest.raises(SolutionError, match="got link 9"):
        plot_panels(
            [[Panel(instance=INSTANCE, solution=wrong, title="")]], tmp_path / "a.png"
        )
