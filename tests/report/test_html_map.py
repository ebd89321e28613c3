import json
import re
import tempfile
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from arcfleet import Stop
from arcfleet.errors import FileError, InstanceError, OptionError, SolutionError
from arcfleet.instance.instance import Instance
from arcfleet.report.html_map import check_html, write_html
from arcfleet.solution.drive import with_all_paths
from arcfleet.solution.solution import Route, Solution, Step
from tests.helpers import NO_ROUTES, make_instance, solved, steps, street
from tests.located_instances import located_plans

UNKNOWN: Any = dict.fromkeys(("metres", "seconds", "reverse_seconds", "service_seconds"))


class Page(HTMLParser):
    """The elements of a page in order, and the text of the one that holds the data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self.title = ""
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in = "plan" if dict(attrs).get("id") == "plan" else tag

    def handle_endtag(self, tag: str) -> None:
        self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in == "plan":
            self.data += data
        elif self._in == "title":
            self.title += data


def page_of(instance: Instance, solution: Solution) -> tuple[Page, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.html"
        write_html(instance, solution, path)
        page = Page(path.read_text(encoding="utf-8"))
    return page, json.loads(page.data)


def test_lengths_and_times_are_those_of_the_streets() -> None:
    instance = make_instance(
        street(1, 2, 10, metres=850, seconds=61),
        street(2, 3, 20, 3, metres=1100, seconds=100, service_seconds=4000),
        u_turn_penalty=7,
        cost_unit="seconds",
    )
    plan = solved(instance, "ps").solution
    _, data = page_of(instance, plan)
    (route,) = data["routes"]
    assert (route["metres"], route["deadheadMetres"]) == (3900, 2800)
    assert (route["seconds"], route["deadheadSeconds"]) == (4229, 229)
    assert sum(route["times"]) == 4229
    assert sum(route["costs"]) == plan.cost == 67
    # Where nothing is known, nothing is said.
    classical = replace(
        instance, links=tuple(replace(x, **UNKNOWN) for x in instance.links)
    )
    (route,) = page_of(classical, plan)[1]["routes"]
    keys = ("metres", "deadheadMetres", "seconds", "deadheadSeconds", "times")
    assert [route[key] for key in keys] == [None] * 5


def test_village(village: Instance, village_plan: Solution) -> None:
    page, data = page_of(village, village_plan)
    assert page.title == "village: plan"
    assert data["comment"] == village.notice
    assert (data["cost"], data["deadhead"]) == (village_plan.cost, village_plan.deadhead)
    for route, facts in zip(village_plan.routes, data["routes"], strict=True):
        assert (facts["load"], facts["cost"]) == (route.load, route.cost)
        assert sum(facts["costs"]) == route.cost
        served = [code // 4 for code in facts["steps"] if code % 2]
        assert served == [service.link for service in route.services]
    # Serving costs twice the metres here, driving once.
    metres = sum(facts["metres"] for facts in data["routes"])
    assert metres == pytest.approx(
        village_plan.service_cost / 2 + village_plan.deadhead, rel=0.02
    )


def test_nothing_is_fetched(
    tmp_path: Path, village: Instance, village_plan: Solution
) -> None:
    write_html(village, village_plan, tmp_path / "plan.html")
    text = (tmp_path / "plan.html").read_text(encoding="utf-8")
    assert not re.search(r"(?:https?:)?//[\w.-]+\.\w+/", text)
    page = Page(text)
    for _, attributes in page.elements:
        assert "src" not in attributes
        assert attributes.get("href", "data:,") == "data:,"
    assert "{{" not in text.replace(page.data, "")


def test_same_plan_gives_the_same_file(
    tmp_path: Path, village: Instance, village_plan: Solution
) -> None:
    for name in ("a.html", "b.htm"):
        write_html(village, village_plan, tmp_path / name)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.htm").read_bytes()


@pytest.mark.parametrize(
    "text", ["</script><b>", "<!-- <script>", "&lt; & \"'", "{{script}} \\1 \\u003c", "\0"]
)
def test_any_text_stays_text(text: str, village: Instance, village_plan: Solution) -> None:
    links = tuple(replace(link, name=text) for link in village.links)
    instance = replace(village, name=text, comment=text, links=links)
    page, data = page_of(instance, village_plan)
    usual, _ = page_of(village, village_plan)
    assert page.elements == usual.elements
    assert data["name"] == data["comment"] == text
    assert data["names"] == [text]
    assert "<" not in page.data


@settings(max_examples=25)
@given(located_plans())
def test_data_tells_lines_and_paths(drawn: tuple[Instance, Solution]) -> None:
    instance, solution = drawn
    _, data = page_of(instance, solution)
    solution = with_all_paths(instance, solution)
    for route, facts in zip(solution.routes, data["routes"], strict=True):
        assert [
            Step(code // 4, code // 2 % 2 == 1, code % 2 == 1) for code in facts["steps"]
        ] == list(route.path)
        assert sum(facts["costs"]) + instance.route_cost == route.cost
        assert facts["metres"] >= 0
    for link, (name, flags, demand, *numbers) in zip(
        instance.links, data["links"], strict=True
    ):
        unnamed = f"street {link.tail}-{link.head}"
        assert data["names"][name] == (link.name or unnamed)
        assert flags == link.one_way + 2 * link.required + 4 * bool(link.name)
        assert demand == link.demand
        assert all(isinstance(number, int) for number in numbers)
        xs, ys = numbers[::2], numbers[1::2]
        assert len(xs) == len(ys) >= 2
        if link.geometry:
            assert len(xs) == len(link.geometry)
        ends = [(xs[0], ys[0]), (sum(xs), sum(ys))]
        assert all(0 <= number <= 200_000 for end in ends for number in end)


def test_without_coordinates(small: Instance) -> None:
    solution = solved(small, "ps-efficiency", stop=Stop(iterations=5)).solution
    _, data = page_of(small, solution)
    assert data["metresPerUnit"] is None
    assert all(route["metres"] is None for route in data["routes"])
    assert all(route["steps"] for route in data["routes"])


def test_plane_coordinates_have_no_metres(
    village: Instance, village_plan: Solution
) -> None:
    places = tuple((1e5 * x, 1e5 * y) for x, y in village.coordinates)
    links = tuple(replace(link, geometry=()) for link in village.links)
    _, data = page_of(replace(village, coordinates=places, links=links), village_plan)
    assert data["metresPerUnit"] is None


def test_ids_of_street_data_are_no_names() -> None:
    _, data = page_of(make_instance(street(176085815, 1)), NO_ROUTES)
    assert data["names"] == ["unnamed street"]


def test_single_node_and_empty_plan() -> None:
    _, data = page_of(make_instance(), NO_ROUTES)
    assert data["depots"] == [{"name": "Depot", "place": [0, 0], "vehicles": []}]
    assert data["routes"] == []


def test_path_that_jumps(tmp_path: Path, village: Instance) -> None:
    route = Route(services=(), load=0, cost=0, path=steps("9"))
    plan = Solution(routes=(route,), cost=0, deadhead=0, service_cost=0)
    with pytest.raises(SolutionError, match="goes on from node 2"):
        write_html(village, plan, tmp_path / "plan.html")
    assert list(tmp_path.iterdir()) == []


def test_too_many_nodes_to_lay_out(tmp_path: Path) -> None:
    road = make_instance(*(street(i, i + 1) for i in range(5001)))
    with pytest.raises(InstanceError, match="add coordinates"):
        write_html(road, NO_ROUTES, tmp_path / "plan.html")


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"\.html or \.htm, got 'plan\.txt'"):
        check_html(tmp_path / "plan.txt")
    with pytest.raises(FileError, match="create it first"):
        check_html(tmp_path / "nowhere" / "plan.html")
