"""Fine-tuning: a trained model learns from rollouts that it samples itself."""

from __future__ import annotations

import copy
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import torch

from arcfleet.neural.batch import as_instances, flip_axes, shrink
from arcfleet.neural.decoding import FastPolicy, draw_seeds, greedy, sample
from arcfleet.neural.env import remaining_capacity
from arcfleet.neural.plans import split_plans
from arcfleet.neural.train.config import FinetuneConfig
from arcfleet.neural.train.loop import Trainer
from arcfleet.neural.train.run import run_training
from arcfleet.neural.train.steps import (
    LearningForm,
    allow_graphs,
    draw_choices,
    kl_divergence,
    leave_one_out,
    log_probabilities,
    reinforce_loss,
    states_at,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch, Bucket
    from arcfleet.neural.decoding import Rollout
    from arcfleet.neural.env import State
    from arcfleet.neural.train.data import InstanceSet
    from arcfleet.neural.train.loop import Trained
    from arcfleet.neural.train.run import RunOptions

# Config of a policy gradient: FinetuneConfig, or another with the same settings of
# rollouts.
PolicyConfig = TypeVar("PolicyConfig", bound=Any)


def finetune(
    out: Path | str,
    config: FinetuneConfig,
    *,
    data: Sequence[Path | str],
    init: Path | str,
    **options: Unpack[RunOptions],
) -> Trained:
    """Train the model of `init` further on rollouts that it samples itself.

    `init` is a model file, or "daam" for the shipped model. The data sets need no labels;
    `options` are those of `run_training`.
    """
    return run_training(RlooTrainer, out, config, data=data, init=init, **options)


class PolicyGradientTrainer(Trainer[PolicyConfig]):
    """A run that learns from rollouts; subclasses define a step."""

    validates_first = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        compiled = len(self.data) if self.config.run.compile else None
        self.form = LearningForm(self.learner.working, compiled)
        self.policy = self.decoding_form(self.learner.working)

    def decoding_form(self, model: Any) -> FastPolicy:
        """Return the form of a model that rollouts are made with."""
        # One that leaves served arcs out has too many shapes to compile.
        compiled = self.config.run.compile and not model.hides_served
        if compiled:
            # Sampled, greedy and from states; on all sets.
            allow_graphs(4 * (len(self.data) + len(self.validation)))
        return FastPolicy(model, compiled=compiled)

    def reference_form(self) -> Any:
        """Return a copy of the present policy that does not learn."""
        return copy.deepcopy(self.learner.working).requires_grad_(False).eval()

    def draw_instances(self, data: InstanceSet, count: int) -> ArcBatch:
        """Sample so many instances for this process, each at most once."""
        order = torch.randperm(len(data), device=self.device, generator=self.generator)
        batch = data.batch.select(order[: self.world.size * count])
        if self.config.flip_axes:
            batch = flip_axes(batch, self.generator)
        return self.world.shard_batch(batch)

    def draw_choices(
        self, arcs: Tensor, decision_steps: int, bucket: Bucket | None = None
    ) -> tuple[Tensor, Tensor]:
        """Sample decision steps of rollouts, as `steps.draw_choices` does."""
        world = self.world
        # Random numbers for the rollouts of all processes, so that they stay in step.
        whole = arcs.new_zeros((world.size * len(arcs), *arcs.shape[1:]))
        world.shard(whole).copy_(arcs)
        drawn, count = draw_choices(whole, decision_steps, self.generator, bucket)
        return world.shard(drawn), world.shard(count)

    def sample(
        self,
        policy: FastPolicy,
        batch: ArcBatch,
        samples: int,
        initial: State | None = None,
        *,
        capacity_mask: bool = True,
    ) -> Rollout:
        """Sample rollouts, from the empty plan or from given states."""
        seeds = draw_seeds(self.world.size * len(batch), self.generator)
        with deciding(policy.model):
            return sample(
                policy,
                batch,
                samples,
                generator=self.generator,
                temperature=self.config.temperature,
                capacity_mask=capacity_mask,
                initial=initial,
                seeds=self.world.shard(seeds),
                **self.rollout_options(batch),
            )

    def greedy(
        self, policy: FastPolicy, batch: ArcBatch, initial: State | None = None
    ) -> Rollout:
        """Make greedy rollouts, from the empty plan or from given states."""
        with deciding(policy.model):
            return greedy(policy, batch, initial=initial, **self.rollout_options(batch))


class RlooTrainer(PolicyGradientTrainer[FinetuneConfig]):
    """REINFORCE with a leave-one-out baseline and a KL penalty.

    Gradients come from some decision steps of each rollout, which bounds the memory. The KL
    penalty holds the policy near the initial one, whose samples differ from each other.
    """

    phase = "finetune"
    distributed = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        # Before a run is resumed, so that it is the initial policy then, too.
        self.reference = LearningForm(self.reference_form())

    def rollout_options(self, batch: ArcBatch) -> dict[str, Any]:
        """Return how rollouts are computed: so many at once need no recorded graphs."""
        return {**super().rollout_options(batch), "wrap": None}

    def train_step(self, rate: float) -> None:
        """Sample rollouts of some instances and make the better ones likelier."""
        config = self.config
        number = self.draw_set()
        data = self.data[number]
        buckets = self.buckets_of(number)
        steps = max(1, round(config.decision_steps / len(buckets)))
        arcs = data.batch.num_arcs
        longest = arcs if buckets[-1] is None else buckets[-1].length
        size, part = batch_sizes(
            config,
            rolled_out=config.samples * arcs,
            learned=config.samples * steps * longest,
            available=len(data) // self.world.size,
        )
        batch = self.draw_instances(data, size)
        capacity_mask = not self.draw_giant_tour(config.giant_tour_fraction)
        rollout = self.sample(
            self.policy, batch, config.samples, capacity_mask=capacity_mask
        )
        costs = rollout_costs(
            batch, rollout, capacity_mask=capacity_mask, threads=self.threads
        )
        self.metrics.add(0, sampled=costs.mean())
        advantage = leave_one_out(costs, config.best_of_k)  # (batch, samples)
        remaining = None if capacity_mask else remaining_capacity(batch, rollout.arcs)
        drawn = [self.draw_choices(rollout.arcs, steps, bucket) for bucket in buckets]
        for rows in torch.arange(size, device=self.device).view(-1, part):
            some, plans = batch.select(rows), rollout.arcs[rows]
            left = None if remaining is None else remaining[rows]
            for bucket, (when, count) in zip(buckets, drawn, strict=True):
                state, choice = states_at(some, plans, when[rows], left)
                # Each decision step stands for all those of its rollout in the bucket.
                weight = count[rows].repeat_interleave(steps, dim=1)
                worth = advantage[rows].repeat_interleave(steps, dim=1)
                flags = (not data.full, capacity_mask)
                loss = self._loss(some, state, choice, worth, weight, bucket, *flags)
                # The sum over all buckets has the gradient of whole rollouts.
                if bucket is not buckets[-1]:
                    self.learner.accumulate(loss)
            self.learner.update(loss, rate)

    def _loss(
        self,
        batch: ArcBatch,
        state: State,
        choice: Tensor,
        advantage: Tensor,
        weight: Tensor,
        bucket: Bucket | None,
        padded: bool,
        capacity_mask: bool,
    ) -> Tensor:
        if bucket is not None:
            alone, rows = as_instances(state)
            small = shrink(batch, alone, bucket.length, rows)
            batch, state, padded = small.batch, small.state, True
            choice = small.slot.gather(1, choice.reshape(-1, 1))
            advantage, weight = advantage.reshape(-1, 1), weight.reshape(-1, 1)
        logits = self.form.logits(batch, state, padded=padded, capacity_mask=capacity_mask)
        chosen = log_probabilities(logits, choice, self.config.temperature)
        loss = reinforce_loss(chosen, advantage * weight)
        self.metrics.add(choice.numel(), loss=loss.detach())
        if self.config.kl_coefficient:
            with torch.no_grad():
                reference = self.reference.logits(
                    batch, state, padded=padded, capacity_mask=capacity_mask
                )
            kl = (kl_divergence(logits, reference) * weight).mean()
            self.metrics.add(0, kl=kl.detach())
            loss = loss + self.config.kl_coefficient * kl
        return loss


@contextmanager
def deciding(model: Any) -> Iterator[None]:
    """Set a model to evaluation mode while the block runs."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def batch_sizes(
    config: Any, *, rolled_out: int, learned: int, available: int
) -> tuple[int, int]:
    """Return the instances of a step, a multiple of those of an update, and the latter.

    Of one instance so many arcs are rolled out, and learned from in one pass.
    """
    update = min(available, max(1, config.tokens // learned))
    step = min(available, max(1, config.rollout_tokens // rolled_out))
    update = min(update, step)
    return step // update * update, update


def scaled(batch: ArcBatch, deadheads: Tensor) -> Tensor:
    """Return costs (batch, samples) in the instances' scale, so that all count alike."""
    return deadheads / batch.scale[:, None]


def rollout_costs(
    batch: ArcBatch, rollout: Rollout, *, capacity_mask: bool, threads: int = 1
) -> Tensor:
    """Compute the cost of rollouts without services and routes, (batch, samples)."""
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
