"""What all objectives of fine-tuning share: instances of a step, and plans of them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from arcfleet.neural.cuda_graph import fastest_wrap
from arcfleet.neural.daam import Daam
from arcfleet.neural.decode import greedy, sample
from arcfleet.neural.fast_policy import FastPolicy
from arcfleet.neural.features import flip_axes
from arcfleet.neural.gumbel import draw_seeds
from arcfleet.neural.learning_form import allow_graphs, learning_form
from arcfleet.neural.training_loop import TrainingLoop
from arcfleet.neural.trajectories import draw_choices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.finetune_config import FinetuneConfig
    from arcfleet.neural.labelled_set import InstanceSet, LabelledSet
    from arcfleet.neural.rollout import Rollout
    from arcfleet.neural.shrink import Rung
    from arcfleet.neural.state import State
    from arcfleet.neural.training_progress import TrainingProgress
    from arcfleet.neural.training_run import RunFolder


class Finetuning(TrainingLoop[Daam]):
    """A run of fine-tuning; `finetune` is the usual way.

    Parameters
    ----------
    config, model, data, validation, folder, threads, tell
        As those of `TrainingLoop`.
    """

    validates_first = True

    def __init__(
        self,
        config: FinetuneConfig,
        model: Daam,
        data: Sequence[InstanceSet],
        validation: Sequence[LabelledSet],
        folder: RunFolder,
        threads: int,
        tell: Callable[[TrainingProgress], None],
    ) -> None:
        super().__init__(config, model, data, validation, folder, threads, tell)
        self.config = config
        self.policy = self.fast(self.learner.working)
        self.form = learning_form(self.learner.working, config, len(data))

    @classmethod
    def require_validation(cls, validation: Sequence[LabelledSet]) -> None:
        """Raise OptionError unless there is what the objective needs to validate on."""

    def fast(self, model: Daam) -> FastPolicy:
        """Give the form of a model that plans are built with."""
        # One that leaves served arcs out has too many shapes to compile.
        compiled = self.config.compile and not model.hides_served
        if compiled:
            # Sampled, greedy and from states; on all sets.
            allow_graphs(4 * (len(self.sets) + len(self.validation)))
        return FastPolicy(model, compiled=compiled)

    def draw_instances(self, data: InstanceSet, count: int) -> tuple[Tensor, ArcBatch]:
        """Draw instances, each at most once.

        Parameters
        ----------
        data
            Where from.
        count
            How many for each process; at most `available`.

        Returns
        -------
        rows
            Of all processes, (processes * count,).
        batch
            The instances of this process.
        """
        order = torch.randperm(len(data), device=self.device, generator=self.generator)
        rows = order[: self.team.size * count]
        batch = data.batch.select(rows)
        if self.config.flip_axes:
            batch = flip_axes(batch, self.generator)
        return rows, self.team.my_rows(batch)

    def available(self, data: InstanceSet) -> int:
        """Give the most instances that each process can have for itself."""
        return len(data) // self.team.size

    def draw_choices(
        self, arcs: Tensor, moments: int, rung: Rung | None = None
    ) -> tuple[Tensor, Tensor]:
        """Draw moments of sampled plans, as `trajectories.draw_choices` does."""
        team = self.team
        # Random numbers for the plans of all processes, so that they stay in step.
        whole = arcs.new_zeros((team.size * len(arcs), *arcs.shape[1:]))
        team.mine(whole).copy_(arcs)
        drawn, count = draw_choices(whole, moments, self.generator, rung)
        return team.mine(drawn), team.mine(count)

    def sampled(
        self,
        policy: FastPolicy,
        batch: ArcBatch,
        copies: int,
        first: State | None = None,
        *,
        bound: bool = True,
    ) -> Rollout:
        """Sample plans, from the empty one or from where they stand."""
        seeds = draw_seeds(self.team.size * len(batch), self.generator)
        with deciding(policy.model):
            return sample(
                policy,
                batch,
                copies,
                generator=self.generator,
                temperature=self.config.temperature,
                bound=bound,
                chunk=self._chunk(batch),
                wrap=fastest_wrap(self.device),
                first=first,
                seeds=self.team.mine(seeds),
            )

    def greedily(
        self,
        policy: FastPolicy,
        batch: ArcBatch,
        first: State | None = None,
        *,
        bound: bool = True,
    ) -> Rollout:
        """Build plans greedily, from the empty one or from where they stand."""
        with deciding(policy.model):
            return greedy(
                policy,
                batch,
                bound=bound,
                chunk=self._chunk(batch),
                wrap=fastest_wrap(self.device),
                first=first,
            )

    def _chunk(self, batch: ArcBatch) -> int | None:
        # On a GPU all at once, as `rollout_tokens` says: every part is a shape to record.
        return None if self.device.type == "cpu" else len(batch)


@contextmanager
def deciding(model: Daam) -> Iterator[None]:
    """Use a model as it decides, not as it learns, while the block runs."""
    learning = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(learning)


def scaled(batch: ArcBatch, deadheads: Tensor) -> Tensor:
    """Give costs (batch, copies) in the instances' scale, so that all count alike."""
    return deadheads / batch.scale[:, None]
