"""What the inputs of the model are worth: costs at equal training."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from arcfleet.datasets import Dataset, open_labels
from arcfleet.datasets.labels import labels_path
from arcfleet.errors import FileError, OptionError
from arcfleet.paper.gaps import best_known_text, gaps_to, set_tables
from arcfleet.paper.report import Drawing, Report, Section, checksums, provenance, record_of
from arcfleet.paper.rows import parse_rows, with_model
from arcfleet.paper.table import cost_section, gap_lines, gap_text, lay_out
from arcfleet.report.charts import Panel, draw_panels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from arcfleet.neural.train.config import PretrainConfig
    from arcfleet.neural.train.loop import TrainingProgress
    from arcfleet.paper.model import Inputs
    from arcfleet.paper.rows import Row
    from arcfleet.paper.series import Series

    Tell = Callable[[TrainingProgress], None]


#: What the model may see, with the paper's names.
INPUT_LABELS = {
    "mds": "MDS",
    "gat": "GAT",
    "mds+gat": "MDS + GAT",
}


def ablation_rows(
    inputs: Sequence[str], pretraining: Mapping[str, Any], finetuning: Mapping[str, Any]
) -> list[Row]:
    """Give a row for each kind of inputs; plans are greedy, as decoded.

    Parameters
    ----------
    inputs
        Kinds of inputs, of INPUT_LABELS.
    pretraining, finetuning
        Settings by name; how long they last is kept with the row.
    """
    (greedy,) = parse_rows(["daam-sl-rl"])
    settings = {
        f"{stage}_{name}": given[name]
        for stage, given in (("pretrain", pretraining), ("finetune", finetuning))
        for name in ("minutes", "steps", "seed")
        if given.get(name) is not None
    }
    greedy = replace(greedy, settings=tuple(sorted(settings.items())))
    rows = [with_model(greedy, name, alone=True) for name in inputs]
    return [replace(row, label=INPUT_LABELS[row.label]) for row in rows]


def train_ablation(
    folder: Path,
    *,
    inputs: Sequence[str],
    data: Sequence[Path],
    validation: Sequence[Path],
    pretraining: Mapping[str, Any],
    finetuning: Mapping[str, Any],
    test_scales: Iterable[str] = (),
    device: str = "auto",
    threads: int = 1,
    progress: Callable[[str], Tell | None] = lambda _: None,
) -> dict[tuple[str, str | None], Path]:
    """Pre-train each kind of model on the first data set, then fine-tune it on each.

    Runs lie in `folder/INPUTS/pretrain` and `folder/INPUTS/SCALE`. Those that are finished
    are not made again, one that was stopped is resumed, one of fine-tuning that is to end
    later goes on.

    Parameters
    ----------
    folder
        For the runs.
    inputs
        Kinds of inputs, of INPUT_LABELS.
    data
        Data sets, one for each scale; the first must have labels.
    validation
        Labelled data sets, one for each of these scales.
    pretraining, finetuning
        Settings by name, the same for all; sizes of the model are those of pre-training.
    test_scales
        That models are wanted for.
    device, threads
        As `pretrain` takes them.
    progress
        Takes the name of a run and gives what is told how it goes.

    Returns
    -------
    models
        Model files by inputs and scale.

    Raises
    ------
    OptionError
        If kinds are unknown, scales do not match, or settings are wrong.
    FileError
        If a file is missing or damaged, or a run in the folder has other settings.
    """
    from arcfleet.neural.checkpoint import require_packages

    require_packages("training")
    from arcfleet.neural.train.config import (
        FinetuneConfig,
        PretrainConfig,
        changed,
        config_from,
    )
    from arcfleet.neural.train.finetune import finetune
    from arcfleet.neural.train.pretrain import pretrain

    # All that can be wrong is found before the first of many runs.
    for name in inputs:
        if name not in INPUT_LABELS:
            raise OptionError(
                f"expected inputs among {', '.join(INPUT_LABELS)}, got {name!r}"
            )
    scales = _by_scale(data, "to train on")
    checks = _by_scale(validation, "to validate on")
    for scale in scales:
        if scale not in checks:
            raise OptionError(
                f"expected a set to validate {scale} on, found none: name one"
            )
    for scale in test_scales:
        if scale not in scales:
            raise OptionError(
                f"expected test sets of the scales of --data, {', '.join(scales)}, got "
                f"{scale}: leave it out, or give sets of it to --data and --validation"
            )
    first = next(iter(scales))
    for path in (scales[first], *(checks[scale] for scale in scales)):
        open_labels(labels_path(path), Dataset.open(path))
    _require_end("pretrain", pretraining)
    _require_end("finetune", finetuning)
    published = {"type": "daam-paper", **pretraining.get("model", {})}
    first_config = config_from(PretrainConfig, {**pretraining, "model": published})
    first_sizes: Any = first_config.model
    later_config = config_from(FinetuneConfig, finetuning)
    sizes = {name: replace(first_sizes, inputs=cast("Inputs", name)) for name in inputs}
    for name in inputs:
        _require_same_start(folder / name, scales, first_config)

    models: dict[tuple[str, str | None], Path] = {}
    for name in inputs:
        start = folder / name / "pretrain"
        trained = pretrain(
            start,
            changed(first_config, model=sizes[name]),
            data=[scales[first]],
            validation=[checks[first]],
            device=device,
            resume=(start / "config.json").exists(),
            threads=threads,
            progress=progress(f"{name}, pre-training on {first}"),
        )
        _require_finished(trained.finished)
        for scale, path in scales.items():
            out = folder / name / scale
            trained = finetune(
                out,
                changed(later_config, model=sizes[name]),
                init=start / "model.safetensors",
                data=[path],
                validation=[checks[scale]],
                device=device,
                resume=(out / "config.json").exists(),
                threads=threads,
                progress=progress(f"{name}, fine-tuning on {scale}"),
            )
            _require_finished(trained.finished)
            models[name, scale] = out / "model.safetensors"
    return models


def run_folders(
    folder: Path, inputs: Sequence[str], data: Sequence[Path]
) -> list[tuple[str, Path]]:
    """Give the folders of all fine-tuning runs with the names of their inputs."""
    scales = _by_scale(data, "to train on")
    return [(INPUT_LABELS[x], folder / x / scale) for scale in scales for x in inputs]


def _by_scale(paths: Sequence[Path], what: str) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in paths:
        scale = str(Dataset.open(path).facts.get("task_set"))
        if scale in found:
            raise OptionError(
                f"expected one data set of each scale {what}, got {path} beside "
                f"{found[scale]}"
            )
        found[scale] = path
    return found


def _require_end(stage: str, settings: Mapping[str, Any]) -> None:
    if settings.get("steps") is None and settings.get("minutes") is None:
        raise OptionError(
            f"expected --{stage}-minutes, or steps or minutes in --{stage}-config, got "
            "neither"
        )


def _require_same_start(
    folder: Path, scales: Iterable[str], config: PretrainConfig
) -> None:
    """Refuse to train a model further that runs of fine-tuning began from."""
    from arcfleet.neural.train.run import saved_settings

    if not any((folder / scale / "config.json").exists() for scale in scales):
        return
    start = folder / "pretrain"
    saved = saved_settings(start)
    if (saved.get("steps"), saved.get("minutes")) != (config.run.steps, config.run.minutes):
        raise FileError(
            start,
            "expected the same steps and minutes of pre-training as before, since runs of "
            "fine-tuning began from it, got others: give the same, or another --out",
        )


def _require_finished(finished: bool) -> None:
    if not finished:
        raise KeyboardInterrupt


def ablation_report(series: Sequence[Series]) -> Report:
    """Lay out the costs of models that differ in their inputs, scale by scale.

    Raises
    ------
    OptionError
        If there is nothing to report.
    """
    tables = set_tables(series)
    used = [
        x for t in tables for x in (*t.rows.values(), *([t.labels] if t.labels else []))
    ]
    best = {t.name: t.best_known for t in tables}
    gaps = Section(
        "Mean gap of total cost to the best known in percent, 95 % confidence interval",
        ["inputs", *(t.name for t in tables)],
        lay_out(tables, lambda t, x: gap_text(gaps_to(x, best[t.name]))),
    )
    costs = cost_section(tables)
    panel = Panel(
        title="Inputs of the model",
        x_label="test set",
        y_label="mean gap of total cost to the best known, %",
        lines=gap_lines(tables, lambda t, x: gaps_to(x, best[t.name])),
        ticks=tuple(t.name for t in tables),
    )

    def draw(path: Path, caption: str) -> None:
        draw_panels([panel], path, caption)

    records = []
    for t in tables:
        for x in t.rows.values():
            compared = gaps_to(x, best[t.name])
            gap = None if compared is None else compared[0].gap_percent
            records.append(record_of(x) | {"gap_percent": gap})
    return Report(
        name="ablation",
        sections=(costs._replace(header=["inputs", *costs.header[1:]]), gaps),
        caption=(
            "Each model was pre-trained on the first scale and fine-tuned from there at "
            f"each scale, all alike ({_training(used)}); plans are greedy, as decoded. "
            f"{best_known_text(tables)}{provenance(used)}"
        ),
        details=checksums(used),
        records=tuple(records),
        drawings=(Drawing("ablation", draw),),
    )


def _training(series: Sequence[Series]) -> str:
    """Say how long models were trained, and with what seeds."""
    settings = dict.fromkeys(pair for each in series for pair in each.key.settings)
    return ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in settings)
