"""Series made up for tests of reports."""

from collections.abc import Sequence

from arcfleet.paper.series import Costs, Series, join


def line(
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
) -> Costs:
    return Costs(
        data_sha256=f"{scale} of {place}",
        row=row,
        settings=settings,
        source_sha256=model,
        device=device,
        alone=alone,
        set_name=f"{place}-{scale}",
        scale=scale,
        place=place,
        label=label or row.upper(),
        first=first,
        costs=tuple(costs),
        seconds=seconds,
        parallel=parallel,
        verified=1,
        machine=machine,
        commit="c0ffee",
    )


def series(*lines: Costs) -> list[Series]:
    return join(lines)
