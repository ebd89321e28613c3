"""A curriculum: training on larger and larger scales, each from the model of the last."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from arcfleet._files import write_bytes_atomically, write_text_atomically
from arcfleet.datasets.labels import MADE_BY, labels_path
from arcfleet.errors import FileError, OptionError
from arcfleet.neural.checkpoint import load_model, sizes_of
from arcfleet.neural.train.config import (
    FinetuneConfig,
    PretrainConfig,
    config_of,
    require_known,
)
from arcfleet.neural.train.data import require_distinct
from arcfleet.neural.train.distributed import Team, join_team
from arcfleet.neural.train.finetune import finetune, require_one_process
from arcfleet.neural.train.pretrain import pretrain
from arcfleet.neural.train.run import (
    checksum,
    difference,
    require_teamwork,
    require_unoccupied,
    require_weights,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from arcfleet.neural.train.loop import Trained, TrainingProgress

    Tell = Callable[[TrainingProgress], None]


Kind = Literal["pretrain", "finetune"]

KINDS: tuple[Kind, ...] = ("pretrain", "finetune")


_CONFIGS: dict[Kind, type[PretrainConfig]] = {
    "pretrain": PretrainConfig,
    "finetune": FinetuneConfig,
}

_TABLES = ["model", "settings", *KINDS]

_STAGE = ["name", "data", "validation", "phases", *KINDS]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One run of training of a curriculum.

    Parameters
    ----------
    stage
        Name of its stage.
    kind
        What is done.
    folder
        Of the run, below that of the curriculum.
    config
        All settings; a `FinetuneConfig` for fine-tuning.
    data, validation
        Data sets.
    """

    stage: str
    kind: Kind
    folder: str
    config: PretrainConfig
    data: tuple[Path, ...]
    validation: tuple[Path, ...]

    def as_facts(self) -> dict[str, Any]:
        """Say what it is as JSON can hold it."""
        return {
            "folder": self.folder,
            "config": self.config.as_facts(),
            "data": [path.name for path in self.data],
            "validation": [path.name for path in self.validation],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Curriculum:
    """Runs of training, each starting from the model of the last.

    Parameters
    ----------
    phases
        In order; at least one.
    init
        Model file of the first; None for random weights.
    """

    phases: tuple[Phase, ...]
    init: Path | None = None


def curriculum_from(
    content: Mapping[str, Any], folder: Path, defaults: Mapping[str, Any] | None = None
) -> Curriculum:
    """Make a curriculum of what a TOML file holds.

    Parameters
    ----------
    content
        Tables `model` (its sizes), `settings` (of all phases), `pretrain` and `finetune`
        (of all phases of that kind), a list `stage` of tables with `name`, `data`,
        `validation`, `phases` (by default both) and settings of its own in `pretrain` and
        `finetune`, and the file `init` to start from. What is said later in this list
        goes before.
    folder
        Where the files are that it names.
    defaults
        Settings that go behind all others.

    Raises
    ------
    OptionError
        If a name is unknown, a value wrong, or a stage has no data or nothing to do.
    """
    require_known(content, [*_TABLES, "stage", "init"])
    tables = {name: _table(content, name, name) for name in _TABLES}
    stages = content.get("stage", [])
    if not isinstance(stages, list) or not stages:
        raise OptionError("expected at least one stage, written as [[stage]], got none")
    init = content.get("init")
    if init is not None and not isinstance(init, str):
        raise OptionError(f"expected init to be the name of a model file, got {init!r:.40}")
    start = None if init is None else folder / init
    sizes = tables["model"]
    if start is not None and not sizes:
        sizes = sizes_of(load_model(start)[0].config)
    phases: list[Phase] = []
    for number, stage in enumerate(stages, start=1):
        name = _name_of(stage, number)
        data = _files(stage, "data", folder, name)
        if not data:
            raise OptionError(f"expected data sets in data of stage {name}, got none")
        validation = _files(stage, "validation", folder, name)
        for kind in _kinds_of(stage, name):
            where = f"stage {name}, {kind}"
            settings = {
                **(defaults or {}),
                **tables["settings"],
                **tables[kind],
                **_table(stage, kind, f"{kind} of stage {name}"),
            }
            if "model" in settings:
                raise OptionError(
                    f"{where}: expected the sizes of the model in [model], one for all "
                    "stages, got others"
                )
            phases.append(
                Phase(
                    stage=name,
                    kind=kind,
                    folder=f"{number}-{name}/{kind}",
                    config=_config(kind, {**settings, "model": sizes}, where),
                    data=data,
                    validation=validation,
                )
            )
    if phases[0].kind == "finetune" and start is None:
        raise OptionError(
            f"stage {phases[0].stage}: expected a model to fine-tune, got none: "
            "pre-train first, or give one as init"
        )
    curriculum = Curriculum(phases=tuple(phases), init=start)
    for phase in curriculum.phases:
        _require_sound(phase)
    return curriculum


def require_files(curriculum: Curriculum) -> None:
    """Raise FileError where a file is missing, or `init` no model, before hours of work."""
    if curriculum.init is not None:
        load_model(curriculum.init)
    for phase in curriculum.phases:
        labelled = [*phase.validation, *(phase.data if phase.kind == "pretrain" else ())]
        for path in (*phase.data, *phase.validation):
            where = f"for stage {phase.stage}"
            if not path.is_file():
                raise FileError(path, f"expected a data set {where}, found no such file")
            beside = labels_path(path)
            if path in labelled and not beside.is_file():
                raise FileError(
                    path,
                    f"expected its labels in {beside} {where}, found no such file: make "
                    f"them with `{MADE_BY} {path} --iterations N`",
                )


def _name_of(stage: Any, number: int) -> str:
    if not isinstance(stage, dict):
        raise OptionError(f"expected stage {number} to be a table, got {stage!r:.40}")
    require_known(stage, _STAGE, f"stage {number}: ")
    name = stage.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise OptionError(
            f"expected stage {number} to have a name of letters, digits, '-', '_' and '.', "
            f"got {name!r:.40}"
        )
    return name


def _kinds_of(stage: Mapping[str, Any], name: str) -> tuple[Kind, ...]:
    """Give the phases of a stage, pre-training always before fine-tuning."""
    wanted = stage.get("phases", list(KINDS))
    known = isinstance(wanted, list) and all(each in KINDS for each in wanted)
    if not known or not wanted or len(set(wanted)) < len(wanted):
        raise OptionError(
            f"expected phases of stage {name} to list {' and '.join(KINDS)}, or one of "
            f"them, got {wanted!r:.60}"
        )
    for kind in KINDS:
        if kind in stage and kind not in wanted:
            raise OptionError(
                f"expected no settings of {kind} in stage {name}, which leaves it out, got "
                "some: add it to phases, or drop them"
            )
    return tuple(kind for kind in KINDS if kind in wanted)


def _table(content: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    table = content.get(name, {})
    if not isinstance(table, dict):
        raise OptionError(f"expected {where} to be a table, got {table!r:.40}")
    return table


def _files(
    stage: Mapping[str, Any], name: str, folder: Path, where: str
) -> tuple[Path, ...]:
    files = stage.get(name, [])
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        raise OptionError(
            f"expected {name} of stage {where} to be a list of files, got {files!r:.60}"
        )
    return tuple(folder / file for file in files)


def _config(kind: Kind, settings: Mapping[str, Any], where: str) -> PretrainConfig:
    try:
        return config_of(_CONFIGS[kind], settings)
    except OptionError as error:
        raise OptionError(f"{where}: {error}") from None


def _require_sound(phase: Phase) -> None:
    """Raise now what the run would raise at its start, hours later."""
    try:
        require_distinct(phase.data, "to train on")
        if phase.validation:
            require_distinct(phase.validation, "to validate on")
        require_weights(phase.config, len(phase.data))
        require_teamwork(phase.config)
        if isinstance(phase.config, FinetuneConfig):
            require_one_process(phase.config)
            if phase.config.objective == "ppo" and not phase.validation:
                raise OptionError(
                    "expected data sets to validate on, which ppo needs, got none"
                )
    except OptionError as error:
        raise OptionError(f"stage {phase.stage}, {phase.kind}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurriculumOutcome:
    """How far a curriculum came.

    Parameters
    ----------
    model_file
        The model of the last finished phase.
    stopped_in
        The phase in which it was stopped; None if it came to its end.
    over_time
        Whether it was stopped because its time was over, not by a signal.
    last
        Outcome of the last phase that was at work; None if all were finished before.
    """

    model_file: Path
    stopped_in: Phase | None
    over_time: bool
    last: Trained | None


def run_curriculum(
    out: Path | str,
    curriculum: Curriculum,
    *,
    device: str = "auto",
    resume: bool = False,
    minutes: float | None = None,
    threads: int = 1,
    progress: Tell | None = None,
) -> CurriculumOutcome:
    """Go through a curriculum.

    It can be stopped as every run of training, and goes on with `resume`; on the CPU it
    then comes to the same weights, bit by bit, as if it had not been stopped. Phases that
    have not begun may have other settings then, or be new; the one under way may have
    another end.

    Parameters
    ----------
    out
        Folder of the curriculum; every phase has a folder of a run in it.
    curriculum
        The phases.
    device, threads
        As those of `pretrain`.
    resume
        Whether to go on with the curriculum in `out`.
    minutes
        Stop after so many minutes; None to go on to the end.
    progress
        Told where the phase at work stands, which is named in it.

    Raises
    ------
    OptionError, FileError
        If an argument is wrong, or a file cannot be read or written.
    ArcfleetError
        If the loss is not a number any more.
    """
    started = time.perf_counter()
    require_files(curriculum)
    join_team(device)
    team = Team.of_environment()
    record = _Record(Path(out), curriculum, resume=resume, writes=team.leads)
    model, last = curriculum.init, None

    def over() -> bool:
        return minutes is not None and time.perf_counter() - started >= 60 * minutes

    def outcome(stopped_in: Phase | None, over_time: bool) -> CurriculumOutcome:
        return CurriculumOutcome(
            model_file=record.model_file,
            stopped_in=stopped_in,
            over_time=over_time,
            last=last,
        )

    for number, phase in enumerate(curriculum.phases):
        folder = record.path / phase.folder
        if number >= record.finished:
            # Asked of all processes, whose clocks are not quite the same.
            if any(team.most(over())):
                return outcome(phase, True)
            tell = _named(progress, curriculum, number)
            last = _run(phase, folder, model, device, threads, tell, over)
            if not last.finished:
                return outcome(phase, any(team.most(over())))
            record.finish(number, last)
        model = folder / "model.safetensors"
        # Not those of earlier phases, which it has taken the place of.
        if number + 1 == record.finished:
            record.keep_model(model)
    return outcome(None, False)


def _run(
    phase: Phase,
    folder: Path,
    init: Path | None,
    device: str,
    threads: int,
    tell: Tell | None,
    stop: Callable[[], bool],
) -> Trained:
    options: dict[str, Any] = {
        "data": phase.data,
        "validation": phase.validation,
        "device": device,
        "init": init,
        "resume": (folder / "config.json").exists(),
        "threads": threads,
        "progress": tell,
        "stop": stop,
    }
    if isinstance(phase.config, FinetuneConfig):
        return finetune(folder, phase.config, **options)
    return pretrain(folder, phase.config, **options)


def _named(progress: Tell | None, curriculum: Curriculum, number: int) -> Tell | None:
    """Tell which phase it is, and how long the later ones will take."""
    if progress is None:
        return None
    phases = curriculum.phases
    phase = phases[number]
    times = [later.config.minutes for later in phases[number + 1 :]]
    later = None if None in times else 60 * sum(time or 0.0 for time in times)
    name = f"{phase.stage} {phase.kind} ({number + 1} of {len(phases)})"

    def tell(told: TrainingProgress) -> None:
        progress(replace(told, doing=f"{name}: {told.doing}", later=later))

    return tell


class _Record:
    """The folder of a curriculum: `curriculum.json` and `model.safetensors`."""

    def __init__(
        self, path: Path, curriculum: Curriculum, *, resume: bool, writes: bool
    ) -> None:
        self.path = path
        self.model_file = path / "model.safetensors"
        self._file = path / "curriculum.json"
        self._writes = writes
        init = None if curriculum.init is None else checksum(curriculum.init)
        self._facts: dict[str, Any] = {
            "init": init,
            "phases": [
                {**phase.as_facts(), "finished": None} for phase in curriculum.phases
            ],
        }
        # Through JSON, since that is what it is compared with.
        self._facts = json.loads(json.dumps(self._facts))
        if resume:
            self._take_over(self._read())
        elif writes and self._has_begun():
            raise FileError(
                path,
                "expected a folder without a curriculum, found one: name another folder, "
                "or go on with it by --resume",
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
        """How many phases are finished; always the first ones."""
        return sum(phase["finished"] is not None for phase in self._facts["phases"])

    def _has_begun(self) -> bool:
        # Where the first phase failed at its start, there is nothing to go on with.
        return self._file.exists() and any(self.path.glob("*/*/config.json"))

    def finish(self, number: int, result: Trained) -> None:
        gaps = {name: gap._asdict() for name, gap in result.gaps.items()}
        minutes = round(result.seconds / 60, 2)
        self._facts["phases"][number]["finished"] = {
            "steps": result.steps,
            "minutes": minutes,
            "gaps": gaps,
        }
        self._write()

    def keep_model(self, model: Path) -> None:
        """Put the model of a finished phase where the curriculum's is looked for."""
        if not self._writes:
            return
        try:
            data = model.read_bytes()
        except OSError as error:
            raise FileError(
                model,
                f"expected the model of a finished phase, cannot read it "
                f"({error.strerror}): start the curriculum again in another folder",
            ) from error
        if not self.model_file.exists() or self.model_file.read_bytes() != data:
            write_bytes_atomically(self.model_file, data)

    def _write(self) -> None:
        if self._writes:
            write_text_atomically(self._file, json.dumps(self._facts, indent=2) + "\n")

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            finished = [phase["finished"] for phase in found["phases"]]
        except FileNotFoundError:
            raise FileError(
                self.path,
                "expected a curriculum to resume, found none: start it without --resume",
            ) from None
        except OSError as error:
            raise FileError(self._file, f"cannot be read ({error.strerror})") from error
        except (ValueError, KeyError, TypeError):
            raise FileError(
                self._file,
                "expected the record of a curriculum, found something else: start again in "
                "another folder",
            ) from None
        number = sum(each is not None for each in finished)
        found["phases"] = found["phases"][:number]  # what is not finished may be another
        return found  # type: ignore[no-any-return]

    def _take_over(self, found: dict[str, Any]) -> None:
        """Take over which phases are finished; they must be those that are wanted."""
        wanted = self._facts["phases"]
        done = found["phases"]
        if len(done) > len(wanted):
            raise FileError(
                self._file,
                f"expected at least the {len(done)} finished phases in the config, got "
                f"{len(wanted)}: give them, or start again in another folder",
            )
        pairs = [(found.get("init"), self._facts["init"], "the curriculum")]
        for before, now in zip(done, wanted, strict=False):
            now["finished"] = before["finished"]
            pairs.append((before, now, before["folder"]))
        for before, now, where in pairs:
            name = difference(before, now, "init")
            if name is not None:
                raise FileError(
                    self._file,
                    f"expected {where}, which is finished, with the same {name} as before, "
                    "got another: put it back, or start again in another folder",
                )
