"""What planners do with the page, from a map to the files for drivers."""

import json
from pathlib import Path

import httpx
import pytest

from arcfleet.report.colours import route_colours
from arcfleet.serve.security import write_token
from tests.report.browser import DARK, Browser
from tests.serve.browser.page import BACKSPACE, DOWN, ENTER, ESCAPE, RIGHT, UP, Page
from tests.serve.running import Json, Server, served, until

#: Finger targets (WCAG 2.2, 2.5.5).
FINGER = 44


def test_the_bundled_map_is_planned_with_two_clicks(page: Page) -> None:
    page.wait("app.maps[0].state === 'ready'")
    page.click("#maps .choice")
    page.wait("app.streets.length > 0")
    assert "815 of 815 streets" in page.text("#served")
    page.choose("#seconds", "2")
    page.click("#start")
    page.wait_for_plan()
    assert "km, " in page.text("#state")
    assert "routes" in page.text("#state")
    assert page.get("app.curve.length") >= 1
    assert page.get("app.curve")[-1]["cost"] == page.get("app.job.result.cost")
    numbers = set(page.routes().values())
    assert page.browser.run(
        "return document.querySelectorAll('#routes .route').length"
    ) == (len(numbers))
    assert page.browser.run("return document.querySelector('#curve .line') !== null")


def test_upload_draw_solve_drag_lock_reoptimise_download(
    page: Page, town_file: Path, server: Server
) -> None:
    page.send_file("#upload-file", town_file)
    page.wait("app.streets.length > 0 && !arcfleetPage.app.upload")
    assert page.text("#title") == "village"
    everything = page.get("app.servedStreets.length")

    # An area around most of the map, by the pointer.
    page.click("[data-tool=area]")
    corners = [(0.02, 0.1), (0.9, 0.1), (0.9, 0.72), (0.02, 0.72)]
    for x, y in corners:
        page.press_at(page.on_map(x, y))
    page.press_at(page.on_map(*corners[0]))
    assert page.get("app.setup.areas.length") == 1
    inside = page.get("app.servedStreets.length")
    assert 0 < inside < everything

    # A class less, a street less by name, a single street less by a click.
    page.click("#kinds [data-key=tertiary]")
    rows = page.get("app.servedStreets.length")
    assert 0 < rows < inside
    page.click("#kinds [data-key=tertiary]")
    page.choose("#name-search", "column 2")
    page.click("#names-found [data-key='false Column 2']")
    assert page.get("app.servedStreets.length") < inside
    page.click("[data-tool=pick]")
    before = page.get("app.servedStreets.map((one) => one.id)")
    page.press_at(page.on_street(before[0], "streets"))
    assert page.get("app.servedStreets.map((one) => one.id)") == before[1:]
    page.click("#tool-done")

    # A depot by a click, and a capacity.
    page.click("#tab-fleet")
    page.click("#add-depot")
    page.press_at(page.on_map(0.5, 0.4))
    assert len(page.get("app.setup.depots")) == 1
    page.choose("#capacity", "1000")
    first = page.start()
    assert page.get("app.scene.streets") == len(before) - 1
    routes = page.routes()
    assert len(set(routes.values())) >= 3

    # A street is chosen, then dragged onto a street of another route.
    link, target = next(
        (one, other) for one in routes for other in routes if routes[one] != routes[other]
    )
    page.press_at(page.on_street(link))
    assert page.get("app.chosen") == link
    page.drag(page.on_street(link), page.on_street(target))
    second = page.wait_for_plan(first)
    moved = page.routes()
    assert moved[link] == routes[target]

    # Locked routes stay as they are.
    locked = moved[link]
    page.click(f"[data-key='lock {locked}']")
    third = page.start()
    after = page.routes()
    assert {x for x, route in after.items() if route == locked} == {
        x for x, route in moved.items() if route == locked
    }
    asked = server.get(f"/jobs/{third}")["request"]
    assert asked["lock"] == [locked]
    assert asked["start"] == second

    # All files come, each with a name.
    links = page.browser.run(
        "return [...document.querySelectorAll('#downloads a')].map((one) => one.href)"
    )
    assert {link.rpartition("=")[2] for link in links} >= {
        *("gpx", "sheets", "geojson", "xlsx", "csv", "json"),
    }
    for link in links:
        answer = httpx.get(link, timeout=60)
        assert answer.status_code == 200
        assert len(answer.content) > 100
        if not link.endswith(("=geojson", "=html")):
            assert "filename=" in answer.headers["content-disposition"]


def test_a_street_is_dragged_in_the_list(planned: Page, solved_job: Json) -> None:
    routes = planned.routes()
    link, route = next(iter(routes.items()))
    other = next(one for one in routes.values() if one != route)
    planned.click(f"[data-key='route {route}']")
    row, target = f"#routes [data-link='{link}']", f"[data-route='{other}'] .row"
    planned.middle_of(target)  # both are scrolled into sight
    start = planned.middle_of(row)
    planned.drag(start, planned.middle_of(target))
    planned.wait_for_plan(solved_job["id"])
    assert planned.routes()[link] == other


def test_the_map_is_moved_where_no_street_is_chosen(planned: Page) -> None:
    start = planned.get("map.leaflet.getCenter().lng")
    link = next(iter(planned.routes()))
    x, y = planned.on_street(link)
    planned.drag((x, y), (x + 80, y))
    assert planned.get("map.leaflet.getCenter().lng") < start
    assert planned.get("app.job.request.edit") is None


def test_streets_leave_the_plan_and_come_back(planned: Page, solved_job: Json) -> None:
    link = next(iter(planned.routes()))
    planned.press_at(planned.on_street(link))
    assert "on route" in planned.text("#chosen-facts")
    planned.click("#chosen-exclude")
    second = planned.wait_for_plan(solved_job["id"])
    assert link not in planned.routes()
    assert "driven on only" in planned.text("#chosen-facts")
    planned.click("#chosen-exclude")
    planned.wait_for_plan(second)
    assert link in planned.routes()


def test_undo_and_redo(planned: Page, solved_job: Json) -> None:
    first = solved_job["id"]
    routes = planned.routes()
    planned.click(f"[data-key='lock {min(routes.values())}']")
    link = next(iter(routes))
    planned.press_at(planned.on_street(link))
    planned.keys("x")
    second = planned.wait_for_plan(first)
    assert link not in planned.routes()

    planned.keys("z", control=True)
    assert planned.wait_for_plan(second) == first
    assert planned.routes() == routes
    assert planned.get("app.history.present.locks") == [min(routes.values())]
    planned.click("#undo")
    assert planned.get("app.history.present.locks") == []
    assert planned.browser.run("return document.getElementById('undo').disabled")
    planned.click("#redo")
    planned.keys("y", control=True)
    assert planned.wait_for_plan(first) == second
    assert link not in planned.routes()
    assert planned.browser.run("return document.getElementById('redo').disabled")


def test_undo_of_the_setup(page: Page, town_map: Json) -> None:
    page.open(f"#map={town_map['id']}")
    page.wait("app.streets.length > 0")
    served = page.get("app.servedStreets.length")
    page.click("#kinds [data-key=residential]")
    assert page.get("app.servedStreets.length") < served
    page.keys("z", control=True)
    assert page.get("app.servedStreets.length") == served
    assert page.browser.run(
        "return document.querySelector('#kinds [data-key=residential]').checked"
    )


def test_keyboard_only(page: Page, town_map: Json) -> None:
    page.tab_to(f"[data-key='{town_map['id']}']")
    page.keys(ENTER)
    page.wait("app.streets.length > 0")
    page.tab_to("[data-tool=area]")
    page.keys(ENTER)
    # The tool has moved the focus to the map; Enter sets corners at its middle.
    page.keys(*[RIGHT] * 3, *[UP] * 3)
    _settle(page)
    corners = [(DOWN, 5), ("\ue012", 5), (UP, 5)]
    page.keys(ENTER)
    for key, times in corners:
        page.keys(*[key] * times)
        _settle(page)
        page.keys(ENTER)
    assert page.get("map.draft.corners.length") == 4
    page.keys(BACKSPACE)
    assert page.get("map.draft.corners.length") == 3
    page.tab_to("#tool-done")
    page.keys(ENTER)
    assert page.get("app.setup.areas.length") == 1
    page.keys("z", control=True)
    assert page.get("app.setup.areas.length") == 0

    page.tab_to("#tab-streets")
    page.keys(RIGHT)
    assert page.shown("#panel-fleet")
    page.tab_to("#capacity")
    page.keys(*"1000")
    page.offer_a_short_search()
    page.tab_to("#seconds")
    page.keys(UP, UP)  # from 10 s, past 2 s
    page.tab_to("#start")
    page.keys(ENTER)
    first = page.wait_for_plan()

    page.tab_to("[data-key^='route ']")
    page.keys("/")
    page.keys(*"row 1")
    page.tab_to("#plan-found .street")
    page.keys(ENTER)
    link = page.get("app.chosen")
    route = page.routes()[link]
    page.keys("m")
    assert page.browser.run("return document.getElementById('move-dialog').open")
    wanted = int(page.browser.run("return document.getElementById('move-route').value"))
    assert wanted != route
    page.tab_to("#move-ok")
    page.keys(ENTER)
    second = page.wait_for_plan(first)
    assert page.routes()[link] == wanted

    page.keys("l")
    assert page.get("app.history.present.locks") == [wanted]
    page.tab_to("#start")
    page.keys(ENTER)
    page.wait_for_plan(second)
    page.keys(ESCAPE)
    assert page.get("app.chosen") is None
    page.keys("?")
    assert page.browser.run("return document.getElementById('help-dialog').open")
    page.keys(ESCAPE)
    assert not page.browser.run("return document.getElementById('help-dialog').open")


def _settle(page: Page) -> None:
    """Wait until the map stands still."""
    places: list[object] = [None]
    while places[-1] != (now := page.get("map.leaflet.getCenter().toString()")):
        places.append(now)
        for _ in range(4):
            page.browser.frames()


@pytest.mark.parametrize(("width", "height"), [(768, 1024), (1024, 768)])
def test_a_tablet(
    page: Page, town_map: Json, solved_job: Json, width: int, height: int
) -> None:
    with page.browser.device(width, height):
        page.browser.devtools("Emulation.setTouchEmulationEnabled", enabled=True)
        try:
            page.open(f"#map={town_map['id']}")
            page.wait("app.streets.length > 0")
            _assert_fits(page)
            served = page.get("app.servedStreets.length")
            page.click("[data-tool=box]")
            page.press_at(page.on_map(0.1, 0.2), touch=True)
            page.press_at(page.on_map(0.95, 0.6), touch=True)
            assert 0 < page.get("app.servedStreets.length") < served
            page.click("#clear-area")
            page.click("[data-tool=box]")
            page.drag(page.on_map(0.1, 0.2), page.on_map(0.95, 0.6), touch=True)
            assert 0 < page.get("app.servedStreets.length") < served

            page.open(f"#job={solved_job['id']}")
            page.wait_for_plan()
            _assert_fits(page)
            routes = page.routes()
            link, target = next(
                (one, other)
                for one in routes
                for other in routes
                if routes[one] != routes[other]
            )
            page.press_at(page.on_street(link), touch=True)
            assert page.get("app.chosen") == link
            page.drag(page.on_street(link), page.on_street(target), touch=True)
            page.wait_for_plan(solved_job["id"])
            assert page.routes()[link] == routes[target]
        finally:
            page.browser.devtools("Emulation.setTouchEmulationEnabled", enabled=False)


def _assert_fits(page: Page) -> None:
    """Nothing is cut off at the side, and fingers hit every button."""
    small = page.browser.run(
        """
        return [...document.querySelectorAll('button, select, a.button, input')]
          .filter((one) => one.offsetParent && !one.matches('.unseen, [type=checkbox]'))
          .map((one) => [one.id || one.textContent, one.getBoundingClientRect()])
          .filter(([, box]) => box.width < arguments[0] || box.height < arguments[0]
            || box.left < 0 || box.right > innerWidth)
          .map(([name]) => name);
        """,
        FINGER,
    )
    assert small == []
    assert page.browser.run("return document.documentElement.scrollWidth <= innerWidth")


def test_a_bad_upload_is_refused_with_a_sentence(page: Page, tmp_path: Path) -> None:
    bad = tmp_path / "broken.geojson"
    bad.write_text('{"type": "FeatureCollection", "features": [')
    page.send_file("#upload-file", bad)
    page.wait("app.error && !arcfleetPage.app.upload")
    assert page.shown("#error")
    assert "expected GeoJSON, found a mistake" in page.text("#error")
    assert page.browser.run("return document.getElementById('error').role") == "alert"
    page.click("#error button")
    assert not page.shown("#error")


def test_impossible_rules_are_refused_with_a_sentence(page: Page, town_map: Json) -> None:
    page.open(f"#map={town_map['id']}")
    page.wait("app.streets.length > 0")
    page.click("#tab-fleet")
    page.choose("#shift", "8 apples")
    page.click("#start")
    page.wait("app.error && !arcfleetPage.app.busy")
    assert "apples" in page.text("#error")
    assert page.get("app.job") is None
    page.complaints()  # The browser, too, tells of the answer 422.


def test_reload_comes_back_to_the_plan(planned: Page, solved_job: Json) -> None:
    routes = planned.routes()
    planned.reload()
    assert planned.wait_for_plan() == solved_job["id"]
    assert planned.routes() == routes
    assert planned.get("app.setup.capacity") == 1000
    assert planned.get("app.setup.kinds") == ["residential"]


def test_stop_keeps_the_best_plan(page: Page, town_map: Json) -> None:
    page.open(f"#map={town_map['id']}")
    page.wait("app.streets.length > 0")
    page.choose("#seconds", "3600")
    page.click("#start")
    page.wait("app.legs.length > 0")
    assert page.get("app.job.state") == "running"
    page.click("#stop")
    page.wait_for_plan()
    assert "stopped by you" in page.text("#state")
    assert page.get("app.job.state") == "done"


def test_compared_with_earlier_plans(
    planned: Page, solved_job: Json, server: Server, tmp_path: Path
) -> None:
    link = next(iter(planned.routes()))
    planned.press_at(planned.on_street(link))
    planned.keys("m")
    planned.click("#move-ok")
    planned.wait_for_plan(solved_job["id"])
    planned.click("#tab-compare")
    planned.wait("app.jobs.length > 0")
    planned.choose("#compare-with", solved_job["id"])
    planned.wait("app.changes")
    moved = planned.get("app.changes.moved.map((one) => one.link)")
    assert link in moved
    assert planned.browser.run("return document.querySelectorAll('#moved li').length") >= 1
    href = planned.browser.run(
        "return document.querySelector('#compare-result a.button').href"
    )
    answer = httpx.get(href)
    assert answer.status_code == 200
    assert "sandbox" in answer.headers["content-security-policy"]

    # The same by a file that was downloaded.
    plan = server.client.get(
        f"/v1/jobs/{solved_job['id']}/plan", params={"format": "json"}
    ).content
    file = tmp_path / "yesterday.json"
    file.write_bytes(plan)
    planned.send_file("#compare-file", file)
    planned.wait(f"app.changes && arcfleetPage.app.comparedWith !== '{solved_job['id']}'")
    assert link in planned.get("app.changes.moved.map((one) => one.link)")

    file.write_text(json.dumps({"no": "plan"}))
    planned.send_file("#compare-file", file)
    planned.wait("app.error")
    planned.complaints()  # The browser, too, tells of the answer 422.


def test_history_lists_plans_and_opens_them(
    page: Page, solved_job: Json, server: Server
) -> None:
    page.click("#tab-jobs")
    page.wait("app.jobs.length > 0")
    while not page.shown(f"#jobs [data-key='{solved_job['id']}']"):
        page.click("#jobs-more")
    page.click(f"#jobs [data-key='{solved_job['id']}']")
    assert page.wait_for_plan() == solved_job["id"]
    assert page.routes() == server.routes(solved_job)


def test_routes_have_the_colours_of_the_other_maps(page: Page) -> None:
    numbers = list(range(1, 41))
    light = page.browser.run("return arguments[0].map(arcfleetPage.routeColour)", numbers)
    assert light == route_colours(40)
    with page.browser.media(features=DARK):
        dark = page.browser.run(
            "return arguments[0].map(arcfleetPage.routeColour)", numbers
        )
    assert dark == route_colours(40, "dark")


def test_the_plan_is_drawn(planned: Page) -> None:
    colours = planned.browser.run(
        """
        const canvas = document.querySelector('#map canvas');
        const { data } = canvas.getContext('2d').getImageData(
          0, 0, canvas.width, canvas.height);
        const seen = new Set();
        for (let i = 0; i < data.length; i += 4)
          if (data[i + 3] === 255) seen.add(
            '#' + [0, 1, 2].map((k) => data[i + k].toString(16).padStart(2, '0')).join(''));
        return [...seen];
        """
    )
    routes = set(planned.routes().values())
    assert {route_colours(max(routes))[route - 1] for route in routes} <= set(colours)
    assert "#e3000f" in colours


def test_a_map_is_dropped_on_the_page(page: Page, town_file: Path) -> None:
    page.browser.run(
        """
        const files = new DataTransfer();
        files.items.add(new File([arguments[0]], 'dropped.geojson'));
        const on = (type) => document.body.dispatchEvent(
          new DragEvent(type, { dataTransfer: files, bubbles: true, cancelable: true }));
        on('dragover');
        window.wasShown = !document.getElementById('drop').hidden;
        on('drop');
        """,
        town_file.read_text(),
    )
    assert page.get("app.upload") or page.get("app.streets.length")
    assert page.browser.run("return window.wasShown")
    page.wait("app.streets.length > 0 && !arcfleetPage.app.upload")
    assert page.text("#title") == "dropped"
    assert not page.shown("#drop")


def test_the_whole_setup_reaches_the_server_and_comes_back(
    page: Page, town_map: Json, server: Server
) -> None:
    page.open(f"#map={town_map['id']}")
    page.wait("app.streets.length > 0")
    page.click("#tab-fleet")
    for field, value in {
        "#cost": "time",
        "#demand": "number",
        "#demand-number": "3",
        "#capacity": "30",
        "#shift": "2 h",
        "#balance": "0.5",
        "#compactness": "2",
        "#u-turns": "allowed",
        "#u-turn-penalty": "7",
        "#left": "5",
        "#traffic": "left",
    }.items():
        page.choose(field, value)
    for box in ("#both-sides", "#fewest-routes", "#restrictions"):
        page.click(box)
    page.click("#add-depot")
    page.press_at(page.on_map(0.3, 0.5))
    page.click("#add-depot")
    page.press_at(page.on_map(0.7, 0.5))
    page.click("#add-facility")
    page.press_at(page.on_map(0.5, 0.3))
    page.choose("#facilities [data-key='facility 0']", "Tip")
    page.choose("#facilities [data-key='facility cost 0']", "60")
    page.click("#add-vehicle")
    page.click("#add-vehicle")
    page.choose("#vehicles [data-key='Name 0']", "lorry")
    page.choose("#vehicles [data-key='Capacity 0']", "40")
    page.choose("#vehicles [data-key='Number 0']", "9")
    page.choose("#vehicles [data-key='depot 0']", "1")
    page.choose("#vehicles [data-key='Cost of use 1']", "100")
    before = page.get("app.setup")
    page.start()
    asked = page.get("app.scene.request")
    assert (asked["demand"], asked["cost"], asked["both_sides"]) == (3, "time", True)
    assert asked["depot"] == before["depots"][0]
    assert asked["operations"]["facilities"] == [
        {"place": before["facilities"][0]["place"], "cost": 60, "name": "Tip"}
    ]
    lorry, other = asked["operations"]["vehicles"]
    assert (lorry["name"], lorry["capacity"], lorry["count"]) == ("lorry", 40, 9)
    assert lorry["depot"] == before["depots"][1]
    assert other["fixed_cost"] == 100
    assert asked["turns"]["traffic"] == "left"
    page.reload()
    page.wait_for_plan()
    after = page.get("app.setup")
    assert [{**one, "end": None} for one in before["vehicles"]] == after["vehicles"]
    assert {**before, "vehicles": []} == {**after, "vehicles": []}


def test_a_plan_that_cannot_be_is_explained(page: Page, town_map: Json) -> None:
    page.open(f"#map={town_map['id']}")
    page.wait("app.streets.length > 0")
    page.click("#tab-fleet")
    page.choose("#fleet-limit", "1")
    page.choose("#capacity", "500")
    page.click("#start")
    page.wait("app.error && !arcfleetPage.app.busy && !arcfleetPage.app.isRunning")
    assert page.text("#error p").strip()
    page.complaints()  # The browser, too, tells of the answer 422.


def test_a_token_is_asked_for_once(browser: Browser, tmp_path: Path) -> None:
    token = write_token(tmp_path / "token")
    with served(tmp_path / "data", "--token-file", str(tmp_path / "token")) as server:
        browser.visit(server.address)
        browser.keys("input[name=token]", token)
        browser.run("document.querySelector('form').submit()")
        until(lambda: bool(browser.run("return document.getElementById('maps') !== null")))
        page = Page(browser, server)
        page.wait("app.maps.length > 0 && arcfleetPage.app.maps[0].state === 'ready'")
        page.click("#maps .choice")
        page.wait("app.streets.length > 0")
        page.start()
        assert page.routes()
        assert page.complaints() == []
