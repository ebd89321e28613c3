"""`arcfleet compare`: solve an instance by every method and set the plans side by side."""

from __future__ import annotations

import sys
from argparse import RawDescriptionHelpFormatter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.cli.options import add_json, add_model, seconds, whole_number
from arcfleet.cli.output import print_json, print_result
from arcfleet.cli.views import (
    VIEWS,
    add_views,
    check_distinct,
    check_instance,
    check_views,
    write_views,
)

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from arcfleet.cli.options import Commands
    from arcfleet.instance import Instance
    from arcfleet.methods import Method
    from arcfleet.neural.solver import LoadedModel
    from arcfleet.search import Result, Stop
    from arcfleet.solution.checker import Report

_EXAMPLES = """\
examples:
  arcfleet compare town.dat --time 10
  arcfleet compare town.dat --methods ruin-recreate,maens --out best.json --plot best.png
  arcfleet compare town.json --html best.html

Methods that search on get --time seconds each; the path scanning methods build their usual
number of plans, in at most that time. The learned methods are compared, too, where --model
names their kind of model or one comes with arcfleet, and torch is installed; --model and
--device are for them alone. Every plan is judged independently of the solvers; files are of
the best plan. Ctrl-C ends the comparison and keeps what is done.
"""


@dataclass(frozen=True, slots=True)
class _Entry:
    """What came of one method: a judged result, or why there is none."""

    method: str
    result: Result | None = None
    report: Report | None = None
    failure: str | None = None

    @property
    def is_sound(self) -> bool:
        return self.report is not None and self.report.ok


def add_parser(commands: Commands) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "compare",
        help="solve an instance by every method",
        description="Solve an instance by every method and compare the plans.",
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("instance", type=Path, metavar="FILE")
    parser.add_argument(
        "--time",
        type=seconds,
        default=5.0,
        metavar="S",
        help="seconds for each method (default 5)",
    )
    parser.add_argument(
        "--methods", metavar="NAME[,NAME]", help="only these; see `arcfleet methods`"
    )
    add_model(parser)
    parser.add_argument(
        "--seed", type=whole_number, default=0, metavar="N", help="default 0"
    )
    parser.add_argument(
        "--threads",
        type=whole_number,
        default=1,
        metavar="N",
        help="default 1; 0: all cores",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the best plan")
    add_views(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress line")
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    """Run the command."""
    from arcfleet.instance.diagnose import require_solvable
    from arcfleet.instance.files import read
    from arcfleet.methods import load_for_methods

    _check_outputs(options)
    methods = _methods(options)
    loaded = load_for_methods(methods, options.model, options.device)
    instance = read(options.instance)
    check_instance(options, instance)
    require_solvable(instance)
    entries = _compare(instance, methods, loaded, options)
    best = min(
        (entry.result for entry in entries if entry.is_sound and entry.result is not None),
        key=lambda result: result.cost,
        default=None,
    )
    try:
        if best is not None:
            _write(options, instance, best)
    finally:
        # Printed even where a file could not be written: the comparison is not lost.
        if options.json:
            print_json(_facts(instance, entries, best))
        else:
            print_result(_table(entries, best))
    return 0 if all(entry.is_sound for entry in entries) else 1


def _methods(options: Namespace) -> list[Method]:
    from arcfleet.methods import find_method, usable_methods

    if options.methods is None:
        return usable_methods(options.model, options.device)
    chosen = [find_method(name.strip()) for name in options.methods.split(",")]
    return list({method.name: method for method in chosen}.values())


def _stop(method: Method, limit: float) -> Stop:
    from arcfleet.search import Stop
    from arcfleet.search.path_scanning import PATH_SCANNING_VARIANTS

    if method.name in PATH_SCANNING_VARIANTS:
        return replace(method.default_stop, seconds=limit)
    return Stop(seconds=limit)


def _compare(
    instance: Instance,
    methods: Sequence[Method],
    loaded: Mapping[str, LoadedModel],
    options: Namespace,
) -> list[_Entry]:
    """Run the methods in turn; after Ctrl-C give what is done, if anything is."""
    entries: list[_Entry] = []
    try:
        for method in methods:
            entry = _entry(instance, method, loaded, options)
            entries.append(entry)
            if entry.failure is not None:
                print(f"arcfleet: {method.name}: {entry.failure}", file=sys.stderr)
            if entry.result is not None and entry.result.stopped_by == "interrupt":
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        if not entries:
            raise
        print(
            f"arcfleet: interrupted after {len(entries)} of {len(methods)} methods",
            file=sys.stderr,
        )
    return entries


def _entry(
    instance: Instance,
    method: Method,
    loaded: Mapping[str, LoadedModel],
    options: Namespace,
) -> _Entry:
    from arcfleet.cli.progress import progress_line
    from arcfleet.errors import ArcfleetError
    from arcfleet.methods import solve
    from arcfleet.solution.checker import check

    stop = _stop(method, options.time)
    try:
        with progress_line(stop, hidden=options.quiet) as progress:
            result = solve(
                instance,
                method.name,
                stop=stop,
                seed=options.seed,
                threads=options.threads,
                progress=progress,
                model=None if method.kind is None else loaded[method.kind],
            )
    except ArcfleetError as error:
        return _Entry(method.name, failure=str(error))
    report = check(instance, result.solution)
    failure = None if report.ok else "; ".join(report.faults)
    return _Entry(method.name, result, report, failure)


def _gap(result: Result, best: Result | None) -> float | None:
    """Give the gap to the best plan of the comparison, in percent."""
    if best is None:
        return None
    if best.cost == 0:
        return 0.0 if result.cost == 0 else None
    return 100 * (result.cost - best.cost) / best.cost


def _table(entries: Sequence[_Entry], best: Result | None) -> str:
    from arcfleet.report.tables import table

    rows: list[tuple[object, ...]] = []
    for entry in sorted(entries, key=_rank):
        if entry.result is None:
            rows.append((entry.method, *[None] * 5, "no plan"))
            continue
        plan, gap = entry.result.solution, _gap(entry.result, best)
        rows.append(
            (
                entry.method,
                plan.cost,
                plan.deadhead,
                plan.num_routes,
                None if gap is None else f"{gap:.2f} %",
                f"{entry.result.seconds:.2f}",
                "ok" if entry.is_sound else "FAULTY",
            )
        )
    header = ("method", "cost", "deadhead", "routes", "gap to best", "seconds", "judged")
    return table(rows, header)


def _rank(entry: _Entry) -> float:
    return float("inf") if entry.result is None else entry.result.cost


def _facts(
    instance: Instance, entries: Sequence[_Entry], best: Result | None
) -> dict[str, object]:
    return {
        "instance": instance.name,
        "best": None if best is None else best.method,
        "methods": [
            {
                "method": entry.method,
                "cost": entry.result.cost,
                "deadhead": entry.result.solution.deadhead,
                "num_routes": entry.result.solution.num_routes,
                "gap_percent": _gap(entry.result, best),
                "seconds": round(entry.result.seconds, 3),
                "stopped_by": entry.result.stopped_by,
                "ok": entry.is_sound,
                "failure": entry.failure,
            }
            if entry.result is not None
            else {"method": entry.method, "ok": False, "failure": entry.failure}
            for entry in entries
        ],
    }


def _check_outputs(options: Namespace) -> None:
    """Find out before the searches what would prevent writing after them."""
    from arcfleet._files import check_writable

    check_distinct(options, "instance", "out", *VIEWS)
    if options.out is not None:
        check_writable(options.out)
    check_views(options)


def _write(options: Namespace, instance: Instance, best: Result) -> None:
    """Write every output that was asked for; each is of the best plan."""
    if options.out is not None:
        from arcfleet.solution.files import write_solution

        write_solution(instance, best.solution, options.out, seconds=best.seconds)
    write_views(options, instance, best.solution)
