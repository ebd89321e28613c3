from __future__ import annotations

import signal

from hypothesis import settings

# How long an example takes says more of the machine than of the code.
settings.register_profile("arcfleet", deadline=None)
settings.load_profile("arcfleet")


def pytest_configure() -> None:
    # A shell starts background commands with Ctrl-C ignored, and so may CI; the tests of
    # interrupted searches need it, in this process and in those they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
