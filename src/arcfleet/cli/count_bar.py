"""A bar for work on many instances: on a terminal only, on stderr."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def count_bar(what: str, *, hidden: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar with rate and time left while the block runs; None where hidden.

    Parameters
    ----------
    what
        Is counted, in the plural.
    hidden
        Whether to show nothing.
    """
    if hidden or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Display

    with Display(
        BarColumn(bar_width=24),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(stderr=True),
        transient=True,
        refresh_per_second=2,  # the cores are for the work
        speed_estimate_period=600,
    ) as display:
        bar = display.add_task("starting", total=None)
        started = 0.0
        kept: int | None = None  # done before this run; no part of its rate

        def show(done: int, total: int) -> None:
            nonlocal started, kept
            if kept is None:
                started, kept = time.perf_counter(), done
                display.reset(bar, total=total - kept)
            rate = (done - kept) / max(time.perf_counter() - started, 1e-9)
            before = f", {kept} kept" if kept else ""
            display.update(
                bar,
                completed=done - kept,
                description=f"{done} of {total} {what}{before}, {_rounded(rate)} per s",
            )

        yield show


def _rounded(rate: float) -> str:
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.2g}"
