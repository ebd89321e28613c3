"""What the map is asked: which vehicle, where, which way, how full."""

import math
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from arcfleet.instance.instance import Instance
from arcfleet.report.html_map import write_html
from tests.hauling_plans import hauling_plan, hauling_town
from tests.helpers import make_instance, street
from tests.report.browser import Browser, pixels, plan_of

FOUND = "return [...document.querySelectorAll('#found li')].map((x) => x.innerText)"


def view(browser: Browser) -> dict[str, float]:
    return dict(browser.run("return arcfleetMap.view"))


def clear(browser: Browser) -> None:
    browser.keys("#search", "\ue00c")  # escape


def in_sight(browser: Browser, script: str) -> bool:
    """Whether the boxes of some links lie within the pane."""
    return bool(
        browser.run(
            f"const {{ view, links, routes }} = arcfleetMap; const some = {script};"
            "return some.length > 0 && some.every(({ box }) =>"
            "  view.scale * box[0] + view.x >= 0 && view.scale * box[1] + view.y >= 0 &&"
            "  view.scale * box[2] + view.x <= view.width &&"
            "  view.scale * box[3] + view.y <= view.height)"
        )
    )


# --- Search -------------------------------------------------------------------------------


def test_a_street_is_found_whatever_its_spelling(
    browser: Browser, tmp_path: Path, village: Instance
) -> None:
    plan = plan_of(village)
    service = plan.routes[1].services[2]
    links = list(village.links)
    links[service.link] = replace(links[service.link], name="Große  Rue de l'Église")
    town = replace(village, links=tuple(links))
    write_html(town, plan, tmp_path / "town.html")
    browser.open(tmp_path / "town.html")
    for text in ("große rue", "GROSSE RUE DE L'EGLISE", "église", "eglise", "RUE de"):
        browser.keys("#search", text)
        (answer,) = browser.run(FOUND)
        name, where = answer.split("\n")[-2:]
        assert name == "Große Rue de l'Église"  # spaces as a browser shows them
        count = len(plan.routes[1].services)
        assert re.fullmatch(rf"Route 2, stop 3 of {count}, at cost \d+", where)
        clear(browser)
        assert browser.run(FOUND) == []
    browser.keys("#search", "no such street")
    assert browser.run(FOUND) == ["No street of this name."]
    assert browser.complaints() == []


def test_answers_are_those_of_the_plan(shown: Browser, village: Instance) -> None:
    plan = plan_of(village)
    name = village.links[plan.routes[0].services[0].link].name
    expected = {}
    for number, route in enumerate(plan.routes, start=1):
        orders = [
            order
            for order, service in enumerate(route.services, start=1)
            if village.links[service.link].name == name
        ]
        if orders:
            first, last = orders[0], orders[-1]
            stops = f"stop {first}" if first == last else f"stops {first} to {last}"
            expected[number] = f"Route {number}, {stops} of {len(route.services)}, at cost"
    shown.keys("#search", name)
    answers = [answer for answer in shown.run(FOUND) if f"{name}\n" in answer]
    assert len(answers) == len(expected)
    for text, answer in zip(expected.values(), answers, strict=True):
        assert text in answer


def test_a_click_goes_to_the_street_even_if_its_route_is_hidden(shown: Browser) -> None:
    before = view(shown)
    shown.click("#none")
    shown.keys("#search", "mill lane")
    shown.click("#found button")
    assert view(shown)["scale"] > before["scale"]
    assert in_sight(shown, "arcfleetMap.state.marked")
    assert set(shown.run("return arcfleetMap.state.marked.map((x) => x.name)")) == {
        "Mill Lane"
    }
    assert shown.run("return arcfleetMap.routes.filter((x) => x.visible).length") == 1
    clear(shown)
    assert shown.run("return arcfleetMap.state.marked") == []
    shown.keys("#search", "mill lane\ue007")  # enter takes the first answer
    assert in_sight(shown, "arcfleetMap.state.marked")


def test_times_are_those_of_the_day_once_it_is_known_when_vehicles_leave(
    browser: Browser, tmp_path: Path, village: Instance
) -> None:
    links = tuple(replace(x, metres=300, seconds=60) for x in village.links)
    timed = replace(village, links=links, cost_unit="seconds")
    write_html(timed, plan_of(timed), tmp_path / "timed.html")
    browser.open(tmp_path / "timed.html")
    browser.keys("#search", "mill lane")
    (first, *_) = browser.run(FOUND)
    found = re.search(r"after (?:(\d+) min|(\d+) s)$", first)
    assert found
    browser.run(
        "const leave = document.getElementById('leave'); leave.value = '06:55';"
        "leave.dispatchEvent(new Event('input'))"
    )
    start = browser.run(
        "const { route, step } = arcfleetMap.links.filter((x) => x.name === 'Mill Lane')"
        ".flatMap((x) => x.visits).filter((x) => x.step.serves)"
        ".sort((a, b) => a.route.number - b.route.number"
        "  || a.step.start - b.step.start)[0];"
        "return step.start"
    )
    minutes = 6 * 60 + 55 + math.floor(start / 60 + 0.5)
    (first, *_) = browser.run(FOUND)
    assert first.endswith(f"at {minutes // 60:02}:{minutes % 60:02}")


# --- The map ------------------------------------------------------------------------------


def test_only_this_route_is_shown_and_zoomed_to(shown: Browser) -> None:
    whole = view(shown)
    shown.click("#routes > li:nth-child(2) .only")
    assert view(shown)["scale"] >= whole["scale"]
    assert in_sight(shown, "routes[1].steps.map((step) => step.link)")
    # As close as it goes: along one side it fills the map.
    box = shown.run(
        "const boxes = arcfleetMap.routes[1].steps.map((step) => step.link.box);"
        "return [0, 1, 2, 3].map((i) =>"
        " Math[i < 2 ? 'min' : 'max'](...boxes.map((box) => box[i])))"
    )
    now = view(shown)
    across = now["width"] - 28 - 64 - now["scale"] * (box[2] - box[0])  # beside buttons
    down = now["height"] - 2 * 28 - now["scale"] * (box[3] - box[1])
    assert min(across, down) == pytest.approx(0, abs=1)
    shown.click("#all")
    assert view(shown) == whole


def test_every_route_has_arrows_at_every_zoom(shown: Browser) -> None:
    for factor in (0.01, 3, 3, 3, 3):
        shown.run("arcfleetMap.zoom(arguments[0]); arcfleetMap.draw()", factor)
        missing = shown.run(
            """
            const { routes, view } = arcfleetMap;
            const inside = (x, y) =>
              x >= 0 && y >= 0 && x <= view.width && y <= view.height;
            // Routes with a straight street whose middle is in sight.
            const seen = routes.filter((route) => route.steps.some(({ serves, link }) => {
              if (!serves || link.points.length !== 4) return false;
              const [x, y, u, v] = link.points;
              return inside(view.scale * (x + u) / 2 + view.x,
                            view.scale * (y + v) / 2 + view.y);
            }));
            return seen.filter((route) => !(route.arrows > 0)).map((route) => route.number);
            """
        )
        assert missing == []
    shown.run("arcfleetMap.showAll(); arcfleetMap.draw()")
    assert min(shown.run("return arcfleetMap.routes.map((x) => x.arrows)")) > 1


def test_many_routes_in_one_place_have_their_arrows(
    browser: Browser, many_routes: Path
) -> None:
    browser.open(many_routes)
    for factor in (1, 0.01):
        browser.run("arcfleetMap.zoom(arguments[0]); arcfleetMap.draw()", factor)
        counts = browser.run("return arcfleetMap.routes.map((x) => x.arrows)")
        assert len(counts) == 60
        assert min(counts) >= 1


def test_names_stand_on_the_map_and_never_on_each_other(
    browser: Browser, tmp_path: Path
) -> None:
    # Forty streets so close that there is no space for all names at first.
    rungs = range(1, 41)
    town = make_instance(
        *(street(2 * i - 1, 2 * i, 9, 1, name=f"Close Street {i}") for i in rungs),
        *(street(2 * i - 1, 2 * i + 1) for i in rungs[:-1]),
        coordinates=tuple((5 + 0.003 * j, 51 + 0.00001 * i) for i in rungs for j in (0, 1)),
        capacity=20,
    )
    names = {link.name for link in town.links if link.name}
    write_html(town, plan_of(town), tmp_path / "close.html")
    browser.open(tmp_path / "close.html")
    seen: list[int] = []
    for factor in (1, 1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 1.2):
        browser.run("arcfleetMap.zoom(arguments[0]); arcfleetMap.draw()", factor)
        labels: list[dict[str, Any]] = browser.run(
            "return arcfleetMap.state.labels.map(({ spots, ...rest }) => rest)"
        )
        seen.append(len(labels))
        assert {label["name"] for label in labels} <= names
        for i, one in enumerate(labels):
            for other in labels[i + 1 :]:
                assert not overlap(one, other), (one, other)
    assert max(seen) >= 10
    assert min(seen) < len(names)


def overlap(one: dict[str, float], other: dict[str, float], height: float = 8) -> bool:
    """Whether two turned rectangles overlap: no side of either separates them."""

    def corners(label: dict[str, float]) -> list[tuple[float, float]]:
        half = label["half"] - 3
        return [
            (
                label["x"] + i * half * label["ux"] - j * height / 2 * label["uy"],
                label["y"] + i * half * label["uy"] + j * height / 2 * label["ux"],
            )
            for i in (-1, 1)
            for j in (-1, 1)
        ]

    for label in (one, other):
        for x, y in ((label["ux"], label["uy"]), (-label["uy"], label["ux"])):
            a, b = ([x * p + y * q for p, q in corners(each)] for each in (one, other))
            if max(a) <= min(b) or max(b) <= min(a):
                return False
    return True


def test_streets_without_a_name_have_no_label(
    browser: Browser, tmp_path: Path, village: Instance
) -> None:
    plain = replace(village, links=tuple(replace(x, name="") for x in village.links))
    write_html(plain, plan_of(plain), tmp_path / "plain.html")
    browser.open(tmp_path / "plain.html")
    browser.run("arcfleetMap.zoom(2); arcfleetMap.draw()")
    assert browser.run("return arcfleetMap.state.labels") == []


def test_every_route_has_a_mark_where_it_begins(shown: Browser) -> None:
    numbers = shown.run("return arcfleetMap.state.starts.map((x) => x.number)")
    assert numbers == shown.run("return arcfleetMap.routes.map((x) => x.number)")
    shown.click("#routes > li:nth-child(1) .only")
    colour = shown.run("return arcfleetMap.routes[0].colour")
    away, ring, inner = shown.run(
        """
        const { routes: [{ first }], view, state: { starts: [{ x, y }] } } = arcfleetMap;
        const { points } = first.link, end = first.reverse ? points.length - 2 : 0;
        const away = Math.hypot(view.scale * points[end] + view.x - x,
                                view.scale * points[end + 1] + view.y - y);
        const pen = document.getElementById("map").getContext("2d");
        const hex = (px, py) => "#" + [...pen.getImageData(px, py, 1, 1).data].slice(0, 3)
          .map((part) => part.toString(16).padStart(2, "0")).join("");
        const around = (r) => [...Array(24).keys()].map((i) => hex(
          view.ratio * (x + r * Math.cos(i / 24 * 6.283)),
          view.ratio * (y + r * Math.sin(i / 24 * 6.283))));
        return [away, around(10), around(7.5)];
        """
    )
    # A ring close to the beginning of the first street.
    assert away < 23
    assert sum(pixel == colour for pixel in ring) > 12
    assert sum(pixel == "#ffffff" for pixel in inner) > 12


# --- Load ---------------------------------------------------------------------------------


def test_the_load_is_drawn_along_the_route_and_falls_at_facilities(
    browser: Browser, village: Instance, tmp_path: Path
) -> None:
    town = hauling_town(village)
    plan = hauling_plan(town, (2, 5, 11))
    write_html(town, plan, tmp_path / "hauling.html")
    browser.open(tmp_path / "hauling.html")
    assert browser.run("return document.querySelectorAll('svg.load').length") == 0
    browser.click("#routes details summary")
    label = browser.run(
        "return document.querySelector('svg.load').getAttribute('aria-label')"
    )
    assert label == "Load along route 2: up to 599 of 600, emptied 2 times"
    visits = browser.run(
        "return [...document.querySelectorAll('svg.load .visit')].map((x) => x.textContent)"
    )
    assert [re.sub(r", at cost \d+$", "", text) for text in visits] == [
        "Landfill <East>: load 595",
        "Facility 2: load 599",
    ]
    d = browser.run(
        "return document.querySelector('svg.load path[fill=none]').getAttribute('d')"
    )
    corners = [tuple(map(float, pair)) for pair in re.findall(r"([\d.]+),([\d.]+)", d)]
    xs, ys = zip(*corners, strict=True)
    assert list(xs) == sorted(xs)
    empty, full = max(ys), min(ys)
    assert empty == ys[0] == ys[-1]
    # The vehicle is empty at the end of each visit.
    whole, visits = browser.run(
        "const [route] = arcfleetMap.routes;"
        "return [route.duration, route.visits.map(({ start, end }) => [start, end])]"
    )
    for start, end in visits:
        times = [6 + 288 * time / whole for time in (start, end)]
        loads = [
            [y for x, y in corners if x == pytest.approx(time, abs=0.06)] for time in times
        ]
        assert min(loads[0]) < empty - 1
        assert empty in loads[1]
    # It comes down to nothing from each of the two peaks.
    falls = [a for a, b in pairwise(ys) if b == empty and a < empty - 1]
    assert len(falls) == 2
    assert (empty - full) / (empty - falls[0]) == pytest.approx(599 / 595, rel=0.01)
    assert browser.complaints() == []


# --- Own position -------------------------------------------------------------------------


def test_own_position_is_shown_where_allowed(shown: Browser, village: Instance) -> None:
    longitude, latitude = village.coordinates[5]
    place = {"longitude": longitude, "latitude": latitude, "accuracy": 30}
    try:
        shown.devtools("Browser.grantPermissions", permissions=["geolocation"])
        shown.devtools("Emulation.setGeolocationOverride", **place)
        assert not shown.run("return document.getElementById('here').hidden")
        shown.click("#here")
        here = shown.wait("return arcfleetMap.state.here")
        node = shown.run("return arcfleetMap.links.map((x) => [...x.points.slice(0, 2)])")
        tails = [link.tail for link in village.links]
        expected = node[tails.index(village.nodes[5])]
        assert here["place"] == pytest.approx(expected, abs=2)
        shown.run("arcfleetMap.draw()")
        assert pixels(shown, "#0059c9") > 50
        shown.click("#here")
        assert shown.run("return arcfleetMap.state.here") is None
        # Elsewhere.
        shown.devtools(
            "Emulation.setGeolocationOverride", **(place | {"latitude": latitude + 5})
        )
        shown.click("#here")
        tip = shown.wait("return document.getElementById('tip').textContent")
        assert tip == "You are outside of this map."
        assert shown.complaints() == []
    finally:
        shown.devtools("Emulation.clearGeolocationOverride")
        shown.devtools("Browser.resetPermissions")


def test_a_refused_position_is_no_error(shown: Browser) -> None:
    shown.devtools(
        "Browser.setPermission", permission={"name": "geolocation"}, setting="denied"
    )
    try:
        shown.click("#here")
        tip = shown.wait("return document.getElementById('tip').textContent")
        assert tip == "Your position is not known to this page."
        assert shown.run("return arcfleetMap.state.here") is None
        assert shown.run("return document.getElementById('here').ariaPressed") == "false"
    finally:
        shown.devtools("Browser.resetPermissions")


def test_no_button_for_the_position_off_the_globe(
    browser: Browser, small: Instance, tmp_path: Path
) -> None:
    write_html(small, plan_of(small), tmp_path / "small.html")
    browser.open(tmp_path / "small.html")
    assert browser.run("return document.getElementById('here').hidden")
