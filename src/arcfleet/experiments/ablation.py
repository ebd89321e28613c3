"""Models that differ in their inputs, trained alike: MDS, GAT, both, and ours."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from arcfleet.datasets import Dataset
from arcfleet.errors import OptionError
from arcfleet.experiments.rows import parse_rows, with_model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from arcfleet.experiments.rows import Row
    from arcfleet.neural.training_progress import TrainingProgress

    Tell = Callable[[TrainingProgress], None]

#: What the model may see, with the paper's names.
INPUT_LABELS = {
    "mds": "MDS",
    "gat": "GAT",
    "mds+gat": "MDS + GAT",
    "mds+gat+skip": "MDS + GAT + skip (ours)",
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
    device: str = "auto",
    threads: int = 1,
    progress: Callable[[str], Tell | None] = lambda _: None,
) -> dict[tuple[str, str | None], Path]:
    """Pre-train each kind of model on the first data set, then fine-tune it on each.

    Runs lie in `folder/INPUTS/pretrain` and `folder/INPUTS/SCALE`. Those that are finished
    are not made again, one that was stopped is resumed.

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
        Settings by name, the same for all.
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
        If kinds are unknown, or scales do not match.
    """
    from arcfleet.neural.packages import require_packages

    require_packages("training")
    from arcfleet.neural.finetune import finetune
    from arcfleet.neural.finetune_config import FinetuneConfig
    from arcfleet.neural.pretrain import pretrain
    from arcfleet.neural.pretrain_config import config_from, config_of

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
    first = next(iter(scales))
    models: dict[tuple[str, str | None], Path] = {}
    for name in inputs:
        sizes = {"model": {**pretraining.get("model", {}), "inputs": name}}
        start = folder / name / "pretrain"
        if not _is_finished(start):
            trained = pretrain(
                start,
                config_from({**pretraining, **sizes}),
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
            if not _is_finished(out):
                trained = finetune(
                    out,
                    config_of(FinetuneConfig, {**finetuning, **sizes}),
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


def _is_finished(folder: Path) -> bool:
    from arcfleet.neural.checkpoint import read_model_info

    model = folder / "model.safetensors"
    return model.is_file() and bool(read_model_info(model).facts.get("finished"))


def _require_finished(finished: bool) -> None:
    if not finished:
        raise KeyboardInterrupt
