"""Fine-tuning: a trained model learns from the plans that it makes itself."""

from __future__ import annotations

import copy
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from arcfleet.errors import OptionError
from arcfleet.neural.batch import as_instances, flip_axes, shrink
from arcfleet.neural.decoding import FastPolicy, draw_seeds, greedy, sample
from arcfleet.neural.env import remaining_capacity
from arcfleet.neural.kernels.cuda_graph import fastest_wrap
from arcfleet.neural.model import AttentionModel
from arcfleet.neural.plans import split_plans
from arcfleet.neural.train.data import open_instances, open_labelled, require_distinct
from arcfleet.neural.train.distributed import Team, join_team
from arcfleet.neural.train.loop import TrainingLoop, TrainingProgress
from arcfleet.neural.train.run import (
    RunFolder,
    checksum,
    first_model,
    require_precision,
    require_teamwork,
    require_weights,
)
from arcfleet.neural.train.steps import (
    LearningForm,
    allow_graphs,
    divergence,
    draw_choices,
    learning_form,
    leave_one_out,
    log_probabilities,
    logits_of,
    reinforce_loss,
    states_at,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch, Bucket
    from arcfleet.neural.decoding import Rollout
    from arcfleet.neural.env import State
    from arcfleet.neural.train.config import FinetuneConfig, Objective
    from arcfleet.neural.train.data import InstanceSet, LabelledSet
    from arcfleet.neural.train.loop import Trained


class Finetuning(TrainingLoop[AttentionModel]):
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
        model: AttentionModel,
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

    def fast(self, model: AttentionModel) -> FastPolicy:
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
        self, arcs: Tensor, moments: int, bucket: Bucket | None = None
    ) -> tuple[Tensor, Tensor]:
        """Draw moments of sampled plans, as `trajectories.draw_choices` does."""
        team = self.team
        # Random numbers for the plans of all processes, so that they stay in step.
        whole = arcs.new_zeros((team.size * len(arcs), *arcs.shape[1:]))
        team.mine(whole).copy_(arcs)
        drawn, count = draw_choices(whole, moments, self.generator, bucket)
        return team.mine(drawn), team.mine(count)

    def sampled(
        self,
        policy: FastPolicy,
        batch: ArcBatch,
        copies: int,
        first: State | None = None,
        *,
        capacity_mask: bool = True,
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
                capacity_mask=capacity_mask,
                chunk=self._chunk(batch),
                wrap=fastest_wrap(self.device),
                initial=first,
                seeds=self.team.mine(seeds),
            )

    def greedily(
        self,
        policy: FastPolicy,
        batch: ArcBatch,
        first: State | None = None,
        *,
        capacity_mask: bool = True,
    ) -> Rollout:
        """Build plans greedily, from the empty one or from where they stand."""
        with deciding(policy.model):
            return greedy(
                policy,
                batch,
                capacity_mask=capacity_mask,
                chunk=self._chunk(batch),
                wrap=fastest_wrap(self.device),
                initial=first,
            )

    def _chunk(self, batch: ArcBatch) -> int | None:
        # On a GPU all at once, as `rollout_tokens` says: every part is a shape to record.
        return None if self.device.type == "cpu" else len(batch)


@contextmanager
def deciding(model: AttentionModel) -> Iterator[None]:
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


class Reinforce(Finetuning):
    """The objectives "samples" and "self-critical".

    Each plan's advantage is that over the mean of the other samples (Kool et al. 2019,
    "Buy 4 REINFORCE samples, get a baseline for free"), what it adds to the best of some
    of them, or that over the greedy plan (Rennie et al. 2017). Gradients come from some
    moments of each plan, which bounds the memory. An anchor holds the policy near the
    first one, whose samples differ from each other.
    """

    works_in_team = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        # Before a run is resumed, so that it is the first model then, too.
        first = copy.deepcopy(self.learner.working).requires_grad_(False).eval()
        self.first = LearningForm(first)

    def learn(self, rate: float) -> None:
        """Sample plans of some instances and raise the chance of the better ones."""
        config = self.config
        number = self.draw_set()
        data = self.sets[number]
        size, part = config.instances(
            data.batch.num_arcs, config.copies, self.available(data)
        )
        _, batch = self.draw_instances(data, size)
        capacity_mask = self.draw_bound()
        rollout = self.sampled(
            self.policy, batch, config.copies, capacity_mask=capacity_mask
        )
        costs = rollout_costs(
            batch, rollout, capacity_mask=capacity_mask, threads=self.threads
        )
        self.window.add(0, sampled=costs.mean())
        advantages = self.advantages(batch, costs, capacity_mask)
        # Found arc by arc, so once for all moments.
        room = None if capacity_mask else remaining_capacity(batch, rollout.arcs)
        buckets = self.buckets_of(number)
        moments = max(1, round(config.moments / len(buckets)))
        drawn = [self.draw_choices(rollout.arcs, moments, bucket) for bucket in buckets]
        for rows in torch.arange(size, device=self.device).view(-1, part):
            some, arcs = batch.select(rows), rollout.arcs[rows]
            room_here = None if room is None else room[rows]
            for place, (when, decisions) in enumerate(drawn, start=1):
                # Of the bucket, (batch, copies); each moment stands for all of them.
                count = decisions[rows].repeat_interleave(moments, dim=1)
                worth = advantages[rows].repeat_interleave(moments, dim=1)
                bucket = buckets[place - 1]
                loss = self._loss(
                    some, arcs, when[rows], worth, count, bucket, not data.full, room_here
                )
                # The sum over all buckets has the gradient of whole plans.
                if place < len(buckets):
                    self.learner.add(loss)
                else:
                    self.learner.update(loss, rate)

    def _loss(
        self,
        batch: ArcBatch,
        arcs: Tensor,
        moments: Tensor,
        worth: Tensor,
        count: Tensor,
        bucket: Bucket | None,
        padded: bool,
        room: Tensor | None,
    ) -> Tensor:
        capacity_mask = room is None
        state, choice = states_at(batch, arcs, moments, room)
        if bucket is not None:
            alone, rows = as_instances(state)
            small = shrink(batch, alone, bucket.length, rows)
            batch, state = small.batch, small.state
            choice = small.slot.gather(1, choice.reshape(-1, 1))
            worth, count = worth.reshape(-1, 1), count.reshape(-1, 1)
        padded = padded or bool(bucket)
        logits = logits_of(
            self.form, batch, state, padded=padded, capacity_mask=capacity_mask
        )
        chosen = log_probabilities(logits, choice, self.config.temperature)
        loss = reinforce_loss(chosen, worth * count)
        self.window.add(choice.numel(), loss=loss.detach())
        if self.config.cost_per_nat:
            with torch.no_grad():
                first = logits_of(
                    self.first, batch, state, padded=padded, capacity_mask=capacity_mask
                )
            left = (divergence(logits, first) * count).mean()
            self.window.add(0, left=left.detach())
            loss = loss + self.config.cost_per_nat * left
        return loss

    def advantages(
        self, batch: ArcBatch, costs: Tensor, capacity_mask: bool = True
    ) -> Tensor:
        """Say what each sample is worth beside what it is compared with."""
        if self.config.objective == "samples":
            return leave_one_out(costs, self.config.best_of)
        plans = self.greedily(self.policy, batch, capacity_mask=capacity_mask)
        usual = rollout_costs(
            batch, plans, capacity_mask=capacity_mask, threads=self.threads
        )  # (batch, 1)
        self.window.add(0, greedy=usual.mean())
        return usual - costs


def rollout_costs(
    batch: ArcBatch, rollout: Rollout, *, capacity_mask: bool, threads: int = 1
) -> Tensor:
    """Give what plans cost beside services and routes, in the instances' scale.

    Parameters
    ----------
    batch
        The instances.
    rollout
        Their plans.
    capacity_mask
        Whether they were built under the capacity; else they are tours, which the path
        optimiser splits first. Fleet limits do not count.
    threads
        Of the path optimiser.

    Returns
    -------
    costs
        (batch, copies).
    """
    if capacity_mask:
        return scaled(batch, batch.deadheads(rollout.arcs))
    boundless = replace(batch, fleet_limit=torch.zeros_like(batch.fleet_limit))
    plans = split_plans(boundless, rollout, choose_directions=False, threads=threads)
    device = batch.real.device
    costs = torch.from_numpy(plans.costs).to(device)
    routes = torch.from_numpy(plans.starts_route.sum(-1)).to(device)
    services = batch.service_cost.long().gather(1, rollout.arcs.flatten(1))
    fixed = services.view(rollout.arcs.shape).sum(-1) + routes * batch.route_cost[:, None]
    return scaled(batch, costs - fixed)


def run_class(objective: Objective) -> type[Finetuning]:
    """Return the run of an objective."""
    from arcfleet.neural.train.trials import SelfImprovement
    from arcfleet.paper.ppo import Proximal

    runs: dict[Objective, type[Finetuning]] = {
        "imitate-best": SelfImprovement,
        "samples": Reinforce,
        "self-critical": Reinforce,
        "ppo": Proximal,
    }
    return runs[objective]


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
    model: AttentionModel = first_model(config, init)
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
    kind = run_class(config.objective)
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
    if size > 1 and not run_class(config.objective).works_in_team:
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
