"""Progress on stderr: one live line on a terminal, for searches, counts and training.

In a pipe, searches and counts show nothing; long runs print a line now and then.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console
    from rich.progress import Progress as Display

    from arcfleet.neural.train.loop import TrainingProgress
    from arcfleet.search import Progress, ProgressCallback, Stop
    from arcfleet.solution.bound import Bound

    #: Takes the completed fraction and a line of text.
    Show = Callable[[float, str], None]

_SECONDS_PER_LINE = 60.0


@contextmanager
def live_line(*, hidden: bool) -> Iterator[Show | None]:
    """Show a bar and a line of text while the block runs; None if hidden or in a pipe."""
    if hidden or not sys.stderr.isatty():
        yield None
        return
    try:
        from rich.console import Console
    except ModuleNotFoundError:  # a bare training machine
        yield None
        return
    with display(Console(stderr=True)) as shown:
        bar = shown.add_task("starting", total=None)

        def show(share: float, text: str) -> None:
            shown.update(bar, completed=share, total=1.0, description=text)

        yield show


def display(console: Console) -> Display:
    """Return a bar with a line beside it, of which a narrow terminal cuts off the end."""
    from rich.progress import BarColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Display
    from rich.table import Column

    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    return Display(
        SpinnerColumn(),
        BarColumn(bar_width=24),
        TextColumn("{task.description}", table_column=rest, markup=False),
        console=console,
        transient=True,
        refresh_per_second=4,  # the cores are for the work
        expand=True,
    )


# --- A search ---------------------------------------------------------------------------


@contextmanager
def search_progress(stop: Stop, *, hidden: bool) -> Iterator[ProgressCallback | None]:
    """Show the cost so far, the iterations and the time left of a search."""
    with live_line(hidden=hidden) as show:
        if show is None:
            yield None
            return

        def told(progress: Progress) -> None:
            limits = (
                (stop.seconds, progress.seconds),
                (stop.iterations, progress.iterations),
            )
            share = min(1.0, max([0.0, *(now / most for most, now in limits if most)]))
            cost = "no plan yet" if progress.cost is None else f"cost {progress.cost}"
            bound = "" if progress.bound is None else f"   bound {progress.bound}"
            if progress.districts is not None:
                cost = "{} of {} districts".format(*progress.districts)
            text = f"{cost}{bound}   {progress.iterations} iterations"
            text += f"   {progress.seconds:.0f} s"
            show(share, text + _left(progress.seconds, share))

        yield told


@contextmanager
def bound_progress(
    seconds: float | None, *, hidden: bool
) -> Iterator[Callable[[Bound], None] | None]:
    """Show the lower bound so far, the iterations and the time left."""
    with live_line(hidden=hidden) as show:
        if show is None:
            yield None
            return

        def told(bound: Bound) -> None:
            share = min(1.0, bound.seconds / seconds) if seconds else 0.0
            text = f"bound {bound.value}   {bound.iterations} iterations"
            show(share, f"{text}   {bound.seconds:.0f} s{_left(bound.seconds, share)}")

        yield told


# --- Many instances, or runs ------------------------------------------------------------


@contextmanager
def count_progress(
    what: str, *, hidden: bool, lines: bool = False
) -> Iterator[Callable[..., None] | None]:
    """Show how many are done, the rate and the time left; in a pipe, if asked, by lines.

    The callback takes the number done, the number of all and, where they differ in length,
    the completed fraction. The first call states what was done before.
    """
    kept: int | None = None
    started = last = time.perf_counter()
    with live_line(hidden=hidden) as show:

        def told(done: int, total: int, share: float | None = None) -> None:
            nonlocal kept, started, last
            now = time.perf_counter()
            if kept is None:
                kept, started = done, now
            seconds = max(now - started, 1e-9)
            if share is None:
                share = (done - kept) / max(total - kept, 1)
            rate = (done - kept) / seconds
            speed = f"{rate:.0f}" if rate >= 10 else f"{rate:.2g}"
            before = f", {kept} kept" if kept else ""
            text = f"{done} of {total} {what}{before}, {speed} per s{_left(seconds, share)}"
            if show is not None:
                show(share, text)
            elif done != kept and now - last >= _SECONDS_PER_LINE:
                last = now
                print(text, file=sys.stderr, flush=True)

        yield told if show is not None or (lines and not hidden) else None


# --- Training ---------------------------------------------------------------------------


@contextmanager
def training_progress(
    *, hidden: bool
) -> Iterator[Callable[[TrainingProgress], None] | None]:
    """Show how training goes: a live line, in a pipe one line for each validation."""
    with live_line(hidden=hidden) as show:
        if show is None:
            yield None if hidden else training_lines()
            return
        last: TrainingProgress | None = None

        def told(progress: TrainingProgress) -> None:
            nonlocal last
            last = last_metrics(progress, last)
            show(progress.fraction, describe(progress, last))

        yield told


def training_lines(name: str = "") -> Callable[[TrainingProgress], None]:
    """Return a callback that prints a line for each validation of a run.

    Metrics are in a file; this is only what a log should hold.
    """
    before = f"{name}: " if name else ""
    printed: dict[str, object] = {}

    def told(progress: TrainingProgress) -> None:
        if progress.loss is not None and progress.gaps and progress.gaps != printed:
            printed.clear()
            printed.update(progress.gaps)
            print(before + describe(progress, progress), file=sys.stderr, flush=True)

    return told


def last_metrics(
    progress: TrainingProgress, before: TrainingProgress | None
) -> TrainingProgress | None:
    """Return the progress that had the last metrics; None if a run has none yet."""
    if progress.loss is not None:
        return progress
    # Another run has begun, such as the next phase of a curriculum.
    if before is not None and progress.step < before.step:
        return None
    return before


def describe(progress: TrainingProgress, last: TrainingProgress | None) -> str:
    """Describe in one line how training goes; loss and speed are the last metrics'."""
    parts = [progress.activity]
    if progress.step:
        parts.append(f"step {progress.step}")
    if progress.fraction > 0:
        left = progress.seconds * (1 - progress.fraction) / progress.fraction
        of_phase = "" if progress.later == 0 else " of this phase"
        parts.append(f"{_clock(left)} left{of_phase}")
        if progress.later:
            parts.append(f"{_clock(left + progress.later)} of all")
    if last is not None:
        parts.append(f"loss {last.loss:.3f}")
        parts.append(f"{last.states_per_second:.0f} states/s")
    parts += [
        f"{name} {gaps.greedy:.2f}/{gaps.optimised:.2f} %"
        for name, gaps in progress.gaps.items()
    ]
    return ", ".join(parts)


def _left(seconds: float, share: float) -> str:
    """Return the time left after so many seconds; empty while it is unknown."""
    if not share:
        return ""
    left = seconds * (1.0 - share) / share
    return f", {left:.0f} s left" if left < 60 else f", {_clock(left)} left"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
