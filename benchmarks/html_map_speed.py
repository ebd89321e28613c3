"""Size of the HTML map, and how fast a browser without a graphics card opens and moves it.

`python -m benchmarks.html_map_speed [INSTANCE ...]`; needs chromium and chromedriver.
Without arguments: the village, an instance of Hefei and a generated town of 25,000 streets.
"""

from __future__ import annotations

import math
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from arcfleet import Instance, Link, Stop, read, solve
from arcfleet.report.html_map import write_html
from arcfleet.report.tables import table
from benchmarks import ROOT, describe, run_and_exit, shared_dir
from tests.report.browser import Browser

OPENINGS = 7
#: Junctions along a side of the generated town: 25,312 streets.
SIDE = 113

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
    paths = [Path(argument) for argument in sys.argv[1:]]
    instances = [read(path) for path in paths] or [
        read(ROOT / "examples" / "village.json"),
        read(shared_dir() / "carplib" / "hefei" / "Hefei-10.txt"),
        town(SIDE),
    ]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(Path(folder) / "profile")
        try:
            browser.open(ROOT / "LICENSE")  # the first page also pays for the start
            page = Path(folder) / "plan.html"
            rows = [_measure(browser, instance, page) for instance in instances]
        finally:
            browser.close()
    print(describe())
    print(f"Until the second frame after the first; median and longest of {OPENINGS}.")
    header = ("instance", "links", "routes", "kB", "open s", "longest s", "frame ms", "95%")
    print(table(rows, header))


def town(side: int, seed: int = 1) -> Instance:
    """Generate a town of crooked streets, `side` junctions along each side."""
    draw = random.Random(seed)
    places = {
        1 + row * side + column: (
            9 + 0.0012 * (column + draw.uniform(-0.25, 0.25)),
            48.5 + 0.0008 * (row + draw.uniform(-0.25, 0.25)),
        )
        for row in range(side)
        for column in range(side)
    }

    def street(tail: int, head: int, name: str) -> Link:
        (x, y), (u, v) = places[tail], places[head]
        corners = draw.randint(1, 5)
        line = [(x, y)]
        for i in range(1, corners + 1):
            share = i / (corners + 1)
            aside = [draw.uniform(-4e-5, 4e-5) for _ in range(2)]
            line.append((x + share * (u - x) + aside[0], y + share * (v - y) + aside[1]))
        metres = 1 + round(90 * math.hypot((u - x) / 0.0012, (v - y) / 0.0008))
        required = draw.random() < 0.9
        return Link(
            tail=tail,
            head=head,
            name=name,
            cost=metres,
            metres=metres,
            seconds=metres // 8 + 1,
            required=required,
            demand=metres if required else 0,
            service_seconds=metres // 3 + 1 if required else None,
            geometry=(*line, (u, v)),
        )

    links = []
    for node in places:
        row, column = divmod(node - 1, side)
        if column + 1 < side:
            links.append(street(node, node + 1, f"Street {row} {column // 12}"))
        if row + 1 < side:
            links.append(street(node, node + side, f"Avenue {column} {row // 12}"))
    return Instance(
        name=f"town {side} x {side}",
        nodes=tuple(places),
        coordinates=tuple(places.values()),
        links=tuple(links),
        depot=side * (side // 2) + side // 2,
        capacity=60_000,
    )


def _measure(browser: Browser, instance: Instance, page: Path) -> tuple[str, ...]:
    solution = solve(instance, "ps-efficiency", stop=Stop(iterations=1)).solution
    write_html(instance, solution, page)
    seconds = []
    for _ in range(OPENINGS):
        began = time.perf_counter()
        browser.open(page)
        seconds.append(time.perf_counter() - began)
    gaps = browser.run_later(PAN)
    return (
        instance.name,
        str(len(instance.links)),
        str(solution.num_routes),
        f"{page.stat().st_size / 1e3:.0f}",
        f"{median(seconds):.2f}",
        f"{max(seconds):.2f}",
        f"{gaps[len(gaps) // 2]:.0f}",
        f"{gaps[len(gaps) * 95 // 100]:.0f}",
    )


if __name__ == "__main__":
    run_and_exit(main)
