"""Supervised pre-training: imitate labelled plans, decision by decision."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, cast

import torch

from arcfleet.neural.train.config import PretrainConfig
from arcfleet.neural.train.loop import Trainer
from arcfleet.neural.train.recorded import RecordedGradients
from arcfleet.neural.train.run import run_training
from arcfleet.neural.train.steps import (
    LearningForm,
    draw_minibatch,
    imitation_loss,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from arcfleet.neural.batch import Bucket
    from arcfleet.neural.train.data import LabelledSet
    from arcfleet.neural.train.loop import Trained
    from arcfleet.neural.train.run import RunOptions
    from arcfleet.neural.train.steps import Minibatch


def pretrain(
    out: Path | str,
    config: PretrainConfig,
    *,
    data: Sequence[Path | str],
    init: Path | str | None = None,
    **options: Unpack[RunOptions],
) -> Trained:
    """Train a model to decide as the labels beside the data sets do.

    `options` are those of `run_training`.
    """
    return run_training(PretrainTrainer, out, config, data=data, init=init, **options)


class PretrainTrainer(Trainer[PretrainConfig]):
    """A run of pre-training."""

    phase = "pretrain"
    needs_labels = True
    distributed = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        compiled = len(self.data) if self.config.run.compile else None
        working = self.learner.working
        self.form = LearningForm(working, compiled)
        self._recorded: RecordedGradients | None = None
        # The batch norm of the paper would count the warm-ups of a recording.
        if self.device.type == "cuda" and not any(True for _ in working.buffers()):
            weights = list(working.parameters())
            loss = partial(imitation_loss, self.form, padded=True)
            self._recorded = RecordedGradients(loss, weights)

    def train_step(self, rate: float) -> None:
        """Imitate some decisions of one data set."""
        number = self.draw_set()
        bucket = self.draw_bucket(number)
        minibatch = self.draw(number, bucket)
        if self._recorded is not None:
            loss = self._recorded(minibatch)
            self.learner.update_recorded(rate)
        else:
            padded = bucket is not None or not self.data[number].full
            loss = imitation_loss(self.form, minibatch, padded=padded)
            self.learner.update(loss, rate)
        self.metrics.add(minibatch.choice.numel(), loss=loss.detach())

    def draw(self, number: int, bucket: Bucket | None) -> Minibatch:
        """Sample states of some labelled plans of a data set, and their choices."""
        config, generator = self.config, self.generator
        labelled = cast("LabelledSet", self.data[number])
        arcs = labelled.batch.num_arcs if bucket is None else bucket.length
        plans = self.world.size * plans_of_step(config, arcs)
        rows = torch.randint(
            len(labelled), (plans,), device=self.device, generator=generator
        )
        minibatch = draw_minibatch(
            labelled.batch.select(rows),
            labelled.plans.select(rows),
            label_order=config.label_order,
            decision_steps=config.decision_steps,
            bucket=bucket,
            flip=config.flip_axes,
            capacity_mask=not self.draw_giant_tour(config.giant_tour_fraction),
            generator=generator,
        )
        return minibatch.shard(self.world)


def plans_of_step(config: PretrainConfig, arcs: int) -> int:
    """Return the number of plans of a step whose states have so many arcs."""
    return max(1, round(config.tokens / arcs / config.decision_steps))
