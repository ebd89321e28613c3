"""The results pages: tables made from JSON lines, each with a caption and no story."""

from __future__ import annotations

import json
from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, Any

from arcfleet.paper.reports import report_of
from arcfleet.paper.series import read_series
from arcfleet.report.charts import Line, Panel, draw_panels
from arcfleet.report.tables import markdown_table
from benchmarks.bounds import BOUND_LINES
from benchmarks.drivable import DRIVABLE, drivable_report, read_lines
from benchmarks.mcarptif import MCARPTIF_RUNS
from benchmarks.next_day import NEXT_DAYS
from benchmarks.scale import read_lines as lines_of_scale
from benchmarks.scale import sources as sources_of_scale
from benchmarks.scale import tables as tables_of_scale
from benchmarks.serve_chaos import SERVE_RUNS
from benchmarks.shape import SHAPED_PLANS
from benchmarks.time_limits import LIMITED_RUNS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from arcfleet.paper.report import Report, Section

_TABLE = ("table-cpu", "table-maens", "table-gpu")
#: Folders of JSON lines that each page is made from.
SOURCES = {
    "results/carplib.md": ("carplib",),
    "results/beside-pyvrp.md": ("side-by-side",),
    "results/table.md": _TABLE,
    "results/runtime.md": ("runtime",),
    "results/cities.md": ("cities",),
    "results/ablation.md": ("ablation",),
    "results/drivable.md": ("drivable",),
    "results/operations.md": ("mcarptif", "shape", "next-day"),
    "results/limits.md": ("limits",),
    "results/large-instances.md": ("scale",),
    "results/web-app.md": ("serve",),
    "results/bounds.md": ("bounds",),
}
_BEST_KNOWN = "Mean gap of total cost to the best known"
_OURS = "ruin-recreate"
#: Of pages that the shipped model was not measured for yet.
_EARLIER = (
    "Rows of DaAM are of an earlier model than the shipped one, that of run 8 in the log."
)


def pages(results: Path, figures: Path) -> dict[str, str]:
    """Return every results page, by its name below docs/.

    Parameters
    ----------
    results
        Folder of the JSON lines, benchmarks/results.
    figures
        Folder for the figures of the pages, the one that the pages go to.
    """
    return {
        "results/carplib.md": carplib(results),
        "results/beside-pyvrp.md": beside_pyvrp(results),
        "results/table.md": _table(results, figures),
        "results/runtime.md": _runtime(results, figures),
        "results/cities.md": _cities(results),
        "results/ablation.md": _ablation(results, figures),
        "results/drivable.md": drivable(results),
        "results/operations.md": operations(results, figures),
        "results/limits.md": limits(results),
        "results/large-instances.md": large_instances(results),
        "results/web-app.md": web_app(results),
        "results/bounds.md": bounds(results),
    }


def report(name: str, folders: Iterable[Path], figures: Path | None = None) -> Report:
    """Return the report of an experiment; draw its figures into a folder if one is given.

    Parameters
    ----------
    name
        Name of the experiment.
    folders
        Folders of its JSON lines.
    figures
        Folder of the figures.
    """
    store = name if name in ("ablation", "generalise") else "runs"
    scale = "task100" if name == "pareto" else None
    made = report_of(name, read_series(list(folders), store), scale=scale)
    if figures:
        figures.mkdir(parents=True, exist_ok=True)
        for figure, draw in made.figures.items():
            draw(figures / f"{figure}.svg", caption="")
    return made


def _table(results: Path, figures: Path) -> str:
    folders = [results / name for name in _TABLE]
    made = report("table", folders, figures)
    which = report("pareto", folders, figures)
    lines = _head(
        "Test sets of Beijing",
        "Instances of 20 to 100 tasks cut from streets that no training has seen; the rows "
        "of the DaAM paper and ours. Rows of DaAM without further words are the shipped "
        "model; those as published and the baselines have one model for each size, trained "
        "for minutes; the rows as published do not reach the paper's figures. S2V-DQN from "
        "Task40 on and VRP-DL at Task50, Task80 and Task100 are weaker than the shipped "
        "models of all sizes. Means "
        "of cost are over 10,000 instances, or over the first 1,000 where a cell says so; "
        "all gaps are on the first 1,000. Plans of DaAM are of the weights before they "
        "were stored in half precision, and the checker has not seen them. Times of "
        "baselines and rows as published include other work on the card.",
        "table",
        _TABLE,
    )
    lines += ["", "![Gap to the best known cost over the scales](table.svg)"]
    # The gap to the best known first; that to the labels says nearly the same.
    shown = [x for x in made.sections if "labels" not in x.title]
    shown.sort(key=lambda section: not section.title.startswith(_BEST_KNOWN))
    lines += [*_tables(shown), "", made.caption]
    lines += ["", "## Gap against time at Task100", "", "![Gap against time](pareto.svg)"]
    return _joined([*lines, *_tables(which.sections, level=3), "", which.caption])


def _runtime(results: Path, figures: Path) -> str:
    made = report("runtime", [results / "runtime"], figures)
    lead = (
        "Time per instance, one at a time and in batches, without reading files or models. "
        + _EARLIER
    )
    lines = _head("Run times", lead, "runtime", ["runtime"])
    lines += ["", "![Time per instance](runtime.svg)"]
    return _joined([*lines, *_tables(made.sections), "", made.caption])


def _cities(results: Path) -> str:
    folders = sorted(path.name for path in (results / "cities").iterdir())
    lines = _head(
        "Cities that were not trained on",
        "Mean gap of total cost to the best known in percent, 95 % confidence interval. "
        + _EARLIER,
        "table",
        [f"cities/{name}" for name in folders[:1]],
    )
    for name in folders:
        made = report("table", [results / "cities" / name])
        lines += ["", f"## {name.replace('_', ' ').title()}", ""]
        lines += [_rows(x) for x in made.sections if x.title.startswith(_BEST_KNOWN)]
    return _joined([*lines, "", made.caption])


def _ablation(results: Path, figures: Path) -> str:
    made = report("ablation", [results / "ablation"])
    lead = (
        "The paper's ablation of the inputs of its model, two seeds, after a short "
        "training: six models side by side on one GPU."
    )
    lines = _head("Ablation of the inputs", lead, "ablation", ["ablation"])
    lines += [*_tables(made.sections), "", made.caption]
    text = (results / "ablation" / "convergence.jsonl").read_text("utf-8")
    figures.mkdir(parents=True, exist_ok=True)
    points = [json.loads(line) for line in text.splitlines()]
    draw_panels(_convergence(points), figures / "ablation-convergence.svg")
    lines += [
        *("", "## Convergence", "", "![Validation gap](ablation-convergence.svg)", ""),
        "Mean gap of greedy plans, as decoded, to the labels of 500 validation instances, "
        "against steps. Solid: seed 1, dashed: seed 2. A step of PPO is a batch of sampled "
        "plans and the updates from it.",
    ]
    return _joined(lines)


def _convergence(points: Iterable[dict[str, Any]]) -> list[Panel]:
    """Return a panel of validation gaps against steps for each stage of the ablation."""
    stages: dict[str, dict[tuple[str, int], list[tuple[int, float]]]] = {}
    for x in points:
        curves = stages.setdefault(x["stage"], {})
        curve = curves.setdefault((x["inputs"], x["seed"]), [])
        curve.append((x["step"], x["gap_percent"]))
    panels = []
    for stage, curves in stages.items():
        lines = [
            Line(
                label=inputs,
                x=tuple(step for step, _ in curve),
                y=tuple(gap for _, gap in curve),
                dashed=seed > 1,
            )
            for (inputs, seed), curve in curves.items()
        ]
        is_first = stage == "pretrain"
        title = "supervised, Task30" if is_first else f"PPO, {stage.title()}"
        panels.append(
            Panel(
                title=title,
                x_label="steps",
                y_label="validation gap, greedy, %",
                lines=tuple(lines),
            )
        )
    return panels


def carplib(results: Path) -> str:
    """Return the page of the public instances, from runs of `arcfleet bench`."""
    runs = _runs(results / "carplib" / "runs.jsonl")
    lines = [
        "# CARPLIB",
        "",
        "Gap to the best known cost on the public instances, in percent; below 0 where a "
        "run beats it. [How to measure](../howto/measure-on-carplib.md) has the commands.",
        "",
        "| set | method | limit | instances | seeds | gap % | to best | reached |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for (name, method, limit), group in _groups(runs).items():
        known = [run for run in group if run["gap_percent"] is not None]
        reached = sum(run["cost"] <= run["reference"] for run in known)
        lines.append(
            f"| {name} | `{method}` | {limit:g} s | {_count(group, 'instance')} "
            f"| {_count(group, 'seed')} | {_gap(known):.3f} "
            f"| {fmean(x['seconds_to_best'] for x in group):.2f} s "
            f"| {reached} of {len(known)} |"
        )
    note = (results / "carplib" / "note.md").read_text("utf-8").strip()
    lines += [
        "",
        "Gap: mean over the seeds of an instance, then over the instances. To best: mean "
        "time at which a run found its best plan. Reached: runs at or below the best "
        f"known. One thread per run. {_origin(runs)} {note}",
    ]
    return _joined(lines)


def beside_pyvrp(results: Path) -> str:
    """Return the page of runs by turns with PyVRP."""
    runs = _runs(results / "side-by-side" / "runs.jsonl")
    lines = [
        "# Beside PyVRP",
        "",
        "Ruin and recreate and [PyVRP](https://pyvrp.org), a solver of node routing, by "
        "turns on one thread with the same seconds; gap to the best known cost in percent.",
        "",
        "| set | limit | instances | ruin-recreate | PyVRP | PyVRP better, equal, worse |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    groups = _groups(runs)
    for (name, method, limit), group in groups.items():
        if method == _OURS:
            continue
        ours = groups[name, _OURS, limit]
        counts = ", ".join(map(str, _better_equal_worse(group, ours)))
        lines.append(
            f"| {name} | {limit:g} s | {_count(group, 'instance')} "
            f"| {_gap(ours):.3f} | {_gap(group):.3f} | {counts} |"
        )
    methods = ", ".join(dict.fromkeys(run["method"] for run in runs))
    lines += [
        "",
        "Each direction in which a street may be served is a client of PyVRP, the two of a "
        "street are a group of which exactly one is visited; PyVRP's settings are its "
        "defaults. PyVRP is made for node routing with time windows and more, which is not "
        "asked for here.",
        "",
        f"Solvers: {methods}. The last column counts instances by mean cost. "
        "`python -m benchmarks.side_by_side SUITE --time 5 --out DIR` makes such lines. "
        f"{_origin(runs)}",
    ]
    return _joined(lines)


def drivable(results: Path) -> str:
    """Return the page of plans that obey turn rules and drive past the area's border."""
    lines = [
        "# Drivable plans",
        "",
        "What plans on street maps break without turn rules, what obeying costs, and what "
        "a margin around the area saves.",
    ]
    for source in DRIVABLE:
        made = drivable_report(source, read_lines(source, results / "drivable"))
        lines += [*_tables(made.sections), "", made.caption]
        lines += ["", "```text", *made.details, "```"]
    return _joined(lines)


def operations(results: Path, figures: Path) -> str:
    """Return the page of plans with facilities, prices on shape, and of the next day."""
    lines = [
        "# Operations",
        "",
        "Plans with landfills and shifts beside another solver, what even and compact "
        "routes cost, and what a plan keeps of yesterday's.",
    ]
    for title, folder, source in (
        ("MCARPTIF", "mcarptif", MCARPTIF_RUNS),
        ("Balance and compactness", "shape", SHAPED_PLANS),
        ("The next day", "next-day", NEXT_DAYS),
    ):
        if not (results / folder / source.file).exists():
            continue
        made = drivable_report(source, read_lines(source, results / folder))
        lines += ["", f"## {title}"]
        figures.mkdir(parents=True, exist_ok=True)
        for name, draw in made.figures.items():
            draw(figures / f"{name}.svg", caption="")
            lines += ["", f"![{title}]({name}.svg)"]
        lines += [*_tables(made.sections, level=3), "", made.caption]
        lines += ["", "```text", *made.details, "```"]
    return _joined(lines)


def limits(results: Path) -> str:
    """Return the page of commands with a time limit."""
    made = drivable_report(LIMITED_RUNS, read_lines(LIMITED_RUNS, results / "limits"))
    lines = [
        "# Time limits",
        "",
        "How long `arcfleet solve --time` takes, from the start of the process to its end. "
        "[What it holds for](../guide/first-plan.md#what-a-time-limit-holds-for) says what "
        "is promised.",
        *_tables(made.sections),
        *("", made.caption, "", "```text", *made.details, "```"),
    ]
    return _joined(lines)


def large_instances(results: Path) -> str:
    """Return the page of instances of up to a whole city."""
    files = sorted((results / "scale").glob("*.jsonl"))
    made = [line for file in files for line in lines_of_scale(file)]
    lines = [
        "# Large instances",
        "",
        "What ruin and recreate reaches on scenes of Beijing of up to 23,822 tasks (all "
        "streets inside the 5th ring, turn rules as mapped, capacity 20,000), on Hefei-10 "
        "and on the largest of egl. [How cities are planned]"
        "(../explanation/ruin-recreate.md#cities).",
    ]
    for title, rows in tables_of_scale(made):
        lines += ["", f"## {title}", "", markdown_table(rows[1:], rows[0])]
    command = "python -m benchmarks.scale run FOLDER --out scale.jsonl"
    return _joined([*lines, "", "```text", command, *sources_of_scale(made), "```"])


def web_app(results: Path) -> str:
    """Return the page of what the web app withstands."""
    made = drivable_report(SERVE_RUNS, read_lines(SERVE_RUNS, results / "serve"))
    lines = [
        "# The web app under stress",
        "",
        "What `arcfleet serve` does when its processes are killed, when many watch, and "
        "when many jobs wait. [The HTTP API](../reference/http-api.md) says what is "
        "promised.",
        *_tables(made.sections),
        *("", made.caption, "", "```text", *made.details, "```"),
    ]
    return _joined(lines)


def bounds(results: Path) -> str:
    """Return the page of lower bounds."""
    made = drivable_report(BOUND_LINES, read_lines(BOUND_LINES, results / "bounds"))
    lines = [
        "# Lower bounds",
        "",
        "How close the bounds of `arcfleet bound` come to the best known costs, and what "
        "takes the time. [How it works](../explanation/bounds.md).",
        *_tables(made.sections),
        *("", made.caption, "", "```text", *made.details, "```"),
    ]
    return _joined(lines)


def _head(title: str, lead: str, name: str, folders: Iterable[str]) -> list[str]:
    places = [f"benchmarks/results/{folder}" for folder in folders]
    command = " \\\n    ".join([f"arcfleet paper report {name} --out report", *places])
    return [f"# {title}", "", lead, "", "```text", command, "```"]


def _tables(sections: Iterable[Section], level: int = 2) -> list[str]:
    lines: list[str] = []
    for section in sections:
        lines += ["", f"{'#' * level} {section.title}", "", _rows(section)]
    return lines


def _rows(section: Section) -> str:
    return markdown_table(section.rows, section.header)


def _runs(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text("utf-8").splitlines()
    return [run for run in map(json.loads, lines) if run["error"] is None]


def _groups(
    runs: Iterable[dict[str, Any]],
) -> dict[tuple[str, str, float], list[dict[str, Any]]]:
    groups: dict[tuple[str, str, float], list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        groups[run["set"], run["method"], run["time_limit"]].append(run)
    return groups


def _gap(runs: Iterable[dict[str, Any]]) -> float:
    by_instance: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        if run["gap_percent"] is not None:
            by_instance[run["instance"]].append(run["gap_percent"])
    return fmean(fmean(gaps) for gaps in by_instance.values())


def _count(runs: Iterable[dict[str, Any]], field: str) -> int:
    return len({run[field] for run in runs})


def _better_equal_worse(
    runs: Iterable[dict[str, Any]], ours: Iterable[dict[str, Any]]
) -> tuple[int, int, int]:
    costs = {(run["instance"], run["seed"]): run["cost"] for run in ours}
    differences: dict[str, int] = defaultdict(int)
    for run in runs:
        differences[run["instance"]] += run["cost"] - costs[run["instance"], run["seed"]]
    values = differences.values()
    return (
        sum(x < 0 for x in values),
        sum(x == 0 for x in values),
        sum(x > 0 for x in values),
    )


def _origin(runs: Iterable[dict[str, Any]]) -> str:
    machines = "; ".join(dict.fromkeys(run["machine"] for run in runs))
    commits = ", ".join(dict.fromkeys(run["commit"] for run in runs))
    return f"Measured on {machines}. Commit {commits}."


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"
