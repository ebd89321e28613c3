"""Statistics of a data set: sizes, degrees, lengths, demands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from arcfleet.report.dataset_plot import DatasetFigures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from arcfleet.datasets.dataset import Dataset

#: Degrees are counted up to this; the last count holds those above.
MOST_DEGREE = 6
LENGTH_PERCENTILES = (10, 25, 50, 75, 90)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Least, mean and most of a number over the instances."""

    least: int
    mean: float
    most: int

    def __str__(self) -> str:
        """Return it as text, the mean in the middle."""
        return f"{self.least} / {self.mean:.1f} / {self.most}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetStatistics:
    """Statistics of one data set."""

    name: str
    instances: int
    # Numbers per instance; routes are the least number that the total demand needs.
    nodes: Spread
    links: Spread
    required: Spread
    routes: Spread
    one_way: float  # fraction of one-way links
    # Fraction of the nodes with 0, 1, 2, ... links; the last entry holds all above.
    degrees: tuple[float, ...]
    mean_degree: float  # links per node, each counted at both ends
    lengths: tuple[int, ...]  # percentiles of the links' costs, `LENGTH_PERCENTILES`
    mean_length: float
    demand: Spread  # per required link


def summarise(dataset: Dataset) -> DatasetStatistics:
    """Compute the statistics of a data set."""
    arrays = dataset.arrays
    degrees = _node_degrees(dataset)
    shares = np.bincount(np.minimum(degrees, MOST_DEGREE), minlength=MOST_DEGREE + 1)
    required = arrays["demand"] > 0
    cost = arrays["cost"]
    percentiles = np.percentile(cost, LENGTH_PERCENTILES, method="nearest")
    return DatasetStatistics(
        name=dataset.name,
        instances=len(dataset),
        nodes=_spread(arrays["num_nodes"]),
        links=_spread(arrays["num_links"]),
        required=_spread(
            np.add.reduceat(required.astype(np.int64), dataset.link_starts[:-1])
        ),
        routes=_spread(_least_routes(dataset)),
        one_way=float(arrays["one_way"].mean()),
        degrees=tuple((shares / len(degrees)).tolist()),
        mean_degree=float(degrees.mean()),
        lengths=tuple(int(value) for value in percentiles),
        mean_length=float(cost.mean()),
        demand=_spread(arrays["demand"][required]),
    )


def figures_of(dataset: Dataset, label: str) -> DatasetFigures:
    """Return what is drawn of a data set."""
    arrays, piece = dataset.arrays, dataset.piece(0)
    return DatasetFigures(
        label=label,
        degrees=summarise(dataset).degrees,
        lengths=arrays["cost"],
        nodes=arrays["num_nodes"],
        links=arrays["num_links"],
        routes=_least_routes(dataset),
        demands=arrays["demand"][arrays["demand"] > 0],
        places=np.column_stack([piece.longitude, piece.latitude]).astype(np.float64),
        ends=np.column_stack([piece.tail, piece.head]).astype(np.int64),
        required=piece.demand > 0,
        depot=piece.depot,
        attribution=dataset.attribution,
    )


def _node_degrees(dataset: Dataset) -> NDArray[np.int64]:
    """Return the number of links at every node, instance after instance."""
    arrays = dataset.arrays
    shift = np.repeat(dataset.node_starts[:-1], arrays["num_links"])
    ends = np.concatenate([arrays["tail"] + shift, arrays["head"] + shift])
    return np.bincount(ends, minlength=int(dataset.node_starts[-1])).astype(np.int64)


def _least_routes(dataset: Dataset) -> NDArray[np.int64]:
    """Return the least number of routes that the total demand of each instance needs."""
    return -(-_sums(dataset, dataset.arrays["demand"]) // dataset.capacities)


def _sums(dataset: Dataset, values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the sum of an array of links over each instance."""
    return np.add.reduceat(values.astype(np.int64), dataset.link_starts[:-1])


def statistics_rows(all_facts: Sequence[DatasetStatistics]) -> list[list[str]]:
    """Return one row per fact and one column per data set, for a table."""
    names = {
        "instances": [f"{s.instances:,}" for s in all_facts],
        "nodes": [str(s.nodes) for s in all_facts],
        "links": [str(s.links) for s in all_facts],
        "required links": [str(s.required) for s in all_facts],
        "least routes": [str(s.routes) for s in all_facts],
        "demand": [str(s.demand) for s in all_facts],
        "one-way links": [f"{s.one_way:.1%}" for s in all_facts],
        "mean degree": [f"{s.mean_degree:.2f}" for s in all_facts],
    }
    for degree in range(1, MOST_DEGREE + 1):
        more = " or more" if degree == MOST_DEGREE else ""
        names[f"degree {degree}{more}"] = [f"{s.degrees[degree]:.1%}" for s in all_facts]
    names["mean length"] = [f"{s.mean_length:.0f}" for s in all_facts]
    for number, percent in enumerate(LENGTH_PERCENTILES):
        names[f"length, {percent} %"] = [str(s.lengths[number]) for s in all_facts]
    return [[name, *cells] for name, cells in names.items()]


def _spread(values: NDArray[np.integer]) -> Spread:
    return Spread(
        least=int(values.min()), mean=float(values.mean()), most=int(values.max())
    )
