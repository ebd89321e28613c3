"""A policy at work on a batch: what decoding strategies are written in.

`DecodingRun` has the parts of a strategy as methods. Below it are the functions that they
call: rollouts over augmentations, and neural LNS. Instances of more tasks than models are
trained on go through windows (`windows.py`), one instance at a time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from arcfleet.errors import OptionError
from arcfleet.neural.batch import (
    NUM_PLAIN,
    ArcBatch,
    Shrunk,
    round_length,
    shrink,
    take_rows,
    with_signs,
)
from arcfleet.neural.decoding import (
    OnStep,
    Policy,
    Rollout,
    Wrap,
    draw_seeds,
    greedy,
    gumbel_noise,
    mixed_bits,
    sample,
)
from arcfleet.neural.env import State
from arcfleet.neural.kernels.cuda_graph import fastest_wrap
from arcfleet.neural.plans import (
    NO_PLAN,
    Plans,
    as_decoded,
    best,
    best_so_far,
    merge,
    padded,
    split_plans,
    without_depot,
)
from arcfleet.neural.windows import centred, has_short_routes, windowed_rollout, with_scale
from arcfleet.search.stop import ANY_NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
        self._options: dict[str, Any] = {
            "threads": threads,
            "on_step": on_step,
            "wrap": self.wrap,
        }
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
        """Yield samples of some batch rows as they are ready, and keep the best."""
        if strategy.improve is None:
            raise ValueError(f"expected a strategy that samples, got {strategy.name!r}")
        for plans in strategy.improve(self, rows, samples):
            self.offer(rows, plans)
            yield plans

    def greedy(self) -> Rollout:
        """Return one greedy rollout of each instance; decoded once."""
        if self._rollout is None:
            if self.windowed:
                self._rollout = self._windows(1)
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
            giant_tour = self._windows(1, capacity_mask=False)
            return best(merge(self.split(self.greedy()), self.split(giant_tour)))
        return augmented_greedy(self.policy, self.batch, **self._options)

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
                **self._options,
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
            **self._options,
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
        self, samples: int, choose: Choose | None = None, *, capacity_mask: bool = True
    ) -> Rollout:
        """Roll the policy out through windows; greedily without `choose`."""

        def choose_and_report(logits: Tensor) -> Tensor:
            if self.on_step is not None:
                self.on_step(0, 0)
            return logits.argmax(-1) if choose is None else choose(logits)

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


def generator_seeds(generator: torch.Generator) -> NextSeeds:
    """Return a source of seeds from a random number generator."""
    return lambda rows: draw_seeds(len(rows), generator)


def hashed_seeds(seeds: Tensor) -> NextSeeds:
    """Return a source of seeds of each instance alone: its seed, (batch,), then hashes."""
    following = seeds.clone()

    def next_seeds(rows: Sequence[int]) -> Tensor:
        here = torch.tensor(list(rows))
        now = following[here]
        following[here] = mixed_bits(now + _NEXT_ROUND)
        return now

    return next_seeds


# ------------------------------------------------------- rollouts over augmentations
# An augmentation flips signs of MDS axes, which mean nothing but lead a model to other
# plans. Half of the plans are giant tours, which Split cuts into routes.

#: Largest number of augmentations of an instance, and the fraction of giant tours. What was
#: tried for the shipped model, here and for the temperature: research/log.
NUM_AUGMENTATIONS = 8
GIANT_TOUR_SHARE = 0.5

# Differences of the seeds of two augmentations, and of plans with the capacity mask and
# giant tours; no multiples of what `gumbel_noise` adds for plans and steps.
_NEXT_AUGMENTATION = 0x2545F4914F6CDD1D
_GIANT_TOURS = 0x1D872B41


def augmented_greedy(
    policy: Policy,
    batch: ArcBatch,
    *,
    threads: int = 1,
    on_step: OnStep | None = None,
    wrap: Wrap | None = None,
) -> Plans:
    """Return the cheapest of four greedy rollouts over augmentations, two of giant tours.

    It takes as many steps of as many plans as the paper's two beams of two, whose plans are
    nearly always the same. Split also chooses directions. `on_step` counts the steps of
    giant tours from 0.
    """
    size, device = len(batch), batch.real.device
    pairs = batch.select(torch.arange(size, device=device).repeat_interleave(2))
    axis = torch.arange(batch.num_axes, device=device)
    alternating = 1 - 2 * (axis % 2)  # +1, -1, +1 ...
    plain = torch.ones_like(alternating)
    both = []
    for signs, capacity_mask in ((plain, True), (alternating, False)):
        flips = torch.stack([signs, -signs]).repeat(size, 1)
        rollout = greedy(
            policy,
            with_signs(pairs, flips),
            capacity_mask=capacity_mask,
            on_step=on_step,
            wrap=wrap,
        )
        both.append(_split(batch, rollout, 2, threads))
    return best(merge(*both))


def sample_plans(
    policy: Policy,
    batch: ArcBatch,
    samples: int,
    seeds: Tensor,
    *,
    temperature: float | None = None,
    num_augmentations: int = NUM_AUGMENTATIONS,
    giant_tour_share: float = GIANT_TOUR_SHARE,
    threads: int = 1,
    on_step: OnStep | None = None,
    wrap: Wrap | None = None,
) -> Iterator[Plans]:
    """Sample plans of each instance; yield those with the capacity mask, then giant tours.

    Split also chooses directions. The plans of an augmentation start with distinct arcs, as
    far as there are enough.

    Parameters
    ----------
    policy, batch, samples, on_step, wrap
        As in `decoding.sample`; steps of giant tours count from 0.
    seeds
        Seeds of the instances, as from `draw_seeds`.
    temperature
        Divisor of the logits; None for `default_temperature`.
    num_augmentations
        Augmentations of an instance, unless it has fewer plans.
    giant_tour_share
        Fraction of giant tours, from 0 to 1, rounded down.
    threads
        Threads of Split.
    """
    if num_augmentations < 1 or not 0 <= giant_tour_share <= 1:
        raise OptionError(
            "expected at least 1 augmentation and a share of giant tours from 0 to 1, got "
            f"{num_augmentations} and {giant_tour_share}"
        )
    if temperature is None:
        heat = default_temperature(batch.num_tasks)
    else:
        heat = torch.full((len(batch),), temperature, device=batch.real.device)
    giant_tours = int(samples * giant_tour_share)
    for count, capacity_mask in ((samples - giant_tours, True), (giant_tours, False)):
        if count == 0:
            continue
        here = seeds.to(batch.real.device) + (0 if capacity_mask else _GIANT_TOURS)
        each = -(-count // min(num_augmentations, count))  # samples of an augmentation
        used = -(-count // each)
        rollout = sample(
            policy,
            augmentations(batch, here, used),
            each,
            temperature=heat.repeat_interleave(used),
            capacity_mask=capacity_mask,
            on_step=on_step,
            wrap=wrap,
            seeds=_augmentation_seeds(here, used).flatten(),
            distinct_starts=True,
        )
        yield _split(batch, rollout, count, threads)


def _split(batch: ArcBatch, rollout: Rollout, samples: int, threads: int) -> Plans:
    """Split the first `samples` rollouts over the augmentations of each instance."""
    arcs = rollout.arcs.reshape(len(batch), -1, rollout.arcs.shape[-1])[:, :samples]
    total = rollout.log_probability.reshape(len(batch), -1)[:, :samples]
    rollout = Rollout(arcs, total)
    return split_plans(batch, rollout, choose_directions=True, threads=threads)


def default_temperature(tasks: Tensor) -> Tensor:
    """Return the sampling temperature of instances with so many tasks.

    Below 1 likely arcs become likelier. Small instances have few likely plans, of which a
    higher temperature finds more; in large ones its mistakes add up.
    """
    return (1.6 - tasks / 100).clamp(0.7, 1.0)


def augmentations(batch: ArcBatch, seeds: Tensor, count: int) -> ArcBatch:
    """Return `count` augmentations of each instance in a row; the first is itself."""
    if count == 1:
        return batch
    rows = torch.arange(len(batch), device=seeds.device).repeat_interleave(count)
    axis = torch.arange(batch.num_axes, device=seeds.device)
    bits = mixed_bits(_augmentation_seeds(seeds, count))  # (batch, count)
    flipped = (bits[..., None] >> axis) & 1
    flipped[:, 0] = 0
    return with_signs(batch.select(rows), (1 - 2 * flipped).flatten(0, 1))


def _augmentation_seeds(seeds: Tensor, count: int) -> Tensor:
    """Return a seed for each augmentation, (batch, count); the first is the instance's."""
    return seeds[:, None] + torch.arange(count, device=seeds.device) * _NEXT_AUGMENTATION


# -------------------------------------------------------------------------- neural LNS
# Every route of a plan goes into one group with its neighbours. The tasks of a group become
# a small instance of their own, for which the policy samples plans; the cheapest replaces
# the routes of the group.

#: Tasks of a group. What was tried: research/log.
GROUP_TASKS = 40

# Coordinates are summed as integers in such parts of the unit: floating-point sums on a GPU
# depend on its order of work, and equally near routes would change places.
_PARTS = 2**20

# Differences of the hashed numbers of two routes, and of the seeds of two groups.
_NEXT_ROUTE = 0x632BE59BD9B4E019
_NEXT_GROUP = 0x5851F42D4C957F2D


def has_one_group(batch: ArcBatch) -> bool:
    """Return whether all instances are so small that to repair is to sample them whole."""
    return int(batch.num_tasks.amax()) <= GROUP_TASKS


class RouteGroups(NamedTuple):
    """Groups of routes; every route of every plan is in one."""

    rows: Tensor  # batch row of each group, (groups,), in ascending order
    numbers: Tensor  # number of each group within its plan, from 0 on, (groups,)
    member: Tensor  # services of the plan that are in the group, (groups, positions)
    routes: Tensor  # number of routes of each group, (groups,)


def group_routes(
    batch: ArcBatch, arcs: Tensor, starts_route: Tensor, seeds: Tensor, most_tasks: int
) -> RouteGroups:
    """Group each randomly chosen route with its nearest neighbours that are left.

    A group has as many routes as have at most `most_tasks` tasks together, or two that
    have more; the last group has what is left. The distance of two routes is that of the
    means of their services' MDS coordinates.

    Parameters
    ----------
    batch, seeds
        Instances and their seeds, (batch,).
    arcs, starts_route
        Services of one plan of each, as in `Plans`, (batch, positions).
    most_tasks
        Largest number of tasks of a group.
    """
    serves = arcs != 0
    route = (starts_route.cumsum(1) - 1).clamp(min=0)  # (batch, positions)
    count = int(route.amax()) + 1
    tasks = serves.new_zeros((len(arcs), count), dtype=torch.int64)
    tasks = tasks.scatter_add(1, route, serves.long())
    apart = _squared_distances(batch, arcs, route, tasks)
    number = torch.arange(count, device=arcs.device)
    drawn = mixed_bits(seeds[:, None] + number * _NEXT_ROUTE)
    group = torch.full_like(tasks, -1)  # of each route
    free = tasks > 0
    made = 0
    while bool(free.any()):
        first = drawn.masked_fill(~free, torch.iinfo(drawn.dtype).max).argmin(1)
        near = take_rows(apart, first[:, None])[:, 0]  # (batch, routes)
        near = near.scatter(1, first[:, None], -1.0).masked_fill(~free, torch.inf)
        order = near.argsort(dim=1, stable=True)
        together = tasks.masked_fill(~free, 0).gather(1, order).cumsum(1)
        fits = (together <= most_tasks) | (number < 2)
        chosen = torch.zeros_like(free).scatter(1, order, fits) & free
        group = group.masked_fill(chosen, made)
        free = free & ~chosen
        made += 1
    every = torch.arange(made, device=arcs.device)[:, None]
    routes = (group[:, None] == every).sum(2)  # (batch, groups)
    rows, numbers = routes.nonzero(as_tuple=True)
    of_service = group.gather(1, route).masked_fill(~serves, -1)
    return RouteGroups(
        rows, numbers, of_service[rows] == numbers[:, None], routes[rows, numbers]
    )


def _squared_distances(
    batch: ArcBatch, arcs: Tensor, route: Tensor, tasks: Tensor
) -> Tensor:
    """Return squared distances between route centres, (batch, routes, routes)."""
    ends = take_rows(batch.features[..., NUM_PLAIN:], arcs)  # (batch, positions, 2 d)
    axes = ends.shape[2] // 2
    # Of starts and ends together, so twice the coordinates.
    places = ((ends[..., :axes] + ends[..., axes:]) * _PARTS).round().long()
    places = places * (arcs != 0)[..., None]
    middle = places.new_zeros((*tasks.shape, axes))
    middle = middle.scatter_add(1, route[..., None].expand_as(places), places)
    middle = middle.double() / tasks.clamp(min=1)[..., None]
    return (middle[:, :, None] - middle[:, None]).square().sum(-1)


def destroy_and_repair(
    policy: Policy,
    batch: ArcBatch,
    plans: Plans,
    samples: int,
    seeds: Tensor,
    *,
    group_tasks: int = GROUP_TASKS,
    own_unit: bool = False,
    temperature: float | None = None,
    threads: int = 1,
    on_step: OnStep | None = None,
    wrap: Wrap | None = None,
) -> Iterator[Plans]:
    """Destroy and repair the routes of plans; yield the plans after every sample.

    They come in the two parts of `sample_plans`. No plan costs more than the one before it.
    Plans that break the fleet limit are sampled whole; others never get more routes where
    there is a limit.

    Parameters
    ----------
    policy, batch, temperature, threads, on_step, wrap
        As in `sample_plans`.
    plans
        One plan of each instance.
    samples
        Samples of every group.
    seeds
        Seeds of the instances, for this call alone.
    group_tasks
        Tasks that are repaired together, as in `group_routes`.
    own_unit
        Whether lengths and coordinates are scaled to the group alone: for large instances,
        of which a model has never seen such a small part.
    """
    if plans.costs.shape != (len(batch), 1) or group_tasks < 1:
        raise OptionError(
            "expected one plan of each instance and groups of at least 1 task, got plans "
            f"of shape {plans.costs.shape} for {len(batch)} and groups of {group_tasks}"
        )
    device = batch.real.device
    seeds = seeds.to(device)
    arcs = torch.as_tensor(plans.arcs[:, 0], device=device).long()
    legal = torch.as_tensor(plans.costs[:, 0] != NO_PLAN, device=device)
    starts = torch.as_tensor(plans.starts_route[:, 0], device=device) & legal[:, None]
    groups = group_routes(batch, arcs, starts, seeds, group_tasks)
    rows = groups.rows
    services = arcs[rows].masked_fill(~groups.member, 0)  # (groups, positions)
    small = _instances_of(batch, rows, services)
    limit = batch.fleet_limit[rows]
    limit = torch.where((limit > 0) & legal[rows], groups.routes.to(limit), limit)
    parts = replace(small.batch, fleet_limit=limit)
    if own_unit:
        parts = _rescaled(parts)
    most = int(groups.member.sum(1).amax())
    slots = small.slot.gather(1, services)
    old = Rollout(
        without_depot(services, slots, most)[:, None],
        torch.zeros((len(rows), 1), dtype=torch.float64, device=device),
    )
    drawn = sample_plans(
        policy,
        parts,
        samples,
        mixed_bits(seeds[rows] + groups.numbers * _NEXT_GROUP),
        temperature=temperature,
        threads=threads,
        on_step=on_step,
        wrap=wrap,
    )
    known = split_plans(parts, old, choose_directions=True, threads=threads)
    for found in drawn:
        after = best_so_far(merge(known, found)).at((slice(None), slice(1, None)))
        yield _concatenate(after, groups, small.kept, plans.arcs.shape)
        known = best(after)


def _instances_of(batch: ArcBatch, rows: Tensor, services: Tensor) -> Shrunk:
    """Return an instance of the services of each group, (groups, positions)."""
    unserved = torch.zeros_like(batch.real[rows]).scatter(1, services, True)
    unserved |= unserved.gather(1, batch.inverse.long()[rows])
    unserved[:, 0] = False
    longest = int(unserved.sum(1).amax()) + 1
    state = State(
        unserved=unserved[:, None],
        previous=rows.new_zeros((len(rows), 1)),
        remaining=batch.capacity[rows][:, None],
    )
    return shrink(batch, state, round_length(longest), rows)


def _rescaled(batch: ArcBatch) -> ArcBatch:
    """Return parts of instances with their own unit of length and centred coordinates."""
    pairs = (batch.real[:, :, None] & batch.real[:, None]).float()
    scale = (batch.distance * pairs).sum((1, 2)) / pairs.sum((1, 2))
    features = centred(batch.features, batch.real) * batch.real[..., None]
    # Where all driving within a part is free, the unit stays that of the instance.
    return with_scale(
        replace(batch, features=features), torch.where(scale > 0, scale, batch.scale)
    )


def _concatenate(
    parts: Plans, groups: RouteGroups, kept: Tensor, shape: tuple[int, ...]
) -> Plans:
    """Concatenate the routes of all groups of an instance.

    Parameters
    ----------
    parts, groups
        Plans of the groups, (groups, samples, ...), and the groups.
    kept
        Arcs of the instance that a group's arcs are, (groups, arcs).
    shape
        Shape of the services of all plans, (batch, 1, positions).
    """
    row = groups.rows.cpu().numpy()
    size, samples, most = shape[0], parts.costs.shape[1], shape[2]
    serves = parts.arcs[:, 0] != 0  # the same in all samples
    length = serves.sum(1)
    before = length.cumsum() - length
    before -= before[np.searchsorted(row, row)]  # within the instance
    group, position = np.nonzero(serves)
    place = row[group], slice(None), before[group] + position
    own = np.take_along_axis(
        kept.cpu().numpy()[:, None], parts.arcs.astype(np.int64), axis=2
    )
    arcs = np.zeros((size, samples, most), dtype=parts.arcs.dtype)
    arcs[place] = own[group, :, position]
    starts = np.zeros(arcs.shape, dtype=np.bool_)
    starts[place] = parts.starts_route[group, :, position]
    costs = np.zeros((size, samples), dtype=np.int64)
    np.add.at(costs, row, parts.costs)
    failed = np.zeros(costs.shape, dtype=np.bool_)
    np.logical_or.at(failed, row, parts.costs == NO_PLAN)
    return Plans(arcs, starts, np.where(failed, NO_PLAN, costs))
