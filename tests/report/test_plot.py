import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from arcfleet.errors import FileError, OptionError, SolutionError
from arcfleet.report.colours import DEPOT, route_colours
from arcfleet.report.picture import check_plottable
from arcfleet.report.plot import plot
from arcfleet.solution.drive import with_all_paths
from arcfleet.solution.solution import Route, Service, Solution
from tests.helpers import make_instance, steps, street

# A one-way street, two parallel links, a loop and a bent street; places are given, so that
# no shortest paths are needed.
INSTANCE = make_instance(
    street(1, 2, 5, 1),
    street(2, 1, 6),
    street(2, 2, 2, 1),
    street(2, 3, 4, 1, one_way=True),
    street(3, 1, 7, geometry=((1.0, 1.0), (0.2, 0.9), (0.0, 0.0))),
    name="corner $x_ shop",
    coordinates=((0.0, 0.0), (1.0, 0.0), (1.0, 1.0)),
)
PLAN = Solution(
    routes=(
        Route(services=(Service(0), Service(2)), load=2, cost=12, path=steps("0! 2! -0")),
        Route(services=(Service(3),), load=1, cost=16),
    ),
    cost=28,
    deadhead=17,
    service_cost=11,
)


def colours_of(path: Path) -> set[str]:
    red, green, blue = np.round(255 * imread(path)[:, :, :3]).astype(int).transpose(2, 0, 1)
    found = np.unique(65536 * red + 256 * green + blue)
    return {f"#{colour:06x}" for colour in found.tolist()}


def test_plan_shows_every_route_in_its_colour(tmp_path: Path) -> None:
    path = tmp_path / "plan.png"
    plot(INSTANCE, PLAN, path)
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert {DEPOT, *route_colours(2)} <= colours_of(path)
    assert list(tmp_path.iterdir()) == [path]


def test_instance_alone_shows_no_route_colour(tmp_path: Path) -> None:
    path = tmp_path / "instance.png"
    plot(INSTANCE, None, path)
    colours = colours_of(path)
    assert len(colours) > 2
    assert route_colours(1)[0] not in colours


@pytest.mark.parametrize(
    ("suffix", "start"), [(".PNG", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")]
)
def test_suffix_chooses_the_format(tmp_path: Path, suffix: str, start: bytes) -> None:
    path = tmp_path / f"plan{suffix}"
    plot(INSTANCE, PLAN, path)
    assert path.read_bytes().startswith(start)


def test_title_names_cost_and_routes_unless_given(tmp_path: Path) -> None:
    path = tmp_path / "plan.svg"
    plot(INSTANCE, PLAN, path)
    assert "<!-- corner $x_ shop: cost 28, 2 routes -->" in path.read_text()
    plot(INSTANCE, PLAN, path, title="Monday")
    assert "<!-- Monday -->" in path.read_text()


def test_length_and_time_of_every_route(tmp_path: Path) -> None:
    path = tmp_path / "plan.svg"
    links = tuple(replace(link, metres=850, seconds=700) for link in INSTANCE.links)
    timed = replace(INSTANCE, links=links)
    plot(timed, with_all_paths(timed, PLAN), path)
    text = path.read_text()
    assert re.search(r"<!-- .*: cost 28, [\d.]+ km, [\d hmin]+, 2 routes -->", text)
    assert re.search(r"<!-- route 2: load 1, cost 16, [\d.]+ km, [\d hmin]+ -->", text)


def test_the_attribution_is_on_the_picture_and_the_comment_is_not(tmp_path: Path) -> None:
    path = tmp_path / "plan.svg"
    attribution = "Streets: City of Ulm, CC BY 4.0"
    plot(replace(INSTANCE, attribution=attribution, comment="widened"), PLAN, path)
    text = path.read_text(encoding="utf-8")
    assert f"<!-- {attribution} -->" in text
    assert "widened" not in text
    # A long one stays under the picture.
    short, long = tmp_path / "short.png", tmp_path / "long.png"
    plot(replace(INSTANCE, attribution="short"), PLAN, short)
    plot(replace(INSTANCE, attribution="a long story " * 500), PLAN, long)
    assert imread(long).shape[1] == imread(short).shape[1]
    assert imread(long).shape[0] < 1.1 * imread(short).shape[0]


def test_legend_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "plan.svg"
    plot(INSTANCE, replace(PLAN, routes=PLAN.routes * 20), path)
    text = path.read_text()
    assert "<!-- route 12: load 1, cost 16 -->" in text
    assert "<!-- route 13" not in text
    assert "and 28 more -->" in text


def test_single_node(tmp_path: Path) -> None:
    plot(make_instance(), None, tmp_path / "dot.png")
    assert len(colours_of(tmp_path / "dot.png")) > 1


def test_matplotlib_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(OptionError, match=r"install arcfleet\[plot\]"):
        plot(INSTANCE, PLAN, tmp_path / "plan.png")


def test_places_where_no_picture_can_be(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"\.png, \.svg, \.pdf, got 'plan\.gif'"):
        plot(INSTANCE, PLAN, tmp_path / "plan.gif")
    path = tmp_path / "nowhere" / "plan.png"
    with pytest.raises(FileError, match="expected an existing directory") as caught:
        plot(INSTANCE, PLAN, path)
    assert caught.value.path == path
    check_plottable(tmp_path / "plan.svg")
    with pytest.raises(OptionError):
        check_plottable(tmp_path / "plan")
    with pytest.raises(FileError):
        check_plottable(tmp_path / "nowhere" / "plan.svg")
    assert list(tmp_path.iterdir()) == []
    folder = tmp_path / "plan.png"
    folder.mkdir()
    with pytest.raises(FileError, match="found a directory"):
        plot(INSTANCE, PLAN, folder)
    assert list(tmp_path.iterdir()) == [folder]


def test_old_picture_survives_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan.png"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(FileError, match="No space left"):
        plot(INSTANCE, PLAN, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_link_to_a_picture_stays_a_link(tmp_path: Path) -> None:
    link = tmp_path / "latest.png"
    link.symlink_to(tmp_path / "monday.png")
    plot(INSTANCE, PLAN, link)
    assert link.is_symlink()
    assert (tmp_path / "monday.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("link", [-1, 5])
def test_plan_of_another_instance(tmp_path: Path, link: int) -> None:
    other = replace(PLAN, routes=(Route(services=(Service(link),), load=0, cost=0),))
    with pytest.raises(SolutionError, match=f"from 0 to 4, got link {link} on route 1"):
        plot(INSTANCE, other, tmp_path / "plan.png")


def test_a_plan_is_drawn_on_given_axes(tmp_path: Path) -> None:
    figure = Figure(figsize=(9, 4))
    left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
    drawn = [plot(INSTANCE, PLAN, ax=left), plot(INSTANCE, ax=right, title="streets")]
    assert drawn == [left, right]
    assert left.get_title().startswith("corner")
    assert right.get_title() == "streets"
    assert list(figure.axes) == [left, right]
    assert figure.get_size_inches().tolist() == [9, 4]
    assert left.get_legend() is not None
    figure.savefig(tmp_path / "both.png")
    assert {DEPOT, *route_colours(2)} <= colours_of(tmp_path / "both.png")


def test_a_file_or_axes_but_not_both(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="got neither: give path or ax"):
        plot(INSTANCE, PLAN)
    with pytest.raises(OptionError, match="got both: give path or ax"):
        plot(INSTANCE, PLAN, tmp_path / "x.png", ax=Figure().add_subplot())
    assert list(tmp_path.iterdir()) == []
