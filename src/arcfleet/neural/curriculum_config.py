"""What a curriculum consists of: stages, each a pre-training, a fine-tuning, or both."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from arcfleet.datasets.labels import MADE_BY, labels_path
from arcfleet.errors import FileError, OptionError
from arcfleet.neural.checkpoint import load_model
from arcfleet.neural.finetune import require_one_process
from arcfleet.neural.finetune_config import FinetuneConfig
from arcfleet.neural.labelled_set import require_distinct
from arcfleet.neural.pretrain_config import PretrainConfig, config_of, require_known
from arcfleet.neural.training_start import require_teamwork, require_weights

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

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
        sizes = asdict(load_model(start)[0].config)
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
