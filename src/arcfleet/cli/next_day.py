"""`arcfleet diff` and `edit`: plans compared, and changed by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arcfleet.cli.changes import (
    REPEATABLE,
    add_old_instance,
    add_out_instance,
    note_unwritten,
    read_plan,
    route_numbers,
    street_and_demand,
    street_and_route,
)
from arcfleet.cli.options import (
    Command,
    add_shared,
    file_argument,
    option,
    seconds,
    whole_number,
)
from arcfleet.cli.output import (
    add_html,
    add_plan_files,
    add_plot,
    base_map_options,
    check_drawable_instance,
    check_holdable_instance,
    check_plan_files,
    note,
    print_either,
    write_plan_files,
)
from arcfleet.cli.progress import search_progress
from arcfleet.cli.solve import INSTANCE_HELP
from arcfleet.cli.time_limit import TimeLimit
from arcfleet.errors import SolutionError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from arcfleet.solution import Solution
    from arcfleet.solution.edit import Edit


# --- diff -------------------------------------------------------------------------------


def _diff_options(parser: ArgumentParser) -> None:
    file_argument(parser, "instance", INSTANCE_HELP, "INSTANCE")
    file_argument(parser, "before", "earlier plan", "BEFORE")
    file_argument(parser, "after", "later plan", "AFTER")
    add_old_instance(parser)
    text = "number the later plan's routes as the earlier routes that they resemble most"
    option(parser, "--match-routes", text)
    add_shared(parser, "json")
    add_plot(parser)
    add_html(parser, "write an interactive map of both plans (one HTML file)")


def _diff(options: Namespace) -> int:
    from arcfleet.instance.files import read
    from arcfleet.solution.diff import diff
    from arcfleet.solution.files import read_solution
    from arcfleet.solution.match import carry_over
    from arcfleet.solution.renumber import renumber

    check_plan_files(options, "instance", "before", "after", "old_instance")
    instance = read(options.instance)
    old = None if options.old_instance is None else read(options.old_instance)
    check_drawable_instance(options, instance)
    known = old is not None
    before = read_plan(options.before, instance if old is None else old, known=known)
    after = read_solution(options.after, instance)
    if options.match_routes:
        after = renumber(after, carry_over(instance, before, old))
    found = diff(instance, before, after, old)
    if options.plot is not None:
        from arcfleet.report.diff_plot import plot_diff

        plot_diff(instance, after, found, options.plot)
    if options.html is not None:
        from arcfleet.report.html_map import write_diff_html

        base_map = base_map_options(options)
        write_diff_html(instance, before, after, options.html, old, **base_map)
    print_either(options, found.facts(), str(found))
    return 0


# --- edit -------------------------------------------------------------------------------


def _edit_options(parser: ArgumentParser) -> None:
    file_argument(parser, "instance", INSTANCE_HELP, "INSTANCE")
    file_argument(parser, "solution", "plan of the instance", "PLAN")
    edits = parser.add_argument_group("edits")
    text = "move streets of this name to this route; repeatable"
    option(edits, "--move", text, street_and_route, "NAME=ROUTE", **REPEATABLE)
    text = "do not serve streets of this name any more; repeatable"
    option(edits, "--remove", text, str, "NAME", **REPEATABLE)
    text = "serve streets of this name as well, each with this demand; repeatable"
    option(edits, "--add", text, street_and_demand, "NAME=DEMAND|NAME=length", **REPEATABLE)
    text = (
        "routes that may change beside those that lose or get a street; without it, added "
        "streets may go to any route"
    )
    option(edits, "--free", text, route_numbers, "ROUTE[,ROUTE]", default=[])
    text = (
        "price of every street that leaves its route, in the unit of costs (default: so "
        "high that streets leave only where a limit forces them to; with --free, 1)"
    )
    option(edits, "--keep", text, whole_number, "PRICE")
    text = "end after S seconds, with all files written; 0 only repairs the plan"
    option(parser, "--time", text, seconds, "S", default=5.0)
    add_out_instance(parser)
    add_shared(parser, "seed", "threads", "quiet", "json")
    add_plan_files(parser)


def _edit(options: Namespace) -> int:
    from arcfleet.instance.diagnose import require_solvable
    from arcfleet.instance.files import read
    from arcfleet.solution.checker import check
    from arcfleet.solution.diff import diff
    from arcfleet.solution.edit import edit
    from arcfleet.solution.files import read_solution

    check_plan_files(options, "instance", "solution")
    clock = TimeLimit(options, options.time)
    with clock.reading():
        instance = read(options.instance)
    check_drawable_instance(options, instance)
    before = read_solution(options.solution, instance)
    edited = edit(
        instance,
        before,
        move=options.move,
        remove=options.remove,
        add=dict(options.add),
        free=options.free,
        price=options.keep,
    )
    check_holdable_instance(options, edited.plain_instance)
    require_solvable(edited.instance)
    after = _searched(options, edited, clock)
    report = check(edited.plain_instance, after)
    if not report.ok:
        raise SolutionError(
            f"expected a plan without faults after the edits, got: {report.faults[0]}"
        )
    if edited.plain_instance != instance:
        note_unwritten(options)
    found = diff(edited.plain_instance, before, after, instance)
    try:
        write_plan_files(options, edited.plain_instance, after)
    finally:
        # Printed even where a file could not be written: the edits are not lost.
        facts = {"free": list(edited.free), **found.facts()}
        free = ", ".join(map(str, edited.free)) or "none"
        print_either(options, facts, f"free      routes {free}\n{found}")
    return 0


def _searched(options: Namespace, edited: Edit, clock: TimeLimit) -> Solution:
    """Return the plan after a search of what may change."""
    from arcfleet.methods import solve
    from arcfleet.search import Stop

    repaired = edited.repaired
    if options.time == 0:
        if not repaired.ok:
            raise SolutionError(
                f"expected edits that fit the routes, but {repaired.reason}: free more "
                "routes with --free, or search with --time 5"
            )
        return repaired.solution
    if not repaired.ok:
        note(f"searching without the plan: {repaired.reason}")
    stop = Stop(seconds=options.time)
    with search_progress(stop, hidden=options.quiet) as progress:
        result = solve(
            edited.instance,
            stop=clock.stop(stop),
            seed=options.seed,
            threads=options.threads,
            progress=progress,
            start=repaired.solution if repaired.ok else None,
        )
    if result.stopped_by == "interrupt":
        note("interrupted; this is the best plan so far")
    return result.solution


DIFF = Command(
    name="diff",
    summary="compare two plans: streets that moved, routes before and after",
    options=_diff_options,
    run=_diff,
    epilog="""\
examples:
  arcfleet diff town.json yesterday.json today.json --plot moved.png --html moved.html
  arcfleet diff today-town.json yesterday.json today.json --old-instance town.json
""",
)
EDIT = Command(
    name="edit",
    summary="move, remove or add streets of a plan, then search what may change",
    options=_edit_options,
    run=_edit,
    epilog="""\
examples:
  arcfleet edit town.json plan.json --move "High Street=2" --out edited.json
  arcfleet edit town.json plan.json --remove "Mill Lane" --free 2,3 --time 10 \\
      --out edited.json --out-instance edited-town.json
  arcfleet edit town.json plan.json --add "New Road=120" --out edited.json \\
      --out-instance edited-town.json

Names are matched regardless of case and accents; link:17 is the link of that position,
id:B-3 those with that id of your own data.
Routes that lose or get a street may change, and those of --free; all others are locked.
Unless --keep or --free allow it, no other street leaves its route to save cost.
""",
)
