"""Small labelled data sets for tests of training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arcfleet.datasets import label_dataset, make_dataset
from tests.towns import town, write_csv_map

if TYPE_CHECKING:
    from pathlib import Path


def labelled_file(
    folder: Path,
    name: str,
    task_set: str = "task20",
    *,
    count: int = 12,
    one_way: float = 0.0,
    seed: int = 0,
    iterations: int = 300,
) -> Path:
    """Make a data set with its labels in `folder`, and give its path."""
    folder.mkdir(exist_ok=True)
    streets = write_csv_map(town(3, one_way=one_way), folder / f"{name}-town")
    path = folder / f"{name}.npz"
    dataset = make_dataset(
        path, task_set, count=count, maps=[streets], seed=seed, mixed=one_way > 0
    )
    label_dataset(dataset, iterations=iterations)
    return path
