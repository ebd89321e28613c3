"""`arcfleet solve`, `compare`, `show` and `check`: plans of one instance."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from arcfleet.cli.changes import add_changes, changed, note_unwritten
from arcfleet.cli.options import (
    Command,
    add_executor,
    add_shared,
    file_argument,
    names,
    option,
    positive_number,
    seconds,
    whole_number,
)
from arcfleet.cli.output import (
    EXPORTS,
    add_plan_files,
    check_drawable_instance,
    check_holdable_instance,
    check_plan_files,
    count_of,
    note,
    print_either,
    write_plan_files,
)
from arcfleet.cli.progress import search_progress
from arcfleet.cli.time_limit import TimeLimit
from arcfleet.errors import FormatWarning, OptionError
from arcfleet.instance.operations import ROUTE_LIMITS

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence
    from pathlib import Path

    from arcfleet.bench.compare import Entry
    from arcfleet.instance import Instance
    from arcfleet.methods import Method
    from arcfleet.search import Result, Stop
    from arcfleet.solution import Solution

INSTANCE_HELP = (
    "instance: CARPLIB (.dat), MCARP (.txt) or arcfleet's JSON, recognised by its "
    "contents; example:denver is one that comes with arcfleet"
)


# --- solve ------------------------------------------------------------------------------


def _solve_options(parser: ArgumentParser) -> None:
    file_argument(parser, "instance", INSTANCE_HELP, nargs="?")
    text = "method, see `arcfleet methods`"
    option(parser, "--method", text, str, "NAME", default="auto")
    text = "set a parameter of the method, see `arcfleet methods NAME`; repeatable"
    option(parser, "--set", text, str, "NAME=VALUE", action="append", default=[])
    option(parser, "--fleet-limit", "use at most N routes", positive_number, "N")
    for field, limit in ROUTE_LIMITS.items():
        flag = f"--{field.replace('_', '-')}"
        option(parser, flag, f"{limit.name}: {limit.rule}", positive_number, "N")
    add_changes(parser)
    text = "prove a lower bound beside the search, on a second core; stop where they meet"
    option(parser, "--bound", text)
    add_shared(parser, "seed", "threads", "model", "device", "quiet", "json")
    city = parser.add_argument_group("a city in districts")
    text = "solve N districts side by side, then improve across their borders by --threads"
    option(city, "--districts", text, positive_number, "N")
    add_executor(city, "districts at a time")
    stop = parser.add_argument_group(
        "stop rule (default: the method's own; ruin-recreate 5 s, or 10 ms for each street)"
    )
    add_limits(stop, "end after S seconds, with all files written")
    option(stop, "--target", "stop at a plan of this cost", whole_number, "COST")
    add_plan_files(parser)


def add_limits(parser: Any, time: str) -> None:
    """Add the limits of a search that any instance may have."""
    option(parser, "--time", time, seconds, "S")
    option(parser, "--iterations", "stop after N iterations", positive_number, "N")
    text = "stop after N iterations without improvement"
    option(parser, "--no-improvement", text, positive_number, "N")


def _solve(options: Namespace) -> int:
    if options.instance is None:
        import sys

        options.parser.print_help(sys.stderr)
        return 2
    from arcfleet.districts import require_warm_start, solve_districts
    from arcfleet.instance.files import read
    from arcfleet.methods import (
        find_method,
        load_for_method,
        parse_params,
        require_operations,
        require_time_to_load,
        solve,
        usual_stop,
    )

    check_plan_files(options, "instance", "start", "old_instance")
    _check_districts(options)
    if options.bound:
        from arcfleet.bounds.run import require_highs

        require_highs()
    method = find_method(options.method)
    if options.districts is not None:
        require_warm_start(method)
    params = parse_params(method, options.set)
    clock = TimeLimit(options, options.time)
    require_time_to_load(method, options.time, options.model)
    loaded = load_for_method(method, options.model, options.device)
    with clock.reading():
        instance = read(options.instance)
    check_drawable_instance(options, instance)
    for limit in ("fleet_limit", *ROUTE_LIMITS):
        if getattr(options, limit) is not None:
            instance = replace(instance, **{limit: getattr(options, limit)})
    instance, start = changed(options, instance)
    check_holdable_instance(options, instance)
    require_operations(method, instance, has_start=options.start is not None)
    stop = _stop(options, usual_stop(method, len(instance.required)))
    with search_progress(stop, hidden=options.quiet) as progress:
        how: dict[str, Any] = {
            "stop": clock.stop(stop),
            "seed": options.seed,
            "threads": options.threads,
            "progress": progress,
            "params": params,
        }
        if options.districts is None:
            more = {"start": start, "model": loaded, "bound": options.bound}
            result = solve(instance, method.name, **how, **more)
        else:
            how |= {"workers": options.workers, "executor": options.executor}
            result = solve_districts(instance, options.districts, method.name, **how)
    if result.stopped_by == "interrupt":
        note("interrupted; this is the best plan so far")
    if options.exclude_name:
        note_unwritten(options)
    try:
        write_plan_files(
            options, instance, result.solution, seconds=result.seconds, bound=result.bound
        )
    finally:
        # Printed even where a file could not be written: the plan is not lost.
        print_either(options, result.to_dict(), result.summary())
    return 0


def _check_districts(options: Namespace) -> None:
    """Raise OptionError for options that do not go with districts, or without them."""
    if options.districts is None:
        for name, usual in (("workers", None), ("executor", "processes")):
            if getattr(options, name) != usual:
                raise OptionError(
                    f"expected --districts beside --{name}, got none: use --threads for "
                    "the cores of this machine"
                )
        return
    for name in ("start", "bound", "target", "no_improvement"):
        value = getattr(options, name)
        if value is not None and value is not False:
            raise OptionError(
                f"expected --districts without --{name.replace('_', '-')}, got both: solve "
                "the city in districts first, then its plan with --start"
            )


def _stop(options: Namespace, usual: Stop) -> Stop:
    from arcfleet.search import Stop

    stop = Stop(
        seconds=options.time,
        iterations=options.iterations,
        no_improvement=options.no_improvement,
        target_cost=options.target,
    )
    # A target alone may never be met: then the method's usual limit ends the search.
    if stop.is_open:
        stop = replace(usual, target_cost=options.target)
    return stop


# --- compare ----------------------------------------------------------------------------


def _compare_options(parser: ArgumentParser) -> None:
    file_argument(parser, "instance", INSTANCE_HELP)
    text = "methods to compare (default: all whose model is available)"
    option(parser, "--methods", text, str, "NAME[,NAME]")
    text = "seconds for each method, with their share of reading and writing"
    option(parser, "--time", text, seconds, "S", default=5.0)
    add_shared(parser, "seed", "threads", "model", "device", "quiet", "json")
    add_plan_files(parser)


def _compare(options: Namespace) -> int:
    from arcfleet.bench.compare import best_of, checking_seconds, compare
    from arcfleet.instance.diagnose import require_solvable
    from arcfleet.instance.files import read
    from arcfleet.methods import load_for_methods

    check_plan_files(options, "instance")
    methods = _methods(options)
    clock = TimeLimit(options, None)
    models = load_for_methods(methods, options.model, options.device)
    with clock.reading():
        instance = read(options.instance)
    check_drawable_instance(options, instance)
    check_holdable_instance(options, instance)
    require_solvable(instance)
    if options.methods is None and instance.operations:
        able = [method for method in methods if method.operations]
        skipped = ", ".join(x.name for x in methods if not x.operations)
        note(f"skipped {skipped}, which cannot plan with {', '.join(instance.operations)}")
        methods = able
    entries: list[Entry] = []
    clock.seconds = options.time * len(methods)
    left = clock.seconds - clock.reserved() - clock.spent
    # The checker looks at every plan; reading and writing take the same of all.
    left = left / max(1, len(methods)) - checking_seconds(instance, clock.reading_seconds)
    try:
        for entry in compare(
            instance,
            methods,
            seconds=max(0.0, left),
            seed=options.seed,
            threads=options.threads,
            models=models,
            watch=partial(search_progress, hidden=options.quiet),
        ):
            entries.append(entry)
            if entry.failure is not None:
                note(f"{entry.method}: {entry.failure}")
    except KeyboardInterrupt:
        if not entries:
            raise
        note(f"interrupted after {len(entries)} of {len(methods)} methods")
    best = best_of(entries)
    try:
        if best is not None:
            write_plan_files(options, instance, best.solution, seconds=best.seconds)
    finally:
        # Printed even where a file could not be written: the comparison is not lost.
        facts = {
            "instance": instance.name,
            "best": None if best is None else best.method,
            "methods": [entry.facts(best) for entry in entries],
        }
        print_either(options, facts, _table(entries, best))
    return 0 if all(entry.ok for entry in entries) else 1


def _methods(options: Namespace) -> list[Method]:
    from arcfleet.methods import find_method, usable_methods

    if options.methods is None:
        return usable_methods(options.model, options.device)
    chosen = [find_method(name) for name in names(options.methods)]
    return list({method.name: method for method in chosen}.values())


def _table(entries: Sequence[Entry], best: Result | None) -> str:
    from arcfleet.report.tables import table

    def cost(entry: Entry) -> float:
        return float("inf") if entry.result is None else entry.result.cost

    def visits(plan: Solution) -> int:
        return sum(len(route.visits) for route in plan.routes)

    rows: list[tuple[object, ...]] = []
    plans = [entry.result.solution for entry in entries if entry.result is not None]
    texts = [plan.travel.texts() for plan in plans if plan.travel is not None]
    measures = list(dict.fromkeys(name for known in texts for name in known))
    facilities = any(visits(plan) for plan in plans)
    for entry in sorted(entries, key=cost):
        if entry.result is None:
            empty = [None] * (5 + facilities + len(measures))
            rows.append((entry.method, *empty, "no plan"))
            continue
        plan, gap = entry.result.solution, entry.gap_percent(best)
        fallback = entry.result.fallback
        rows.append(
            (
                entry.method if fallback is None else f"{entry.method} (by {fallback})",
                plan.cost,
                plan.deadhead,
                plan.num_routes,
                *([visits(plan)] if facilities else []),
                *(_travel_text(plan, measure) for measure in measures),
                None if gap is None else f"{gap:.2f} %",
                f"{entry.result.seconds:.2f}",
                "ok" if entry.ok else "FAULTY",
            )
        )
    counts = ("routes", "visits") if facilities else ("routes",)
    columns = ("method", "cost", "deadhead", *counts, *measures)
    return table(rows, (*columns, "gap to best", "seconds", "verified"))


def _travel_text(plan: Solution, measure: str) -> str | None:
    known = {} if plan.travel is None else plan.travel.texts()
    return known[measure][0] if measure in known else None


# --- show -------------------------------------------------------------------------------


def _show_options(parser: ArgumentParser) -> None:
    file_argument(parser, "instance", INSTANCE_HELP, "INSTANCE")
    file_argument(parser, "solution", "plan of the instance", "PLAN")
    add_shared(parser, "json")
    add_plan_files(parser, out=False)


def _show(options: Namespace) -> int:
    from arcfleet.instance.files import read
    from arcfleet.solution.checker import check
    from arcfleet.solution.drive import with_all_paths
    from arcfleet.solution.files import read_solution

    if all(getattr(options, name) is None for name in EXPORTS):
        known = ", ".join(f"--{name}" for name in EXPORTS)
        raise OptionError(f"expected one of {known}, got none of them")
    check_plan_files(options, "instance", "solution")
    instance = read(options.instance)
    check_drawable_instance(options, instance)
    solution = read_solution(options.solution, instance)
    faults = check(instance, solution).faults
    if faults:
        more = f" and {len(faults) - 1} more faults" if len(faults) > 1 else ""
        warnings.warn(
            f"the plan is not right ({faults[0]}{more}); see `arcfleet check`",
            FormatWarning,
            stacklevel=2,
        )
        # Its street paths may be what is wrong; without them they are computed again.
        services = tuple(replace(route, path=()) for route in solution.routes)
        solution = replace(solution, routes=services)
    solution = with_all_paths(instance, solution)
    files = write_plan_files(options, instance, solution)
    facts: dict[str, object] = {
        "instance": instance.name,
        "faults": list(faults),
        "files": {view: str(path) for view, path in files.items()},
    }
    lines = [
        f"{view:<8} {path}{'' if path.is_dir() else f'  {_size(path)}'}"
        for view, path in files.items()
    ]
    facts |= _plan_facts(instance, solution)
    lines += _plan_lines(instance, solution)
    print_either(options, facts, "\n".join(lines))
    return 0


def _plan_facts(instance: Instance, plan: Solution) -> dict[str, object]:
    """Return length, time, shape and routes of a plan, as far as known, for programs."""
    from arcfleet.solution.travel import travel_facts
    from arcfleet.solution.words import known_shape, route_facts, shape_facts

    routes = [
        {
            **route_facts(instance, plan, index),
            "load": route.load,
            "cost": route.cost,
            **travel_facts(route.travel),
        }
        for index, route in enumerate(plan.routes)
    ]
    return {
        **travel_facts(plan.travel),
        **shape_facts(known_shape(instance, plan)),
        "routes": routes,
    }


def _plan_lines(instance: Instance, plan: Solution) -> list[str]:
    """Return what is known of a plan beyond its cost, a line each."""
    from arcfleet.solution.words import has_own_numbers, route_figures

    lines = []
    if plan.travel is not None:
        cost = f"cost {plan.cost}, {count_of(plan.num_routes, 'route')}"
        lines.append(f"{'plan':<8} {cost}, {plan.travel.brief()}")
    if instance.vehicles or instance.facilities or has_own_numbers(plan):
        for number, route in zip(plan.numbers, plan.routes, strict=True):
            travel = "" if route.travel is None else route.travel.brief()
            figures = route_figures(instance, route, travel)
            lines.append(f"{f'route {number}':<8} {figures}")
    return lines


def _size(path: Path) -> str:
    size = path.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


# --- check ------------------------------------------------------------------------------


def _check_options(parser: ArgumentParser) -> None:
    file_argument(parser, "instance", INSTANCE_HELP, "INSTANCE")
    file_argument(parser, "solution", "plan of the instance", "PLAN")
    add_shared(parser, "json")


def _check(options: Namespace) -> int:
    from arcfleet.instance.files import read
    from arcfleet.solution.checker import check
    from arcfleet.solution.drive import with_all_paths
    from arcfleet.solution.files import read_solution
    from arcfleet.solution.travel import knows_travel

    instance = read(options.instance)
    solution = read_solution(options.solution, instance)
    report = check(instance, solution)
    facts: dict[str, object] = {
        "ok": report.ok,
        "cost": report.cost,
        "deadhead": report.deadhead,
        "num_routes": solution.num_routes,
        "faults": list(report.faults),
    }
    text = f"ok: cost {report.cost}, {count_of(solution.num_routes, 'route')}"
    if report.ok and knows_travel(instance):
        solution = with_all_paths(instance, solution)
    if report.ok:
        facts |= _plan_facts(instance, solution)
        visits = sum(len(route.visits) for route in solution.routes)
        text += f", {visits} facility visits" if instance.facilities else ""
        text += "" if solution.travel is None else f", {solution.travel.brief()}"
    print_either(options, facts, text if report.ok else "\n".join(report.faults))
    return 0 if report.ok else 1


SOLVE = Command(
    name="solve",
    summary="plan the routes of an instance",
    options=_solve_options,
    run=_solve,
    epilog="""\
examples:
  arcfleet solve town.dat                          plan with the defaults
  arcfleet solve town.dat --time 10 --threads 2    search for ten seconds
  arcfleet solve town.json --out plan.json --html plan.html --gpx plan.gpx
  arcfleet solve town.dat --method daam --device cpu --json
  arcfleet solve town.dat --method maens --set population=50 --iterations 2000
  arcfleet solve city.json --time 600 --districts 16 --workers 16 --threads 16
  arcfleet solve town.json --start yesterday.json --keep 50 --lock 3,5 \\
      --exclude-name "High Street" --pin "Mill Lane=2" --out today.json

Ctrl-C ends the search and keeps the best plan so far.
""",
)
COMPARE = Command(
    name="compare",
    summary="solve an instance by every method and compare the plans",
    options=_compare_options,
    run=_compare,
    epilog="""\
examples:
  arcfleet compare town.dat --time 10
  arcfleet compare town.dat --methods ruin-recreate,maens --out best.json --html best.html

Path scanning builds its usual number of plans, in at most --time seconds. The independent
checker verifies every plan; the files show the best one. Ctrl-C ends the comparison and
keeps what is done. Exit code 1 if a method finds no plan or a faulty one.
""",
)
SHOW = Command(
    name="show",
    summary="draw a plan, or export it for maps and navigation",
    options=_show_options,
    run=_show,
    epilog="""\
examples:
  arcfleet show town.json plan.json --html plan.html    open it in a browser
  arcfleet show town.json plan.json --gpx plan.gpx      drive it
  arcfleet show town.json plan.json --gpx tracks/       one file per route
""",
)
CHECK = Command(
    name="check",
    summary="verify a plan with the independent checker",
    options=_check_options,
    run=_check,
    epilog="""\
example:
  arcfleet check town.json plan.json

Prints ok and the cost, or every fault. Exit code 1 if there is a fault.
""",
)
