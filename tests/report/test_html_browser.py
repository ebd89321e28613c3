import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arcfleet.instance.instance import Instance
from arcfleet.report.html_map import write_html
from arcfleet.solution.solution import Route, Solution
from arcfleet.solution.travel import duration_text
from tests.hauling_plans import hauling_plan, hauling_town
from tests.helpers import make_instance
from tests.report.browser import DARK, Browser, at, mouse, on_page, pixels, plan_of

NASTY = "</script><b id=x>\"Q\" & 'R' <!-- {{plan}}"


def visible(browser: Browser) -> list[bool]:
    states = browser.run("return arcfleetMap.routes.map((route) => route.visible)")
    ticks = browser.run(
        "return [...document.querySelectorAll('#routes input')].map((box) => box.checked)"
    )
    assert states == ticks
    return list(states)


def view(browser: Browser) -> dict[str, float]:
    return dict(browser.run("return arcfleetMap.view"))


def test_a_missing_browser_is_a_failure_where_one_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("ARCFLEET_NEEDS_BROWSER", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no chromium"):
        Browser(tmp_path)
    monkeypatch.setenv("ARCFLEET_NEEDS_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="ARCFLEET_NEEDS_BROWSER is 1"):
        Browser(tmp_path)


def test_opens_from_disk_without_errors_or_requests(
    shown: Browser, village: Instance
) -> None:
    assert shown.complaints() == []
    assert shown.run("return performance.getEntriesByType('resource').length") == 0
    assert shown.run("return document.title") == "village: plan"
    assert shown.run("return document.getElementById('comment').textContent") == (
        village.notice
    )
    plan = plan_of(village)
    rows = shown.run(
        "return [...document.querySelectorAll('#routes > li')].map((row) => row.innerText)"
    )
    assert len(rows) == plan.num_routes
    for number, (row, route) in enumerate(zip(rows, plan.routes, strict=True), start=1):
        assert f"Route {number}" in row
        assert f"load {route.load}/1500 · cost {route.cost}" in row
        assert " km" in row
    for colour in shown.run("return arcfleetMap.routes.map((route) => route.colour)"):
        assert pixels(shown, colour) > 100
    assert pixels(shown, "#e3000f") > 100


def test_routes_are_switched(shown: Browser) -> None:
    colours = shown.run("return arcfleetMap.routes.map((route) => route.colour)")
    count = len(colours)
    shown.click("#routes > li:nth-child(2) input")
    assert visible(shown) == [True, False] + [True] * (count - 2)
    assert pixels(shown, colours[1]) == 0
    shown.click("#none")
    assert not any(visible(shown))
    assert all(pixels(shown, colour) == 0 for colour in colours)
    shown.click("#all")
    assert all(visible(shown))
    shown.click("#routes > li:nth-child(3) .only")
    assert visible(shown) == [index == 2 for index in range(count)]
    shown.keys("#routes > li:nth-child(1) input", " ")
    assert visible(shown)[0]
    x, y = shown.run(
        "const box = document.querySelector('#routes label').getBoundingClientRect();"
        "return [box.left + box.width / 2, box.top + box.height / 2]"
    )
    press = [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
    shown.act(mouse(at(x, y), *press, *press))
    assert visible(shown) == [True] + [False] * (count - 1)


def test_work_is_played(shown: Browser) -> None:
    duration = shown.run("return arcfleetMap.state.time")
    assert duration == max(
        sum(route["costs"]) for route in shown.run("return arcfleetMap.plan.routes")
    )
    colour = shown.run("return arcfleetMap.routes[0].colour")
    finished = pixels(shown, colour)
    shown.keys("#speed", "4")
    assert shown.run("return arcfleetMap.state.speed") == 4
    shown.keys("#speed", "\ue013\ue013")  # arrow up, twice
    assert shown.run("return arcfleetMap.state.speed") == 1
    shown.click("#play")
    for _ in range(5):
        shown.frames()
    shown.click("#play")
    stopped = shown.run("return arcfleetMap.state.time")
    assert 0 < stopped < duration
    assert not shown.run("return arcfleetMap.state.playing")
    shown.frames()
    assert shown.run("return arcfleetMap.state.time") == stopped
    # Work that lies ahead is pale.
    shown.run("arcfleetMap.setTime(1)")
    shown.frames()
    assert pixels(shown, colour) < finished / 2
    now = shown.run("return document.querySelector('.now').textContent")
    assert now.startswith(("serves ", "drives "))
    shown.run(
        "const clock = document.getElementById('clock'); clock.value = 1000;"
        "clock.dispatchEvent(new Event('input'))"
    )
    shown.frames()
    assert shown.run("return arcfleetMap.state.time") == duration
    assert pixels(shown, colour) == finished


def test_playing_ends_by_itself(shown: Browser) -> None:
    shown.run("arcfleetMap.setTime(arcfleetMap.state.time - 0.001)")
    shown.click("#play")
    for _ in range(20):
        shown.frames()
    assert not shown.run("return arcfleetMap.state.playing")
    label = shown.run("return document.getElementById('clock-text').textContent")
    assert label.startswith("done at cost ")


def test_map_is_moved_and_zoomed(shown: Browser) -> None:
    start = view(shown)
    shown.keys("#map", "\ue014")  # arrow right
    assert view(shown)["x"] == start["x"] - 60
    shown.keys("#map", "+")
    assert view(shown)["scale"] == pytest.approx(1.4 * start["scale"])
    shown.keys("#map", "0")
    assert view(shown) == start
    shown.click("#zoom-in")
    assert view(shown)["scale"] > start["scale"]
    shown.click("#zoom-out")
    assert view(shown)["scale"] == pytest.approx(start["scale"])
    shown.click("#zoom-all")

    x, y = on_page(shown, 300, 250)
    down, up = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}
    shown.act(mouse(at(x, y), down, at(x + 40, y - 30), up))
    moved = view(shown)
    assert (moved["x"], moved["y"]) == pytest.approx((start["x"] + 40, start["y"] - 30))
    wheel = {"type": "scroll", "x": round(x), "y": round(y), "deltaX": 0, "deltaY": -200}
    shown.act({"type": "wheel", "id": "wheel", "actions": [wheel]})
    zoomed = view(shown)
    assert zoomed["scale"] > moved["scale"]
    # The place under the pointer stays there.
    unit = (300 - moved["x"]) / moved["scale"]
    assert zoomed["scale"] * unit + zoomed["x"] == pytest.approx(300, abs=1)


def test_two_fingers_zoom(shown: Browser) -> None:
    start = view(shown)
    x, y = on_page(shown, 400, 300)
    down, up = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}
    fingers: list[dict[str, object]] = [
        {
            "type": "pointer",
            "id": f"finger{side}",
            "parameters": {"pointerType": "touch"},
            "actions": [at(x + 50 * side, y), down, at(x + 100 * side, y), up],
        }
        for side in (-1, 1)
    ]
    shown.act(*fingers)
    assert view(shown)["scale"] == pytest.approx(2 * start["scale"], rel=0.05)


def test_pointing_at_a_street_tells_what_happens_there(
    browser: Browser, tmp_path: Path, village: Instance
) -> None:
    links = list(village.links)
    served = next(index for index, link in enumerate(links) if link.required)
    links[served] = replace(links[served], name=NASTY)
    instance = replace(village, links=tuple(links), name=NASTY, comment=NASTY)
    write_html(instance, plan_of(instance), tmp_path / "nasty.html")
    browser.open(tmp_path / "nasty.html")
    assert browser.complaints() == []
    assert browser.run("return document.querySelector('b, #x')") is None
    assert browser.run("return document.querySelector('h1').textContent") == NASTY
    assert browser.run("return document.getElementById('comment').textContent") == NASTY
    x, y = browser.run(
        "const { points } = arcfleetMap.links[arguments[0]], { view } = arcfleetMap;"
        "return [0, 1].map((i) =>"
        " view.scale * (0.45 * points[i] + 0.55 * points[i + 2]) + view['xy'[i]])",
        served,
    )
    x, y = on_page(browser, x, y)
    browser.act(mouse(at(x, y)))
    lines = browser.run(
        "return [...document.querySelectorAll('#tip > *')].map((line) => line.textContent)"
    )
    assert lines[0] == NASTY
    assert f"demand {links[served].demand}" in lines[1]
    assert any(" serves it, " in line for line in lines[2:])
    browser.act(mouse(at(*on_page(browser, 3, 3))))
    assert browser.run("return document.getElementById('tip').hidden")


def test_order_of_work_is_listed(shown: Browser, village: Instance) -> None:
    shown.click("#routes details summary")
    services = plan_of(village).routes[0].services
    listed = shown.run(
        "return [...document.querySelectorAll('#routes details li button')]"
        ".map((button) => button.textContent)"
    )
    assert listed == [village.links[service.link].name for service in services]
    shown.click("#routes details li button")
    assert not shown.run("return document.getElementById('tip').hidden")
    assert (
        shown.run("return document.querySelector('#tip strong').textContent") == (listed[0])
    )


def test_phone_and_dark_scheme(shown: Browser) -> None:
    with shown.device(360, 740), shown.media(features=DARK):
        assert shown.run("return document.documentElement.scrollWidth") <= 360
        assert shown.run("return document.getElementById('map').clientHeight") > 250
        assert pixels(shown, "#14181b") > 10_000
        assert pixels(shown, "#ffffff") < 1_000


def test_instance_without_coordinates(
    browser: Browser, tmp_path: Path, small: Instance
) -> None:
    assert not small.coordinates
    write_html(small, plan_of(small), tmp_path / "small.html")
    browser.open(tmp_path / "small.html")
    assert browser.complaints() == []
    assert pixels(browser, browser.run("return arcfleetMap.routes[0].colour")) > 100
    assert browser.run("return document.getElementById('scale').hidden")
    assert " km" not in browser.run("return document.getElementById('routes').innerText")


def test_nothing_to_show(browser: Browser, tmp_path: Path) -> None:
    stay = Route(services=(), load=0, cost=0)
    for routes in ((), (stay,)):
        plan = Solution(routes=routes, cost=0, deadhead=0, service_cost=0)
        write_html(make_instance(), plan, tmp_path / "dot.html")
        browser.open(tmp_path / "dot.html")
        browser.click("#play")
        assert browser.complaints() == []
        assert not browser.run("return arcfleetMap.state.playing")
        assert pixels(browser, "#e3000f") > 100


def test_free_streets_are_played_step_by_step(
    browser: Browser, tmp_path: Path, village: Instance
) -> None:
    costs: Any = dict.fromkeys(("reverse_cost", "service_cost", "reverse_service_cost"))
    links = (replace(link, cost=0, **costs) for link in village.links)
    free = replace(village, links=tuple(links))
    write_html(free, plan_of(free), tmp_path / "free.html")
    browser.open(tmp_path / "free.html")
    assert browser.run("return arcfleetMap.state.time") == max(
        len(route["steps"]) for route in browser.run("return arcfleetMap.plan.routes")
    )
    browser.run("arcfleetMap.setTime(2.5)")
    browser.frames()
    assert browser.complaints() == []


def test_the_clock_counts_time_where_it_is_known(
    browser: Browser, tmp_path: Path, village: Instance
) -> None:
    links = tuple(replace(x, metres=300, seconds=60) for x in village.links)
    timed = replace(village, links=links, u_turn_penalty=5, cost_unit="seconds")
    plan = plan_of(timed)
    write_html(timed, plan, tmp_path / "timed.html")
    browser.open(tmp_path / "timed.html")
    travels = [route.travel for route in plan.routes]
    longest = max(travel.seconds or 0 for travel in travels if travel)
    assert browser.run("return arcfleetMap.state.time") == longest
    clock = "return document.getElementById('clock-text').textContent"
    assert browser.run(clock) == f"done after {duration_text(longest)}"
    browser.run("arcfleetMap.setTime(40)")
    assert browser.run(clock) == f"40 s of {duration_text(longest)}"
    assert plan.travel is not None
    lines = browser.run(
        "return [...document.querySelectorAll('#summary .line')].map((x) => x.textContent)"
    )
    _, driven, without, balance, interleaving = lines
    assert re.fullmatch(r"longest route \d+, shortest \d+, [\d.]+ : 1", balance)
    assert interleaving.endswith("of the streets are nearest to one of another route")
    assert driven.endswith(f"km · {duration_text(plan.travel.seconds or 0)}")
    assert without.startswith("of it ")
    assert without.endswith(" without serving")
    figures = browser.run(
        "return [...document.querySelectorAll('.figures')].map((x) => x.children.length)"
    )
    assert figures == [3] * plan.num_routes
    assert browser.complaints() == []


def test_vehicles_trips_and_visits_of_facilities(
    browser: Browser, village: Instance, tmp_path: Path
) -> None:
    town = hauling_town(village)
    plan = hauling_plan(town, (2, 5, 11))
    write_html(town, plan, tmp_path / "hauling.html")
    browser.open(tmp_path / "hauling.html")
    names = "return [...document.querySelectorAll('.row label')].map((x) => x.innerText)"
    assert [name.split("\n")[-1] for name in browser.run(names)] == [
        "Route 2: north & truck",
        "Route 5: south van",
        "Route 11: north & truck",
    ]
    loads = " in trips of 595, 599 (capacity 600)"
    assert loads in browser.run("return document.querySelector('.figures').textContent")
    assert browser.run("return arcfleetMap.routes.map((x) => x.visits.length)") == [
        len(route.visits) for route in plan.routes
    ]
    # The clock counts what the routes cost, visits included and fixed costs left out.
    assert browser.run("return arcfleetMap.routes.map((x) => x.duration)") == [
        route.cost - town.fleet[route.vehicle].fixed_cost for route in plan.routes
    ]
    browser.run(
        "const visit = arcfleetMap.routes[0].visits[1];"
        "arcfleetMap.setTime((visit.start + visit.end) / 2)"
    )
    now = "return document.querySelector('.now').textContent"
    assert browser.run(now) == "is at Facility 2"
    browser.run("arcfleetMap.setTime(arcfleetMap.routes[0].visits[1].end)")
    assert browser.run(now).endswith(", load 0")
    browser.click("#routes details summary")
    visits = "return [...document.querySelectorAll('li.visit')].map((x) => x.innerText)"
    assert browser.run(visits) == ["Landfill <East>: load 595", "Facility 2: load 599"]
    browser.click("li.visit button")
    tip = browser.run("return document.getElementById('tip').innerText")
    assert tip.startswith("Landfill <East>\ncost of a visit 90\nRoute 2 comes once, load")
    browser.run("arcfleetMap.setTime(1e9); arcfleetMap.showAll(); arcfleetMap.draw()")
    assert pixels(browser, "#1b2228") > 200  # two facilities
    assert pixels(browser, "#e3000f") > 300  # three depots
    assert browser.complaints() == []


def test_lengths_of_the_drawn_lines_are_shown_as_ever(shown: Browser) -> None:
    figures = shown.run("return document.querySelector('.figures').textContent")
    assert re.fullmatch(r"load \d+/\d+ · cost \d+ · [\d.]+ k?m", figures)
    summary = shown.run("return document.querySelector('#summary .line').textContent")
    assert re.fullmatch(
        r"\d+ routes · cost \d+ · \d+ of it without serving · [\d.]+ km", summary
    )
