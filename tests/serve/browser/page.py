"""The page of the web app as a user has it: what is clicked, dragged, typed and seen."""

import json
from typing import Any

from tests.report.browser import Browser, at, mouse
from tests.serve.running import Json, Server

ENTER, TAB, ESCAPE, BACKSPACE = "\ue007", "\ue004", "\ue00c", "\ue003"
LEFT, UP, RIGHT, DOWN = "\ue012", "\ue013", "\ue014", "\ue015"
CONTROL = "\ue009"
SHORT = "0.5"  # seconds
PRESS = {"type": "pointerDown", "button": 0}
RELEASE = {"type": "pointerUp", "button": 0}
Point = tuple[float, float]


class Page:
    """The page in a browser, on a server of its own."""

    def __init__(self, browser: Browser, server: Server) -> None:
        self.browser, self.server = browser, server

    def open(self, place: str = "") -> None:
        """Open the page anew."""
        self.browser.visit("about:blank")
        self.browser.visit(self.server.address + place)
        self.wait("app.maps.length > 0 && !arcfleetPage.app.busy")

    def reload(self) -> None:
        """Come back to the address that the page has given itself."""
        address = self.browser.run("return location.href")
        self.open(address.removeprefix(self.server.address))

    def get(self, what: str) -> Any:
        """Return something that the page knows."""
        return self.browser.run(f"return window.arcfleetPage && arcfleetPage.{what}")

    def wait(self, what: str) -> None:
        """Wait until the page knows something."""
        self.browser.wait(f"return window.arcfleetPage && arcfleetPage.{what}")
        self.browser.frames()

    def wait_for_plan(self, after: str | None = None) -> str:
        """Wait for the last plan of another job than this; returns the job."""
        self.wait(
            "app.error || arcfleetPage.app.job"
            " && arcfleetPage.app.finalPlan === arcfleetPage.app.job.id"
            f" && arcfleetPage.app.finalPlan !== {json.dumps(after)}"
            " && !arcfleetPage.app.busy"
        )
        error = self.get("app.error")
        assert error is None, error
        return self.job

    @property
    def job(self) -> str:
        return str(self.get("app.job.id"))

    def routes(self) -> dict[int, int]:
        """Return the route of each link."""
        found = self.get(
            "app.legs.filter((leg) => leg.serves).map((leg) => [leg.link, leg.route])"
        )
        return dict(found)

    def text(self, selector: str) -> str:
        script = "return document.querySelector(arguments[0]).innerText"
        return str(self.browser.run(script, selector))

    def shown(self, selector: str) -> bool:
        script = "return document.querySelector(arguments[0])?.offsetParent != null"
        return bool(self.browser.run(script, selector))

    def click(self, selector: str) -> None:
        self.browser.click(selector)

    def choose(self, selector: str, value: str) -> None:
        """Choose an option or fill a field, as far as the page can tell."""
        self.browser.run(
            "const field = document.querySelector(arguments[0]);"
            "field.value = arguments[1];"
            "field.dispatchEvent(new Event('input', { bubbles: true }));"
            "field.dispatchEvent(new Event('change', { bubbles: true }))",
            selector,
            value,
        )
        self.browser.frames()

    def send_file(self, selector: str, file: object) -> None:
        self.browser.keys(selector, str(file))

    def offer_a_short_search(self) -> None:
        """Let the list of times begin with half a second, for a tiny town."""
        self.browser.run(
            "const list = document.getElementById('seconds');"
            "if (list.options[0].value !== arguments[0])"
            "  list.prepend(new Option('short', arguments[0]))",
            SHORT,
        )

    def start(self) -> str:
        """Press Start for a short search; returns the job when its plan is there."""
        before = self.get("app.job?.id")
        self.offer_a_short_search()
        self.choose("#seconds", SHORT)
        self.click("#start")
        return self.wait_for_plan(before)

    # --- Places in the window -------------------------------------------------------------

    def on_map(self, x: float, y: float) -> Point:
        """Return the place in the window of a share of the map's width and height."""
        left, top, width, height = self.browser.run(
            "const box = document.getElementById('map').getBoundingClientRect();"
            "return [box.left, box.top, box.width, box.height]"
        )
        return left + x * width, top + y * height

    def on_street(self, link: int, lines: str = "links") -> Point:
        """Return the place in the window half way along a link."""
        x, y = self.get(
            f"map.middlePoint(arcfleetPage.app.{lines}.find((one) => one.id === {link}))"
        )
        left, top = self.on_map(0, 0)
        return left + x, top + y

    def middle_of(self, selector: str) -> Point:
        x, y = self.browser.run(
            "const found = document.querySelector(arguments[0]);"
            "found.scrollIntoView({ block: 'nearest' });"
            "const box = found.getBoundingClientRect();"
            "return [box.left + box.width / 2, box.top + box.height / 2]",
            selector,
        )
        return x, y

    # --- Pointers and keys ----------------------------------------------------------------

    def press_at(self, place: Point, *, touch: bool = False) -> None:
        """Click or tap."""
        self.browser.act(_pointer(touch, at(*place), PRESS, RELEASE))

    def drag(self, start: Point, end: Point, *, touch: bool = False) -> None:
        """Press, move in steps, let go."""
        steps = [
            at(
                start[0] + share * (end[0] - start[0]) / 4,
                start[1] + share * (end[1] - start[1]) / 4,
                duration=20,
            )
            for share in range(1, 5)
        ]
        self.browser.act(_pointer(touch, at(*start), PRESS, *steps, RELEASE))

    def keys(self, *keys: str, control: bool = False) -> None:
        """Press keys, wherever the focus is."""
        actions: list[Json] = [{"type": "keyDown", "value": CONTROL}] if control else []
        for key in keys:
            actions += [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        if control:
            actions.append({"type": "keyUp", "value": CONTROL})
        self.browser.act({"type": "key", "id": "keyboard", "actions": actions})

    def tab_to(self, selector: str) -> None:
        """Press Tab until something has the focus."""
        for _ in range(200):
            if self.browser.run(
                "return document.activeElement?.matches(arguments[0])", selector
            ):
                return
            self.keys(TAB)
        raise AssertionError(f"Tab never came to {selector}")

    # --- What must not be -----------------------------------------------------------------

    def complaints(self) -> list[str]:
        return self.browser.complaints()

    def requests(self) -> list[str]:
        return list(
            self.browser.run(
                "return performance.getEntriesByType('resource').map((one) => one.name)"
            )
        )


def _pointer(touch: bool, *actions: Json) -> Json:
    made = mouse(*actions)
    if touch:
        made |= {"id": "finger", "parameters": {"pointerType": "touch"}}
    return made
