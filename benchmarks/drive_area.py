"""What cutting a map at the border of the area costs: lost streets and deadheading.

A box in central Portland, served whole. Plans are made without turn rules, by ruin and
recreate, of the streets that the cut network can serve, on networks of several margins; and
of all streets of the box. Every plan is verified by the checker.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arcfleet import check, solve
from arcfleet.report.tables import table
from arcfleet.streets.area import Box
from arcfleet.streets.files import read_map
from arcfleet.streets.scene import Scene, SceneRules, cut_scene, not_required
from arcfleet.streets.turns import FREE_TURNS
from benchmarks import describe, run_and_exit, shared_dir

if TYPE_CHECKING:
    from arcfleet.instance import Instance

EXTRACT = "portland-central-filtered.osm.pbf"
BOX = Box(west=-122.7, south=45.52, east=-122.68, north=45.535)
CAPACITY = 4500
#: In metres; None drives on the whole map.
MARGINS = (0, 250, 500, 1000, 2000, None)


def tasks_of(scene: Scene, tasks_from: Scene) -> Instance:
    """Return the instance of a scene with only those tasks that another scene has, too."""
    instance, other = scene.instance, tasks_from.instance
    # No street is split at this capacity: links are streets, in the same order.
    assert len(instance.links) == len(scene.street_map.streets)
    served = {id(tasks_from.street_map.streets[i]) for i in other.required}
    links = tuple(
        link if not link.required or id(street) in served else not_required(link)
        for link, street in zip(instance.links, scene.street_map.streets, strict=True)
    )
    return replace(instance, links=links)


def plans(instance: Instance, seconds: float, seeds: int) -> dict[str, Any]:
    """Solve an instance with each seed; return cost, deadhead and routes."""
    found = []
    for seed in range(seeds):
        plan = solve(instance, "ruin-recreate", seconds=seconds, seed=seed).solution
        assert check(instance, plan).ok
        found.append(plan)
    return {
        "tasks": len(instance.required),
        "cost": [plan.cost for plan in found],
        "deadhead": [plan.deadhead for plan in found],
        "routes": [plan.num_routes for plan in found],
    }


def measure(seconds: float, seeds: int) -> list[dict[str, Any]]:
    """Return a row of figures for each margin."""
    street_map = read_map(shared_dir() / "maps" / "raw_osm" / EXTRACT)
    rules = SceneRules(
        capacity=CAPACITY, area=BOX, margin=0, serve_kinds=("all",), turns=FREE_TURNS
    )
    cut = cut_scene(street_map, rules)
    rows: list[dict[str, Any]] = []
    for margin in MARGINS:
        scene = cut_scene(street_map, replace(rules, margin=margin))
        assert scene.instance.depot == cut.instance.depot
        rows.append(
            {
                "margin": margin,
                "to_serve": scene.to_serve.streets,
                "served": scene.served.streets,
                "unserved_metres": round(sum(u.street.metres for u in scene.unserved)),
                "driven_on": len(scene.street_map.streets),
                "same_tasks": plans(tasks_of(scene, cut), seconds, seeds),
                "all_tasks": plans(scene.instance, seconds, seeds),
            }
        )
    return rows


def main() -> None:
    """Print the table, and write the figures as JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="time limit of a plan")
    parser.add_argument("--seeds", type=int, default=3, help="number of plans each")
    parser.add_argument("--json", type=Path, help="file for all figures")
    options = parser.parse_args()
    rows = measure(options.seconds, options.seeds)
    first = statistics.mean(rows[0]["same_tasks"]["deadhead"])
    lines = []
    for row in rows:
        same = statistics.mean(row["same_tasks"]["deadhead"])
        every = statistics.mean(row["all_tasks"]["deadhead"])
        lines.append(
            (
                "whole map" if row["margin"] is None else f"{row['margin']} m",
                f"{row['served']} of {row['to_serve']}",
                row["driven_on"],
                f"{same / 1000:.2f}",
                f"{100 * (same / first - 1):+.1f} %",
                f"{every / 1000:.2f}",
            )
        )
    print(describe())
    print(f"deadhead in km, mean of {options.seeds} seeds, {options.seconds:g} s each")
    tasks = rows[0]["same_tasks"]["tasks"]
    header = ("margin", "served", "driven on", f"of {tasks} tasks", "against 0", "of all")
    print(table(lines, header))
    if options.json is not None:
        facts = {
            "extract": EXTRACT,
            "box": [BOX.west, BOX.south, BOX.east, BOX.north],
            "capacity": CAPACITY,
            "seconds": options.seconds,
            "seeds": options.seeds,
            "measured_on": describe(),
            "rows": rows,
        }
        options.json.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_and_exit(main)
