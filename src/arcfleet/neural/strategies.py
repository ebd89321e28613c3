"""Plans of some instances by the model and the path optimiser.

Instances of more tasks than models are trained on go through windows of the nearest tasks,
one instance at a time. They have one view only, until their routes are drawn anew.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
import torch

from arcfleet.errors import OptionError, UnsolvableError
from arcfleet.neural.batch import (
    NUM_PLAIN,
    batch_from_dataset,
    batch_from_networks,
    num_axes,
    shrink,
    take_rows,
    whole_vectors,
    with_signs,
)
from arcfleet.neural.decoding import (
    Rollout,
    draw_seeds,
    greedy,
    gumbel_noise,
    mixed_bits,
    sample,
)
from arcfleet.neural.device import choose_device, expected_to_fit, torch_threads
from arcfleet.neural.env import State
from arcfleet.neural.kernels.cuda_graph import fastest_wrap
from arcfleet.neural.plans import (
    NO_PLAN,
    Plans,
    as_decoded,
    best,
    best_so_far,
    flat_plan,
    merge,
    padded,
    paper_recipe,
    split_plans,
    without_depot,
)
from arcfleet.neural.windows import centred, windowed_rollout, with_scale
from arcfleet.workers import child_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from arcfleet.datasets import Dataset
    from arcfleet.network import Network
    from arcfleet.neural.batch import ArcBatch, Shrunk
    from arcfleet.neural.decoding import OnStep, Policy, Wrap
    from arcfleet.neural.model import Model
    from arcfleet.neural.solver import LoadedModel
    from arcfleet.solution.plan import IntArray

    FlatPlan = tuple[IntArray, IntArray]
    Choose = Callable[[Tensor], Tensor]


#: Views of an instance, at most, and the share of plans that are tours. What was tried for
#: the shipped model, here and for the temperature: docs/training-log.md.
VIEWS = 8

GIANT_TOUR_SHARE = 0.5


# Seeds differ by these from view to view, and from plans under the capacity to tours; no
# multiples of what `gumbel_noise` adds for plans and steps.
_NEXT_VIEW = 0x2545F4914F6CDD1D

_TOURS = 0x1D872B41


def augmented_greedy(
    policy: Policy,
    batch: ArcBatch,
    *,
    threads: int = 1,
    on_step: OnStep | None = None,
    wrap: Wrap | None = None,
) -> Plans:
    """Give the cheapest of four plans: the likeliest of four views, two of them tours.

    It takes as many steps of as many plans as the paper's two beams of two, whose plans are
    nearly always the same. The path optimiser also chooses directions.

    Parameters
    ----------
    policy, batch, on_step, wrap
        As `decode.greedy` takes them; steps of tours are counted anew.
    threads
        Of the path optimiser.
    """
    size, axes = len(batch), num_axes(batch)
    twice = torch.arange(size, device=batch.real.device).repeat_interleave(2)
    pairs = batch.select(twice)
    odd = 1 - 2 * (torch.arange(axes, device=batch.real.device) % 2)  # +1, -1, +1 ...
    plain = torch.ones_like(odd)
    both = []
    for signs, capacity_mask in (((plain, -plain), True), ((odd, -odd), False)):
        views = with_signs(pairs, torch.stack(signs).repeat(size, 1))
        rollout = greedy(
            policy, views, capacity_mask=capacity_mask, on_step=on_step, wrap=wrap
        )
        plans = Rollout(
            rollout.arcs.view(size, 2, -1), rollout.log_probability.view(size, 2)
        )
        both.append(split_plans(batch, plans, choose_directions=True, threads=threads))
    return best(merge(*both))


def sample_plans(
    policy: Policy,
    batch: ArcBatch,
    samples: int,
    seeds: Tensor,
    *,
    temperature: float | None = None,
    views: int = VIEWS,
    giant_tour_share: float = GIANT_TOUR_SHARE,
    threads: int = 1,
    on_step: OnStep | None = None,
    wrap: Wrap | None = None,
) -> Iterator[Plans]:
    """Draw plans of each instance; give those under the capacity, then the tours.

    The path optimiser also chooses directions. The plans of a view start with different
    arcs, as far as there are some.

    Parameters
    ----------
    policy, batch, on_step, wrap
        As `decode.sample` takes them; steps of tours are counted anew.
    samples
        Plans of each instance.
    seeds
        Of the instances, as `draw_seeds` gives them.
    temperature
        Divides the logits; None for what `default_temperature` gives.
    views
        How many there are of an instance, unless it has fewer plans.
    giant_tour_share
        Of the plans, from 0 to 1, rounded down.
    threads
        Of the path optimiser.
    """
    if views < 1 or not 0 <= giant_tour_share <= 1:
        raise OptionError(
            "expected at least 1 view and a share of tours from 0 to 1, got "
            f"{views} and {giant_tour_share}"
        )
    if temperature is None:
        heat = default_temperature(batch.num_tasks)
    else:
        heat = torch.full((len(batch),), temperature, device=batch.real.device)
    tours = int(samples * giant_tour_share)
    for count, capacity_mask in ((samples - tours, True), (tours, False)):
        if count == 0:
            continue
        here = seeds.to(batch.real.device) + (0 if capacity_mask else _TOURS)
        each = -(-count // min(views, count))  # samples of a view
        used = -(-count // each)
        rollout = sample(
            policy,
            augmentations(batch, here, used),
            each,
            generator=torch.Generator(),
            temperature=heat.repeat_interleave(used),
            capacity_mask=capacity_mask,
            on_step=on_step,
            wrap=wrap,
            seeds=_seeds_of_views(here, used).flatten(),
            distinct_starts=True,
        )
        arcs = rollout.arcs.view(len(batch), used * each, -1)[:, :count]
        chances = rollout.log_probability.view(len(batch), used * each)[:, :count]
        drawn = Rollout(arcs, chances)
        yield split_plans(batch, drawn, choose_directions=True, threads=threads)


def default_temperature(tasks: Tensor) -> Tensor:
    """Give what divides the logits where plans of so many tasks are drawn.

    Below 1 likely arcs become likelier. Small instances have few likely plans, of which
    more heat finds more; in large ones it adds up to mistakes.
    """
    return (1.2 - tasks / 100).clamp(0.5, 0.7)


def augmentations(batch: ArcBatch, seeds: Tensor, views: int) -> ArcBatch:
    """Give views of each instance, one after the other; the first is the instance itself.

    Parameters
    ----------
    batch
        The instances.
    seeds
        Of the instances, on their device, (batch,).
    views
        Of each instance.
    """
    if views == 1:
        return batch
    rows = torch.arange(len(batch), device=seeds.device).repeat_interleave(views)
    axes = num_axes(batch)
    bits = mixed_bits(_seeds_of_views(seeds, views))  # (batch, views)
    flipped = (bits[..., None] >> torch.arange(axes, device=seeds.device)) & 1
    flipped[:, 0] = 0
    return with_signs(batch.select(rows), (1 - 2 * flipped).flatten(0, 1))


def _seeds_of_views(seeds: Tensor, views: int) -> Tensor:
    """Give a seed for each view, (batch, views); the first is that of the instance."""
    return seeds[:, None] + torch.arange(views, device=seeds.device) * _NEXT_VIEW


# Coordinates are summed as whole numbers of such parts of the unit: floating-point sums on
# a GPU depend on its order of work, and equally near routes would change places.
_PARTS = 2**20


# Between what is hashed for one route and the next.
_NEXT_ROUTE = 0x632BE59BD9B4E019


class RouteGroups(NamedTuple):
    """Every route of every plan in one group.

    Parameters
    ----------
    rows
        Whose plan each group is of, (groups,), in rising order.
    numbers
        Of each group among those of its plan, from 0 on, (groups,).
    member
        Which services of that plan are in the group, (groups, positions).
    routes
        Routes of each group, (groups,).
    """

    rows: Tensor
    numbers: Tensor
    member: Tensor
    routes: Tensor


def group_routes(
    batch: ArcBatch, arcs: Tensor, starts_route: Tensor, seeds: Tensor, most_tasks: int
) -> RouteGroups:
    """Put each route that is drawn by chance together with the nearest that are left.

    A group has as many routes as have at most `most_tasks` tasks together, or two that
    have more; the last one what is left. Near are routes whose services are near in the
    mean, by the MDS coordinates.

    Parameters
    ----------
    batch
        The instances.
    arcs
        Services of a plan of each in order, (batch, positions), zeros after the last.
    starts_route
        Whether a route starts with the service, (batch, positions).
    seeds
        Of the instances, on their device, (batch,).
    most_tasks
        Of a group.
    """
    serves = arcs != 0
    route = (starts_route.cumsum(1) - 1).clamp(min=0)  # (batch, positions)
    count = int(route.amax()) + 1
    tasks = serves.new_zeros((len(arcs), count), dtype=torch.int64)
    tasks = tasks.scatter_add(1, route, serves.long())
    apart = _apart(batch, arcs, route, tasks)
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
    every = torch.arange(made, device=arcs.device)
    routes = (group[:, None] == every[:, None]).sum(2)  # (batch, groups)
    rows, numbers = routes.nonzero(as_tuple=True)
    of_service = group.gather(1, route).masked_fill(~serves, -1)
    return RouteGroups(
        rows, numbers, of_service[rows] == numbers[:, None], routes[rows, numbers]
    )


def _apart(batch: ArcBatch, arcs: Tensor, route: Tensor, tasks: Tensor) -> Tensor:
    """Give what grows with the way between middles of routes, (batch, routes, routes)."""
    ends = take_rows(batch.features[..., NUM_PLAIN:], arcs)  # (batch, positions, 2 d)
    axes = ends.shape[2] // 2
    # Of starts and ends together, so twice the coordinates.
    places = ((ends[..., :axes] + ends[..., axes:]) * _PARTS).round().long()
    places = places * (arcs != 0)[..., None]
    middle = places.new_zeros((*tasks.shape, axes))
    middle = middle.scatter_add(1, route[..., None].expand_as(places), places)
    middle = middle.double() / tasks.clamp(min=1)[..., None]
    return (middle[:, :, None] - middle[:, None]).square().sum(-1)


#: Plans that are drawn whole before routes are drawn anew, and tasks of a group. What was
#: tried: docs/training-log.md.
WHOLE = 16

GROUP_TASKS = 40


# Draws between two groupings at least, and groupings about at most, however many are asked.
_ROUND = 4

_ROUNDS = 16


# Seeds differ by these from group to group, and from round to round.
_NEXT_GROUP = 0x5851F42D4C957F2D

_NEXT_ROUND = 0x3C6EF372FE94F82B


def round_size(samples: int) -> int:
    """Say how often routes are drawn anew before there are other groups."""
    return max(_ROUND, samples // _ROUNDS)


def has_one_group(batch: ArcBatch) -> bool:
    """Say whether all instances are so small that to draw them anew is to draw them whole.

    Waits for the device.
    """
    return int(batch.num_tasks.amax()) <= GROUP_TASKS


def neural_lns(
    policy: Policy,
    batch: ArcBatch,
    samples: int,
    seeds: Tensor,
    *,
    temperature: float | None = None,
    threads: int = 1,
    wrap: Wrap | None = None,
) -> Iterator[Plans]:
    """Draw some plans of each instance, then go on with the routes of the best.

    Parameters
    ----------
    policy, batch, seeds, temperature, threads, wrap
        As `draws.sample_plans` takes them.
    samples
        Plans of each instance; up to `WHOLE` of them are drawn whole, and all where there
        is one group.
    """
    whole = samples if has_one_group(batch) else min(samples, WHOLE)
    found = []
    for plans in sample_plans(
        policy,
        batch,
        whole,
        seeds,
        temperature=temperature,
        threads=threads,
        wrap=wrap,
    ):
        found.append(plans)
        yield plans
    kept = best(merge(*found))
    size = round_size(samples)
    for first in range(whole, samples, size):
        seeds = mixed_bits(seeds + _NEXT_ROUND)
        for plans in destroy_and_repair(
            policy,
            batch,
            kept,
            min(size, samples - first),
            seeds,
            temperature=temperature,
            threads=threads,
            wrap=wrap,
        ):
            kept = best(plans)
            yield plans


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
    """Draw the routes of plans anew; give what each plan is after every draw.

    They come in the parts of `draws.sample_plans`. None is dearer than the one before it.
    Plans that break the fleet limit are drawn anew as a whole; the others never get more
    routes where there is a limit.

    Parameters
    ----------
    policy, batch, temperature, threads, on_step, wrap
        As `draws.sample_plans` takes them.
    plans
        One of each instance.
    samples
        How often every route is drawn anew.
    seeds
        Of the instances, for this call alone.
    group_tasks
        Tasks that are drawn together, as `group_routes` takes them.
    own_unit
        Whether lengths and coordinates are those of a group alone: for large instances, of
        which a model knows no such small part.
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
        parts = _seen_alone(parts)
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
        yield _joined(after, groups, small.kept, plans.arcs.shape)
        known = best(after)


def _instances_of(batch: ArcBatch, rows: Tensor, services: Tensor) -> Shrunk:
    """Make an instance of the tasks of each group.

    Parameters
    ----------
    batch
        The instances that the groups are of.
    rows
        Which one, (groups,).
    services
        Those of each group, (groups, positions), zeros between them.
    """
    unserved = torch.zeros_like(batch.real[rows]).scatter(1, services, True)
    unserved |= unserved.gather(1, batch.inverse.long()[rows])
    unserved[:, 0] = False
    longest = int(unserved.sum(1).amax()) + 1
    state = State(
        unserved=unserved[:, None],
        previous=rows.new_zeros((len(rows), 1)),
        remaining=batch.capacity[rows][:, None],
    )
    return shrink(batch, state, whole_vectors(longest), rows)


def _seen_alone(batch: ArcBatch) -> ArcBatch:
    """Give parts of instances their own unit of length, and coordinates around them."""
    pairs = (batch.real[:, :, None] & batch.real[:, None]).float()
    scale = (batch.distance * pairs).sum((1, 2)) / pairs.sum((1, 2))
    features = centred(batch.features, batch.real) * batch.real[..., None]
    # Where all driving within a part is free, the unit stays that of the instance.
    return with_scale(
        replace(batch, features=features), torch.where(scale > 0, scale, batch.scale)
    )


def _joined(
    parts: Plans, groups: RouteGroups, kept: Tensor, shape: tuple[int, ...]
) -> Plans:
    """Put the routes of all groups of an instance one after the other.

    Parameters
    ----------
    parts
        Plans of the groups, (groups, samples, ...).
    groups
        Whose they are.
    kept
        The arcs that a group's arcs are of the instance, (groups, arcs).
    shape
        Of the services of all plans, (batch, 1, positions).
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


# The likeliest arc at each step as decoded, the same through the path optimiser with
# directions, the paper's recipe, the best of four views or of some samples through that
# optimiser, and samples whose routes are then drawn anew.
Decoding = Literal["greedy", "greedy-optimised", "recipe", "views", "sample", "redraw"]


_DRAWING = {"sample": sample_plans, "redraw": neural_lns}


#: Instances decoded at a time, unless told otherwise.
USUAL_BATCH = {"cpu": 64, "cuda": 1024}


class DecodedSet(NamedTuple):
    """What came of the first instances of a data set.

    Parameters
    ----------
    costs
        Total cost of each plan, (instances,).
    plans
        Some of them by the position of the instance, as `solution.plan.from_plan` takes
        them.
    seconds
        For all of them: preparation, decoding and path optimiser.
    """

    costs: NDArray[np.int64]
    plans: dict[int, FlatPlan]
    seconds: float


def decode_dataset(
    loaded: LoadedModel,
    dataset: Dataset,
    count: int,
    decoding: Decoding,
    *,
    first: int = 0,
    samples: int = 1,
    temperature: float | None = None,
    seed: int = 0,
    keep: Collection[int] = (),
    threads: int = 1,
    batch_size: int | None = None,
    warm_up: bool = True,
    progress: Callable[[int], None] | None = None,
) -> DecodedSet:
    """Make a plan of each of `count` instances, from number `first` on.

    Parameters
    ----------
    loaded
        The model, on its device.
    dataset
        The instances.
    count
        How many to take.
    decoding
        How.
    first
        Position of the first one.
    samples, temperature, seed
        Of "sample" and "redraw": plans drawn of each instance, what divides the logits
        (None for what is usual), and the seed, of which the plans of instance i are drawn
        by the child number i.
    keep
        Positions of the instances whose plans are wanted.
    threads
        For torch on the CPU, and the path optimiser.
    batch_size
        Instances at a time; by default what suits the device.
    warm_up
        Whether, on a GPU, the first batch is decoded once before the clock starts:
        libraries choose their kernels then.
    progress
        Told after each batch how many instances are done.

    Raises
    ------
    OptionError
        If an argument is wrong or the device has too little memory.
    UnsolvableError
        If an instance has no plan.
    """
    if decoding not in get_args(Decoding):
        raise OptionError(
            f"expected decoding to be one of {', '.join(get_args(Decoding))}, "
            f"got {decoding!r}"
        )
    if not (0 <= first < first + count <= len(dataset)):
        raise OptionError(
            f"expected a count from 1 to the {len(dataset)} instances of {dataset.path}, "
            f"got {count}" + (f" from number {first} on" if first else "")
        )
    end = first + count
    size = USUAL_BATCH[loaded.device.type] if batch_size is None else batch_size
    if size < 1:
        raise OptionError(f"expected batches of at least 1 instance, got {size}")

    # Half of a child seed, since torch has no unsigned numbers.
    drawn = range(first, end) if decoding in _DRAWING else range(0)
    seeds = torch.tensor([child_seed(seed, i) >> 1 for i in drawn], dtype=torch.int64)

    def decode(start: int) -> Plans:
        last = min(start + size, end)
        batch = batch_from_dataset(
            dataset,
            np.arange(start, last),
            device=loaded.device,
            mds_dimensions=loaded.model.config.mds_dimensions,
        )
        part = seeds[start - first : last - first]
        return best(_plans(loaded, batch, decoding, samples, temperature, part, threads))

    costs: list[NDArray[np.int64]] = []
    plans: dict[int, FlatPlan] = {}
    seconds = 0.0

    def too_large() -> str:
        return (
            f"expected batches of {size} instances to fit in the device's memory, found "
            "too little: take smaller batches"
        )

    with torch_threads(threads), torch.inference_mode(), expected_to_fit(too_large):
        if loaded.device.type == "cuda" and warm_up:
            _release_memory(loaded.device)
            decode(first)
        for start in range(first, end, size):
            _release_memory(loaded.device)
            started = time.perf_counter()
            found = decode(start)  # on the host: the device has finished
            seconds += time.perf_counter() - started
            costs.append(_all_planned(found, dataset, start))
            last = start + len(found.costs)
            plans |= {i: flat_plan(found, i - start) for i in keep if start <= i < last}
            if progress is not None:
                progress(last - first)
    return DecodedSet(np.concatenate(costs), plans, seconds)


def device_name(device: str | torch.device) -> str:
    """Name a device for records: the GPU's type, or "cpu"."""
    place = choose_device(device) if isinstance(device, str) else device
    if place.type == "cuda":
        return torch.cuda.get_device_name(place)
    return place.type


def _plans(
    loaded: LoadedModel,
    batch: ArcBatch,
    decoding: Decoding,
    samples: int,
    temperature: float | None,
    seeds: Tensor,
    threads: int,
) -> Plans:
    wrap = fastest_wrap(loaded.device)
    if decoding == "recipe":
        return paper_recipe(loaded.model, batch, threads=threads, wrap=wrap)
    if decoding == "views":
        return augmented_greedy(loaded.model, batch, threads=threads, wrap=wrap)
    if decoding in _DRAWING:
        drawn = _DRAWING[decoding](
            loaded.model,
            batch,
            samples,
            seeds,
            temperature=temperature,
            threads=threads,
            wrap=wrap,
        )
        found = best(next(drawn))
        for plans in drawn:  # never all at once
            found = best(merge(found, plans))
        return found
    rollout = greedy(loaded.model, batch, wrap=wrap)
    if decoding == "greedy":
        return as_decoded(batch, rollout)
    return split_plans(batch, rollout, choose_directions=True, threads=threads)


def _all_planned(plans: Plans, dataset: Dataset, first: int) -> NDArray[np.int64]:
    costs = plans.costs[:, 0]
    missing = np.flatnonzero(costs == NO_PLAN)
    if len(missing):
        raise UnsolvableError(
            f"expected a plan of every instance of {dataset.path}, found none of "
            f"instance {first + int(missing[0])}"
        )
    return costs


def _release_memory(device: torch.device) -> None:
    # What torch keeps of earlier batches looks taken when the next one's chunks are sized.
    if device.type == "cuda":
        torch.cuda.empty_cache()


# Plans by windows before routes are drawn anew: few, since each takes long.
_WHOLE_BY_WINDOWS = 4


#: Beyond so many tasks the model sees a window of the nearest ones.
MOST_TASKS_AT_ONCE = 300


def stands_alone(network: Network) -> bool:
    """Say whether an instance shares no batch: it is large, or has nothing to serve."""
    return network.num_tasks > MOST_TASKS_AT_ONCE or network.num_tasks == 0


def has_short_routes(plans: Plans) -> bool:
    """Say whether any two routes of a plan have no more tasks than a model sees at once."""
    if (plans.costs == NO_PLAN).any():
        return False
    route = plans.starts_route[:, 0].cumsum(1) * (plans.arcs[:, 0] != 0)
    longest = (np.sort(np.bincount(one)[1:])[-2:].sum() for one in route)
    return all(tasks <= MOST_TASKS_AT_ONCE for tasks in longest)


def one_plan(plans: Plans, instance: int, copy: int) -> tuple[IntArray, IntArray]:
    """Give one plan of one instance as arcs and route starts."""
    return flat_plan(plans.at((slice(instance, instance + 1), slice(copy, copy + 1))), 0)


#: Of plans, where nothing limits them.
ANY_NUMBER = 2**62


class Proposer:
    """Makes plans of some instances, as often as it is asked.

    Parameters
    ----------
    model
        Its weights are on `device`.
    networks
        The instances; one that `stands_alone` must be the only one.
    device
        Where to decode.
    threads
        For the path optimiser.
    generator
        Of the draws.
    """

    def __init__(
        self,
        model: Model,
        networks: Sequence[Network],
        device: torch.device,
        *,
        threads: int,
        generator: torch.Generator,
    ) -> None:
        self.model = model
        self.threads = threads
        self.generator = generator
        self.wrap = fastest_wrap(device)
        self.windowed = any(stands_alone(network) for network in networks)
        self.batch = batch_from_networks(
            networks,
            device=device,
            mds_dimensions=model.config.mds_dimensions,
            threads=threads,
        )
        # Plans of each instance that `sample` has drawn whole, and how many it may.
        self._whole = 0
        self._most_whole: int | None = None
        arcs = np.zeros((len(networks), 1, int(self.batch.num_tasks.amax())), np.int32)
        costs = np.full((len(networks), 1), NO_PLAN, dtype=np.int64)
        self._cheapest = Plans(arcs, arcs.astype(np.bool_), costs)

    def greedy(self, on_step: OnStep) -> Plans:
        """Give one plan of each instance: the likeliest arc at each step."""
        rollout = self._greedily(on_step)
        plans = split_plans(
            self.batch, rollout, choose_directions=True, threads=self.threads
        )
        self._keep(range(len(self.batch)), plans)
        return plans

    def decoded(self, on_step: OnStep) -> Plans:
        """Give the plans of `greedy` without the path optimiser."""
        return as_decoded(self.batch, self._greedily(on_step))

    def of_views(self, on_step: OnStep) -> Plans:
        """Give one plan of each instance: the cheapest of four views, or of two orders."""
        if not self.windowed:
            return augmented_greedy(
                self.model,
                self.batch,
                threads=self.threads,
                on_step=on_step,
                wrap=self.wrap,
            )
        both = [
            split_plans(
                self.batch,
                self._windows(1, _likeliest, on_step, capacity_mask=capacity_mask),
                choose_directions=True,
                threads=self.threads,
            )
            for capacity_mask in (True, False)
        ]
        return best(merge(*both))

    def sample(self, rows: Sequence[int], samples: int, on_step: OnStep) -> Iterator[Plans]:
        """Draw some plans of each of some instances; give them as they are ready.

        The first are drawn whole; later ones have routes of the best so far drawn anew.
        """
        for plans in self._draws(rows, samples, on_step):
            self._keep(rows, plans)
            yield plans

    def _draws(self, rows: Sequence[int], samples: int, on_step: OnStep) -> Iterator[Plans]:
        if self._most_whole is None:
            self._most_whole = self._find_most_whole()
        whole = min(samples, self._most_whole - self._whole)
        if whole:
            yield from self._whole_draws(rows, whole, on_step)
            self._whole += whole
        size = round_size(samples)
        for first in range(whole, samples, size):
            yield from destroy_and_repair(
                self.model,
                self._some(rows),
                self._cheapest.at(list(rows)),
                min(size, samples - first),
                draw_seeds(len(rows), self.generator),
                own_unit=self.windowed,
                threads=self.threads,
                on_step=on_step,
                wrap=self.wrap,
            )

    def _find_most_whole(self) -> int:
        if self.windowed:
            return _WHOLE_BY_WINDOWS if has_short_routes(self._cheapest) else ANY_NUMBER
        return ANY_NUMBER if has_one_group(self.batch) else WHOLE

    def _whole_draws(
        self, rows: Sequence[int], samples: int, on_step: OnStep
    ) -> Iterator[Plans]:
        if self.windowed:
            rollout = self._windows(samples, self._drawing(), on_step)
            yield split_plans(
                self.batch, rollout, choose_directions=True, threads=self.threads
            )
            return
        yield from sample_plans(
            self.model,
            self._some(rows),
            samples,
            draw_seeds(len(rows), self.generator),
            threads=self.threads,
            on_step=on_step,
            wrap=self.wrap,
        )

    def _some(self, rows: Sequence[int]) -> ArcBatch:
        if len(rows) == len(self.batch):
            return self.batch
        return self.batch.select(torch.tensor(rows, device=self.batch.real.device))

    def _keep(self, rows: Sequence[int], plans: Plans) -> None:
        """Remember the cheapest plan of each instance, for its routes to be drawn anew."""
        # New ones first: of those that are no plans, any that serves all.
        here = list(rows)
        plans = padded(plans, self._cheapest.arcs.shape[2])
        better = best(merge(plans, self._cheapest.at(here)))
        self._cheapest.arcs[here] = better.arcs
        self._cheapest.starts_route[here] = better.starts_route
        self._cheapest.costs[here] = better.costs

    def _greedily(self, on_step: OnStep) -> Rollout:
        if self.windowed:
            return self._windows(1, _likeliest, on_step)
        return greedy(self.model, self.batch, on_step=on_step, wrap=self.wrap)

    def _windows(
        self, samples: int, choose: Choose, on_step: OnStep, *, capacity_mask: bool = True
    ) -> Rollout:
        def choose_and_tell(logits: Tensor) -> Tensor:
            on_step(0, 0)
            return choose(logits)

        arcs = windowed_rollout(
            self.model,
            self.batch,
            samples=samples,
            choose=choose_and_tell,
            capacity_mask=capacity_mask,
        )
        return Rollout(arcs, torch.zeros(arcs.shape[:2], device=arcs.device))

    def _drawing(self) -> Choose:
        """Give what draws one plan after another, step by step, as `sample` does."""
        device = self.batch.real.device
        seeds = draw_seeds(1, self.generator).to(device)
        steps = torch.zeros((), dtype=torch.int64, device=device)
        temperature = default_temperature(self.batch.num_tasks)[:, None, None]

        def choose(logits: Tensor) -> Tensor:
            _, samples, arcs = logits.shape
            noise = gumbel_noise(seeds, samples, steps, arcs)
            steps.add_(1)
            return (logits.float() / temperature + noise).argmax(-1)

        return choose


def _likeliest(logits: Tensor) -> Tensor:
    return logits.argmax(-1)
