"""Size of the HTML map, and how fast a browser without a graphics card moves it.

`python -m benchmarks.html_map_speed [INSTANCE ...]`; needs chromium and chromedriver.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from arcfleet import Stop, read, solve
from arcfleet.report.html_map import write_html
from arcfleet.report.tables import table
from benchmarks import ROOT, describe, run_and_exit, shared_dir
from tests.report.browser import Browser

# Moves the map a little on every frame; gives the milliseconds between frames, sorted.
PAN = """
const done = arguments[0], gaps = [];
let count = 0, last = null;
function step(moment) {
  if (last !== null) gaps.push(moment - last);
  last = moment;
  arcfleetMap.move(count % 2 ? 3 : -3, 2 * (count % 3 - 1));
  if (++count <= 120) requestAnimationFrame(step);
  else done(gaps.sort((a, b) => a - b));
}
requestAnimationFrame(step);
"""


def main() -> None:
    """Measure and print a table."""
    paths = [Path(argument) for argument in sys.argv[1:]] or [
        ROOT / "examples" / "village.json",
        shared_dir() / "carplib" / "hefei" / "Hefei-10.txt",
    ]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(Path(folder) / "profile")
        try:
            browser.open(ROOT / "LICENSE")  # the first page also pays for the start
            rows = [_measure(browser, path, Path(folder) / "plan.html") for path in paths]
        finally:
            browser.close()
    print(describe())
    header = ("instance", "links", "routes", "kB", "open s", "frame ms", "95% of frames ms")
    print(table(rows, header))


def _measure(browser: Browser, path: Path, page: Path) -> tuple[str, ...]:
    instance = read(path)
    solution = solve(instance, "ps-efficiency", stop=Stop(iterations=1)).solution
    write_html(instance, solution, page)
    began = time.perf_counter()
    browser.open(page)
    seconds = time.perf_counter() - began
    gaps = browser.run_later(PAN)
    return (
        instance.name,
        str(len(instance.links)),
        str(solution.num_routes),
        f"{page.stat().st_size / 1e3:.0f}",
        f"{seconds:.1f}",
        f"{gaps[len(gaps) // 2]:.0f}",
        f"{gaps[len(gaps) * 95 // 100]:.0f}",
    )


if __name__ == "__main__":
    run_and_exit(main)
