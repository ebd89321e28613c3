"""A labelled data set on a device: instances ready for the model, and a plan of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from arcfleet.datasets.dataset import Dataset
from arcfleet.datasets.labels import MADE_BY, labels_path, open_labels
from arcfleet.errors import FileError, OptionError
from arcfleet.neural.features import batch_from_dataset
from arcfleet.neural.labelled_plans import plans_from_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from arcfleet.instance.instance import Instance
    from arcfleet.neural.arc_batch import ArcBatch
    from arcfleet.neural.labelled_plans import LabelledPlans
    from arcfleet.solution.solution import Solution


class Example(NamedTuple):
    """An instance as it was before it became tensors, and its label."""

    instance: Instance
    label: Solution


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class InstanceSet:
    """Instances of one scale.

    Parameters
    ----------
    name
        Of the file, without its ending.
    batch
        All instances, on one device.
    full
        Whether no arc is padding.
    facts
        What was read, for the records of a run.
    """

    name: str
    batch: ArcBatch
    full: bool
    facts: dict[str, object]

    def __len__(self) -> int:
        """Give the number of instances."""
        return len(self.batch)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LabelledSet(InstanceSet):
    """Instances of one scale with their plans.

    Parameters
    ----------
    plans
        Of all instances, on their device.
    examples
        The first few instances, to be drawn.
    """

    plans: LabelledPlans
    examples: tuple[Example, ...] = ()


def open_instances(
    path: Path | str, device: torch.device | str, *, mds_dimensions: int = 8
) -> InstanceSet:
    """Read a data set and prepare it for the model; labels are not looked at.

    Parameters
    ----------
    path, device, mds_dimensions
        As those of `open_labelled`.

    Raises
    ------
    FileError
        If the file cannot be read, or is empty.
    """
    path = Path(path)
    dataset = Dataset.open(path)
    batch = _prepared(dataset, len(dataset), device, mds_dimensions)
    return InstanceSet(
        name=path.name.removesuffix(".npz"),
        batch=batch,
        full=batch.is_full,
        facts={
            "file": path.name,
            "sha256": dataset.checksum,
            "instances": len(dataset),
        },
    )


def open_labelled(
    path: Path | str,
    device: torch.device | str,
    *,
    mds_dimensions: int = 8,
    most: int | None = None,
    examples: int = 0,
) -> LabelledSet:
    """Read a data set and the labels beside it, and prepare them for the model.

    Parameters
    ----------
    path
        The data set; its labels are in `.labels.npz` for its `.npz`.
    device
        Where all of it is kept.
    mds_dimensions
        Coordinates of a node, as the model's.
    most
        Take no more than the first so many instances.
    examples
        Of how many of them to keep the instance itself.

    Raises
    ------
    FileError
        If a file cannot be read or the labels do not fit.
    """
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
    batch = _prepared(dataset, count, device, mds_dimensions)
    return LabelledSet(
        name=path.name.removesuffix(".npz"),
        batch=batch,
        plans=plans_from_labels(labels, np.arange(count), batch),
        full=batch.is_full,
        examples=tuple(
            Example(dataset[row], labels[row]) for row in range(min(examples, count))
        ),
        facts={
            "file": path.name,
            "sha256": dataset.checksum,
            "labels_sha256": labels.checksum,
            "instances": count,
        },
    )


def require_distinct(paths: Sequence[Path | str], what: str) -> None:
    """Raise OptionError where there is no file, or two are the same or have one name."""
    if not paths:
        raise OptionError(f"expected at least one data set {what}, got none")
    resolved = [Path(path).resolve() for path in paths]
    for path in resolved:
        if resolved.count(path) > 1:
            raise OptionError(f"expected each data set {what} once, got {path} twice")
    names = [path.name for path in resolved]
    for name in names:
        if names.count(name) > 1:  # figures are told apart by the names
            raise OptionError(
                f"expected data sets {what} with different names, got {name} from two "
                "folders: rename one"
            )


def _prepared(
    dataset: Dataset, count: int, device: torch.device | str, mds_dimensions: int
) -> ArcBatch:
    if count == 0:
        raise FileError(dataset.path, "expected instances to learn from, found none")
    return batch_from_dataset(
        dataset, np.arange(count), device=device, mds_dimensions=mds_dimensions
    )
