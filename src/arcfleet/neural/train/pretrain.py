"""Supervised pre-training: imitate labelled plans, decision by decision."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from arcfleet.neural.env import action_mask
from arcfleet.neural.model import AttentionModel
from arcfleet.neural.train.data import open_labelled, require_distinct
from arcfleet.neural.train.distributed import join_team
from arcfleet.neural.train.loop import TrainingLoop, TrainingProgress
from arcfleet.neural.train.run import (
    RunFolder,
    checksum,
    first_model,
    require_precision,
    require_teamwork,
    require_weights,
)
from arcfleet.neural.train.steps import draw_lesson, learning_form

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from arcfleet.neural.batch import Bucket
    from arcfleet.neural.train.config import PretrainConfig
    from arcfleet.neural.train.data import LabelledSet
    from arcfleet.neural.train.loop import Trained
    from arcfleet.neural.train.steps import LearningForm, Lesson


def pretrain(
    out: Path | str,
    config: PretrainConfig,
    *,
    data: Sequence[Path | str],
    validation: Sequence[Path | str] = (),
    device: str = "auto",
    init: Path | str | None = None,
    resume: bool = False,
    threads: int = 1,
    progress: Callable[[TrainingProgress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Trained:
    """Train a model to decide as labelled plans do.

    Ctrl-C or SIGTERM ends the run after the step at hand; a checkpoint is kept then, and
    every few minutes, and the run goes on with `resume`. On the CPU it then comes to the
    same weights, bit by bit, as if it had not been stopped. With `resume` a run may be
    given another end, later than where it stands.

    Processes that `torchrun` has started train one model, each on its part of a step.

    Parameters
    ----------
    out
        Folder of the run.
    config
        All settings.
    data, validation
        Data sets with labels beside them; each file is one scale.
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
    if validation:
        require_distinct(validation, "to validate on")
    place = join_team(device)
    require_precision(config, place)
    model: AttentionModel = first_model(config, init)
    tell = progress or (lambda _: None)

    def opened(path: Path | str, most: int | None = None, examples: int = 0) -> LabelledSet:
        tell(TrainingProgress(doing=f"preparing {Path(path).name}", gaps={}))
        dimensions = config.model.mds_dimensions
        return open_labelled(
            path, place, mds_dimensions=dimensions, most=most, examples=examples
        )

    training = [opened(path) for path in data]
    shown = config.examples(len(validation))
    tests = [opened(path, config.validation_instances, shown) for path in validation]
    identity = {
        "kind": "pretrain",
        "config": config.as_facts(),
        "data": [each.facts for each in training],
        "validation": [each.facts for each in tests],
        "init": None if init is None else checksum(init),
    }
    folder = RunFolder(out, identity, resume=resume)
    run = Pretraining(config, model.to(place), training, tests, folder, threads, tell)
    return run.go_or_resume(resume=resume, stop=stop)


class Pretraining(TrainingLoop[AttentionModel]):
    """A run of pre-training; `pretrain` is the usual way.

    Parameters
    ----------
    config, model, data, validation, folder, threads, tell
        As those of `TrainingLoop`.
    """

    works_in_team = True

    def __init__(
        self,
        config: PretrainConfig,
        model: AttentionModel,
        data: Sequence[LabelledSet],
        validation: Sequence[LabelledSet],
        folder: RunFolder,
        threads: int,
        tell: Callable[[TrainingProgress], None],
    ) -> None:
        super().__init__(config, model, data, validation, folder, threads, tell)
        self.data = data
        self._form = learning_form(self.learner.working, config, len(data))

    def draw(self, number: int, bucket: Bucket | None) -> Lesson:
        """Draw states of some plans of a set, and what came next."""
        config, generator = self.settings, self.generator
        labelled = self.data[number]
        each = plans_of_step(config, self.arcs_of_state(number, bucket))
        count = self.team.size * each
        rows = torch.randint(
            len(labelled), (count,), device=self.device, generator=generator
        )
        lesson = draw_lesson(
            labelled.batch.select(rows),
            labelled.plans.select(rows),
            route_order=config.route_order,
            directions=config.directions,
            moments=config.moments,
            bucket=bucket,
            flip=config.flip_axes,
            generator=generator,
            capacity_mask=self.draw_bound(),
        )
        return self.team.my_lesson(lesson)

    def loss(self, lesson: Lesson, number: int, bucket: Bucket | None) -> Tensor:
        """Give the loss on a lesson that `draw` gave for the same set and bucket."""
        padded = bucket is not None or not self.data[number].full
        return imitation_loss(self._form, lesson, padded)

    def learn(self, rate: float) -> None:
        """Imitate some decisions of one data set."""
        number = self.draw_set()
        bucket = self.draw_bucket(number)
        loss = self.loss(self.draw(number, bucket), number, bucket)
        self.learner.update(loss, rate)
        states = plans_of_step(self.settings, self.arcs_of_state(number, bucket))
        self.window.add(states * self.settings.moments, loss=loss.detach())


def plans_of_step(config: PretrainConfig, arcs: int) -> int:
    """Give the number of plans that a step on states with so many arcs looks at."""
    return max(1, round(config.tokens / arcs / config.moments))


def imitation_loss(model: LearningForm, lesson: Lesson, padded: bool) -> Tensor:
    """Give the mean cross-entropy of the choices among the allowed arcs, as they count.

    Parameters
    ----------
    model
        What decides.
    lesson
        The choices to make.
    padded
        Whether there may be padding.
    """
    batch, state, choice, weight, capacity_mask = lesson
    allowed = action_mask(batch, state, capacity_mask=capacity_mask)
    logits = model.logits(batch, state, allowed, padded=padded)  # (batch, copies, arcs)
    losses = functional.cross_entropy(
        logits.flatten(0, 1), choice.flatten(), reduction="none"
    )
    return (losses * weight.flatten()).mean()
