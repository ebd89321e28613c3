"""Summary of the runs of a suite: means per set, and anytime curves.

Every mean is taken over the seeds of an instance first and over the instances then, so
that a benchmark that was cut short does not favour the instances it saw more often.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from arcfleet.bench.run import gap_percent
from arcfleet.report.charts import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from arcfleet.bench.run import Record


_POINTS = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRow:
    """Means of one set, method and time limit."""

    set_name: str
    method: str
    time_limit: float
    runs: int
    gap_percent: float | None  # mean gap to the reference; None where no instance has one
    seconds: float  # mean length of a run
    seconds_to_best: float  # mean time at which a run found its best plan
    reached_percent: float | None  # percentage of the runs with a reference that reached it
    seconds_to_reference: float | None  # mean time at which these did; None where none did
    # Mean gap to the lower bound, and percentage of the runs that meet it; None where no
    # instance has one.
    bound_gap_percent: float | None = None
    proven_percent: float | None = None


def summarise(records: Iterable[Record]) -> list[SummaryRow]:
    """Return one row per set, method and time limit, in this order."""
    return [
        SummaryRow(
            set_name=set_name,
            method=method,
            time_limit=time_limit,
            runs=len(group),
            gap_percent=_mean(group, lambda r: r.gap_percent),
            seconds=_mean(group, lambda r: r.seconds) or 0.0,
            seconds_to_best=_mean(group, lambda r: r.seconds_to_best) or 0.0,
            reached_percent=_mean(group, _reached_percent),
            seconds_to_reference=_mean(group, seconds_to_reference),
            bound_gap_percent=_mean(group, _bound_gap_percent),
            proven_percent=_mean(group, _proven_percent),
        )
        for (set_name, method, time_limit), group in _groups(records).items()
    ]


def seconds_to_reference(record: Record) -> float | None:
    """Return when a run first had a plan as cheap as the reference; None if never."""
    if record.reference is None:
        return None
    return next((s for s, cost in record.history if cost <= record.reference), None)


def anytime_curves(records: Iterable[Record]) -> dict[str, list[Line]]:
    """Return, per set, the mean gap against the seconds of each method and time limit.

    A curve begins when every run of its group has a plan, and a run that ended keeps its
    last gap. Runs without a reference are left out.
    """
    curves: dict[str, list[Line]] = defaultdict(list)
    known = [r for r in records if r.reference and r.history]
    for (set_name, method, time_limit), group in _groups(known).items():
        first = max(r.history[0][0] for r in group)
        last = max([first, *(r.seconds or 0.0 for r in group)])
        times = np.geomspace(max(first, 1e-4), max(last, 1e-4), _POINTS)
        times[0] = max(first, 1e-4)  # geomspace may round below the last first plan
        by_instance: dict[str, list[np.ndarray]] = defaultdict(list)
        for record in group:
            by_instance[record.instance].append(_gaps_at(record, times))
        mean = np.mean([np.mean(gaps, axis=0) for gaps in by_instance.values()], axis=0)
        curves[set_name].append(
            Line(
                label=f"{method}, {time_limit:g} s",
                x=tuple(times.tolist()),
                y=tuple(mean.tolist()),
            )
        )
    return dict(curves)


def _gaps_at(record: Record, times: np.ndarray) -> np.ndarray:
    found = np.array([seconds for seconds, _ in record.history])
    gaps = np.array([gap_percent(cost, record.reference) for _, cost in record.history])
    latest = np.searchsorted(found, times, side="right") - 1
    return gaps[np.maximum(latest, 0)]


def _reached_percent(record: Record) -> float | None:
    if record.reference is None or record.cost is None:
        return None
    return 100.0 if record.cost <= record.reference else 0.0


def _bound_gap_percent(record: Record) -> float | None:
    return None if record.cost is None else gap_percent(record.cost, record.bound)


def _proven_percent(record: Record) -> float | None:
    if record.bound is None or record.cost is None:
        return None
    return 100.0 if record.cost <= record.bound else 0.0


def _groups(records: Iterable[Record]) -> dict[tuple[str, str, float], list[Record]]:
    groups: dict[tuple[str, str, float], list[Record]] = defaultdict(list)
    for record in records:
        groups[record.set_name, record.method, record.time_limit].append(record)
    sets = list(dict.fromkeys(set_name for set_name, _, _ in groups))
    methods = list(dict.fromkeys(method for _, method, _ in groups))
    order = sorted(groups, key=lambda g: (sets.index(g[0]), methods.index(g[1]), g[2]))
    return {group: groups[group] for group in order}


def _mean(
    records: Sequence[Record], value: Callable[[Record], float | None]
) -> float | None:
    by_instance: dict[str, list[float]] = defaultdict(list)
    for record in records:
        found = value(record)
        if found is not None:
            by_instance[record.instance].append(found)
    return fmean(map(fmean, by_instance.values())) if by_instance else None
