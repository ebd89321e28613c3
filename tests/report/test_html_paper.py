"""The map in print, in the hand and for weak eyes."""

import re
from pathlib import Path

import pytest

from arcfleet.instance.instance import Instance
from arcfleet.report.html_map import write_html
from tests.hauling_plans import hauling_plan, hauling_town
from tests.report.browser import DARK, Browser, plan_of

PHONE = (360, 740)


def pages(pdf: bytes) -> int:
    """How many pages a PDF of Chromium has: it does not pack their dictionaries."""
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))


# --- Print --------------------------------------------------------------------------------


def test_one_page_for_every_route_that_is_shown(shown: Browser, village: Instance) -> None:
    count = plan_of(village).num_routes
    assert pages(shown.printed()) == count
    before = dict(shown.run("return arcfleetMap.view"))
    shown.click("#routes > li:nth-child(1) input")
    assert pages(shown.printed()) == count - 1
    # The screen is as it was.
    assert dict(shown.run("return arcfleetMap.view")) == before
    visible = shown.run("return arcfleetMap.routes.map((x) => x.visible)")
    assert visible == [False] + [True] * (count - 1)
    assert shown.run("return document.getElementById('sheets')") is None
    assert shown.complaints() == []


def test_a_page_has_the_map_the_figures_and_the_load_of_its_route(
    browser: Browser, village: Instance, tmp_path: Path
) -> None:
    town = hauling_town(village)
    write_html(town, hauling_plan(town, (2, 5, 11)), tmp_path / "hauling.html")
    browser.open(tmp_path / "hauling.html")
    assert pages(browser.printed()) == 3
    with (
        browser.media(media="print", features=DARK),
        browser.device(794, 1123, mobile=False),
    ):
        browser.run("window.dispatchEvent(new Event('beforeprint'))")
        texts = browser.run(
            "return [...document.querySelectorAll('.sheet')].map((x) => x.innerText)"
        )
        assert [re.findall(r"Route \d+: .*", text) for text in texts] == [
            ["Route 2: north & truck"],
            ["Route 5: south van"],
            ["Route 11: north & truck"],
        ]
        assert "load 1194 in trips of 595, 599 (capacity 600)" in texts[0]
        assert (
            browser.run("return document.querySelectorAll('.sheet svg.load').length") == 3
        )
        # White paper, whatever the screen is, with the route and no other.
        ground, own, others = browser.run(
            """
            const sheet = document.querySelector(".sheet canvas");
            const { data } = sheet.getContext("2d").getImageData(
              0, 0, sheet.width, sheet.height);
            const count = (colour) => {
              const wanted = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
              let found = 0;
              for (let i = 0; i < data.length; i += 4)
                found += data[i] === wanted[0] && data[i + 1] === wanted[1]
                  && data[i + 2] === wanted[2];
              return found;
            };
            const [own, ...others] = arcfleetMap.plan.routes.map((x) => count(x.colour));
            return [count("#ffffff"), own, others];
            """
        )
        assert ground > 100_000
        assert own > 1_000
        assert others == [0, 0]
        hidden = "return getComputedStyle(document.querySelector('main')).display"
        assert browser.run(hidden) == "none"
        browser.run("window.dispatchEvent(new Event('afterprint'))")
    assert browser.complaints() == []


def test_printing_while_the_work_is_played_shows_it_done(shown: Browser) -> None:
    shown.run("arcfleetMap.setTime(1)")
    shown.run("window.dispatchEvent(new Event('beforeprint'))")
    assert shown.run("return document.querySelectorAll('.sheet').length") > 0
    assert shown.run("return arcfleetMap.state.time") == 1
    shown.run("window.dispatchEvent(new Event('afterprint'))")


# --- Fingers and screens ------------------------------------------------------------------


def open_all(browser: Browser) -> None:
    """Open all that unfolds."""
    browser.keys("#search", "a")
    browser.run("for (const x of document.querySelectorAll('details')) x.open = true")
    browser.frames()


@pytest.mark.parametrize("opened", [False, True])
def test_all_that_can_be_touched_is_large_enough(
    browser: Browser, village: Instance, tmp_path: Path, opened: bool
) -> None:
    town = hauling_town(village)
    write_html(town, hauling_plan(town, (2, 5, 11)), tmp_path / "hauling.html")
    browser.open(tmp_path / "hauling.html")
    with browser.device(*PHONE):
        if opened:
            open_all(browser)
        small = browser.run(
            """
            // A tick box is touched through its label.
            const touched = "button, select, summary, label:has(input), "
              + "input:not([type=checkbox])";
            return [...document.querySelectorAll(touched)]
              .map((x) => [x.outerHTML.slice(0, 80), x.getBoundingClientRect()])
              .filter(([, box]) => box.width > 0)
              .filter(([, box]) => box.width < 44 || box.height < 44)
              .map(([text, box]) => [text, box.width, box.height]);
            """
        )
        assert small == []
        count = browser.run("return document.querySelectorAll('button').length")
        assert count > (40 if opened else 9)


@pytest.mark.parametrize("size", [PHONE, (320, 568), (740, 360), (800, 1200)])
def test_nothing_scrolls_sideways(
    browser: Browser, village_page: Path, size: tuple[int, int]
) -> None:
    browser.open(village_page)
    with browser.device(*size):
        open_all(browser)
        wide = browser.run(
            """
            const wide = [document.documentElement, document.querySelector("aside")];
            return wide.map((x) => x.scrollWidth - x.clientWidth);
            """
        )
        assert wide == [0, 0]
        assert browser.run("return document.getElementById('map').clientHeight") > 150


# --- Contrast -----------------------------------------------------------------------------


@pytest.mark.parametrize("dark", [False, True])
def test_every_route_stands_out_from_the_map_and_the_panel(
    browser: Browser, many_routes: Path, dark: bool
) -> None:
    browser.open(many_routes)
    with browser.media(features=DARK if dark else []):
        colours, paper, panel, swatches = browser.run(
            """
            const probe = document.createElement("i");
            document.body.append(probe);
            const seen = (colour) => {
              probe.style.color = colour;
              return getComputedStyle(probe).color.match(/\\d+/g).slice(0, 3).map(Number);
            };
            return [
              arcfleetMap.routes.map((x) => seen(x.colour)),
              seen("var(--paper)"), seen("var(--panel)"),
              [...document.querySelectorAll("#routes .swatch")].map((x) =>
                ["backgroundColor", "color"].map((key) => seen(getComputedStyle(x)[key]))),
            ];
            """
        )
    assert (sum(paper) < 100) is dark
    assert len({tuple(colour) for colour in colours}) == len(swatches) == 60
    assert min(contrast(colour, paper) for colour in colours) >= 3
    assert min(contrast(colour, panel) for colour in colours) >= 3
    assert [ground for ground, _ in swatches] == colours
    # Numbers on the swatches are text.
    assert min(contrast(ground, ink) for ground, ink in swatches) >= 4.5


def contrast(one: list[int], other: list[int]) -> float:
    """As WCAG 2.2 defines it."""

    def luminance(colour: list[int]) -> float:
        red, green, blue = (
            x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4
            for x in (part / 255 for part in colour)
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)
