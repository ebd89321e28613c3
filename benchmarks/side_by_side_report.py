"""The tables of `benchmarks.side_by_side`: who is nearer to the best known costs."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from arcfleet._files import read_text
from arcfleet.bench.run import gap_percent
from arcfleet.bench.summary import summarise
from arcfleet.paper.report import Report, Section
from benchmarks import shared_dir

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from arcfleet.bench.run import Record
    from arcfleet.bench.summary import SummaryRow

OURS = "ruin-recreate"
#: Some runs of the published figures were repeated; one seed each is taken.
_REFERENCE_SEED = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRun:
    """A run of another program, made elsewhere.

    Parameters
    ----------
    solver, set_name, instance
        Who, on what.
    cost, seconds
        Of its plan, and of the whole run on the machine of that time.
    """

    solver: str
    set_name: str
    instance: str
    cost: int
    seconds: float


def read_reference_runs() -> list[ReferenceRun]:
    """Read the published runs of the collection."""
    text = read_text(shared_dir() / "carplib" / "reference_runs.csv")
    return [
        ReferenceRun(
            solver=row["solver"],
            set_name=row["set"],
            instance=row["name"],
            cost=int(row["cost"]),
            seconds=float(row["seconds"]),
        )
        for row in csv.DictReader(text.splitlines())
        if row["seed"] == _REFERENCE_SEED
    ]


def side_by_side_report(
    records: Sequence[Record], reference_runs: Iterable[ReferenceRun]
) -> Report:
    """Return both tables with where they come from."""
    sets = list(dict.fromkeys(record.set_name for record in records))
    rows = sorted(_rows(records), key=lambda row: sets.index(row.set_name))
    measured = Section(
        "Run here, by turns",
        [
            *("set", "limit s", "solver", "instances", "runs", "gap %"),
            *("runs at or below best known", "mean s", f"against {OURS}"),
        ],
        [_measured_line(row, records) for row in rows],
    )
    published = Section(
        "Not run here: figures of reference_runs.csv, seconds of another machine",
        [
            *("set", "instances", "program", "gap %", "mean s"),
            *("limit s", "solver run here", "gap % on the same instances"),
        ],
        list(_published_lines(sets, records, reference_runs)),
    )
    sections = (measured, published) if published.rows else (measured,)
    return Report(name="side-by-side", sections=sections, caption=_caption(records))


def better_equal_worse(
    records: Iterable[Record], set_name: str, time_limit: float, method: str
) -> tuple[int, int, int]:
    """Count the instances on which a solver's plans are cheaper, as dear, or dearer.

    Mean costs are compared, over the seeds that both it and ruin and recreate have.
    """
    costs: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
    for record in records:
        if (record.set_name, record.time_limit) == (set_name, time_limit):
            assert record.cost is not None
            costs[record.instance, record.seed][record.method] = record.cost
    differences: dict[str, int] = defaultdict(int)
    for (instance, _), by_method in costs.items():
        if method in by_method and OURS in by_method:
            differences[instance] += by_method[method] - by_method[OURS]
    values = differences.values()
    return (
        sum(x < 0 for x in values),
        sum(x == 0 for x in values),
        sum(x > 0 for x in values),
    )


def _measured_line(row: SummaryRow, records: Sequence[Record]) -> list[str | None]:
    group = [x for x in records if _group(x) == (row.set_name, row.time_limit, row.method)]
    known = [x for x in group if x.cost is not None and x.reference is not None]
    reached = sum(x.cost <= x.reference for x in known)  # type: ignore[operator]
    against = None
    if row.method != OURS:
        counts = better_equal_worse(records, row.set_name, row.time_limit, row.method)
        against = "{} better, {} equal, {} worse".format(*counts)
    return [
        row.set_name,
        f"{row.time_limit:g}",
        row.method,
        str(len({x.instance for x in group})),
        str(row.runs),
        _percent(row.gap_percent),
        f"{reached} of {len(known)}",
        f"{row.seconds:.2f}",
        against,
    ]


def _published_lines(
    sets: list[str], records: Sequence[Record], reference_runs: Iterable[ReferenceRun]
) -> Iterable[list[str | None]]:
    references = {(x.set_name, x.instance): x.reference for x in records}
    groups: dict[tuple[str, str], list[ReferenceRun]] = defaultdict(list)
    for run in reference_runs:
        if references.get((run.set_name, run.instance)) is not None:
            groups[run.set_name, run.solver].append(run)
    for set_name, solver in sorted(groups, key=lambda group: sets.index(group[0])):
        runs = groups[set_name, solver]
        names = {run.instance for run in runs}
        gaps = [gap_percent(x.cost, references[set_name, x.instance]) for x in runs]
        same = [
            record
            for record in records
            if record.set_name == set_name and record.instance in names
        ]
        for row in _rows(same):
            yield [
                set_name,
                str(len(runs)),
                solver,
                _percent(fmean(gap for gap in gaps if gap is not None)),
                f"{fmean(run.seconds for run in runs):.2f}",
                f"{row.time_limit:g}",
                row.method,
                _percent(row.gap_percent),
            ]


def _rows(records: Sequence[Record]) -> list[SummaryRow]:
    """Return the short limits first, and ours before the others."""
    return sorted(summarise(records), key=lambda row: (row.time_limit, row.method != OURS))


def _group(record: Record) -> tuple[str, float, str]:
    return record.set_name, record.time_limit, record.method


def _percent(gap: float | None) -> str | None:
    return None if gap is None else f"{gap:.3f}"


def _caption(records: Sequence[Record]) -> str:
    places = "; ".join(dict.fromkeys(record.machine for record in records))
    commits = ", ".join(dict.fromkeys(record.commit for record in records))
    return (
        "Gaps are means over the seeds of an instance, from 0 on, then over the instances. "
        f"One thread each, one run at a time. Measured on {places}. Commit {commits}."
    )
