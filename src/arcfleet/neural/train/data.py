"""Data sets and their labelled plans as tensors on the device of training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

from arcfleet.datasets.dataset import Dataset
from arcfleet.datasets.labels import MADE_BY, labels_path, open_labels
from arcfleet.errors import FileError, OptionError
from arcfleet.neural.batch import batch_from_arrays

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from arcfleet.datasets.labels import Labels
    from arcfleet.neural.batch import ArcBatch


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class InstanceSet:
    """Instances of one scale."""

    name: str  # of the file, without its ending
    batch: ArcBatch  # all instances, on one device
    full: bool  # no arc is padding
    facts: dict[str, object]  # file, checksum and number of instances, for the records

    def __len__(self) -> int:
        """Return the number of instances."""
        return len(self.batch)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LabelledSet(InstanceSet):
    """Instances of one scale with their plans."""

    plans: LabelledPlans


def open_instances(
    path: Path | str, device: torch.device | str, *, mds_dimensions: int = 8
) -> InstanceSet:
    """Load a data set and prepare it for the model; labels are not read."""
    dataset = Dataset.open(Path(path))
    return InstanceSet(**_prepared(dataset, len(dataset), device, mds_dimensions))


def open_labelled(
    path: Path | str,
    device: torch.device | str,
    *,
    mds_dimensions: int = 8,
    most: int | None = None,
) -> LabelledSet:
    """Load a data set and the labels beside it, `most` of them, and prepare them."""
    path = Path(path)
    dataset = Dataset.open(path)
    beside = labels_path(path)
    if not beside.exists():
        raise FileError(
            path,
            f"expected its labels in {beside}, found no such file: make them with "
            f"`{MADE_BY} {path} --iterations N`",
        )
    labels = open_labels(beside, dataset)
    count = len(dataset) if most is None else min(most, len(dataset))
    prepared = _prepared(dataset, count, device, mds_dimensions)
    prepared["facts"]["labels_sha256"] = labels.checksum
    plans = plans_from_labels(labels, np.arange(count), prepared["batch"])
    return LabelledSet(plans=plans, **prepared)


def require_distinct(paths: Sequence[Path | str], what: str) -> None:
    """Raise OptionError where there is no file, or two are the same or have one name."""
    if not paths:
        raise OptionError(f"expected at least one data set {what}, got none")
    try:
        resolved = [Path(path).resolve() for path in paths]
    except (OSError, ValueError) as error:  # a NUL byte, or a name that is too long
        raise OptionError(
            f"expected names of files as data sets {what}, got one that is none ({error})"
        ) from None
    names = [path.name for path in resolved]
    for path, name in zip(resolved, names, strict=True):
        if resolved.count(path) > 1:
            raise OptionError(f"expected each data set {what} once, got {path} twice")
        if names.count(name) > 1:  # figures are told apart by the names
            raise OptionError(
                f"expected data sets {what} with different names, got {name} from two "
                "folders: rename one"
            )


def _prepared(
    dataset: Dataset, count: int, device: torch.device | str, mds_dimensions: int
) -> dict[str, Any]:
    """Return the members of an `InstanceSet` of the first instances of a data set."""
    if count == 0:
        raise FileError(dataset.path, "expected instances to learn from, found none")
    batch = batch_from_arrays(
        dataset.padded(np.arange(count)), device=device, mds_dimensions=mds_dimensions
    )
    file = Path(dataset.path).name
    facts = {"file": file, "sha256": dataset.checksum, "instances": count}
    name = file.removesuffix(".npz")
    return {"name": name, "batch": batch, "full": batch.is_full, "facts": facts}


#: Plans checked at once: their costs are gathered from matrices of this many instances.
_CHUNK = 2048


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LabelledPlans:
    """One plan for each instance, padded."""

    arcs: Tensor  # services of each route, (instances, routes, longest), 0 after its end
    reversible: Tensor  # routes that cost the same driven backwards, (instances, routes)
    cost: Tensor  # total cost of each plan, (instances,)
    most_steps: int  # largest number of services and returns to the depot of a plan

    def __len__(self) -> int:
        """Return the number of plans."""
        return len(self.cost)

    def select(self, rows: Tensor) -> LabelledPlans:
        """Return some of the plans, in the order of `rows`."""
        arcs, reversible, cost = self.arcs[rows], self.reversible[rows], self.cost[rows]
        return replace(self, arcs=arcs, reversible=reversible, cost=cost)


def plans_from_labels(
    labels: Labels, indices: NDArray[np.int64], batch: ArcBatch
) -> LabelledPlans:
    """Copy labelled plans to the device of `batch`; raise FileError where one is none."""
    padded = _padded_arcs(labels)[indices]  # (instances, routes, longest)
    lengths = (padded > 0).sum(2)
    used = max(1, int((lengths > 0).sum(1).max(initial=0)))
    longest = max(1, int(lengths.max(initial=0)))
    device = batch.capacity.device
    arcs = torch.from_numpy(np.ascontiguousarray(padded[:, :used, :longest])).to(device)
    cost = torch.from_numpy(labels.cost[indices].astype(np.int64)).to(device)
    reversible = []
    for first in range(0, len(indices), _CHUNK):
        rows = torch.arange(first, min(first + _CHUNK, len(indices)), device=device)
        some = batch.select(rows)
        wrong = _is_no_plan(some, arcs[rows]) | (plan_costs(some, arcs[rows]) != cost[rows])
        if wrong.any():
            raise _unfit(labels, int(indices[first + int(wrong.int().argmax())]))
        reversible.append(reversible_routes(some, arcs[rows]))
    return LabelledPlans(
        arcs=arcs,
        reversible=torch.cat(reversible),
        cost=cost,
        most_steps=int((lengths.sum(1) + (lengths > 0).sum(1)).max(initial=1)),
    )


def of_arcs(values: Tensor, arcs: Tensor) -> Tensor:
    """Gather values (batch, all arcs) at arcs of shape (batch, routes, places)."""
    return values.gather(1, arcs.flatten(1).long()).view(arcs.shape)


def back_inverse(batch: ArcBatch, arcs: Tensor) -> Tensor:
    """Return the inverse arc of each service, 0 where there is none or no service."""
    inverses = of_arcs(batch.inverse, arcs)
    return torch.where(inverses == arcs, 0, inverses)


def backwards(batch: ArcBatch, arcs: Tensor) -> Tensor:
    """Reverse every route, each service by its inverse arc where there is one."""
    length = (arcs > 0).sum(-1, keepdim=True)
    place = length - 1 - torch.arange(arcs.shape[-1], device=arcs.device)
    flipped = arcs.gather(-1, place.clamp(min=0))
    inverses = of_arcs(batch.inverse, flipped).to(arcs.dtype)
    return torch.where(place >= 0, inverses, 0)


def reversible_routes(batch: ArcBatch, arcs: Tensor) -> Tensor:
    """Return which routes cost the same in reverse, (batch, routes).

    On one-way streets the way back may be longer although all services can be reversed.
    """
    invertible = ((arcs == 0) | (back_inverse(batch, arcs) > 0)).all(2)
    back = backwards(batch, arcs)
    return invertible & (route_costs(batch, back) == route_costs(batch, arcs))


def route_costs(batch: ArcBatch, arcs: Tensor) -> Tensor:
    """Compute the cost of each route without its fixed cost, (batch, routes)."""
    # Padding stands at the depot, so the way home is where it begins; a longest route
    # has none, hence one more place.
    home = functional.pad(arcs, (0, 1)).long()  # (batch, routes, longest + 1)
    services = of_arcs(batch.service_cost, arcs).sum(2, dtype=torch.int64)
    return batch.deadheads(home) + services


def plan_costs(batch: ArcBatch, arcs: Tensor) -> Tensor:
    """Compute the total cost of each plan, (batch,)."""
    num_routes = (arcs > 0).any(2).sum(1)
    return route_costs(batch, arcs).sum(1) + num_routes * batch.route_cost


def _is_no_plan(batch: ArcBatch, arcs: Tensor) -> Tensor:
    """Return where a task is not served exactly once or a load too large, (batch,)."""
    every = arcs.flatten(1).long()
    served = torch.zeros(batch.inverse.shape, dtype=torch.int64, device=arcs.device)
    served.scatter_add_(1, every, torch.ones_like(every))  # (batch, arcs)
    number = torch.arange(batch.num_arcs, device=arcs.device)
    other = torch.where(batch.inverse == number, 0, served.gather(1, batch.inverse))
    wrong = ((served + other != 1) & batch.real)[:, 1:].any(1)
    loads = of_arcs(batch.demand, arcs).sum(2)
    return wrong | (loads > batch.capacity[:, None]).any(1)


def _padded_arcs(labels: Labels) -> NDArray[np.int32]:
    """Return the services as arcs of `Network`, (instances, routes, longest)."""
    dataset = labels.dataset
    num_routes, route_length, services = (
        labels.arrays[name].astype(np.int64)
        for name in ("num_routes", "route_length", "services")
    )
    route_instance = np.repeat(np.arange(len(labels)), num_routes)
    service_route = np.repeat(np.arange(len(route_length)), route_length)
    instance = route_instance[service_route]
    # Arcs of each link, and of all links before it.
    directions = np.where(dataset.arrays["one_way"], 1, 2)
    directions = np.where(dataset.arrays["demand"] > 0, directions, 0)
    before = np.concatenate([[0], np.cumsum(directions)])
    starts = dataset.link_starts
    link = starts[instance] + services // 2
    known = link < starts[instance + 1]
    link = np.where(known, link, 0)
    known &= services % 2 < directions[link]
    if not known.all():
        raise _unfit(labels, int(instance[np.argmin(known)]))
    arcs = 1 + before[link] - before[starts[instance]] + services % 2
    route = service_route - _starts(num_routes)[instance]
    place = np.arange(len(services)) - _starts(route_length)[service_route]
    shape = (len(labels), num_routes.max(initial=1), route_length.max(initial=1))
    padded = np.zeros(shape, dtype=np.int32)
    padded[instance, route, place] = arcs
    return padded


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.cumsum(counts) - counts


def _unfit(labels: Labels, index: int) -> FileError:
    return FileError(
        labels.path,
        f"expected a plan of the stated cost for instance {index}, found another: "
        f"make it again with `{MADE_BY}`",
    )
