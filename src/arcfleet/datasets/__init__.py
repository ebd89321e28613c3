"""Many instances: their file format, making them from streets, and labelling them."""

from arcfleet.datasets.dataset import Dataset, PaddedArrays
from arcfleet.datasets.labels import Labels, label_dataset, open_labels
from arcfleet.datasets.make import make_dataset

__all__ = [
    "Dataset",
    "Labels",
    "PaddedArrays",
    "label_dataset",
    "make_dataset",
    "open_labels",
]
