"""Two plans on one map."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from arcfleet import Instance, Solution, Stop, check, diff, exclude, write_diff_html
from arcfleet.errors import OptionError, SolutionError
from arcfleet.solution.drive import with_all_paths
from tests.cli.running import VILLAGE, arcfleet, one_sentence, succeeded
from tests.helpers import make_instance, refused, solved, street
from tests.located_instances import located_plans
from tests.report.browser import Browser, at, mouse, on_page, pixels, plan_of


def data_of(path: Path) -> dict[str, Any]:
    found = re.search(
        r'id="plan">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL
    )
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


@pytest.fixture(scope="module")
def today(village: Instance) -> Instance:
    return exclude(village, ["Mill Lane"])


@pytest.fixture(scope="module")
def after(today: Instance) -> Solution:
    return solved(today, "ps-efficiency", stop=Stop(iterations=20), seed=5).solution


@pytest.fixture(scope="module")
def page(
    tmp_path_factory: pytest.TempPathFactory,
    village: Instance,
    today: Instance,
    after: Solution,
) -> Path:
    path = tmp_path_factory.mktemp("pages") / "diff.html"
    write_diff_html(today, plan_of(village), after, path, village)
    return path


@pytest.fixture
def compared(browser: Browser, page: Path) -> Browser:
    browser.open(page)
    return browser


# --- The data -----------------------------------------------------------------------------


def test_the_page_tells_what_diff_tells(
    village: Instance, today: Instance, after: Solution, page: Path
) -> None:
    before = plan_of(village)
    found = diff(today, before, after, village)
    data = data_of(page)
    assert (data["before"]["cost"], data["cost"]) == (before.cost, after.cost)
    assert data["changes"]["streets"] == found.streets
    for kind in ("moved", "removed", "added"):
        told = [
            (x["before"], x["after"], len(x["linksBefore"]) or len(x["linksAfter"]))
            for x in data["changes"][kind]
        ]
        groups: dict[tuple[str, int | None, int | None], int] = {}
        for one in getattr(found, kind):
            key = (one.name, one.before, one.after)
            groups[key] = groups.get(key, 0) + 1
        assert told == [(*key[1:], count) for key, count in groups.items()]
    assert sum(len(x["linksBefore"]) for x in data["changes"]["removed"]) == 5
    # A number has the same colour in both plans.
    colours = {x["number"]: x["colour"] for x in data["routes"]}
    for route in data["before"]["routes"]:
        assert colours.setdefault(route["number"], route["colour"]) == route["colour"]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(located_plans())
def test_paths_of_both_plans_are_followed_on_the_page(
    tmp_path: Path, located: tuple[Instance, Solution]
) -> None:
    instance, plan = located
    # Names tell parallel streets of the same line apart.
    named = tuple(replace(x, name=f"{i} Street") for i, x in enumerate(instance.links))
    instance = replace(instance, links=named)
    # The same streets, listed backwards, some of them from head to tail. What they cost
    # does not matter: the later plan is empty.
    links = [
        link
        if link.one_way or i % 2
        else replace(link, tail=link.head, head=link.tail, geometry=link.geometry[::-1])
        for i, link in enumerate(instance.links)
    ][::-1]
    later = replace(instance, links=tuple(links))
    path = tmp_path / "diff.html"
    after = replace(plan, routes=(), cost=0, deadhead=0, service_cost=0)
    write_diff_html(later, plan, after, path, instance)
    data = data_of(path)
    assert len(data["links"]) == len(links)
    globe = data["globe"]

    def on_page(place: tuple[float, float]) -> tuple[float, float]:
        return (
            (place[0] - globe["longitude"]) / globe["perX"],
            (globe["latitude"] - place[1]) / globe["perY"],
        )

    places = dict(zip(instance.nodes, instance.coordinates, strict=True))
    routes = with_all_paths(instance, plan).routes
    for route, facts in zip(routes, data["before"]["routes"], strict=True):
        assert len(facts["steps"]) == len(route.path)
        for step, code in zip(route.path, facts["steps"], strict=True):
            link = instance.links[step.link]
            line = link.geometry or (places[link.tail], places[link.head])
            _, _, _, *numbers = data["links"][code // 4]
            ends = [numbers[:2], [sum(numbers[::2]), sum(numbers[1::2])]]
            driven = line[::-1] if step.reverse else line
            if link.tail == link.head and not link.geometry:
                continue  # a loop is drawn as a circle
            drawn = ends[::-1] if code // 2 % 2 else ends
            assert drawn[0] == pytest.approx(on_page(driven[0]), abs=1.5)
            assert drawn[1] == pytest.approx(on_page(driven[-1]), abs=1.5)
            assert bool(code % 2) is step.serves


def test_streets_that_are_gone_are_drawn_as_they_were(tmp_path: Path) -> None:
    old = make_instance(
        street(1, 2, 10, 3, name="Old Road"), street(1, 3, 10, 3, name="High Street")
    )
    new = make_instance(
        street(1, 3, 10, 5, name="High Street"), street(3, 4, 10, 3, name="New Road")
    )
    before, after = solved(old, "ps").solution, solved(new, "ps").solution
    path = tmp_path / "diff.html"
    write_diff_html(new, before, after, path, old)
    data = data_of(path)
    named = [(data["names"][x[0]], x[2]) for x in data["links"]]
    assert named == [
        ("High Street", 5),
        ("New Road", 3),
        ("Old Road", 3),
        ("High Street", 3),  # with another demand
    ]
    (removed,) = data["changes"]["removed"]
    assert (removed["name"], removed["linksBefore"]) == ("Old Road", [2])
    (added,) = data["changes"]["added"]
    assert (added["name"], added["linksAfter"]) == ("New Road", [1])


def test_a_number_that_is_another_junction_now_is_drawn_where_it_was(
    tmp_path: Path,
) -> None:
    places = ((0.0, 0.0), (0.01, 0.0), (0.01, 0.01))
    old = make_instance(street(1, 2, 10, 3, name="a"), coordinates=places[:2])
    moved = (places[2], places[0], places[1])
    new = make_instance(
        *(street(2, 3, 10, 3, name="a"), street(3, 1, 10, 3, name="b")),
        coordinates=moved,
    )
    path = tmp_path / "diff.html"
    write_diff_html(new, solved(old, "ps").solution, solved(new, "ps").solution, path, old)
    data = data_of(path)
    assert data["depots"][0]["place"] != data["before"]["depots"][0]["place"]
    # Everything is on one grid: what is at (0, 0) today is the depot of before.
    (_, _, _, *line), *_ = data["links"]
    assert data["before"]["depots"][0]["place"] == line[:2]


def test_what_cannot_be_compared(
    tmp_path: Path, village: Instance, small: Instance, village_plan: Solution
) -> None:
    with refused(SolutionError, "old_instance"):
        write_diff_html(small, village_plan, plan_of(small), tmp_path / "diff.html")
    with refused(OptionError, "expected an HTML file ending in"):
        write_diff_html(village, village_plan, village_plan, tmp_path / "diff.png")
    assert list(tmp_path.iterdir()) == []


# --- In the browser -----------------------------------------------------------------------


def test_both_plans_are_seen_side_by_side_and_move_together(compared: Browser) -> None:
    assert compared.complaints() == []
    assert compared.run("return document.title") == "village: two plans"
    width = compared.run("return document.getElementById('map').clientWidth")
    assert compared.run("return arcfleetMap.view.width") == width / 2
    assert pixels(compared, "#e3000f") > 300  # a depot in each
    halves = """
        const canvas = document.getElementById("map"), half = canvas.width / 2;
        const pen = canvas.getContext("2d");
        const depot = (x) => {
          const { data, width } = pen.getImageData(x, 0, half, canvas.height);
          let sum = 0, count = 0;
          for (let i = 0; i < data.length; i += 4)
            if (data[i] === 0xe3 && data[i + 1] === 0 && data[i + 2] === 0x0f) {
              sum += (i / 4) % width;
              count++;
            }
          return Math.round(sum / count);
        };
        return [depot(0), depot(half)];
    """
    left, right = compared.run(halves)
    assert left == right
    x, y = on_page(compared, 0.75 * width, 300)
    down, up = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}
    compared.act(mouse(at(x, y), down, at(x + 40, y), up))
    compared.run("arcfleetMap.draw()")
    assert compared.run(halves) == [left + 40, right + 40]


def test_one_plan_at_a_time(compared: Browser) -> None:
    width = compared.run("return document.getElementById('map').clientWidth")
    for side in ("0", "1"):
        compared.click(f"#sides button[value='{side}']")
        assert compared.run("return arcfleetMap.view.width") == width
        pressed = "return document.querySelector('#sides [aria-pressed=true]').value"
        assert compared.run(pressed) == side
    compared.click("#sides button[value='both']")
    assert compared.run("return arcfleetMap.view.width") == width / 2


def test_changes_are_listed_and_a_click_goes_there(
    compared: Browser, village: Instance, today: Instance, after: Solution
) -> None:
    found = diff(today, plan_of(village), after, village)
    texts = compared.run(
        "return [...document.querySelectorAll('#changes li')].map((x) => x.innerText)"
    )
    groups = {(x.name, x.before, x.after) for x in found.moved}
    groups |= {(x.name, x.before, x.after) for x in (*found.removed, *found.added)}
    assert len(texts) == len(groups) > 1
    assert any(
        re.match(r"Mill Lane\n\d pieces?, no longer served: was on", x) for x in texts
    )
    summary = compared.run("return document.getElementById('summary').innerText")
    assert f"{len(found.moved)} of {found.streets} street pieces moved" in summary
    compared.click("#none")
    compared.click("#changes button")
    marked = compared.run("return arcfleetMap.state.marked.map((x) => x.name)")
    assert marked
    assert texts[0].startswith(marked[0])
    inside = compared.run(
        "const { view, state } = arcfleetMap; return state.marked.every(({ box }) =>"
        " view.scale * box[0] + view.x >= 0 && view.scale * box[2] + view.x <= view.width)"
    )
    assert inside
    # Its routes are shown, no matter what was.
    numbers = set(map(int, re.findall(r"(?<=route )\d+|(?<=→ )\d+", texts[0])))
    visible = compared.run(
        "return arcfleetMap.plans.flatMap((x) => x.routes)"
        ".filter((x) => x.visible).map((x) => x.number)"
    )
    assert set(visible) == numbers


def test_a_street_tells_its_route_in_both_plans(
    compared: Browser, today: Instance, after: Solution, village: Instance
) -> None:
    compared.keys("#search", "mill lane")
    texts = compared.run(
        "return [...document.querySelectorAll('#found .line')].map((x) => x.textContent)"
    )
    assert texts
    assert all(text.startswith("Before: route ") for text in texts)
    rows = compared.run(
        "return [...document.querySelectorAll('.figures')].map((x) => x.innerText)"
    )
    numbers = sorted({*plan_of(village).numbers, *after.numbers})
    assert len(rows) == len(numbers)
    assert all(row.startswith("Before: ") and "\nAfter: " in row for row in rows)


def test_on_a_phone_plans_are_one_above_the_other(compared: Browser) -> None:
    with compared.device(360, 740):
        height = compared.run("return document.getElementById('map').clientHeight")
        width = compared.run("return document.getElementById('map').clientWidth")
        below = height > width
        size = compared.run("return [arcfleetMap.view.width, arcfleetMap.view.height]")
        assert size == ([width, height / 2] if below else [width / 2, height])
        assert compared.run("return document.documentElement.scrollWidth") <= 360
        small = compared.run(
            "return [...document.querySelectorAll('#sides button, #changes button')]"
            ".filter((x) => x.offsetHeight < 44 || x.offsetWidth < 44).length"
        )
        assert small == 0


def test_plans_that_do_not_differ(
    browser: Browser, village: Instance, village_plan: Solution, tmp_path: Path
) -> None:
    write_diff_html(village, village_plan, village_plan, tmp_path / "same.html")
    browser.open(tmp_path / "same.html")
    changes = browser.run("return document.getElementById('changes').innerText")
    assert changes == "Every street is on its route as before."
    browser.click("#play")
    browser.click("#play")
    assert browser.complaints() == []


# --- The command line ---------------------------------------------------------------------


def test_the_command_writes_the_page(tmp_path: Path, village: Instance) -> None:
    plans = [tmp_path / "one.json", tmp_path / "two.json"]
    for seed, plan in enumerate(plans, start=1):
        succeeded(
            *("solve", VILLAGE, "--method", "ps-efficiency", "--iterations", 5),
            *("--seed", seed, "--out", plan, "--quiet"),
        )
    page = tmp_path / "diff.html"
    succeeded("diff", VILLAGE, *plans, "--html", page)
    data = data_of(page)
    assert len(data["before"]["routes"]) > 1
    line = one_sentence(arcfleet("diff", VILLAGE, *plans, "--html", plans[0]))
    assert "expected different files for the before and --html" in line
    line = one_sentence(arcfleet("diff", VILLAGE, *plans, "--html", tmp_path / "a.txt"))
    assert "expected an HTML file" in line


def test_both_plans_of_these_tests_are_sound(
    village: Instance, today: Instance, after: Solution
) -> None:
    assert check(village, plan_of(village)).ok
    assert check(today, after).ok
