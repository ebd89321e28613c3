"""Fine-tuning: a trained model learns from the plans that it makes itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.errors import OptionError
from arcfleet.neural.daam import Daam
from arcfleet.neural.labelled_set import open_instances, open_labelled, require_distinct
from arcfleet.neural.proximal import Proximal
from arcfleet.neural.reinforce import Reinforce
from arcfleet.neural.self_improvement import SelfImprovement
from arcfleet.neural.team import Team, join_team
from arcfleet.neural.training_progress import TrainingProgress
from arcfleet.neural.training_run import RunFolder
from arcfleet.neural.training_start import (
    checksum,
    first_model,
    require_precision,
    require_teamwork,
    require_weights,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from arcfleet.neural.finetune_config import FinetuneConfig, Objective
    from arcfleet.neural.finetuning import Finetuning
    from arcfleet.neural.labelled_set import InstanceSet
    from arcfleet.neural.training_progress import Trained

RUNS: dict[Objective, type[Finetuning]] = {
    "imitate-best": SelfImprovement,
    "samples": Reinforce,
    "self-critical": Reinforce,
    "ppo": Proximal,
}


def finetune(
    out: Path | str,
    config: FinetuneConfig,
    *,
    init: Path | str,
    data: Sequence[Path | str],
    validation: Sequence[Path | str] = (),
    device: str = "auto",
    resume: bool = False,
    threads: int = 1,
    progress: Callable[[TrainingProgress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Trained:
    """Train a model further on plans that it makes itself.

    Runs are stopped and resumed as those of `pretrain`.

    Parameters
    ----------
    out
        Folder of the run.
    config
        All settings.
    init
        The model file to start from; its sizes must be those of the config.
    data
        Data sets; each file is one scale. Labels are not needed.
    validation
        Data sets with labels beside them.
    device
        "auto", "cpu", "cuda" or "cuda:1".
    resume
        Whether to go on with the run in `out`.
    threads
        Of the path optimiser.
    progress
        Told where the run stands, now and then.
    stop
        Asked before every step whether to stop, as by a signal.

    Raises
    ------
    OptionError, FileError
        If an argument is wrong, or a file cannot be read or written.
    ArcfleetError
        If the loss is not a number any more.
    """
    require_distinct(data, "to train on")
    require_weights(config, len(data))
    require_teamwork(config)
    require_one_process(config)
    if validation:
        require_distinct(validation, "to validate on")
    place = join_team(device)
    require_precision(config, place)
    model = first_model(Daam, config, init)
    tell = progress or (lambda _: None)
    dimensions = config.model.mds_dimensions

    def note(path: Path | str) -> Path | str:
        tell(TrainingProgress(doing=f"preparing {Path(path).name}", gaps={}))
        return path

    training = [open_instances(note(x), place, mds_dimensions=dimensions) for x in data]
    most, shown = config.validation_instances, config.examples(len(validation))
    tests = [
        open_labelled(note(x), place, mds_dimensions=dimensions, most=most, examples=shown)
        for x in validation
    ]
    kind = RUNS[config.objective]
    kind.require_validation(tests)
    _require_enough(training)
    identity = {
        "kind": "finetune",
        "config": config.as_facts(),
        "data": [each.facts for each in training],
        "validation": [each.facts for each in tests],
        "init": checksum(init),
    }
    folder = RunFolder(out, identity, resume=resume)
    run = kind(config, model.to(place), training, tests, folder, threads, tell)
    return run.go_or_resume(resume=resume, stop=stop)


def require_one_process(config: FinetuneConfig) -> None:
    """Raise OptionError where several processes cannot follow the objective together."""
    size = Team.of_environment().size
    if size > 1 and not RUNS[config.objective].works_in_team:
        raise OptionError(
            f"expected one process for the objective {config.objective}, got {size}: "
            "choose another objective, or start it without torchrun"
        )


def _require_enough(training: Sequence[InstanceSet]) -> None:
    """Raise OptionError where there is not an instance for every process."""
    size = Team.of_environment().size
    for data in training:
        if len(data) < size:
            raise OptionError(
                f"expected at least {size} instances in {data.name}, one for each process, "
                f"found {len(data)}: start fewer processes"
            )
