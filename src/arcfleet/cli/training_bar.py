"""Progress of training: a bar on a terminal, else a line for each validation, on stderr."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from arcfleet.neural.training_progress import TrainingProgress


@contextmanager
def training_bar(*, hidden: bool) -> Iterator[Callable[[TrainingProgress], None] | None]:
    """Show how training goes while the block runs; None where hidden."""
    if hidden:
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Display
    except ModuleNotFoundError:  # a bare training machine; the lines say as much
        yield _print_lines()
        return
    if not sys.stderr.isatty():
        yield _print_lines()
        return
    with Display(
        BarColumn(bar_width=24),
        TextColumn("{task.description}"),
        console=Console(stderr=True),
        transient=True,
        refresh_per_second=2,
    ) as display:
        bar = display.add_task("starting", total=1.0)
        last: TrainingProgress | None = None

        def show(progress: TrainingProgress) -> None:
            nonlocal last
            if progress.loss is not None:
                last = progress
            text = describe(progress, last)
            display.update(bar, completed=progress.share, description=text)

        yield show


def describe(progress: TrainingProgress, last: TrainingProgress | None) -> str:
    """Say in one line how training goes; loss and speed are those of the last metrics."""
    parts = [progress.doing]
    if progress.step:
        parts.append(f"step {progress.step}")
    if last is not None:
        parts.append(f"loss {last.loss:.3f}")
        parts.append(f"{last.states_per_second:.0f} states/s")
    parts += [
        f"{name} {gaps.greedy:.2f}/{gaps.optimised:.2f} %"
        for name, gaps in progress.gaps.items()
    ]
    if progress.share > 0:
        left = progress.seconds * (1 - progress.share) / progress.share
        parts.append(f"{_clock(left)} left")
        if progress.later is None:
            parts[-1] += " of this phase"
        elif progress.later:
            parts[-1] += f" of this phase, {_clock(left + progress.later)} of all"
    return ", ".join(parts)


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
