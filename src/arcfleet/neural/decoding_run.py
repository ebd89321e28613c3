"""A policy at work on a batch: what decoding strategies are written in.

Instances of more tasks than models are trained on go through windows (`windows.py`), one
instance at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import torch

from arcfleet.neural.decoding import Rollout, draw_seeds, greedy, gumbel_noise, mixed_bits
from arcfleet.neural.kernels.cuda_graph import fastest_wrap
from arcfleet.neural.lns import destroy_and_repair, has_one_group
from arcfleet.neural.plans import (
    NO_PLAN,
    Plans,
    as_decoded,
    best,
    merge,
    padded,
    split_plans,
)
from arcfleet.neural.sampling import augmented_greedy, default_temperature, sample_plans
from arcfleet.neural.windows import has_short_routes, windowed_rollout
from arcfleet.search.stop import ANY_NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.decoding import OnStep, Policy
    from arcfleet.neural.model import Model
    from arcfleet.neural.strategies import Strategy

    Choose = Callable[[Tensor], Tensor]
    # From batch rows to seeds for their next samples, (rows,).
    NextSeeds = Callable[[Sequence[int]], Tensor]

#: Plans of an instance that are sampled whole before neural LNS. What was tried:
#: research/log.
WHOLE_SAMPLES = 16

# The same through windows: few, since each takes long.
_WHOLE_SAMPLES_BY_WINDOWS = 4

# Difference of the seeds of two calls.
_NEXT_ROUND = 0x3C6EF372FE94F82B


class DecodingRun:
    """A policy, a batch, and the best plan of each instance so far.

    Parameters
    ----------
    policy
        Policy, on the device of the batch.
    batch
        Instances.
    next_seeds
        Source of the seeds of samples; by default that of seed 0.
    temperature
        Sampling temperature; None for `default_temperature`.
    threads
        Threads of Split.
    on_step
        Callback after every decoding step; may raise.
    windowed
        Whether the only instance goes through windows.
    """

    def __init__(
        self,
        policy: Policy,
        batch: ArcBatch,
        *,
        next_seeds: NextSeeds | None = None,
        temperature: float | None = None,
        threads: int = 1,
        on_step: OnStep | None = None,
        windowed: bool = False,
    ) -> None:
        self.policy = policy
        self.batch = batch
        self.next_seeds = next_seeds or generator_seeds(torch.Generator().manual_seed(0))
        self.temperature = temperature
        self.threads = threads
        self.on_step = on_step
        self.windowed = windowed
        self.wrap = fastest_wrap(batch.real.device)
        #: Plans of each instance that were sampled whole.
        self.sampled = 0
        self._whole_samples: int | None = None
        self._rollout: Rollout | None = None
        arcs = np.zeros((len(batch), 1, int(batch.num_tasks.amax())), np.int32)
        costs = np.full((len(batch), 1), NO_PLAN, dtype=np.int64)
        #: Cheapest plan of each instance, (batch, 1, ...).
        self.best = Plans(arcs, arcs.astype(np.bool_), costs)

    def offer(self, rows: Sequence[int], plans: Plans) -> None:
        """Keep the cheapest plan of each of some instances."""
        # New ones first: of those that are no plans, any that serves all.
        here = list(rows)
        plans = padded(plans, self.best.arcs.shape[2])
        better = best(merge(plans, self.best.at(here)))
        self.best.arcs[here] = better.arcs
        self.best.starts_route[here] = better.starts_route
        self.best.costs[here] = better.costs

    def improve(
        self, strategy: Strategy, rows: Sequence[int], samples: int
    ) -> Iterator[Plans]:
        """Yield samples of some instances as they are ready, and keep the best.

        Parameters
        ----------
        strategy
            Strategy that samples.
        rows
            Batch rows of the instances.
        samples
            Plans of each of them.
        """
        if strategy.improve is None:
            raise ValueError(f"expected a strategy that samples, got {strategy.name!r}")
        for plans in strategy.improve(self, rows, samples):
            self.offer(rows, plans)
            yield plans

    def greedy(self) -> Rollout:
        """Return one greedy rollout of each instance; decoded once."""
        if self._rollout is None:
            if self.windowed:
                self._rollout = self._windows(1, _most_probable)
            else:
                self._rollout = greedy(
                    self.policy, self.batch, on_step=self.on_step, wrap=self.wrap
                )
        return self._rollout

    def augmented_greedy(self) -> Plans:
        """Return the cheapest of four greedy rollouts over augmentations, split.

        Through windows, of two: with and without the capacity mask.
        """
        if self.windowed:
            giant_tour = self._windows(1, _most_probable, capacity_mask=False)
            return best(merge(self.split(self.greedy()), self.split(giant_tour)))
        return augmented_greedy(
            self.policy,
            self.batch,
            threads=self.threads,
            on_step=self.on_step,
            wrap=self.wrap,
        )

    def as_decoded(self, rollout: Rollout) -> Plans:
        """Return plans with the routes of a rollout."""
        return as_decoded(self.batch, rollout)

    def split(self, rollout: Rollout) -> Plans:
        """Split rollouts into routes, and choose directions."""
        return split_plans(
            self.batch, rollout, choose_directions=True, threads=self.threads
        )

    def sample(self, rows: Sequence[int], samples: int) -> Iterator[Plans]:
        """Sample whole plans of some instances, by `sample_plans` or through windows."""
        seeds = self.next_seeds(rows)
        if self.windowed:
            yield self.split(self._windows(samples, self._gumbel(seeds)))
        else:
            yield from sample_plans(
                self.policy,
                self._some(rows),
                samples,
                seeds,
                temperature=self.temperature,
                threads=self.threads,
                on_step=self.on_step,
                wrap=self.wrap,
            )
        self.sampled += samples

    def destroy_and_repair(self, rows: Sequence[int], samples: int) -> Iterator[Plans]:
        """Destroy and repair all routes of the best plans of some instances once."""
        yield from destroy_and_repair(
            self.policy,
            self._some(rows),
            self.best.at(list(rows)),
            samples,
            self.next_seeds(rows),
            own_unit=self.windowed,
            temperature=self.temperature,
            threads=self.threads,
            on_step=self.on_step,
            wrap=self.wrap,
        )

    @property
    def whole_samples(self) -> int:
        """Plans that neural LNS samples whole first, as decided when it is first asked."""
        if self._whole_samples is None:
            if self.windowed:
                short = has_short_routes(self.best)
                self._whole_samples = _WHOLE_SAMPLES_BY_WINDOWS if short else ANY_NUMBER
            else:
                small = has_one_group(self.batch)
                self._whole_samples = ANY_NUMBER if small else WHOLE_SAMPLES
        return self._whole_samples

    def _some(self, rows: Sequence[int]) -> ArcBatch:
        if len(rows) == len(self.batch):
            return self.batch
        return self.batch.select(torch.tensor(list(rows), device=self.batch.real.device))

    def _windows(
        self, samples: int, choose: Choose, *, capacity_mask: bool = True
    ) -> Rollout:
        def choose_and_report(logits: Tensor) -> Tensor:
            if self.on_step is not None:
                self.on_step(0, 0)
            return choose(logits)

        arcs = windowed_rollout(
            cast("Model", self.policy),
            self.batch,
            samples=samples,
            choose=choose_and_report,
            capacity_mask=capacity_mask,
        )
        return Rollout(arcs, torch.zeros(arcs.shape[:2], device=arcs.device))

    def _gumbel(self, seeds: Tensor) -> Choose:
        """Return a function that samples arcs step by step, as `decoding.sample` does."""
        device = self.batch.real.device
        seeds = seeds.to(device)
        steps = torch.zeros((), dtype=torch.int64, device=device)
        heat = default_temperature(self.batch.num_tasks)[:, None, None]
        divisor = heat if self.temperature is None else self.temperature

        def choose(logits: Tensor) -> Tensor:
            _, samples, arcs = logits.shape
            noise = gumbel_noise(seeds, samples, steps, arcs)
            steps.add_(1)
            return (logits.float() / divisor + noise).argmax(-1)

        return choose


def _most_probable(logits: Tensor) -> Tensor:
    return logits.argmax(-1)


def generator_seeds(generator: torch.Generator) -> NextSeeds:
    """Return a source of seeds from a random number generator."""
    return lambda rows: draw_seeds(len(rows), generator)


def hashed_seeds(seeds: Tensor) -> NextSeeds:
    """Return a source of seeds of each instance alone: its seed, then hashes of it.

    Parameters
    ----------
    seeds
        Seeds of all instances of the batch, (batch,).
    """
    following = seeds.clone()

    def next_seeds(rows: Sequence[int]) -> Tensor:
        here = torch.tensor(list(rows))
        now = following[here]
        following[here] = mixed_bits(now + _NEXT_ROUND)
        return now

    return next_seeds
