"""Make the pictures of maps and of the web app: `python -m tools.screenshots [NAME ...]`.

Needs Chromium with chromedriver, and the street maps in the folder that ARCFLEET_SHARED
names. Pictures go to `docs/images`. Look at each before you commit it.
"""

from __future__ import annotations

import io
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

import arcfleet
from arcfleet.bench.machine import shared_folder
from arcfleet.cli.main import main as run_arcfleet
from tests.report.browser import Browser, at, mouse
from tests.serve.browser.page import PRESS, RELEASE, Page
from tests.serve.running import served, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

IMAGES = Path(__file__).parents[1] / "docs" / "images"
LARGEST = 250_000
_DESKTOP = {"width": 1200, "height": 760, "deviceScaleFactor": 1, "mobile": False}
_TABLET = {"width": 768, "height": 1024, "deviceScaleFactor": 1, "mobile": True}
_PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
_PAPER = {"width": 750, "height": 670, "deviceScaleFactor": 1.2, "mobile": False}
_YARDS = """
[[vehicle]]
name = "lorry"
depot = [8.8554, 48.5959]
capacity = 4000
count = 3

[[vehicle]]
name = "small lorry"
depot = [8.8831, 48.5954]
capacity = 2500
count = 3
"""
_LEAVE = """
const leave = document.getElementById("leave");
leave.value = "06:30";
leave.dispatchEvent(new Event("input"));
"""


def main() -> None:
    """Make the pictures, or those named."""
    chosen = sys.argv[1:] or list(PICTURES)
    unknown = set(chosen) - set(PICTURES)
    if unknown:
        sys.exit(f"expected some of {', '.join(PICTURES)}, got {', '.join(unknown)}")
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(Path(folder) / "profile")
        try:
            for name in chosen:
                made = PICTURES[name](browser, Path(folder))
                _save(name, made or browser.screenshot())
                browser.devtools("Emulation.clearDeviceMetricsOverride")
                browser.devtools("Emulation.setEmulatedMedia", media="")
        finally:
            browser.close()


def _save(name: str, data: bytes) -> None:
    """Write a screenshot with 256 colours: lines on a plain ground need no more."""
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    picture = picture.quantize(256, kmeans=2, dither=Image.Dither.NONE)
    path = IMAGES / f"{name}.png"
    picture.save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path.name}: {picture.width} x {picture.height}, {size / 1000:.0f} kB")
    if size > LARGEST:
        sys.exit(f"expected at most {LARGEST} bytes, got {size} in {path}")


def _arcfleet(*arguments: object) -> None:
    code = run_arcfleet([str(argument) for argument in arguments])
    if code:
        sys.exit(f"arcfleet {arguments[0]} ended with {code}")


def _raw(name: str) -> Path:
    shared = shared_folder()
    if shared is None:
        sys.exit("no street maps; set ARCFLEET_SHARED")
    return shared / "maps" / "raw_osm" / name


def _herrenberg(folder: Path) -> Path:
    """Plan a town with two yards and two landfills, as in the guide on operations."""
    page, scene, yards = (folder / f"herrenberg.{x}" for x in ("html", "json", "toml"))
    if not page.exists():
        yards.write_text(_YARDS)
        _arcfleet(
            *("scene", _raw("herrenberg-minimal.osm.pbf"), "--name", "Herrenberg"),
            *("--cost", "time", "--capacity", 4000, "--shift", "3h", "-o", scene),
            *("--depot", "8.8554,48.5959", "--vehicles", yards),
            *("--facility", "8.8704,48.6050=600", "--facility", "8.8848,48.5867=600"),
        )
        _arcfleet("solve", scene, "--iterations", 20_000, "--seed", 1, "--html", page)
    return page


def _portland(folder: Path) -> Path:
    page, scene = folder / "portland.html", folder / "portland.json"
    _arcfleet(
        *("scene", _raw("portland-central-filtered.osm.pbf"), "--name", "Portland"),
        *("--around", "-122.676,45.521,700", "--margin", 300, "--cost", "time"),
        *("--capacity", 6000, "-o", scene),
    )
    _arcfleet("solve", scene, "--iterations", 20_000, "--seed", 1, "--html", page)
    return page


def _denver(folder: Path) -> Path:
    page = folder / "denver.html"
    _arcfleet("solve", "example:denver", "--iterations", 20_000, "--html", page)
    return page


# --- The pictures -------------------------------------------------------------------------


def _open(browser: Browser, page: Path, screen: Mapping[str, object]) -> None:
    browser.devtools("Emulation.setDeviceMetricsOverride", **screen)
    browser.open(page)


def _overview(browser: Browser, folder: Path) -> None:
    _open(browser, _denver(folder), _DESKTOP)


def _desktop(browser: Browser, folder: Path) -> None:
    _open(browser, _herrenberg(folder), _DESKTOP)
    browser.click("#routes > li:nth-child(2) .only")
    browser.click("#routes > li:nth-child(2) summary")
    browser.run("document.querySelector('#routes > li:nth-child(2)').scrollIntoView()")
    browser.frames()


def _search(browser: Browser, folder: Path) -> None:
    _open(browser, _herrenberg(folder), _DESKTOP)
    browser.run(_LEAVE)
    browser.keys("#search", "bahnhof")
    browser.click("#found button")


def _phone(browser: Browser, folder: Path) -> None:
    _open(browser, _portland(folder), _PHONE)
    browser.click("#routes > li:nth-child(3) .only")
    browser.run("document.querySelector('aside').scrollTo(0, 0)")
    browser.keys("#search", "salmon")
    browser.frames()


def _print(browser: Browser, folder: Path) -> None:
    _open(browser, _herrenberg(folder), _PAPER)
    browser.click("#routes > li:nth-child(4) .only")
    browser.devtools("Emulation.setEmulatedMedia", media="print")
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    browser.run("document.body.style.padding = '20px'")
    browser.run("document.documentElement.style.overflow = 'hidden'")
    browser.frames()


def _diff(browser: Browser, folder: Path) -> None:
    town = arcfleet.read("example:denver")
    before = arcfleet.solve(town, stop=arcfleet.Stop(iterations=20_000)).solution
    today = arcfleet.exclude(town, ["Champa Street"])
    after = arcfleet.solve(
        today, start=before, keep=20, stop=arcfleet.Stop(iterations=20_000)
    ).solution
    page = folder / "diff.html"
    arcfleet.write_diff_html(today, before, after, page, town)
    _open(browser, page, _DESKTOP)


# --- The web app --------------------------------------------------------------------------


@contextmanager
def _web_app(
    browser: Browser, folder: Path, screen: Mapping[str, object]
) -> Iterator[tuple[Page, str]]:
    """Open the web app with a plan of Denver; yields the page and the job."""
    browser.devtools("Emulation.setDeviceMetricsOverride", **screen)
    with served(folder / "serve") as server:
        until(lambda: server.get("/maps/m_denver")["state"] == "ready")
        scene = server.post("/scenes", {"map": "m_denver", "capacity": 12_000})
        job = server.solved(scene["id"], iterations=200_000, seed=1)["id"]
        page = Page(browser, server)
        page.open(f"#job={job}")
        page.wait_for_plan()
        yield page, job


def _web_app_plan(browser: Browser, folder: Path) -> bytes:
    with _web_app(browser, folder, _DESKTOP):
        return browser.screenshot()


def _web_app_streets(browser: Browser, folder: Path) -> bytes:
    with _web_app(browser, folder, _DESKTOP) as (page, _):
        page.open("#map=m_denver")
        page.wait("app.streets.length > 0")
        page.click("[data-tool=area]")
        corners = [(0.3, 0.93), (0.4, 0.42), (0.75, 0.52), (0.84, 0.95)]
        for x, y in [*corners, corners[0]]:
            page.press_at(page.on_map(x, y))
        page.click("#kinds [data-key=primary]")
        page.click("#kinds [data-key=secondary]")
        browser.run("document.getElementById('panels').scrollTo(0, 0)")
        browser.frames()
        return browser.screenshot()


def _web_app_drag(browser: Browser, folder: Path) -> bytes:
    with _web_app(browser, folder, _DESKTOP) as (page, _):
        page.browser.run("arcfleetPage.map.leaflet.setZoom(15.5, { animate: false })")
        page.browser.frames()
        box = page.browser.run(
            "const box = document.getElementById('map').getBoundingClientRect();"
            "return [box.left + 250, box.top + 250, box.right - 250, box.bottom - 250]"
        )
        routes = page.routes()
        seen = {
            link: (x, y)
            for link in routes
            for x, y in [page.on_street(link)]
            if box[0] < x < box[2] and box[1] < y < box[3]
        }
        link, target = next(
            (one, other)
            for one in seen
            for other in seen
            if routes[one] != routes[other]
            and abs(seen[one][0] - seen[other][0]) + abs(seen[one][1] - seen[other][1])
            > 150
        )
        page.press_at(seen[link])
        browser.act(mouse(at(*seen[link]), PRESS, at(*seen[target], duration=50)))
        picture = browser.screenshot()
        browser.act(mouse(RELEASE))
        return picture


def _web_app_compare(browser: Browser, folder: Path) -> bytes:
    with _web_app(browser, folder, _TABLET) as (page, job):
        champa = [
            link["id"]
            for link in page.get("app.links.map(({ id, name }) => ({ id, name }))")
            if link["name"] == "Champa Street"
        ]
        today = page.server.solved(
            page.get("app.scene.id"), start=job, exclude=champa, keep=20, iterations=200_000
        )
        page.open(f"#job={today['id']}")
        page.wait_for_plan()
        page.click("#tab-compare")
        page.wait("app.jobs.length > 0")
        page.choose("#compare-with", job)
        page.wait("app.changes")
        return browser.screenshot()


PICTURES: dict[str, Callable[[Browser, Path], bytes | None]] = {
    "denver-map": _overview,
    "map-desktop": _desktop,
    "map-search": _search,
    "map-phone": _phone,
    "map-print": _print,
    "map-diff": _diff,
    "web-app": _web_app_plan,
    "web-app-streets": _web_app_streets,
    "web-app-drag": _web_app_drag,
    "web-app-compare": _web_app_compare,
}

if __name__ == "__main__":
    main()
