"""Ablation of the inputs of the model: costs at equal training."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path  # noqa: TC003 (the command line reads the types)
from typing import TYPE_CHECKING, Any, cast

from arcfleet.datasets import Dataset, open_labels
from arcfleet.datasets.labels import labels_path
from arcfleet.errors import FileError, OptionError
from arcfleet.neural.checkpoint import require_packages
from arcfleet.paper.convergence import convergence_report
from arcfleet.paper.gaps import best_known_text, columns_of, gaps_to
from arcfleet.paper.measure import (
    MeasureConfig,
    measured_series,
    plan_measurements,
    split_names,
)
from arcfleet.paper.report import (
    Report,
    Section,
    checksums,
    prepare_folder,
    provenance,
    record_of,
    write_report,
)
from arcfleet.paper.rows import ModelFiles, parse_rows, with_model
from arcfleet.paper.sets import open_test_sets, tiny_set
from arcfleet.paper.table import cost_section, gap_lines, gap_text, lay_out
from arcfleet.report.charts import Panel, draw_panels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from arcfleet.neural.train.config import PretrainConfig
    from arcfleet.paper.commands import Watch
    from arcfleet.paper.model import Inputs
    from arcfleet.paper.rows import Row
    from arcfleet.paper.series import Series

#: Inputs of the model, with the paper's names.
INPUT_LABELS = {
    "mds": "MDS",
    "gat": "GAT",
    "mds+gat": "MDS + GAT",
}

#: Arcs per step on a CPU, unless a file of settings says otherwise.
_CPU_TOKENS = 20_000

_TINY_MODEL = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 16}
_TINY = {"steps": 2, "tokens": 1000, "validations": 2, "log_steps": 1, "model": _TINY_MODEL}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Inputs and settings of `arcfleet paper ablation`.

    Parameters
    ----------
    sets
        Test sets, each of one of the scales of `data`.
    out
        Output folder; unchanged results in it are reused, stopped runs are resumed.
    data
        Training sets, one for each scale; the first needs labels.
    validation
        Labelled validation sets, one for each of these scales.
    inputs
        Inputs of the models to compare.
    pretrain_minutes
        Minutes of pre-training of each model.
    finetune_minutes
        Minutes of fine-tuning of each model on each scale.
    pretrain_config
        TOML file with settings of pre-training.
    finetune_config
        TOML file with settings of fine-tuning.
    objective
        Objective of fine-tuning; default: ppo, the paper's.
    count
        Number of first instances of each test set, 0 for all.
    measure
        How rows are measured.
    figures
        Whether to draw figures, which needs matplotlib.
    quick
        Whether to train tiny models instead, to see that all of it works.
    """

    sets: tuple[Path, ...] = field(
        default=(), metadata={"positional": True, "metavar": "SET"}
    )
    out: Path
    data: tuple[Path, ...] = ()
    validation: tuple[Path, ...] = ()
    inputs: tuple[str, ...] = ("mds", "gat", "mds+gat")
    pretrain_minutes: float | None = None
    finetune_minutes: float | None = None
    pretrain_config: Path | None = None
    finetune_config: Path | None = None
    objective: str | None = None
    count: int = 0
    measure: MeasureConfig = field(default_factory=MeasureConfig)
    figures: bool = True
    quick: bool = False


def run(config: Config, watch: Watch) -> Report:
    """Train models that differ in their inputs, and report their gaps.

    Each model is pre-trained on the first training set and fine-tuned from there on each of
    them. Runs lie in the folder `ablation` of the output.

    Parameters
    ----------
    config
        Inputs and settings.
    watch
        Callbacks.
    """
    pretraining = _settings(config, config.pretrain_config, config.pretrain_minutes)
    finetuning = _settings(config, config.finetune_config, config.finetune_minutes)
    if config.objective is not None:
        finetuning["objective"] = config.objective
    if config.quick:
        sets = (tiny_set(config.out / "inputs"),)
        config = replace(
            config, sets=sets, data=sets, validation=sets, inputs=("mds", "mds+gat")
        )
        pretraining |= _TINY
        finetuning |= {**_TINY, "copies": 2, "rollout_tokens": 1000}
    if finetuning.setdefault("objective", "ppo") == "ppo":
        # The paper's, which are not the default ones of fine-tuning.
        finetuning = {"learning_rate": 1e-4, "temperature": 1.0} | finetuning
    prepare_folder(config.out, figures=config.figures)
    inputs = split_names(config.inputs)
    folder = config.out / "ablation"
    test_sets = open_test_sets(config.sets)
    files = train_ablation(
        folder,
        watch,
        inputs=inputs,
        data=config.data,
        validation=config.validation,
        pretraining=pretraining,
        finetuning=finetuning,
        test_scales=[test_set.scale for test_set in test_sets],
        device=config.measure.device,
        threads=config.measure.workers,
    )
    models = ModelFiles(files, config.measure.device)
    rows = ablation_rows(inputs, pretraining, finetuning)
    measurements = plan_measurements(test_sets, rows, models, count=config.count or None)
    store = config.out / "ablation.jsonl"
    series = measured_series(measurements, store, models, config.measure, watch)
    runs = run_folders(folder, inputs, config.data)
    curves = convergence_report(runs, "ablation-convergence")
    write_report(curves, config.out, figures=config.figures)
    return write_report(ablation_report(series), config.out, figures=config.figures)


def _settings(config: Config, path: Path | None, minutes: float | None) -> dict[str, Any]:
    """Return settings of training: those of a file, and how long it lasts."""
    require_packages("training")
    from arcfleet.neural.device import choose_device

    settings: dict[str, Any] = {}
    if path is not None:
        try:
            settings = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise FileError(path, f"expected a TOML file, found: {error}") from None
    if minutes is not None:
        settings["minutes"] = minutes
    settings.setdefault("seed", config.measure.seed)
    if "tokens" not in settings and choose_device(config.measure.device).type == "cpu":
        settings["tokens"] = _CPU_TOKENS
    return settings


def ablation_rows(
    inputs: Sequence[str], pretraining: Mapping[str, Any], finetuning: Mapping[str, Any]
) -> list[Row]:
    """Return a row for each of the inputs; plans are greedy, as decoded.

    Parameters
    ----------
    inputs
        Inputs of the models, of INPUT_LABELS.
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
    greedy = replace(greedy, settings=dict(sorted(settings.items())))
    rows = [with_model(greedy, name, only_strategy=True) for name in inputs]
    return [replace(row, label=INPUT_LABELS[row.label]) for row in rows]


def train_ablation(
    folder: Path,
    watch: Watch,
    *,
    inputs: Sequence[str],
    data: Sequence[Path],
    validation: Sequence[Path],
    pretraining: Mapping[str, Any],
    finetuning: Mapping[str, Any],
    test_scales: Iterable[str] = (),
    device: str = "auto",
    threads: int = 1,
) -> dict[tuple[str, str | None], Path]:
    """Pre-train a model for each of the inputs, then fine-tune it on each data set.

    Runs lie in `folder/INPUTS/pretrain` and `folder/INPUTS/SCALE`. Finished ones are
    reused, stopped ones resumed, and one of fine-tuning that is to end later goes on.

    Parameters
    ----------
    folder
        Folder of the runs.
    watch
        Callbacks.
    inputs
        Inputs of the models, of INPUT_LABELS.
    data
        Data sets, one for each scale; the first must have labels.
    validation
        Labelled data sets, one for each of these scales.
    pretraining, finetuning
        Settings by name, the same for all; sizes of the model are those of pre-training.
    test_scales
        Scales of the test sets.
    device, threads
        Device, and threads on a CPU.

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
    require_packages("training")
    from arcfleet.neural.train.config import FinetuneConfig, config_from, config_of
    from arcfleet.neural.train.finetune import finetune, require_one_process
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
    first_config = config_from({**pretraining, "model": published})
    first_sizes: Any = first_config.model
    later_config = config_of(FinetuneConfig, finetuning)
    require_one_process(later_config)
    sizes = {name: replace(first_sizes, inputs=cast("Inputs", name)) for name in inputs}
    for name in inputs:
        _require_same_start(folder / name, scales, first_config)

    models: dict[tuple[str, str | None], Path] = {}
    for name in inputs:
        start = folder / name / "pretrain"
        trained = pretrain(
            start,
            replace(first_config, model=sizes[name]),
            data=[scales[first]],
            validation=[checks[first]],
            device=device,
            resume=(start / "config.json").exists(),
            threads=threads,
            progress=watch.training(f"{name}, pre-training on {first}"),
        )
        _require_finished(trained.finished)
        for scale, path in scales.items():
            out = folder / name / scale
            trained = finetune(
                out,
                replace(later_config, model=sizes[name]),
                init=start / "model.safetensors",
                data=[path],
                validation=[checks[scale]],
                device=device,
                resume=(out / "config.json").exists(),
                threads=threads,
                progress=watch.training(f"{name}, fine-tuning on {scale}"),
            )
            _require_finished(trained.finished)
            models[name, scale] = out / "model.safetensors"
    return models


def run_folders(
    folder: Path, inputs: Sequence[str], data: Sequence[Path]
) -> list[tuple[str, Path]]:
    """Return the folders of all fine-tuning runs with the names of their inputs."""
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
    if (saved.get("steps"), saved.get("minutes")) != (config.steps, config.minutes):
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
    tables = columns_of(series)
    used = [x for t in tables for x in t.series]
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
        figures={"ablation": draw},
    )


def _training(series: Sequence[Series]) -> str:
    """Return how long models were trained, and with what seeds."""
    settings = dict.fromkeys(pair for each in series for pair in each.of.settings.items())
    return ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in settings)
