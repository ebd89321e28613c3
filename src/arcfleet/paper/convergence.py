"""Convergence of training: validation gaps of runs against steps and minutes."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from arcfleet._files import decode_text, is_file, reading
from arcfleet.bench.machine import commit
from arcfleet.errors import FileError, OptionError
from arcfleet.neural.checkpoint import read_model_info
from arcfleet.neural.model import DaamConfig
from arcfleet.neural.train.config import PretrainConfig, RunConfig
from arcfleet.neural.train.pretrain import pretrain
from arcfleet.neural.train.run import read_identity
from arcfleet.paper.report import Report, Section, prepare_folder, write_report
from arcfleet.paper.sets import refuse_beside_quick, tiny_set
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
        Figures, which need matplotlib.
    quick
        A tiny training run, to see that all of it works.
    """

    runs: tuple[str, ...] = field(
        default=(), metadata={"positional": True, "metavar": "[NAME=]RUN"}
    )
    out: Path = field(metadata={"metavar": "DIR"})
    figures: bool = True
    quick: bool = False


def run(config: Config, watch: Watch) -> Report:
    """Report the validation gaps of training runs."""
    runs: dict[str, Path] = {}
    if config.quick:
        refuse_beside_quick(runs=config.runs)
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


class Curve(NamedTuple):
    """Validations of a run on one set."""

    run: str
    set_name: str
    steps: tuple[int, ...]
    minutes: tuple[float, ...]
    gaps: tuple[float, ...]  # mean gap of greedy plans to the labels, as decoded, percent


def read_curves(runs: Sequence[tuple[str, Path]]) -> list[Curve]:
    """Read the validations of runs, given by name and folder, from their metrics."""
    return [
        Curve(name, set_name, *zip(*points, strict=True))
        for name, folder in runs
        for set_name, points in _validations(folder / "metrics.jsonl").items()
    ]


def _validations(path: Path) -> dict[str, list[tuple[int, float, float]]]:
    """Return step, minutes and gap of all validations, by name of the set."""
    with reading(path, "the metrics of a training run"):
        data = path.read_bytes()
    lines = decode_text(path, data, "name another folder").splitlines()
    found: dict[str, list[tuple[int, float, float]]] = {}
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            if "gaps" in record:
                step, minutes = int(record["step"]), record["seconds"] / 60
                for name, gaps in record["gaps"].items():
                    point = (step, minutes, 1.0 * gaps["greedy"])
                    if not all(map(math.isfinite, point)):
                        raise ValueError("no finite numbers")
                    found.setdefault(name, []).append(point)
        except (
            *(ValueError, KeyError, TypeError, AttributeError),
            *(RecursionError, OverflowError),
        ) as error:
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
    """Lay out the curves of runs: a row of two panels for each validation set."""
    if not runs:
        raise OptionError("expected at least one run, got none")
    curves = read_curves(runs)
    panels = []
    for set_name in dict.fromkeys(curve.set_name for curve in curves):
        chosen = [curve for curve in curves if curve.set_name == set_name]
        by_step = tuple(Line(label=c.run, x=c.steps, y=c.gaps) for c in chosen)
        by_minute = tuple(Line(label=c.run, x=c.minutes, y=c.gaps) for c in chosen)
        y_label = "validation gap, greedy, %"
        panels += [
            Panel(title=set_name, x_label=x_label, y_label=y_label, lines=lines)
            for x_label, lines in (("steps", by_step), ("minutes of training", by_minute))
        ]
    section = Section(
        "Mean gap of greedy plans to the labels in percent, first and last validation",
        ["run", "set", "steps", "minutes", "first", "last"],
        [
            [c.run, c.set_name, str(c.steps[-1])]
            + [f"{x:.2f}" for x in (c.minutes[-1], c.gaps[0], c.gaps[-1])]
            for c in curves
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
        figures={name: partial(draw_panels, panels)},
    )


def _caption(runs: Sequence[tuple[str, Path]]) -> str:
    """Return the seeds, the devices and the size of the validation sets of runs."""
    seeds: set[int] = set()
    instances: set[int] = set()
    devices: dict[str, None] = {}
    for _, folder in runs:
        path = folder / "model.safetensors"
        has_model = is_file(path)
        # Without its model, a run has no word of the device.
        path = path if has_model else folder / "config.json"
        facts: dict[str, Any] = (
            dict(read_model_info(path).facts) if has_model else read_identity(folder)
        )
        try:
            seeds.add(facts["config"]["seed"])
            instances |= {each["instances"] for each in facts["validation"]}
            if has_model:
                devices[f"{facts['device']} (torch {facts['torch']})"] = None
        except (KeyError, TypeError):
            raise FileError(
                path,
                "expected the facts of a training run, found none: name folders that "
                "`arcfleet train` has made",
            ) from None
    numbers = ", ".join(str(x) for x in sorted(seeds))
    counts = ", ".join(f"{x:,}" for x in sorted(instances))
    trained = f"Trained on {', '.join(devices)}. " if devices else ""
    return (
        "Mean gap of greedy plans, as decoded, to the labels of the validation sets "
        f"({counts} instances each). Seed {numbers}. {trained}"
        f"Reported by commit {commit()}."
    )
