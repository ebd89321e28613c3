"""Plans of a data set by a decoding strategy: what the results tables measure."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from arcfleet.errors import OptionError, UnsolvableError
from arcfleet.neural.batch import batch_from_arrays
from arcfleet.neural.decoding_run import DecodingRun, hashed_seeds
from arcfleet.neural.device import choose_device, expected_to_fit, torch_threads
from arcfleet.neural.plans import NO_PLAN, flat_plan
from arcfleet.neural.strategies import find_strategy
from arcfleet.workers import child_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from numpy.typing import NDArray

    from arcfleet.datasets import Dataset
    from arcfleet.neural.plans import Plans
    from arcfleet.neural.solver import LoadedModel
    from arcfleet.solution.plan import IntArray

    FlatPlan = tuple[IntArray, IntArray]

#: Default number of instances decoded at a time, by type of device.
DEFAULT_BATCH = {"cpu": 64, "cuda": 1024}


class DecodedSet(NamedTuple):
    """Plans of some instances of a data set.

    Parameters
    ----------
    costs
        Total cost of each plan, (instances,).
    plans
        Plans that were asked for, by the position of the instance, in the form of
        `solution.plan.from_plan`.
    seconds
        Time of all of them: features, decoding and Split.
    """

    costs: NDArray[np.int64]
    plans: dict[int, FlatPlan]
    seconds: float


def decode_dataset(
    loaded: LoadedModel,
    dataset: Dataset,
    count: int,
    strategy: str,
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
    """Decode a plan of each of `count` instances, from position `first` on.

    Parameters
    ----------
    loaded
        Model on its device.
    dataset
        Data set.
    count
        Number of instances.
    strategy
        Name of the decoding strategy, in `STRATEGIES`.
    first
        Position of the first instance.
    samples
        Plans of each instance, where the strategy samples.
    temperature
        Sampling temperature; None for the default.
    seed
        Seed of the random number generator; instance i has its child number i.
    keep
        Positions of the instances whose plans are returned.
    threads
        Threads of torch on the CPU and of Split.
    batch_size
        Instances at a time; default by device.
    warm_up
        Whether, on a GPU, the first batch is decoded once before the time is taken, while
        libraries choose their kernels.
    progress
        Callback with the number of instances done, after each batch.

    Raises
    ------
    OptionError
        If an argument is wrong or the device has too little memory.
    UnsolvableError
        If an instance has no plan.
    """
    chosen = find_strategy(strategy)
    if not (0 <= first < first + count <= len(dataset)):
        raise OptionError(
            f"expected a count from 1 to the {len(dataset)} instances of {dataset.path}, "
            f"got {count}" + (f" from number {first} on" if first else "")
        )
    end = first + count
    size = DEFAULT_BATCH[loaded.device.type] if batch_size is None else batch_size
    if size < 1:
        raise OptionError(f"expected batches of at least 1 instance, got {size}")

    def decode(start: int) -> Plans:
        rows = range(start, min(start + size, end))
        batch = batch_from_arrays(
            dataset.padded(np.array(rows)),
            device=loaded.device,
            mds_dimensions=loaded.model.config.mds_dimensions,
        )
        # Half of a child seed, since torch has no unsigned numbers.
        seeds = torch.tensor([child_seed(seed, i) >> 1 for i in rows], dtype=torch.int64)
        run = DecodingRun(
            loaded.model,
            batch,
            next_seeds=hashed_seeds(seeds),
            temperature=temperature,
            threads=threads,
        )
        return chosen.best_plans(run, samples)

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
    """Return the name of a device for records: the type of the GPU, or "cpu"."""
    place = choose_device(device) if isinstance(device, str) else device
    if place.type == "cuda":
        return torch.cuda.get_device_name(place)
    return place.type


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
