"""Start of the `arcfleet` command.

It is no part of the package `arcfleet`, because it has to run before that is imported.
"""

import signal
import sys


def main() -> int:
    """Run the command; Ctrl-C or SIGTERM while it is being imported ends it in one line."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from arcfleet.cli.main import main as run
    except KeyboardInterrupt:
        print("arcfleet: interrupted before it began", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    return run()
