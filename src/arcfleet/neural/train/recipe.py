"""Recipes: stages of training, each from the model of the last, and the data they need.

A recipe is a TOML file such as `recipe.toml`, which makes the shipped model:

    init = "MODEL"             model file to start from; random weights if left out
    [model]                    sizes of the model
    [settings]                 settings of all stages
    [PHASE]                    settings of all stages of a phase: pretrain, finetune, ...
    [data.GROUP]               data sets that are made where they are missing
    set = "task"               or "varied", "scenes": with the scale, the name of a set
    tasks = [20, 30]           one file for each scale and seed
    seeds = [1, 3]             or by scale: { 20 = [1], 30 = [1, 3] }
    count = 5000               instances of each file, likewise
    split = "train"            part of the streets: train, validation or test
    maps = ["NAME"]            street maps, by name; synthetic streets if left out
    mixed = false              whether one-way streets stay one-way
    turn_rules = false         whether turn rules are drawn for every instance
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
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from arcfleet._files import read_toml, reading, write_bytes_atomically
from arcfleet.datasets import Dataset, label_dataset, make_dataset
from arcfleet.datasets.labels import MADE_BY, labels_path
from arcfleet.datasets.store import LineFormat, Store, read_records
from arcfleet.errors import FileError, OptionError
from arcfleet.neural.device import choose_device
from arcfleet.neural.train.config import (
    FinetuneConfig,
    PretrainConfig,
    config_from,
    require_known,
    settings_of,
    with_added,
)
from arcfleet.neural.train.distributed import World, init_process_group
from arcfleet.neural.train.finetune import RlooTrainer
from arcfleet.neural.train.loop import TrainingProgress, as_dicts
from arcfleet.neural.train.pretrain import PretrainTrainer
from arcfleet.neural.train.run import (
    CPU_TOKENS,
    checksum,
    difference,
    make_folder,
    require_runnable,
    require_unoccupied,
    run_training,
)
from arcfleet.streets.tasks import find_task_set

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from arcfleet.neural.train.loop import Trained

    Report = Callable[[TrainingProgress], None]

#: The recipe of the shipped model.
SHIPPED_RECIPE = Path(__file__).parent / "recipe.toml"


class Phase(NamedTuple):
    """A kind of training: its settings and its run."""

    config: type[Any]
    trainer: type[Any]
    #: Other defaults on a CPU.
    on_cpu: Mapping[str, Any] = {"tokens": CPU_TOKENS}


#: Kinds of training that a stage may have.
PHASES: dict[str, Phase] = {
    "pretrain": Phase(PretrainConfig, PretrainTrainer),
    "finetune": Phase(FinetuneConfig, RlooTrainer),
}

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}")
_WORDS: dict[Any, str] = {dict: "a table", list: "a list", str: "the name of a model file"}
_GROUP = ["set", "tasks", "seeds", "count", "split", "maps", "mixed", "turn_rules", "file"]
_GROUP += ["labels"]
_LABELS = ["iterations", "method", "seed"]
_STAGE = ["name", "phase", "data", "tasks", "validation", "validation_tasks"]

#: Settings of a quick run; each where the phase has it.
_QUICK: dict[str, Any] = {
    **{"steps": 1, "minutes": None, "validations": 1, "log_steps": 1, "compile": False},
    **{"tokens": 400, "rollout_tokens": 400, "decision_steps": 2, "samples": 3},
    **{"warm_up_steps": 1, "updates": 2, "replay_plans": 20, "baseline_steps": 1},
}
_QUICK_SIZES = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 16}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A data set: made and labelled by these arguments, or, if `make` is empty, given."""

    path: Path
    tasks: int = 0
    group: str = ""
    make: dict[str, Any] = field(default_factory=dict)
    label: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One run of training, in a folder below that of the recipe."""

    name: str
    folder: str
    phase: Phase
    config: Any
    data: tuple[DataFile, ...]
    validation: tuple[DataFile, ...]

    def paths(self) -> dict[str, list[Path]]:
        """Return the data sets as arguments of `run_training`."""
        sets = {"data": self.data, "validation": self.validation}
        return {name: [file.path for file in files] for name, files in sets.items()}

    def needs_labels(self, file: DataFile) -> bool:
        """Return whether the stage needs labels of a data set."""
        return file in self.validation or self.phase.trainer.needs_labels

    def facts(self) -> dict[str, Any]:
        """Return what identifies the stage, as JSON can hold it."""
        sets = {key: [path.name for path in paths] for key, paths in self.paths().items()}
        facts = {"folder": self.folder, "phase": self.phase.trainer.phase}
        return {**facts, "config": settings_of(self.config), **sets}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Stages of training, each from the model of the last, the first from `init`."""

    stages: tuple[Stage, ...]
    init: Path | None = None


def load_recipe(path: Path, folder: Path | None = None, **options: Any) -> Recipe:
    """Load a recipe from a TOML file, its data sets in `folder` or beside it."""
    content = read_toml(path)
    try:
        return recipe_from(content, path.parent if folder is None else folder, **options)
    except OptionError as error:
        raise FileError(path, f"{error!s:.300}") from None


def recipe_from(
    content: Mapping[str, Any],
    folder: Path,
    *,
    phases: Mapping[str, Phase] = PHASES,
    on_cpu: bool = False,
    quick: bool = False,
) -> Recipe:
    """Make a recipe of what a TOML file holds; data sets and `init` are in `folder`."""
    require_known(content, ["init", "model", "settings", "data", "stage", *phases])
    names = ("settings", "data", *phases)
    tables = {name: _checked(content.get(name, {}), dict, name) for name in names}
    init = content.get("init")
    _checked(init or "", str, "init")
    groups = {
        name: _files(name, _checked(table, dict, f"data.{name}"), folder, quick)
        for name, table in tables["data"].items()
    }
    listed = _checked(content.get("stage", []), list, "stage")
    stages = []
    for number, stage in enumerate(listed, start=1):
        name, phase = _heading(stage, number, phases)
        own = {key: value for key, value in stage.items() if key not in _STAGE}
        defaults = phase.on_cpu if on_cpu else {}
        try:
            if "model" in own:
                raise OptionError("expected the sizes of the model in [model], got some")
            data, weights = _training_data(stage, groups, folder, quick)
            settings = {"weights": weights, **defaults, **tables["settings"]}
            settings |= {**tables[stage["phase"]], **own}
            settings["model"] = content.get("model", {})
            config = config_from(phase.config, settings)
            made = Stage(
                name=name,
                folder=f"{number}-{name}",
                phase=phase,
                config=_quick(config) if quick else config,
                data=data,
                validation=_validation_data(stage, groups, folder, quick),
            )
            require_runnable(phase.trainer, made.config, **made.paths())
        except OptionError as error:
            raise OptionError(f"stage {name}: {error}") from None
        stages.append(made)
    if not stages:
        raise OptionError("expected at least one stage, written as [[stage]], got none")
    if init is None and stages[0].phase.trainer.validates_first:
        raise OptionError(
            f"stage {stages[0].name}: expected a model to start from, got none: pre-train "
            "first, or give one as init"
        )
    return Recipe(stages=tuple(stages), init=None if init is None else folder / init)


def _checked(value: Any, expected: type, where: str) -> Any:
    """Return a value of a TOML file; raise OptionError unless it is of the type."""
    if not isinstance(value, expected):
        raise OptionError(f"expected {where} to be {_WORDS[expected]}, got {value!r:.40}")
    return value


def _heading(stage: Any, number: int, phases: Mapping[str, Phase]) -> tuple[str, Phase]:
    name = _checked(stage, dict, f"stage {number}").get("name")
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


def _files(
    name: str, table: dict[str, Any], folder: Path, quick: bool
) -> tuple[DataFile, ...]:
    """Return the files of a group of data sets."""
    where = f"data.{name}"
    require_known(table, _GROUP, f"{where}.")
    labels = _checked(table.get("labels", {}), dict, f"{where}.labels")
    require_known(labels, _LABELS, f"{where}.labels.")
    found = []
    for tasks in _checked(table.get("tasks"), list, f"{where}.tasks"):
        seeds = _by_scale(table.get("seeds", [0]), tasks, f"{where}.seeds")
        for seed in _checked(seeds, list, f"{where}.seeds"):
            task_set = find_task_set(f"{table.get('set', 'task')}{tasks}").name
            make: dict[str, Any] = {"task_set": task_set, "seed": seed}
            make |= {x: table[x] for x in ("split", "mixed", "turn_rules") if x in table}
            make["count"] = _by_scale(table.get("count"), tasks, f"{where}.count")
            make["maps"] = table.get("maps", [])
            if quick:
                make |= {"count": 5, "maps": [], "seed": 0, "mixed": False}
                make.pop("turn_rules", None)
            label = None
            if labels:
                given, named = labels.get("iterations"), f"{where}.labels.iterations"
                iterations = _by_scale(given, tasks, named)
                label = {"seed": seed, **labels, "iterations": 2 if quick else iterations}
            file = table.get("file", f"{name}-{{tasks}}-{{seed}}")
            file = _checked(file, str, f"{where}.file")
            file = file.replace("{tasks}", str(tasks)).replace("{seed}", str(seed))
            path = folder / f"{file}.npz"
            found.append(
                DataFile(path=path, tasks=tasks, group=name, make=make, label=label)
            )
    if not found:
        raise OptionError(f"expected {where}.tasks and seeds to name data sets, got none")
    return tuple(found)


def _by_scale(value: Any, tasks: int, where: str) -> Any:
    """Return a value that may be given for each scale."""
    found = value.get(str(tasks)) if isinstance(value, dict) else value
    if found is None:
        raise OptionError(f"expected {where} for scale {tasks}, got none")
    return found


def _shares(stage: Mapping[str, Any], key: str, quick: bool = False) -> dict[str, float]:
    """Return shares by name; those of a list are equal."""
    value = stage.get(key, [])
    if isinstance(value, list):
        value = dict.fromkeys(map(str, value), 1.0)
    if not isinstance(value, dict) or not all(
        isinstance(share, (int, float)) and share > 0 for share in value.values()
    ):
        raise OptionError(
            f"expected {key} to be a list, or a table of shares above 0, got {value!r:.40}"
        )
    return dict(list(value.items())[: 1 if quick else None])


def _named(
    names: Mapping[str, float], groups: Mapping[str, tuple[DataFile, ...]], folder: Path
) -> dict[str, tuple[DataFile, ...]]:
    """Return the files of each name: those of a group, or one of the user's own."""
    own = {x: (DataFile(path=folder / x),) for x in names if x.endswith(".npz")}
    for name in names:
        if name not in groups and name not in own:
            raise OptionError(
                "expected the name of a group in [data] or of a file ending in .npz, got "
                f"{name!r:.40}"
            )
    return {name: own.get(name) or groups[name] for name in names}


def _training_data(
    stage: Mapping[str, Any],
    groups: Mapping[str, tuple[DataFile, ...]],
    folder: Path,
    quick: bool,
) -> tuple[tuple[DataFile, ...], list[float]]:
    """Return the data sets of a stage and their weights.

    The share of a scale is divided among groups, that of a group evenly among its files.
    """
    shares = _shares(stage, "data")
    known = _named(shares, groups, folder)
    found = [(files[0], shares[x]) for x, files in known.items() if not files[0].group]
    made = {name: files for name, files in known.items() if name in groups}
    scales = _shares(stage, "tasks", quick) or {
        str(file.tasks): 1.0 for files in made.values() for file in files
    }
    for scale, share in scales.items():
        here = {x: [f for f in files if str(f.tasks) == scale] for x, files in made.items()}
        whole = sum(shares[name] for name, files in here.items() if files)
        if not whole:
            raise OptionError(f"expected data sets of scale {scale}, got none")
        for name, files in here.items():
            weight = share * shares[name] / whole / max(1, len(files))
            found += [(file, round(weight, 3)) for file in files]
    if not found:
        raise OptionError("expected data sets in data, got none")
    return tuple(file for file, _ in found), [weight for _, weight in found]


def _validation_data(
    stage: Mapping[str, Any],
    groups: Mapping[str, tuple[DataFile, ...]],
    folder: Path,
    quick: bool,
) -> tuple[DataFile, ...]:
    known = _named(_shares(stage, "validation"), groups, folder)
    key = "validation_tasks" if "validation_tasks" in stage else "tasks"
    scales = _shares(stage, key, quick)
    files = [file for group in known.values() for file in group]
    return tuple(f for f in files if not (f.group and scales) or str(f.tasks) in scales)


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
            path, beside = file.path, labels_path(file.path)
            needs, where = stage.needs_labels(file), f"for stage {stage.name}"
            if file.make and needs and file.label is None:
                raise OptionError(f"expected labels in data.{file.group} {where}, got none")
            if not file.make and not path.is_file():
                raise FileError(path, f"expected a data set {where}, found no such file")
            if not file.make and needs and not beside.is_file():
                raise FileError(
                    path,
                    f"expected its labels in {beside} {where}, found no such file: make "
                    f"them with `{MADE_BY} {path} --iterations N`",
                )


def make_data(recipe: Recipe, maps: Path, workers: int, report: Report | None) -> None:
    """Make and label the data sets that are missing; after a kill the same call goes on."""

    def counted(activity: str) -> Callable[[int, int], None]:
        def count(done: int, whole: int) -> None:
            if report is not None:
                fraction = done / whole
                report(TrainingProgress(activity=activity, fraction=fraction, gaps={}))

        return count

    for stage in recipe.stages:
        for file in (*stage.data, *stage.validation):
            path = file.path
            if file.make and not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                make = {**file.make, "maps": [maps / name for name in file.make["maps"]]}
                progress = counted(f"making {path.name}")
                make_dataset(path, **make, workers=workers, progress=progress)
            if file.label and stage.needs_labels(file) and not labels_path(path).exists():
                progress = counted(f"labelling {path.name}")
                dataset = Dataset.open(path)
                label_dataset(dataset, **file.label, workers=workers, progress=progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeConfig:
    """Files and limits of a recipe; options of `arcfleet train recipe`.

    Parameters
    ----------
    out
        Folder of the recipe, with the folder of a run for every stage.
    config
        TOML file of the recipe; by default the one that comes with arcfleet.
    folder
        Folder of the data sets; by default that of the TOML file, else a folder in `out`.
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
        """Check the limit of time, and the folder of a quick run."""
        if self.quick and self.folder is not None:
            raise OptionError(
                f"expected no folder of data sets beside quick, which makes its own, got "
                f"{self.folder}: leave out one of the two"
            )
        if self.minutes is not None and not 0 < self.minutes < 1e6:
            raise OptionError(f"expected minutes above 0, got {self.minutes:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeOutcome:
    """Outcome of a recipe: where it was stopped, if it was, and its model so far."""

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
        which = "the stage is" if self.stages == 1 else f"all {self.stages} stages are"
        lines.append(f"{self.model_file}: {which} finished")
        return "\n".join(lines)


def train_recipe(
    config: RecipeConfig,
    *,
    shipped: Path = SHIPPED_RECIPE,
    phases: Mapping[str, Phase] = PHASES,
    progress: Report | None = None,
) -> RecipeOutcome:
    """Load the recipe of `config.config`, else the shipped one, and run it."""
    folder = config.folder
    # Tiny data sets must not get among real ones.
    if config.quick or (folder is None and config.config is None):
        folder = config.out / "data"
    recipe = load_recipe(
        config.config or shipped,
        folder,
        phases=phases,
        on_cpu=choose_device(config.device).type == "cpu",
        quick=config.quick,
    )
    return run_recipe(recipe, config, progress)


def run_recipe(
    recipe: Recipe, config: RecipeConfig, progress: Report | None = None
) -> RecipeOutcome:
    """Make the data sets that are missing, then train stage after stage.

    Finished stages need their data no more, so that a recipe can go on elsewhere.

    It can be stopped as every run of training, and goes on with `resume`; on the CPU it
    then comes to the same weights, bit by bit, as if it had not been stopped. Stages that
    have not begun may have other settings then, or be new; the one under way may have
    another end.
    """
    started = time.perf_counter()
    require_files(recipe)
    init_process_group(config.device)
    world = World.from_environment()
    with closing(_Record(config.out, recipe, config.resume, world.is_main)) as record:
        if world.is_main:
            ahead = replace(recipe, stages=recipe.stages[record.num_finished() :])
            make_data(ahead, config.maps, config.workers, progress)
        world.barrier()
        return _run_stages(recipe, config, record, progress, started)


def _run_stages(
    recipe: Recipe,
    config: RecipeConfig,
    record: _Record,
    progress: Report | None,
    started: float,
) -> RecipeOutcome:
    world = World.from_environment()
    model, last, stopped_in = recipe.init, None, None
    done = record.num_finished()

    def over() -> bool:
        minutes = config.minutes
        return minutes is not None and time.perf_counter() - started >= 60 * minutes

    for number, stage in enumerate(recipe.stages):
        folder = config.out / stage.folder
        if number >= done:
            stopped_in = stage
            # Asked of all processes, whose clocks are not quite the same.
            if any(world.all_reduce_max(over())):
                break
            last = run_training(
                stage.phase.trainer,
                folder,
                stage.config,
                **stage.paths(),
                device=config.device,
                init=model,
                resume=(folder / "config.json").exists(),
                threads=config.threads,
                progress=_with_stage(progress, recipe, number),
                stop=over,
            )
            if not last.finished:
                break
            stopped_in = None
            record.finish(number, last)
        model = folder / "model.safetensors"
        if number + 1 >= done:  # earlier stages are superseded
            record.keep_model(model)
    return RecipeOutcome(
        stages=len(recipe.stages),
        model_file=record.model_file,
        stopped_in=stopped_in,
        over_time=stopped_in is not None and any(world.all_reduce_max(over())),
        last=last,
    )


def _with_stage(progress: Report | None, recipe: Recipe, number: int) -> Report | None:
    """Return a callback that adds the name of the stage and the time of the later ones."""
    if progress is None:
        return None
    times = [later.config.run.minutes for later in recipe.stages[number + 1 :]]
    later = None if None in times else 60 * sum(each or 0.0 for each in times)
    name = f"{recipe.stages[number].name} ({number + 1} of {len(recipe.stages)})"

    def report(told: TrainingProgress) -> None:
        progress(replace(told, activity=f"{name}: {told.activity}", later=later))

    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedStage:
    """A line of `recipe.jsonl`."""

    stage: str  # what identifies it, as JSON
    steps: int
    minutes: float
    gaps: dict[str, dict[str, float]]


STAGES = LineFormat("arcfleet-recipe-1", FinishedStage, "a stage of a recipe")


class _Record:
    """The folder of a recipe: `recipe.jsonl` and `model.safetensors`."""

    def __init__(self, path: Path, recipe: Recipe, resume: bool, writes: bool) -> None:
        self.model_file = path / "model.safetensors"
        self._file = file = path / "recipe.jsonl"
        self._store: Store[FinishedStage] | None = None
        self._stages = [stage.facts() for stage in recipe.stages]
        if not writes:
            return
        if resume and not file.exists():
            raise FileError(
                path, "expected a recipe to resume, found none: start it without --resume"
            )
        # Where the first stage failed at its start, there is nothing to go on with.
        if not resume and file.exists() and any(path.glob("*/config.json")):
            raise FileError(
                path,
                "expected a folder without a recipe, found one: name another folder, or go "
                "on with it by --resume",
            )
        if not resume:
            require_unoccupied(path, but=file.name)
        make_folder(path)
        init = None if recipe.init is None else checksum(recipe.init)
        self._store = Store(file, STAGES, {"init": init})
        try:
            self._compare(self._store.records)
        except FileError:
            self.close()
            raise

    def close(self) -> None:
        """Release the file for other processes."""
        if self._store is not None:
            self._store.close()

    def num_finished(self) -> int:
        """Count the stages that are finished."""
        store = self._store
        return len(read_records(self._file, STAGES) if store is None else store.records)

    def finish(self, number: int, result: Trained) -> None:
        """Note that a stage is finished."""
        if self._store is not None:
            self._store.add(
                FinishedStage(
                    stage=json.dumps(self._stages[number]),
                    steps=result.steps,
                    minutes=round(result.seconds / 60, 2),
                    gaps=as_dicts(result.gaps),
                )
            )

    def keep_model(self, model: Path) -> None:
        """Copy the model of a finished stage to the recipe's place."""
        if self._store is None:
            return
        with reading(model, "the model of a finished stage"):
            data = model.read_bytes()
        if not self.model_file.exists() or self.model_file.read_bytes() != data:
            write_bytes_atomically(self.model_file, data)

    def _compare(self, done: list[FinishedStage]) -> None:
        """Raise FileError unless the finished stages are those that are wanted."""
        if len(done) > len(self._stages):
            raise FileError(
                self._file,
                f"expected at least the {len(done)} finished stages in the config, got "
                f"{len(self._stages)}: give them, or start again in another folder",
            )
        for record, wanted in zip(done, self._stages, strict=False):
            before, now = json.loads(record.stage), json.loads(json.dumps(wanted))
            if isinstance(before, dict) and isinstance(before.get("config"), dict):
                before["config"] = with_added(before["config"], now["config"])
            name = difference(before, now)
            if name is not None:
                raise FileError(
                    self._file,
                    f"expected {wanted['folder']}, which is finished, with the same {name} "
                    "as before, got another: put it back, or start again in another folder",
                )
