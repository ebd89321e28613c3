"""A base map below the plan, from a server and from a file."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import pytest
from matplotlib import image

from arcfleet.instance.instance import Instance
from arcfleet.report.base_map import tile_at
from arcfleet.report.html_map import write_html
from tests.report.browser import DARK, Browser, plan_of
from tests.report.pmtiles_files import pmtiles, png

GREEN = "#00ff00"


class Server(ThreadingHTTPServer):
    """Green tiles, as many as asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/{{z}}/{{x}}/{{y}}.png"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        data = png(GREEN, 256) if self.server.status == 200 else b""
        self.send_response(self.server.status)
        self.send_header("Content-Type", "image/png")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def greenish(browser: Browser) -> float:
    """Share of the map that is green, faded as base maps are."""
    left, top, width, height = browser.run(
        "const box = document.getElementById('map').getBoundingClientRect();"
        "return [box.left, box.top, box.width, box.height]"
    )
    pixels = image.imread(BytesIO(browser.screenshot()), format="png")
    shown = pixels[int(top) : int(top + height), int(left) : int(left + width), :3]
    red, green, blue = (shown[:, :, i] for i in range(3))
    return float(((green > 0.95) & (red < 0.8) & (blue < 0.8)).mean())


READY = (
    "const tiles = [...arcfleetMap.tileImages.values()];"
    "return tiles.length > 0 && tiles.every((tile) => tile.ready)"
)


def test_tiles_of_a_server_lie_below_the_plan(
    browser: Browser, village: Instance, server: Server, tmp_path: Path
) -> None:
    page = tmp_path / "plan.html"
    write_html(village, plan_of(village), page, base_map=server.url)
    browser.open(page)
    browser.wait(READY)
    browser.frames()
    assert greenish(browser) > 0.6
    # Those around the plan, at one zoom.
    zooms = {path.split("/")[1] for path in server.asked}
    assert len(zooms) == 1
    zoom = int(zooms.pop())
    for longitude, latitude in village.coordinates:
        x, y = tile_at(longitude, latitude, zoom)
        assert f"/{zoom}/{x}/{y}.png" in server.asked
    assert len(set(server.asked)) == len(server.asked)
    credit = "return document.getElementById('credit').textContent"
    assert browser.run(credit) == "Base map: 127.0.0.1"
    browser.click("#zoom-in")
    browser.click("#zoom-in")
    browser.wait(READY)
    assert {int(path.split("/")[1]) for path in server.asked} > {zoom}
    assert browser.complaints() == []


def test_places_of_the_plan_lie_on_their_tiles(
    browser: Browser, village: Instance, server: Server, tmp_path: Path
) -> None:
    page = tmp_path / "plan.html"
    write_html(village, plan_of(village), page, base_map=server.url)
    browser.open(page)
    for longitude, latitude in village.coordinates[:5]:
        tile, there, back = browser.run(
            """
            const [longitude, latitude] = arguments, side = 2 ** 15;
            const column = columnAt(longitude, side), row = rowAt(latitude, side);
            return [[column, row].map(Math.floor), [xAt(longitude), yAt(latitude)],
                    [xAt(longitudeOf(column, side)), yAt(latitudeOf(row, side))]];
            """,
            longitude,
            latitude,
        )
        assert tuple(tile) == tile_at(longitude, latitude, 15)
        assert there == pytest.approx(back, abs=0.01)
        ends = browser.run("return arcfleetMap.links.map((x) => [...x.points.slice(0, 2)])")
        assert any(end == pytest.approx(there, abs=1) for end in ends)


def test_sheets_are_printed_with_their_tiles(
    browser: Browser, village: Instance, server: Server, tmp_path: Path
) -> None:
    page = tmp_path / "plan.html"
    write_html(village, plan_of(village), page, base_map=server.url)
    browser.open(page)
    browser.wait(READY)
    before = len(server.asked)
    browser.run("window.print = () => { window.printed = true; }")
    # Sheets need tiles of another zoom than a map that is far away.
    browser.run("arcfleetMap.zoom(0.01); arcfleetMap.draw()")
    browser.click("#print")
    browser.wait("return window.printed")
    browser.wait(READY)
    zooms = {path.split("/")[1] for path in server.asked[before:]}
    assert len(zooms) > 1
    with browser.media(media="print"):
        browser.run("window.dispatchEvent(new Event('beforeprint'))")
        browser.frames()
        pixels = image.imread(BytesIO(browser.screenshot()), format="png")[:, :, :3]
        faded = (pixels[:, :, 1] > 0.95) & (pixels[:, :, 0] < 0.8) & (pixels[:, :, 2] < 0.8)
        assert faded.mean() > 0.2
    browser.run("window.dispatchEvent(new Event('afterprint'))")


def test_a_server_that_has_no_tiles_leaves_the_plan(
    browser: Browser, village: Instance, server: Server, tmp_path: Path
) -> None:
    server.status = 404
    page = tmp_path / "plan.html"
    write_html(village, plan_of(village), page, base_map=server.url)
    browser.open(page)
    browser.frames()
    assert greenish(browser) == 0
    assert browser.run("return arcfleetMap.routes.every((x) => x.arrows > 0)")
    # The browser tells of each tile; the page itself has no error.
    assert all("404" in text for text in browser.complaints())


def test_tiles_of_a_file_are_part_of_the_page(
    browser: Browser, village: Instance, tmp_path: Path
) -> None:
    xs, ys = zip(*village.coordinates, strict=True)
    left, top = tile_at(min(xs) - 0.05, max(ys) + 0.05, 14)
    right, bottom = tile_at(max(xs) + 0.05, min(ys) - 0.05, 14)
    tiles = {
        (14, x, y): png(GREEN)
        for x in range(left, right + 1)
        for y in range(top, bottom + 1)
    }
    file, page = tmp_path / "town.pmtiles", tmp_path / "plan.html"
    file.write_bytes(pmtiles(tiles, attribution="© <b>town</b>"))
    write_html(village, plan_of(village), page, base_map=file)
    file.unlink()
    browser.open(page)
    with browser.media(features=DARK):
        browser.wait("return [...arcfleetMap.tileImages.values()].some((x) => x.ready)")
        browser.frames()
        assert greenish(browser) > 0.6
        # Tiles are light, and so is the page.
        paper = "return getComputedStyle(document.body).backgroundColor"
        assert browser.run(paper) == "rgb(255, 255, 255)"
        # Beside the middle of straight streets that are served: white, for contrast.
        beside = browser.run(
            """
            const { view, routes, zoom, draw } = arcfleetMap;
            zoom(3);
            draw();
            const pen = document.getElementById("map").getContext("2d");
            const straight = routes.flatMap((route) => route.steps)
              .filter(({ serves, link }) => serves && link.points.length === 4);
            return straight.map(({ link: { points: [x, y, u, v] } }) => {
              const [px, py] = [0.3 * x + 0.7 * u, 0.3 * y + 0.7 * v];
              const away = 3.5 / Math.hypot(u - x, v - y);
              const place = [view.scale * px + view.x - away * (v - y),
                             view.scale * py + view.y + away * (u - x)];
              return [place, [-1, 1].map((side) => Math.min(...pen.getImageData(
                view.ratio * (view.scale * px + view.x - side * away * (v - y)),
                view.ratio * (view.scale * py + view.y + side * away * (u - x)), 1, 1)
                .data.slice(0, 3)))];
            }).filter(([[px, py]]) =>
              px > 0 && py > 0 && px < view.width && py < view.height)
              .map(([, sides]) => Math.max(...sides));
            """
        )
        assert len(beside) > 3
        # Names and marks may cover one or the other.
        assert sum(light > 225 for light in beside) > len(beside) / 2
    assert browser.run("return document.getElementById('credit').textContent") == "© town"
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    assert browser.complaints() == []
