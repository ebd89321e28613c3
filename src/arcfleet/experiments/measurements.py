"""The series of an experiment: every row on every test set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from arcfleet.experiments.rows import LABELS, trained_label
from arcfleet.experiments.series import SeriesKey

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from arcfleet.experiments.model_files import ModelFiles
    from arcfleet.experiments.rows import Row
    from arcfleet.experiments.test_sets import TestSet


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measurement:
    """A series that is to be made, or completed.

    Parameters
    ----------
    key
        Which series.
    row
        How.
    test_set
        On what.
    count
        So many of its first instances.
    model
        The model file; None for a row that needs none.
    """

    key: SeriesKey
    row: Row
    test_set: TestSet
    count: int
    model: Path | None


def plan_measurements(
    test_sets: Sequence[TestSet],
    rows: Sequence[Row],
    models: ModelFiles,
    *,
    count: int | None = None,
    search_count: int | None = None,
    alone: bool = False,
) -> list[Measurement]:
    """List every row on every test set.

    Parameters
    ----------
    test_sets, rows
        What to combine.
    models
        Of the rows that need one.
    count, search_count
        How many of the first instances to take, and searches among them; None for all.
    alone
        Whether models decode instances one at a time. Searches always do.

    Raises
    ------
    OptionError
        If a row needs a model and there is none.
    """
    measurements = []
    for test_set in test_sets:
        for row in rows:
            most = search_count if row.kind.is_slow else None
            limits = (len(test_set.dataset), count, most)
            model = models.path(row.kind, test_set.scale) if row.kind.model else None
            key = SeriesKey(
                data_sha256=test_set.dataset.checksum,
                row=row.name,
                settings=row.settings,
                source_sha256=None if model is None else models.checksum(model),
                device="cpu" if model is None else models.device_name(),
                alone=alone and model is not None,
                set_name=test_set.name,
                scale=test_set.scale,
                place=test_set.place,
                label=(
                    row.label
                    if model is None
                    else trained_label(row, models.training(model))
                ),
            )
            measurements.append(
                Measurement(
                    key=key,
                    row=row,
                    test_set=test_set,
                    count=min(limit for limit in limits if limit is not None),
                    model=model,
                )
            )
    return measurements


def labels_key(test_set: TestSet, checksum: str) -> SeriesKey:
    """Name the series that holds the costs of a test set's labels."""
    return SeriesKey(
        data_sha256=test_set.dataset.checksum,
        row=LABELS,
        settings=(),
        source_sha256=checksum,
        device="cpu",
        alone=False,
        set_name=test_set.name,
        scale=test_set.scale,
        place=test_set.place,
        label="labels",
    )
