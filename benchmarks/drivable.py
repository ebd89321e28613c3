"""The lines and tables of the results page on drivable plans.

The lines are written by `turns_on_maps`, `drive_area`, `engine_speed --turn-rules` and
`street_maps`, each with `--out DIR`. `drivable_report` makes the table of a file of them.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from arcfleet import check, solve
from arcfleet.bench.machine import commit, machine, warn_of_reused
from arcfleet.cli.options import positive_number
from arcfleet.datasets.store import LineFormat, Store, read_records
from arcfleet.errors import SolutionError
from arcfleet.paper.report import Report, Section, make_folder
from arcfleet.search import Stop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from arcfleet.instance import Instance
    from arcfleet.search import Result

ITERATIONS = 200_000
QUICK_ITERATIONS = 100
SEEDS = (1, 2)
#: Turn rules of a plan that obeys none.
FREE = "free"


class Line(Protocol):
    """One finished measurement."""

    @property
    def machine(self) -> str:
        """Processor, cores and Python."""

    @property
    def commit(self) -> str:
        """Version that was measured."""

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the measurement: a later line replaces an earlier one."""


AnyLine = TypeVar("AnyLine", bound=Line)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCount:
    """A plan, and its turns as counted from the raw map."""

    map_name: str
    rules: str  # as for `arcfleet scene --turns`
    seed: int
    iterations: int
    machine: str
    commit: str
    capacity: int
    tasks: int
    routes: int
    cost: int
    deadhead: int
    signs: int  # turn restrictions of the raw map
    # As in `turns_on_maps.Counts`.
    turns: int
    forbidden: int
    doubtful: int
    u_turns: int
    u_turns_elsewhere: int
    lost: int

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the plan."""
        return self.map_name, self.rules, self.seed, self.iterations


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginPlan:
    """A plan of Portland's box, driving on streets around it."""

    margin: int | None  # metres; None for the whole map
    all_tasks: bool  # else only those that can be served with margin 0
    seed: int
    iterations: int
    machine: str
    commit: str
    to_serve: int
    served: int
    driven_on: int
    capacity: int
    tasks: int
    routes: int
    cost: int
    deadhead: int

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the plan."""
        return self.margin, self.all_tasks, self.seed, self.iterations


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpeed:
    """Speed of a method without and with turn rules."""

    method: str
    instance: str
    seed: int
    turns: int
    iterations: int  # per turn
    machine: str
    commit: str
    # Iterations per second of CPU time.
    speed_without: float
    speed_with: float
    # Quartiles of the ratio of speeds, with rules to without, over the turns.
    ratio_quartiles: tuple[float, float, float]

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the comparison."""
        return self.method, self.instance


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingTime:
    """Least time of reading a map."""

    map_name: str
    rounds: int
    machine: str
    commit: str
    processor_seconds: float
    elapsed_seconds: float

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the measurement."""
        return (self.map_name,)


def no_figures(records: Sequence[Any]) -> Mapping[str, Callable[..., None]]:
    """Return the figures of lines that have none."""
    return {}


class Lines(NamedTuple):
    """A file of lines, and how its table is made."""

    file: str
    form: LineFormat[Any]
    section: Callable[[Sequence[Any]], Section | list[Section]]
    command: Callable[[Sequence[Any]], str]
    caption: Callable[[Sequence[Any]], str]
    # Figures as in `Report`.
    figures: Callable[[Sequence[Any]], Mapping[str, Callable[..., None]]] = no_figures


def make_missing(
    lines: Lines,
    folder: Path | None,
    keys: Iterable[tuple[object, ...]],
    make: Callable[..., AnyLine],
) -> list[AnyLine]:
    """Return the line of each key; those that the file lacks are made and added.

    `make` is called with the key's members, and `machine` and `commit`. Without a folder
    all are made, and none is kept.
    """
    here = {"machine": machine(), "commit": commit()}
    if folder is None:
        return [make(*key, **here) for key in keys]
    keys = list(keys)
    make_folder(folder)
    with Store(folder / lines.file, lines.form) as store:
        found = {line.key: line for line in store.records}
        if any(key not in found for key in keys):
            warn_of_reused(store.path, [found[key] for key in keys if key in found], "runs")
        for key in keys:
            if key not in found:
                found[key] = make(*key, **here)
                store.add(found[key])
    return [found[key] for key in keys]


def replace_lines(lines: Lines, folder: Path, measured: Sequence[Line]) -> None:
    """Write lines into their file in place of those with the same keys."""
    make_folder(folder)
    new = {line.key for line in measured}
    with Store(folder / lines.file, lines.form) as store:
        kept = [line for line in store.records if line.key not in new]
        store.rewind(0)
        for line in (*kept, *measured):
            store.add(line)


def solve_verified(instance: Instance, iterations: int, seed: int) -> Result:
    """Solve by ruin and recreate on one thread; raise if the checker finds a fault."""
    return verified(
        solve(instance, "ruin-recreate", stop=Stop(iterations=iterations), seed=seed)
    )


def verified(result: Result) -> Result:
    """Return a result; raise if the checker finds a fault in its plan."""
    report = check(result.instance, result.solution)
    if not report.ok:
        raise SolutionError(f"faulty plan: {report.faults[0]}")
    return result


def plan_parser(description: str | None) -> argparse.ArgumentParser:
    """Return the parser of a benchmark that makes plans."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--iterations", type=positive_number, default=ITERATIONS, help="of each plan"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, metavar="SEED")
    parser.add_argument(
        "--quick", action="store_true", help="few plans of few iterations, to try it"
    )
    add_out_option(parser)
    return parser


def add_out_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for the folder of JSON lines."""
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for JSON lines, one per run"
    )


def read_lines(lines: Lines, folder: Path) -> list[Any]:
    """Read the lines of a file."""
    return read_records(folder / lines.file, lines.form)


def drivable_report(lines: Lines, records: Sequence[Line]) -> Report:
    """Return the table of some lines, with how and where they were measured."""
    machines = "; ".join(dict.fromkeys(line.machine for line in records))
    commits = ", ".join(dict.fromkeys(line.commit for line in records))
    made = lines.section(records)
    return Report(
        name=Path(lines.file).stem,
        sections=(made,) if isinstance(made, Section) else tuple(made),
        caption=f"{lines.caption(records)} Measured on {machines}. Commit {commits}.",
        details=(lines.command(records),),
        figures=lines.figures(records),
    )


def _turn_section(records: Sequence[TurnCount]) -> Section:
    groups: dict[tuple[str, int], list[TurnCount]] = defaultdict(list)
    for line in records:
        groups[line.map_name, line.iterations].append(line)
    rows = []
    for (name, _), group in groups.items():
        free = [line for line in group if line.rules == FREE]
        obeying = [line for line in group if line.rules != FREE]
        signs = group[0].signs
        rows.append(
            [
                Path(name).name.partition(".")[0],
                f"{signs:,}",
                f"{group[0].tasks:,}",
                _both(free, obeying, "forbidden") if signs else None,
                _both(free, obeying, "doubtful") if signs else None,
                _both(free, obeying, "u_turns_elsewhere"),
                f"{mean(free, 'cost') / 1000:.1f}",
                percent(mean(obeying, "cost"), mean(free, "cost")),
                _range(free, obeying),
                percent(mean(obeying, "deadhead"), mean(free, "deadhead")),
            ]
        )
    header = [
        *("map", "signs", "streets", "forbidden turns", "doubtful turns"),
        *("U-turns", "km", "cost of obeying", "by seed", "in deadhead"),
    ]
    return Section("Turns without and with rules", header, rows)


def _turn_caption(records: Sequence[TurnCount]) -> str:
    rules = next(line.rules for line in records if line.rules != FREE)
    return (
        f"Per plan, without rules → with `{rules}`; both serve the same streets. "
        "Forbidden: against a restriction with a via node. Doubtful: the same onto or from "
        "a way that runs on across the node, where the sign may mean its other part. "
        "U-turns: away from dead ends. Counted from the raw map, without the code that "
        "reads maps; steps of paths that it could not follow: "
        f"{sum(line.lost for line in records)}. km: cost of the plans without rules, "
        "serving included. By seed: least and largest cost of obeying. Whoever obeys "
        "could drive the same without rules: below 0, the search without rules missed a "
        f"cheaper plan, and the cost is too small to be told. {plan_limits(records)}"
    )


def _margin_section(records: Sequence[MarginPlan]) -> Section:
    groups: dict[int | None, list[MarginPlan]] = defaultdict(list)
    for line in records:
        groups[line.margin].append(line)
    first = mean([x for x in records if x.margin == 0 and not x.all_tasks], "deadhead")
    rows = []
    for margin, group in groups.items():
        same = mean([line for line in group if not line.all_tasks], "deadhead")
        every = mean([line for line in group if line.all_tasks], "deadhead")
        line = group[0]
        rows.append(
            [
                "whole map" if margin is None else f"{margin:,} m",
                f"{line.served} of {line.to_serve}",
                f"{line.driven_on:,}",
                f"{same / 1000:.2f}",
                percent(same, first),
                f"{every / 1000:.2f}",
            ]
        )
    tasks = next(line.tasks for line in records if not line.all_tasks)
    header = [
        *("margin", "streets served", "driven on", f"deadhead of {tasks}, km"),
        *("against 0 m", "deadhead of all, km"),
    ]
    return Section("A box in central Portland, by margin", header, rows)


def _margin_caption(records: Sequence[MarginPlan]) -> str:
    return (
        "Margin: distance from the box up to which streets are driven on. Deadhead of the "
        "streets that can be served with margin 0, so that the tasks are the same, and of "
        f"all that can be served. No turn rules. {plan_limits(records)}"
    )


def _speed_section(records: Sequence[EngineSpeed]) -> Section:
    rows = []
    for line in records:
        low, _, high = line.ratio_quartiles
        rows.append(
            [
                f"`{line.method}`",
                line.instance,
                f"{line.speed_without:,.0f}",
                f"{line.speed_with:,.0f}",
                f"{line.speed_with / line.speed_without:.2f}",
                f"{low:.2f} to {high:.2f}",
            ]
        )
    header = ["method", "instance", "without", "with rules", "ratio", "quartiles"]
    return Section("Iterations per second without and with turn rules", header, rows)


def _speed_caption(records: Sequence[EngineSpeed]) -> str:
    return (
        "Per second of CPU time, by turns in one run, from the same seed "
        f"({listed(line.seed for line in records)}). Rules: U-turns at dead ends only, "
        "and one in twenty of all other turns forbidden. Quartiles: of the ratios of "
        f"{listed(line.turns for line in records)} turns, whose work differs."
    )


def _reading_section(records: Sequence[ReadingTime]) -> Section:
    rows = [
        [
            line.map_name,
            f"{1000 * line.processor_seconds:.0f}",
            f"{1000 * line.elapsed_seconds:.0f}",
        ]
        for line in records
    ]
    return Section(
        "Reading maps, turn restrictions included",
        ["map", "processor ms", "elapsed ms"],
        rows,
    )


def _reading_caption(records: Sequence[ReadingTime]) -> str:
    return f"Best of {listed(line.rounds for line in records)} rounds; no seed."


def plan_command(name: str, folder: str) -> Callable[[Sequence[Any]], str]:
    """Return a function of the command that made some plans of a benchmark."""

    def command(records: Sequence[Any]) -> str:
        # One limit for all plans: a table of several would not compare.
        (iterations,) = {line.iterations for line in records}
        seeds = " ".join(map(str, dict.fromkeys(line.seed for line in records)))
        return _command(f"{name} --iterations {iterations} --seeds {seeds}", folder)

    return command


def _command(words: str, folder: str = "drivable") -> str:
    return f"python -m benchmarks.{words} --out benchmarks/results/{folder}"


def _speed_command(records: Sequence[EngineSpeed]) -> str:
    turns = max(line.turns for line in records)
    return _command(f"engine_speed --turn-rules --turns {turns}")


def plan_limits(records: Sequence[Any], streets: bool = False) -> str:
    """Return how plans were made, for a caption; with `streets`, also of how many."""
    tasks = f"{listed(line.tasks for line in records)} streets, " if streets else ""
    return (
        "Ruin and recreate on one thread, "
        f"{listed(f'{line.iterations:,}' for line in records)} iterations each; {tasks}"
        "capacity "
        f"{listed(f'{line.capacity:,}' for line in records)} m; mean of seeds "
        f"{listed(line.seed for line in records)}; every plan is verified by the checker."
    )


def listed(values: Iterable[object]) -> str:
    """Return the different values, after commas."""
    return ", ".join(map(str, dict.fromkeys(values)))


def mean(records: Iterable[Line], field: str) -> float:
    """Return the mean of a field."""
    return fmean(getattr(line, field) for line in records)


def _both(free: Iterable[Line], obeying: Iterable[Line], field: str) -> str:
    return " → ".join(f"{round(mean(lines, field), 1):g}" for lines in (free, obeying))


def _range(free: Iterable[TurnCount], obeying: Iterable[TurnCount]) -> str:
    costs = {line.seed: line.cost for line in free}
    ratios = [line.cost / costs[line.seed] for line in obeying]
    return " to ".join(percent(ratio, 1) for ratio in (min(ratios), max(ratios)))


def percent(value: float, base: float) -> str:
    """Return how much a value is above a base, in percent."""
    # Adding 0 makes -0.0 positive.
    return f"{round(100 * (value / base - 1), 1) + 0.0:+.1f} %"


TURN_COUNTS = Lines(
    "turns.jsonl",
    LineFormat("arcfleet-turn-count-1", TurnCount, "a line of `turns_on_maps`"),
    _turn_section,
    plan_command("turns_on_maps", "drivable"),
    _turn_caption,
)
MARGIN_PLANS = Lines(
    "margins.jsonl",
    LineFormat("arcfleet-margin-plan-1", MarginPlan, "a line of `drive_area`"),
    _margin_section,
    plan_command("drive_area", "drivable"),
    _margin_caption,
)
ENGINE_SPEEDS = Lines(
    "speeds.jsonl",
    LineFormat("arcfleet-engine-speed-1", EngineSpeed, "a line of `engine_speed`"),
    _speed_section,
    _speed_command,
    _speed_caption,
)
READING_TIMES = Lines(
    "reading.jsonl",
    LineFormat("arcfleet-reading-time-1", ReadingTime, "a line of `street_maps`"),
    _reading_section,
    lambda records: _command("street_maps"),
    _reading_caption,
)
#: In the order of the page.
DRIVABLE = (TURN_COUNTS, MARGIN_PLANS, ENGINE_SPEEDS, READING_TIMES)
