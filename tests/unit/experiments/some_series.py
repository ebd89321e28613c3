"""Series made up for tests of reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arcfleet.paper.series import Chunk, Series, SeriesKey, join

if TYPE_CHECKING:
    from collections.abc import Sequence


def chunk(
    row: str,
    costs: Sequence[int],
    *,
    first: int = 0,
    scale: str = "task20",
    place: str = "town",
    device: str = "cpu",
    alone: bool = False,
    model: str | None = None,
    seconds: float = 1.0,
    parallel: int = 1,
    label: str | None = None,
    machine: str = "here",
    **settings: float,
) -> Chunk:
    key = SeriesKey(
        data_sha256=f"{scale} of {place}",
        row=row,
        settings=tuple(sorted(settings.items())),
        source_sha256=model,
        device=device,
        alone=alone,
        set_name=f"{place}-{scale}",
        scale=scale,
        place=place,
        label=label or row.upper(),
    )
    return Chunk(
        key=key,
        first=first,
        costs=tuple(costs),
        seconds=seconds,
        parallel=parallel,
        judged=1,
        machine=machine,
        commit="c0ffee",
    )


def series(*chunks: Chunk) -> list[Series]:
    return join(chunks)
