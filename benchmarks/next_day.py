"""The next day: two streets are left out, and the plan is made anew or kept.

A circle in the east of Reno, served whole. Of yesterday's plan two streets drop out. A
fresh plan is made as if there had been none; a kept plan starts from yesterday's, repaired,
with a price for every street that changes its vehicle. Counted are streets that stay on
their vehicle. Every plan is verified by the checker.

    python -m benchmarks.next_day --out benchmarks/results/next-day

adds one JSON line per plan to DIR/days.jsonl; finished ones are reused.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from arcfleet import solve
from arcfleet.datasets.store import LineFormat
from arcfleet.instance.change import not_required
from arcfleet.paper.report import Section
from arcfleet.search import Stop
from arcfleet.solution.diff import diff
from arcfleet.solution.keep import keep
from arcfleet.solution.renumber import renumber
from arcfleet.solution.repair import repair
from arcfleet.streets.area import Circle
from arcfleet.streets.files import read_map
from arcfleet.streets.scene import SceneRules, cut_scene
from arcfleet.streets.turns import FREE_TURNS
from benchmarks import run_and_exit, shared_dir
from benchmarks.drivable import (
    QUICK_ITERATIONS,
    Lines,
    drivable_report,
    listed,
    make_missing,
    mean,
    percent,
    plan_command,
    plan_limits,
    plan_parser,
    solve_verified,
    verified,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.instance import Instance
    from arcfleet.solution import Solution

EXTRACT = "reno_east3.osm"
CIRCLE = Circle(longitude=-119.75, latitude=39.535, metres=832.0)
CAPACITY = 4500
MARGIN = 500  # metres
LEFT_OUT = 2
#: Price of every street that changes its vehicle, in metres; None makes a fresh plan.
PRICES: tuple[int | None, ...] = (None, 0, 5, 10, 20, 50, 100, 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextDay:
    """A plan of the next day."""

    price: int | None  # per street that changes its vehicle; None for a fresh plan
    seed: int
    iterations: int
    machine: str
    commit: str
    capacity: int
    tasks: int  # yesterday
    routes: int
    cost: int
    deadhead: int
    streets: int  # of both days
    stayed: int  # of them on their vehicle

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the plan."""
        return self.price, self.seed, self.iterations


@cache
def reno() -> Instance:
    """Return yesterday's scene."""
    street_map = read_map(shared_dir() / "maps" / "raw_osm" / EXTRACT)
    rules = SceneRules(capacity=CAPACITY, area=CIRCLE, turns=FREE_TURNS, margin=MARGIN)
    return cut_scene(street_map, rules).instance


def today(yesterday: Instance, seed: int) -> Instance:
    """Return the scene without some streets, chosen by the seed."""
    gone = set(random.Random(seed).sample(yesterday.required, LEFT_OUT))
    links = tuple(
        not_required(link) if index in gone else link
        for index, link in enumerate(yesterday.links)
    )
    return replace(yesterday, links=links)


@cache
def first_plan(seed: int, iterations: int) -> Solution:
    """Return yesterday's plan."""
    return solve_verified(reno(), iterations, seed).solution


def make_plan(price: int | None, seed: int, iterations: int, **here: str) -> NextDay:
    """Solve the next day, which another seed starts."""
    yesterday = first_plan(seed, iterations)
    instance = today(reno(), seed)
    stop = Stop(iterations=iterations)
    if price is None:
        result = solve(instance, "ruin-recreate", stop=stop, seed=seed + 1000)
        plan = renumber(verified(result).solution, yesterday)
    else:
        start = repair(instance, yesterday).solution
        result = solve(
            keep(instance, yesterday, price),
            "ruin-recreate",
            stop=stop,
            seed=seed + 1000,
            start=start,
        )
        plan = verified(result).solution
    found = diff(instance, yesterday, plan)
    return NextDay(
        price=price,
        seed=seed,
        iterations=iterations,
        **here,
        capacity=CAPACITY,
        tasks=len(reno().required),
        routes=plan.num_routes,
        cost=plan.cost,
        deadhead=plan.deadhead,
        streets=found.streets,
        stayed=found.streets - len(found.moved),
    )


def _section(records: Sequence[NextDay]) -> Section:
    groups: dict[int | None, list[NextDay]] = defaultdict(list)
    for plan in records:
        groups[plan.price].append(plan)
    base = mean(groups[None], "cost")
    fresh = {plan.seed: plan.cost for plan in groups[None]}
    rows = []
    for price, plans in groups.items():
        ratios = [plan.cost / fresh[plan.seed] for plan in plans]
        stayed = [plan.stayed for plan in plans]
        rows.append(
            [
                "fresh plan" if price is None else f"{price:,}",
                f"{mean(plans, 'stayed'):.1f} of {listed(plan.streets for plan in plans)}",
                f"{min(stayed)} to {max(stayed)}",
                f"{mean(plans, 'cost') / 1000:.2f}",
                percent(mean(plans, "cost"), base),
                " to ".join(percent(ratio, 1) for ratio in (min(ratios), max(ratios))),
                listed(sorted(plan.routes for plan in plans)),
            ]
        )
    header = [
        *("price of a change", "stay on their vehicle", "by seed", "km"),
        *("cost", "by seed", "routes"),
    ]
    return Section("Reno without two streets", header, rows)


def _caption(records: Sequence[NextDay]) -> str:
    return (
        f"A scene of {listed(plan.tasks for plan in records)} streets, of which "
        f"{LEFT_OUT} are left out, others for each seed. Price: in metres, of every street "
        "on another vehicle than yesterday; the plans start from yesterday's, repaired. "
        "Fresh plan: made from nothing; its routes are paired with those of yesterday that "
        "they share most streets with. Cost: against the fresh plan; the price is no part "
        f"of it. {plan_limits(records)}"
    )


NEXT_DAYS = Lines(
    "days.jsonl",
    LineFormat("arcfleet-next-day-1", NextDay, "a line of `next_day`"),
    _section,
    plan_command("next_day", "next-day"),
    _caption,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the plans that are missing and print the table."""
    options = plan_parser(__doc__).parse_args(arguments)
    prices, seeds, iterations = PRICES, options.seeds, options.iterations
    if options.quick:
        prices, seeds, iterations = (None, 100), seeds[:1], QUICK_ITERATIONS
    keys = [(price, seed, iterations) for price in prices for seed in seeds]
    plans = make_missing(NEXT_DAYS, options.out, keys, make_plan)
    print(drivable_report(NEXT_DAYS, plans).text())


if __name__ == "__main__":
    run_and_exit(main)
