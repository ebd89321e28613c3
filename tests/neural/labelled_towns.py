"""Small labelled data sets for tests of training."""

from pathlib import Path
from typing import Any

from arcfleet.datasets import Dataset, label_dataset, make_dataset
from arcfleet.datasets.dataset import pieces_to_arrays, write_dataset
from tests.towns import town, write_csv_map


def labelled_file(
    folder: Path,
    name: str,
    task_set: str = "task20",
    *,
    count: int = 12,
    one_way: float = 0.0,
    seed: int = 0,
    iterations: int = 300,
    turn_rules: bool = False,
) -> Path:
    """Make a data set with its labels in `folder`, and return its path."""
    folder.mkdir(exist_ok=True)
    streets = write_csv_map(town(3, one_way=one_way), folder / f"{name}-town")
    path = folder / f"{name}.npz"
    options: Any = {"count": count, "maps": [streets], "seed": seed}
    options |= {"mixed": one_way > 0, "turn_rules": turn_rules}
    dataset = make_dataset(path, task_set, **options)
    label_dataset(dataset, iterations=iterations)
    return path


def joined_file(folder: Path, name: str, parts: list[Path]) -> Path:
    """Make one labelled data set of several, whose instances then differ in size."""
    sets = [Dataset.open(part) for part in parts]
    largest = max(sets, key=lambda dataset: dataset.capacity)
    pieces = [dataset.piece(number) for dataset in sets for number in range(len(dataset))]
    path = folder / f"{name}.npz"
    write_dataset(path, pieces_to_arrays(pieces), {**largest.facts, "name": name})
    label_dataset(Dataset.open(path), iterations=1)
    return path
