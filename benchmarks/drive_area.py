"""What cutting a map at the border of the area costs: lost streets and deadheading.

A box in central Portland, served whole. Plans are made without turn rules, by ruin and
recreate, of the streets that the cut network can serve, on networks of several margins; and
of all streets of the box. Every plan is verified by the checker.

    python -m benchmarks.drive_area --out DIR

adds one JSON line per plan to DIR/margins.jsonl; finished ones are reused.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from arcfleet.instance.change import not_required
from arcfleet.streets.area import Box
from arcfleet.streets.files import read_map
from arcfleet.streets.scene import Scene, SceneRules, cut_scene
from arcfleet.streets.turns import FREE_TURNS
from benchmarks import run_and_exit, shared_dir
from benchmarks.drivable import (
    MARGIN_PLANS,
    QUICK_ITERATIONS,
    MarginPlan,
    drivable_report,
    make_missing,
    plan_parser,
    solve_verified,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.instance import Instance

EXTRACT = "portland-central-filtered.osm.pbf"
BOX = Box(west=-122.7, south=45.52, east=-122.68, north=45.535)
CAPACITY = 4500
#: In metres; None drives on the whole map.
MARGINS: tuple[int | None, ...] = (0, 250, 500, 1000, 2000, None)


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


@cache
def scenes() -> dict[int | None, Scene]:
    """Return the scene of each margin."""
    street_map = read_map(shared_dir() / "maps" / "raw_osm" / EXTRACT)
    rules = SceneRules(capacity=CAPACITY, area=BOX, serve_kinds=("all",), turns=FREE_TURNS)
    made = {
        margin: cut_scene(street_map, replace(rules, margin=margin)) for margin in MARGINS
    }
    assert len({scene.instance.depot for scene in made.values()}) == 1
    return made


def make_plan(
    margin: int | None, all_tasks: bool, seed: int, iterations: int, **here: str
) -> MarginPlan:
    """Solve the scene of a margin."""
    scene = scenes()[margin]
    instance = scene.instance if all_tasks else tasks_of(scene, scenes()[0])
    plan = solve_verified(instance, iterations, seed).solution
    return MarginPlan(
        margin=margin,
        all_tasks=all_tasks,
        seed=seed,
        iterations=iterations,
        **here,
        to_serve=scene.to_serve.streets,
        served=scene.served.streets,
        driven_on=len(scene.street_map.streets),
        capacity=CAPACITY,
        tasks=len(instance.required),
        routes=plan.num_routes,
        cost=plan.cost,
        deadhead=plan.deadhead,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the plans that are missing and print the table."""
    options = plan_parser(__doc__).parse_args(arguments)
    margins, seeds, iterations = MARGINS, options.seeds, options.iterations
    if options.quick:
        margins, seeds, iterations = MARGINS[:2], seeds[:1], QUICK_ITERATIONS
    keys = [
        (margin, all_tasks, seed, iterations)
        for margin in margins
        for all_tasks in (False, True)
        for seed in seeds
    ]
    plans = make_missing(MARGIN_PLANS, options.out, keys, make_plan)
    print(drivable_report(MARGIN_PLANS, plans).text())


if __name__ == "__main__":
    run_and_exit(main)
