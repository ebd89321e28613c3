"""The reports of experiments by name, made from files alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arcfleet.errors import OptionError
from arcfleet.paper.ablation import ablation_report
from arcfleet.paper.generalise import generalise_report
from arcfleet.paper.pareto import pareto_report
from arcfleet.paper.runtime import runtime_report
from arcfleet.paper.series import Series, Store, join, read_chunks
from arcfleet.paper.table import table_report

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from arcfleet.paper.report import Report


#: Which file an experiment writes to and reads from.
STORES: dict[str, Store] = {
    "table": "runs",
    "runtime": "runs",
    "pareto": "runs",
    "generalise": "generalise",
    "ablation": "ablation",
}


def report_of(
    name: str,
    series: Sequence[Series],
    *,
    scale: str | None = None,
    seen: Collection[str] = (),
) -> Report:
    """Make the report of an experiment.

    Parameters
    ----------
    name
        One of STORES.
    series
        What was measured.
    scale
        Of "pareto": which scale; by default the largest.
    seen
        Of "generalise": cities that the models were trained on.

    Raises
    ------
    OptionError
        If an argument belongs to another experiment, or the series do not fit.
    """
    if scale is not None and name != "pareto":
        raise OptionError(f"expected --scale for pareto only, got it for {name}")
    if seen and name != "generalise":
        raise OptionError(f"expected --seen for generalise only, got it for {name}")
    if name == "pareto":
        return pareto_report(series, scale)
    if name == "generalise":
        return generalise_report(series, seen)
    plain = {"table": table_report, "runtime": runtime_report, "ablation": ablation_report}
    return plain[name](series)


def read_series(folders: Sequence[Path], name: str) -> list[Series]:
    """Read what folders hold for an experiment, joined.

    Raises
    ------
    FileError
        If a folder holds nothing for it.
    """
    return join(read_chunks(folders, STORES[name]))
