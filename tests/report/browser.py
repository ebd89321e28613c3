"""A real browser, driven over the W3C WebDriver protocol with the standard library only."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NoReturn
from urllib.request import Request, urlopen

import pytest

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
        self._call("POST", "/url", {"url": page.as_uri()})
        self.frames()

    def run(self, script: str, *arguments: object) -> Any:
        """Run the body of a function in the page; returns what it returns."""
        return self._call(
            "POST", "/execute/sync", {"script": script, "args": list(arguments)}
        )

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

    def devtools(self, command: str, **parameters: object) -> None:
        """Pretend another device."""
        self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})
        self.frames()

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
