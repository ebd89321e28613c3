"""Recipes: stages of training, each from the model of the last, and the data they need.

A recipe is a TOML file such as `recipe.toml`, which makes the shipped model:

    init = "MODEL"             model file to start from; random weights if left out
    [model]                    sizes of the model
    [settings]                 settings of all stages
    [PHASE]                    settings of all stages of a phase: pretrain, finetune, ...
    [data.GROUP]               data sets that are made where they are missing
    tasks = [20, 30]           one file for each scale and seed
    seeds = [1, 3]             or by scale: { 20 = [1], 30 = [1, 3] }
    count = 5000               instances of each file
    split = "train"            part of the streets: train, validation or test
    maps = ["NAME"]            street maps, by name; synthetic streets if left out
    mixed = false              whether one-way streets stay one-way
    file = "x-{tasks}-{seed}"  name of the files; GROUP-{tasks}-{seed} if left out
    labels = { iterations = { 20 = 2000, 30 = 3000 }, method = "ruin-recreate" }
    [[stage]]
    name = "NAME"
    phase = "pretrain"
    data = { GROUP = 2, OTHER = 1 }   groups by their share of the steps, or a list
    tasks = { 20 = 4, 30 = 8 }        scales by their share of the steps, or a list
    validation = ["GROUP"]
    validation_tasks = [20]           those of `tasks` if left out
    learning_rate = 4e-5              settings of the stage

What stands later in this list takes precedence. In `data` and `validation` a name that ends
in `.npz` is a data set of one's own.
"""

from __future__ import annotations

import json
import re
import time
import tomllib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from arcfleet._files import write_bytes_atomically, write_text_atomically
from arcfleet.datasets import Dataset, label_dataset, make_dataset
from arcfleet.datasets.labels import MADE_BY, labels_path
from arcfleet.errors import FileError, OptionError
from arcfleet.neural.device import choose_device
from arcfleet.neural.train.config import (
    FinetuneConfig,
    PretrainConfig,
    config_from,
    require_known,
    settings_of,
)
from arcfleet.neural.train.distributed import World, init_process_group
from arcfleet.neural.train.finetune import RlooTrainer
from arcfleet.neural.train.loop import TrainingProgress
from arcfleet.neural.train.pretrain import PretrainTrainer
from arcfleet.neural.train.run import (
    CPU_TOKENS,
    checksum,
    difference,
    require_runnable,
    require_unoccupied,
    run_training,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from arcfleet.neural.train.loop import Trained

    Report = Callable[[TrainingProgress], None]

#: The recipe of the shipped model.
SHIPPED_RECIPE = Path(__file__).parent / "recipe.toml"


class Phase(NamedTuple):
    """A kind of training: its settings and its run."""

    config: type[Any]
    trainer: type[Any]


#: Kinds of training that a stage may have.
PHASES: dict[str, Phase] = {
    "pretrain": Phase(PretrainConfig, PretrainTrainer),
    "finetune": Phase(FinetuneConfig, RlooTrainer),
}

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}")
_GROUP = ["tasks", "seeds", "count", "split", "maps", "mixed", "file", "labels"]
_LABELS = ["iterations", "method", "seed"]
_STAGE = ["name", "phase", "data", "tasks", "validation", "validation_tasks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A data set of a recipe.

    Parameters
    ----------
    path
        File of the data set.
    tasks
        Number of tasks of an instance.
    group
        Name of the group; empty for a data set of the user's own.
    make
        Arguments of `make_dataset`.
    label
        Arguments of `label_dataset`; None for a data set without labels.
    """

    path: Path
    tasks: int = 0
    group: str = ""
    make: dict[str, Any]
    label: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One run of training of a recipe.

    Parameters
    ----------
    name
        Name of the stage.
    phase
        Kind of training.
    folder
        Folder of the run, below that of the recipe.
    config
        Settings.
    data
        Data sets to train on.
    validation
        Data sets to validate on.
    """

    name: str
    phase: Phase
    folder: str
    config: Any
    data: tuple[DataFile, ...]
    validation: tuple[DataFile, ...]

    def facts(self) -> dict[str, Any]:
        """Return what identifies the stage, as JSON can hold it."""
        return {
            "folder": self.folder,
            "phase": self.phase.trainer.phase,
            "config": settings_of(self.config),
            "data": [file.path.name for file in self.data],
            "validation": [file.path.name for file in self.validation],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Stages of training, each from the model of the last.

    Parameters
    ----------
    stages
        Stages in order; at least one.
    init
        Model file to start from; None for random weights.
    """

    stages: tuple[Stage, ...]
    init: Path | None = None

    def files(self) -> dict[Path, DataFile]:
        """Return all data sets; those have labels that a stage needs them of."""
        found: dict[Path, DataFile] = {}
        for stage in self.stages:
            for file in (*stage.data, *stage.validation):
                needed = file in stage.validation or stage.phase.trainer.needs_labels
                label = file.label if needed else None
                if found.setdefault(file.path, replace(file, label=label)).label is None:
                    found[file.path] = replace(file, label=label)
        return found


def load_recipe(path: Path, folder: Path | None = None, **options: Any) -> Recipe:
    """Load a recipe from a TOML file.

    Parameters
    ----------
    path
        TOML file.
    folder
        Folder of the data sets; by default that of the file.
    **options
        Options of `recipe_from`: phases, defaults, quick.

    Raises
    ------
    FileError
        If the file cannot be read or is no recipe.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        return recipe_from(content, path.parent if folder is None else folder, **options)
    except OSError as error:
        raise FileError(path, f"cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(path, f"expected a TOML file, found: {error}") from None
    except OptionError as error:
        raise FileError(path, str(error)) from None


def recipe_from(
    content: Mapping[str, Any],
    folder: Path,
    *,
    phases: Mapping[str, Phase] = PHASES,
    defaults: Mapping[str, Any] | None = None,
    quick: bool = False,
) -> Recipe:
    """Make a recipe of what a TOML file holds.

    Parameters
    ----------
    content
        Content of the file.
    folder
        Folder of the data sets, and of `init`.
    phases
        Kinds of training that a stage may have.
    defaults
        Settings that come before those of the file.
    quick
        True for tiny sizes everywhere, which take seconds.

    Raises
    ------
    OptionError
        If a name is unknown, a value wrong, or a stage has no data.
    """
    require_known(content, ["init", "model", "settings", "data", "stage", *phases])
    tables = {name: _table(content, name, name) for name in ("settings", "data", *phases)}
    init = content.get("init")
    if init is not None and not isinstance(init, str):
        raise OptionError(f"expected init to be the name of a model file, got {init!r:.40}")
    stages = content.get("stage", [])
    if not isinstance(stages, list) or not stages:
        raise OptionError("expected at least one stage, written as [[stage]], got none")
    groups = {
        name: _group(name, _table(tables["data"], name, f"data.{name}"), folder, quick)
        for name in tables["data"]
    }
    found = []
    for number, stage in enumerate(stages, start=1):
        name, phase = _heading(stage, number, phases)
        where = f"stage {name}"
        if quick:
            stage = {**stage, "tasks": list(stage.get("tasks", []))[:2]}
        data, weights = _data(stage, groups, folder, where)
        own = {key: value for key, value in stage.items() if key not in _STAGE}
        if "model" in own:
            raise OptionError(f"{where}: expected the sizes of the model in [model]")
        settings = {**(defaults or {}), "weights": weights, **tables["settings"]}
        settings |= {**tables[stage["phase"]], **own, "model": content.get("model", {})}
        try:
            config = config_from(phase.config, settings)
            if quick:
                config = _quick(config)
            validation = _validation(stage, groups, folder, where)
            require_runnable(
                phase.trainer,
                config,
                [file.path for file in data],
                [file.path for file in validation],
            )
        except OptionError as error:
            raise OptionError(f"{where}: {error}") from None
        found.append(
            Stage(
                name=name,
                phase=phase,
                folder=f"{number}-{name}",
                config=config,
                data=data,
                validation=validation,
            )
        )
    if init is None and found[0].phase.trainer.validates_first:
        raise OptionError(
            f"stage {found[0].name}: expected a model to start from, got none: pre-train "
            "first, or give one as init"
        )
    return Recipe(stages=tuple(found), init=None if init is None else folder / init)


def _table(content: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    table = content.get(name, {})
    if not isinstance(table, dict):
        raise OptionError(f"expected {where} to be a table, got {table!r:.40}")
    return table


def _heading(stage: Any, number: int, phases: Mapping[str, Phase]) -> tuple[str, Phase]:
    if not isinstance(stage, dict):
        raise OptionError(f"expected stage {number} to be a table, got {stage!r:.40}")
    name = stage.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise OptionError(
            f"expected stage {number} to have a name of letters, digits, '-', '_' and '.', "
            f"got {name!r:.40}"
        )
    phase = str(stage.get("phase"))
    if phase not in phases:
        raise OptionError(
            f"stage {name}: expected phase to be one of {', '.join(phases)}, got "
            f"{phase!r:.40}"
        )
    return name, phases[phase]


def _group(
    name: str, table: dict[str, Any], folder: Path, quick: bool
) -> tuple[DataFile, ...]:
    """Return the files of a group of data sets."""
    require_known(table, _GROUP, f"data.{name}.")
    tasks = table.get("tasks")
    if not isinstance(tasks, list) or not all(type(each) is int for each in tasks):
        raise OptionError(
            f"expected data.{name}.tasks to be a list of scales, got {tasks!r:.40}"
        )
    labels = _table(table, "labels", f"data.{name}.labels")
    require_known(labels, _LABELS, f"data.{name}.labels.")
    found = []
    for scale in tasks:
        for seed in _by_scale(table, "seeds", scale, f"data.{name}", [0]):
            file = table.get("file", f"{name}-{{tasks}}-{{seed}}")
            make = {
                "task_set": f"task{scale}",
                "count": 5 if quick else table.get("count", 0),
                "split": table.get("split", "train"),
                "maps": () if quick else tuple(table.get("maps", ())),
                "seed": 0 if quick else seed,
                "mixed": not quick and table.get("mixed", False),
            }
            label = None
            if labels:
                where = f"data.{name}.labels"
                many = _by_scale(labels, "iterations", scale, where, None)
                label = {"seed": seed, **labels, "iterations": 2 if quick else many}
            path = folder / f"{file.format(tasks=scale, seed=seed)}.npz"
            found.append(
                DataFile(path=path, tasks=scale, group=name, make=make, label=label)
            )
    return tuple(found)


def _by_scale(
    table: Mapping[str, Any], name: str, scale: int, where: str, default: Any
) -> Any:
    """Return a value that may be given for each scale."""
    value = table.get(name, default)
    if isinstance(value, dict):
        value = value.get(str(scale))
    if value is None:
        raise OptionError(f"expected {where}.{name} for scale {scale}, got none")
    return value


def _shares(value: Any, where: str) -> dict[str, float]:
    """Return shares by name; those of a list are equal."""
    if isinstance(value, list):
        return {str(each): 1.0 for each in value}
    if not isinstance(value, dict) or not all(
        isinstance(share, (int, float)) and share > 0 for share in value.values()
    ):
        raise OptionError(
            f"expected {where} to be a list, or a table of shares above 0, got "
            f"{value!r:.40}"
        )
    return {name: float(share) for name, share in value.items()}


def _data(
    stage: Mapping[str, Any],
    groups: Mapping[str, tuple[DataFile, ...]],
    folder: Path,
    where: str,
) -> tuple[tuple[DataFile, ...], tuple[float, ...]]:
    """Return the data sets of a stage and their weights.

    The share of a scale is divided among groups, that of a group evenly among its files.
    """
    shares = _shares(stage.get("data", []), f"{where}: data")
    known = _known(shares, groups, folder, where)
    found = [
        (file, shares[name]) for name in known for file in known[name] if not file.group
    ]
    of_groups = {name: files for name, files in known.items() if name in groups}
    scales = _shares(stage.get("tasks", []), f"{where}: tasks") or {
        str(file.tasks): 1.0 for files in of_groups.values() for file in files
    }
    for scale, share in scales.items():
        here = {
            name: [file for file in files if str(file.tasks) == scale]
            for name, files in of_groups.items()
        }
        whole = sum(shares[name] for name, files in here.items() if files)
        if not whole:
            raise OptionError(f"{where}: expected data sets of scale {scale}, got none")
        for name, files in here.items():
            weight = share * shares[name] / whole / max(1, len(files))
            found += [(file, round(weight, 3)) for file in files]
    if not found:
        raise OptionError(f"{where}: expected data sets in data, got none")
    return tuple(file for file, _ in found), tuple(weight for _, weight in found)


def _validation(
    stage: Mapping[str, Any],
    groups: Mapping[str, tuple[DataFile, ...]],
    folder: Path,
    where: str,
) -> tuple[DataFile, ...]:
    names = _shares(stage.get("validation", []), f"{where}: validation")
    default = list(_shares(stage.get("tasks", []), f"{where}: tasks"))
    scales = [str(each) for each in stage.get("validation_tasks", default)]
    known = _known(names, groups, folder, where)
    files = [file for name in known for file in known[name]]
    return tuple(f for f in files if not (f.group and scales) or str(f.tasks) in scales)


def _known(
    names: Mapping[str, float],
    groups: Mapping[str, tuple[DataFile, ...]],
    folder: Path,
    where: str,
) -> dict[str, tuple[DataFile, ...]]:
    """Return the files of each name: those of a group, or one of the user's own."""
    known: dict[str, tuple[DataFile, ...]] = {}
    for name in names:
        if name.endswith(".npz"):
            known[name] = (DataFile(path=folder / name, make={}),)
        elif name in groups:
            known[name] = groups[name]
        else:
            raise OptionError(
                f"{where}: expected the name of a group in [data] or of a file ending in "
                f".npz, got {name!r:.40}"
            )
    return known


#: Settings of a quick run; each where the phase has it.
_QUICK: dict[str, Any] = {
    **{"steps": 2, "minutes": None, "validations": 1, "log_steps": 1, "compile": False},
    **{"tokens": 400, "rollout_tokens": 400, "decision_steps": 2, "samples": 3},
    **{"warm_up_steps": 1, "updates": 2, "replay_plans": 20, "baseline_steps": 1},
}
_QUICK_SIZES = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 16}


def _quick(config: Any) -> Any:
    settings = settings_of(config)
    settings |= {name: value for name, value in _QUICK.items() if name in settings}
    if "best_of_k" in settings:
        settings["best_of_k"] = min(2, settings["best_of_k"])
    known = [each.name for each in fields(config.model)]
    settings["model"] |= {n: x for n, x in _QUICK_SIZES.items() if n in known}
    return config_from(type(config), settings)


def require_files(recipe: Recipe) -> None:
    """Raise FileError where data of the user's own are missing, before hours of work."""
    if recipe.init is not None and not recipe.init.is_file():
        raise FileError(recipe.init, "expected a model file, found no such file")
    for stage in recipe.stages:
        for file in (*stage.data, *stage.validation):
            beside = labels_path(file.path)
            needs = file in stage.validation or stage.phase.trainer.needs_labels
            where = f"for stage {stage.name}"
            if file.make:
                if needs and file.label is None:
                    raise OptionError(
                        f"expected labels in data.{file.group} {where}, got none"
                    )
            elif not file.path.is_file():
                raise FileError(
                    file.path, f"expected a data set {where}, found no such file"
                )
            elif needs and not beside.is_file():
                raise FileError(
                    file.path,
                    f"expected its labels in {beside} {where}, found no such file: make "
                    f"them with `{MADE_BY} {file.path} --iterations N`",
                )


def make_data(
    recipe: Recipe,
    *,
    maps: Path | str = ".",
    workers: int = 1,
    report: Report | None = None,
) -> None:
    """Make and label the data sets that are missing; after a kill the same call goes on.

    Parameters
    ----------
    recipe
        Recipe.
    maps
        Folder of the street maps.
    workers
        Number of processes; the data sets do not depend on it.
    report
        Callback of the progress.
    """
    for file in recipe.files().values():
        if not file.make:
            continue
        if not file.path.exists():
            streets = [Path(maps) / name for name in file.make["maps"]]
            file.path.parent.mkdir(parents=True, exist_ok=True)
            make_dataset(
                file.path,
                **{**file.make, "maps": streets},
                workers=workers,
                progress=_counted(report, f"making {file.path.name}"),
            )
        if file.label is not None and not labels_path(file.path).exists():
            label_dataset(
                Dataset.open(file.path),
                **file.label,
                workers=workers,
                progress=_counted(report, f"labelling {file.path.name}"),
            )


def _counted(report: Report | None, activity: str) -> Callable[[int, int], None] | None:
    if report is None:
        return None

    def count(done: int, all_of_them: int) -> None:
        fraction = done / all_of_them
        report(TrainingProgress(activity=activity, fraction=fraction, gaps={}))

    return count


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeConfig:
    """Files and limits of a recipe; options of `arcfleet train recipe`.

    Parameters
    ----------
    out
        Folder of the recipe, with the folder of a run for every stage.
    config
        TOML file of the recipe; by default that of the shipped model.
    folder
        Folder of the data sets; by default that of `config`, else `data` in `out`.
    maps
        Folder of the street maps.
    device
        Device: auto, cpu, cuda, cuda:1.
    resume
        Resume the recipe in `out`.
    minutes
        Minutes after which to stop; `resume` continues.
    workers
        Number of processes that make the data sets.
    threads
        Number of CPU threads of torch and of Split.
    quick
        Tiny sizes everywhere, as a smoke test that takes seconds.
    """

    out: Path = field(metadata={"metavar": "FOLDER"})
    config: Path | None = None
    folder: Path | None = field(default=None, metadata={"metavar": "FOLDER"})
    maps: Path = field(default=Path(), metadata={"metavar": "FOLDER"})
    device: str = "auto"
    resume: bool = False
    minutes: float | None = None
    workers: int = 1
    threads: int = 1
    quick: bool = False

    def __post_init__(self) -> None:
        """Check the limit of time."""
        if self.minutes is not None and not 0 < self.minutes < 1e6:
            raise OptionError(f"expected minutes above 0, got {self.minutes:g}")


def train_recipe(
    config: RecipeConfig,
    *,
    shipped: Path = SHIPPED_RECIPE,
    phases: Mapping[str, Phase] = PHASES,
    progress: Report | None = None,
) -> RecipeOutcome:
    """Load a recipe and run it.

    Parameters
    ----------
    config
        Files and limits.
    shipped
        Recipe to run where `config` names none.
    phases
        Kinds of training that a stage may have.
    progress
        Callback of the progress.
    """
    folder = config.folder
    # Tiny data sets must not get among real ones.
    if config.quick or (folder is None and config.config is None):
        folder = config.out / "data"
    on_cpu = choose_device(config.device).type == "cpu"
    recipe = load_recipe(
        config.config or shipped,
        folder,
        phases=phases,
        defaults={"tokens": CPU_TOKENS} if on_cpu else {},
        quick=config.quick,
    )
    return run_recipe(
        config.out,
        recipe,
        maps=config.maps,
        device=config.device,
        resume=config.resume,
        minutes=config.minutes,
        workers=config.workers,
        threads=config.threads,
        progress=progress,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeOutcome:
    """Outcome of a recipe.

    Parameters
    ----------
    stages
        Number of stages.
    model_file
        Model file of the last finished stage.
    stopped_in
        Stage in which it was stopped; None if it came to its end.
    over_time
        True if it was stopped because its time was over, not by a signal.
    last
        Outcome of the last stage that was trained; None if all were finished before.
    """

    stages: int
    model_file: Path
    stopped_in: Stage | None
    over_time: bool
    last: Trained | None

    @property
    def interrupted(self) -> bool:
        """Whether a signal stopped it."""
        return self.stopped_in is not None and not self.over_time

    def facts(self) -> dict[str, Any]:
        """Return the outcome as JSON can hold it."""
        return {
            "model_file": str(self.model_file),
            "stages": self.stages,
            "stopped_in": None if self.stopped_in is None else self.stopped_in.name,
            "last": None if self.last is None else self.last.facts(),
        }

    def text(self) -> str:
        """Return the outcome in words."""
        if self.stopped_in is not None:
            why = "the time is over" if self.over_time else "it was interrupted"
            where = f"stopped in stage {self.stopped_in.name}"
            return f"{where}: {why}; --resume goes on from there"
        lines = [] if self.last is None else self.last.gap_lines()
        lines.append(f"{self.model_file}: all {self.stages} stages are finished")
        return "\n".join(lines)


def run_recipe(
    out: Path | str,
    recipe: Recipe,
    *,
    maps: Path | str = ".",
    device: str = "auto",
    resume: bool = False,
    minutes: float | None = None,
    workers: int = 1,
    threads: int = 1,
    progress: Report | None = None,
) -> RecipeOutcome:
    """Make the data sets that are missing, then train stage after stage.

    It can be stopped as every run of training, and goes on with `resume`; on the CPU it
    then comes to the same weights, bit by bit, as if it had not been stopped. Stages that
    have not begun may have other settings then, or be new; the one under way may have
    another end.

    Parameters
    ----------
    out
        Folder of the recipe; every stage has the folder of a run in it.
    recipe
        Stages.
    maps
        Folder of the street maps.
    device, threads
        Device and number of CPU threads, as `run_training` takes them.
    resume
        True to go on with the recipe in `out`.
    minutes
        Minutes after which to stop; None to go on to the end.
    workers
        Number of processes that make the data sets.
    progress
        Callback of the progress; its activity names the stage.

    Raises
    ------
    OptionError, FileError
        If an argument is wrong, or a file cannot be read or written.
    ArcfleetError
        If the loss is not a number any more.
    """
    started = time.perf_counter()
    require_files(recipe)
    init_process_group(device)
    world = World.from_environment()
    record = _Record(Path(out), recipe, resume=resume, writes=world.is_main)
    if world.is_main:
        make_data(recipe, maps=maps, workers=workers, report=progress)
    world.barrier()
    model, last = recipe.init, None

    def over() -> bool:
        return minutes is not None and time.perf_counter() - started >= 60 * minutes

    def outcome(stopped_in: Stage | None, over_time: bool) -> RecipeOutcome:
        return RecipeOutcome(
            stages=len(recipe.stages),
            model_file=record.model_file,
            stopped_in=stopped_in,
            over_time=over_time,
            last=last,
        )

    for number, stage in enumerate(recipe.stages):
        folder = record.path / stage.folder
        if number >= record.finished:
            # Asked of all processes, whose clocks are not quite the same.
            if any(world.all_reduce_max(over())):
                return outcome(stage, True)
            last = run_training(
                stage.phase.trainer,
                folder,
                stage.config,
                data=[file.path for file in stage.data],
                validation=[file.path for file in stage.validation],
                device=device,
                init=model,
                resume=(folder / "config.json").exists(),
                threads=threads,
                progress=_named(progress, recipe.stages, number),
                stop=over,
            )
            if not last.finished:
                return outcome(stage, any(world.all_reduce_max(over())))
            record.finish(number, last)
        model = folder / "model.safetensors"
        if number + 1 == record.finished:  # earlier stages are superseded
            record.keep_model(model)
    return outcome(None, False)


def _named(progress: Report | None, stages: Sequence[Stage], number: int) -> Report | None:
    """Return a callback that adds the name of the stage and the time of the later ones."""
    if progress is None:
        return None
    times = [later.config.run.minutes for later in stages[number + 1 :]]
    later = None if None in times else 60 * sum(each or 0.0 for each in times)
    name = f"{stages[number].name} ({number + 1} of {len(stages)})"

    def report(told: TrainingProgress) -> None:
        progress(replace(told, activity=f"{name}: {told.activity}", later=later))

    return report


class _Record:
    """The folder of a recipe: `recipe.json` and `model.safetensors`."""

    def __init__(self, path: Path, recipe: Recipe, *, resume: bool, writes: bool) -> None:
        self.path = path
        self.model_file = path / "model.safetensors"
        self._file = path / "recipe.json"
        self._writes = writes
        init = None if recipe.init is None else checksum(recipe.init)
        stages = [{**stage.facts(), "finished": None} for stage in recipe.stages]
        # Through JSON, since that is what it is compared with.
        self._facts = json.loads(json.dumps({"init": init, "stages": stages}))
        if resume:
            self._take_over(self._read())
        elif writes and self._has_begun():
            raise FileError(
                path,
                "expected a folder without a recipe, found one: name another folder, or go "
                "on with it by --resume",
            )
        elif writes:
            require_unoccupied(path, but=self._file.name)
        if writes:
            try:
                path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise FileError(
                    path, f"cannot be made ({error.strerror}); name another folder"
                ) from error
            self._write()

    @property
    def finished(self) -> int:
        """Number of finished stages; always the first ones."""
        return sum(stage["finished"] is not None for stage in self._facts["stages"])

    def _has_begun(self) -> bool:
        # Where the first stage failed at its start, there is nothing to go on with.
        return self._file.exists() and any(self.path.glob("*/config.json"))

    def finish(self, number: int, result: Trained) -> None:
        """Note that a stage is finished."""
        self._facts["stages"][number]["finished"] = {
            "steps": result.steps,
            "minutes": round(result.seconds / 60, 2),
            "gaps": {name: gap._asdict() for name, gap in result.gaps.items()},
        }
        self._write()

    def keep_model(self, model: Path) -> None:
        """Copy the model of a finished stage to the recipe's place."""
        if not self._writes:
            return
        try:
            data = model.read_bytes()
        except OSError as error:
            raise FileError(
                model,
                f"expected the model of a finished stage, cannot read it "
                f"({error.strerror}): start the recipe again in another folder",
            ) from error
        if not self.model_file.exists() or self.model_file.read_bytes() != data:
            write_bytes_atomically(self.model_file, data)

    def _write(self) -> None:
        if self._writes:
            write_text_atomically(self._file, json.dumps(self._facts, indent=2) + "\n")

    def _read(self) -> list[dict[str, Any]]:
        """Return the finished stages; the others may have changed."""
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            stages = [x for x in found["stages"] if x["finished"] is not None]
        except FileNotFoundError:
            raise FileError(
                self.path,
                "expected a recipe to resume, found none: start it without --resume",
            ) from None
        except OSError as error:
            raise FileError(self._file, f"cannot be read ({error.strerror})") from error
        except (ValueError, KeyError, TypeError):
            raise FileError(
                self._file,
                "expected the record of a recipe, found something else: start again in "
                "another folder",
            ) from None
        if stages and found.get("init") != self._facts["init"]:
            raise FileError(self._file, self._changed("the first stage", "init"))
        return stages

    def _take_over(self, done: list[dict[str, Any]]) -> None:
        """Take over which stages are finished; they must be those that are wanted."""
        wanted = self._facts["stages"]
        if len(done) > len(wanted):
            raise FileError(
                self._file,
                f"expected at least the {len(done)} finished stages in the config, got "
                f"{len(wanted)}: give them, or start again in another folder",
            )
        for before, now in zip(done, wanted, strict=False):
            now["finished"] = before["finished"]
            name = difference(before, now)
            if name is not None:
                raise FileError(self._file, self._changed(before["folder"], name))

    @staticmethod
    def _changed(where: str, name: str) -> str:
        return (
            f"expected {where}, which is finished, with the same {name} as before, got "
            "another: put it back, or start again in another folder"
        )
