"""The reports of experiments by name, made from files of costs alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 (the command line reads the types)
from typing import TYPE_CHECKING, Literal

from arcfleet.errors import OptionError
from arcfleet.paper.ablation import ablation_report
from arcfleet.paper.generalise import generalise_report
from arcfleet.paper.measure import split_names
from arcfleet.paper.pareto import pareto_report
from arcfleet.paper.report import Report, prepare_folder, write_report
from arcfleet.paper.runtime import runtime_report
from arcfleet.paper.series import read_series
from arcfleet.paper.table import table_report

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from arcfleet.paper.commands import Watch
    from arcfleet.paper.series import Series

Name = Literal["table", "runtime", "pareto", "generalise", "ablation"]

#: Stores of experiments that have one of their own; the others share `runs`.
_STORES = {"generalise": "generalise", "ablation": "ablation"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Inputs and settings of `arcfleet paper report`.

    Parameters
    ----------
    name
        Experiment to report.
    folders
        Folders of its measured costs, perhaps of several machines.
    out
        Output folder.
    scale
        Task set of pareto, as task60; default: the largest.
    seen
        Maps that the models of generalise were trained on.
    figures
        Figures, which need matplotlib.
    """

    name: Name = field(metadata={"positional": True})
    folders: tuple[Path, ...] = field(metadata={"positional": True})
    out: Path = field(metadata={"metavar": "DIR"})
    scale: str | None = None
    seen: tuple[str, ...] = ()
    figures: bool = True


def run(config: Config, watch: Watch) -> Report:
    """Report an experiment from the folders of its measured costs.

    Neither test sets nor models are needed.
    """
    series = read_series(config.folders, _STORES.get(config.name, "runs"))
    seen = tuple(split_names(config.seen))
    report = report_of(config.name, series, scale=config.scale, seen=seen)
    prepare_folder(config.out, figures=config.figures)
    return write_report(report, config.out, figures=config.figures)


def report_of(
    name: str,
    series: Sequence[Series],
    *,
    scale: str | None = None,
    seen: Collection[str] = (),
) -> Report:
    """Return the report of an experiment."""
    for option, value, owner in (("scale", scale, "pareto"), ("seen", seen, "generalise")):
        if value and name != owner:
            raise OptionError(f"expected --{option} for {owner} only, got it for {name}")
    if name == "pareto":
        return pareto_report(series, scale)
    if name == "generalise":
        return generalise_report(series, seen)
    plain = {"table": table_report, "runtime": runtime_report, "ablation": ablation_report}
    return plain[name](series)
