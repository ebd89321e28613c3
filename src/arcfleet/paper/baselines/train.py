"""Training of the baselines: they learn from plans that they make themselves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from arcfleet.neural.device import choose_device
from arcfleet.neural.train.data import open_instances, open_labelled, require_distinct
from arcfleet.neural.train.loop import TrainingProgress
from arcfleet.neural.train.run import RunFolder, checksum, first_model, require_weights
from arcfleet.paper.baselines.actor_critic import ActorCritic
from arcfleet.paper.baselines.config import S2vDqnTraining, VrpDlTraining
from arcfleet.paper.baselines.q_learning import QLearning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from arcfleet.neural.train.loop import Trained
    from arcfleet.paper.baselines.s2v_dqn import S2vDqn
    from arcfleet.paper.baselines.vrp_dl import VrpDl


#: Settings of each baseline, by the name of its kind of model.
TRAININGS: dict[str, type[S2vDqnTraining] | type[VrpDlTraining]] = {
    "s2v-dqn": S2vDqnTraining,
    "vrp-dl": VrpDlTraining,
}


def train_baseline(
    out: Path | str,
    config: S2vDqnTraining | VrpDlTraining,
    *,
    data: Sequence[Path | str],
    validation: Sequence[Path | str] = (),
    device: str = "auto",
    init: Path | str | None = None,
    resume: bool = False,
    threads: int = 1,
    progress: Callable[[TrainingProgress], None] | None = None,
) -> Trained:
    """Train a baseline; which one is what the config is for.

    Runs are stopped and resumed as those of `pretrain`.

    Parameters
    ----------
    out
        Folder of the run.
    config
        All settings.
    data
        Data sets; each file is one scale. Labels are not needed.
    validation
        Data sets with labels beside them.
    device
        "auto", "cpu", "cuda" or "cuda:1".
    init
        A model file to start from; its sizes must be those of the config.
    resume
        Whether to go on with the run in `out`.
    threads
        Of the path optimiser in validations.
    progress
        Told where the run stands, now and then.

    Raises
    ------
    OptionError, FileError
        If an argument is wrong, or a file cannot be read or written.
    ArcfleetError
        If the loss is not a number any more.
    """
    require_distinct(data, "to train on")
    require_weights(config, len(data))
    if validation:
        require_distinct(validation, "to validate on")
    place = choose_device(device)
    kind = next(name for name, each in TRAININGS.items() if isinstance(config, each))
    tell = progress or (lambda _: None)
    dimensions = config.model.mds_dimensions
    # Before the data is read, which takes longer than to say that a file is none.
    if isinstance(config, S2vDqnTraining):
        values: S2vDqn = first_model(config, init)
    else:
        policy: VrpDl = first_model(config, init)

    def note(path: Path | str) -> Path | str:
        tell(TrainingProgress(doing=f"preparing {Path(path).name}", gaps={}))
        return path

    training = [open_instances(note(x), place, mds_dimensions=dimensions) for x in data]
    most, shown = config.validation_instances, config.examples(len(validation))
    tests = [
        open_labelled(note(x), place, mds_dimensions=dimensions, most=most, examples=shown)
        for x in validation
    ]
    identity = {
        "kind": kind,
        "config": config.as_facts(),
        "data": [each.facts for each in training],
        "validation": [each.facts for each in tests],
        "init": None if init is None else checksum(init),
    }
    folder = RunFolder(out, identity, resume=resume)
    run: QLearning | ActorCritic
    if isinstance(config, S2vDqnTraining):
        run = QLearning(config, values.to(place), training, tests, folder, threads, tell)
    else:
        run = ActorCritic(config, policy.to(place), training, tests, folder, threads, tell)
    return run.go_or_resume(resume=resume)
