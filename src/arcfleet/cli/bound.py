"""`arcfleet bound`: how good a plan can be at best."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.options import (
    Command,
    add_shared,
    file_argument,
    option,
    positive_number,
    seconds,
)
from arcfleet.cli.output import note, print_either
from arcfleet.cli.progress import bound_progress
from arcfleet.cli.solve import INSTANCE_HELP
from arcfleet.errors import SolutionError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from arcfleet.instance import Instance


def _options(parser: ArgumentParser) -> None:
    file_argument(parser, "instance", INSTANCE_HELP)
    text = "plan to compare with the bound; the bound need not rise above its cost"
    option(parser, "--plan", text, Path, "PLAN")
    option(parser, "--time", "end after S seconds", seconds, "S", default=60.0)
    text = "end after N linear and integer programs"
    option(parser, "--iterations", text, positive_number, "N")
    add_shared(parser, "seed", "quiet", "json")


def _run(options: Namespace) -> int:
    from dataclasses import replace

    from arcfleet.bounds.run import bound, require_highs
    from arcfleet.cli.time_limit import TimeLimit
    from arcfleet.instance.files import read
    from arcfleet.search import Stop

    require_highs()
    clock = TimeLimit(options, options.time)
    with clock.reading():
        instance = read(options.instance)
        cost = None if options.plan is None else _cost(instance, options.plan)
    left = max(0.0, options.time - clock.reserve - clock.spent)
    stop = Stop(seconds=left, iterations=options.iterations, target_cost=cost)
    with bound_progress(left, hidden=options.quiet) as progress:
        found = bound(instance, stop=stop, seed=options.seed, progress=progress)
    found = replace(found, seconds=clock.spent)
    if found.stopped_by == "interrupt":
        note("interrupted; this is the bound so far")
    print_either(options, found.to_dict(cost), found.summary(cost))
    return 0


def _cost(instance: Instance, path: Path) -> int:
    """Return the cost of a plan that the checker accepts, or raise SolutionError."""
    from arcfleet.solution.checker import check
    from arcfleet.solution.files import read_solution

    solution = read_solution(path, instance)
    faults = check(instance, solution).faults
    if faults:
        raise SolutionError(
            f"expected a plan without faults in {path}, got: {faults[0]}; see "
            "`arcfleet check`"
        )
    return solution.cost


BOUND = Command(
    name="bound",
    summary="prove how good a plan can be at best",
    options=_options,
    run=_run,
    epilog="""\
examples:
  arcfleet bound example:denver
  arcfleet bound example:denver --plan plan.json --time 10
  arcfleet solve example:denver --bound

No plan costs less than the bound. Turn rules, shifts and the like are left out: the bound
holds with them. It needs the extra: pip install "arcfleet[bounds]".
""",
)
