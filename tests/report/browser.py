"""A real browser, driven over the W3C WebDriver protocol with the standard library only."""

import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from urllib.request import Request, urlopen

import pytest

from arcfleet import Stop
from arcfleet.instance.instance import Instance
from arcfleet.solution.solution import Solution
from tests.helpers import solved

_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,800",
)
#: For `Browser.media`.
DARK = [{"name": "prefers-color-scheme", "value": "dark"}]
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def _give_up(reason: str) -> NoReturn:
    """Skip the test, or fail where the map must have been tested."""
    if os.environ.get("ARCFLEET_NEEDS_BROWSER") == "1":
        pytest.fail(f"{reason}, and ARCFLEET_NEEDS_BROWSER is 1")
    pytest.skip(reason)


class Browser:
    """One headless Chromium and the driver that obeys us."""

    def __init__(self, folder: Path) -> None:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        driver = shutil.which("chromedriver")
        if chromium is None or driver is None:
            _give_up("no chromium with chromedriver here to open the page with")
        self._process = subprocess.Popen(
            [driver, "--port=0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._session = ""
        try:
            port = self._port()
            self._session = f"http://127.0.0.1:{port}/session"
            options = {
                "binary": chromium,
                "args": [*_ARGUMENTS, f"--user-data-dir={folder}"],
            }
            wanted = {
                "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL"},
                # Hangs are ended by the test's own limit; a busy machine is none.
                "timeouts": dict.fromkeys(("script", "pageLoad"), 3_600_000),
            }
            made = self._call("POST", "", {"capabilities": {"alwaysMatch": wanted}})
            self._session += f"/{made['sessionId']}"
        except BaseException:
            self._end_driver()
            raise

    def close(self) -> None:
        """End the browser and its driver."""
        try:
            self._call("DELETE", "")
        finally:
            self._end_driver()

    def open(self, page: Path) -> None:
        """Open a file and wait until its first frames are drawn."""
        self.visit(page.as_uri())

    def visit(self, url: str) -> None:
        """Open an address and wait until its first frames are drawn."""
        self._call("POST", "/url", {"url": url})
        self.frames()

    def run(self, script: str, *arguments: object) -> Any:
        """Run the body of a function in the page; returns what it returns."""
        return self._call(
            "POST", "/execute/sync", {"script": script, "args": list(arguments)}
        )

    def wait(self, script: str) -> Any:
        """Run a script until what it returns is true, as long as a test may take."""
        while not (found := self.run(script)):
            self.frames()
        return found

    def run_later(self, script: str) -> Any:
        """Run a script that hands its result to the function that it is given."""
        return self._call("POST", "/execute/async", {"script": script, "args": []})

    def frames(self) -> None:
        """Let the page draw."""
        self.run_later(
            "const done = arguments[0];"
            "requestAnimationFrame(() => requestAnimationFrame(() => done()))"
        )

    def click(self, selector: str) -> None:
        """Click on an element as a user does."""
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})
        self._call("POST", f"/element/{found[_ELEMENT]}/click", {})
        self.frames()

    def keys(self, selector: str, text: str) -> None:
        """Type into an element."""
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})
        self._call("POST", f"/element/{found[_ELEMENT]}/value", {"text": text})
        self.frames()

    def act(self, *sources: dict[str, object]) -> None:
        """Move pointers and wheels."""
        self._call("POST", "/actions", {"actions": list(sources)})
        self.frames()

    def printed(self) -> bytes:
        """Print the page; returns the PDF."""
        return base64.b64decode(self._call("POST", "/print", {"background": True}))

    def screenshot(self) -> bytes:
        """Return the window as PNG."""
        return base64.b64decode(self._call("GET", "/screenshot"))

    def devtools(self, command: str, **parameters: object) -> None:
        """Pretend another device."""
        self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})
        self.frames()

    @contextmanager
    def device(self, width: int, height: int, **more: object) -> Iterator[None]:
        """Pretend a screen of this size, a phone's unless told otherwise."""
        screen = {"deviceScaleFactor": 2, "mobile": True, **more}
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, **screen
        )
        try:
            yield
        finally:
            self.devtools("Emulation.clearDeviceMetricsOverride")

    @contextmanager
    def media(self, **more: object) -> Iterator[None]:
        """Pretend another medium or the dark scheme."""
        self.devtools("Emulation.setEmulatedMedia", **more)
        try:
            yield
        finally:
            self.devtools("Emulation.setEmulatedMedia", media="", features=[])

    def complaints(self) -> list[str]:
        """Errors of the page since it was last asked, blocked requests among them."""
        entries = self._call("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def _call(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = Request(self._session + path, data=data, headers=headers, method=method)
        with urlopen(request) as answer:
            return json.load(answer)["value"]

    def _port(self) -> int:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                return int(found[1])
        _give_up("chromedriver does not start here")

    def _end_driver(self) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


# --- What tests do with it ----------------------------------------------------------------


def plan_of(instance: Instance) -> Solution:
    return solved(instance, "ps-efficiency", stop=Stop(iterations=50)).solution


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
