from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from arcfleet.errors import OptionError, SolutionError
from arcfleet.report.charts import (
    Line,
    Panel,
    Point,
    draw_heat,
    draw_panels,
    draw_pareto,
    plot_anytime,
)
from arcfleet.report.colours import DEPOT
from arcfleet.report.picture import SUFFIXES
from arcfleet.report.plot import ScenePlans, draw_scenes, plot
from arcfleet.solution.solution import Route, Service, Solution
from tests.report.test_plot import INSTANCE, PLAN

LINES = (
    Line(label="a $x_ line", x=(0.0, 1.0), y=(1.0, 20.0), widths=(0.5, 3.0)),
    Line(label="another", x=(1.0,), y=(0.2,), dashed=True),
)
PANELS = [
    Panel(
        title="one", x_label="set", y_label="s", lines=LINES, ticks=("x", "y"), log_y=True
    ),
    Panel(title="two", x_label="steps", y_label="s", lines=LINES[:1]),
    Panel(title="three", x_label="steps", y_label="%", lines=LINES[:1]),
]
POINTS = [
    Point("a", 1e-4, 20.0, 1.0, True, True),
    Point("b", 1e-2, -0.5, 0.0, False, True),
    Point("c", 1.0, 3.0, 0.0, False, False),
]
CURVES = {"gdb": [Line(label="ps", x=(0.1, 1.0), y=(3.0, 2.0))]}
DRAWINGS: list[Callable[[Path], object]] = [
    lambda path: draw_panels(PANELS, path, "a caption with 5 % and $ signs"),
    lambda path: draw_pareto(POINTS, path, title="Task20", caption="a caption"),
    lambda path: draw_heat(
        [[1.0, None], [2.0, 30.5]],
        path,
        rows=["a", "b"],
        columns=["x", "y"],
        x_label="tested",
        y_label="trained",
        value_label="gap",
    ),
    lambda path: draw_scenes([ScenePlans("corner", INSTANCE, [("PS: 5", PLAN)] * 2)], path),
    lambda path: plot_anytime(CURVES, path),
    lambda path: plot(INSTANCE, PLAN, path),
]


@pytest.mark.parametrize("number", range(len(DRAWINGS)))
def test_the_same_figure_gives_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    draw = DRAWINGS[number]
    # All are saved by one function: a chart and a map in each format stand for the others.
    for suffix in SUFFIXES if number >= 4 else (".svg",):
        paths = [tmp_path / f"{name}{suffix}" for name in ("first", "second")]
        for path, moment in zip(paths, ("0", "1000000000"), strict=True):
            # What matplotlib takes for the present.
            monkeypatch.setenv("SOURCE_DATE_EPOCH", moment)
            draw(path)
        assert paths[0].read_bytes() == paths[1].read_bytes()
    with pytest.raises(OptionError, match="picture file"):
        draw(tmp_path / "figure.gif")


def test_words_stand_in_the_figure(tmp_path: Path) -> None:
    import matplotlib as mpl

    path = tmp_path / "figure.svg"
    with mpl.rc_context({"svg.fonttype": "none"}):
        DRAWINGS[0](path)
        text = path.read_text()
        for word in ("a $x_ line", "another", "two", "steps", "with 5 % and $ signs"):
            assert word in text
        DRAWINGS[2](path)
        assert "30.50" in path.read_text()


def test_scenes_have_red_depots_and_refuse_foreign_plans(tmp_path: Path) -> None:
    path = tmp_path / "scenes.png"
    DRAWINGS[3](path)
    red = np.array([int(DEPOT[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    assert (np.abs(imread(path)[..., :3] - red).max(axis=-1) < 0.02).sum() > 20
    foreign = Solution(
        routes=(Route(services=(Service(99),), load=1, cost=1),),
        cost=1,
        deadhead=0,
        service_cost=1,
    )
    with pytest.raises(SolutionError, match="got link 99"):
        draw_scenes([ScenePlans("corner", INSTANCE, [("PS", foreign)])], path)
