from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from arcfleet import Stop, read, solve
from arcfleet.instance.instance import Instance
from arcfleet.report.html_map import write_html
from arcfleet.solution.solution import Route, Solution
from tests.integration.browser import Browser

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
VILLAGE = read(ROOT / "examples" / "village.json")
NASTY = "</script><b id=x>\"Q\" & 'R' <!-- {{plan}}"


def plan_of(instance: Instance) -> Solution:
    return solve(instance, "ps-efficiency", stop=Stop(iterations=50)).solution


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    driven = Browser(tmp_path_factory.mktemp("profile"))
    yield driven
    driven.close()


@pytest.fixture(scope="module")
def village_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("pages") / "village.html"
    write_html(VILLAGE, plan_of(VILLAGE), page)
    return page


@pytest.fixture
def village(browser: Browser, village_page: Path) -> Browser:
    browser.open(village_page)
    return browser


def pixels(browser: Browser, colour: str) -> int:
    """How many pixels of the map have exactly this colour."""
    return int(
        browser.run(
            """
            const canvas = document.getElementById("map");
            const wanted = [1, 3, 5].map((i) => parseInt(arguments[0].slice(i, i + 2), 16));
            const { data } = canvas.getContext("2d").getImageData(
              0, 0, canvas.width, canvas.height);
            let count = 0;
            for (let i = 0; i < data.length; i += 4)
              count += data[i] === wanted[0] && data[i + 1] === wanted[1]
                && data[i + 2] === wanted[2];
            return count;
            """,
            colour,
        )
    )


def visible(browser: Browser) -> list[bool]:
    states = browser.run("return arcfleetMap.routes.map((route) => route.visible)")
    ticks = browser.run(
        "return [...document.querySelectorAll('#routes input')].map((box) => box.checked)"
    )
    assert states == ticks
    return list(states)


def mouse(*actions: dict[str, object]) -> dict[str, object]:
    return {"type": "pointer", "id": "mouse", "actions": list(actions)}


def at(x: float, y: float, **more: object) -> dict[str, object]:
    return {"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0, **more}


def on_page(browser: Browser, x: float, y: float) -> tuple[float, float]:
    """From places on the map to places in the window."""
    left, top = browser.run(
        "const box = document.getElementById('map').getBoundingClientRect();"
        "return [box.left, box.top]"
    )
    return x + left, y + top


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


def test_opens_from_disk_without_errors_or_requests(village: Browser) -> None:
    assert village.complaints() == []
    assert village.run("return performance.getEntriesByType('resource').length") == 0
    assert village.run("return document.title") == "village: plan"
    assert village.run("return document.getElementById('comment').textContent") == (
        VILLAGE.notice
    )
    plan = plan_of(VILLAGE)
    rows = village.run(
        "return [...document.querySelectorAll('#routes > li')].map((row) => row.innerText)"
    )
    assert len(rows) == plan.num_routes
    for number, (row, route) in enumerate(zip(rows, plan.routes, strict=True), start=1):
        assert f"Route {number}" in row
        assert f"load {route.load}/1500 · cost {route.cost}" in row
        assert " km" in row
    for colour in village.run("return arcfleetMap.routes.map((route) => route.colour)"):
        assert pixels(village, colour) > 100
    assert pixels(village, "#e3000f") > 100


def test_routes_are_switched(village: Browser) -> None:
    colours = village.run("return arcfleetMap.routes.map((route) => route.colour)")
    count = len(colours)
    village.click("#routes > li:nth-child(2) input")
    assert visible(village) == [True, False] + [True] * (count - 2)
    assert pixels(village, colours[1]) == 0
    village.click("#none")
    assert not any(visible(village))
    assert all(pixels(village, colour) == 0 for colour in colours)
    village.click("#all")
    assert all(visible(village))
    village.click("#routes > li:nth-child(3) .only")
    assert visible(village) == [index == 2 for index in range(count)]
    village.keys("#routes > li:nth-child(1) input", " ")
    assert visible(village)[0]
    x, y = village.run(
        "const box = document.querySelector('#routes label').getBoundingClientRect();"
        "return [box.left + box.width / 2, box.top + box.height / 2]"
    )
    press = [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
    village.act(mouse(at(x, y), *press, *press))
    assert visible(village) == [True] + [False] * (count - 1)


def test_work_is_played(village: Browser) -> None:
    duration = village.run("return arcfleetMap.state.time")
    assert duration == max(
        sum(route["costs"]) for route in village.run("return arcfleetMap.plan.routes")
    )
    colour = village.run("return arcfleetMap.routes[0].colour")
    finished = pixels(village, colour)
    village.keys("#speed", "4")
    assert village.run("return arcfleetMap.state.speed") == 4
    village.keys("#speed", "\ue013\ue013")  # arrow up, twice
    assert village.run("return arcfleetMap.state.speed") == 1
    village.click("#play")
    for _ in range(5):
        village.frames()
    village.click("#play")
    stopped = village.run("return arcfleetMap.state.time")
    assert 0 < stopped < duration
    assert not village.run("return arcfleetMap.state.playing")
    village.frames()
    assert village.run("return arcfleetMap.state.time") == stopped
    # Work that lies ahead is pale.
    village.run("arcfleetMap.setTime(1)")
    village.frames()
    assert pixels(village, colour) < finished / 2
    now = village.run("return document.querySelector('.now').textContent")
    assert now.startswith(("serves ", "drives "))
    village.run(
        "const clock = document.getElementById('clock'); clock.value = 1000;"
        "clock.dispatchEvent(new Event('input'))"
    )
    village.frames()
    assert village.run("return arcfleetMap.state.time") == duration
    assert pixels(village, colour) == finished


def test_playing_ends_by_itself(village: Browser) -> None:
    village.run("arcfleetMap.setTime(arcfleetMap.state.time - 0.001)")
    village.click("#play")
    for _ in range(20):
        village.frames()
    assert not village.run("return arcfleetMap.state.playing")
    label = village.run("return document.getElementById('clock-text').textContent")
    assert label.startswith("done at cost ")


def test_map_is_moved_and_zoomed(village: Browser) -> None:
    start = view(village)
    village.keys("#map", "\ue014")  # arrow right
    assert view(village)["x"] == start["x"] - 60
    village.keys("#map", "+")
    assert view(village)["scale"] == pytest.approx(1.4 * start["scale"])
    village.keys("#map", "0")
    assert view(village) == start
    village.click("#zoom-in")
    assert view(village)["scale"] > start["scale"]
    village.click("#zoom-out")
    assert view(village)["scale"] == pytest.approx(start["scale"])
    village.click("#zoom-all")

    x, y = on_page(village, 300, 250)
    down, up = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}
    village.act(mouse(at(x, y), down, at(x + 40, y - 30), up))
    moved = view(village)
    assert (moved["x"], moved["y"]) == pytest.approx((start["x"] + 40, start["y"] - 30))
    wheel = {"type": "scroll", "x": round(x), "y": round(y), "deltaX": 0, "deltaY": -200}
    village.act({"type": "wheel", "id": "wheel", "actions": [wheel]})
    zoomed = view(village)
    assert zoomed["scale"] > moved["scale"]
    # The place under the pointer stays there.
    unit = (300 - moved["x"]) / moved["scale"]
    assert zoomed["scale"] * unit + zoomed["x"] == pytest.approx(300, abs=1)


def test_two_fingers_zoom(village: Browser) -> None:
    start = view(village)
    x, y = on_page(village, 400, 300)
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
    village.act(*fingers)
    assert view(village)["scale"] == pytest.approx(2 * start["scale"], rel=0.05)


def test_pointing_at_a_street_tells_what_happens_there(
    browser: Browser, tmp_path: Path
) -> None:
    links = list(VILLAGE.links)
    served = next(index for index, link in enumerate(links) if link.required)
    links[served] = replace(links[served], name=NASTY)
    instance = replace(VILLAGE, links=tuple(links), name=NASTY, comment=NASTY)
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


def test_order_of_work_is_listed(village: Browser) -> None:
    village.click("#routes details summary")
    services = plan_of(VILLAGE).routes[0].services
    listed = village.run(
        "return [...document.querySelectorAll('#routes details li button')]"
        ".map((button) => button.textContent)"
    )
    assert listed == [VILLAGE.links[service.link].name for service in services]
    village.click("#routes details li button")
    assert not village.run("return document.getElementById('tip').hidden")
    assert (
        village.run("return document.querySelector('#tip strong').textContent")
        == (listed[0])
    )


def test_phone_and_dark_scheme(village: Browser) -> None:
    try:
        village.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=360,
            height=740,
            deviceScaleFactor=2,
            mobile=True,
        )
        village.devtools(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark"}],
        )
        assert village.run("return document.documentElement.scrollWidth") <= 360
        assert village.run("return document.getElementById('map').clientHeight") > 250
        assert pixels(village, "#14181b") > 10_000
        assert pixels(village, "#ffffff") < 1_000
    finally:
        village.devtools("Emulation.clearDeviceMetricsOverride")
        village.devtools("Emulation.setEmulatedMedia", features=[])


def test_instance_without_coordinates(browser: Browser, tmp_path: Path) -> None:
    instance = read(ROOT / "tests" / "data" / "small.dat")
    assert not instance.coordinates
    write_html(instance, plan_of(instance), tmp_path / "small.html")
    browser.open(tmp_path / "small.html")
    assert browser.complaints() == []
    assert pixels(browser, browser.run("return arcfleetMap.routes[0].colour")) > 100
    assert browser.run("return document.getElementById('scale').hidden")
    assert " km" not in browser.run("return document.getElementById('routes').innerText")


def test_nothing_to_show(browser: Browser, tmp_path: Path) -> None:
    dot = Instance(name="dot", nodes=(1,), links=(), depot=1, capacity=1)
    stay = Route(services=(), load=0, cost=0)
    for routes in ((), (stay,)):
        plan = Solution(routes=routes, cost=0, deadhead=0, service_cost=0)
        write_html(dot, plan, tmp_path / "dot.html")
        browser.open(tmp_path / "dot.html")
        browser.click("#play")
        assert browser.complaints() == []
        assert not browser.run("return arcfleetMap.state.playing")
        assert pixels(browser, "#e3000f") > 100


def test_free_streets_are_played_step_by_step(browser: Browser, tmp_path: Path) -> None:
    links = tuple(
        replace(
            link,
            cost=0,
            reverse_cost=None,
            service_cost=None if not link.required else 0,
            reverse_service_cost=None,
        )
        for link in VILLAGE.links
    )
    free = replace(VILLAGE, links=links)
    write_html(free, plan_of(free), tmp_path / "free.html")
    browser.open(tmp_path / "free.html")
    assert browser.run("return arcfleetMap.state.time") == max(
        len(route["steps"]) for route in browser.run("return arcfleetMap.plan.routes")
    )
    browser.run("arcfleetMap.setTime(2.5)")
    browser.frames()
    assert browser.complaints() == []
