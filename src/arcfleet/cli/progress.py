"""Live progress of `arcfleet solve` and `bench`: on a terminal only, on stderr."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from arcfleet.bench.run import Run
    from arcfleet.bench.store import Record
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


@contextmanager
def benchmark_bar(
    runs: Sequence[Run], *, kept: int, hidden: bool
) -> Iterator[Callable[[Record], None] | None]:
    """Show a bar with rate and time left while the block runs; None where hidden.

    Parameters
    ----------
    runs
        All that will be made; their time limits weigh them.
    kept
        Runs that were there already.
    hidden
        Whether to show nothing.
    """
    if hidden or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Display

    total = sum(_weight(run.key.time_limit) for run in runs)
    with Display(
        BarColumn(bar_width=24),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(stderr=True),
        transient=True,
        refresh_per_second=2,  # the cores are for the runs
        # The rate is taken over a long time: runs end in bursts.
        speed_estimate_period=600,
    ) as display:
        bar = display.add_task(f"0 of {len(runs)} runs, {kept} kept", total=total)
        started = time.perf_counter()
        done = failed = 0

        def show(record: Record) -> None:
            nonlocal done, failed
            done += 1
            failed += record.error is not None
            rate = done / (time.perf_counter() - started)
            faults = f", {failed} failed" if failed else ""
            display.update(
                bar,
                advance=_weight(record.key.time_limit),
                description=(
                    f"{done} of {len(runs)} runs, {kept} kept{faults}, {rate:.2g} per s"
                ),
            )

        yield show


def _weight(time_limit: float) -> float:
    return time_limit + 0.01  # a run takes some time even where none is given


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
