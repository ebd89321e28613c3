"""Convergence of training: validation gaps of runs against steps and minutes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from arcfleet.bench.machine import commit
from arcfleet.errors import FileError, OptionError
from arcfleet.neural.checkpoint import require_packages
from arcfleet.paper.report import Report, Section, prepare_folder, write_report
from arcfleet.paper.sets import tiny_set
from arcfleet.report.charts import Line, Panel, draw_panels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arcfleet.paper.commands import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Inputs and settings of `arcfleet paper convergence`.

    Parameters
    ----------
    runs
        Folders of training runs, as NAME=FOLDER with a name for the legend.
    out
        Output folder.
    figures
        Whether to draw figures, which needs matplotlib.
    quick
        Whether to train a tiny model instead, to see that all of it works.
    """

    runs: tuple[str, ...] = field(
        default=(), metadata={"positional": True, "metavar": "[NAME=]RUN"}
    )
    out: Path
    figures: bool = True
    quick: bool = False


def run(config: Config, watch: Watch) -> Report:
    """Report the validation gaps of training runs.

    Parameters
    ----------
    config
        Inputs and settings.
    watch
        Callbacks.

    Raises
    ------
    OptionError
        If there is no run, or two have the same name.
    FileError
        If a folder is none of a run.
    """
    runs: dict[str, Path] = {}
    prepare_folder(config.out, figures=config.figures)
    for text in config.runs:
        name, equals, folder = text.partition("=")
        path = Path(folder if equals else text)
        name = name if equals else path.name
        if name in runs:
            raise OptionError(
                f"expected runs with different names, got {name!r} twice: name them as "
                "NAME=RUN"
            )
        runs[name] = path
    if config.quick:
        runs = {"quick": _tiny_run(config.out / "inputs")}
    report = convergence_report(list(runs.items()))
    return write_report(report, config.out, figures=config.figures)


def _tiny_run(folder: Path) -> Path:
    """Pre-train a tiny model for some steps, and return the folder of the run."""
    require_packages("training")
    from arcfleet.neural.model import DaamConfig
    from arcfleet.neural.train.config import PretrainConfig, RunConfig
    from arcfleet.neural.train.pretrain import pretrain

    config = PretrainConfig(
        model=DaamConfig(width=16, layers=1, heads=2, feed_forward=16),
        run=RunConfig(steps=2, validations=2, log_steps=1),
        tokens=1000,
    )
    path = folder / "run"
    sets = [tiny_set(folder)]
    resume = (path / "config.json").exists()
    pretrain(path, config, data=sets, validation=sets, device="cpu", resume=resume)
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Validations of a run on one set.

    Parameters
    ----------
    run
        Name of the run.
    set_name
        Name of the validation set.
    steps, minutes
        Steps and minutes of training before each validation.
    gaps
        Mean gap of greedy plans to the labels, as decoded, in percent.
    """

    run: str
    set_name: str
    steps: tuple[int, ...]
    minutes: tuple[float, ...]
    gaps: tuple[float, ...]


def read_curves(runs: Sequence[tuple[str, Path]]) -> list[Curve]:
    """Read the validations of runs from their metrics.

    Parameters
    ----------
    runs
        Names and folders; runs with other validation sets may share a name.

    Raises
    ------
    FileError
        If a folder has no metrics, or no validation among them.
    """
    curves = []
    for name, folder in runs:
        found = _validations(folder / "metrics.jsonl")
        for set_name in dict.fromkeys(each.set_name for each in found):
            points = [each for each in found if each.set_name == set_name]
            curves.append(
                Curve(
                    run=name,
                    set_name=set_name,
                    steps=tuple(each.step for each in points),
                    minutes=tuple(each.minutes for each in points),
                    gaps=tuple(each.gap for each in points),
                )
            )
    return curves


class _Validation(NamedTuple):
    set_name: str
    step: int
    minutes: float
    gap: float


def _validations(path: Path) -> list[_Validation]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise FileError(
            path,
            f"expected the metrics of a training run, cannot be read ({error.strerror})",
        ) from error
    found: list[_Validation] = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            if "gaps" in record:
                step, minutes = int(record["step"]), record["seconds"] / 60
                found += [
                    _Validation(name, step, minutes, 1.0 * gaps["greedy"])
                    for name, gaps in record["gaps"].items()
                ]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if number == len(lines):  # cut short by a kill
                continue
            raise FileError(
                path, "expected a line of metrics, found another", number
            ) from error
    if not found:
        raise FileError(
            path,
            "expected validations among the metrics, found none: train with --validation",
        )
    return found


def convergence_report(
    runs: Sequence[tuple[str, Path]], name: str = "convergence"
) -> Report:
    """Lay out the curves of runs: a row of two panels for each validation set.

    Parameters
    ----------
    runs
        Names and folders, as `read_curves` takes them.
    name
        Name of the files.

    Raises
    ------
    OptionError
        If there is no run.
    FileError
        If a folder is none of a run.
    """
    if not runs:
        raise OptionError("expected at least one run, got none")
    curves = read_curves(runs)
    panels = []
    for set_name in dict.fromkeys(curve.set_name for curve in curves):
        chosen = [curve for curve in curves if curve.set_name == set_name]
        for x_label, of_minutes in (("steps", False), ("minutes of training", True)):
            lines = tuple(
                Line(label=c.run, x=c.minutes if of_minutes else c.steps, y=c.gaps)
                for c in chosen
            )
            panels.append(
                Panel(
                    title=set_name,
                    x_label=x_label,
                    y_label="validation gap, greedy, %",
                    lines=lines,
                )
            )

    def draw(path: Path, caption: str) -> None:
        draw_panels(panels, path, caption)

    section = Section(
        "Mean gap of greedy plans to the labels in percent, first and last validation",
        ["run", "set", "steps", "minutes", "first", "last"],
        [
            [
                curve.run,
                curve.set_name,
                str(curve.steps[-1]),
                f"{curve.minutes[-1]:.2f}",
                f"{curve.gaps[0]:.2f}",
                f"{curve.gaps[-1]:.2f}",
            ]
            for curve in curves
        ],
    )
    return Report(
        name=name,
        sections=(section,),
        caption=_caption(runs),
        records=tuple(
            {"run": c.run, "set": c.set_name, "step": s, "minutes": m, "gap_percent": g}
            for c in curves
            for s, m, g in zip(c.steps, c.minutes, c.gaps, strict=True)
        ),
        figures={name: draw},
    )


def _caption(runs: Sequence[tuple[str, Path]]) -> str:
    """Return the seeds, the devices and the size of the validation sets of runs."""
    require_packages("reading the models of runs")
    from arcfleet.neural.checkpoint import read_model_info

    seeds: set[int] = set()
    instances: set[int] = set()
    devices: dict[str, None] = {}
    for _, folder in runs:
        path = folder / "model.safetensors"
        facts: dict[str, Any] = dict(read_model_info(path).facts)
        try:
            seeds.add(facts["config"]["seed"])
            instances |= {each["instances"] for each in facts["validation"]}
            devices[f"{facts['device']} (torch {facts['torch']})"] = None
        except (KeyError, TypeError):
            raise FileError(
                path,
                "expected the facts of a training run in the model, found none: name "
                "folders that `arcfleet train` has made",
            ) from None
    numbers = ", ".join(str(x) for x in sorted(seeds))
    counts = ", ".join(f"{x:,}" for x in sorted(instances))
    return (
        "Mean gap of greedy plans, as decoded, to the labels of the validation sets "
        f"({counts} instances each). Seed {numbers}. Trained on {', '.join(devices)}. "
        f"Reported by commit {commit()}."
    )
