"""Test sets: instances, and labels of all or of the first of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from arcfleet.datasets import Dataset, label_dataset, make_dataset, open_labels
from arcfleet.datasets.dataset import PER_INSTANCE, PER_LINK, PER_NODE
from arcfleet.datasets.labels import MADE_BY, labels_path
from arcfleet.errors import FileError, OptionError
from arcfleet.paper.report import make_folder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from arcfleet.datasets import Labels
    from arcfleet.streets.street_arrays import Split


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TestSet:
    """A data set to measure on, with labels."""

    __test__ = False  # no test, whatever pytest thinks of the name

    name: str  # name of the file, without its ending
    dataset: Dataset  # instances
    # Reference plans of the first of them, or of all; None where there are none.
    labels: Labels | None

    @property
    def scale(self) -> str:
        """Task set, as in task20."""
        return str(self.dataset.facts.get("task_set", self.name))

    @property
    def place(self) -> str:
        """Maps that it was cut from."""
        maps = self.dataset.facts.get("maps") or ["synthetic"]
        if all(str(name).startswith("synthetic") for name in maps):
            return "synthetic"
        return ", ".join(map(str, maps))

    @property
    def facts(self) -> dict[str, Any]:
        """What a line of costs states of it."""
        return {
            "data_sha256": self.dataset.checksum,
            "set_name": self.name,
            "scale": self.scale,
            "place": self.place,
        }


def open_test_sets(paths: Sequence[Path], labelled: Sequence[Path] = ()) -> list[TestSet]:
    """Open test sets, and the labels beside them where there are any."""
    names = [path.name.removesuffix(".npz") for path in paths]
    for name in names:
        if names.count(name) > 1:  # the columns of the table are told apart by them
            raise OptionError(
                f"expected test sets with different names, got {name!r} twice: rename one"
            )
    if not paths:
        raise OptionError("expected at least one test set, got none: name one, or --quick")
    datasets = [Dataset.open(path) for path in paths]
    if not all(map(len, datasets)):
        raise OptionError("expected test sets of at least one instance, got an empty one")
    found: dict[str, Labels] = {}
    for path, dataset in zip(paths, datasets, strict=True):
        if labels_path(path).is_file():
            found[dataset.checksum] = open_labels(labels_path(path), dataset)
    for path in labelled:
        beginning = Dataset.open(path)
        whole = [dataset for dataset in datasets if _begins(dataset, beginning)]
        if not whole:
            raise FileError(
                path,
                "expected the beginning of a test set, found other instances: make it by "
                "the same command with a smaller count",
            )
        labels = open_labels(labels_path(path), beginning)
        for dataset in whole:
            found.setdefault(dataset.checksum, labels)
    return [
        TestSet(name=name, dataset=dataset, labels=found.get(dataset.checksum))
        for name, dataset in zip(names, datasets, strict=True)
    ]


def _begins(whole: Dataset, beginning: Dataset) -> bool:
    """Whether the first instances of a data set are those of another."""
    count = len(beginning)
    if count > len(whole) or whole.capacity != beginning.capacity:
        return False
    nodes, links = beginning.node_starts[-1], beginning.link_starts[-1]
    return all(
        np.array_equal(whole.arrays[name][:length], beginning.arrays[name])
        for names, length in ((PER_INSTANCE, count), (PER_NODE, nodes), (PER_LINK, links))
        for name in names
    )


def refuse_beside_quick(**inputs: Sequence[object]) -> None:
    """Raise OptionError if inputs, by their names, were given to a quick run."""
    for name, given in inputs.items():
        if given:
            raise OptionError(
                f"expected no {name} beside --quick, which makes its own, got "
                f"{' '.join(map(str, given))}: leave out one of the two"
            )


def tiny_set(folder: Path, split: Split = "test") -> Path:
    """Make a labelled set of 4 instances of synthetic streets, for quick runs."""
    make_folder(folder)
    path = folder / f"task20-{split}.npz"
    label_dataset(make_dataset(path, "task20", count=4, split=split), iterations=300)
    return path


def require_labels(test_sets: Sequence[TestSet]) -> None:
    """Raise FileError where a test set has no labels, before anything is measured."""
    for test_set in test_sets:
        if test_set.labels is None:
            path = test_set.dataset.path
            raise FileError(
                path,
                "expected labels to compare with, found none: make them with "
                f"`{MADE_BY} {path} --iterations N`, or give a labelled beginning of it "
                "by --labelled",
            )
