"""What even and compact routes cost: trade-off curves of the prices on shape.

A box in central Portland, cut at its border and served by thirteen routes. Plans are made
by ruin and recreate for rising prices of balance and of compactness, without the other.
Every plan is verified by the checker.

    python -m benchmarks.shape --out benchmarks/results/shape

adds one JSON line per plan to DIR/shapes.jsonl; finished ones are reused.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean
from typing import TYPE_CHECKING, Any

from arcfleet.datasets.store import LineFormat
from arcfleet.paper.report import Section
from arcfleet.report.charts import Line as ChartLine
from arcfleet.report.charts import Panel, draw_panels
from arcfleet.solution.shape import shape
from arcfleet.streets.files import read_map
from arcfleet.streets.scene import SceneRules, cut_scene
from arcfleet.streets.turns import FREE_TURNS
from benchmarks import run_and_exit, shared_dir
from benchmarks.drivable import (
    QUICK_ITERATIONS,
    Lines,
    drivable_report,
    make_missing,
    mean,
    percent,
    plan_command,
    plan_limits,
    plan_parser,
    solve_verified,
)
from benchmarks.drive_area import BOX, EXTRACT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from arcfleet.instance import Instance

CAPACITY = 4200  # metres: thirteen routes with some slack
#: In the unit of `Instance.balance`.
BALANCES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
#: In metres per street.
COMPACTNESSES = (2, 5, 10, 20, 50, 100, 200)
NONE = ("none", 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedPlan:
    """A plan made at a price on its shape."""

    feature: str  # "balance", "compactness" or "none"
    price: float
    seed: int
    iterations: int
    machine: str
    commit: str
    capacity: int
    tasks: int
    routes: int
    cost: int
    deadhead: int
    # As in `Shape`.
    longest: int
    shortest: int
    ratio: float
    variation: float
    interleaving: float

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the plan."""
        return self.feature, self.price, self.seed, self.iterations


@cache
def portland() -> Instance:
    """Return the scene."""
    street_map = read_map(shared_dir() / "maps" / "raw_osm" / EXTRACT)
    rules = SceneRules(
        capacity=CAPACITY, area=BOX, serve_kinds=("all",), turns=FREE_TURNS, margin=0
    )
    return cut_scene(street_map, rules).instance


def make_plan(
    feature: str, price: float, seed: int, iterations: int, **here: str
) -> ShapedPlan:
    """Solve the scene at a price."""
    plain = portland()
    priced: dict[str, Instance] = {
        "none": plain,
        "balance": replace(plain, balance=price),
        "compactness": replace(plain, compactness=round(price)),
    }
    plan = solve_verified(priced[feature], iterations, seed).solution
    found = shape(plain, plan)
    return ShapedPlan(
        feature=feature,
        price=price,
        seed=seed,
        iterations=iterations,
        **here,
        capacity=CAPACITY,
        tasks=len(plain.required),
        routes=plan.num_routes,
        cost=plan.cost,
        deadhead=plan.deadhead,
        longest=found.longest,
        shortest=found.shortest,
        ratio=found.ratio or 0.0,
        variation=found.variation,
        interleaving=found.interleaving,
    )


def _curve(records: Sequence[ShapedPlan], feature: str) -> dict[float, list[ShapedPlan]]:
    """Return the plans of a feature by price, those without a price first."""
    groups: dict[float, list[ShapedPlan]] = defaultdict(list)
    for plan in records:
        if plan.feature in ("none", feature):
            groups[plan.price].append(plan)
    return dict(sorted(groups.items()))


def _sections(records: Sequence[ShapedPlan]) -> list[Section]:
    return [
        _section(records, feature, title)
        for feature, title in (
            ("balance", "Balance: a price on uneven routes"),
            ("compactness", "Compactness: a price on routes that interleave"),
        )
        if any(plan.feature == feature for plan in records)
    ]


def _section(records: Sequence[ShapedPlan], feature: str, title: str) -> Section:
    curve = _curve(records, feature)
    base = mean(curve[0.0], "cost")
    rows = []
    for price, plans in curve.items():
        rows.append(
            [
                f"{price:g}",
                f"{mean(plans, 'cost') / 1000:.1f}",
                percent(mean(plans, "cost"), base),
                f"{mean(plans, 'ratio'):.2f}",
                _range([f"{plan.ratio:.2f}" for plan in plans]),
                f"{100 * mean(plans, 'variation'):.1f} %",
                f"{100 * mean(plans, 'interleaving'):.1f} %",
                _range([f"{100 * plan.interleaving:.1f}" for plan in plans]),
                _range([str(plan.routes) for plan in plans]),
            ]
        )
    header = [
        *("price", "km", "cost", "longest : shortest", "by seed"),
        *("variation", "interleaving", "by seed, %", "routes"),
    ]
    return Section(title, header, rows)


def _range(values: Sequence[str]) -> str:
    ordered = sorted(set(values), key=float)
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"


def _caption(records: Sequence[ShapedPlan]) -> str:
    return (
        "Price: in the unit of the fields `balance` and `compactness`; 0 is off. "
        "Cost: driving and serving, against price 0; the price is no part of it. "
        "Variation: standard deviation of the costs of routes, divided by their mean. "
        "Interleaving: share of the streets whose nearest other street is on another "
        f"route. {plan_limits(records, streets=True)}"
    )


def _panel(records: Sequence[ShapedPlan], feature: str, field: str, label: str) -> Panel:
    curve = _curve(records, feature)
    scale = 100 if field == "interleaving" else 1
    seeds = sorted({plan.seed for plan in records})
    lines = []
    for seed in (None, *seeds):
        points = []
        for plans in curve.values():
            own = [plan for plan in plans if seed in (None, plan.seed)]
            bases = [plan for plan in curve[0.0] if seed in (None, plan.seed)]
            if own and bases:
                rise = 100 * (mean(own, "cost") / mean(bases, "cost") - 1)
                points.append((rise, scale * fmean(getattr(plan, field) for plan in own)))
        lines.append(
            ChartLine(
                label="mean" if seed is None else f"seed {seed}",
                x=tuple(x for x, _ in points),
                y=tuple(y for _, y in points),
                dashed=seed is not None,
            )
        )
    return Panel(
        title=feature.capitalize(),
        x_label="cost increase, %",
        y_label=label,
        lines=tuple(lines),
    )


def _figures(records: Sequence[ShapedPlan]) -> Mapping[str, Callable[..., None]]:
    panels = [
        _panel(records, "balance", "ratio", "longest : shortest route"),
        _panel(records, "compactness", "interleaving", "interleaving, % of streets"),
    ]

    def draw(path: Any, caption: str = "") -> None:
        draw_panels(panels, path, caption)

    return {"shape": draw}


SHAPED_PLANS = Lines(
    "shapes.jsonl",
    LineFormat("arcfleet-shaped-plan-1", ShapedPlan, "a line of `shape`"),
    _sections,
    plan_command("shape", "shape"),
    _caption,
    _figures,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the plans that are missing and print the tables."""
    options = plan_parser(__doc__).parse_args(arguments)
    priced = [
        NONE,
        *(("balance", price) for price in BALANCES),
        *(("compactness", float(price)) for price in COMPACTNESSES),
    ]
    seeds, iterations = options.seeds, options.iterations
    if options.quick:
        priced, seeds, iterations = (
            [NONE, priced[3], priced[-3]],
            seeds[:1],
            QUICK_ITERATIONS,
        )
    keys = [(*price, seed, iterations) for price in priced for seed in seeds]
    plans = make_missing(SHAPED_PLANS, options.out, keys, make_plan)
    print(drivable_report(SHAPED_PLANS, plans).text())


if __name__ == "__main__":
    run_and_exit(main)
