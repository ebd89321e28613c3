"""Plans of the instances of a data set, decoded in large batches and timed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
import torch

from arcfleet.errors import OptionError, UnsolvableError
from arcfleet.neural.cuda_graph import fastest_wrap
from arcfleet.neural.decode import greedy
from arcfleet.neural.device import choose_device, torch_threads
from arcfleet.neural.draws import draw_parts, likeliest_of_views
from arcfleet.neural.features import batch_from_dataset
from arcfleet.neural.out_of_memory import expected_to_fit
from arcfleet.neural.plans import (
    NO_PLAN,
    Plans,
    as_decoded,
    best,
    flat_plan,
    merge,
    optimise,
    paper_recipe,
)
from arcfleet.neural.redraw import draw_and_redraw
from arcfleet.workers import child_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from numpy.typing import NDArray
    from torch import Tensor

    from arcfleet.datasets import Dataset
    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.solver import LoadedModel
    from arcfleet.solution.plan import IntArray

    FlatPlan = tuple[IntArray, IntArray]

# The likeliest arc at each step as decoded, the same through the path optimiser with
# directions, the paper's recipe, the best of four views or of some samples through that
# optimiser, and samples whose routes are then drawn anew.
Decoding = Literal["greedy", "greedy-optimised", "recipe", "views", "sample", "redraw"]

_DRAWING = {"sample": draw_parts, "redraw": draw_and_redraw}

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
        return likeliest_of_views(loaded.model, batch, threads=threads, wrap=wrap)
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
    return optimise(batch, rollout, choose_directions=True, threads=threads)


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
