"""The live progress line of `arcfleet solve`: on a terminal only, on stderr."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from arcfleet.search import Progress, ProgressCallback, Stop


@contextmanager
def progress_line(stop: Stop, *, hidden: bool) -> Iterator[ProgressCallback | None]:
    """Show a progress line while the block runs; its callback is None where hidden."""
    if hidden or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Display

    with Display(
        SpinnerColumn(),
        BarColumn(bar_width=24),
        TextColumn("{task.description}"),
        console=Console(stderr=True),
        transient=True,
        refresh_per_second=8,
    ) as display:
        bar = display.add_task("starting", total=1.0)

        def show(progress: Progress) -> None:
            cost = "no plan yet" if progress.cost is None else f"cost {progress.cost}"
            display.update(
                bar,
                completed=_share(stop, progress),
                description=(
                    f"{cost}   {progress.iterations} iterations   {progress.seconds:.0f} s"
                    + _time_left(stop, progress)
                ),
            )

        yield show


def _share(stop: Stop, progress: Progress) -> float:
    """Give the part of the run that is over, by whichever limit comes first."""
    shares = [0.0]
    if stop.seconds:
        shares.append(progress.seconds / stop.seconds)
    if stop.iterations:
        shares.append(progress.iterations / stop.iterations)
    return min(1.0, max(shares))


def _time_left(stop: Stop, progress: Progress) -> str:
    share = _share(stop, progress)
    if share <= 0.0:
        return ""
    return f", {progress.seconds * (1.0 - share) / share:.0f} s left"
