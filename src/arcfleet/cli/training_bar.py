"""Progress of training: a bar on a terminal, else a line for each validation, on stderr."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console
    from rich.progress import Progress as Display

    from arcfleet.neural.train.loop import TrainingProgress


@contextmanager
def training_bar(*, hidden: bool) -> Iterator[Callable[[TrainingProgress], None] | None]:
    """Show how training goes while the block runs; None where hidden."""
    if hidden:
        yield None
        return
    try:
        from rich.console import Console
    except ModuleNotFoundError:  # a bare training machine; the lines say as much
        yield _print_lines()
        return
    if not sys.stderr.isatty():
        yield _print_lines()
        return
    with training_display(Console(stderr=True)) as display:
        bar = display.add_task("starting", total=1.0)
        last: TrainingProgress | None = None

        def show(progress: TrainingProgress) -> None:
            nonlocal last
            last = last_metrics(progress, last)
            text = describe(progress, last)
            display.update(bar, completed=progress.share, description=text)

        yield show


def training_display(console: Console) -> Display:
    """Make a bar with a line beside it, of which a narrow terminal cuts the end only."""
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Display
    from rich.table import Column

    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    return Display(
        BarColumn(bar_width=24),
        TextColumn("{task.description}", table_column=rest, markup=False),
        console=console,
        transient=True,
        refresh_per_second=2,
        expand=True,
    )


def last_metrics(
    progress: TrainingProgress, before: TrainingProgress | None
) -> TrainingProgress | None:
    """Give what was told with the last line of metrics; None where a run has none yet."""
    if progress.loss is not None:
        return progress
    # Another run has begun, the next phase of a curriculum.
    if before is not None and progress.step < before.step:
        return None
    return before


def describe(progress: TrainingProgress, last: TrainingProgress | None) -> str:
    """Say in one line how training goes; loss and speed are those of the last metrics."""
    parts = [progress.doing]
    if progress.step:
        parts.append(f"step {progress.step}")
    if progress.share > 0:
        parts.append(_time_left(progress))
    if last is not None:
        parts.append(f"loss {last.loss:.3f}")
        parts.append(f"{last.states_per_second:.0f} states/s")
    parts += [
        f"{name} {gaps.greedy:.2f}/{gaps.optimised:.2f} %"
        for name, gaps in progress.gaps.items()
    ]
    return ", ".join(parts)


def _time_left(progress: TrainingProgress) -> str:
    left = progress.seconds * (1 - progress.share) / progress.share
    if progress.later is None:
        return f"{_clock(left)} left of this phase"
    if progress.later:
        return f"{_clock(left)} left of this phase, {_clock(left + progress.later)} of all"
    return f"{_clock(left)} left"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


def _print_lines() -> Callable[[TrainingProgress], None]:
    shown: dict[str, object] = {}

    def show(progress: TrainingProgress) -> None:
        # Metrics are in a file; here is only what a log should hold.
        if progress.loss is not None and progress.gaps and progress.gaps != shown:
            shown.clear()
            shown.update(progress.gaps)
            print(describe(progress, progress), file=sys.stderr, flush=True)

    return show
