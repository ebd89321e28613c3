"""Ctrl-C where it must not lose what is finished."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def first_interrupt_held(note: Callable[[], None] | None = None) -> Iterator[list[int]]:
    """Let the first Ctrl-C call `note` only; the second gives up, as usual.

    Yields a list that has the signals so far.
    """
    before = signal.getsignal(signal.SIGINT)
    signals: list[int] = []
    if (
        threading.current_thread() is not threading.main_thread()
        or before is not signal.default_int_handler
    ):
        yield signals
        return

    def handle(number: int, frame: object) -> None:
        signals.append(number)
        if note is not None:
            note()
        if len(signals) > 1:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)
    try:
        yield signals
    finally:
        signal.signal(signal.SIGINT, before)
