"""Work in chunks that is stopped midway."""

from collections.abc import Callable


def stop_at(least: int) -> Callable[[int, int], None]:
    """Return a progress callback that stops the work once so many instances are done."""

    def stop(done: int, total: int) -> None:
        if done >= least:
            raise KeyboardInterrupt

    return stop
