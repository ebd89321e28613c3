"""Ablation of the inputs of the published model: costs at equal training.

Each model is pre-trained on the first training set and fine-tuned from there by PPO on each
of them. Runs lie in `OUT/ablation/INPUTS/pretrain` and `OUT/ablation/INPUTS/SCALE`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path  # noqa: TC003 (the command line reads the types)
from statistics import fmean
from typing import TYPE_CHECKING, Any

from arcfleet._files import read_toml
from arcfleet.datasets import Dataset, open_labels
from arcfleet.datasets.labels import labels_path
from arcfleet.errors import FileError, OptionError
from arcfleet.neural.device import choose_device
from arcfleet.neural.train.config import PretrainConfig, config_from
from arcfleet.neural.train.pretrain import pretrain
from arcfleet.neural.train.run import saved_settings
from arcfleet.paper.convergence import convergence_report
from arcfleet.paper.gaps import best_known_text, columns_of, gaps_to
from arcfleet.paper.measure import MeasureConfig, measure, split_names
from arcfleet.paper.ppo import PpoConfig, ppo
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
from arcfleet.paper.sets import open_test_sets, refuse_beside_quick, tiny_set
from arcfleet.paper.table import cost_section, gap_panel, gap_text, gap_title, lay_out
from arcfleet.report.charts import draw_panels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from arcfleet.paper.commands import Watch
    from arcfleet.paper.gaps import Column
    from arcfleet.paper.series import Series

#: Inputs of the model, with the paper's names.
INPUT_LABELS = {"mds": "MDS", "gat": "GAT", "mds+gat": "MDS + GAT"}

#: Arcs per step on a CPU, unless a file of settings states another number.
_CPU_TOKENS = 20_000

#: Setting by which runs of several seeds are told apart.
_SEED = "pretrain_seed"

_TINY_MODEL = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 16}
_TINY = {"steps": 2, "tokens": 1000, "validations": 2, "log_steps": 1}

Settings = dict[str, Any]


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
        TOML file with settings of fine-tuning by PPO.
    count
        Number of first instances of each test set, 0 for all.
    measure
        How rows are measured.
    figures
        Figures, which need matplotlib.
    quick
        Tiny data sets and models, to see that all of it works.
    """

    sets: tuple[Path, ...] = field(
        default=(), metadata={"positional": True, "metavar": "SET"}
    )
    out: Path = field(metadata={"metavar": "DIR"})
    data: tuple[Path, ...] = ()
    validation: tuple[Path, ...] = ()
    inputs: tuple[str, ...] = ("mds", "gat", "mds+gat")
    pretrain_minutes: float | None = None
    finetune_minutes: float | None = None
    pretrain_config: Path | None = None
    finetune_config: Path | None = None
    count: int = 0
    measure: MeasureConfig = field(default_factory=MeasureConfig)
    figures: bool = True
    quick: bool = False


def run(config: Config, watch: Watch) -> Report:
    """Train models that differ in their inputs alike, and report their gaps."""
    if config.quick:
        refuse_beside_quick(
            sets=config.sets, data=config.data, validation=config.validation
        )
    pretraining = _settings(config, "pretrain")
    finetuning = _settings(config, "finetune")
    if config.quick:
        sets = (tiny_set(config.out / "inputs"),)
        config = replace(config, sets=sets, data=sets, validation=sets)
        pretraining |= {**_TINY, "model": _TINY_MODEL}
        finetuning |= {**_TINY, "samples": 2, "rollout_tokens": 1000}
    inputs = split_names(config.inputs)
    for name in inputs:
        if name not in INPUT_LABELS:
            known = ", ".join(INPUT_LABELS)
            raise OptionError(f"expected inputs among {known}, got {name!r}")
    test_sets = open_test_sets(config.sets)
    scales = _checked_scales(config, [test_set.scale for test_set in test_sets])
    prepare_folder(config.out, figures=config.figures)
    files: dict[tuple[str, str | None], Path] = {}
    for name in inputs:
        files |= _train(config, watch, name, scales, pretraining, finetuning)
    models = ModelFiles(files, config.measure.device)
    (greedy,) = parse_rows(["daam-sl-rl"])
    greedy = replace(greedy, settings=_lengths(pretraining, finetuning))
    rows = [with_model(greedy, name, only_strategy=True) for name in inputs]
    rows = [replace(row, label=INPUT_LABELS[row.label]) for row in rows]
    series = measure(
        test_sets,
        rows,
        models,
        config.measure,
        watch,
        store=config.out / "ablation.jsonl",
        figures=config.figures,
        count=config.count,
    )
    runs = [(INPUT_LABELS[x], files[x, s].parent) for s in scales for x in inputs]
    curves = convergence_report(runs, "ablation-convergence")
    write_report(curves, config.out, figures=config.figures)
    return write_report(ablation_report(series), config.out, figures=config.figures)


def _settings(config: Config, stage: str) -> Settings:
    """Return settings of a stage of training: those of its file, and how long it lasts."""
    path: Path | None = getattr(config, f"{stage}_config")
    minutes: float | None = getattr(config, f"{stage}_minutes")
    settings: Settings = {}
    if path is not None:
        settings = read_toml(path)
        sizes = settings.get("model", {})
        if not isinstance(sizes, dict):
            raise FileError(path, f"expected model to be a table of sizes, got {sizes!r}")
    if minutes is not None:
        settings["minutes"] = minutes
    settings.setdefault("seed", config.measure.seed)
    if "tokens" not in settings and choose_device(config.measure.device).type == "cpu":
        settings["tokens"] = _CPU_TOKENS
    if not config.quick and not {"steps", "minutes"} & settings.keys():
        raise OptionError(
            f"expected --{stage}-minutes, or steps or minutes in --{stage}-config, got "
            "neither"
        )
    return settings


def _lengths(pretraining: Settings, finetuning: Settings) -> dict[str, int | float]:
    """Return how long training lasts and its seeds, which are kept with the costs."""
    found = {
        f"{stage}_{name}": settings[name]
        for stage, settings in (("pretrain", pretraining), ("finetune", finetuning))
        for name in ("minutes", "steps", "seed")
        if settings.get(name) is not None
    }
    return dict(sorted(found.items()))


def _checked_scales(
    config: Config, test_scales: Iterable[str]
) -> dict[str, tuple[Path, Path]]:
    """Return training and validation set of each scale, all that can be wrong checked."""
    scales = _by_scale(config.data, "to train on")
    checks = _by_scale(config.validation, "to validate on")
    if not scales:
        raise OptionError("expected training sets in --data, got none")
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
    for path in (next(iter(scales.values())), *(checks[scale] for scale in scales)):
        open_labels(labels_path(path), Dataset.open(path))
    return {scale: (path, checks[scale]) for scale, path in scales.items()}


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


def _train(
    config: Config,
    watch: Watch,
    inputs: str,
    scales: Mapping[str, tuple[Path, Path]],
    pretraining: Settings,
    finetuning: Settings,
) -> dict[tuple[str, str | None], Path]:
    """Pre-train a model, fine-tune it on each scale, and return the model files."""
    sizes = {"type": "daam-paper", **pretraining.get("model", {}), "inputs": inputs}
    first = config_from(PretrainConfig, {**pretraining, "model": sizes})
    later = config_from(PpoConfig, {**finetuning, "model": sizes})
    folder = config.out / "ablation" / inputs
    start = folder / "pretrain"
    if any((folder / scale / "config.json").exists() for scale in scales):
        saved = saved_settings(start)
        if (saved.get("steps"), saved.get("minutes")) != (
            first.run.steps,
            first.run.minutes,
        ):
            raise FileError(
                start,
                "expected the same steps and minutes of pre-training as before, since "
                "runs of fine-tuning began from it, got others: give the same, or another "
                "--out",
            )

    def options(out: Path, scale: str, name: str) -> dict[str, Any]:
        data, validation = scales[scale]
        return {
            "data": [data],
            "validation": [validation],
            "device": config.measure.device,
            "resume": (out / "config.json").exists(),
            "threads": config.measure.workers,
            "progress": watch.training(f"{inputs}, {name} on {scale}"),
        }

    model = start / "model.safetensors"
    scale = next(iter(scales))
    trained = pretrain(start, first, **options(start, scale, "pre-training"))
    models: dict[tuple[str, str | None], Path] = {}
    for scale in scales:
        if trained.finished:
            out = folder / scale
            more = options(out, scale, "fine-tuning")
            trained = ppo(out, later, init=model, **more)
            models[inputs, scale] = out / "model.safetensors"
    if not trained.finished:
        raise KeyboardInterrupt
    return models


def ablation_report(series: Sequence[Series]) -> Report:
    """Lay out the costs of models that differ in their inputs, scale by scale."""
    series, runs = _by_seed(series)
    tables = columns_of(series)
    used = [x for t in tables for x in t.series]
    means = _means(tables, runs)
    gaps = Section(
        gap_title("the best known"),
        ["inputs", *(t.name for t in tables)],
        lay_out(tables, lambda t, x: gap_text(gaps_to(x, t.best_known))),
    )
    costs = cost_section(tables)
    panel = gap_panel(
        tables, "Inputs of the model", "mean gap of total cost to the best known, %"
    )
    records = []
    for t in tables:
        for x in t.rows.values():
            compared = gaps_to(x, t.best_known)
            gap = None if compared is None else compared[0].gap_percent
            records.append(record_of(x) | {"gap_percent": gap})
    return Report(
        name="ablation",
        sections=(
            *([means] if means.rows else []),
            costs._replace(header=["inputs", *costs.header[1:]]),
            gaps,
        ),
        caption=(
            "Each model was pre-trained on the first scale and fine-tuned from there at "
            f"each scale, all alike ({_training(used)}); plans are greedy, as decoded. "
            f"{best_known_text(tables)}{provenance(used)}"
        ),
        details=checksums(used),
        records=tuple(records),
        figures={"ablation": partial(draw_panels, [panel])},
    )


def _by_seed(series: Sequence[Series]) -> tuple[list[Series], dict[str, list[str]]]:
    """Name rows that were trained with several seeds by their seed.

    Also return the names of the rows of each label that has several.
    """
    seeds: dict[str, set[float]] = {}
    for each in series:
        seeds.setdefault(each.row, set()).add(each.of.settings.get(_SEED, 0))
    renamed, runs = [], dict[str, list[str]]()
    for each in series:
        if len(seeds[each.row]) > 1:
            words = f", seed {each.of.settings.get(_SEED, 0):g}"
            row, label = each.row + words, each.label + words
            found = runs.setdefault(each.label, [])
            if row not in found:
                found.append(row)
            lines = tuple(replace(x, row=row, label=label) for x in each.lines)
            each = replace(each, lines=lines)
        renamed.append(each)
    return renamed, runs


def _means(tables: Sequence[Column], runs: Mapping[str, Sequence[str]]) -> Section:
    """Lay out the mean gap over the seeds of each model."""

    def mean(table: Column, rows: Sequence[str]) -> str:
        found = [gaps_to(table.rows[x], table.best_known) for x in rows if x in table.rows]
        gaps = [compared[0].gap_percent for compared in found if compared is not None]
        return f"{fmean(gaps):.2f}" if len(gaps) == len(rows) else ""

    return Section(
        "Mean gap of total cost to the best known in percent, mean over the seeds",
        ["inputs", *(t.name for t in tables)],
        [[label, *(mean(t, rows) for t in tables)] for label, rows in runs.items()],
    )


def _training(series: Sequence[Series]) -> str:
    """Return how long models were trained, and with what seeds."""
    settings = dict.fromkeys(pair for each in series for pair in each.of.settings.items())
    return ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in settings)
